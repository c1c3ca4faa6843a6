//! Promise 9: one decision per approval, by the right person, for exactly the action shown, before it expires.

use std::sync::Arc;
use std::time::Duration;

use confidant_engine::*;

use crate::on_every_store;
use crate::rig::*;
use crate::tools::{Caller, Counting, engine_at, engine_with_tools, parts_with_tools, rule};

on_every_store! {
    promise_9_an_approved_call_is_made_once,
    promise_9_only_the_right_person_decides,
    promise_9_two_answers_have_one_winner,
    promise_9_a_denied_call_is_not_made,
    promise_9_an_approval_expires_and_says_so,
    promise_9_an_approval_outlives_restarts_and_the_lifetime_of_its_session,
    promise_9_the_rules_are_asked_again,
    promise_9_a_decision_left_to_another_process_is_carried_out_there,
    promise_9_campaign,
    later_messages_are_answered_while_one_waits,
    an_approval_is_decided_by_words_in_the_channel,
    words_that_are_sent_again_decide_nothing_else,
    promise_6_forgetting_ends_what_waits,
    a_waiting_turn_can_be_cancelled,
    what_is_decided_and_not_begun_can_be_taken_back,
    an_approval_is_shown_to_whom_it_concerns,
    a_decision_that_nobody_takes_up_can_be_taken_up,
    a_turn_that_goes_on_is_cancelled_by_its_own_name,
    a_turn_of_another_process_can_be_cancelled,
}

const ID: &str = "http:r:main:alice";
const DELETE: &str = "call files.delete {\"path\":\"/a\"}";

fn alice() -> Decider {
    Decider::Person("alice".into())
}

async fn setting(place: &Place) -> (Arc<Caller>, Arc<Counting>, Engine) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let engine = engine_with_tools(place, &model, &tools, vec![]).await;
    (model, tools, engine)
}

async fn asked(engine: &Engine, id: &str, request: &str, query: &str) -> ApprovalRequest {
    match session(engine, id).turn(says_as(request, query)).end().await.unwrap() {
        Ending::Approval(request) => *request,
        Ending::Answer(answer) => panic!("answered: {}", answer.content),
    }
}

fn runs(tools: &Counting) -> usize {
    tools.runs.lock().unwrap().values().sum()
}

async fn promise_9_an_approved_call_is_made_once(place: Place) {
    let (model, tools, engine) = setting(&place).await;
    let request = asked(&engine, ID, "r1", DELETE).await;
    assert_eq!((request.tool.as_str(), runs(&tools)), ("files.delete", 0));
    // The same request asks the same question.
    assert_eq!(asked(&engine, ID, "r1", DELETE).await, request);
    let alice_session = session(&engine, ID);
    assert_eq!(alice_session.approvals().await.unwrap(), std::slice::from_ref(&request));
    let decide = || alice_session.decide(&request.approval_id, Decision::Approve, alice(), CarryOut::Here);
    let answer = decide().finish().await.unwrap();
    assert!(answer.content.starts_with("Looking.\n\ndone: The tool said"), "{}", answer.content);
    assert!(matches!(decide().finish().await, Err(Error::NoSuchApproval)));
    assert_eq!(runs(&tools), 1);
    assert_eq!(model.prompts.lock().unwrap().len(), 2, "one to call, one to answer");
    let replay = alice_session.turn(says_as("r1", DELETE)).finish().await.unwrap();
    assert!(replay.metadata.replayed && replay.content == answer.content);
    assert!(alice_session.approvals().await.unwrap().is_empty());
}

