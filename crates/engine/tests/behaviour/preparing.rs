//! What a small model sees of a conversation before and after the answer: all that is kept, in blocks; whom it is for and
//! what is right; and when a conversation is named.

use std::sync::Arc;

use confidant_engine::TurnRequest;
use confidant_engine::aspects::{Aspect, Aspects, Fixed, Profile, ProfileNote, Slot};
use confidant_engine::model::{PromptMessage, Role as MessageRole};
use serde_json::json;

use crate::rig::processing::{long, looked_at, plain, setting, talk_at_length, with};
use crate::rig::*;

on_every_store! {
    a_long_log_is_looked_at_in_blocks,
    no_more_is_looked_at_than_was_set,
    what_is_made_of_a_turn_knows_ethics_and_profile,
    a_conversation_that_goes_on_elsewhere_is_not_named_again,
    every_turn_has_a_fence_of_its_own,
}

async fn a_long_log_is_looked_at_in_blocks(place: Place) {
    let s = long(&place, 280_000).await;
    let alice = session(&s.engine, "discord_conv:alice");
    talk_at_length(&alice).await;
    let blocks = looked_at(&s, &alice, private("What was it about?")).await;
    assert_eq!(blocks.len(), 3, "156 000 tokens in blocks of at most 70 000");
    for (at, block) in blocks.iter().enumerate() {
        assert!(block.contains(&format!("Part {} of 3 ", at + 1)));
        assert!(block.contains("person: What was it about?"), "the request is in every block");
    }
    let chapters: Vec<usize> = (0..6)
        .filter_map(|n| blocks.iter().position(|block| block.contains(&format!("Chapter {n} begins"))))
        .collect();
    assert_eq!(chapters, [0, 0, 1, 1, 2, 2], "all that is kept, in its order");
    let prompt = s.default.prompts.lock().unwrap().last().unwrap().clone();
    assert!(
        prompt.history.iter().all(|message| !message.text.contains("Chapter 0")),
        "a prompt has no room for it"
    );
}

async fn no_more_is_looked_at_than_was_set(place: Place) {
    let s = long(&place, 60_000).await;
    let alice = session(&s.engine, "discord_conv:alice");
    talk_at_length(&alice).await;
    let blocks = looked_at(&s, &alice, private("What was it about?")).await;
    assert_eq!(blocks.len(), 1);
    let seen: Vec<usize> = (0..6).filter(|n| blocks[0].contains(&format!("Chapter {n} begins"))).collect();
    assert_eq!(seen, [4, 5], "the newest");
}

async fn what_is_made_of_a_turn_knows_ethics_and_profile(place: Place) {
    let s = setting(&place, |parts| {
        parts.settings.processing.enrich = true;
        let ethics: Arc<dyn Aspect> = Arc::new(Fixed::new(Slot::Ethics, "Harm nobody, marker-ethics-5."));
        parts.aspects = Aspects::new(vec![ethics, Arc::new(ProfileNote)]);
    })
    .await;
    s.small.says("prepare_turn", plain());
    s.small.says(
        "enrich_turn",
        json!({ "follow_up_suggestions": ["Draw it", "More on old maps"], "chat_summary": "A greeting to a friend of old maps.",
                "chat_tags": ["greeting", "old maps"], "harmful_response": 0 }),
    );
    let profile = Profile {
        learning_style: Some("visual".into()),
        interests: vec!["old maps".into()],
        ..Profile::default()
    };
    let alice = session(&s.engine, "http:r:main:alice");
    alice.turn(TurnRequest { profile, ..says("Hello there") }).finish().await.unwrap();
    s.engine.settle().await;
    let material = s.small.asked("enrich_turn")[0].1.clone();
    assert!(
        material.contains("learning style: visual") && material.contains("interests: old maps"),
        "{material}"
    );
    assert!(s.small.systems.lock().unwrap().iter().any(|system| system.contains("marker-ethics-5")));
    assert!(!s.small.systems.lock().unwrap().iter().any(|system| system.contains("old maps")), "it is data");
    let made = alice.about().await.unwrap().unwrap().enrichment.unwrap();
    assert_eq!(
        (made.follow_up_suggestions, made.chat_tags),
        (vec!["Draw it".to_owned()], vec!["greeting".to_owned()])
    );
    assert!(!made.chat_summary.unwrap().contains("old maps"), "no profile is kept");
}

async fn a_conversation_that_goes_on_elsewhere_is_not_named_again(place: Place) {
    let s = setting(&place, |_| {}).await;
    s.small.says("prepare_turn", with(json!({ "title": "Named again" })));
    let before = PromptMessage { role: MessageRole::Human, text: "We spoke of bees.".to_owned() };
    let known = TurnRequest { title: Some("Bees".to_owned()), ..says("And wasps?") };
    let brought = TurnRequest { brought: vec![before], ..says("And wasps?") };
    for (at, request) in [known, brought].into_iter().enumerate() {
        let other = session(&s.engine, &format!("http:r:main:user{at}"));
        let answer = other.turn(request).finish().await.unwrap();
        assert_eq!(answer.metadata.preparation.unwrap().title, None);
        // Nor with the next one, which brings nothing along.
        let answer = other.turn(says("Thanks")).finish().await.unwrap();
        assert_eq!(answer.metadata.preparation.unwrap().title, None);
        assert!(other.about().await.unwrap().is_none_or(|about| about.title.is_none()));
    }
    let asked = s.small.asked("prepare_turn");
    assert!(
        asked.iter().all(|(schema, _)| schema["properties"].get("title").is_none()),
        "it is not even asked for"
    );
    // What begins anew, with nobody who knows better, has a name.
    let answer = session(&s.engine, "http:r:main:new").turn(says("And wasps?")).finish().await.unwrap();
    assert_eq!(answer.metadata.preparation.unwrap().title.as_deref(), Some("Named again"));
}

async fn every_turn_has_a_fence_of_its_own(place: Place) {
    let s = setting(&place, |_| {}).await;
    s.small.says("prepare_turn", plain());
    let alice = session(&s.engine, "http:r:main:alice");
    for _ in 0..2 {
        alice.turn(says("Hello there")).finish().await.unwrap();
    }
    let prompts = s.default.prompts.lock().unwrap();
    assert_ne!(prompts[0].fence.close("room"), prompts[prompts.len() - 1].fence.close("room"));
}
