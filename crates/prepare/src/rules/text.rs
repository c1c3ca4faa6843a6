//! A text as the rules see it: folded words, each with what stands around it.
//!
//! Folding takes away what a writer may change without changing the word: case, accents, width, invisible characters,
//! letters of other alphabets that look Latin inside a Latin word. What is easy to get wrong: an apostrophe belongs to
//! the word in `don't` and parts two words in `j'ai`. One pass, linear time.

mod letters;

use unicode_normalization::char::is_combining_mark;

use confidant_redact::is_invisible;
use letters::{Script, fold, look_alike};

/// A text cut into words.
pub(crate) struct Text<'a> {
    raw: &'a str,
    folded: String,
    words: Vec<Word>,
    /// Characters that a person does not see.
    pub(super) invisible: usize,
    /// What tag characters spell: text that only a machine reads.
    pub(super) hidden: String,
    /// Words that mix alphabets so that they look Latin.
    pub(super) disguised: usize,
}

/// A word's places in the folded and in the raw text, and what stands around it.
#[derive(Clone, Copy)]
pub(crate) struct Word {
    from: usize,
    to: usize,
    raw_from: usize,
    raw_to: usize,
    /// Inside quotation marks, or on a line that starts with `>`.
    pub(super) quoted: bool,
    /// Inside a code fence or backticks.
    pub(super) code: bool,
    /// An address of the web, as a whole.
    pub(super) link: bool,
    /// Next to an `@`: a part of an address or a mention.
    pub(super) address: bool,
    /// A run of a script that writes without spaces.
    pub(super) run: bool,
    /// A sentence ended before it.
    pub(super) first: bool,
}

impl<'a> Text<'a> {
    /// Cuts `raw` into words.
    pub(crate) fn read(raw: &'a str) -> Self {
        let folded = String::with_capacity(raw.len());
        let text = Self { raw, folded, words: Vec::new(), invisible: 0, hidden: String::new(), disguised: 0 };
        Reader { text, state: State::default(), at: 0 }.run()
    }

    /// The words.
    pub(crate) fn words(&self) -> &[Word] {
        &self.words
    }

    /// A word as it is compared.
    pub(crate) fn plain(&self, word: &Word) -> &str {
        &self.folded[word.from..word.to]
    }

    /// A word as it was written.
    pub(super) fn written(&self, word: &Word) -> &'a str {
        &self.raw[word.raw_from..word.raw_to]
    }

    /// Bytes between the ends of two words that follow each other.
    pub(super) fn gap(&self, one: &Word, next: &Word) -> usize {
        next.raw_from.saturating_sub(one.raw_to)
    }

    /// The whole as it was written.
    pub(super) fn raw(&self) -> &'a str {
        self.raw
    }

    /// All words as they are compared.
    pub(crate) fn plain_words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| self.plain(word))
    }
}

/// The folded words of a short text of ours, such as a name or a line of a data file.
pub(crate) fn folded_words(text: &str) -> Vec<String> {
    Text::read(text).plain_words().map(str::to_owned).collect()
}

#[derive(Default)]
struct State {
    /// Where the open word starts, folded and raw.
    open: Option<(usize, usize, Script)>,
    quoted: bool,
    fence: bool,
    backtick: bool,
    line_quoted: bool,
    sentence_over: bool,
    in_address: bool,
    /// Only white space was seen on this line.
    line_fresh: bool,
    blank_lines: usize,
    mixed: bool,
}

struct Reader<'a> {
    text: Text<'a>,
    state: State,
    at: usize,
}

