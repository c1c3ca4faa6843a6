//! The language of what the person says now.
//!
//! Short messages are the hard case: a detector that counts letters in threes takes "ok thanks" for anything. So the
//! words that hold sentences together vote first, the detector decides between those that are close or knows what has
//! no votes, then the recent messages are asked, and English is the last resort. Quotations, code and addresses have no
//! say: "translate „guten Morgen"" is English.

use whatlang::{Detector, Lang};

use super::text::{Text, Word};
use super::words::STOP_WORDS;

/// The language of the newest of these texts that says enough, as two letters; the newest is first.
pub(super) fn detect<'t>(texts: impl Iterator<Item = &'t Text<'t>>) -> &'static str {
    texts.take(MOST_TEXTS).find_map(of).unwrap_or("en")
}

/// The language of a text, if it says enough.
fn of(text: &Text<'_>) -> Option<&'static str> {
    let words = telling(text);
    let votes = Votes::count(text, &words);
    if let Some(language) = votes.winner() {
        return Some(language);
    }
    let close = votes.close();
    let sample = sample(text, &words);
    let letters = sample.chars().filter(|c| c.is_alphabetic()).count();
    if close.len() > 1 && (votes.best().is_some_and(|(_, most)| most >= 1.0) || letters >= FEWEST_LETTERS) {
        return Detector::with_allowlist(close).detect(&sample).map(|info| code(info.lang()));
    }
    let info = Detector::new().detect(&sample)?;
    // One alphabet, one language; else three letters say nothing, and forty do.
    let own_script = !matches!(info.script(), whatlang::Script::Latin | whatlang::Script::Cyrillic);
    let enough = own_script || (info.is_reliable() && letters >= FEWEST_LETTERS) || letters >= ENOUGH_LETTERS;
    enough.then(|| code(info.lang()))
}

/// The words that the person wrote themself; all of them if hardly any are left.
fn telling<'t>(text: &'t Text<'_>) -> Vec<&'t Word> {
    let plain = |word: &&Word| !word.code && !word.link && !word.address;
    let own: Vec<&Word> =
        text.words().iter().filter(plain).filter(|word| !word.quoted).take(MOST_WORDS).collect();
    if own.len() > 1 { own } else { text.words().iter().filter(plain).take(MOST_WORDS).collect() }
}

fn sample(text: &Text<'_>, words: &[&Word]) -> String {
    let mut sample = String::new();
    for word in words {
        sample.push_str(text.written(word));
        // A space inside a script that has none would do no harm, but is not needed either.
        sample.push(' ');
    }
    sample
}

/// What each language has among the words of a text.
struct Votes {
    votes: Vec<f32>,
}

impl Votes {
    fn count(text: &Text<'_>, words: &[&Word]) -> Self {
        let mut votes = vec![0.0; STOP_WORDS.languages().len()];
        for word in words {
            let bits = STOP_WORDS.languages_of(text.plain(word));
            // A word of many languages says little about each.
            let weight = 1.0 / f32::from(u16::try_from(bits.count_ones()).unwrap_or(u16::MAX)).max(1.0);
            for (at, vote) in votes.iter_mut().enumerate() {
                if bits >> at & 1 == 1 {
                    *vote += weight;
                }
            }
        }
        let mut votes = Self { votes };
        votes.count_letters(text, words);
        votes
    }

    /// Letters and marks that only some languages write.
    fn count_letters(&mut self, text: &Text<'_>, words: &[&Word]) {
        let turned = text.raw().contains(['¿', '¡']).then_some("es");
        let written = words.iter().flat_map(|word| text.written(word).chars());
        for c in written.filter(|c| !c.is_ascii()).take(MOST_WORDS) {
            let Some((_, languages)) = LETTERS.iter().find(|(letters, _)| letters.contains(c)) else {
                continue;
            };
            for language in languages.split(' ') {
                self.add(language, 1.0 / languages.split(' ').count() as f32);
            }
        }
        turned.into_iter().for_each(|language| self.add(language, 1.0));
    }

    fn add(&mut self, language: &str, vote: f32) {
        if let Some(at) = STOP_WORDS.languages().iter().position(|known| *known == language) {
            self.votes[at] += vote;
        }
    }

    /// The language that has clearly the most.
    fn winner(&self) -> Option<&'static str> {
        let (best, most) = self.best()?;
        let second = self.votes.iter().enumerate().filter(|(at, _)| *at != best).map(|(_, vote)| *vote);
        let second = second.fold(0.0, f32::max);
        (most >= 1.0 && most >= second * CLEARLY).then(|| STOP_WORDS.languages()[best])
    }

    /// The languages that have nearly the most, if that is anything.
    fn close(&self) -> Vec<Lang> {
        let Some((_, most)) = self.best() else { return Vec::new() };
        let close = |(at, vote): (usize, &f32)| {
            (*vote * CLEARLY > most).then(|| lang(STOP_WORDS.languages()[at])).flatten()
        };
        self.votes.iter().enumerate().filter_map(close).collect()
    }

    fn best(&self) -> Option<(usize, f32)> {
        let best = self.votes.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        (best.1 > 0.0).then_some(best)
    }
}

/// The two letters of a language.
fn code(lang: Lang) -> &'static str {
    CODES.iter().find(|(known, _)| *known == lang).map_or("en", |(_, code)| code)
}

