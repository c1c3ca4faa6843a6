use super::*;

fn scores(harm: Harm, score: f32) -> HarmScores {
    let mut scores = HarmScores::default();
    *scores.get_mut(harm) = score;
    scores
}

/// Turns a minute apart.
fn run(harm: Harm, turns: &[f32]) -> RunningHarm {
    let mut running = RunningHarm::default();
    for (at, score) in turns.iter().enumerate() {
        running.update(&scores(harm, *score), at as i64 * 60_000, &Decay::default());
    }
    running
}

#[test]
fn the_stored_form_is_pinned() {
    let mut running = run(Harm::Illegal, &[5.0, 5.0]);
    running.at = 1_700_000_000_000;
    let json = serde_json::to_string(&running).unwrap();
    let expected = concat!(
        r#"{"scores":{"direct_self_harm":0.0,"indirect_self_harm":0.0,"gradual_escalation_patterns":0.0,"#,
        r#""emotional_distress_indicators":0.0,"illegal":5.93},"near":1.92,"at":1700000000000}"#
    );
    assert_eq!(json, expected);
    assert_eq!(serde_json::from_str::<RunningHarm>(&json).unwrap(), running);
}

#[test]
fn the_settings_form_is_pinned() {
    let rules = SafetyRules { rules: SafetyRules::default().rules[..2].to_vec(), ..SafetyRules::default() };
    let json = serde_json::to_string(&rules).unwrap();
    let expected = concat!(
        r#"{"decay":{"half_life_seconds":21600,"half_life_turns":8},"rules":["#,
        r#"{"harm":"direct_self_harm","of":"turn","at_least":3.0,"action":"provide_crisis_resources"},"#,
        r#"{"harm":"direct_self_harm","of":"turn","at_least":9.0,"action":"refuse_and_redirect"}]}"#
    );
    assert_eq!(json, expected);
    assert_eq!(serde_json::from_str::<SafetyRules>("{}").unwrap(), SafetyRules::default());
    let short = r#"{"rules":[{"harm":"illegal","at_least":10,"action":"terminate_conversation"}]}"#;
    assert_eq!(serde_json::from_str::<SafetyRules>(short).unwrap().rules[0].of, Measure::Turn);
    assert!(serde_json::from_str::<SafetyRules>(r#"{"rule":[]}"#).is_err());
}

#[test]
fn a_score_falls_by_half_over_time_and_over_turns() {
    let by_time = Decay { half_life_seconds: 3600, half_life_turns: 0 };
    let by_turn = Decay { half_life_seconds: 0, half_life_turns: 2 };
    let none = Decay { half_life_seconds: 0, half_life_turns: 0 };
    for (decay, expected) in [(by_time, 4.0), (by_turn, 5.66), (none, 8.0)] {
        let mut running = RunningHarm::default();
        running.update(&scores(Harm::Illegal, 8.0), 0, &decay);
        running.update(&HarmScores::default(), 3_600_000, &decay);
        assert_eq!(running.score(Harm::Illegal), expected, "{decay:?}");
    }
}

#[test]
fn repeated_middling_scores_rise_and_low_ones_do_not() {
    let once = run(Harm::IndirectSelfHarm, &[5.0]).score(Harm::IndirectSelfHarm);
    let often = run(Harm::IndirectSelfHarm, &[5.0; 6]).score(Harm::IndirectSelfHarm);
    let always = run(Harm::IndirectSelfHarm, &[5.0; 200]).score(Harm::IndirectSelfHarm);
    assert_eq!(once, 5.0);
    assert!(often > 6.5 && always >= often && always < 8.0, "{often} {always}");
    assert_eq!(run(Harm::IndirectSelfHarm, &[3.0; 50]).score(Harm::IndirectSelfHarm), 3.0);
}

#[test]
fn coming_near_again_and_again_is_an_escalation() {
    let escalation = |turns: &[f32]| run(Harm::Illegal, turns).score(Harm::GradualEscalationPatterns);
    assert_eq!(escalation(&[5.0, 5.0]), 0.0);
    assert!(escalation(&[5.0, 5.0, 5.0]) >= 5.0);
    assert!(escalation(&[4.0, 0.0, 5.0, 6.0, 7.0]) > 5.0);
    assert!(escalation(&[4.0, 5.0, 6.0, 7.0]) > escalation(&[4.0, 4.0, 4.0, 4.0]));
    assert_eq!(escalation(&[3.0; 20]), 0.0);
    assert_eq!(run(Harm::EmotionalDistressIndicators, &[6.0; 9]).score(Harm::GradualEscalationPatterns), 0.0);
}

#[test]
fn odd_clocks_and_scores_do_no_harm() {
    let mut running = RunningHarm::default();
    let decay = Decay::default();
    running.update(&scores(Harm::Illegal, 8.0), 1_000_000, &decay);
    running.update(&scores(Harm::Illegal, f32::NAN), i64::MIN, &decay);
    assert!(running.score(Harm::Illegal) > 7.0 && running.at == 1_000_000);
    running.update(&scores(Harm::Illegal, f32::INFINITY), i64::MAX, &decay);
    assert_eq!(running.score(Harm::Illegal), 10.0);
    running.update(&scores(Harm::Illegal, -5.0), 0, &decay);
    assert!(running.score(Harm::Illegal) <= 10.0);
    let odd: RunningHarm = serde_json::from_str(
        &serde_json::to_string(&RunningHarm::default()).unwrap().replace(r#""near":0.0"#, r#""near":1e30"#),
    )
    .unwrap();
    let mut odd = odd;
    odd.update(&HarmScores::default(), 1, &decay);
    assert!(odd.near <= 10.0);
}

/// What each of these turns leads to by default.
#[test]
fn the_defaults_help_early_and_refuse_late() {
    use SafetyAction::{FlagForHumanReview, ProvideCrisisResources, RefuseAndRedirect};
    let decide = |harm: Harm, turns: &[f32]| {
        let now = scores(harm, *turns.last().unwrap());
        SafetyRules::default().decide(&now, &run(harm, turns)).actions
    };
    let cases: [(Harm, &[f32], &[SafetyAction]); 12] = [
        (Harm::DirectSelfHarm, &[2.0], &[]),
        (Harm::DirectSelfHarm, &[3.0], &[ProvideCrisisResources]),
        (Harm::DirectSelfHarm, &[8.0], &[ProvideCrisisResources]),
        (Harm::DirectSelfHarm, &[9.0], &[ProvideCrisisResources, FlagForHumanReview, RefuseAndRedirect]),
        (Harm::IndirectSelfHarm, &[4.0], &[]),
        (Harm::IndirectSelfHarm, &[4.0, 4.0, 4.0, 4.0, 4.0, 4.0], &[ProvideCrisisResources]),
        (Harm::EmotionalDistressIndicators, &[5.0], &[]),
        (Harm::EmotionalDistressIndicators, &[7.0], &[ProvideCrisisResources]),
        (Harm::Illegal, &[7.0], &[]),
        (Harm::Illegal, &[8.0], &[RefuseAndRedirect]),
        (Harm::Illegal, &[9.0, 9.0], &[FlagForHumanReview, RefuseAndRedirect]),
        // The subject has changed: what was said before no longer acts.
        (Harm::DirectSelfHarm, &[9.0, 0.0], &[]),
    ];
    for (harm, turns, expected) in cases {
        assert_eq!(decide(harm, turns), expected, "{harm:?} {turns:?}");
    }
}

#[test]
fn nothing_ends_a_conversation_unless_told_to() {
    let all = HarmScores {
        direct_self_harm: 10.0,
        indirect_self_harm: 10.0,
        gradual_escalation_patterns: 10.0,
        emotional_distress_indicators: 10.0,
        illegal: 10.0,
    };
    let mut running = RunningHarm::default();
    running.update(&all, 0, &Decay::default());
    assert!(!SafetyRules::default().decide(&all, &running).has(SafetyAction::TerminateConversation));
    let mut rules = SafetyRules::default();
    let (harm, action) = (Harm::Illegal, SafetyAction::TerminateConversation);
    rules.rules.push(SafetyRule { harm, of: Measure::Conversation, at_least: 9.0, action });
    assert!(rules.decide(&all, &running).has(SafetyAction::TerminateConversation));
    let odd = SafetyRule { harm, of: Measure::Turn, at_least: f32::NAN, action };
    assert_eq!(SafetyRules { rules: vec![odd], ..rules }.decide(&all, &running), Decision::default());
    let zero = SafetyRule { harm, of: Measure::Turn, at_least: 0.0, action };
    let quiet = SafetyRules { rules: vec![zero], ..SafetyRules::default() };
    assert_eq!(quiet.decide(&HarmScores::default(), &RunningHarm::default()), Decision::default());
}
