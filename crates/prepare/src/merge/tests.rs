use super::*;
use crate::HarmScores;

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn local() -> Prepared {
    Prepared {
        language_code: "en".to_owned(),
        category: "general".to_owned(),
        selected_model: "usual".to_owned(),
        selection_reason: "The usual one.".to_owned(),
        harm: HarmScores { illegal: 2.0, direct_self_harm: 9.0, ..HarmScores::default() },
        prompt_injection_chance: 1.0,
        tags: names(&["local"]),
        relevant_app_skills: names(&["local.tool"]),
        relevant_app_focus_modes: names(&["local.focus"]),
        relevant_app_settings_and_memories: names(&["local.setting"]),
        title: Some("Local".to_owned()),
        icon_names: names(&["code"]),
        by: PreparedBy::Rules,
    }
}

#[test]
fn without_findings_the_rules_speak() {
    assert_eq!(merge(vec![], local()), local());
    assert_eq!(merge(vec![None, None], local()), local());
}

#[test]
fn blocks_are_merged_by_the_stated_rules() {
    let old = Found {
        language_code: Some("de".to_owned()),
        category: Some("law".to_owned()),
        model: Some(("big".to_owned(), Some("Hard.".to_owned()))),
        harm: [Some(3.0), None, None, None, Some(8.0)],
        prompt_injection_chance: Some(7.0),
        tags: Some(names(&["a", "b"])),
        skills: Some(names(&["x", "y"])),
        focus_modes: Some(names(&["f"])),
        settings: Some(vec![]),
        title: Some("First".to_owned()),
        icon_names: Some(names(&["gavel"])),
    };
    let new = Found {
        language_code: Some("fr".to_owned()),
        model: Some(("small".to_owned(), None)),
        harm: [Some(6.0), Some(1.0), None, None, Some(4.0)],
        prompt_injection_chance: Some(2.0),
        tags: Some(names(&["B", "c"])),
        skills: Some(names(&["z", "x"])),
        title: Some("Second".to_owned()),
        ..Found::default()
    };
    let merged = merge(vec![Some(old), None, Some(new)], local());
    let expected = Prepared {
        language_code: "fr".to_owned(),
        category: "law".to_owned(),
        selected_model: "small".to_owned(),
        selection_reason: NO_REASON.to_owned(),
        harm: HarmScores {
            direct_self_harm: 6.0,
            indirect_self_harm: 1.0,
            illegal: 8.0,
            ..HarmScores::default()
        },
        prompt_injection_chance: 7.0,
        tags: names(&["B", "c", "a"]),
        relevant_app_skills: names(&["z", "x", "y"]),
        relevant_app_focus_modes: names(&["f"]),
        relevant_app_settings_and_memories: vec![],
        title: Some("First".to_owned()),
        icon_names: names(&["gavel"]),
        by: PreparedBy::Model,
    };
    assert_eq!(merged, expected);
}

#[test]
fn a_model_that_says_nothing_leaves_what_the_rules_say() {
    let merged = merge(vec![Some(Found { prompt_injection_chance: Some(0.0), ..Found::default() })], local());
    assert_eq!(merged, Prepared { prompt_injection_chance: 0.0, by: PreparedBy::Model, ..local() });
}

#[test]
fn no_text_talks_the_model_out_of_a_clear_sign() {
    let zeros = Found { harm: [Some(0.0); 5], prompt_injection_chance: Some(0.0), ..Found::default() };
    let mut rules = local();
    rules.prompt_injection_chance = 9.0;
    let merged = merge(vec![Some(zeros)], rules);
    assert_eq!(
        (merged.harm.direct_self_harm, merged.harm.illegal, merged.prompt_injection_chance),
        (5.0, 0.0, 5.0)
    );
}

#[test]
fn lists_have_their_limits() {
    let many = |from: usize| -> Vec<String> { (from..from + 9).map(|n| format!("n{n}")).collect() };
    let block = |from| Some(Found { tags: Some(many(from)), skills: Some(many(from)), ..Found::default() });
    let merged = merge(vec![block(0), block(9), block(18)], local());
    assert_eq!((merged.tags.len(), merged.relevant_app_skills.len()), (MOST_TAGS, MOST_SKILLS));
    assert_eq!(merged.tags[0], "n18");
}
