//! Approvals by words in the room: by the right person, once, whatever happens in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use confidant_channel::{Event, MessageId, OutgoingKind, Taken};
use confidant_engine::approval::{Approver, Decider, Decision};
use confidant_engine::model::ToolSpec;
use confidant_engine::tools::{
    Effect, Invocation, Tool, ToolError, ToolOutput, ToolPolicy, ToolRule, Toolbox, Verdict,
};
use confidant_engine::turn::CarryOut;
use confidant_engine::{Actor, Engine, Parts, TurnRequest};
use serde_json::json;

use crate::rig::{Bot, Rig, person, says, whispers};

#[derive(Debug, Default)]
struct Deletes(AtomicUsize);

#[async_trait]
impl Toolbox for Deletes {
    async fn tools(&self) -> Vec<Tool> {
        let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
        let spec = ToolSpec {
            name: "files.delete".to_owned(),
            description: "Deletes.".to_owned(),
            schema,
            strict: None,
        };
        vec![Tool { spec, effect: Effect::Destroys }]
    }

    async fn call(&self, _: Invocation<'_>) -> Result<ToolOutput, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(ToolOutput { text: "deleted".to_owned(), failed: false, cut: false })
    }
}

async fn start(rig: &Rig, tools: &Arc<Deletes>, approvers: Vec<Approver>) -> Bot {
    rig.start_with(asking(rig, tools, approvers)).await
}

fn asking(rig: &Rig, tools: &Arc<Deletes>, approvers: Vec<Approver>) -> impl FnOnce(Parts) -> Parts {
    *rig.model.call.lock().unwrap() = Some("files.delete".to_owned());
    *rig.model.answer.lock().unwrap() = Some("It is done.".to_owned());
    let toolbox = Arc::clone(tools);
    let verdict = Verdict::Approve { approvers, expires: Duration::from_secs(3600) };
    let when = Default::default();
    let rule = ToolRule { tool: "files.*".into(), tenant: None, users: None, when, then: verdict };
    let policy = ToolPolicy::new(vec![rule]);
    move |parts| Parts { toolbox: toolbox as _, policy, ..parts }
}

/// The code of the question that is asked last.
async fn asked(rig: &Rig, questions: usize) -> String {
    let is_question = |one: &crate::rig::Shown| one.kind == OutgoingKind::Question;
    rig.world.until(|shown| shown.iter().filter(|one| is_question(one)).count() >= questions).await;
    let shown = rig.world.shown.lock().unwrap();
    let question = shown.iter().rfind(|one| is_question(one)).unwrap().text().to_owned();
    let at = question.find("`approve ").unwrap() + 9;
    question[at..at + 6].to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_asker_decides_with_the_code_and_nobody_else_does() {
    let rig = Rig::new();
    let tools = Arc::new(Deletes::default());
    let bot = start(&rig, &tools, vec![Approver::Asker]).await;
    // Somebody sees the question, and is quicker than the platform tells the bot that it is there.
    *rig.world.slowness.lock().unwrap() = Duration::from_millis(300);
    bot.take(says("e1", "alice", "delete my notes")).await;
    let code = asked(&rig, 1).await;
    bot.take(says("e2", "mallory", &format!("approve {code}"))).await;
    rig.world.until(|shown| shown.iter().any(|one| one.reply_to == "e2")).await;
    bot.idle().await;
    *rig.world.slowness.lock().unwrap() = Duration::ZERO;
    assert!(rig.world.texts()[1].contains("somebody else must decide"), "{:?}", rig.world.texts());
    assert_eq!(tools.0.load(Ordering::SeqCst), 0);
    bot.take(says("e3", "alice", &format!("approve {code}"))).await;
    rig.world.until(|shown| shown.iter().any(|one| one.text() == "It is done.")).await;
    bot.idle().await;
    assert_eq!(rig.world.shown.lock().unwrap()[2].reply_to, "e1", "answered where it was asked");
    // The question stands, and it is answered once.
    bot.take(says("e4", "alice", &format!("approve {code}"))).await;
    bot.idle().await;
    assert_eq!(tools.0.load(Ordering::SeqCst), 1);
    bot.stop().await;
}

/// A server takes its time for the answer, and meanwhile others see that the turn has ended.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_told_once_however_slowly_it_is_sent() {
    for decided in ["approve", "deny"] {
        for with_code in [true, false] {
            let rig = Rig::new();
            let tools = Arc::new(Deletes::default());
            let bot = start(&rig, &tools, vec![Approver::Asker]).await;
            bot.take(says("e1", "alice", "delete my notes")).await;
            let code = asked(&rig, 1).await;
            bot.idle().await;
            *rig.world.slowness.lock().unwrap() = Duration::from_secs(4);
            let code = if with_code { code.as_str() } else { "" };
            bot.take(says("e2", "alice", &format!("{decided} {code}"))).await;
            rig.world.until(|shown| shown.len() > 1).await;
            bot.idle().await;
            let shown = rig.world.shown.lock().unwrap().clone();
            assert!(shown.len() == 2 && shown[1].text() == "It is done.", "{shown:#?}");
            bot.stop().await;
        }
    }
}

