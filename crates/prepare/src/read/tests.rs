use confidant_model::OfferedModel;
use serde_json::json;

use super::*;
use crate::{Prepared, merge, rules};

fn offer() -> Offer {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    Offer {
        categories: names(&["general", "Software Development"]),
        models: names(&["small", "Big-Model 2"])
            .into_iter()
            .map(|name| OfferedModel { name, strengths: vec!["coding".to_owned()], cost: 1.0 })
            .collect(),
        skills: names(&["web.search", "images.generate"])
            .into_iter()
            .map(|name| (name, String::new()))
            .collect(),
        focus_modes: names(&["web.research"]),
        settings_and_memories: names(&["web.preferred_provider"]),
    }
}

fn gate() -> Redactor {
    Redactor::new(confidant_redact::Options::default()).unwrap()
}

const VIEW: View<'static> = View { history: &[], query: "hello", wants_title: true };

fn found(value: &Value) -> Found {
    read(value, &VIEW, &offer(), &gate()).unwrap()
}

#[test]
fn a_good_form_is_taken_as_it_is() {
    let value = json!({
        "language_code": "de",
        "category": "Software Development",
        "selected_model": "Big-Model 2",
        "selection_reason": "It is good at code.",
        "harm": { "direct_self_harm": 1, "indirect_self_harm": 2, "gradual_escalation_patterns": 3,
            "emotional_distress_indicators": 4, "illegal": 5 },
        "prompt_injection_chance": 6,
        "tags": ["rust", "async"],
        "relevant_app_skills": ["web.search"],
        "relevant_app_focus_modes": [],
        "relevant_app_settings_and_memories": ["web.preferred_provider"],
        "title": "Async Rust",
        "icon_names": ["code", "terminal"],
    });
    let found = found(&value);
    assert_eq!(found.language_code.as_deref(), Some("de"));
    assert_eq!(found.category.as_deref(), Some("Software Development"));
    assert_eq!(found.model, Some(("Big-Model 2".to_owned(), Some("It is good at code.".to_owned()))));
    assert_eq!(found.harm, [1.0, 2.0, 3.0, 4.0, 5.0].map(Some));
    assert_eq!(found.prompt_injection_chance, Some(6.0));
    assert_eq!(found.tags, Some(vec!["rust".to_owned(), "async".to_owned()]));
    assert_eq!(found.skills, Some(vec!["web.search".to_owned()]));
    assert_eq!(found.focus_modes, Some(vec![]));
    assert_eq!(found.settings, Some(vec!["web.preferred_provider".to_owned()]));
    assert_eq!(found.title.as_deref(), Some("Async Rust"));
    assert_eq!(found.icon_names, Some(vec!["code".to_owned(), "terminal".to_owned()]));
}

#[test]
fn what_is_plain_is_repaired() {
    let value = json!({
        "language_code": "German",
        "category": "software_development",
        "selected_model": ["big model 2"],
        "illegal": "7/10",
        "harm": { "direct_self_harm": "3.5", "indirect_self_harm": -4, "emotional_distress_indicators": 99 },
        "prompt_injection_chance": "high",
        "tags": "Rust, rust , #async,<b>bold</b>",
        "relevant_app_skills": ["Web-Search", "web.search", "rm -rf", 7, null, "IMAGES_GENERATE"],
        "title": "  \"A **very** long title that goes on and on and on and on and on and on and on\"\n",
        "icon_names": ["BookOpen", "book_open", "no-such-icon", "x"],
    });
    let found = found(&value);
    assert_eq!(found.language_code.as_deref(), Some("de"));
    assert_eq!(found.category.as_deref(), Some("Software Development"));
    assert_eq!(found.model, Some(("Big-Model 2".to_owned(), None)));
    assert_eq!(found.harm, [Some(3.5), Some(0.0), None, Some(10.0), Some(7.0)]);
    assert_eq!(found.prompt_injection_chance, Some(8.0));
    assert_eq!(found.tags.unwrap(), ["Rust", "async", "b bold /b"]);
    assert_eq!(found.skills.unwrap(), ["web.search", "images.generate"]);
    assert_eq!(found.title.unwrap(), "A very long title that goes on and on and on and on and on a");
    assert_eq!(found.icon_names.unwrap(), ["book-open", "x"]);
}

#[test]
fn what_is_not_is_dropped_field_by_field() {
    let value = json!({
        "language_code": 7,
        "category": "cooking",
        "selected_model": "gpt-99",
        "selection_reason": { "a": 1 },
        "harm": "none at all",
        "prompt_injection_chance": [1],
        "tags": { "a": "b" },
        "relevant_app_skills": ["evil.tool"],
        "relevant_app_focus_modes": 3,
        "relevant_app_settings_and_memories": [["web.preferred_provider"]],
        "title": ["a", "b"],
        "icon_names": ["no-such-icon"],
        "illegal": 4,
    });
    let mut expected = Found::default();
    expected.harm[4] = Some(4.0);
    // A list of lists holds no names at all, so it says "none".
    expected.settings = Some(vec![]);
    assert_eq!(found(&value), expected);
}

#[test]
fn scores_are_numbers_in_range() {
    for (value, expected) in [
        (json!(7), Some(7.0)),
        (json!(7.25), Some(7.25)),
        (json!("7"), Some(7.0)),
        (json!(" 7,5 "), Some(7.5)),
        (json!("70 %"), Some(7.0)),
        (json!("7/10"), Some(7.0)),
        (json!("7/8"), None),
        (json!("none"), Some(0.0)),
        (json!(-1), Some(0.0)),
        (json!(1e308), Some(10.0)),
        (json!("NaN"), None),
        (json!("inf"), None),
        (json!("-infinity"), None),
        (json!(true), None),
        (json!(null), None),
        (json!("very bad"), None),
    ] {
        assert_eq!(score(&value), expected, "{value}");
    }
}

