//! What the log has of an answered turn besides its answer, for a device that finds the answer there: its own title, and what was made of it.

use std::sync::Arc;
use std::time::Duration;

use confidant_engine::clock::{Clock as _, ManualClock, SystemClock};
use confidant_engine::model::ModelError;
use confidant_engine::turn::{MadeOfIt, Recorded, SwitchedOff};
use confidant_engine::{Session, TurnRequest};
use serde_json::json;

use crate::rig::processing::{Setting, plain, setting, with};
use crate::rig::*;
use crate::web::*;

on_every_store! {
    each_answer_has_its_own_title_and_what_was_made_of_it,
    what_nobody_makes_any_more_is_made_of_the_log_once,
    what_was_given_for_one_answer_is_made_nothing_of_later,
}

async fn with_clock(place: &Place) -> (Setting, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    let s = setting(place, |parts| {
        parts.settings.processing.enrich = true;
        parts.clock = Arc::clone(&clock) as _;
    })
    .await;
    s.small.says("prepare_turn", plain());
    (s, clock)
}

async fn recorded(session: &Session, turn: &str) -> Recorded {
    session.recorded(turn).await.unwrap().unwrap()
}

fn summary(recorded: &Recorded) -> Option<&str> {
    match &recorded.made {
        MadeOfIt::There(made) => made.chat_summary.as_deref(),
        _ => None,
    }
}

/// Longer than whoever answered may be at it.
const LATER: Duration = Duration::from_secs(3600);

async fn each_answer_has_its_own_title_and_what_was_made_of_it(place: Place) {
    let (s, _) = with_clock(&place).await;
    let session = chat(&s.engine, CHAT);
    assert!(session.recorded("t0").await.unwrap().is_none());
    s.small.says("enrich_turn", json!({ "chat_summary": "They met." }));
    session.turn(asks("t0", "Hello", 0, 0, 1)).finish().await.unwrap();
    s.engine.settle().await;
    // The device that has the first answer has named the chat; the second has no title of its own.
    s.small.says("prepare_turn", with(json!({ "title": "Another" })));
    s.small.says("enrich_turn", json!({ "chat_summary": "They went on." }));
    let second = TurnRequest { titled: true, ..asks("t1", "And then?", 2, 1, 2) };
    session.turn(second).finish().await.unwrap();
    s.engine.settle().await;
    let (first, second) = (recorded(&session, "t0").await, recorded(&session, "t1").await);
    assert_eq!((first.title.as_deref(), summary(&first)), (Some("A greeting"), Some("They met.")));
    assert_eq!(first.icon_names, ["smile"]);
    assert_eq!((second.title, summary(&recorded(&session, "t1").await)), (None, Some("They went on.")));
    // A device that never had the first answer asks without a title, and this answer has one.
    session.turn(asks("t2", "Once more", 4, 2, 3)).finish().await.unwrap();
    s.engine.settle().await;
    assert_eq!(recorded(&session, "t2").await.title.as_deref(), Some("Another"));
    stop(s.engine).await;
}

async fn what_nobody_makes_any_more_is_made_of_the_log_once(place: Place) {
    let (s, clock) = with_clock(&place).await;
    let session = chat(&s.engine, CHAT);
    // As if the process went between the answer and what is made of it.
    s.small.fails("enrich_turn", ModelError::TimedOut);
    session.turn(asks("t0", "Hello", 0, 0, 1)).finish().await.unwrap();
    s.engine.settle().await;
    assert!(matches!(recorded(&session, "t0").await.made, MadeOfIt::Soon), "whoever answered may be at it");
    clock.advance(LATER);
    assert!(matches!(recorded(&session, "t0").await.made, MadeOfIt::Left));
    assert!(session.enrich_left("t0").await.is_err(), "it can be tried again");
    s.small.says("enrich_turn", json!({ "chat_summary": "They met." }));
    let made = session.enrich_left("t0").await.unwrap().unwrap();
    assert_eq!(made.chat_summary.as_deref(), Some("They met."));
    assert_eq!(summary(&recorded(&session, "t0").await), Some("They met."));
    let asked = s.small.asked("enrich_turn").len();
    assert!(session.enrich_left("t0").await.unwrap() == Some(made));
    assert_eq!(s.small.asked("enrich_turn").len(), asked, "nobody asks the model again");
    // One that the person switched off is not made, and nor is one of a turn that is not there.
    let off = SwitchedOff { enrichment: true, ..SwitchedOff::default() };
    let request = TurnRequest { off, ..asks("t1", "And then?", 2, 1, 2) };
    session.turn(request).finish().await.unwrap();
    s.engine.settle().await;
    assert!(matches!(recorded(&session, "t1").await.made, MadeOfIt::Nothing));
    for turn in ["t1", "t9"] {
        assert!(session.enrich_left(turn).await.unwrap().is_none());
    }
    assert_eq!(s.small.asked("enrich_turn").len(), asked);
    stop(s.engine).await;
}

/// Nobody could take it out of a summary again: the log does not have it.
async fn what_was_given_for_one_answer_is_made_nothing_of_later(place: Place) {
    let (s, clock) = with_clock(&place).await;
    let session = chat(&s.engine, CHAT);
    s.small.fails("enrich_turn", ModelError::TimedOut);
    let settings = [("city".to_owned(), "corkmarkerium".to_owned())].into();
    let request = TurnRequest { settings, ..asks("t0", "Where do I live?", 0, 0, 1) };
    session.turn(request).finish().await.unwrap();
    s.engine.settle().await;
    clock.advance(LATER);
    s.small.says("enrich_turn", json!({ "chat_summary": "They live in corkmarkerium." }));
    let asked = s.small.asked("enrich_turn").len();
    assert!(matches!(recorded(&session, "t0").await.made, MadeOfIt::Nothing));
    assert!(session.enrich_left("t0").await.unwrap().is_none());
    assert_eq!(s.small.asked("enrich_turn").len(), asked);
    stop(s.engine).await;
}