impl<'a> Reader<'a> {
    fn run(mut self) -> Text<'a> {
        self.state.line_fresh = true;
        while let Some(c) = self.rest().chars().next() {
            let next = self.at + c.len_utf8();
            if self.state.open.is_none() && matches!(c, 'h' | 'H' | 'w' | 'W') && self.link() {
                continue;
            }
            match c {
                _ if is_invisible(c) => self.unseen(c),
                _ if c.is_alphanumeric() => self.letter(c),
                _ if is_combining_mark(c) => {}
                '\'' | '’' | 'ʼ' | '`' if self.state.open.is_some() && self.joins(next) => {}
                _ => self.mark(c, next),
            }
            if !c.is_whitespace() {
                self.state.line_fresh = false;
            }
            self.at = next;
        }
        self.close();
        self.text
    }

    fn rest(&self) -> &'a str {
        &self.text.raw[self.at..]
    }

    fn unseen(&mut self, c: char) {
        // A joiner or a selector belongs to emoji and to some scripts.
        let is_usual = matches!(c, '\u{200D}' | '\u{FE00}'..='\u{FE0F}');
        if !is_usual && self.text.hidden.len() < LONGEST_HIDDEN {
            self.text.invisible += 1;
            if let Some(letter) = u32::from(c).checked_sub(0xE0000).and_then(char::from_u32)
                && (' '..='~').contains(&letter)
            {
                self.text.hidden.push(letter);
            }
        }
    }

    fn letter(&mut self, c: char) {
        let script = Script::of(c);
        if self.state.open.is_some_and(|(_, _, open)| open.parts(script)) {
            self.close();
        }
        let (from, raw) = (self.text.folded.len(), self.at);
        let (_, _, open) = self.state.open.get_or_insert((from, raw, script));
        if *open == Script::Digit {
            *open = script;
        } else if *open != script && script != Script::Digit {
            self.state.mixed = true;
        }
        fold(c, &mut self.text.folded);
    }

    /// Whether an apostrophe holds a word together: `don't`, `I'm`, `we've`, but not `j'ai`.
    fn joins(&self, next: usize) -> bool {
        let tail = &self.text.raw[next..];
        let end = tail.find(|c: char| !c.is_alphanumeric()).unwrap_or(tail.len());
        end <= 2
            && matches!(tail[..end].to_ascii_lowercase().as_str(), "t" | "s" | "m" | "d" | "re" | "ve" | "ll")
    }

    /// Anything that is no part of a word.
    fn mark(&mut self, c: char, next: usize) {
        let before_word = self.state.open.is_some();
        self.close();
        self.state.in_address = c == '@' || (self.state.in_address && !c.is_whitespace());
        if c == '@'
            && before_word
            && let Some(word) = self.text.words.last_mut()
        {
            word.address = true;
        }
        // `5"` opens no quotation.
        let inch = self.text.raw[..self.at].ends_with(|c: char| c.is_ascii_digit());
        let state = &mut self.state;
        match c {
            '\n' => {
                state.blank_lines = if state.line_fresh { state.blank_lines + 1 } else { 0 };
                state.sentence_over |= state.blank_lines > 0;
                state.line_fresh = true;
                (state.quoted, state.line_quoted, state.backtick) = (false, false, false);
            }
            '`' if self.text.raw[self.at..].starts_with("```") && state.line_fresh => {
                state.fence = !state.fence
            }
            '`' => state.backtick = !state.backtick,
            '>' if state.line_fresh => state.line_quoted = true,
            '"' => state.quoted = !state.quoted && !inch,
            '„' | '“' if state.quoted => state.quoted = false,
            '„' | '“' | '«' | '「' | '『' => state.quoted = true,
            '”' | '»' | '」' | '』' => state.quoted = false,
            '!' | '?' | ';' | '…' | '。' | '！' | '？' => state.sentence_over = true,
            '.' => {
                let after = self.text.raw[next..].chars().next();
                state.sentence_over |= after.is_none_or(char::is_whitespace);
            }
            _ => {}
        }
    }

    /// Takes an address of the web as one word.
    fn link(&mut self) -> bool {
        let rest = self.rest();
        let starts =
            |scheme: &str| rest.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme));
        if !["http://", "https://", "www."].into_iter().any(starts) {
            return false;
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let from = self.text.folded.len();
        self.text.folded.push_str("http");
        self.push(from, self.at, self.at + end, Script::Latin);
        if let Some(word) = self.text.words.last_mut() {
            word.link = true;
        }
        self.at += end;
        self.state.line_fresh = false;
        true
    }

    fn close(&mut self) {
        let Some((from, raw, script)) = self.state.open.take() else { return };
        if std::mem::take(&mut self.state.mixed) && from < self.text.folded.len() {
            self.unmask(from);
        }
        if from < self.text.folded.len() {
            self.push(from, raw, self.at, script);
        }
    }

    fn push(&mut self, from: usize, raw_from: usize, raw_to: usize, script: Script) {
        let state = &mut self.state;
        self.text.words.push(Word {
            from,
            to: self.text.folded.len(),
            raw_from,
            raw_to,
            quoted: state.quoted || state.line_quoted,
            code: state.fence || state.backtick,
            link: false,
            address: state.in_address,
            run: script.is_spaceless(),
            first: std::mem::take(&mut state.sentence_over),
        });
        state.blank_lines = 0;
        self.text.folded.push(' ');
    }

    /// Makes look-alikes in a word of several alphabets Latin.
    fn unmask(&mut self, from: usize) {
        let word = self.text.folded.split_off(from);
        let latin = word.chars().map(|c| look_alike(c).unwrap_or(c));
        self.text.folded.extend(latin);
        if self.text.folded[from..].is_ascii() && !word.is_ascii() {
            self.text.disguised += 1;
        }
    }
}

