//! Promise 9: one decision per approval, by the right person, for exactly the action shown, before it expires.

use std::sync::Arc;
use std::time::Duration;

use confidant_engine::approval::{Approver, Decider, Decision};
use confidant_engine::clock::{Clock as _, ManualClock, SystemClock};
use confidant_engine::tools::{ToolRule, Verdict};
use confidant_engine::turn::{CarryOut, Ending, Standing};
use confidant_engine::{Actor, Engine, Error, Lifetimes, Parts, Recovered, Settings, TenantId, Turn};

use crate::rig::tools::{
    Caller, Counting, alice, asked, engine_at, engine_with_tools, parts_with_tools, rule, runs, setting,
};
use crate::rig::*;

on_every_store! {
    promise_9_an_approved_call_is_made_once,
    promise_9_only_the_right_person_decides,
    promise_9_two_answers_have_one_winner,
    promise_9_a_denied_call_is_not_made,
    promise_9_an_approval_expires_and_says_so,
    promise_9_an_approval_that_runs_out_beside_a_longer_one_is_closed,
    promise_9_approve_means_the_one_that_can_still_be_decided,
    promise_9_who_repeats_a_decision_hears_that_it_counted,
    promise_9_an_approval_outlives_restarts_and_the_lifetime_of_its_session,
    promise_9_the_rules_are_asked_again,
    promise_9_a_decision_left_to_another_process_is_carried_out_there,
    promise_9_campaign,
    promise_9_words_that_are_sent_again_decide_nothing_else,
    promise_6_forgetting_ends_what_waits,
    promise_9_an_approval_is_shown_to_whom_it_concerns,
    promise_9_a_decision_that_nobody_takes_up_can_be_taken_up,
}

const ID: &str = "http:r:main:alice";
const DELETE: &str = "call files.delete {\"path\":\"/a\"}";

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
    assert!(matches!(decide().finish().await, Err(Error::DecidedByYou("approved"))));
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

const WRITE: &str = "call files.write {\"path\":\"/w\"}";

/// What is deleted can be approved for a week, what is written for a minute.
fn long_and_short() -> Vec<ToolRule> {
    let approve = |seconds| Verdict::Approve {
        approvers: vec![Approver::Asker],
        expires: Duration::from_secs(seconds),
    };
    vec![rule("files.delete", approve(7 * 86_400)), rule("files.write", approve(60))]
}

/// Whoever looked while only the longer one waited must not wait for that one's end: neither the process that asks for the
/// shorter one, nor another.
async fn promise_9_an_approval_that_runs_out_beside_a_longer_one_is_closed(place: Place) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    let engine = engine_at(&place, &model, &tools, long_and_short(), Arc::clone(&clock) as _).await;
    let observer = engine_at(&place, &model, &tools, long_and_short(), Arc::clone(&clock) as _).await;
    asked(&engine, ID, "r1", DELETE).await;
    for (n, closes) in [&engine, &observer].into_iter().enumerate() {
        for one in [&engine, &observer] {
            assert_eq!(one.recover().await.unwrap(), Recovered::default());
        }
        let short = asked(&engine, ID, &format!("short{n}"), WRITE).await;
        assert_eq!(closes.recover().await.unwrap(), Recovered::default());
        clock.advance(Duration::from_secs(61));
        let mut notices = closes.notices();
        assert_eq!(closes.recover().await.unwrap(), Recovered { expired: 1, ..Recovered::default() });
        let notice = notices.try_recv().unwrap();
        assert_eq!((notice.request_id.as_str(), &notice.asked_as), (short.request_id.as_str(), &None));
        let said = session(&engine, ID).turn(says_as(&short.request_id, WRITE)).finish().await.unwrap();
        assert!(said.content.contains("has expired (files.write)"), "{}", said.content);
    }
    assert_eq!(session(&engine, ID).approvals().await.unwrap().len(), 1);
    assert_eq!(runs(&tools), 0);
}