async fn promise_9_only_the_right_person_decides(place: Place) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let boss = Verdict::Approve {
        approvers: vec![Approver::User("boss".into()), Approver::Admin],
        expires: Duration::from_secs(60),
    };
    let engine = engine_with_tools(&place, &model, &tools, vec![rule("files.*", boss)]).await;
    let request = asked(&engine, ID, "r1", DELETE).await;
    let session = session(&engine, ID);
    for wrong in [alice(), Decider::Person("bob".into())] {
        let turn = session.decide(&request.approval_id, Decision::Approve, wrong, CarryOut::Here);
        assert!(matches!(turn.finish().await, Err(Error::NotYourApproval)));
    }
    // By words, too: it is Alice who says them.
    let words = session.turn(says(&format!("approve {}", request.code))).finish().await;
    assert!(matches!(words, Err(Error::NotYourApproval)));
    // Another tenant does not even learn that it exists.
    let other = TenantId::new("other").unwrap();
    let found = engine.session_of_approval(&other, &request.approval_id, Actor::cli()).await;
    assert!(matches!(found, Err(Error::NoSuchApproval)));
    assert_eq!(runs(&tools), 0);
    let acme = TenantId::new("acme").unwrap();
    let found = engine.session_of_approval(&acme, &request.approval_id, Actor::cli()).await.unwrap();
    let by = Decider::Person("boss".into());
    found.decide(&request.approval_id, Decision::Approve, by, CarryOut::Here).finish().await.unwrap();
    assert_eq!(runs(&tools), 1);
}

async fn promise_9_two_answers_have_one_winner(place: Place) {
    let (_, tools, engine) = setting(&place).await;
    for n in 0..20 {
        let id = format!("http:r:main:alice{n}");
        let request = asked(&engine, &id, "r1", DELETE).await;
        let person = Decider::Person(format!("alice{n}"));
        let turns: Vec<Turn> = (0..6)
            .map(|at| {
                let decision = if at % 2 == 0 { Decision::Approve } else { Decision::Deny };
                session(&engine, &id).decide(&request.approval_id, decision, person.clone(), CarryOut::Here)
            })
            .collect();
        let mut won = 0;
        for turn in turns {
            won += usize::from(turn.finish().await.is_ok());
        }
        assert_eq!(won, 1);
    }
    assert!(tools.runs.lock().unwrap().values().all(|runs| *runs == 1));
}

async fn promise_9_a_denied_call_is_not_made(place: Place) {
    let (_, tools, engine) = setting(&place).await;
    let request = asked(&engine, ID, "r1", DELETE).await;
    let turn = session(&engine, ID).decide(&request.approval_id, Decision::Deny, alice(), CarryOut::Here);
    let answer = turn.finish().await.unwrap();
    assert!(answer.content.contains("it was denied"), "{}", answer.content);
    assert_eq!(runs(&tools), 0);
}

async fn promise_9_an_approval_expires_and_says_so(place: Place) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    let engine = engine_at(&place, &model, &tools, vec![], Arc::clone(&clock) as _).await;
    let request = asked(&engine, ID, "r1", DELETE).await;
    assert_eq!(engine.recover().await.unwrap(), Recovered::default());
    clock.advance(Duration::from_secs(86_401));
    let mut notices = engine.notices();
    assert_eq!(engine.recover().await.unwrap(), Recovered { expired: 1, ..Recovered::default() });
    assert_eq!(engine.recover().await.unwrap(), Recovered::default());
    let notice = notices.try_recv().unwrap();
    assert_eq!(notice.scope, scope(ID));
    assert!(matches!(&notice.outcome, Ok(Ending::Answer(answer)) if answer.content.contains("expired")));
    let turn = session(&engine, ID).decide(&request.approval_id, Decision::Approve, alice(), CarryOut::Here);
    assert!(matches!(turn.finish().await, Err(Error::NoSuchApproval)));
    // Whoever comes too late before anybody swept is told so, and the log says it.
    let request = asked(&engine, ID, "r2", DELETE).await;
    clock.advance(Duration::from_secs(86_401));
    let turn = session(&engine, ID).decide(&request.approval_id, Decision::Approve, alice(), CarryOut::Here);
    assert!(matches!(turn.finish().await, Err(Error::ApprovalExpired)));
    let said = transcript(&engine, ID).await;
    assert_eq!(
        said.iter().filter(|line| line.contains("has expired (files.delete). nothing was done")).count(),
        2
    );
    assert_eq!(runs(&tools), 0);
}

