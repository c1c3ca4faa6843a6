//! Signs that a message, or something quoted in it, tries to take the agent over.
//!
//! Four families of patterns (`data/injection.txt`) and marks that are no words: forged roles and fences, text that only
//! a machine sees, encoded text that says such a thing when decoded. Each family counts once, with its strongest sign,
//! and independent families make each other likelier. Words are compared after look-alikes, widths, invisible
//! characters, digits in the place of letters and letters with spaces between them are undone. What is easy to get
//! wrong: people also talk *about* injection, and "ignore my previous message" is a correction, not an attack.

mod masks;

use std::sync::LazyLock;

use super::memo::{self, Score};
use super::pattern::{Patterns, Reach};
use super::text::Text;
use super::{Glance, Said};

/// How likely the message tries to take the agent over, 0 to 10; earlier messages count less the older they are.
pub(super) fn chance(glance: &Glance<'_>) -> f32 {
    let weights = [1.0, 0.7, 0.5, 0.3];
    let score = |said: &Said<'_>| memo::score(said, Score::Injection, || of(said.text()));
    let scores = glance.said().zip(weights).map(|(said, weight)| weight * score(said));
    scores.fold(0.0, f32::max)
}

pub(super) fn of(text: &Text<'_>) -> f32 {
    let mut signs = Signs { families: [0.0; FAMILIES], discussed: false, quoted_only: true };
    signs.words(text, 1.0);
    let asks = signs.quoted_only || text.raw().contains('?');
    let discussed = signs.discussed && asks && text.words().len() <= SHORT;
    if let Some(unmasked) = masks::undone(text) {
        signs.words(&Text::read(&unmasked), MASKED);
    }
    for hidden in masks::hidden(text) {
        // Nobody hides what everybody may read.
        signs.words(&Text::read(&hidden), HIDDEN);
        signs.marks(&hidden);
    }
    signs.marks(text.raw());
    signs.invisible(text);
    signs.chance(discussed)
}

/// The strongest sign of each family, 0 to 10.
struct Signs {
    families: [f32; FAMILIES],
    /// The text has words with which people talk about injection.
    discussed: bool,
    /// No sign stands outside quotation marks.
    quoted_only: bool,
}

impl Signs {
    fn words(&mut self, text: &Text<'_>, weight: f32) {
        PATTERNS.find(text, Reach::Text, |hit| {
            if hit.rule.section == DISCUSS {
                self.discussed = true;
                return;
            }
            let words = &text.words()[hit.from..hit.to];
            let quoted = words.iter().all(|word| word.quoted || word.code);
            self.quoted_only &= quoted;
            // A pattern may reach over a full stop, but then it says less.
            let broken = words[1..].iter().any(|word| word.first);
            let keeps = if quoted { QUOTED } else { 1.0 } * if broken { BROKEN } else { 1.0 };
            self.add(hit.rule.section, hit.rule.score * weight * keeps);
        });
    }

    /// Marks of roles and fences that only a program writes.
    fn marks(&mut self, raw: &str) {
        let lower = raw[..raw.floor_char_boundary(LONGEST_MARKS)].to_lowercase();
        let strongest = |marks: &[(&str, f32)]| -> f32 {
            let there = marks.iter().filter(|(mark, _)| lower.contains(mark));
            there.map(|(_, score)| *score).fold(0.0, f32::max)
        };
        self.add(MARKS, strongest(ROLE_MARKS));
        self.add(OVERRIDE, strongest(PHRASES));
        self.add(MARKS, forged_lines(&lower));
    }

    fn invisible(&mut self, text: &Text<'_>) {
        let many = text.invisible >= MANY_INVISIBLE && text.invisible * 4 >= text.words().len();
        let score = match (text.hidden.len() >= 8, many, text.disguised) {
            (true, _, _) => 8.0,
            (_, true, _) | (_, _, 3..) => 4.0,
            (_, _, 1..) => 1.0,
            _ => 0.0,
        };
        self.add(HIDING, score);
    }

    fn add(&mut self, family: usize, score: f32) {
        self.families[family] = self.families[family].max(score);
    }

    /// What the families say together: one minus the chance that each of them is wrong.
    fn chance(&self, discussed: bool) -> f32 {
        let strongest = self.families.iter().copied().fold(0.0, f32::max);
        let wrong: f32 = self.families.iter().map(|score| 1.0 - (score / 10.0).min(0.98)).product();
        let keeps = if discussed && self.families[MARKS] < 8.0 { DISCUSSED } else { 1.0 };
        (10.0 * (1.0 - wrong)).max(strongest).min(10.0) * keeps
    }
}

