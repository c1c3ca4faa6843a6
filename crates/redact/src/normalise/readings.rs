//! Other ways to read a text: each undoes one kind of wrapping.
//!
//! Escapes of strings, addresses, markup and terminals; tokens that were cut at a line's end; and what has its own check or
//! a shape that nothing else has, cut between its groups. Lines end in the middle of nothing most of the time, so a break
//! is undone only where both sides of it look like halves, and what is read across it is believed only of some rules.

use memchr::{memchr, memchr_iter};

use super::{Reach, View};

/// Escapes that can stand inside each other: each kind may hide the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Escapes {
    Backslash,
    Percent,
    Entity,
}

impl Escapes {
    pub(crate) const ALL: [Self; 3] = [Self::Backslash, Self::Percent, Self::Entity];
}

/// Which escapes of a view are undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Those {
    All,
    /// Those that came out when others were undone.
    Uncovered,
}

impl View<'_> {
    /// The view with these escapes undone, if it has any.
    pub(crate) fn undone(&self, escapes: Escapes, which: Those) -> Option<View<'static>> {
        match escapes {
            Escapes::Backslash => self.unescaped(which),
            Escapes::Percent => self.unpercented(which),
            Escapes::Entity => self.unentitied(which),
        }
    }

    /// Backslash escapes: `\n`, `\"`, `\/`, `\x41`, `\u0041`, Markdown's `\_`.
    fn unescaped(&self, which: Those) -> Option<View<'static>> {
        self.rewritten(b'\\', which, |text, at| {
            let next = *text.get(at + 1)?;
            let hex = |digits: usize| {
                let digits = text.get(at + 2..at + 2 + digits)?;
                u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
            };
            Some(match next {
                b'n' | b'r' => (2, Some('\n')),
                b't' => (2, Some('\t')),
                b'"' | b'\'' | b'\\' | b'/' | b'`' | b'_' => (2, Some(char::from(next))),
                b'x' => (4, Some(char::from(u8::try_from(hex(2)?).ok()?))),
                b'u' => (6, char::from_u32(hex(4)?)),
                _ => return None,
            })
        })
    }

    /// Percent escapes.
    fn unpercented(&self, which: Those) -> Option<View<'static>> {
        self.rewritten(b'%', which, |text, at| {
            let digits = std::str::from_utf8(text.get(at + 1..at + 3)?).ok()?;
            let byte = u8::from_str_radix(digits, 16).ok().filter(u8::is_ascii)?;
            Some((3, Some(char::from(byte))))
        })
    }

    /// Entities of markup: `&#64;`, `&#x40;`, `&lt;`.
    fn unentitied(&self, which: Those) -> Option<View<'static>> {
        self.rewritten(b'&', which, |text, at| {
            if let Some((name, c)) = NAMED.iter().find(|(name, _)| text[at..].starts_with(name.as_bytes())) {
                return Some((name.len(), Some(*c)));
            }
            let entity = text[at..].strip_prefix(b"&#")?;
            let (digits, radix) = match entity {
                [b'x' | b'X', digits @ ..] => (digits, 16),
                digits => (digits, 10),
            };
            let length = digits.iter().take(8).position(|byte| *byte == b';')?;
            let number = u32::from_str_radix(std::str::from_utf8(&digits[..length]).ok()?, radix).ok()?;
            let c = char::from_u32(number).filter(|c| c.is_ascii() && !c.is_control() || *c == '\n')?;
            Some((text.len() - at - digits.len() + length + 1, Some(c)))
        })
    }

    /// The view without the colours of terminals, if it has any.
    pub(crate) fn uncoloured(&self) -> Option<View<'static>> {
        self.rewritten(ESCAPE, Those::All, |text, at| {
            let code = text[at..].strip_prefix(&[ESCAPE, b'['])?;
            let length = code
                .iter()
                .take(LONGEST_COLOUR)
                .position(|byte| !matches!(byte, b'0'..=b'9' | b';' | b'?'))?;
            (b'@'..=b'~').contains(&code[length]).then_some((length + 3, None))
        })
    }

    /// The view with breaks taken out, if it has any: inside long tokens (a backslash or `=` at the end of a line, or a line
    /// that ends, and a next one that begins, in the middle of a token), between the groups of a number, and inside an address
    /// of mail or of a server with its password.
    pub(crate) fn joined(&self) -> Option<View<'static>> {
        let text = self.bytes();
        let mut changes = Vec::new();
        // What was before a break that is gone goes on behind it.
        let mut joined = (0, Run::default());
        for at in line_ends(text) {
            let Some(length) = line_break(text, at) else { continue };
            let (before, after) = (&text[at.saturating_sub(LONGEST_HALF)..at], &text[at + length..]);
            // Most lines end in the middle of nothing.
            let cut =
                after.first().is_some_and(|next| is_token(*next)).then(|| Run::before(text, at, joined));
            let cut = cut.and_then(|run| match before.last() {
                Some(b'\\') => Some((run, Reach::Far)),
                Some(b'=') => Some((run, Reach::Near)),
                _ => run.is_cut(after).then_some((run, Reach::Near)),
            });
            if let Some((run, reach)) = cut {
                let sign = usize::from(matches!(before.last(), Some(b'\\' | b'=')));
                changes.push((at - sign..at + length, None, reach));
                joined = (at + length, run);
            } else if between_groups(before, after) {
                let space = (!before.ends_with(b"-")).then_some(' ');
                changes.push((at..at + length, space, Reach::Near));
            } else if inside_mail(before, after) || inside_server(before, after) {
                changes.push((at..at + length, None, Reach::Near));
            }
        }
        self.changed(changes)
    }
}

