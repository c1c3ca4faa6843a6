//! Which model answers: what the request needs, against what the operator says that each is good at and costs.
//!
//! The first model is the one for everything else. Another is taken only where it is said to be good at something that
//! the request needs and the first is not, or where a short request can be answered for less.

use std::sync::LazyLock;

use confidant_model::OfferedModel;

use super::Glance;
use super::category::Choice;
use super::pattern::{Patterns, Reach};
use super::text::folded_words;
use crate::View;
use crate::tidy;

/// The name of the model that fits, and why; both empty where none is offered.
pub(super) fn model(
    view: &View<'_>,
    glance: &Glance<'_>,
    choice: &Choice,
    offered: &[OfferedModel],
) -> (String, String) {
    let Some(usual) = offered.first() else { return Default::default() };
    let needs = needs(view, glance, choice);
    let fits = |model: &OfferedModel| -> f32 {
        needs.iter().filter(|need| need.met_by(model)).map(|need| need.weight()).sum()
    };
    let cost = |model: &OfferedModel| if model.cost.is_nan() { f32::MAX } else { model.cost };
    let mut best = usual;
    for model in &offered[1..] {
        let (mine, before) = (fits(model), fits(best));
        if mine > before || (mine == before && mine > 0.0 && cost(model) < cost(best)) {
            best = model;
        }
    }
    // Cheaper is only better where the operator says that it will do.
    if best.name != usual.name && needs == [Need::Little] && cost(best) >= cost(usual) {
        best = usual;
    }
    (best.name.clone(), reason(best, &needs))
}

fn reason(model: &OfferedModel, needs: &[Need]) -> String {
    let met: Vec<&str> = needs.iter().filter(|need| need.met_by(model)).map(|need| need.word()).collect();
    let sentence = match (met.as_slice(), needs) {
        ([], []) => "Nothing in the request asks for another model than the usual one.".to_owned(),
        ([], _) => format!("The usual model: none is said to be better at {}.", joined(needs)),
        (_, [Need::Little]) => "A short request, for which a quick and cheap model will do.".to_owned(),
        (met, _) => format!("The request needs {}, which {} is good at.", met.join(" and "), model.name),
    };
    tidy::sentence(&sentence).unwrap_or_default()
}

fn joined(needs: &[Need]) -> String {
    needs.iter().map(|need| need.word()).collect::<Vec<&str>>().join(" and ")
}

/// Something that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Coding,
    Reasoning,
    Math,
    Vision,
    Long,
    Writing,
    Translation,
    /// Hardly anything.
    Little,
}

impl Need {
    const ALL: [Self; 7] = [
        Self::Coding,
        Self::Reasoning,
        Self::Math,
        Self::Vision,
        Self::Long,
        Self::Writing,
        Self::Translation,
    ];

    fn section(self) -> &'static str {
        match self {
            Self::Coding => "coding",
            Self::Reasoning => "reasoning",
            Self::Math => "math",
            Self::Vision => "vision",
            Self::Long => "long",
            Self::Writing => "writing",
            Self::Translation => "translation",
            Self::Little => "",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Coding => "code",
            Self::Math => "mathematics",
            Self::Vision => "an eye for images",
            Self::Long => "a long context",
            Self::Little => "little",
            _ => self.section(),
        }
    }

    fn weight(self) -> f32 {
        match self {
            Self::Vision => 3.0,
            Self::Coding | Self::Long => 2.0,
            Self::Reasoning | Self::Math => 1.5,
            Self::Writing | Self::Translation => 1.0,
            Self::Little => 0.5,
        }
    }

    /// Whether the operator says that a model is good at it, in one of the usual words.
    fn met_by(self, model: &OfferedModel) -> bool {
        let words: &[&str] = match self {
            Self::Coding => &["coding", "code", "programming", "software", "development"],
            Self::Reasoning => &["reasoning", "thinking", "logic", "analysis", "complex", "planning", "hard"],
            Self::Math => &["math", "maths", "mathematics", "calculation", "reasoning"],
            Self::Vision => &["vision", "image", "images", "multimodal", "visual", "photo", "photos"],
            Self::Long => &["long", "context", "documents", "large"],
            Self::Writing => &["writing", "creative", "text", "prose", "style"],
            Self::Translation => &["translation", "multilingual", "languages", "language", "translating"],
            Self::Little => &["fast", "cheap", "simple", "quick", "small", "easy", "chat"],
        };
        let strengths = model.strengths.iter().flat_map(|strength| folded_words(&strength.replace('_', " ")));
        strengths.into_iter().any(|strength| words.contains(&strength.as_str()))
    }
}

