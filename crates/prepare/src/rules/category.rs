//! What a message is about: one of the operator's categories.
//!
//! An operator names categories freely. A name that means one of the built-in word lists is scored by that list, any
//! other by the words of the name itself. What is easy to get wrong: a follow-up such as "and then?" is about what the
//! conversation was about, so earlier messages count, but less.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::Glance;
use super::pattern::{Patterns, Reach};
use super::text::{Text, folded_words};

/// The place in `offered` of the category that fits, the first being the one for everything else; and its icons.
pub(super) fn choose(glance: &Glance<'_>, offered: &[String]) -> Choice {
    let meanings: Vec<Meaning> = offered.iter().map(|name| Meaning::of(name)).collect();
    let mut totals = vec![0.0; offered.len()];
    let now = SectionScores::of(glance.query.text());
    // Where there is nothing to choose, nobody looks back.
    let looked_at = if offered.len() > 1 { usize::MAX } else { 0 };
    for (at, (said, weight)) in glance.weighted().take(looked_at).enumerate() {
        let text = said.text();
        let earlier = (at > 0).then(|| SectionScores::of(text));
        let scores = earlier.as_ref().unwrap_or(&now);
        for (total, meaning) in totals.iter_mut().zip(&meanings) {
            *total += weight * meaning.score(text, scores);
        }
    }
    let mut best = 0;
    for (at, total) in totals.iter().enumerate() {
        if *total >= ENOUGH && *total > totals[best] {
            best = at;
        }
    }
    let section = match meanings.get(best) {
        Some(Meaning::Section(section)) => Some(*section),
        _ => now.best(),
    };
    Choice { category: best, section }
}

/// The categories that the lists know, that for everything else first: what is offered where nobody names any.
pub fn known() -> Vec<String> {
    std::iter::once(GENERAL).chain(TABLE.names.iter().map(|names| names.section)).map(str::to_owned).collect()
}

/// Whether a category, by whatever name, is about software.
pub fn is_software(name: &str) -> bool {
    matches!(Meaning::of(name), Meaning::Section(section) if TABLE.names[section].section == SOFTWARE)
}

/// What a message is about.
pub(super) struct Choice {
    /// The place of the category among those offered.
    pub(super) category: usize,
    /// The built-in list that fits, offered or not.
    section: Option<usize>,
}

impl Choice {
    /// Whether the built-in list of this name fits.
    pub(super) fn is(&self, section: &str) -> bool {
        self.section.is_some_and(|at| TABLE.names[at].section == section)
    }

    /// Icons for it.
    pub(super) fn icons(&self) -> &'static [&'static str] {
        self.section.map_or(&[], |at| &TABLE.names[at].icons)
    }

    /// Words that a name for it may have.
    pub(super) fn aliases(&self) -> &'static [&'static str] {
        self.section.map_or(&[], |at| &TABLE.names[at].aliases)
    }
}

enum Meaning {
    Section(usize),
    Words(Vec<String>),
}

impl Meaning {
    /// What an operator means by a name: the list with the most words of it, the earlier word where two have as many.
    fn of(name: &str) -> Self {
        let words = folded_words(&name.replace('_', " "));
        let known = |(at, names): (usize, &Names)| {
            let has = |word: &&String| names.aliases.contains(&word.as_str());
            let first = words.iter().position(|word| names.aliases.contains(&word.as_str()))?;
            Some((words.iter().filter(has).count(), std::cmp::Reverse(first), at))
        };
        match TABLE.names.iter().enumerate().filter_map(known).max() {
            Some((_, _, section)) => Self::Section(section),
            None => Self::Words(words),
        }
    }

    fn score(&self, text: &Text<'_>, scores: &SectionScores) -> f32 {
        match self {
            Self::Section(section) => scores.0[*section],
            Self::Words(words) => {
                let said =
                    |word: &&String| word.len() > 2 && text.plain_words().any(|plain| same(plain, word));
                words.iter().filter(said).count() as f32 * OWN_WORD
            }
        }
    }
}

/// Whether two words are the same but for an ending.
fn same(a: &str, b: &str) -> bool {
    a == b || a.strip_suffix('s').is_some_and(|a| a == b) || b.strip_suffix('s').is_some_and(|b| a == b)
}

/// What every list has in a text.
struct SectionScores(Vec<f32>);

impl SectionScores {
    fn of(text: &Text<'_>) -> Self {
        let mut scores = vec![0.0; TABLE.names.len()];
        let mut seen = HashSet::new();
        TABLE.patterns.find(text, Reach::Sentence, |hit| {
            let word = text.plain(&text.words()[hit.from]);
            if !text.words()[hit.from].link && seen.insert((hit.rule.section, word.to_owned())) {
                scores[hit.rule.section] += hit.rule.score;
            }
        });
        // Code is about software, whatever its names are about.
        if text.words().iter().any(|word| word.code) {
            scores[0] += CODE;
        }
        Self(scores)
    }

