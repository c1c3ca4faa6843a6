//! Names of services that give out keys.
//!
//! `acme_key = …` says nothing when `acme` is the author's own, and all when it is a service: the name is what turns a
//! weak word, or no word at all, into a reason to believe that a token is one. The list is `data/services.txt`, one
//! name a line in lower case without signs; a star marks names that are words too, or that stand beside hashes in any
//! repository, and count only together with a credential word.

use std::collections::HashMap;
use std::sync::LazyLock;

/// How a service is named before a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Service {
    /// By a name that is a word too.
    Word,
    /// By a name that is nothing else.
    Sure,
}

/// The surest service that a text names: at the start of a word or of a hump, signs inside it aside.
pub(super) fn named(text: &[u8]) -> Option<Service> {
    let begins = |at: usize| {
        let (before, here) = (at.checked_sub(1).map(|before| text[before]), text[at]);
        here.is_ascii_alphanumeric()
            && before.is_none_or(|before| {
                !before.is_ascii_alphanumeric() || (before.is_ascii_lowercase() && here.is_ascii_uppercase())
            })
    };
    (0..text.len()).filter(|at| begins(*at)).filter_map(|at| longest(&text[at..])).max()
}

/// The service whose name a text begins with: whole, or run on to what follows in another case.
fn longest(text: &[u8]) -> Option<Service> {
    let mut name = [0; LONGEST];
    let mut length = 0;
    let mut found = None;
    if !could_begin(text) {
        return None;
    }
    for (at, &byte) in text.iter().enumerate().take(2 * LONGEST) {
        if byte.is_ascii_alphanumeric() {
            if length == LONGEST {
                break;
            }
            name[length] = byte.to_ascii_lowercase();
            length += 1;
        } else if !matches!(byte, b'_' | b'-' | b'.') {
            break;
        } else {
            continue;
        }
        let goes_on = text.get(at + 1).is_some_and(|next| {
            next.is_ascii_lowercase() || (next.is_ascii_uppercase() && byte.is_ascii_uppercase())
        });
        if !goes_on || is_credential(&text[at + 1..]) {
            found = found.max(SERVICES.get(&name[..length]).copied());
        }
    }
    found
}

/// Whether a service begins with these three letters: most words begin none.
fn could_begin(text: &[u8]) -> bool {
    let mut letters = text.iter().filter(|byte| byte.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase);
    let mut next = || letters.next().unwrap_or(0);
    BEGINNINGS[number([next(), next(), next()])]
}

fn number(letters: [u8; 3]) -> usize {
    letters.iter().fold(0, |number, letter| number << 5 | usize::from(letter & 31))
}

fn is_credential(text: &[u8]) -> bool {
    ["key", "token", "secret", "access", "private", "api", "auth", "password", "client"]
        .iter()
        .any(|word| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes())))
}

const LONGEST: usize = 24;
static SERVICES: LazyLock<HashMap<&'static [u8], Service>> = LazyLock::new(|| {
    let line = |line: &'static str| match line.strip_suffix('*') {
        Some(name) => (name.as_bytes(), Service::Word),
        None => (line.as_bytes(), Service::Sure),
    };
    include_str!("../../data/services.txt").lines().map(line).collect()
});

static BEGINNINGS: LazyLock<Vec<bool>> = LazyLock::new(|| {
    let mut such = vec![false; 1 << 15];
    for line in include_str!("../../data/services.txt").lines() {
        if let [one, two, three, ..] = *line.as_bytes() {
            such[number([one, two, three])] = true;
        }
    }
    such
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_named_in_every_spelling() {
        for name in [
            "NEW_RELIC_",
            "newRelic",
            "message-bird",
            "x.plaid.",
            "my twilio",
            "vatlayerTOKEN",
            "ipapi_secret",
        ] {
            assert_eq!(named(name.as_bytes()), Some(Service::Sure), "{name}");
        }
        assert_eq!(named(b"github_"), Some(Service::Word));
        for name in ["stripes", "mytwilio", "restwilio_", "", "float32"] {
            assert_ne!(named(name.as_bytes()), Some(Service::Sure), "{name}");
        }
    }

    #[test]
    fn the_list_is_sorted_and_plain() {
        let lines: Vec<&str> = include_str!("../../data/services.txt").lines().collect();
        assert!(lines.is_sorted_by_key(|line| line.trim_end_matches('*')), "sort data/services.txt");
        for line in lines {
            let name = line.trim_end_matches('*');
            assert!(
                name.len() <= LONGEST && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            );
        }
    }
}