/// The token that a line ends with.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    length: usize,
    digits: usize,
    letters: usize,
}

impl Run {
    /// Reads back from a place. A token that begins where a break was taken out has what stood before that.
    fn before(text: &[u8], at: usize, joined: (usize, Self)) -> Self {
        let mut run = Self::default();
        for byte in text[joined.0..at].iter().rev().take(LONGEST_HALF).take_while(|byte| is_token(**byte)) {
            run.length += 1;
            run.digits += usize::from(byte.is_ascii_digit());
            run.letters += usize::from(byte.is_ascii_alphabetic());
        }
        if run.length == at - joined.0 {
            let (_, Self { length, digits, letters }) = joined;
            (run.length, run.digits, run.letters) =
                (run.length + length, run.digits + digits, run.letters + letters);
        }
        run
    }

    /// Whether the token goes on behind the break: a long one, or a shorter one that no word looks like.
    fn is_cut(self, after: &[u8]) -> bool {
        (self.length >= LEAST_WRAPPED && self.digits > 0 && is_rest(after))
            || (self.length >= LEAST_MIXED && self.digits > 1 && self.letters > 1 && is_half(after))
    }
}

/// Where lines end, before what ends them.
fn line_ends(text: &[u8]) -> impl Iterator<Item = usize> {
    memchr_iter(b'\n', text).map(|at| if text[..at].ends_with(b"\r") { at - 1 } else { at })
}

/// The rest of a token, and no word: a digit, padding, a capital behind a small letter, or much of it.
fn is_rest(after: &[u8]) -> bool {
    let length = after.iter().take(LEAST_WRAPPED).take_while(|byte| is_token(**byte)).count();
    let token = &after[..length];
    length == LEAST_WRAPPED
        || token.iter().any(|byte| byte.is_ascii_digit() || *byte == b'=')
        || token.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
}

/// The second half of a token: long, with a digit, and nothing is given to it.
fn is_half(after: &[u8]) -> bool {
    let length = after.iter().take(LEAST_HALF).take_while(|byte| is_token(**byte) && **byte != b'=').count();
    let token = after.iter().take(LONGEST_HALF).take_while(|byte| is_token(**byte));
    length == LEAST_HALF && token.filter(|byte| byte.is_ascii_digit()).count() > 0
}