fn needs(view: &View<'_>, glance: &Glance<'_>, choice: &Choice) -> Vec<Need> {
    let mut scores = [0.0; Need::ALL.len()];
    PATTERNS.find(glance.query.text(), Reach::Sentence, |hit| scores[hit.rule.section] += hit.rule.score);
    let mut add = |need: Need, score: f32| {
        let at = Need::ALL.iter().position(|known| *known == need);
        at.into_iter().for_each(|at| scores[at] += score);
    };
    if choice.is("software") || glance.query.text().words().iter().any(|word| word.code) {
        add(Need::Coding, ENOUGH);
    }
    if choice.is("mathematics") {
        add(Need::Math, ENOUGH);
    }
    let raw = glance.query.text().raw();
    if raw.contains("![") || raw.contains("data:image/") {
        add(Need::Vision, ENOUGH);
    }
    let length = view.query.len() + view.history.iter().map(|message| message.text.len()).sum::<usize>();
    if length > LONG {
        add(Need::Long, ENOUGH);
    }
    let found: Vec<Need> = Need::ALL
        .into_iter()
        .zip(scores)
        .filter(|(_, score)| *score >= ENOUGH)
        .map(|(need, _)| need)
        .collect();
    if found.is_empty() && glance.query.text().words().len() <= FEW_WORDS {
        vec![Need::Little]
    } else {
        found
    }
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let sections = Need::ALL.map(Need::section);
    Patterns::parse(include_str!("../data/needs.txt"), &sections).expect("a test reads the data file")
});

/// One sure sign, or two unsure ones.
const ENOUGH: f32 = 2.0;

/// In bytes: some 30 000 tokens.
const LONG: usize = 120_000;

/// A request of so many words is short.
const FEW_WORDS: usize = 14;

#[cfg(test)]
mod tests {
    use super::super::category;
    use super::*;

    fn offered() -> Vec<OfferedModel> {
        let model = |name: &str, strengths: &[&str], cost| OfferedModel {
            name: name.to_owned(),
            strengths: strengths.iter().map(|word| (*word).to_owned()).collect(),
            cost,
        };
        vec![
            model("usual", &["general"], 2.0),
            model("coder", &["coding"], 3.0),
            model("coder-max", &["Coding", "reasoning"], 9.0),
            model("seer", &["vision", "images"], 4.0),
            model("tiny", &["fast"], 0.1),
            model("poet", &["creative-writing", "translation"], 2.0),
        ]
    }

    fn chosen(query: &str, offered: &[OfferedModel]) -> (String, String) {
        let view = View { history: &[], query, wants_title: false };
        let glance = Glance::at(&view);
        let choice = category::choose(&glance, &["general".to_owned()]);
        model(&view, &glance, &choice, offered)
    }

    #[test]
    fn the_model_fits_the_need() {
        let long_query =
            "Tell me about the people who lived in this valley before the dam was built and what they did";
        for (query, expected) in [
            ("Fix this Python function", "coder"),
            ("Analyse the architecture of this Rust service step by step", "coder-max"),
            ("What is in this picture?", "seer"),
            ("Write a poem about the sea", "poet"),
            ("Übersetze das ins Englische", "poet"),
            ("hi", "tiny"),
            (long_query, "usual"),
        ] {
            let (name, reason) = chosen(query, &offered());
            assert_eq!(name, expected, "{query}: {reason}");
            assert!(reason.ends_with('.') && reason.len() < 160, "{reason}");
        }
    }

    #[test]
    fn nothing_is_made_up() {
        assert_eq!(chosen("Fix this Python function", &[]), (String::new(), String::new()));
        let mut odd = offered();
        odd.truncate(1);
        odd[0].cost = f32::NAN;
        assert_eq!(chosen("Fix this Python function", &odd).0, "usual");
        assert_eq!(chosen("hi", &odd).0, "usual");
    }

    #[test]
    fn a_dear_model_is_not_for_small_talk() {
        let mut models = offered();
        models[4].cost = 50.0;
        assert_eq!(chosen("hi", &models).0, "usual");
    }
}
