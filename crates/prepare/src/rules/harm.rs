//! Signs of harm in a message and in those before it.
//!
//! A sign is a pattern of `data/harm.txt`. A sign that touches a phrase meant otherwise ("die laughing") is none; one
//! that is denied, quoted, in a story, about prevention, in the news or in a game says less, unless the person clearly
//! speaks of themself. The score of a kind is its strongest sign and a little for every further one.
//! Escalation is a matter of several messages: how often they came near, and whether this one is the nearest yet.
//! What is easy to get wrong, in both directions: "kill the process" is an everyday request, and "I want to kill myself
//! lol" is still to be heard.

use std::sync::LazyLock;

use super::memo::{self, Score};
use super::pattern::{Hit, Patterns, Reach};
use super::text::Text;
use super::{Glance, Said};
use crate::HarmScores;

/// How harmful the message is, by kind, 0 to 10.
pub(super) fn scores(glance: &Glance<'_>) -> HarmScores {
    let now = Signs::of(glance.query.text());
    let heat = |said: &Said<'_>| memo::score(said, Score::Heat, || Signs::of(said.text()).heat());
    let mut before: Vec<f32> = glance.before.iter().map(heat).collect();
    memo::score(&glance.query, Score::Heat, || now.heat());
    before.reverse();
    HarmScores {
        direct_self_harm: now.direct.score(),
        indirect_self_harm: now.indirect_with_distress(),
        gradual_escalation_patterns: escalation(&before, &now),
        emotional_distress_indicators: now.distress.score(),
        illegal: now.illegal.score(),
    }
}

/// How much a conversation leads somewhere step by step; `before` is oldest first.
fn escalation(before: &[f32], now: &Signs) -> f32 {
    let heat = now.heat();
    let near = before.iter().filter(|heat| **heat >= NEAR).count();
    let hottest = before.iter().copied().fold(0.0, f32::max);
    // Asking the same again in other clothes, after something that was hot.
    if now.reframed && hottest >= HOT && heat < hottest {
        return (hottest * 0.6).min(HIGHEST);
    }
    if heat < WARM || near < 2 {
        return 0.0;
    }
    let risen = if heat >= hottest { 2.0 } else { 0.0 };
    let reframed = if now.reframed { 1.0 } else { 0.0 };
    (heat * 0.4 + near.min(4) as f32 + risen + reframed).min(HIGHEST)
}

/// The signs of one text.
#[derive(Default)]
struct Signs {
    direct: Tally,
    indirect: Tally,
    distress: Tally,
    illegal: Tally,
    /// Words that are one step of several.
    soft: f32,
    reframed: bool,
}

impl Signs {
    fn of(text: &Text<'_>) -> Self {
        let mut hits: Vec<Sign> = Vec::new();
        let mut around = Around::of(text.words().len());
        PATTERNS.find(text, Reach::Sentence, |hit| match Section::ALL[hit.rule.section] {
            Section::Shield => around.shielded[hit.from..hit.to].fill(true),
            Section::Not => around.denying[hit.from] = true,
            Section::Fiction => around.fiction = true,
            Section::Help => around.help = true,
            Section::Reported => around.reported = true,
            Section::Evade => around.evade = true,
            Section::Game => around.game = true,
            Section::Joke => around.joke = true,
            Section::Reframe => around.reframed = true,
            section => hits.push(Sign::new(section, &hit)),
        });
        let mut signs = Self { reframed: around.reframed, ..Self::default() };
        // What lies inside a denied sign is denied with it: "I would never kill myself".
        let mut denied_to = 0;
        for sign in &hits {
            let denied = sign.to <= denied_to || around.denies(sign);
            if denied {
                denied_to = denied_to.max(sign.to);
            }
            let score = around.left_of(sign, denied, text);
            match sign.section {
                Section::Direct => signs.direct.add(score, sign),
                Section::Indirect => signs.indirect.add(score, sign),
                Section::Distress => signs.distress.add(score, sign),
                Section::Illegal => signs.illegal.add(score, sign),
                _ => signs.soft = signs.soft.max(score),
            }
        }
        signs
    }

    /// How near the text comes to anything that is done rather than felt.
    fn heat(&self) -> f32 {
        [self.direct.score(), self.indirect.score(), self.illegal.score(), self.soft]
            .into_iter()
            .fold(0.0, f32::max)
    }

    /// A hint weighs more beside distress: "I lost everything. How high is the bridge?"
    fn indirect_with_distress(&self) -> f32 {
        let hint = self.indirect.score().max(self.soft);
        let added = if self.distress.score() >= WARM && hint >= NEAR { 2.0 } else { 0.0 };
        if self.indirect.score() > 0.0 || added > 0.0 { (hint + added).min(HIGHEST) } else { 0.0 }
    }
}

