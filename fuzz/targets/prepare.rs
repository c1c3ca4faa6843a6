//! Whatever a person says and whatever a small model makes of it: what comes out names only what was offered, holds
//! only sane values, and nothing that was said closes a fence of the form.

#![no_main]

use std::sync::LazyLock;

use confidant_engine::model::{OfferedModel, PromptMessage, Role as MessageRole};
use confidant_engine::prepare::{Harm, Offer, Prepared, View};
use confidant_engine::{
    fuzzing::is_hidden, fuzzing::prepare_forms, fuzzing::prepare_read, fuzzing::prepare_rules,
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

static OFFER: LazyLock<Offer> = LazyLock::new(|| {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    let model = |name: &str, strength: &str| OfferedModel {
        name: name.to_owned(),
        strengths: vec![strength.to_owned()],
        cost: 1.0,
    };
    Offer {
        categories: names(&["general", "software", "cooking", "beekeeping"]),
        models: vec![model("small", "fast"), model("coder", "coding"), model("seer", "vision")],
        skills: names(&["web.search", "images.generate"])
            .into_iter()
            .map(|n| (n, "Search the web".into()))
            .collect(),
        focus_modes: names(&["web.research"]),
        settings_and_memories: names(&["web.provider", "code.style"]),
    }
});

// The parts of the input are parted by zero bytes: what is asked, what the model says, and the messages before.
fuzz_target!(|input: &[u8]| {
    let Some((flags, rest)) = input.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    let mut parts = text.split('\0');
    let query = parts.next().unwrap_or_default();
    let filled = parts.next().and_then(|json| serde_json::from_str::<Value>(json).ok());
    let history: Vec<PromptMessage> = parts
        .enumerate()
        .map(|(at, text)| PromptMessage {
            role: if at % 2 == 0 { MessageRole::Human } else { MessageRole::Ai },
            text: text.to_owned(),
        })
        .collect();
    let view = View { history: &history, query, wants_title: flags & 1 == 1 };
    check(&prepare_rules(&view, &OFFER), view.wants_title);
    let filled: Vec<Value> = filled.into_iter().collect();
    check(&prepare_read(&filled, &view, &OFFER), view.wants_title);
    for form in prepare_forms(&view, &OFFER) {
        for label in ["tools", "conversation", "request"] {
            assert!(form.material.matches(&format!("{label}>>>")).count() <= 1);
            assert!(form.material.matches(&format!("<<<{label}")).count() <= 1);
        }
    }
});

fn check(prepared: &Prepared, wants_title: bool) {
    let offered = |names: &[String], known: &[String]| names.iter().all(|name| known.contains(name));
    let skills: Vec<String> = OFFER.skills.iter().map(|(name, _)| name.clone()).collect();
    assert!(OFFER.categories.contains(&prepared.category));
    assert!(OFFER.models.iter().any(|model| model.name == prepared.selected_model));
    assert!(offered(&prepared.relevant_app_skills, &skills));
    assert!(offered(&prepared.relevant_app_focus_modes, &OFFER.focus_modes));
    assert!(offered(&prepared.relevant_app_settings_and_memories, &OFFER.settings_and_memories));
    assert!(prepared.language_code.len() == 2 && prepared.tags.len() <= 10 && prepared.icon_names.len() <= 3);
    assert!(wants_title || (prepared.title.is_none() && prepared.icon_names.is_empty()));
    for text in prepared.tags.iter().chain(&prepared.title).chain([&prepared.selection_reason]) {
        assert!(
            text.chars().count() <= 240 && !text.chars().any(|c| c.is_control() || is_hidden(c)),
            "{text:?}"
        );
    }
    let scores =
        Harm::ALL.map(|harm| prepared.harm.get(harm)).into_iter().chain([prepared.prompt_injection_chance]);
    assert!(scores.into_iter().all(|score| (0.0..=10.0).contains(&score)));
}
