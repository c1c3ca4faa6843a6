//! Local rules: what can be told of a turn without asking a model, in milliseconds.
//!
//! The same shape as the small model's findings, from word lists and patterns in `data/`, in linear time and without
//! any I/O. They know far less than a model: they stand in when there is none, fill what it left out, and are a floor
//! under its judgement of harm. What is easy to get wrong is the false alarm, so every list has hard negatives among
//! its examples, and the examples are tests.

mod category;
mod choice;
mod harm;
pub(super) mod icons;
mod injection;
mod language;
pub(super) mod languages;
mod pattern;
mod relevance;
mod tags;
mod text;
mod title;
mod words;

use super::tidy::{MOST_FOCUS_MODES, MOST_SETTINGS, MOST_SKILLS};
use super::{Offer, Prepared, PreparedBy, View};
use crate::model::Role;
use relevance::{Candidate, Wanted};
use text::Text;

/// Prepares a turn without a model. Every name comes from `offer`; category and model are empty where none is offered.
#[must_use]
pub(crate) fn rules(view: &View<'_>, offer: &Offer) -> Prepared {
    let glance = Glance::at(view);
    let choice = category::choose(&glance, &offer.categories);
    let (selected_model, selection_reason) = choice::model(view, &glance, &choice, &offer.models);
    let tags = tags::tags(&glance);
    let wanted = Wanted::of(&glance, &choice);
    let (title, icon_names) = if view.wants_title {
        (title::title(&glance.query), title::icon_names(&tags, &choice))
    } else {
        (None, Vec::new())
    };
    Prepared {
        language_code: language::detect(glance.texts()).to_owned(),
        category: offer.categories.get(choice.category).cloned().unwrap_or_default(),
        selected_model,
        selection_reason,
        harm: harm::scores(&glance),
        prompt_injection_chance: injection::chance(&glance),
        relevant_app_skills: skills(&wanted, offer),
        relevant_app_focus_modes: named(&wanted, &offer.focus_modes, MOST_FOCUS_MODES),
        relevant_app_settings_and_memories: named(&wanted, &offer.settings_and_memories, MOST_SETTINGS),
        tags,
        title,
        icon_names,
        by: PreparedBy::Rules,
    }
}

fn skills(wanted: &Wanted, offer: &Offer) -> Vec<String> {
    let candidates: Vec<Candidate<'_>> =
        offer.skills.iter().map(|(name, description)| Candidate { name, description }).collect();
    wanted.choose(&candidates, MOST_SKILLS).into_iter().map(|at| offer.skills[at].0.clone()).collect()
}

fn named(wanted: &Wanted, names: &[String], most: usize) -> Vec<String> {
    let candidates: Vec<Candidate<'_>> =
        names.iter().map(|name| Candidate { name, description: "" }).collect();
    wanted.choose(&candidates, most).into_iter().map(|at| names[at].clone()).collect()
}

/// What the rules look at: the message, and the person's last ones before it, newest first.
struct Glance<'v> {
    query: Text<'v>,
    before: Vec<Text<'v>>,
}

impl<'v> Glance<'v> {
    fn at(view: &View<'v>) -> Self {
        let beginning = |text: &'v str, most: usize| &text[..text.floor_char_boundary(most)];
        let said = view.history.iter().rev().filter(|message| message.role == Role::Human);
        Self {
            query: Text::read(beginning(view.query, LONGEST_QUERY)),
            before: said
                .take(MOST_BEFORE)
                .map(|message| Text::read(beginning(&message.text, LONGEST_BEFORE)))
                .collect(),
        }
    }

    /// All texts, the message first.
    fn texts(&self) -> impl Iterator<Item = &Text<'v>> {
        std::iter::once(&self.query).chain(&self.before)
    }

    /// The texts that say what the conversation is about, and how much each says.
    fn weighted(&self) -> impl Iterator<Item = (&Text<'v>, f32)> {
        self.texts().zip([1.0, 0.4, 0.3, 0.2])
    }
}

/// In bytes; the engine takes 64 KiB unless told otherwise.
const LONGEST_QUERY: usize = 256 * 1024;

/// An earlier message is looked at from its beginning only, in bytes.
const LONGEST_BEFORE: usize = 4 * 1024;

/// Earlier messages that are looked at: as many as an escalation takes.
const MOST_BEFORE: usize = 8;
