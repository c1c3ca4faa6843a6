//! Harm over a conversation: a running score for each kind, and what is done about it.
//!
//! One message says little; the same middling score again and again says more. So every kind has a score that rises
//! with what each turn adds and falls by half over time and over turns, and a measure of how often turns came near
//! something: that is how an escalation is seen that no single block of the history shows. It lives in the sealed
//! checkpoint as [`RunningHarm`] and holds nothing that was said.
//!
//! [`SafetyRules`] turn scores into actions. The defaults would rather help than refuse: helplines are named early,
//! refusal is for what is clear, a person is asked to look only at what lasts, and nothing ends a conversation unless
//! the operator says so. What is easy to get wrong: a running score stays high for a while after the subject has
//! changed, so it acts only in a turn that adds to it.

mod texts;

use serde::{Deserialize, Serialize};

use super::{Harm, HarmScores};

pub use texts::{SafetyText, SafetyTexts};

/// What a conversation's harm has added up to. A stored type: its JSON is pinned by a test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunningHarm {
    /// The running score of each kind, 0 to 10, as of `at`.
    scores: HarmScores,
    /// How many of the last turns came near something, the older the less.
    #[serde(default)]
    near: f32,
    /// When the last turn was added, in milliseconds since 1970.
    at: i64,
}

/// How fast the past counts less. A zero switches that kind of decay off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Decay {
    /// After so many seconds a score counts half.
    pub half_life_seconds: u64,
    /// After so many turns a score counts half.
    pub half_life_turns: u32,
}

/// When to do what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SafetyRules {
    /// How fast the past counts less.
    pub decay: Decay,
    /// The rules; every one that fits applies.
    pub rules: Vec<SafetyRule>,
}

/// One threshold and what it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SafetyRule {
    /// The kind of harm.
    pub harm: Harm,
    /// Whose score.
    #[serde(default)]
    pub of: Measure,
    /// From which score on, above 0 and up to 10.
    pub at_least: f32,
    /// What is done.
    pub action: SafetyAction,
}

/// Whose score a rule looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// That of this turn alone.
    #[default]
    Turn,
    /// The running one, in a turn that adds to it.
    Conversation,
}

impl Measure {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Turn, Self::Conversation];

    /// The one that a rule means that does not say: an escalation is in no turn alone.
    #[must_use]
    pub fn usual(harm: Harm) -> Self {
        if harm == Harm::GradualEscalationPatterns { Self::Conversation } else { Self::Turn }
    }
}

/// What can be done about harm, mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SafetyAction {
    /// The answer names where to find help.
    ProvideCrisisResources,
    /// A person is asked to look.
    FlagForHumanReview,
    /// The request is declined, and something better offered.
    RefuseAndRedirect,
    /// The conversation takes no more turns.
    TerminateConversation,
}

/// What is to be done in a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The actions, mildest first, each once.
    pub actions: Vec<SafetyAction>,
    /// The kinds of harm that led to them.
    pub harms: Vec<Harm>,
}

impl Decision {
    /// Whether something is to be done.
    #[must_use]
    pub fn has(&self, action: SafetyAction) -> bool {
        self.actions.contains(&action)
    }
}

impl Default for RunningHarm {
    fn default() -> Self {
        Self { scores: HarmScores::default(), near: 0.0, at: 0 }
    }
}

impl RunningHarm {
    /// Adds a turn's scores, `now` in milliseconds since 1970. A clock that went back ages nothing.
    pub fn update(&mut self, scores: &HarmScores, now: i64, decay: &Decay) {
        let kept = decay.kept(now.saturating_sub(self.at));
        let mut done: f32 = 0.0;
        for harm in Harm::ALL {
            let score = sane(scores.get(harm));
            let before = sane(self.scores.get(harm)) * kept;
            *self.scores.get_mut(harm) = rounded(added(before, score));
            if matches!(harm, Harm::DirectSelfHarm | Harm::IndirectSelfHarm | Harm::Illegal) {
                done = done.max(score);
            }
        }
        self.near = rounded(sane(self.near) * kept + if done >= MEDIUM { 1.0 } else { 0.0 });
        // The third turn that comes near something within reach of the first is a pattern.
        if done >= MEDIUM && self.near >= PATTERN {
            let escalation = &mut self.scores.gradual_escalation_patterns;
            *escalation = rounded(escalation.max((self.near * done * STEEPNESS).min(HIGHEST)));
        }
        self.at = self.at.max(now);
    }

    /// The later of two records of one conversation.
    #[must_use]
    pub fn later(self, other: Self) -> Self {
        if other.at > self.at { other } else { self }
    }

    /// The running score of a kind, as of the last turn.
    #[must_use]
    pub fn score(&self, harm: Harm) -> f32 {
        self.scores.get(harm)
    }

    /// Whether there is nothing to remember.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.scores.highest() < CALM && self.near < CALM
    }

    /// All running scores, as of the last turn.
    #[must_use]
    pub fn scores(&self) -> &HarmScores {
        &self.scores
    }
}