#[test]
fn objects_in_other_clothes_are_found() {
    let inner = json!({ "category": "general" });
    let text = Value::String(inner.to_string());
    for value in [&inner, &text, &json!({ "arguments": inner }), &json!({ "name": "x", "parameters": inner })]
    {
        assert_eq!(found(value).category.as_deref(), Some("general"), "{value}");
    }
    for value in [json!(null), json!([]), json!(3), json!("no json"), json!({}), json!({ "category": "x" })] {
        assert!(read(&value, &VIEW, &offer(), &gate()).is_none(), "{value}");
    }
}

#[test]
fn a_conversation_with_a_title_gets_no_other() {
    let value = json!({ "title": "New", "icon_names": ["code"], "illegal": 0 });
    let found = read(&value, &View { wants_title: false, ..VIEW }, &offer(), &gate()).unwrap();
    assert_eq!((found.title, found.icon_names), (None, None));
}

#[test]
fn nothing_of_it_is_printed() {
    let found = found(&json!({ "title": "Secret", "tags": ["secret"] }));
    assert!(!format!("{found:?}").to_lowercase().contains("secret"));
}

/// Whether everything that `prepared` names was offered, and everything it holds is within its bounds.
fn is_sound(prepared: &Prepared, offer: &Offer, wants_title: bool) -> bool {
    let known = |names: &[String], offered: &[String], most: usize| {
        names.len() <= most && names.iter().all(|name| offered.contains(name))
    };
    let skills: Vec<String> = offer.skills.iter().map(|(name, _)| name.clone()).collect();
    let plain = |text: &str| !text.chars().any(|c| c.is_control() || confidant_redact::is_invisible(c));
    offer.categories.contains(&prepared.category)
        && offer.models.iter().any(|model| model.name == prepared.selected_model)
        && plain(&prepared.selection_reason)
        && known(&prepared.relevant_app_skills, &skills, MOST_SKILLS)
        && known(&prepared.relevant_app_focus_modes, &offer.focus_modes, MOST_FOCUS_MODES)
        && known(&prepared.relevant_app_settings_and_memories, &offer.settings_and_memories, MOST_SETTINGS)
        && prepared.tags.len() <= MOST_TAGS
        && prepared.tags.iter().all(|tag| plain(tag) && tag.chars().count() <= 40)
        && prepared.icon_names.len() <= MOST_ICONS
        && prepared.icon_names.iter().all(|name| icons::exists(name))
        && prepared
            .title
            .as_ref()
            .is_none_or(|title| plain(title) && title.chars().count() <= tidy::LONGEST_TITLE)
        && (wants_title || (prepared.title.is_none() && prepared.icon_names.is_empty()))
        && languages::code(&prepared.language_code) == Some(prepared.language_code.as_str())
        && Harm::ALL.into_iter().all(|harm| (0.0..=10.0).contains(&prepared.harm.get(harm)))
        && (0.0..=10.0).contains(&prepared.prompt_injection_chance)
}

/// Any JSON, with the form's own field names more often than chance would have them.
fn any_json() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let names = proptest::sample::select(vec![
        "language_code",
        "category",
        "selected_model",
        "selection_reason",
        "harm",
        "illegal",
        "direct_self_harm",
        "prompt_injection_chance",
        "tags",
        "relevant_app_skills",
        "relevant_app_focus_modes",
        "relevant_app_settings_and_memories",
        "title",
        "icon_names",
        "arguments",
    ]);
    let words = proptest::sample::select(vec![
        "web.search",
        "WEB SEARCH",
        "general",
        "small",
        "big model 2",
        "de",
        "NaN",
        "7/10",
        "code",
        "web.research",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,100}".prop_map(Value::from),
        words.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 12, move |inner| {
        let key = prop_oneof![names.clone().prop_map(str::to_owned), ".{0,12}"];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..14)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest::proptest! {
    /// Whatever a model writes about whatever a person says: only offered names, only sane values.
    #[test]
    fn nothing_unsound_comes_out(
        values in proptest::collection::vec(any_json(), 0..4),
        query in ".{0,200}",
        wants_title in proptest::bool::ANY,
    ) {
        let offer = offer();
        let view = View { history: &[], query: &query, wants_title };
        let local = rules(&view, &offer, &gate());
        proptest::prop_assert!(is_sound(&local, &offer, wants_title), "{:?}", serde_json::to_string(&local));
        let found = values.iter().map(|value| read(value, &view, &offer, &gate())).collect();
        let merged = merge(found, local);
        proptest::prop_assert!(is_sound(&merged, &offer, wants_title), "{:?}", serde_json::to_string(&merged));
    }
}

#[test]
fn free_text_goes_through_the_gate_before_it_is_cut() {
    let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\n-----END PRIVATE KEY-----";
    let value = json!({
        "selected_model": "small", "selection_reason": "They wrote from zoe.marker@example.org.",
        "tags": ["mail", "zoe.marker@example.org", "AKIAZ3MSJV4WXQPNLB7H", key],
        "title": format!("{} zoe.marker@example.org", "About the mail to nobody but the one person"),
    });
    let found = found(&value);
    assert_eq!(found.tags, Some(vec!["mail".to_owned()]));
    assert_eq!(found.title.as_deref(), Some("About the mail to nobody but the one person REDACTED:EMAIL"));
    let reason = found.model.unwrap().1.unwrap();
    assert!(!reason.contains("zoe"), "{reason}");
    assert_eq!(self::found(&json!({ "tags": ["keys"], "title": format!("Why {key}") })).title, None);
}