async fn promise_9_approve_means_the_one_that_can_still_be_decided(place: Place) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    let engine = engine_at(&place, &model, &tools, long_and_short(), Arc::clone(&clock) as _).await;
    asked(&engine, ID, "r1", DELETE).await;
    asked(&engine, ID, "r2", WRITE).await;
    let alice_session = session(&engine, ID);
    assert!(matches!(alice_session.turn(says("approve")).finish().await, Err(Error::Invalid { .. })));
    clock.advance(Duration::from_secs(61));
    // Nobody has swept. What ran out is not what is meant, and is not counted.
    assert_eq!(alice_session.turn(says("hello")).finish().await.unwrap().metadata.pending_approvals, 1);
    let answer = alice_session.turn(says("approve")).finish().await.unwrap();
    assert!(answer.content.contains("content of /a"), "{}", answer.content);
    assert_eq!((runs(&tools), answer.metadata.pending_approvals), (1, 0));
    assert!(transcript(&engine, ID).await.iter().any(|line| line.contains("has expired (files.write)")));
    // Beside one that is decided and not carried out, too.
    asked(&engine, ID, "r3", WRITE).await;
    let decided = asked(&engine, ID, "r4", DELETE).await;
    let elsewhere =
        alice_session.decide(&decided.approval_id, Decision::Approve, alice(), CarryOut::Elsewhere);
    elsewhere.finish().await.unwrap();
    assert!(alice_session.turn(says("approve")).finish().await.unwrap().content.contains("content of /w"));
    assert_eq!(runs(&tools), 2);
}

/// The reply may have been lost, or the store have failed: a second word of the same person is the same decision.
async fn promise_9_who_repeats_a_decision_hears_that_it_counted(place: Place) {
    let (_, tools, engine) = setting(&place).await;
    let request = asked(&engine, ID, "r1", DELETE).await;
    let alice_session = session(&engine, ID);
    let decide =
        |decision, carry_out| alice_session.decide(&request.approval_id, decision, alice(), carry_out);
    decide(Decision::Approve, CarryOut::Elsewhere).finish().await.unwrap();
    // Said again before anybody has carried it out, it is what it was; another is told what counts.
    let again = decide(Decision::Approve, CarryOut::Elsewhere).finish().await.unwrap();
    assert!(again.content.starts_with("approved"), "{}", again.content);
    let other = decide(Decision::Deny, CarryOut::Here).finish().await;
    assert!(matches!(other, Err(Error::DecidedByYou("approved"))));
    assert_eq!(runs(&tools), 0);
    let answer = decide(Decision::Approve, CarryOut::Here).finish().await.unwrap();
    assert!(answer.content.contains("content of /a"), "{}", answer.content);
    for decision in [Decision::Approve, Decision::Deny] {
        let late = decide(decision, CarryOut::Here).finish().await;
        assert!(matches!(late, Err(Error::DecidedByYou("approved"))));
    }
    let words = alice_session.turn(says(&format!("approve {}", request.code))).finish().await;
    assert!(matches!(words, Err(Error::DecidedByYou("approved"))));
    assert_eq!(runs(&tools), 1);
    // Nobody else learns of it, and nobody does once it is forgotten.
    let mallory = Decider::Person("mallory".into());
    let theirs = alice_session.decide(&request.approval_id, Decision::Approve, mallory, CarryOut::Here);
    assert!(matches!(theirs.finish().await, Err(Error::NoSuchApproval)));
    alice_session.erase().await.unwrap();
    assert!(matches!(decide(Decision::Approve, CarryOut::Here).finish().await, Err(Error::NoSuchApproval)));
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

async fn promise_9_words_that_are_sent_again_decide_nothing_else(place: Place) {
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
    // Another message is another word, and hears that the first one counted.
    let third = alice_session.turn(says_as("w3", &words)).finish().await;
    assert!(matches!(third, Err(Error::DecidedByYou("denied"))));
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

async fn promise_9_an_approval_is_shown_to_whom_it_concerns(place: Place) {
    let (_, tools, engine) = setting(&place).await;
    let request = asked(&engine, ID, "r1", DELETE).await;
    let id = request.approval_id.as_str();
    let (session, mallory) = (session(&engine, ID), Decider::Person("mallory".into()));
    assert_eq!(session.approval(id, &alice()).await.unwrap(), request);
    assert!(matches!(session.approval(id, &mallory).await, Err(Error::NotYourApproval)));
    assert!(matches!(session.approval("apr-1-2", &alice()).await, Err(Error::NoSuchApproval)));
    session.decide(id, Decision::Approve, alice(), CarryOut::Elsewhere).finish().await.unwrap();
    assert!(matches!(session.approval(id, &alice()).await, Err(Error::DecidedByYou("approved"))));
    assert!(matches!(session.approval(id, &mallory).await, Err(Error::NotYourApproval)));
    session.carry_out("r1").finish().await.unwrap();
    assert!(matches!(session.approval(id, &alice()).await, Err(Error::DecidedByYou("approved"))));
    assert!(matches!(session.approval(id, &mallory).await, Err(Error::NoSuchApproval)));
    assert_eq!(runs(&tools), 1);
}

async fn promise_9_a_decision_that_nobody_takes_up_can_be_taken_up(place: Place) {
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
