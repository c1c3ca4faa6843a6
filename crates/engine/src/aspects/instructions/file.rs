//! One instruction file: front matter that says where and when, then the text.
//!
//! Every error names the key or the line and never quotes a value: what stands in the wrong place may be a secret.

use std::collections::BTreeMap;
use std::fmt;

use confidant_display::debug_without_content;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};

use super::super::{Situation, Slot};
use crate::audience::Audience;
use crate::fence::one_line;

/// The category of everything that no other fits.
pub(super) const GENERAL: &str = "general";

/// A file's text, and when it stands in which slot.
#[derive(Clone, PartialEq)]
pub(super) struct Instruction {
    /// The file's name in its folder.
    pub(super) file: String,
    pub(super) slot: Slot,
    pub(super) order: i64,
    /// A mate's or a focus mode's readable name.
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) when: Conditions,
    pub(super) text: String,
}

/// When a file stands; an empty list is no condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    pub(super) categories: Vec<String>,
    pub(super) focus: Vec<String>,
    jurisdictions: Vec<String>,
    tenants: Vec<String>,
    channels: Vec<String>,
    languages: Vec<String>,
    audience: Option<Audience>,
}

impl Instruction {
    /// Reads a file's content; on failure says what is wrong and what to do.
    pub(super) fn parse(file: &str, content: &str) -> Result<Self, String> {
        let content = content.strip_prefix('\u{feff}').unwrap_or(content);
        let (head, text) = parted(content).ok_or(NO_FRONT_MATTER)?;
        let mut head = Head::parse(head)?;
        let slot = head.slot()?;
        let parsed = Self {
            slot,
            order: head.order()?,
            name: head.line("name")?.unwrap_or_else(|| file.trim_end_matches(".md").to_owned()),
            description: head.line("description")?,
            when: Conditions {
                categories: head.words("category", "lower-case letters, digits, _ and -", is_category)?,
                focus: head.words("focus", "an id such as web.research", is_focus)?,
                jurisdictions: upper(head.words("jurisdiction", "codes such as IE", is_jurisdiction)?),
                tenants: head.words("tenant", "the names of tenants", is_name)?,
                channels: head.words("channel", "the names of channels, such as matrix", is_name)?,
                languages: head.words(
                    "language",
                    "two-letter codes in lower case, such as de",
                    is_language,
                )?,
                audience: head.audience()?,
            },
            file: file.to_owned(),
            text: text.trim().to_owned(),
        };
        head.nothing_left()?;
        if parsed.text.is_empty() {
            return Err("there is no text; hint: write the instruction below the second ---".to_owned());
        }
        Ok(parsed)
    }

    /// Whether the text of `[aspects]` makes room for it: it was chosen, or it always stands.
    pub(super) fn takes_the_place(&self) -> bool {
        let chosen = self.slot == Slot::Mate || self.slot == Slot::Focus && !self.when.focus.is_empty();
        chosen || self.when == Conditions::default()
    }
}

impl Conditions {
    /// Whether it stands in this turn.
    pub(super) fn hold(&self, situation: &Situation<'_>) -> bool {
        self.hold_for_any_category(situation) && self.is_about(category(situation))
    }

    /// The same, whatever the turn is about.
    pub(super) fn hold_for_any_category(&self, situation: &Situation<'_>) -> bool {
        let language_is_known = self.languages.is_empty() || situation.prepared.is_some();
        language_is_known && self.may_hold(situation) && self.focus_is_on(situation)
    }