/// Killed between the answer and the note of it: which of the two events told it is not left to chance.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_a_decision_is_told_once_whoever_is_killed_in_between() {
    let rig = Rig::new();
    let tools = Arc::new(Deletes::default());
    let bot = start(&rig, &tools, vec![Approver::Asker]).await;
    bot.take(says("e1", "alice", "delete my notes")).await;
    let code = asked(&rig, 1).await;
    bot.idle().await;
    *rig.world.swallow.lock().unwrap() = true;
    bot.take(says("e2", "alice", &format!("approve {code}"))).await;
    rig.world.swallowed.notified().await;
    bot.kill().await;
    let bot = start(&rig, &tools, vec![Approver::Asker]).await;
    bot.idle().await;
    assert_eq!(rig.world.texts()[1..], ["It is done."]);
    assert_eq!(tools.0.load(Ordering::SeqCst), 1);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_fails_after_its_approval_is_told_once() {
    let rig = Rig::new();
    let tools = Arc::new(Deletes::default());
    let bot = start(&rig, &tools, vec![Approver::Asker]).await;
    bot.take(says("e1", "alice", "delete my notes")).await;
    let code = asked(&rig, 1).await;
    *rig.model.failures.lock().unwrap() = 100;
    bot.take(says("e2", "alice", &format!("approve {code}"))).await;
    rig.world.until(|shown| shown.len() > 1).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    bot.idle().await;
    let shown = rig.world.shown.lock().unwrap().clone();
    assert_eq!(shown.len(), 2, "{shown:#?}");
    assert!(shown[1].text().contains("that has not been undone"), "{shown:#?}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_was_named_decides_for_another_in_the_room() {
    let rig = Rig::new();
    let tools = Arc::new(Deletes::default());
    let bot = start(&rig, &tools, vec![Approver::User("boss".to_owned())]).await;
    bot.take(says("e1", "alice", "delete my notes")).await;
    let code = asked(&rig, 1).await;
    bot.take(says("e2", "alice", &format!("approve {code}"))).await;
    rig.world.until(|shown| shown.iter().any(|one| one.text().contains("somebody else must decide"))).await;
    bot.take(says("e3", "boss", &format!("approve {code}"))).await;
    rig.world.until(|shown| shown.iter().any(|one| one.text() == "It is done.")).await;
    assert_eq!(tools.0.load(Ordering::SeqCst), 1);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_outlives_restarts_is_not_asked_again_and_is_answered_where_it_was_asked() {
    let rig = Rig::new();
    let tools = Arc::new(Deletes::default());
    let bot = start(&rig, &tools, vec![Approver::Asker]).await;
    bot.take(says("e1", "alice", "delete my notes")).await;
    asked(&rig, 1).await;
    bot.idle().await;
    bot.kill().await;
    let bot = start(&rig, &tools, vec![Approver::Asker]).await;
    bot.idle().await;
    assert_eq!(rig.world.texts().len(), 1, "asked again");
    // Decided by another way than the channel, and left to this process.
    let session = bot.engine.session(person("alice"), Actor::cli());
    let approval = session.approvals().await.unwrap().remove(0);
    let by = Decider::Person("alice".to_owned());
    session.decide(&approval.approval_id, Decision::Approve, by, CarryOut::Elsewhere).finish().await.unwrap();
    bot.engine.recover().await.unwrap();
    rig.world
        .until(|shown| shown.iter().any(|one| one.text() == "It is done." && one.reply_to == "e1"))
        .await;
    bot.idle().await;
    assert_eq!((rig.world.texts().len(), tools.0.load(Ordering::SeqCst)), (2, 1));
    bot.stop().await;
}

/// A process that starts looks at each question again. That takes a while if the session is busy; what it shows meanwhile would stay
/// below the question, and in the place of the answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_waits_on_shows_no_progress() {
    let rig = Rig::new();
    let tools = Arc::new(Deletes::default());
    let bot = start(&rig, &tools, vec![Approver::Asker]).await;
    bot.take(says("e1", "alice", "delete my notes")).await;
    asked(&rig, 1).await;
    bot.idle().await;
    bot.kill().await;
    let asking = asking(&rig, &tools, vec![Approver::Asker]);
    *rig.model.call.lock().unwrap() = None;
    rig.model.shut();
    let prompts = rig.model.prompts.lock().unwrap().len();
    let _ = tokio::time::timeout(Duration::ZERO, rig.world.typed.notified()).await;
    let busy = async |engine: Engine| {
        let request = TurnRequest { query: "what else is there?".to_owned(), ..TurnRequest::default() };
        tokio::spawn(engine.session(person("alice"), Actor::cli()).turn(request).finish());
        rig.model.until(prompts + 1).await;
    };
    let bot = rig.start_after(asking, busy).await;
    rig.world.typed.notified().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    rig.model.open();
    bot.idle().await;
    assert_eq!(rig.world.texts().len(), 1, "{:?}", rig.world.texts());
    let session = bot.engine.session(person("alice"), Actor::cli());
    let approval = session.approvals().await.unwrap().remove(0);
    let by = Decider::Person("alice".to_owned());
    session.decide(&approval.approval_id, Decision::Approve, by, CarryOut::Here).finish().await.unwrap();
    rig.world.until(|shown| shown.iter().any(|one| one.text() == "It is done.")).await;
    bot.idle().await;
    assert_eq!((rig.world.texts().len(), tools.0.load(Ordering::SeqCst)), (2, 1));
    bot.stop().await;
}

/// A gateway's worker, or another server: it tells the log, and nobody here.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_process_settles_is_told_where_it_was_asked() {
    let rig = Rig::new();
    let tools = Arc::new(Deletes::default());
    let bot = start(&rig, &tools, vec![Approver::Asker]).await;
    let other = rig.beside(asking(&rig, &tools, vec![Approver::Asker])).await;
    bot.take(says("e1", "alice", "delete my notes")).await;
    asked(&rig, 1).await;
    bot.take(says("e2", "bob", "delete my notes")).await;
    asked(&rig, 2).await;
    // Decided and carried out there.
    let session = other.session(person("alice"), Actor::cli());
    let approval = session.approvals().await.unwrap().remove(0);
    let by = Decider::Person("alice".to_owned());
    session.decide(&approval.approval_id, Decision::Approve, by, CarryOut::Here).finish().await.unwrap();
    rig.world
        .until(|shown| shown.iter().any(|one| one.text() == "It is done." && one.reply_to == "e1"))
        .await;
    // Closed there, since nobody decided.
    rig.clock.advance(Duration::from_secs(3700));
    assert_eq!(other.recover().await.unwrap().expired, 1);
    rig.world
        .until(|shown| shown.iter().any(|one| one.text().contains("has expired") && one.reply_to == "e2"))
        .await;
    bot.idle().await;
    assert_eq!((rig.world.texts().len(), tools.0.load(Ordering::SeqCst)), (4, 1));
    other.stop(Duration::ZERO).await;
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_in_private_is_not_answered_in_a_room() {
    let rig = Rig::new();
    let tools = Arc::new(Deletes::default());
    let bot = start(&rig, &tools, vec![Approver::Asker]).await;
    bot.take(whispers("e1", "alice", "delete my secret notes")).await;
    let code = asked(&rig, 1).await;
    bot.take(says("e2", "alice", &format!("approve {code}"))).await;
    rig.world.until(|shown| shown.iter().any(|one| one.text() == "It is done.")).await;
    bot.idle().await;
    let shown = rig.world.shown.lock().unwrap().clone();
    assert!(shown.iter().all(|one| one.room != "hall-8833" || one.text().starts_with("Done.")), "{shown:#?}");
    assert_eq!(shown.iter().find(|one| one.text() == "It is done.").unwrap().room, "dm-alice");
    bot.stop().await;
}

/// Everything that was ever shown in the room that everybody reads.
fn in_the_hall(rig: &Rig) -> Vec<String> {
    let shown = rig.world.shown.lock().unwrap();
    shown.iter().filter(|one| one.room == "hall-8833").flat_map(|one| one.texts.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_without_a_code_decides_and_tells_nothing_private_in_a_room() {
    let rig = Rig::new();
    let tools = Arc::new(Deletes::default());
    let bot = start(&rig, &tools, vec![Approver::Asker]).await;
    bot.take(whispers("e1", "alice", "delete my secret notes")).await;
    asked(&rig, 1).await;
    bot.take(says("e2", "alice", "approve")).await;
    rig.world.until(|shown| shown.iter().any(|one| one.text() == "It is done.")).await;
    bot.idle().await;
    assert_eq!(in_the_hall(&rig), ["Done. You will find the rest where you asked."]);
    assert_eq!(tools.0.load(Ordering::SeqCst), 1);
    // Where nothing waits it is a word like any other.
    *rig.model.call.lock().unwrap() = None;
    *rig.model.answer.lock().unwrap() = None;
    bot.take(says("e3", "alice", "approve")).await;
    bot.idle().await;
    assert_eq!(in_the_hall(&rig).last().unwrap(), "noted: approve");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_question_of_a_private_turn_is_asked_in_private() {
    let rig = Rig::new();
    let tools = Arc::new(Deletes::default());
    let bot = start(&rig, &tools, vec![Approver::Asker]).await;
    *rig.model.calls.lock().unwrap() = 2;
    bot.take(whispers("e1", "alice", "delete my secret notes")).await;
    let code = asked(&rig, 1).await;
    bot.take(says("e2", "alice", &format!("approve {code}"))).await;
    let code = asked(&rig, 2).await;
    bot.idle().await;
    bot.take(says("e3", "alice", &format!("approve {code}"))).await;
    rig.world.until(|shown| shown.iter().any(|one| one.text() == "It is done.")).await;
    bot.idle().await;
    let hall = in_the_hall(&rig).join("\n");
    assert!(!hall.contains("notes") && !hall.contains("`approve") && !hall.contains("It is done"), "{hall}");
    assert_eq!(tools.0.load(Ordering::SeqCst), 2);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_in_private_is_not_told_to_others_who_came_meanwhile() {
    let rig = Rig::new();
    let tools = Arc::new(Deletes::default());
    let bot = start(&rig, &tools, vec![Approver::Asker]).await;
    bot.take(whispers("e1", "alice", "delete my secret notes")).await;
    asked(&rig, 1).await;
    rig.world.crowded.lock().unwrap().push("dm-alice".to_owned());
    let session = bot.engine.session(person("alice"), Actor::cli());
    let approval = session.approvals().await.unwrap().remove(0);
    let by = Decider::Person("alice".to_owned());
    session.decide(&approval.approval_id, Decision::Approve, by, CarryOut::Elsewhere).finish().await.unwrap();
    bot.engine.recover().await.unwrap();
    rig.world.until(|shown| shown.iter().any(|one| one.text().contains("now others can read here"))).await;
    bot.idle().await;
    let shown = rig.world.shown.lock().unwrap().clone();
    assert!(shown.iter().flat_map(|one| &one.texts).all(|text| text != "It is done."), "{shown:#?}");
    // What is asked there from now on is answered as in any room: without what was said in private.
    *rig.model.call.lock().unwrap() = None;
    bot.take(whispers("e2", "alice", "what did I ask?")).await;
    bot.idle().await;
    assert!(!rig.model.last().contains("secret notes"), "{}", rig.model.last());
    bot.stop().await;
}

/// A sign on one of the bot's messages, by its place among them.
fn points(event: &str, user: &str, text: &str, at: usize) -> Event {
    let Event::Said(said) = says(event, user, text) else { unreachable!() };
    Event::Pointed(said, MessageId(at.to_string()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_on_a_question_decides_also_on_one_that_was_a_draft_before() {
    let rig = Rig::new();
    let tools = Arc::new(Deletes::default());
    let bot = start(&rig, &tools, vec![Approver::Asker]).await;
    bot.take(says("e0", "bob", "!help")).await;
    bot.idle().await;
    *rig.model.aloud.lock().unwrap() = true;
    rig.model.shut();
    bot.take(says("e1", "alice", "delete my notes")).await;
    rig.world.until(|shown| shown.iter().any(|one| one.text() == "Let me see.")).await;
    rig.model.open();
    asked(&rig, 1).await;
    bot.idle().await;
    let help = 0;
    let question =
        rig.world.shown.lock().unwrap().iter().position(|one| one.kind == OutgoingKind::Question).unwrap();
    assert_eq!(bot.take(points("s1", "alice", "approve", help)).await, Taken::Nothing);
    bot.take(points("s2", "mallory", "approve", question)).await;
    bot.idle().await;
    assert_eq!(tools.0.load(Ordering::SeqCst), 0);
    assert_eq!(bot.take(points("s3", "alice", "approve", question)).await, Taken::New);
    bot.idle().await;
    assert_eq!(tools.0.load(Ordering::SeqCst), 1);
    assert_eq!(rig.world.texts().last().unwrap(), "It is done.");
    assert_eq!(bot.take(points("s4", "alice", "approve", question)).await, Taken::Nothing);
    bot.stop().await;
}

/// A question can be seen, and decided, before the platform has told the bot that it is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_counts_that_comes_while_its_question_is_being_sent() {
    for by_sign in [false, true] {
        let rig = Rig::new();
        let tools = Arc::new(Deletes::default());
        let bot = start(&rig, &tools, vec![Approver::Asker]).await;
        *rig.world.slowness.lock().unwrap() = Duration::from_secs(2);
        bot.take(says("e1", "alice", "delete my notes")).await;
        let code = asked(&rig, 1).await;
        *rig.world.slowness.lock().unwrap() = Duration::ZERO;
        let decides = match by_sign {
            true => points("e2", "alice", "approve", 0),
            false => says("e2", "alice", &format!("approve {code}")),
        };
        assert_eq!(bot.take(decides).await, Taken::New, "by a sign: {by_sign}");
        rig.world.until(|shown| shown.iter().any(|one| one.text() == "It is done.")).await;
        bot.idle().await;
        let shown = rig.world.shown.lock().unwrap().clone();
        assert!(shown.len() == 2 && shown[1].reply_to == "e1", "by a sign: {by_sign}: {shown:#?}");
        assert_eq!(tools.0.load(Ordering::SeqCst), 1);
        bot.stop().await;
    }
}
