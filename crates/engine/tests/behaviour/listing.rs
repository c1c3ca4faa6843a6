//! Conversations item by item, what applications list of them, copies, and what they attach.

use std::collections::BTreeMap;

use confidant_engine::room::Audience;
use confidant_engine::turn::{CaughtUp, Listed, ListedWhat, TurnState};
use confidant_engine::{Actor, Error, Session, TenantId, TurnRequest};

use crate::rig::*;

on_every_store! {
    what_was_said_is_listed_and_stays_where_it_is,
    what_is_listed_again_is_kept_once,
    a_turn_follows_the_newest_or_none,
    a_copy_has_what_was_said_up_to_a_turn_and_leaves_the_rest_alone,
    what_is_attached_is_kept_with_its_turn_and_goes_with_it,
    a_tag_leads_to_its_session_within_its_tenant,
}

const ID: &str = "openai:one:main:alice";

fn texts(items: &[ListedWhat]) -> Vec<String> {
    let text = |what: &ListedWhat| match what {
        ListedWhat::Query(text) => format!("query {text}"),
        ListedWhat::Said(text) => format!("said {text}"),
        ListedWhat::Call(call) => format!("call {}", call.name),
        ListedWhat::Result(result) => format!("result {}", result.text),
    };
    items.iter().map(text).collect()
}

async fn listed(session: &Session) -> Vec<String> {
    let listing = session.listing().await.unwrap().unwrap();
    let items: Vec<ListedWhat> =
        listing.turns.into_iter().flat_map(|turn| turn.items).map(|item| item.what).collect();
    texts(&items)
}

fn query(text: &str) -> ListedWhat {
    ListedWhat::Query(text.to_owned())
}

fn answer(text: &str) -> ListedWhat {
    ListedWhat::Said(text.to_owned())
}

async fn catch_up(session: &Session, items: &[ListedWhat], asked: Option<&str>) -> CaughtUp {
    let listed = Listed { items, query: asked, after: None, audience: Audience::Private };
    session.catch_up(listed).await.unwrap()
}

fn private(request: TurnRequest) -> TurnRequest {
    TurnRequest { audience: Some(Audience::Private), ..request }
}

async fn what_was_said_is_listed_and_stays_where_it_is(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let one = session(&engine, ID);
    assert!(one.listing().await.unwrap().is_none());
    one.turn(private(says_as("r1", "first"))).finish().await.unwrap();
    let before = one.listing().await.unwrap().unwrap();
    one.turn(private(says_as("r2", "second"))).finish().await.unwrap();
    stop(engine).await;
    let engine = place.engine(&model).await;
    let one = session(&engine, ID);
    assert_eq!(
        listed(&one).await,
        ["query first", "said noted: first", "query second", "said noted: second"]
    );
    let after = one.listing().await.unwrap().unwrap();
    assert_eq!(before.turns[0].mark, after.turns[0].mark);
    let places = |turn: usize| after.turns[turn].items.iter().map(|item| item.place).collect::<Vec<_>>();
    assert_eq!(places(0), places(1));
    assert_eq!((&after.turns[0].mark, &after.turns[0].state), (&one.mark("r1"), &TurnState::Answered));
    assert_ne!(one.mark("r1"), session(&engine, "openai:two:main:alice").mark("r1"));
}

async fn what_is_listed_again_is_kept_once(place: Place) {
    let engine = place.engine(&Recorder::new()).await;
    let one = session(&engine, ID);
    let items = [query("before"), answer("elsewhere")];
    assert_eq!(catch_up(&one, &items, Some("now")).await.recorded.len(), 2);
    assert!(catch_up(&one, &items, Some("now")).await.recorded.is_empty());
    one.turn(private(says("now"))).finish().await.unwrap();
    let whole = [query("before"), answer("elsewhere"), query("now"), answer("noted: now")];
    assert!(catch_up(&one, &whole, Some("then")).await.recorded.is_empty());
    assert_eq!(listed(&one).await, texts(&whole));
    // A question that was put there before it is asked is answered where it stands, whoever says the answer.
    let put = catch_up(&one, &[query("then")], None).await;
    assert_eq!(put.recorded.len(), 1);
    let asked = catch_up(&one, &whole, Some("then")).await.request_id.unwrap();
    one.turn(private(says_as(&asked, "then"))).finish().await.unwrap();
    catch_up(&one, &[query("last")], None).await;
    assert_eq!(catch_up(&one, &[answer("of theirs")], None).await.recorded.len(), 1);
    assert_eq!(listed(&one).await[4..], ["query then", "said noted: then", "query last", "said of theirs"]);
}

