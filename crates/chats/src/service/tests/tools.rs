//! What answers may use: the list of it, and a tool that waits for the person's word.

use confidant_chat_format::TurnId;
use confidant_chat_protocol::{
    AiApprovalRequested, Catalogue, CatalogueEntry, DecideAiTask, RequestCatalogue, ResumeAiTask,
};

use super::answers::{answered, ask_event, hear};
use super::*;

#[tokio::test]
async fn a_tool_waits_for_the_persons_word() {
    let (world, _, _ana, mut socket, asker) = answered(false).await;
    let question = asker.question("approve me");
    ask(&mut socket, ask_event(&question)).await.unwrap();
    let approval = loop {
        if let ServerEvent::AiApprovalRequested(approval) = news(&mut socket).await.event {
            break approval;
        }
    };
    let decide = DecideAiTask {
        chat: asker.chat.clone(),
        turn: question.turn.clone(),
        approval: approval.approval,
        allow: true,
    };
    // Of another question, in another chat, of another turn, or by somebody else: refused, and the turn goes on waiting.
    let wrong = [
        DecideAiTask { approval: Text::cut("2"), ..decide.clone() },
        DecideAiTask { chat: ChatId::random(), ..decide.clone() },
        DecideAiTask { turn: TurnId::random(), ..decide.clone() },
    ];
    for wrong in wrong {
        let frames = ask(&mut socket, ClientEvent::DecideAiTask(wrong)).await.unwrap();
        assert_eq!(name(&frames), "not-found");
    }
    let bob = world.register("bob").await;
    let mut theirs = world.connect(&bob).await;
    let frames = ask(&mut theirs, ClientEvent::DecideAiTask(decide.clone())).await.unwrap();
    assert_eq!(name(&frames), "not-found");
    let frames = ask(&mut socket, ClientEvent::DecideAiTask(decide.clone())).await.unwrap();
    assert_eq!(name(&frames), "ai_task_initiated");
    let (words, ended) = hear(&mut socket, &question.turn).await;
    assert_eq!((words.as_str(), ended.proof.is_some()), ("known=0: allowed", true));
    let frames = ask(&mut socket, ClientEvent::DecideAiTask(decide)).await.unwrap();
    assert_eq!(name(&frames), "not-found", "it is decided once");
}

#[tokio::test]
async fn who_comes_later_hears_which_tool_waits_and_how_long_it_still_does() {
    let (world, _, ana, mut socket, asker) = answered(false).await;
    let question = asker.question("approve me");
    ask(&mut socket, ask_event(&question)).await.unwrap();
    let first = waiting(&mut socket).await;
    let resume = ResumeAiTask {
        chat: asker.chat.clone(),
        turn: question.turn.clone(),
        after: question.after,
        from: 0,
        message: Some(question.message.clone()),
        reply: Some(question.reply.clone()),
    };
    let second = world.second(&ana).await;
    let mut two = world.connect(&second).await;
    let asked = |frames: &[ServerFrame]| {
        frames.iter().find_map(|frame| match &frame.event {
            ServerEvent::AiApprovalRequested(asked) => Some(asked.clone()),
            _ => None,
        })
    };
    let frames = ask(&mut two, ClientEvent::ResumeAiTask(resume.clone())).await.unwrap();
    let later = asked(&frames).unwrap();
    assert_eq!((&later.approval, &later.tool), (&first.approval, &first.tool));
    assert!(first.expires_ms <= 86_400_000 && later.expires_ms < first.expires_ms, "{later:?}");
    let (chat, turn) = (asker.chat.clone(), question.turn.clone());
    let decide = DecideAiTask { chat, turn, approval: first.approval, allow: true };
    ask(&mut socket, ClientEvent::DecideAiTask(decide)).await.unwrap();
    hear(&mut two, &question.turn).await;
    // It was decided: whoever comes now is not asked.
    let third = world.second(&ana).await;
    let mut three = world.connect(&third).await;
    let frames = ask(&mut three, ClientEvent::ResumeAiTask(resume)).await.unwrap();
    assert!(asked(&frames).is_none() && frames.iter().any(|one| one.event.name() == "ai_typing_ended"));
}

/// The tool that waits for a word.
async fn waiting(socket: &mut Socket) -> AiApprovalRequested {
    loop {
        if let ServerEvent::AiApprovalRequested(asked) = news(socket).await.event {
            return asked;
        }
    }
}

#[tokio::test]
async fn a_device_is_told_what_answers_may_use_and_a_stranger_is_not() {
    let (world, _, ana, _socket, _) = answered(false).await;
    let path = "/chats/catalogue";
    let caller = world.caller(Some(&ana.session));
    let (told, _): (Catalogue, _) = world.post_as(path, &caller, &RequestCatalogue {}).await.unwrap();
    let names = |list: &[CatalogueEntry]| {
        list.iter().map(|one| one.name.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((names(&told.tools), names(&told.focus_modes)), (vec!["rm".to_owned()], vec!["web.research".to_owned()]));
    assert_eq!(told.focus_modes[0].title.as_ref().map(Text::as_str), Some("Research"));
    assert!(told.whole);
    let stranger = world.post::<Catalogue>(path, &RequestCatalogue {}).await.unwrap_err();
    assert_eq!(stranger.error.name(), "unauthorised");
}