/// A short group of capitals and digits at either side, one of them with a digit: of a card, an account or a telephone
/// that the line before does not hold whole.
fn between_groups(before: &[u8], after: &[u8]) -> bool {
    let group = |byte: &&u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    let dashed = before.ends_with(b"-");
    let before = before.strip_suffix(b"-").unwrap_or(before);
    let first = before.iter().rev().take_while(group).count();
    let second = after.iter().take(LONGEST_GROUP + 1).take_while(group).count();
    if !(2..=LONGEST_GROUP).contains(&first) || !(1..=LONGEST_GROUP).contains(&second) {
        return false;
    }
    let (one, two) = (&before[before.len() - first..], &after[..second]);
    let number = |group: &[u8]| group.iter().any(u8::is_ascii_digit);
    let dashed = dashed || before[..before.len() - first].ends_with(b"-");
    let shut = match after.get(second) {
        Some(b'-') => dashed,
        next => matches!(next, None | Some(b' ' | b'\n' | b'\r' | b'.' | b',' | b';' | b')')),
    };
    let digits = |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'-');
    let row = before.iter().rev().take_while(digits).filter(|byte| byte.is_ascii_digit()).count();
    let told = before.contains(&b'+');
    (number(one) || number(two)) && shut && row < if told { 8 } else { 13 }
}

/// `jane@` and `example.org`, or `jane@example.` and `org`.
fn inside_mail(before: &[u8], after: &[u8]) -> bool {
    let name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+' | b'%');
    let host = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let rest = || &after[..after.iter().take(LONGEST_HALF).take_while(host).count()];
    match before {
        [.., byte, b'@'] => name(*byte) && rest().iter().skip(1).any(|byte| *byte == b'.'),
        [lead @ .., b'.'] => {
            let domain = lead.iter().rev().take_while(host).count();
            let lead = &lead[..lead.len() - domain];
            domain > 0
                && matches!(lead, [.., byte, b'@'] if name(*byte))
                && TOPS.iter().any(|one| one.as_bytes() == rest().strip_suffix(b".").unwrap_or(rest()))
        }
        _ => false,
    }
}

/// `postgres://app:s3cr` and `et@db.example.org`.
fn inside_server(before: &[u8], after: &[u8]) -> bool {
    let word = before.iter().rev().take_while(|byte| !byte.is_ascii_whitespace()).count();
    let word = &before[before.len() - word..];
    if memchr(b':', word).is_none() {
        return false;
    }
    let Some(at) = word.windows(3).rposition(|part| part == b"://") else { return false };
    let user = &word[at + 3..];
    let Some(colon) = user.iter().position(|byte| *byte == b':') else { return false };
    let port = user[colon + 1..].iter().all(u8::is_ascii_digit);
    let rest = after
        .iter()
        .take(LONGEST_HALF)
        .take_while(|byte| !byte.is_ascii_whitespace() && !b"/?\"'<>".contains(byte))
        .count();
    !port && !user.iter().any(|byte| b"/@?#\"'<>".contains(byte)) && after[..rest].contains(&b'@')
}

fn line_break(text: &[u8], at: usize) -> Option<usize> {
    let mut end = at;
    if text.get(end) == Some(&b'\r') {
        end += 1;
    }
    if text.get(end) != Some(&b'\n') {
        return None;
    }
    end += 1;
    let indent = text[end..].iter().take(MOST_INDENT).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    Some(end + indent - at)
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'+' | b'=' | b'@')
}