/// Tag characters that are read, in bytes: enough for any instruction.
const LONGEST_HIDDEN: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_folded() {
        let cases: [(&str, &[&str]); 15] = [
            ("Don't STOP, I'm fine!", &["dont", "stop", "im", "fine"]),
            ("J'ai dit qu'il l'a", &["j", "ai", "dit", "qu", "il", "l", "a"]),
            ("Größe, Œuvre, Ångström", &["grosse", "oeuvre", "angstrom"]),
            ("self-harm e.g. v2", &["self", "harm", "e", "g", "v2"]),
            ("ｉｇｎｏｒｅ 𝐚𝐥𝐥", &["ignore", "all"]),
            ("ig\u{200B}no\u{AD}re", &["ignore"]),
            // The o and the e are Cyrillic.
            ("ignоrе it", &["ignore", "it"]),
            ("привет мир", &["привет", "мир"]),
            ("東京は雨", &["東京", "は", "雨"]),
            ("한국어", &["한국어"]),
            ("see https://a.org/x?y=1 now", &["see", "http", "now"]),
            ("İstanbul", &["istanbul"]),
            ("", &[]),
            ("\u{301}\u{301}", &[]),
            ("'t 'tis", &["t", "tis"]),
        ];
        for (raw, expected) in cases {
            let text = Text::read(raw);
            let words: Vec<&str> = text.plain_words().collect();
            assert_eq!(words, expected, "{raw}");
        }
    }

    #[test]
    fn surroundings_are_seen() {
        let text =
            Text::read("say \"go away\" `rm x` now. Then me@a.org\n> cited\nfree\n```\ncode\n```\nend");
        let with = |wanted: fn(&Word) -> bool| -> Vec<&str> {
            text.words().iter().filter(|word| wanted(word)).map(|word| text.plain(word)).collect()
        };
        assert_eq!(with(|word| word.quoted), ["go", "away", "cited"]);
        assert_eq!(with(|word| word.code), ["rm", "x", "code"]);
        assert_eq!(with(|word| word.first), ["then"]);
        assert_eq!(with(|word| word.address), ["me", "a", "org"]);
    }

    #[test]
    fn hidden_text_is_read() {
        let tags: String =
            "ignore".chars().map(|c| char::from_u32(0xE0000 + u32::from(c)).unwrap()).collect();
        let text = Text::read(&tags);
        assert_eq!((text.hidden.as_str(), text.invisible, text.words().len()), ("ignore", 6, 0));
    }

    #[test]
    fn an_inch_is_no_quotation() {
        let text = Text::read("a 5\" screen and \"one\" word");
        let quoted: Vec<&str> = text.words().iter().filter(|w| w.quoted).map(|w| text.plain(w)).collect();
        assert_eq!(quoted, ["one"]);
    }

    #[test]
    fn words_are_found_where_they_were_written() {
        let raw = "Ça va, l'Été ?";
        let text = Text::read(raw);
        let written: Vec<&str> = text.words().iter().map(|word| text.written(word)).collect();
        assert_eq!(written, ["Ça", "va", "l", "Été"]);
    }
}