    fn best(&self) -> Option<usize> {
        let best = self.0.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)))?;
        (*best.1 >= ENOUGH).then_some(best.0)
    }
}

struct Names {
    section: &'static str,
    aliases: Vec<&'static str>,
    icons: Vec<&'static str>,
}

struct Table {
    names: Vec<Names>,
    patterns: Patterns,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let lines = include_str!("../data/category_names.txt").lines().filter(|line| !line.starts_with('#'));
    let names: Vec<Names> = lines.filter_map(names).collect();
    let sections: Vec<&str> = names.iter().map(|names| names.section).collect();
    let patterns = Patterns::parse(include_str!("../data/categories.txt"), &sections);
    Table { names, patterns: patterns.expect("a test reads the data file") }
});

fn names(line: &'static str) -> Option<Names> {
    let (section, rest) = line.split_once(':')?;
    let (aliases, icons) = rest.split_once('/')?;
    let aliases = aliases.split_whitespace().collect();
    Some(Names { section, aliases, icons: icons.split_whitespace().collect() })
}

const GENERAL: &str = "general";
const SOFTWARE: &str = "software";

/// One word that means a category, or two that may.
const ENOUGH: f32 = 2.0;

/// A word of the category's own name.
const OWN_WORD: f32 = 2.5;

/// Code in a message.
const CODE: f32 = 4.0;

#[cfg(test)]
mod tests {
    use super::super::icons;
    use super::*;
    use crate::View;
    use confidant_model::{PromptMessage, Role};

    fn category(query: &str, before: &[&str], offered: &[&str]) -> String {
        let say = |text: &&str| PromptMessage { role: Role::Human, text: (*text).to_owned() };
        let history: Vec<PromptMessage> = before.iter().map(say).collect();
        let view = View { history: &history, query, wants_title: false };
        let offered: Vec<String> = offered.iter().map(|name| (*name).to_owned()).collect();
        offered[choose(&Glance::at(&view), &offered).category].clone()
    }

    #[test]
    fn software_is_known_by_any_name() {
        for (name, expected) in [
            ("software", true),
            ("software_development", true),
            ("Coding", true),
            ("general", false),
            ("cooking", false),
            ("", false),
        ] {
            assert_eq!(is_software(name), expected, "{name}");
        }
        let known = known();
        assert!(
            known[0] == "general"
                && known.contains(&SOFTWARE.to_owned())
                && known.len() == TABLE.names.len() + 1
        );
    }

    #[test]
    fn the_table_is_whole() {
        assert_eq!(TABLE.names[0].section, "software");
        for names in &TABLE.names {
            assert!(names.aliases.contains(&names.section), "{}", names.section);
            assert_eq!(names.icons.len(), 3, "{}", names.section);
            assert!(names.icons.iter().all(|icon| icons::exists(icon)), "{}", names.section);
        }
    }

    /// `category | message`; the categories are all that the file names.
    #[test]
    fn the_examples_are_told_apart() {
        let lines = include_str!("../data/category_examples.txt").lines();
        let lines: Vec<(&str, &str)> = lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|line| line.split_once('|').unwrap())
            .map(|(category, text)| (category.trim(), text.trim()))
            .collect();
        let mut offered = vec!["general"];
        offered.extend(TABLE.names.iter().map(|names| names.section));
        let given = |text| category(text, &[], &offered);
        let wrong: Vec<String> = lines
            .iter()
            .filter(|(expected, text)| given(text) != *expected)
            .map(|(expected, text)| format!("{}, not {expected}: {text}", given(text)))
            .collect();
        assert!(wrong.is_empty() && lines.len() > 90, "{} of {}: {wrong:#?}", wrong.len(), lines.len());
    }

    #[test]
    fn names_of_operators_are_understood() {
        let mates = [
            "general_knowledge",
            "software_development",
            "business_development",
            "life_coach_psychology",
            "medical_health",
            "legal_law",
            "marketing_sales",
            "electrical_engineering",
            "beekeeping",
        ];
        for (text, expected) in [
            ("How do I fix this Python traceback?", "software_development"),
            ("Write a business plan for my startup", "business_development"),
            ("I have a fever and a headache", "medical_health"),
            ("Can my landlord keep the deposit under my contract?", "legal_law"),
            ("Which resistor for this Arduino circuit?", "electrical_engineering"),
            ("Any tips on beekeeping in winter?", "beekeeping"),
            ("Hello there", "general_knowledge"),
        ] {
            assert_eq!(category(text, &[], &mates), expected, "{text}");
        }
    }

    #[test]
    fn a_follow_up_stays_with_the_subject() {
        let offered = ["general", "cooking", "software"];
        let before = ["I want to bake a sourdough bread, what flour?"];
        assert_eq!(category("and then?", &before, &offered), "cooking");
        assert_eq!(category("fix this javascript function", &before, &offered), "software");
    }
}