/// Lines that pretend to be said by somebody else: several of them, or one with an order.
fn forged_lines(lower: &str) -> f32 {
    let speaks = |line: &str| {
        let line =
            line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '#' | '*' | '>' | '-' | '['));
        let system = ["system:", "system prompt:", "system message:", "developer:", "system]:", "system]"];
        let others = ["assistant:", "user:", "human:", "ai:"];
        (system.iter().any(|who| line.starts_with(who)), others.iter().any(|who| line.starts_with(who)))
    };
    let (mut system, mut others) = (0, 0);
    for line in lower.lines().skip(1) {
        let (is_system, is_other) = speaks(line);
        system += usize::from(is_system);
        others += usize::from(is_other);
    }
    let first = lower.lines().next().is_some_and(|line| speaks(line).0);
    match (system + usize::from(first), others) {
        (1.., 1..) => 6.0,
        (1.., 0) => 2.0,
        (0, 2..) => 3.0,
        _ => 0.0,
    }
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    Patterns::parse(include_str!("../data/injection.txt"), &SECTIONS).expect("a test reads the data file")
});

/// Sections of the file; the first four are families.
const SECTIONS: [&str; 5] = ["override", "persona", "exfiltrate", "authority", "discuss"];
const OVERRIDE: usize = 0;
const DISCUSS: usize = 4;

/// Further families, in the place of sections that are none.
const MARKS: usize = 4;
const HIDING: usize = 5;
const FAMILIES: usize = 6;

/// What chat templates, our own fences and tool protocols put around text. In lower case.
const ROLE_MARKS: &[(&str, f32)] = &[
    ("<|im_start|>", 9.0),
    ("<|im_end|>", 9.0),
    ("<|system|>", 9.0),
    ("<|user|>", 7.0),
    ("<|assistant|>", 8.0),
    ("<|endoftext|>", 6.0),
    ("<|end|>", 6.0),
    ("<|eot_id|>", 9.0),
    ("<|start_header_id|>", 9.0),
    ("<start_of_turn>", 8.0),
    ("[/inst]", 8.0),
    ("[inst]", 7.0),
    ("<<sys>>", 9.0),
    ("<</sys>>", 9.0),
    ("</system>", 7.0),
    ("<system>", 6.0),
    ("</instructions>", 5.0),
    ("</user_input>", 7.0),
    ("</user>", 5.0),
    ("\"role\": \"system\"", 4.0),
    ("\"role\":\"system\"", 4.0),
    ("### instruction:", 5.0),
    ("### system", 6.0),
    ("[system]", 5.0),
    ("[system override]", 9.0),
    ("begin system prompt", 7.0),
    ("end system prompt", 7.0),
    ("room>>>", 8.0),
    ("<<<room", 8.0),
    ("conversation>>>", 8.0),
    ("request>>>", 8.0),
    ("<tool_call>", 5.0),
    ("<function_call", 5.0),
    ("antml:", 7.0),
];

/// The same orders in scripts that the word patterns do not part into words.
const PHRASES: &[(&str, f32)] = &[
    ("忽略之前的", 8.0),
    ("忽略以上", 8.0),
    ("忽略所有", 8.0),
    ("忽略先前", 8.0),
    ("无视之前", 8.0),
    ("忘记之前的指令", 8.0),
    ("系统提示词", 5.0),
    ("以前の指示を無視", 8.0),
    ("これまでの指示を無視", 8.0),
    ("指示を無視", 7.0),
    ("指示をすべて無視", 8.0),
    ("システムプロンプト", 4.0),
    ("이전 지시를 무시", 8.0),
    ("이전 지시사항을 무시", 8.0),
    ("모든 지시를 무시", 8.0),
    ("시스템 프롬프트", 4.0),
    ("تجاهل التعليمات", 8.0),
    ("تجاهل جميع", 7.0),
    ("पिछले निर्देशों को अनदेखा", 8.0),
];

/// What is left of a sign inside quotation marks or code, over a full stop, and in a text about injection.
const QUOTED: f32 = 0.6;
const BROKEN: f32 = 0.7;
const DISCUSSED: f32 = 0.45;

/// Words of a text that may be about injection; what is longer is no question.
const SHORT: usize = 60;

/// A sign counts a little more where it was masked, and more where nobody was to see it.
const MASKED: f32 = 1.1;
const HIDDEN: f32 = 1.2;

/// So many invisible characters are no accident.
const MANY_INVISIBLE: usize = 4;

/// In bytes.
const LONGEST_MARKS: usize = 256 * 1024;

#[cfg(test)]
mod tests;
