//! Turns that wait for an approval: what goes on beside them, words that decide, and how they are called off.

use std::time::Duration;

use confidant_engine::approval::Decision;
use confidant_engine::turn::{CarryOut, Standing};
use confidant_engine::{Error, Recovered};

use crate::rig::tools::{Counting, alice, asked, engine_with_tools, runs, setting};
use crate::rig::*;

on_every_store! {
    later_messages_are_answered_while_one_waits,
    an_approval_is_decided_by_words_in_the_channel,
    a_waiting_turn_can_be_cancelled,
    what_is_decided_and_not_begun_can_be_taken_back,
    a_turn_that_goes_on_is_cancelled_by_its_own_name,
    a_turn_of_another_process_can_be_cancelled,
}

const ID: &str = "http:r:main:alice";
const DELETE: &str = "call files.delete {\"path\":\"/a\"}";

async fn later_messages_are_answered_while_one_waits(place: Place) {
    let (_, tools, engine) = setting(&place).await;
    let request = asked(&engine, ID, "r1", DELETE).await;
    let alice_session = session(&engine, ID);
    for n in 0..130 {
        let answer = alice_session.turn(says(&format!("message {n}"))).finish().await.unwrap();
        assert_eq!(answer.metadata.pending_approvals, 1);
    }
    // However much was said, it is still there, and `approve` without a code is enough where one waits.
    assert_eq!(alice_session.approvals().await.unwrap(), [request]);
    let answer = alice_session.turn(says("approve")).finish().await.unwrap();
    assert!(answer.content.contains("done"));
    assert_eq!((runs(&tools), answer.metadata.pending_approvals), (1, 0));
    // Where none waits, it is a word like any other.
    assert_eq!(alice_session.turn(says("approve")).finish().await.unwrap().content, "done: ");
}

async fn an_approval_is_decided_by_words_in_the_channel(place: Place) {
    let (_, tools, engine) = setting(&place).await;
    let one = asked(&engine, ID, "r1", DELETE).await;
    let two = asked(&engine, ID, "r2", "call files.delete {\"path\":\"/b\"}").await;
    let alice_session = session(&engine, ID);
    let unclear = alice_session.turn(says("approve")).finish().await;
    assert!(matches!(unclear, Err(Error::Invalid { .. })));
    let wrong = alice_session.turn(says("approve ZZZZZZ")).finish().await;
    assert!(matches!(wrong, Err(Error::NoSuchApproval)));
    let answer =
        alice_session.turn(says(&format!("@bot approve {}", two.code.to_lowercase()))).finish().await;
    assert!(answer.unwrap().content.contains("content of /b"));
    let answer = alice_session.turn(says(&format!("!deny {}", one.code))).finish().await.unwrap();
    assert!(answer.content.contains("denied"));
    assert_eq!(runs(&tools), 1);
}

async fn a_waiting_turn_can_be_cancelled(place: Place) {
    let (_, tools, engine) = setting(&place).await;
    let request = asked(&engine, ID, "r1", DELETE).await;
    assert_eq!(session(&engine, ID).turn(says("!cancel")).finish().await.unwrap().content, "Cancelled.");
    let turn = session(&engine, ID).decide(&request.approval_id, Decision::Approve, alice(), CarryOut::Here);
    assert!(matches!(turn.finish().await, Err(Error::NoSuchApproval)));
    assert_eq!(runs(&tools), 0);
}

async fn what_is_decided_and_not_begun_can_be_taken_back(place: Place) {
    let (_, tools, engine) = setting(&place).await;
    let alice_session = session(&engine, ID);
    for (n, how) in ["cancelled", "removed", "amended"].into_iter().enumerate() {
        let name = format!("r{n}");
        let request = asked(&engine, ID, &name, DELETE).await;
        let by = CarryOut::Elsewhere;
        alice_session.decide(&request.approval_id, Decision::Approve, alice(), by).finish().await.unwrap();
        match how {
            "cancelled" => assert_eq!(alice_session.cancel(Some(&name)).await.unwrap(), 1),
            "removed" => assert!(alice_session.remove(&name).await.unwrap()),
            _ => assert!(alice_session.amend(&name, "never mind").await.unwrap()),
        }
        assert_eq!(engine.recover().await.unwrap(), Recovered::default(), "{how}");
    }
    assert_eq!(runs(&tools), 0);
}

