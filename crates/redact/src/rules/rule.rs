//! What a rule is, and what its check sees.

use std::ops::Range;

use super::value;
use crate::finding::Tier;

/// One kind of thing to find.
#[derive(Debug)]
pub(crate) struct Rule {
    /// What reports and findings call it.
    pub(crate) id: &'static str,
    /// What its placeholder says.
    pub(crate) label: &'static str,
    pub(crate) tier: Tier,
    pub(crate) family: Family,
    pub(crate) trigger: Trigger,
    /// What must stand at the trigger; the trigger itself if empty. Its first group, if it has one, is what is replaced.
    pub(crate) pattern: &'static str,
    pub(crate) check: Check,
    #[cfg_attr(not(test), expect(dead_code, reason = "examples are for tests"))]
    pub(crate) matches: &'static [&'static str],
    #[cfg_attr(not(test), expect(dead_code, reason = "examples are for tests"))]
    pub(crate) misses: &'static [&'static str],
}

/// What makes a place worth a look.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trigger {
    /// One of these words, in any case, where no letter or digit stands before it.
    Keyword(&'static [&'static str]),
    /// One of these words wherever it stands.
    Anywhere(&'static [&'static str]),
    /// The first digit of a number with so many digits, signs between them not counted.
    Number(usize, usize),
    /// A colon with another one near and only hexadecimal digits between them.
    Colon,
    /// The start of so many letters and digits in a row, some of each.
    Word(usize, usize),
    /// The start of two or four hexadecimal digits before `:`, `-` or `.` and more of them.
    Hex,
    /// The start of a token at least this long.
    Token(usize),
    /// Nothing in the text: hits come from elsewhere.
    Never,
}

/// Looks closer at a match: what to replace, or None if it is not what it seemed.
pub(crate) type Check = fn(&Found<'_>) -> Option<Range<usize>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Critical,
    Vendor,
    Jwt,
    Url,
    Secret,
    Opaque,
    Personal,
    /// What has no check of its own: another rule for the same place names it.
    Loose,
    Dictionary,
}

impl Family {
    /// Which rule names a place that several claim.
    pub(crate) fn sureness(self) -> u8 {
        match self {
            Self::Critical => 7,
            Self::Dictionary => 6,
            Self::Vendor => 5,
            Self::Jwt => 4,
            Self::Url => 3,
            Self::Personal => 2,
            Self::Loose | Self::Secret => 1,
            Self::Opaque => 0,
        }
    }

    /// Whether its tokens are sure enough to be believed across a line's end.
    pub(crate) fn survives_wrapping(self) -> bool {
        matches!(self, Self::Critical | Self::Vendor | Self::Jwt)
    }
}

/// Whether a rule is looked for where lines were joined: tokens, what has a check, and what has a form that nothing else has.
pub(crate) fn is_read_joined(rule: &Rule) -> bool {
    rule.family.survives_wrapping()
        || matches!(rule.id, "credit_card" | "phone_international" | "iban" | "email" | "url_password")
}

/// Whether a find of such a rule is believed there: in the groups that it is written in.
pub(crate) fn survives_joining(rule: &Rule, value: &[u8]) -> bool {
    match rule.id {
        "credit_card" => {
            let groups: Vec<usize> = value.split(|byte| !byte.is_ascii_digit()).map(<[u8]>::len).collect();
            matches!(groups[..], [4, 4, 4, 4] | [4, 6, 5] | [4, 6, 4])
        }
        "phone_international" => value.starts_with(b"+"),
        _ => true,
    }
}

/// A match of a pattern, in the text around it.
#[derive(Debug)]
pub(crate) struct Found<'t> {
    pub(crate) text: &'t [u8],
    /// The whole match.
    pub(crate) whole: Range<usize>,
    /// Its first group, or the whole.
    pub(crate) secret: Range<usize>,
}

impl<'t> Found<'t> {
    pub(crate) fn value(&self) -> &'t [u8] {
        &self.text[self.secret.clone()]
    }

    /// Up to so many bytes before the match.
    pub(crate) fn before(&self, length: usize) -> &'t [u8] {
        &self.text[self.whole.start.saturating_sub(length)..self.whole.start]
    }

    /// Everything behind the match.
    pub(crate) fn after(&self) -> &'t [u8] {
        &self.text[self.whole.end..]
    }

    /// What stands before the match on its line, and a little of the line before.
    pub(crate) fn lead(&self) -> &'t [u8] {
        self.before(LEAD)
    }

    /// Whether the match ends where a word ends.
    pub(crate) fn ends_well(&self) -> bool {
        !self.after().first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    }

    /// Whether the match is no part of a longer number or token: nothing goes on at either side over a sign that joins.
    /// `contact=` and `card:` join nothing; a digit before the sign does.
    pub(crate) fn stands_alone(&self) -> bool {
        let joins = |byte: u8| matches!(byte, b'-' | b'.' | b',' | b'/' | b':' | b'_' | b'+' | b'=');
        let names = |byte: u8| matches!(byte, b':' | b'=' | b',');
        let before = self.before(2);
        let open = match before {
            [byte, sign] if names(*sign) => !byte.is_ascii_digit(),
            [byte, sign] => !(joins(*sign) && byte.is_ascii_alphanumeric()),
            _ => true,
        };
        let begins =
            !before.last().is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'));
        let shut = match self.after() {
            [sign, next, ..] => !(joins(*sign) && next.is_ascii_digit()),
            _ => true,
        };
        open && begins && shut && self.ends_well()
    }

    /// Whether one of these words stands in the bytes before the match, in any case.
    pub(crate) fn follows(&self, words: &[&str], within: usize) -> bool {
        value::has_any(self.before(within), words)
    }

    /// Where the last of these lower-case words begins in the bytes before the match, in any case.
    pub(crate) fn last_of(&self, words: &[&str], within: usize) -> Option<usize> {
        let lead = self.before(within).to_ascii_lowercase();
        let last = |word: &&str| lead.windows(word.len()).rposition(|part| part == word.as_bytes());
        words.iter().filter_map(last).max()
    }

    pub(crate) fn digits(&self) -> Vec<u8> {
        self.value().iter().filter(|byte| byte.is_ascii_digit()).map(|byte| byte - b'0').collect()
    }
}

/// How far before a value its service may be named.
const LEAD: usize = 40;

/// Every match is one.
pub(crate) fn always(found: &Found<'_>) -> Option<Range<usize>> {
    Some(found.secret.clone())
}

/// Every match that ends where a word ends is one.
pub(crate) fn whole_word(found: &Found<'_>) -> Option<Range<usize>> {
    found.ends_well().then(|| found.secret.clone())
}
