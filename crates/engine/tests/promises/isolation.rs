//! Promise 1, nobody else's words; promise 3, room context is never written; promise 10, a narrow audience stays narrow.

use std::collections::HashMap;
use std::sync::Arc;

use confidant_engine::model::ModelError;
use confidant_engine::room::{Audience, RoomContext, RoomLine};
use confidant_engine::{Actor, Error, Parts, Scope, TenantId, TurnRequest, UserId};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::json;

use crate::rig::processing::{Setting, long, looked_at, plain, setting, talk_at_length};
use crate::rig::*;

on_every_store! {
    promise_1_nobody_elses_words,
    promise_10_a_narrow_audience_stays_narrow,
    promise_10_holds_for_what_is_made_of_turns,
    promise_10_what_was_said_in_private_is_not_looked_at_for_a_room,
    promise_10_past_chats_are_told_to_their_person_alone,
    promise_10_a_person_can_let_private_words_reach_rooms,
    promise_1_a_tenant_never_sees_another,
}

/// One step of a random history: who, where, how, and what.
#[derive(Clone, Debug)]
enum Step {
    Turn { person: u8, place: u8, private: bool },
    Restart,
    Forget { person: u8, place: u8 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // 20 people, each in up to 10 places (place 0: keyed by person alone): 200 sessions.
    let turn = (0..20u8, 0..10u8, any::<bool>()).prop_map(|(person, place, private)| Step::Turn {
        person,
        place,
        private,
    });
    let forget = (0..20u8, 0..10u8).prop_map(|(person, place)| Step::Forget { person, place });
    proptest::collection::vec(prop_oneof![60 => turn, 1 => Just(Step::Restart), 3 => forget], 700)
}

fn id(person: u8, place: u8) -> String {
    match place {
        0 => format!("discord_conv:{person}"),
        // Ids that collide when parts are joined carelessly: user `1:2` in `a`, user `2` in `a:1`.
        1 => format!("http:a:main:1%3A{person}"),
        2 => format!("http:a%3A1:main:{person}"),
        _ => format!("!room{place}:x.org:main:@p{person}:x.org"),
    }
}

/// 200 interleaved sessions of 20 people with a marker in each message: no prompt ever holds another scope's marker,
/// one that was forgotten, or a private one in a room turn; and every prompt holds the newest of its own.
async fn promise_1_nobody_elses_words(place: Place) {
    let model = Recorder::new();
    let mut engine = place.engine(&model).await;
    let steps = steps().new_tree(&mut TestRunner::deterministic()).unwrap().current();
    let mut said: HashMap<String, Vec<(String, bool)>> = HashMap::new();
    for (n, step) in steps.into_iter().enumerate() {
        match step {
            Step::Restart => {
                stop(engine).await;
                engine = place.engine(&model).await;
            }
            Step::Forget { person, place } => {
                let id = id(person, place);
                session(&engine, &id).turn(says("forget our conversation")).finish().await.unwrap();
                said.remove(&id);
            }
            Step::Turn { person, place, private } => {
                let id = id(person, place);
                let marker = format!("[m{n}]");
                let room_marker = format!("[r{n}]");
                let room: RoomContext = serde_json::from_value(serde_json::json!([
                    {"sender": "@other:x.org", "content": format!("room says {room_marker}")}
                ]))
                .unwrap();
                let audience = if private { Audience::Private } else { Audience::Room };
                let room = if private { RoomContext::default() } else { room };
                let request =
                    TurnRequest { audience: Some(audience), room, ..says(&format!("I say {marker}")) };
                session(&engine, &id).turn(request).finish().await.unwrap();
                let prompt = model.last();
                let own = said.entry(id).or_default();
                let mut expected: Vec<String> = own
                    .iter()
                    .filter(|(_, was_private)| private || !was_private)
                    .map(|(m, _)| m.clone())
                    .collect();
                expected.push(marker.clone());
                if !private {
                    expected.push(room_marker);
                }
                let found: std::collections::BTreeSet<&str> = prompt
                    .match_indices('[')
                    .filter_map(|(at, _)| prompt[at..].find(']').map(|end| &prompt[at..=at + end]))
                    .collect();
                assert_eq!(found, expected.iter().map(String::as_str).collect(), "step {n}");
                own.push((marker, private));
            }
        }
    }
    stop(engine).await;
}

async fn promise_10_a_narrow_audience_stays_narrow(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let alice = session(&engine, "discord_conv:alice");
    let in_room = |query: &str| TurnRequest { audience: Some(Audience::Room), ..says(query) };
    alice.turn(says("my salary is SECRET-1")).finish().await.unwrap();
    alice.turn(in_room("I like tea")).finish().await.unwrap();
    let answer = alice.turn(in_room("what do you know?")).finish().await.unwrap();
    assert!(!model.last().contains("SECRET-1") && model.last().contains("I like tea"));
    assert_eq!((answer.metadata.withheld, answer.metadata.recalled), (2, 2));
    // In private, both are there; and a room block alone already makes the audience a room.
    alice.turn(says("and now?")).finish().await.unwrap();
    assert!(model.last().contains("SECRET-1") && model.last().contains("I like tea"));
    let room = serde_json::from_str(r#"[{"sender":"bob","content":"hello"}]"#).unwrap();
    alice.turn(TurnRequest { room, ..says("hm?") }).finish().await.unwrap();
    assert!(!model.last().contains("SECRET-1"));
}

/// What is made of private turns is not carried on into what is made of public ones, nor told to the room.
async fn promise_10_holds_for_what_is_made_of_turns(place: Place) {
    let s = setting(&place, |parts| parts.settings.processing.enrich = true).await;
    s.small.says("prepare_turn", plain());
    let summary = |text: &str| json!({ "chat_summary": text, "chat_tags": [text.to_lowercase()] });
    let alice = session(&s.engine, "discord_conv:alice");
    let mut before = Vec::new();
    for (audience, query, made) in [
        (Audience::Private, "my salary is low", "SECRET-1"),
        (Audience::Room, "I like tea", "TEA-1"),
        (Audience::Room, "and coffee?", "TEA-2"),
        (Audience::Private, "what do you know?", "SECRET-2"),
        (Audience::Room, "hello again", "TEA-3"),
    ] {
        s.small.says("enrich_turn", summary(made));
        let request = TurnRequest { audience: Some(audience), ..says(query) };
        alice.turn(request).finish().await.unwrap();
        s.engine.settle().await;
        let material = s.small.asked("enrich_turn").pop().unwrap().1;
        assert!(audience == Audience::Private || !material.contains("SECRET"), "{material}");
        assert!(audience == Audience::Private || !material.contains("secret"), "{material}");
        before.push(material);
    }
    assert!(before[2].contains("TEA-1") && before[4].contains("TEA-2"), "rooms have their own");
    assert!(before[3].contains("SECRET-1 TEA-2") && before[3].contains("tea-2, secret-1"), "{}", before[3]);
    let made = alice.about().await.unwrap().unwrap().enrichment.unwrap();
    assert_eq!(made.chat_summary.as_deref(), Some("TEA-3"), "the person sees the last");
}

/// What was made of a person's other conversations is told to them alone, where the operator wants it, and to nobody else.
async fn promise_10_past_chats_are_told_to_their_person_alone(place: Place) {
    let wants = |past_chats: bool| {
        move |parts: &mut Parts| {
            parts.settings.processing.enrich = true;
            parts.settings.processing.past_chats = past_chats;
        }
    };
    let s = setting(&place, wants(true)).await;
    s.small.says("prepare_turn", plain());
    let scope_in = |tenant: &str, id: &str| Scope::parse(TenantId::new(tenant).unwrap(), id).unwrap();
    for (tenant, id, made) in [
        ("acme", "discord_conv:alice", "They chose heliotrope curtains. [own-1]"),
        ("acme", "http:r:main:alice", "In the room: curtains. [own-2]"),
        ("acme", "cli_conv:alice", "They spoke of bread. [own-3]"),
        ("acme", "discord_conv:bob", "Bob chose heliotrope curtains. [bob]"),
        ("other", "discord_conv:alice", "They chose heliotrope curtains. [tenant]"),
    ] {
        s.small.says("enrich_turn", json!({ "chat_summary": made }));
        s.engine.session(scope_in(tenant, id), Actor::cli()).turn(says("hello")).finish().await.unwrap();
        s.engine.settle().await;
    }
    s.small.fails("enrich_turn", ModelError::Unreachable);
    let told = async |s: &Setting, id: &str, audience: Audience| {
        let request =
            TurnRequest { audience: Some(audience), ..says("Which heliotrope curtains do I have?") };
        session(&s.engine, id).turn(request).finish().await.unwrap();
        let prompt = s.default.prompts.lock().unwrap().last().unwrap().clone();
        let marks = prompt.blocks.iter().flat_map(|block| &block.lines).map(|line| line.text.clone());
        marks.filter_map(|line| Some(line.split_once('[')?.1.to_owned())).collect::<Vec<String>>()
    };
    assert_eq!(told(&s, "a_conv:alice", Audience::Private).await, ["own-1]", "own-2]"], "the best first");
    assert_eq!(
        told(&s, "b_conv:alice", Audience::Room).await,
        Vec::<String>::new(),
        "a room is told of none"
    );
    assert_eq!(told(&s, "a_conv:bob", Audience::Private).await, ["bob]"]);
    assert_eq!(told(&s, "a_conv:carol", Audience::Private).await, Vec::<String>::new());
    // It goes on from its own history.
    assert_eq!(told(&s, "a_conv:alice", Audience::Private).await, Vec::<String>::new());
    // What is forgotten is not told of, and where it is off nothing is.
    session(&s.engine, "discord_conv:alice").erase().await.unwrap();
    assert_eq!(told(&s, "c_conv:alice", Audience::Private).await, ["own-2]"]);
    stop(s.engine).await;
    let s = setting(&place, wants(false)).await;
    s.small.says("prepare_turn", plain());
    assert_eq!(told(&s, "d_conv:alice", Audience::Private).await, Vec::<String>::new());
}

async fn promise_10_a_person_can_let_private_words_reach_rooms(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let alice = session(&engine, "discord_conv:alice");
    let in_room = |query: &str| TurnRequest { audience: Some(Audience::Room), ..says(query) };
    alice.turn(says("my birthday is MAY-1")).finish().await.unwrap();
    let refused = alice.turn(in_room("!share-private on")).finish().await.unwrap_err();
    assert!(matches!(refused, Error::Invalid { .. }));
    alice.turn(says("!share-private on")).finish().await.unwrap();
    stop(engine).await;
    let engine = place.engine(&model).await;
    let alice = session(&engine, "discord_conv:alice");
    alice.turn(in_room("when is my birthday?")).finish().await.unwrap();
    assert!(model.last().contains("MAY-1"));
    alice.turn(says("!share-private off")).finish().await.unwrap();
    alice.turn(in_room("when is my birthday, again?")).finish().await.unwrap();
    assert!(!model.last().contains("MAY-1"));
}

async fn promise_1_a_tenant_never_sees_another(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let other = Scope::parse(TenantId::new("other").unwrap(), "discord_conv:alice").unwrap();
    session(&engine, "discord_conv:alice").turn(says("ACME-ONLY")).finish().await.unwrap();
    engine.session(other, Actor::cli()).turn(says("hello")).finish().await.unwrap();
    assert!(!model.last().contains("ACME-ONLY"));
    let admin = engine.dangerously_administer(Actor::cli());
    let alice = UserId::new("alice").unwrap();
    admin.erase_person(&TenantId::new("other").unwrap(), &alice).await.unwrap();
    assert_eq!(transcript(&engine, "discord_conv:alice").await.len(), 2);
    assert_eq!(admin.sessions(Some(&TenantId::new("other").unwrap()), 10).await.unwrap().len(), 0);
    assert_eq!(admin.sessions(Some(&TenantId::new("acme").unwrap()), 10).await.unwrap().len(), 1);
}

async fn promise_10_what_was_said_in_private_is_not_looked_at_for_a_room(place: Place) {
    let s = long(&place, 280_000).await;
    let alice = session(&s.engine, "discord_conv:alice");
    talk_at_length(&alice).await;
    let room = TurnRequest { audience: Some(Audience::Room), ..says("What was it about?") };
    let blocks = looked_at(&s, &alice, room).await;
    assert!(blocks.len() == 1 && !blocks[0].contains("Chapter"), "{}", blocks.len());
}

/// Compiles only while room context cannot be cloned or serialised: promise 3 is a matter of types.
#[test]
fn promise_3_room_context_has_no_way_to_a_writer() {
    trait Ambiguous<A> {
        fn some() {}
    }
    struct Serialisable;
    struct Cloneable;
    impl<T: ?Sized> Ambiguous<()> for T {}
    impl<T: serde::Serialize + ?Sized> Ambiguous<Serialisable> for T {}
    impl<T: Clone> Ambiguous<Cloneable> for T {}
    // Resolves to exactly one impl only if neither trait is implemented.
    let _ = <RoomContext as Ambiguous<_>>::some;
    let _ = <RoomLine as Ambiguous<_>>::some;
    let shown = format!("{:?}", RoomContext::new(Vec::new()));
    assert_eq!(shown, "RoomContext(0 lines)");
    let _keep: Option<Arc<RoomContext>> = None;
}