/// The entities in which markup itself is written.
const NAMED: &[(&str, char)] = &[
    ("&lt;", '<'),
    ("&gt;", '>'),
    ("&amp;", '&'),
    ("&quot;", '"'),
    ("&apos;", '\''),
    ("&nbsp;", ' '),
    ("&NewLine;", '\n'),
];
const ESCAPE: u8 = 0x1b;
const LONGEST_COLOUR: usize = 16;
/// A shorter run before a line's end is a word, not a token that was cut; with digits among its letters, a bit less will do.
const LEAST_WRAPPED: usize = 24;
const LEAST_MIXED: usize = 12;
const LEAST_HALF: usize = 8;
const MOST_INDENT: usize = 16;
/// How far from its break one half of something is looked at.
const LONGEST_HALF: usize = 96;
/// The longest group in which cards, accounts and telephones are written.
const LONGEST_GROUP: usize = 6;
/// What the addresses of most people end with.
const TOPS: &[&str] = &[
    "com", "org", "net", "edu", "gov", "io", "ai", "dev", "app", "info", "eu", "uk", "de", "fr", "it", "es",
    "nl", "be", "ch", "at", "se", "no", "dk", "fi", "pl", "cz", "pt", "ie", "ru", "ua", "tr", "jp", "cn",
    "in", "au", "nz", "ca", "us", "br", "mx",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wrapping_is_undone() {
        let plain = |text: &'static str| View::plain(text);
        let text =
            |view: Option<View<'_>>| view.map(|view| String::from_utf8(view.bytes().to_vec()).unwrap());
        assert_eq!(text(plain(r#"a\n\"b\u0041\x42\"#).unescaped(Those::All)).as_deref(), Some("a\n\"bAB\\"));
        assert_eq!(text(plain("a%40b%zz%4").unpercented(Those::All)).as_deref(), Some("a@b%zz%4"));
        assert_eq!(text(plain("curl \\\n  -H").joined()).as_deref(), Some("curl -H"));
        let long = "abcdefghijklmnopqrstuvwxyz0123\n456 x\ny";
        assert_eq!(text(plain(long).joined()).as_deref(), Some("abcdefghijklmnopqrstuvwxyz0123456 x\ny"));
        assert_eq!(text(plain("plain").unescaped(Those::All)), None);
        let entities = plain("a&#64;b&#x2e;c&lt;&uml;&#;").unentitied(Those::All);
        assert_eq!(text(entities).as_deref(), Some("a@b.c<&uml;&#;"));
        assert_eq!(text(plain("a\u{1b}[1;31mb\u{1b}[0m\u{1b}c").uncoloured()).as_deref(), Some("ab\u{1b}c"));
    }

    #[test]
    fn what_others_covered_is_told_from_what_stood_there() {
        let once = View::plain("a%2541 b%42 \\u002541 &lt;")
            .undone(Escapes::Percent, Those::All)
            .expect("it has some");
        assert_eq!(once.bytes(), b"a%41 bB \\u002541 &lt;");
        let twice = once.undone(Escapes::Percent, Those::Uncovered).expect("one came out");
        assert_eq!(twice.bytes(), b"aA bB \\u002541 &lt;");
        assert!(once.undone(Escapes::Entity, Those::Uncovered).is_none());
        let mixed = once.undone(Escapes::Backslash, Those::All).expect("it has one");
        assert_eq!(mixed.bytes(), b"a%41 bB %41 &lt;");
    }

    #[test]
    fn only_halves_are_joined() {
        let joined = |text: &'static str| {
            View::plain(text).joined().map(|view| String::from_utf8(view.bytes().to_vec()).unwrap())
        };
        for (broken, whole) in [
            ("4539 1488\n0343 6467", "4539 1488 0343 6467"),
            ("DE89 3704\r\n  0044 05", "DE89 3704 0044 05"),
            ("+49 30\n901820", "+49 30 901820"),
            ("jane.doe@\nexample.org", "jane.doe@example.org"),
            ("jane.doe@example.\norg.", "jane.doe@example.org."),
            ("postgres://app:s3cr\net@db/x", "postgres://app:s3cret@db/x"),
        ] {
            assert_eq!(joined(broken).as_deref(), Some(whole), "{broken}");
        }
        for text in [
            "one\ntwo",
            "in 2024\nnothing",
            "4539 1488 0343 6467\n12 of them",
            "+49 30 901820\n12 of them",
            "jane@example.\nNext",
            "http://localhost:8080\njane@example.org",
            "12:30\n2024-01-02T10:00",
        ] {
            assert_eq!(joined(text), None, "{text}");
        }
    }
}
