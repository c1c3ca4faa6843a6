//! The examples of `data/harm_examples.txt`, which are the specification of the word lists.

use confidant_model::{PromptMessage, Role};

use super::*;
use crate::View;

/// The scores of the last of these messages of a person.
fn scores_of(messages: &[&str]) -> HarmScores {
    let (query, before) = messages.split_last().unwrap();
    let said = |text: &&str| PromptMessage { role: Role::Human, text: (*text).to_owned() };
    let history: Vec<PromptMessage> = before.iter().map(said).collect();
    scores(&Glance::at(&View { history: &history, query, wants_title: false }))
}

/// `kinds lowest-highest | message before | message`; `all` stands for every kind.
#[test]
fn the_examples_score_as_they_say() {
    let lines = include_str!("../../data/harm_examples.txt").lines();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut parts = line.split('|').map(str::trim);
        let (kinds, range) = parts.next().unwrap().split_once(' ').unwrap();
        let (low, high) = range.split_once('-').unwrap();
        let range = low.parse::<f32>().unwrap()..=high.parse().unwrap();
        let scores = scores_of(&parts.collect::<Vec<&str>>());
        let scored = |kind: &str| match kind {
            "direct" => scores.direct_self_harm,
            "indirect" => scores.indirect_self_harm,
            "escalation" => scores.gradual_escalation_patterns,
            "distress" => scores.emotional_distress_indicators,
            "illegal" => scores.illegal,
            "all" => scores.highest(),
            other => panic!("no kind is called {other}"),
        };
        wrong.extend(
            kinds
                .split('+')
                .filter(|kind| !range.contains(&scored(kind)))
                .map(|kind| format!("{kind} is {} ({scores:?}): {line}", scored(kind))),
        );
        seen += 1;
    }
    assert!(wrong.is_empty() && seen > 250, "{} of {seen}: {wrong:#?}", wrong.len());
}

#[test]
fn many_signs_take_linear_time() {
    for unit in ["kill myself ", "not kill myself laughing ", "i want to kill ", "how to make a bomb "] {
        assert!(scores_of(&[&unit.repeat(4_000)]).highest() >= 0.0);
    }
}