    /// Whether it could stand in this turn: whatever it is about and focused on, and in any language while that is
    /// not known.
    pub(super) fn may_hold(&self, situation: &Situation<'_>) -> bool {
        let one_of = |allowed: &[String], found: Option<&str>| {
            allowed.is_empty() || found.is_some_and(|found| allowed.iter().any(|one| one == found))
        };
        let chosen = &situation.profile.jurisdictions;
        let law = |code: &String| chosen.iter().any(|chosen| chosen.trim().eq_ignore_ascii_case(code));
        one_of(&self.tenants, situation.scope.map(|scope| scope.tenant().as_str()))
            && one_of(&self.channels, situation.scope.map(|scope| scope.channel().as_str()))
            && self.audience.is_none_or(|audience| audience == situation.audience)
            && (self.jurisdictions.is_empty() || self.jurisdictions.iter().any(law))
            && situation
                .prepared
                .is_none_or(|prepared| one_of(&self.languages, Some(&prepared.language_code)))
    }

    fn focus_is_on(&self, situation: &Situation<'_>) -> bool {
        self.focus.is_empty() || situation.focus.is_some_and(|on| self.focus.iter().any(|id| id == on))
    }

    fn is_about(&self, category: &str) -> bool {
        self.categories.is_empty() || self.categories.iter().any(|one| one == category)
    }
}

/// What the turn is about.
pub(super) fn category<'a>(situation: &Situation<'a>) -> &'a str {
    situation.prepared.map_or(GENERAL, |prepared| prepared.category.as_str())
}

