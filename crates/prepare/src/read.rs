//! What a small model filled in: repaired where that is plain, dropped where it is not, field by field.
//!
//! Nothing is trusted for having the right shape: names are looked up among those offered, numbers are clamped, texts
//! become one short line without markup. A field that is missing or hopeless stays empty here and is taken from the
//! local rules when the blocks are merged.

use confidant_display::debug_without_content;
use confidant_redact::Redactor;
use serde_json::{Map, Value};

use super::rules::{icons, languages};
use super::tidy::{self, Known, MOST_FOCUS_MODES, MOST_ICONS, MOST_SETTINGS, MOST_SKILLS, MOST_TAGS};
use super::{Harm, Offer, View};

/// What one block's form says, as far as it can be believed.
#[derive(Clone, Default, PartialEq)]
pub struct Found {
    pub(super) language_code: Option<String>,
    pub(super) category: Option<String>,
    /// The model, and why.
    pub(super) model: Option<(String, Option<String>)>,
    /// By the order of [`Harm::ALL`].
    pub(super) harm: [Option<f32>; Harm::ALL.len()],
    pub(super) prompt_injection_chance: Option<f32>,
    pub(super) tags: Option<Vec<String>>,
    pub(super) skills: Option<Vec<String>>,
    pub(super) focus_modes: Option<Vec<String>>,
    pub(super) settings: Option<Vec<String>>,
    pub(super) title: Option<String>,
    pub(super) icon_names: Option<Vec<String>>,
}

/// Reads a filled-in form; nothing if nothing in it can be used. What is free text in it goes through `gate`, before it is
/// cut: half a secret may be past knowing.
#[must_use]
pub fn read(value: &Value, view: &View<'_>, offer: &Offer, gate: &Redactor) -> Option<Found> {
    let unquoted: Value;
    let value = match value {
        // Some models write the object as a text.
        Value::String(text) if text.len() <= LONGEST_TEXT => {
            unquoted = serde_json::from_str(text).ok()?;
            &unquoted
        }
        other => other,
    };
    let fields = Fields(unwrapped(value.as_object()?));
    let models = || offer.models.iter().map(|model| model.name.as_str());
    let model = fields.text("selected_model").and_then(|name| Known::new(models()).find(name));
    let pass = |text: &str| gate.redact_unless_critical(&text[..text.floor_char_boundary(LONGEST_TEXT)]);
    let reason = || pass(fields.text("selection_reason")?).as_deref().and_then(tidy::sentence);
    // A tag in which something was found says nothing any more.
    let tag = |text: &str| pass(text).filter(|passed| passed == text).as_deref().and_then(tidy::tag);
    let names = |names: &[String], field: &str, most: usize| {
        fields.names(field, &Known::new(names.iter().map(String::as_str)), most)
    };
    let skills = Known::new(offer.skills.iter().map(|(name, _)| name.as_str()));
    let mut found = Found {
        language_code: fields.text("language_code").and_then(languages::code).map(str::to_owned),
        category: fields
            .text("category")
            .and_then(|name| Known::new(offer.categories.iter().map(String::as_str)).find(name))
            .map(str::to_owned),
        model: model.map(|name| (name.to_owned(), reason())),
        harm: fields.harm(),
        prompt_injection_chance: fields.get("prompt_injection_chance").and_then(score),
        tags: fields.list("tags").map(|tags| distinct(tags.filter_map(tag), MOST_TAGS)),
        skills: fields.names("relevant_app_skills", &skills, MOST_SKILLS),
        focus_modes: names(&offer.focus_modes, "relevant_app_focus_modes", MOST_FOCUS_MODES),
        settings: names(&offer.settings_and_memories, "relevant_app_settings_and_memories", MOST_SETTINGS),
        title: None,
        icon_names: None,
    };
    if view.wants_title {
        found.title = fields.text("title").and_then(pass).as_deref().and_then(tidy::title);
        found.icon_names = fields.list("icon_names").and_then(|names| {
            let known = |name: &str| Some(icon(name)).filter(|name| icons::exists(name));
            Some(distinct(names.filter_map(known), MOST_ICONS)).filter(|names| !names.is_empty())
        });
    }
    (found != Found::default()).then_some(found)
}