async fn promise_9_an_approval_outlives_restarts_and_the_lifetime_of_its_session(place: Place) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    let days = |n: u64| Duration::from_secs(n * 86_400);
    let week = Verdict::Approve { approvers: vec![Approver::Asker], expires: days(7) };
    let policy = vec![rule("files.delete", week)];
    let engine = engine_at(&place, &model, &tools, policy.clone(), Arc::clone(&clock) as _).await;
    let request = asked(&engine, ID, "r1", DELETE).await;
    stop(engine).await;
    clock.advance(days(6));
    let engine = engine_at(&place, &model, &tools, policy, Arc::clone(&clock) as _).await;
    assert_eq!(engine.sweep().await.unwrap(), 0, "a session lives a day, what waits in it a week");
    assert_eq!(engine.recover().await.unwrap(), Recovered::default());
    let turn = session(&engine, ID).decide(&request.approval_id, Decision::Approve, alice(), CarryOut::Here);
    assert!(turn.finish().await.unwrap().content.contains("done"));
    assert_eq!(runs(&tools), 1);
    clock.advance(days(2));
    assert_eq!(engine.sweep().await.unwrap(), 1, "with nothing waiting, a day is a day");
}

async fn promise_9_the_rules_are_asked_again(place: Place) {
    let (model, tools, engine) = setting(&place).await;
    let request = asked(&engine, ID, "r1", DELETE).await;
    stop(engine).await;
    let forbidden = vec![rule("files.delete", Verdict::Deny)];
    let engine = engine_with_tools(&place, &model, &tools, forbidden).await;
    let turn = session(&engine, ID).decide(&request.approval_id, Decision::Approve, alice(), CarryOut::Here);
    let answer = turn.finish().await.unwrap();
    assert!(answer.content.contains("Not called"), "{}", answer.content);
    assert_eq!(runs(&tools), 0);
}

async fn promise_9_a_decision_left_to_another_process_is_carried_out_there(place: Place) {
    let (model, tools, engine) = setting(&place).await;
    let request = asked(&engine, ID, "r1", DELETE).await;
    let command_line = engine_with_tools(&place, &model, &Arc::new(Counting::default()), vec![]).await;
    let turn = session(&command_line, ID).decide(
        &request.approval_id,
        Decision::Approve,
        alice(),
        CarryOut::Elsewhere,
    );
    turn.finish().await.unwrap();
    stop(command_line).await;
    let mut notices = engine.notices();
    assert_eq!(engine.recover().await.unwrap(), Recovered { resumed: 1, ..Recovered::default() });
    assert_eq!(engine.recover().await.unwrap(), Recovered::default());
    assert!(matches!(&notices.try_recv().unwrap().outcome, Ok(Ending::Answer(_))));
    assert_eq!(runs(&tools), 1);
}

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

async fn words_that_are_sent_again_decide_nothing_else(place: Place) {
    let (model, tools, engine) = setting(&place).await;
    asked(&engine, ID, "r1", DELETE).await;
    let alice_session = session(&engine, ID);
    let answer = alice_session.turn(says_as("w1", "approve")).finish().await.unwrap();
    // The reply was lost, and meanwhile something else waits.
    let second = asked(&engine, ID, "r2", "call files.delete {\"path\":\"/b\"}").await;
    let again = alice_session.turn(says_as("w1", "approve")).finish().await.unwrap();
    assert_eq!((again.content.as_str(), again.metadata.replayed), (answer.content.as_str(), true));
    assert_eq!((runs(&tools), alice_session.approvals().await.unwrap()), (1, vec![second.clone()]));
    // The same from another process, and with a code.
    let words = format!("deny {}", second.code);
    let denied = alice_session.turn(says_as("w2", &words)).finish().await.unwrap();
    let other = engine_with_tools(&place, &model, &tools, vec![]).await;
    for (name, words, content) in [("w1", "approve", answer.content), ("w2", words.as_str(), denied.content)]
    {
        assert_eq!(session(&other, ID).turn(says_as(name, words)).finish().await.unwrap().content, content);
    }
    assert_eq!(runs(&tools), 1);
    // Another message is another word.
    assert!(matches!(alice_session.turn(says_as("w3", &words)).finish().await, Err(Error::NoSuchApproval)));
}