/// Front matter and text.
fn parted(content: &str) -> Option<(&str, &str)> {
    let mut lines = content.split_inclusive('\n');
    let first = lines.next().filter(|line| line.trim_end() == FENCE)?;
    let mut at = first.len();
    for line in lines {
        if line.trim_end() == FENCE {
            return Some((&content[first.len()..at], &content[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// The keys of the front matter that were not read yet.
struct Head(BTreeMap<String, Given>);

/// A value, in the forms that keys accept.
enum Given {
    Text(String),
    Number(i64),
    List(Vec<String>),
    /// Nothing, or a form that no key accepts.
    Other,
}

impl Head {
    fn parse(yaml: &str) -> Result<Self, String> {
        if yaml.trim().is_empty() {
            return Ok(Self(BTreeMap::new()));
        }
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_depth: 4, max_nodes: 1_000, max_aliases: 0, max_documents: 1 },
            duplicate_keys: DuplicateKeyPolicy::Error,
            merge_keys: MergeKeyPolicy::Error,
            // `no` is Norwegian, and `NO` is Norway.
            strict_booleans: true,
            with_snippet: false,
        };
        serde_saphyr::from_str_with_options(yaml, options).map(Self).map_err(|error| {
            let line = error.location().map_or(1, |location| location.line() + 1);
            let what = match error {
                serde_saphyr::Error::DuplicateMappingKey { .. } => "duplicate key",
                _ => "the front matter is not plain YAML",
            };
            format!(
                "line {line}: {what}; hint: write one `key: value` per line, and quote values with special characters"
            )
        })
    }

    fn slot(&mut self) -> Result<Slot, String> {
        let known = || Slot::ALL.into_iter().filter(|slot| *slot != Slot::ConversationContext);
        let given = match self.0.remove("slot") {
            Some(Given::Text(name)) => known().find(|slot| slot.name() == name),
            _ => None,
        };
        given.ok_or_else(|| {
            let names: Vec<&str> = known().map(Slot::name).collect();
            format!("slot is missing or unknown; hint: write `slot:` and one of {}", names.join(", "))
        })
    }

    fn order(&mut self) -> Result<i64, String> {
        match self.0.remove("order") {
            None => Ok(0),
            Some(Given::Number(order)) => Ok(order),
            Some(_) => {
                Err("order is not a whole number; hint: lower numbers come first; the default is 0"
                    .to_owned())
            }
        }
    }

    fn audience(&mut self) -> Result<Option<Audience>, String> {
        match self.0.remove("audience") {
            None => Ok(None),
            Some(Given::Text(name)) if name == "private" => Ok(Some(Audience::Private)),
            Some(Given::Text(name)) if name == "room" => Ok(Some(Audience::Room)),
            Some(_) => Err("audience is unknown; hint: write private or room".to_owned()),
        }
    }

    /// A short text of one line.
    fn line(&mut self, key: &str) -> Result<Option<String>, String> {
        match self.0.remove(key) {
            None => Ok(None),
            Some(Given::Text(text)) if is_line(&text) => Ok(Some(one_line(&text))),
            Some(_) => {
                Err(format!("{key} is not valid; hint: write one line of at most {LONGEST_LINE} characters"))
            }
        }
    }

    /// One word, or a list of them.
    fn words(&mut self, key: &str, expected: &str, fits: fn(&str) -> bool) -> Result<Vec<String>, String> {
        let words = match self.0.remove(key) {
            None => return Ok(Vec::new()),
            Some(Given::Text(word)) => vec![word],
            Some(Given::List(words)) => words,
            Some(Given::Number(_) | Given::Other) => Vec::new(),
        };
        if words.is_empty() || words.len() > MOST_WORDS || !words.iter().all(|word| fits(word)) {
            return Err(format!(
                "{key} is not valid; hint: write {expected}; one value or a list, numbers in quotes"
            ));
        }
        Ok(words)
    }

    /// Fails if a key is left: it is unknown.
    fn nothing_left(self) -> Result<(), String> {
        let Some(key) = self.0.into_keys().next() else { return Ok(()) };
        let shown: String = one_line(&key).chars().take(40).collect();
        Err(format!("unknown key {shown}; hint: known keys are {}", KEYS.join(", ")))
    }
}

fn upper(codes: Vec<String>) -> Vec<String> {
    codes.into_iter().map(|code| code.to_ascii_uppercase()).collect()
}

fn is_category(word: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    is_name(word) && word.chars().all(allowed)
}

fn is_focus(word: &str) -> bool {
    is_name(word) && word.split('.').all(|part| !part.is_empty() && is_category(part))
}

fn is_jurisdiction(word: &str) -> bool {
    (2..=10).contains(&word.len()) && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

fn is_language(word: &str) -> bool {
    word.len() == 2 && word.chars().all(|c| c.is_ascii_lowercase())
}

fn is_name(word: &str) -> bool {
    !word.trim().is_empty() && word.len() <= LONGEST_WORD
}

fn is_line(text: &str) -> bool {
    !one_line(text).is_empty() && text.chars().count() <= LONGEST_LINE
}

const FENCE: &str = "---";
const NO_FRONT_MATTER: &str =
    "the front matter is missing; hint: begin with a line ---, then `slot: …`, then another line ---";
const KEYS: [&str; 11] = [
    "slot",
    "category",
    "focus",
    "jurisdiction",
    "tenant",
    "channel",
    "audience",
    "language",
    "order",
    "name",
    "description",
];
const MOST_WORDS: usize = 32;
/// In bytes.
const LONGEST_WORD: usize = 128;
/// In characters.
const LONGEST_LINE: usize = 300;

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GivenVisitor)
    }
}

struct GivenVisitor;

impl<'de> Visitor<'de> for GivenVisitor {
    type Value = Given;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a number or a list of texts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Given, E> {
        Ok(Given::Text(text.to_owned()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Given, E> {
        Ok(Given::Number(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Given, E> {
        Ok(i64::try_from(number).map_or(Given::Other, Given::Number))
    }

    fn visit_i128<E>(self, _: i128) -> Result<Given, E> {
        Ok(Given::Other)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Given, E> {
        Ok(Given::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Given, E> {
        Ok(Given::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Given, E> {
        Ok(Given::Other)
    }

    fn visit_unit<E>(self) -> Result<Given, E> {
        Ok(Given::Other)
    }

    fn visit_none<E>(self) -> Result<Given, E> {
        Ok(Given::Other)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Given, D::Error> {
        Given::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Given, A::Error> {
        let (mut words, mut odd) = (Vec::new(), false);
        while let Some(item) = items.next_element()? {
            match item {
                Given::Text(word) => words.push(word),
                _ => odd = true,
            }
        }
        Ok(if odd { Given::Other } else { Given::List(words) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Given, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Given::Other)
    }
}

debug_without_content!(Instruction { file, slot });