async fn began(tools: &Counting, calls: usize) {
    while tools.began.load(std::sync::atomic::Ordering::SeqCst) < calls {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn a_turn_that_goes_on_is_cancelled_by_its_own_name(place: Place) {
    let (_, tools, engine) = setting(&place).await;
    tools.hangs.store(true, std::sync::atomic::Ordering::SeqCst);
    let alice_session = session(&engine, ID);
    for (n, how) in ["decided", "said", "recovered"].into_iter().enumerate() {
        let name = format!("r{n}");
        let request = asked(&engine, ID, &name, &format!("call files.delete {{\"path\":\"{how}\"}}")).await;
        let decide = |by| alice_session.decide(&request.approval_id, Decision::Approve, alice(), by);
        let ended = match how {
            "decided" => tokio::spawn(decide(CarryOut::Here).finish()),
            "said" => tokio::spawn(alice_session.turn(says(&format!("approve {}", request.code))).finish()),
            _ => {
                decide(CarryOut::Elsewhere).finish().await.unwrap();
                let engine = engine.clone();
                tokio::spawn(async move {
                    assert_eq!(engine.recover().await?, Recovered { reported: 1, ..Recovered::default() });
                    Err(Error::Cancelled)
                })
            }
        };
        began(&tools, n + 1).await;
        assert_eq!(alice_session.cancel(Some(&name)).await.unwrap(), 1, "{how}");
        assert!(matches!(ended.await.unwrap(), Err(Error::Cancelled)), "{how}");
        assert!(
            matches!(alice_session.standing(&name).await.unwrap(), Standing::Failed(why) if why == "cancelled")
        );
    }
    assert!(alice_session.turn(says("hello")).finish().await.is_ok());
}

async fn a_turn_of_another_process_can_be_cancelled(place: Place) {
    let (model, tools, engine) = setting(&place).await;
    let other = engine_with_tools(&place, &model, &tools, vec![]).await;
    let (here, there) = (session(&engine, ID), session(&other, ID));
    assert_eq!(there.cancel(None).await.unwrap(), 0);
    // In the middle of a call that is made once.
    tools.hangs.store(true, std::sync::atomic::Ordering::SeqCst);
    let request = asked(&engine, ID, "r1", DELETE).await;
    let deciding = here.decide(&request.approval_id, Decision::Approve, alice(), CarryOut::Here);
    began(&tools, 1).await;
    assert_eq!(there.cancel(Some("r0")).await.unwrap(), 0);
    // A turn here that waits for that one does not hold it up.
    let next = there.turn(says_as("r2", "hello"));
    assert_eq!(there.cancel(Some("r1")).await.unwrap(), 1);
    assert_eq!(next.finish().await.unwrap().content, "done: ");
    tools.release.notify_waiters();
    assert!(matches!(deciding.finish().await, Err(Error::Cancelled)));
    // In the middle of a model's answer.
    model.gate.forget_permits(1_000_000);
    let asked_before = model.prompts.lock().unwrap().len();
    let turn = here.turn(says_as("r3", "hello"));
    while model.prompts.lock().unwrap().len() == asked_before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(there.cancel(None).await.unwrap(), 1);
    model.gate.add_permits(1_000_000);
    assert!(matches!(turn.finish().await, Err(Error::Cancelled)));
    let said = transcript(&engine, ID).await;
    assert_eq!(said, [&format!("human:{DELETE}"), "human:hello", "ai:done: ", "human:hello"]);
    assert_eq!(runs(&tools), 1);
}