async fn promise_6_forgetting_ends_what_waits(place: Place) {
    let (_, tools, engine) = setting(&place).await;
    let request = asked(&engine, ID, "r1", DELETE).await;
    session(&engine, ID).turn(says("forget our conversation")).finish().await.unwrap();
    let turn = session(&engine, ID).decide(&request.approval_id, Decision::Approve, alice(), CarryOut::Here);
    assert!(matches!(turn.finish().await, Err(Error::NoSuchApproval)));
    assert_eq!(engine.recover().await.unwrap(), Recovered::default());
    assert_eq!(runs(&tools), 0);
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

async fn an_approval_is_shown_to_whom_it_concerns(place: Place) {
    let (_, tools, engine) = setting(&place).await;
    let request = asked(&engine, ID, "r1", DELETE).await;
    let id = request.approval_id.as_str();
    let (session, mallory) = (session(&engine, ID), Decider::Person("mallory".into()));
    assert_eq!(session.approval(id, &alice()).await.unwrap(), request);
    assert!(matches!(session.approval(id, &mallory).await, Err(Error::NotYourApproval)));
    assert!(matches!(session.approval("apr-1-2", &alice()).await, Err(Error::NoSuchApproval)));
    session.decide(id, Decision::Approve, alice(), CarryOut::Elsewhere).finish().await.unwrap();
    assert!(matches!(session.approval(id, &alice()).await, Err(Error::AlreadyDecided("approved"))));
    assert!(matches!(session.approval(id, &mallory).await, Err(Error::NotYourApproval)));
    session.carry_out("r1").finish().await.unwrap();
    assert!(matches!(session.approval(id, &alice()).await, Err(Error::NoSuchApproval)));
    assert_eq!(runs(&tools), 1);
}

async fn began(tools: &Counting, calls: usize) {
    while tools.began.load(std::sync::atomic::Ordering::SeqCst) < calls {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn a_decision_that_nobody_takes_up_can_be_taken_up(place: Place) {
    let (model, tools, engine) = setting(&place).await;
    assert!(!engine.others_alive().await.unwrap());
    let request = asked(&engine, ID, "r1", DELETE).await;
    let other = engine_with_tools(&place, &model, &tools, vec![]).await;
    assert!(engine.others_alive().await.unwrap() && other.others_alive().await.unwrap());
    let (here, there) = (session(&engine, ID), session(&other, ID));
    assert!(
        matches!(here.standing("r1").await.unwrap(), Standing::Ended(Ending::Approval(asked)) if *asked == request)
    );
    assert!(matches!(here.carry_out("r1").finish().await, Err(Error::Busy)), "nobody has decided");
    let by = CarryOut::Elsewhere;
    there.decide(&request.approval_id, Decision::Approve, alice(), by).finish().await.unwrap();
    assert!(matches!(here.standing("r1").await.unwrap(), Standing::Decided));
    // Whoever is first takes it up; the other finds it done.
    let answers = tokio::join!(here.carry_out("r1").finish(), there.carry_out("r1").finish());
    let done = [&answers.0, &answers.1].iter().filter(|answer| answer.is_ok()).count();
    assert_eq!((done, runs(&tools)), (1, 1), "{answers:?}");
    let Standing::Ended(Ending::Answer(answer)) = there.standing("r1").await.unwrap() else { panic!() };
    assert!(answer.content.contains("content of /a"), "{}", answer.content);
    assert!(matches!(here.standing("never").await, Err(Error::Erased)));
    stop(other).await;
    assert!(!engine.others_alive().await.unwrap());
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
    assert_eq!(there.cancel(Some("r2")).await.unwrap(), 0);
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

/// A thousand approvals, while processes end in the middle of things, answers race, the wrong people try, and some run
/// out: none is lost, none is carried out twice, none without a yes.
async fn promise_9_campaign(place: Place) {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    // Longer than any of them waits, so that all can be looked at in the end.
    let lifetimes = Lifetimes { place: Some(Duration::from_secs(3 * 86_400)), ..Lifetimes::default() };
    let open = async || {
        let settings = Settings { lifetimes, ..Settings::default() };
        let parts = parts_with_tools(&place, &model, &tools, vec![]).await;
        Engine::open(Parts { settings, clock: Arc::clone(&clock) as _, ..parts }).await.unwrap()
    };
    let mut engine = open().await;
    // Servers are further away than files.
    let rounds = if place.is_served() { 10 } else { 50 };
    let (mut approved, mut refused) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let mut asked_now = Vec::new();
        for n in 0..20 {
            let id = format!("http:r:main:alice{round}x{n}");
            let path = format!("/p/{round}/{n}");
            asked_now.push((
                id.clone(),
                path.clone(),
                asked(&engine, &id, "r1", &format!("call files.delete {{\"path\":\"{path}\"}}")).await,
            ));
        }
        let mut running = Vec::new();
        for (at, (id, path, request)) in asked_now.iter().enumerate() {
            let person = Decider::Person(id.rsplit(':').next().unwrap().to_owned());
            let by = |by: Decider, decision, carry| {
                session(&engine, id).decide(&request.approval_id, decision, by, carry)
            };
            running.push(by(Decider::Person("mallory".into()), Decision::Approve, CarryOut::Here));
            running.push(by(Decider::Admin, Decision::Approve, CarryOut::Here));
            let carry = if dice.roll(2) == 0 { CarryOut::Here } else { CarryOut::Elsewhere };
            match (at + round) % 5 {
                // Nobody decides: it runs out.
                0 => refused.push((id.clone(), path.clone())),
                1 => {
                    running.push(by(person, Decision::Deny, carry));
                    refused.push((id.clone(), path.clone()));
                }
                _ => {
                    for _ in 0..=dice.roll(3) {
                        running.push(by(person.clone(), Decision::Approve, carry));
                    }
                    approved.push((id.clone(), path.clone()));
                }
            }
        }
        // The process ends somewhere in the middle; whoever had decided asks again after the restart.
        for _ in 0..dice.roll(40) {
            tokio::task::yield_now().await;
        }
        engine.stop(Duration::ZERO).await;
        drop(running);
        engine = open().await;
        engine.recover().await.unwrap();
        for (id, path, request) in &asked_now {
            let person = Decider::Person(id.rsplit(':').next().unwrap().to_owned());
            let decision = if approved.iter().any(|(_, p)| p == path) {
                Decision::Approve
            } else if (asked_now.iter().position(|(i, _, _)| i == id).unwrap() + round) % 5 == 1 {
                Decision::Deny
            } else {
                continue;
            };
            // It was decided before, or it is now.
            let _ = session(&engine, id)
                .decide(&request.approval_id, decision, person, CarryOut::Here)
                .finish()
                .await;
        }
        while engine.recover().await.unwrap() != Recovered::default() {}
    }
    clock.advance(Duration::from_secs(86_401));
    while engine.recover().await.unwrap() != Recovered::default() {}
    assert_eq!(approved.len() + refused.len(), 20 * rounds);
    each_was_carried_out_as_decided(&engine, &tools, &approved, &refused).await;
}

type Asked = (String, String);

async fn each_was_carried_out_as_decided(
    engine: &Engine,
    tools: &Counting,
    approved: &[Asked],
    refused: &[Asked],
) {
    let seen = tools.seen.lock().unwrap().clone();
    let times = |path: &str| seen.iter().filter(|(_, arguments)| arguments["path"] == path).count();
    let mut unknown = 0;
    for (id, path) in approved {
        let said = transcript(engine, id).await.join("\n");
        // The one thing that may go wrong is that the process ended around the call, and that is said.
        let is_unknown = said.contains("is not known");
        unknown += usize::from(is_unknown);
        assert!(times(path) == 1 || (times(path) == 0 && is_unknown), "{path}: {said}");
        assert!(said.contains("\nai:"), "{path} has no answer: {said}");
    }
    for (id, path) in refused {
        assert_eq!(times(path), 0, "{path}");
        let said = transcript(engine, id).await.join("\n");
        assert!(said.contains("denied") || said.contains("expired"), "{path}: {said}");
    }
    assert!(unknown < approved.len() / 2, "{unknown} of {}", approved.len());
    assert!(tools.runs.lock().unwrap().values().all(|runs| *runs == 1));
}

/// The same numbers in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}