/// What a turn of this score makes of a running score: never less than the turn itself, and more each time a middling
/// one comes again.
fn added(before: f32, score: f32) -> f32 {
    let risen = if score >= MEDIUM { before + (HIGHEST - before) * score / HIGHEST * GAIN } else { before };
    risen.max(score).min(HIGHEST)
}

impl Decay {
    /// What is left of a score one turn and `millis` milliseconds later, 0 to 1.
    fn kept(self, millis: i64) -> f32 {
        let half =
            |amount: f64, half_life: f64| if half_life > 0.0 { (-amount / half_life).exp2() } else { 1.0 };
        let seconds = millis.max(0) as f64 / 1000.0;
        (half(seconds, self.half_life_seconds as f64) * half(1.0, f64::from(self.half_life_turns))) as f32
    }
}

impl Default for Decay {
    fn default() -> Self {
        Self { half_life_seconds: 6 * 60 * 60, half_life_turns: 8 }
    }
}

/// Below this, a score is as good as none.
const CALM: f32 = 0.05;

impl SafetyRules {
    /// Puts rules in the place of those there are for one kind of harm and one measure of it.
    pub fn replace(&mut self, harm: Harm, of: Measure, rules: &[(f32, SafetyAction)]) {
        self.rules.retain(|rule| (rule.harm, rule.of) != (harm, of));
        let rules = rules.iter().map(|(at_least, action)| SafetyRule {
            harm,
            of,
            at_least: *at_least,
            action: *action,
        });
        self.rules.extend(rules);
    }

    /// What to do in a turn of these scores; `running` already has the turn.
    #[must_use]
    pub fn decide(&self, now: &HarmScores, running: &RunningHarm) -> Decision {
        let mut decision = Decision::default();
        for rule in &self.rules {
            let this = sane(now.get(rule.harm));
            let score = match rule.of {
                Measure::Turn => this,
                // The pattern of a conversation is not in the turn, but in the turn's other scores.
                Measure::Conversation if rule.harm == Harm::GradualEscalationPatterns => {
                    if sane(now.highest()) >= ADDS { running.score(rule.harm) } else { 0.0 }
                }
                Measure::Conversation if this >= ADDS => running.score(rule.harm),
                Measure::Conversation => 0.0,
            };
            if score > 0.0 && score >= rule.at_least {
                decision.actions.push(rule.action);
                decision.harms.push(rule.harm);
            }
        }
        decision.actions.sort_unstable();
        decision.actions.dedup();
        decision.harms.sort_unstable();
        decision.harms.dedup();
        decision
    }
}

impl Default for SafetyRules {
    fn default() -> Self {
        use Harm::{
            DirectSelfHarm, EmotionalDistressIndicators, GradualEscalationPatterns, Illegal, IndirectSelfHarm,
        };
        use Measure::{Conversation, Turn};
        use SafetyAction::{FlagForHumanReview, ProvideCrisisResources, RefuseAndRedirect};
        let rule = |harm, of, at_least, action| SafetyRule { harm, of, at_least, action };
        Self {
            decay: Decay::default(),
            rules: vec![
                rule(DirectSelfHarm, Turn, 3.0, ProvideCrisisResources),
                rule(DirectSelfHarm, Turn, 9.0, RefuseAndRedirect),
                rule(DirectSelfHarm, Conversation, 8.5, FlagForHumanReview),
                rule(IndirectSelfHarm, Turn, 5.0, ProvideCrisisResources),
                rule(IndirectSelfHarm, Conversation, 6.0, ProvideCrisisResources),
                rule(EmotionalDistressIndicators, Turn, 7.0, ProvideCrisisResources),
                rule(EmotionalDistressIndicators, Conversation, 8.0, ProvideCrisisResources),
                rule(Illegal, Turn, 8.0, RefuseAndRedirect),
                rule(Illegal, Conversation, 9.0, FlagForHumanReview),
                rule(GradualEscalationPatterns, Turn, 9.0, RefuseAndRedirect),
                rule(GradualEscalationPatterns, Conversation, 8.0, FlagForHumanReview),
            ],
        }
    }
}

/// A score within its range; what is no number is none.
fn sane(score: f32) -> f32 {
    if score.is_nan() { 0.0 } else { score.clamp(0.0, HIGHEST) }
}

/// Two decimals are exact enough, and short in a checkpoint.
fn rounded(score: f32) -> f32 {
    (score * 100.0).round() / 100.0
}

const HIGHEST: f32 = 10.0;

/// From here on a score that comes again raises the running one.
const MEDIUM: f32 = 4.0;

/// How much of the way to the top a score of 10 adds.
const GAIN: f32 = 0.5;

/// So many turns near something, with their decay, are a pattern.
const PATTERN: f32 = 2.5;

/// Three turns of 5 are an escalation of about 5, four of 8 one of 10.
const STEEPNESS: f32 = 0.4;

/// A turn adds to a running score from here on.
const ADDS: f32 = 2.0;

#[cfg(test)]
mod tests;
