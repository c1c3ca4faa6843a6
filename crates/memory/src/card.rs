//! The card: what is worth remembering of a session.
//!
//! A card is small (1 to 2 KB as a rule, never more than [`MOST_BYTES`]) however large the session is, and every string of it
//! is a piece of redacted text. It is derived by rules ([`Card::derive`]: pure, deterministic, in linear time) or by a
//! language model ([`Card::from_model`]); both are bounded and scanned again by the [`Gate`] before anything is written.
//!
//! ```text
//! redacted session ──▶ pieces ──▶ statements ──▶ title, bullets, decisions, todos, entities, keywords, quotes
//!                     [source]   [lines,        [a module each]
//!                                 sentences]
//! ```
//!
//! Easy to get wrong: a scan sees a piece without what stood around it, so a piece must not look worse alone than in
//! its place. Nothing is joined, nothing is cut inside a word, and the case of names in code is kept. Where detection of
//! people's names is on, that is not enough, since the model behind it goes by context: [`Card::settled`] leaves out the
//! few items that it takes for names once they stand alone.

mod bullets;
mod clauses;
mod days;
mod decisions;
mod entities;
mod keywords;
mod lines;
mod lists;
mod model;
mod quotes;
mod sentences;
mod shapes;
mod small_talk;
mod source;
mod talk;
mod title;
mod todos;
mod words;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Error;
use crate::gate::{Gate, NAMES, Redacted};

pub use model::prompt;
pub(crate) use source::lists_of_ids;

/// The sanitised essence of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Card {
    /// One line that tells this session from others.
    pub title: String,
    /// What happened.
    pub summary_bullets: Vec<String>,
    /// What was decided.
    pub decisions: Vec<String>,
    /// What is left to do.
    pub todos: Vec<String>,
    /// Files, symbols, packages, services, error codes.
    pub entities: Vec<String>,
    /// What it is about, most telling first.
    pub keywords: Vec<String>,
    /// Errors and words worth quoting.
    pub notable_quotes: Vec<String>,
}

impl Card {
    /// Derives a card by rules: the same redacted session always gives the same card.
    #[must_use]
    pub fn derive(session: &Redacted) -> Self {
        let material = source::Material::of(session.value());
        let said = material.statements();
        let title = title::title(&material, &said);
        let decisions = decisions::decisions(&said, MOST_DECISIONS);
        let todos = todos::todos(&material.todos, &said, MOST_TODOS);
        let entities = entities::entities(&said, MOST_ENTITIES);
        let told = keywords::Said {
            title: &title,
            decisions: &decisions,
            todos: &todos,
            entities: &entities,
            tags: &material.tags,
        };
        let keywords = keywords::keywords(&said, &told, MOST_KEYWORDS);
        let summary_bullets = bullets::bullets(&said, &title, material.failed, MOST_BULLETS);
        let notable_quotes = quotes::quotes(&said, MOST_QUOTES);
        Self { title, summary_bullets, decisions, todos, entities, keywords, notable_quotes }.bounded()
    }

    /// Reads the card that a language model gave as its answer to [`prompt`], fenced or not, with members missing,
    /// of the wrong type or unknown. Items most of whose words are not in the session are left out. None when there is
    /// no card in the answer, or nothing of it is left.
    #[must_use]
    pub fn from_model(answer: &str, session: &Redacted) -> Option<Self> {
        model::read(answer, session)
    }

    /// Leaves out items that the gate takes for people's names now that they stand alone, and says how many.
    ///
    /// The model behind that rule goes by context, and a card has none. What any other rule finds stays, so that
    /// [`Gate::again`] refuses the card: a secret that came this far is a fault to hear of, not to mend.
    #[must_use]
    pub fn settled(mut self, gate: &Gate) -> (Self, usize) {
        let named = |name: &str, item: &str| match gate.again(&json!({ name: [item] })) {
            Err(Error::Unclean { places }) => places.iter().all(|place| place.rule == NAMES),
            _ => false,
        };
        let mut dropped = 0;
        for (name, list) in self.lists() {
            let before = list.len();
            list.retain(|item| !named(name, item));
            dropped += before - list.len();
        }
        if named("title", &self.title) {
            dropped += 1;
            let next = self.summary_bullets.iter().chain(&self.todos).chain(&self.decisions);
            let mut next = next.filter_map(|text| words::clip(text, title::LONGEST));
            self.title = next.find(|text| !named("title", text)).unwrap_or_else(|| title::SESSION.to_owned());
        }
        (self, dropped)
    }

    fn lists(&mut self) -> [(&'static str, &mut Vec<String>); 6] {
        [
            ("summary_bullets", &mut self.summary_bullets),
            ("decisions", &mut self.decisions),
            ("todos", &mut self.todos),
            ("entities", &mut self.entities),
            ("keywords", &mut self.keywords),
            ("notable_quotes", &mut self.notable_quotes),
        ]
    }

    /// The same card within its bounds: strings, lists and the whole.
    fn bounded(mut self) -> Self {
        self.title = words::clip(&words::one_line(&self.title), title::LONGEST).unwrap_or_default();
        let most = [MOST_BULLETS, MOST_DECISIONS, MOST_TODOS, MOST_ENTITIES, MOST_KEYWORDS, MOST_QUOTES];
        for ((name, list), most) in self.lists().into_iter().zip(most) {
            let longest = if name == "notable_quotes" { quotes::LONGEST } else { LONGEST };
            let mut known = HashSet::new();
            let items = list.iter().filter_map(|item| words::clip(&words::one_line(item), longest));
            *list = items.filter(|item| known.insert(item.to_lowercase())).take(most).collect();
        }
        while serde_json::to_vec(&self).map_or(0, |bytes| bytes.len()) > MOST_BYTES {
            let weight = |list: &Vec<String>| list.iter().map(String::len).sum::<usize>();
            let heaviest = self.lists().into_iter().map(|(_, list)| list).max_by_key(|list| weight(list));
            // The least important item is the last.
            if heaviest.and_then(Vec::pop).is_none() {
                break;
            }
        }
        self
    }
}

/// Whether a lower-case word is what a fact may say of its subject: a day, a month or a product.
pub(crate) fn is_value(word: &str) -> bool {
    lists::WEEKDAYS.has(word) || lists::MONTHS.has(word) || lists::PRODUCTS.has(word)
}

/// Whether a lower-case word is among the commonest of German, which writes every noun with a capital.
pub(crate) fn is_german(word: &str) -> bool {
    lists::GERMAN.has(word)
}

/// No card is longer as JSON.
pub const MOST_BYTES: usize = 8 * 1024;
/// No string of a card has more characters.
pub const LONGEST: usize = 240;
const MOST_BULLETS: usize = 7;
const MOST_DECISIONS: usize = 5;
const MOST_TODOS: usize = 7;
const MOST_ENTITIES: usize = 15;
const MOST_KEYWORDS: usize = 20;
const MOST_QUOTES: usize = 5;
