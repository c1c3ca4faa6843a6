//! Days and names, as people who talk to each other write them.

use super::lists;
use super::words::is_opaque;

/// A word and where it begins.
type Token<'t> = (usize, &'t str);

/// Days: `7 May`, `May 7th, 2023`, `next Tuesday`, `le 7 mai`, `mardi`, `5月7日`, `周二`.
pub(super) fn days<'t>(text: &'t str, tokens: &[Token<'t>]) -> Vec<&'t str> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let many = day_at(text, &tokens[at..]);
        found.extend(run(text, &tokens[at..at + many]));
        at += many.max(1);
    }
    found.extend(signs(text));
    found
}

/// Names of people, places and things: words with a capital that do not begin the sentence, and those that go on from them.
pub(super) fn names<'t>(text: &'t str, tokens: &[Token<'t>]) -> Vec<&'t str> {
    let mut found = Vec::new();
    let mut at = 1;
    while at < tokens.len() {
        let rest = &tokens[at..];
        let many = (0..rest.len().min(LONGEST_NAME))
            .take_while(|index| is_name(rest[*index].1) && (*index == 0 || adjoins(text, rest, *index, " ")))
            .count();
        found.extend(run(text, &rest[..many]));
        at += many.max(1);
    }
    found
}

/// Whether a word is written as names are, in a language that does not write every noun so.
fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    let capital = letters.next().is_some_and(char::is_uppercase);
    let lower = letters.next().is_some_and(char::is_lowercase)
        && word.chars().all(|letter| letter.is_alphabetic() || matches!(letter, '\'' | '’' | '-'));
    let plain = word.to_lowercase().replace('’', "'");
    capital
        && lower
        && !lists::STOP.has(&plain)
        && !lists::OPENERS.has(&plain)
        && !lists::WEEKDAYS.has(&plain)
        && !lists::MONTHS.has(&plain)
        && !is_opaque(word)
}