/// The object itself, out of the one that some models put around it.
fn unwrapped(object: &Map<String, Value>) -> &Map<String, Value> {
    let inner = || {
        ["arguments", "parameters", "prepare_turn"].into_iter().find_map(|name| object.get(name)?.as_object())
    };
    if object.len() <= 2 { inner().unwrap_or(object) } else { object }
}

/// Icon names as Lucide spells them: `BookOpen` and `book_open` are `book-open`.
fn icon(name: &str) -> String {
    let mut spelt = String::with_capacity(name.len() + 4);
    for c in name.trim().chars().take(LONGEST_ICON) {
        if c.is_uppercase() && !spelt.is_empty() && !spelt.ends_with('-') {
            spelt.push('-');
        }
        spelt.extend(c.to_lowercase().map(|c| if c.is_alphanumeric() { c } else { '-' }));
    }
    spelt
}

struct Fields<'v>(&'v Map<String, Value>);

impl<'v> Fields<'v> {
    fn get(&self, name: &str) -> Option<&'v Value> {
        self.0.get(name)
    }

    fn text(&self, name: &str) -> Option<&'v str> {
        // A list of one is what some models make of a choice.
        match self.get(name)? {
            Value::String(text) => Some(text),
            Value::Array(items) if items.len() == 1 => items[0].as_str(),
            _ => None,
        }
    }

    /// The texts of a list, or of a text with commas.
    fn list(&self, name: &str) -> Option<Box<dyn Iterator<Item = &'v str> + 'v>> {
        match self.get(name)? {
            Value::Array(items) => Some(Box::new(items.iter().take(MOST_ITEMS).filter_map(Value::as_str))),
            Value::String(text) => Some(Box::new(text.split(',').take(MOST_ITEMS))),
            _ => None,
        }
    }

    /// The known names of a list. A list of which nothing is known says nothing; an empty one says "none".
    fn names(&self, field: &str, known: &Known<'_>, most: usize) -> Option<Vec<String>> {
        let listed: Vec<&str> = self.list(field)?.filter(|name| !name.trim().is_empty()).collect();
        let found =
            distinct(listed.iter().filter_map(|name| known.find(name.trim())).map(str::to_owned), most);
        (listed.is_empty() || !found.is_empty()).then_some(found)
    }

    /// The scores of harm, inside their object or beside it.
    fn harm(&self) -> [Option<f32>; Harm::ALL.len()] {
        let inner =
            ["harm", "harm_scores", "harmful"].into_iter().find_map(|name| self.get(name)?.as_object());
        Harm::ALL.map(|harm| {
            let value = inner.and_then(|inner| inner.get(harm.name())).or_else(|| self.get(harm.name()))?;
            score(value)
        })
    }
}

/// A score from 0 to 10 out of a number, or out of a text such as `7`, `7/10`, `70 %` or `high`.
fn score(value: &Value) -> Option<f32> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) if text.len() <= LONGEST_SCORE => score_text(&text.trim().to_lowercase())?,
        _ => return None,
    };
    // Out of range is repaired, not a number is not.
    if number.is_nan() { None } else { Some(number.clamp(0.0, 10.0) as f32) }
}

fn score_text(text: &str) -> Option<f64> {
    let known = match text {
        "none" | "no" | "zero" => Some(0.0),
        "low" => Some(2.0),
        "medium" | "moderate" => Some(5.0),
        "high" => Some(8.0),
        _ => None,
    };
    let number =
        |text: &str| text.trim().replace(',', ".").parse::<f64>().ok().filter(|number| number.is_finite());
    known
        .or_else(|| text.strip_suffix('%').and_then(number).map(|percent| percent / 10.0))
        .or_else(|| {
            text.split_once('/').filter(|(_, whole)| whole.trim() == "10").and_then(|(part, _)| number(part))
        })
        .or_else(|| number(text))
}

/// The first `most` different ones, whatever their case.
fn distinct(items: impl Iterator<Item = String>, most: usize) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for item in items {
        if distinct.len() >= most {
            break;
        }
        if !distinct.iter().any(|known| known.to_lowercase() == item.to_lowercase()) {
            distinct.push(item);
        }
    }
    distinct
}

debug_without_content!(Found);

/// Items of a list that are looked at.
const MOST_ITEMS: usize = 200;

/// In bytes.
const LONGEST_TEXT: usize = 64 * 1024;
const LONGEST_SCORE: usize = 16;

/// In characters.
const LONGEST_ICON: usize = 60;

#[cfg(test)]
mod tests;