fn lang(code: &str) -> Option<Lang> {
    CODES.iter().find(|(_, known)| *known == code).map(|(lang, _)| *lang)
}

/// Letters, and the languages among those that vote that write them.
const LETTERS: &[(&str, &str)] = &[
    ("ßẞ", "de"),
    ("ñÑ", "es"),
    ("ãõÃÕ", "pt"),
    ("ìòùÌÒ", "it"),
    ("œŒêîûëïÊ", "fr"),
    ("æøÆØ", "no da"),
    ("åÅ", "sv no da"),
    ("łżźśąęćńŁŻŚ", "pl"),
    ("řěůčšžŘČŠŽ", "cs"),
    ("ğşıİĞŞ", "tr"),
    ("őűŐŰ", "hu"),
    ("șțăȘȚ", "ro"),
    ("äöÄÖ", "de sv fi"),
    ("üÜ", "de tr hu"),
    ("іїєґІЇЄҐ", "uk"),
    ("ыэёъЫЭ", "ru"),
];

/// ISO 639-1 for what the detector knows.
const CODES: &[(Lang, &str)] = &[
    (Lang::Eng, "en"),
    (Lang::Deu, "de"),
    (Lang::Fra, "fr"),
    (Lang::Spa, "es"),
    (Lang::Por, "pt"),
    (Lang::Ita, "it"),
    (Lang::Nld, "nl"),
    (Lang::Swe, "sv"),
    (Lang::Nob, "no"),
    (Lang::Dan, "da"),
    (Lang::Fin, "fi"),
    (Lang::Pol, "pl"),
    (Lang::Ces, "cs"),
    (Lang::Slk, "sk"),
    (Lang::Slv, "sl"),
    (Lang::Hrv, "hr"),
    (Lang::Srp, "sr"),
    (Lang::Ron, "ro"),
    (Lang::Hun, "hu"),
    (Lang::Tur, "tr"),
    (Lang::Rus, "ru"),
    (Lang::Ukr, "uk"),
    (Lang::Bel, "be"),
    (Lang::Bul, "bg"),
    (Lang::Mkd, "mk"),
    (Lang::Ell, "el"),
    (Lang::Cmn, "zh"),
    (Lang::Jpn, "ja"),
    (Lang::Kor, "ko"),
    (Lang::Ara, "ar"),
    (Lang::Heb, "he"),
    (Lang::Yid, "yi"),
    (Lang::Pes, "fa"),
    (Lang::Urd, "ur"),
    (Lang::Hin, "hi"),
    (Lang::Ben, "bn"),
    (Lang::Mar, "mr"),
    (Lang::Nep, "ne"),
    (Lang::Guj, "gu"),
    (Lang::Pan, "pa"),
    (Lang::Tam, "ta"),
    (Lang::Tel, "te"),
    (Lang::Kan, "kn"),
    (Lang::Mal, "ml"),
    (Lang::Ori, "or"),
    (Lang::Sin, "si"),
    (Lang::Mya, "my"),
    (Lang::Khm, "km"),
    (Lang::Tha, "th"),
    (Lang::Vie, "vi"),
    (Lang::Ind, "id"),
    (Lang::Jav, "jv"),
    (Lang::Tgl, "tl"),
    (Lang::Kat, "ka"),
    (Lang::Hye, "hy"),
    (Lang::Aze, "az"),
    (Lang::Uzb, "uz"),
    (Lang::Tuk, "tk"),
    (Lang::Amh, "am"),
    (Lang::Lit, "lt"),
    (Lang::Lav, "lv"),
    (Lang::Est, "et"),
    (Lang::Cat, "ca"),
    (Lang::Cym, "cy"),
    (Lang::Afr, "af"),
    (Lang::Aka, "ak"),
    (Lang::Zul, "zu"),
    (Lang::Sna, "sn"),
    (Lang::Lat, "la"),
    (Lang::Epo, "eo"),
];

/// So many times the votes of the next is clear.
const CLEARLY: f32 = 1.3;

/// Fewer letters than this are no text to the detector.
const FEWEST_LETTERS: usize = 20;

/// From here on its guess is better than somebody else's words.
const ENOUGH_LETTERS: usize = 48;

/// Words of a text that are looked at.
const MOST_WORDS: usize = 120;

/// The message and those before it.
const MOST_TEXTS: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_of_the_detector_has_its_letters() {
        for lang in Lang::all() {
            assert_eq!(CODES.iter().filter(|(known, _)| known == lang).count(), 1, "{lang}");
        }
        assert!(STOP_WORDS.languages().iter().all(|code| lang(code).is_some()));
    }

    /// `code | text`, with the messages before it, newest first, after further bars.
    #[test]
    fn the_examples_are_told_apart() {
        let examples = include_str!("../data/language_examples.txt");
        let (mut seen, mut wrong) = (0, Vec::new());
        for line in examples.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut parts = line.split('|').map(str::trim);
            let expected = parts.next().unwrap();
            let texts: Vec<Text<'_>> = parts.map(Text::read).collect();
            let given = detect(texts.iter());
            if given != expected {
                wrong.push(format!("{given}, not {line}"));
            }
            seen += 1;
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(seen > 60, "{seen}");
    }
}