/// The text from the first of these words to the last.
fn run<'t>(text: &'t str, tokens: &[Token<'t>]) -> Option<&'t str> {
    let (from, _) = tokens.first()?;
    let (to, last) = tokens.last()?;
    text.get(*from..to + last.len())
}

/// Whether only these signs are between a word and the one before it.
fn adjoins(text: &str, tokens: &[Token<'_>], index: usize, between: &str) -> bool {
    let (before, word) = tokens[index - 1];
    let gap = text.get(before + word.len()..tokens[index].0).unwrap_or("-");
    gap.chars().all(|letter| between.contains(letter))
}

/// Of how many words the day is that these begin with.
fn day_at(text: &str, tokens: &[Token<'_>]) -> usize {
    let plain = |index: usize| tokens.get(index).map(|(_, word)| word.to_lowercase()).unwrap_or_default();
    let near = |index: usize| index < tokens.len() && adjoins(text, tokens, index, " .,");
    let is_month = |index: usize| lists::MONTHS.has(&plain(index));
    let year = |many: usize| {
        // "de mayo de 2023"
        let link = usize::from(near(many) && plain(many) == "de" && near(many + 1));
        many + if near(many + link) && is_year(&plain(many + link)) { 1 + link } else { 0 }
    };
    let first = plain(0);
    if is_day(&first) {
        let link = usize::from(near(1) && matches!(plain(1).as_str(), "de" | "of"));
        return if near(1) && near(1 + link) && is_month(1 + link) { year(2 + link) } else { 0 };
    }
    if lists::MONTHS.has(&first) && near(1) {
        let next = plain(1);
        return if is_year(&next) {
            2
        } else if is_day(&next) {
            year(2)
        } else {
            0
        };
    }
    if lists::WEEKDAYS.has(&first) {
        return 1;
    }
    if lists::NEXT.has(&first) && near(1) && lists::WEEKDAYS.has(&plain(1)) { 2 } else { 0 }
}

/// 1 to 31, with what an ordinal ends in.
fn is_day(word: &str) -> bool {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let number: Option<u8> = word.get(..digits).and_then(|digits| digits.parse().ok());
    let ending = word.get(digits..).unwrap_or_default();
    (1..=2).contains(&digits)
        && number.is_some_and(|number| (1..=31).contains(&number))
        && ["", "st", "nd", "rd", "th", "er", "º", "e"].contains(&ending)
}

fn is_year(word: &str) -> bool {
    word.len() == 4
        && (word.starts_with("19") || word.starts_with("20"))
        && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// `5月7日`, `5月`, `周二`, `星期二`, `火曜日`.
fn signs(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let digits = |text: &str| text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    for (at, sign) in text.match_indices('月') {
        let before = text[..at].bytes().rev().take(2).take_while(u8::is_ascii_digit).count();
        let rest = &text[at + sign.len()..];
        let day = digits(rest);
        let mark = rest[day..].chars().next().filter(|mark| day > 0 && matches!(mark, '日' | '号' | '號'));
        let end = at + sign.len() + day + mark.map_or(0, char::len_utf8);
        if before > 0 {
            found.push(&text[at - before..end]);
        }
    }
    for lead in ["星期", "礼拜", "周", "週"] {
        for (at, _) in text.match_indices(lead) {
            let next = text[at + lead.len()..].chars().next();
            let next = next
                .filter(|next| matches!(next, '一' | '二' | '三' | '四' | '五' | '六' | '日' | '天' | '末'));
            found.extend(next.map(|next| &text[at..at + lead.len() + next.len_utf8()]));
        }
    }
    for (at, end) in text.match_indices("曜日") {
        let before = text[..at].chars().next_back();
        let before = before.filter(|day| matches!(day, '月' | '火' | '水' | '木' | '金' | '土' | '日'));
        found.extend(before.map(|day| &text[at - day.len_utf8()..at + end.len()]));
    }
    found
}

const LONGEST_NAME: usize = 3;

#[cfg(test)]
mod tests {
    use super::super::entities::entities;
    use super::super::lines::statements;
    use super::super::source::Source;

    #[test]
    fn days_and_names_of_people_are_found_in_every_language() {
        let cases: &[(&str, &[&str])] = &[
            ("We meet Nora in Lisbon next Tuesday.", &["next Tuesday", "Nora", "Lisbon"]),
            ("The party is on May 7th, 2023 in Hyde Park.", &["May 7th, 2023", "Hyde Park"]),
            ("It may rain, and 40 may come in march.", &[]),
            ("I was born on 12 March 1990, and I'm fine.", &["12 March 1990"]),
            ("Wir sehen uns am Dienstag, den 7. Mai.", &["Dienstag", "7. Mai"]),
            ("On se voit mardi 7 mai.", &["mardi", "7 mai"]),
            ("Nos vemos el 7 de mayo de 2024.", &["7 de mayo de 2024"]),
            ("A festa é na sexta-feira, 7 de maio.", &["sexta-feira", "7 de maio"]),
            ("Vi møtes på tirsdag 7. mai.", &["tirsdag", "7. mai"]),
            ("Vi träffas på tisdag den 7 maj.", &["tisdag", "7 maj"]),
            ("Ci vediamo martedì 7 maggio.", &["martedì", "7 maggio"]),
            ("We zien elkaar dinsdag 7 mei.", &["dinsdag", "7 mei"]),
            ("Встретимся во вторник 7 мая.", &["вторник", "7 мая"]),
            ("我们5月7日周二见面。", &["5月7日", "周二"]),
            ("5月7日の火曜日に会いましょう。", &["5月7日", "火曜日"]),
        ];
        for (text, expected) in cases {
            let mut found = entities(&statements(text, Source::Talk), 15);
            let mut expected = expected.to_vec();
            found.sort();
            expected.sort_unstable();
            assert_eq!(found, expected, "{text}");
        }
    }

    /// Where every noun has a capital, a capital tells nothing; and an agent's days are no entities.
    #[test]
    fn capitals_of_german_nouns_are_no_names() {
        let german = "Wir haben gestern im Garten einen Baum und viele Blumen gepflanzt.";
        assert!(entities(&statements(german, Source::Talk), 15).is_empty());
        assert!(entities(&statements("It fails since Tuesday in Lisbon", Source::Answer), 15).is_empty());
    }
}