/// What the signs of one kind add up to.
#[derive(Default)]
struct Tally {
    strongest: f32,
    /// How many there are at different places.
    places: u8,
    last: usize,
}

impl Tally {
    fn add(&mut self, score: f32, sign: &Sign) {
        if score <= 0.0 {
            return;
        }
        self.strongest = self.strongest.max(score);
        if self.places == 0 || sign.from >= self.last {
            self.places = self.places.saturating_add(1);
            self.last = sign.to;
        }
    }

    fn score(&self) -> f32 {
        let more = f32::from(self.places.saturating_sub(1).min(4)) * 0.5;
        // However often somebody says how bad it is, they have not asked how.
        let most = if self.strongest < ASKS_HOW { ASKS_HOW - 0.1 } else { HIGHEST };
        if self.places == 0 { 0.0 } else { (self.strongest + more).min(most) }
    }
}

/// A pattern that was found.
struct Sign {
    section: Section,
    score: f32,
    firm: bool,
    from: usize,
    to: usize,
    skipped: Vec<usize>,
}

impl Sign {
    fn new(section: Section, hit: &Hit<'_>) -> Self {
        let (score, firm) = (hit.rule.score, hit.rule.firm);
        Self { section, score, firm, from: hit.from, to: hit.to, skipped: hit.skipped().collect() }
    }
}

/// What else stands in the text.
#[derive(Default)]
struct Around {
    /// Words of phrases that are meant otherwise.
    shielded: Vec<bool>,
    /// Words that say that something is not so.
    denying: Vec<bool>,
    fiction: bool,
    help: bool,
    reported: bool,
    /// Not being caught is no prevention, whatever else is said.
    evade: bool,
    game: bool,
    joke: bool,
    reframed: bool,
}

impl Around {
    fn of(words: usize) -> Self {
        Self { shielded: vec![false; words], denying: vec![false; words], ..Self::default() }
    }

    /// What is left of a sign's score.
    fn left_of(&self, sign: &Sign, denied: bool, text: &Text<'_>) -> f32 {
        if self.shielded[sign.from..sign.to].contains(&true) {
            return 0.0;
        }
        let words = &text.words()[sign.from..sign.to];
        let code = words.iter().all(|word| word.code);
        let quoted = words.iter().all(|word| word.quoted);
        let mut left = sign.score;
        for (is, keeps) in [(code, 0.1), (quoted, 0.5), (denied, 0.3), (self.joke, 0.7)] {
            left *= if is { keeps } else { 1.0 };
        }
        if !sign.firm {
            // The mildest of them decides: a game in the news is no milder than either.
            let (help, reported) = (self.help && !self.evade, self.reported && !self.evade);
            let keeps = [(self.game, 0.2), (help, 0.4), (reported, 0.4), (self.fiction, 0.6)];
            left *= keeps.into_iter().filter(|(is, _)| *is).map(|(_, keeps)| keeps).fold(1.0, f32::min);
        }
        left
    }

    /// Whether a word between those of the sign, or the one before it, says that it is not so.
    fn denies(&self, sign: &Sign) -> bool {
        let before = sign.from.checked_sub(1);
        before.into_iter().chain(sign.skipped.iter().copied()).any(|at| self.denying[at])
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Direct,
    Indirect,
    Distress,
    Illegal,
    Soft,
    Shield,
    Fiction,
    Help,
    Reported,
    Evade,
    Game,
    Joke,
    Reframe,
    Not,
}

impl Section {
    const ALL: [Self; 14] = [
        Self::Direct,
        Self::Indirect,
        Self::Distress,
        Self::Illegal,
        Self::Soft,
        Self::Shield,
        Self::Fiction,
        Self::Help,
        Self::Reported,
        Self::Evade,
        Self::Game,
        Self::Joke,
        Self::Reframe,
        Self::Not,
    ];
}

/// The names of [`Section::ALL`] in the file.
const SECTIONS: [&str; 14] = [
    "direct_self_harm",
    "indirect_self_harm",
    "emotional_distress",
    "illegal",
    "soft",
    "shield",
    "fiction",
    "help",
    "reported",
    "evade",
    "game",
    "joke",
    "reframe",
    "not",
];

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    Patterns::parse(include_str!("../data/harm.txt"), &SECTIONS).expect("a test reads the data file")
});

const HIGHEST: f32 = 10.0;

/// Scores from here on are for those who ask how something is done.
const ASKS_HOW: f32 = 9.0;

/// A message from here on is a step towards something.
const NEAR: f32 = 1.5;

/// The message itself must say this much for an escalation.
const WARM: f32 = 3.0;

/// What somebody may have been refused.
const HOT: f32 = 5.0;

#[cfg(test)]
mod tests;