async fn a_turn_follows_the_newest_or_none(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let one = session(&engine, ID);
    let after = |mark: &str, text: &str| TurnRequest { after: Some(mark.to_owned()), ..private(says(text)) };
    assert!(matches!(one.turn(after(&one.mark("r1"), "x")).finish().await, Err(Error::History(_))));
    one.turn(private(says_as("r1", "first"))).finish().await.unwrap();
    // Another process has said more since this one looked.
    let elsewhere = place.engine(&model).await;
    session(&elsewhere, ID).turn(private(says_as("r2", "second"))).finish().await.unwrap();
    assert!(matches!(one.turn(after(&one.mark("r1"), "x")).finish().await, Err(Error::History(_))));
    one.turn(after(&one.mark("r2"), "third")).finish().await.unwrap();
    assert_eq!(listed(&one).await.len(), 6);
    let stale = Listed { items: &[], query: None, after: Some("none"), audience: Audience::Private };
    assert!(matches!(one.catch_up(stale).await, Err(Error::History(_))));
}

async fn a_copy_has_what_was_said_up_to_a_turn_and_leaves_the_rest_alone(place: Place) {
    let engine = place.engine(&Recorder::new()).await;
    let (one, two) = (session(&engine, ID), session(&engine, "openai:two:main:alice"));
    for (id, text) in [("r1", "first"), ("r2", "second"), ("r3", "third")] {
        one.turn(private(says_as(id, text))).finish().await.unwrap();
    }
    assert!(one.fork(&one.mark("r2"), &two).await.unwrap());
    assert_eq!(listed(&two).await.len(), 4);
    two.turn(private(says("other"))).finish().await.unwrap();
    // Asked for again, it is there.
    assert!(one.fork(&one.mark("r1"), &two).await.unwrap());
    assert_eq!((listed(&one).await.len(), listed(&two).await.len()), (6, 6));
    let three = session(&engine, "openai:three:main:alice");
    assert!(!one.fork(&two.mark("r1"), &three).await.unwrap(), "a mark is one of its session");
    assert!(three.listing().await.unwrap().is_none());
}

async fn what_is_attached_is_kept_with_its_turn_and_goes_with_it(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let one = session(&engine, ID);
    let labels = |value: &str| BTreeMap::from([("k".to_owned(), value.to_owned())]);
    one.label(labels("one")).await.unwrap();
    let asked_for = Some(serde_json::json!({ "temperature": 0.5 }));
    let request = TurnRequest {
        labels: labels("two"),
        asked_for: asked_for.clone(),
        ..private(says_as("r1", "first"))
    };
    one.turn(request).finish().await.unwrap();
    one.label(labels("three")).await.unwrap();
    stop(engine).await;
    let engine = place.engine(&model).await;
    let one = session(&engine, ID);
    let listing = one.listing().await.unwrap().unwrap();
    let of_turn = &listing.turns[0].labels[&0];
    assert_eq!((&listing.labels, &of_turn.values), (&labels("three"), &labels("two")));
    assert_eq!(of_turn.asked_for, asked_for);
    assert!(of_turn.done_at >= listing.turns[0].answered_at && of_turn.usage.is_some());
    assert_eq!(one.export().await.unwrap().unwrap().labels.len(), 2);
    assert!(one.remove("r1").await.unwrap());
    assert_eq!(one.export().await.unwrap().unwrap().labels.len(), 1);
    assert!(model.take().iter().all(|prompt| !prompt.contains("two")));
    one.erase().await.unwrap();
    assert!(one.listing().await.unwrap().is_none());
}

async fn a_tag_leads_to_its_session_within_its_tenant(place: Place) {
    let engine = place.engine(&Recorder::new()).await;
    let one = session(&engine, ID);
    let (tenant, other) = (one.scope().tenant().clone(), TenantId::new("elsewhere").unwrap());
    let find = async |tenant: &TenantId| {
        let found = engine.session_of_tag(tenant, &one.tag(), Actor::cli()).await.unwrap();
        found.map(|session| session.id())
    };
    assert_eq!(find(&tenant).await, None, "nothing was said in it");
    one.label(BTreeMap::new()).await.unwrap();
    assert_eq!((find(&tenant).await.as_deref(), find(&other).await), (Some(ID), None));
    assert!(engine.session_of_tag(&tenant, "no tag", Actor::cli()).await.unwrap().is_none());
    one.erase().await.unwrap();
    assert_eq!(find(&tenant).await, None);
}
