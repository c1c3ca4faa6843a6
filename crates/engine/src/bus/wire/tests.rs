use confidant_model::{AttachmentSource, ModelError};

use super::*;
use crate::error::{StoreError, Tampering};
use crate::head::{Digest, Stand};
use crate::room::RoomLine;
use crate::turn::{
    ClientCall, ClientResult, DataRequest, Ending, Final, MemoryState, Metadata, Outbound, Said, SaidBy,
};

fn scope() -> Scope {
    let tenant = TenantId::new("acme").unwrap();
    Scope::parse(tenant, "!abc123:matrix.org:main:@alice:matrix.org").unwrap()
}

fn line(content: &str) -> RoomLine {
    RoomLine {
        sender: "@bob:matrix.org".to_owned(),
        content: content.to_owned(),
        timestamp: 17,
        is_bot: false,
        event_id: Some("$1".to_owned()),
        replaces: None,
        redacted: false,
    }
}

fn errand() -> Errand {
    let digest = Digest::from_bytes([7; 32]);
    let claim = Claim { count: 1, before: digest, after: digest };
    let stand = Some(Stand { count: 0, transcript: digest });
    let (id, text) = ("m1".to_owned(), "before".to_owned());
    let said = Said { id, at: Millis(1), kind: SaidBy::Quoted, text, stand };
    let request = TurnRequest {
        request_id: Some("r-1".to_owned()),
        query: "what did we choose?".to_owned(),
        audience: Some(Audience::Room),
        room: RoomContext::new(vec![line("PostgreSQL")]),
        instructions: Some("be brief".to_owned()),
        brought: vec![PromptMessage { role: Role::Ai, text: "before".to_owned() }],
        tools: vec![ToolSpec {
            name: "get_weather".to_owned(),
            description: String::new(),
            schema: json!({}),
            strict: Some(true),
        }],
        steps: vec![ClientStep {
            text: "let me look".to_owned(),
            calls: vec![ClientCall {
                id: "c1".to_owned(),
                name: "get_weather".to_owned(),
                arguments: json!({}),
            }],
            results: vec![ClientResult { id: "c1".to_owned(), text: "rain".to_owned() }],
        }],
        results: vec![ToolSaid { tool: "get_time".to_owned(), text: "noon".to_owned() }],
        past_chats: vec![PastChat { title: "t".to_owned(), summary: "s".to_owned() }],
        available_settings: vec!["code.style".to_owned()],
        settings: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
        asks: MayAsk { settings: true, search: true, ..MayAsk::default() },
        focus: Some("research".to_owned()),
        title: Some("t".to_owned()),
        claim: Some(claim),
        transcript: Some(digest),
        history: Some(History { said: vec![said], head: claim.head() }),
        titled: true,
        off: SwitchedOff { tools: ["web.*".to_owned()].into(), past_chats: true, ..SwitchedOff::default() },
        safety: Some(SafetyRecord { terminated: true, ..SafetyRecord::default() }),
        after: Some("mark".to_owned()),
        labels: BTreeMap::from([("k".to_owned(), "v".to_owned())]),
        asked_for: Some(json!({ "temperature": 0.5 })),
        attachments: vec![Attachment {
            media_type: "image/png".to_owned(),
            name: None,
            source: AttachmentSource::Data("aGk=".to_owned()),
        }],
        ..TurnRequest::default()
    };
    Errand { scope: Some(scope()), tenant: None, actor: Actor::token("t1"), request }
}

fn call() -> Call {
    Call { attempt: "a1".to_owned(), reply_to: "g1".to_owned(), sent_at: Millis(5_000) }
}

fn other_tenant() -> TenantId {
    TenantId::new("default").unwrap()
}

#[test]
fn a_turn_between_our_roles_arrives_whole() {
    let json = turn(&errand(), &call());
    let read = read_request(&json, Speech::Sealed, &other_tenant()).unwrap();
    assert_eq!(read.call.unwrap().attempt, "a1");
    let Asked::Turn(arrived) = read.asked else { panic!("not a turn") };
    assert_eq!(arrived.scope, Some(scope()));
    assert_eq!(arrived.actor, Actor::token("t1"));
    // The same again on its way back says that nothing was lost.
    assert_eq!(turn(&arrived, &call()), json);
    assert_eq!(arrived.request.room.len(), 1);
    assert_eq!(arrived.request.brought.len(), 1);
    assert_eq!(arrived.request.history, errand().request.history);
    assert_eq!(arrived.request.transcript, errand().request.transcript);
    assert_eq!((arrived.request.claim, arrived.request.off), (errand().request.claim, errand().request.off));
    assert_eq!((arrived.request.safety, arrived.request.titled), (errand().request.safety, true));
    assert_eq!(arrived.request.asks, errand().request.asks);
    assert_eq!(arrived.request.after, errand().request.after);
    assert_eq!(arrived.request.labels, errand().request.labels);
    assert_eq!(arrived.request.asked_for, errand().request.asked_for);
    assert!(arrived.request.attachments == errand().request.attachments);
}

#[test]
fn what_a_turn_wants_of_a_device_goes_there_and_back_between_our_roles() {
    let data_request = DataRequest::Settings(vec!["city".to_owned()]);
    let said = response("r-1", Some("a1"), &Heard::Wants(7, data_request.clone())).unwrap();
    let read = read_response(&said).unwrap();
    let Heard::Wants(7, arrived) = read.heard else { panic!("{:?}", read.heard) };
    assert!(arrived == data_request && read.attempt.as_deref() == Some("a1"));
    assert!(
        response("r-1", None, &Heard::Wants(7, data_request)).is_none(),
        "the first system has no such thing"
    );
    let given = vec![Piece { name: "city".to_owned(), text: "Cork".to_owned() }];
    let json = give(7, given.clone(), call());
    let read = read_request(&json, Speech::Sealed, &other_tenant()).unwrap();
    assert_eq!(read.call.unwrap().attempt, "a1");
    let Asked::Give { number, pieces } = read.asked else { panic!("not what was given") };
    assert!((number, &pieces) == (7, &given));
    // Who is not ours gives nothing.
    assert!(read_request(&json, Speech::Plain, &other_tenant()).is_err());
}

#[test]
fn a_plain_request_gives_itself_no_rights() {
    // It claims a tenant, an actor and a way back; none of that counts.
    let json = turn(&errand(), &call());
    let read = read_request(&json, Speech::Plain, &other_tenant()).unwrap();
    assert!(read.call.is_none());
    let Asked::Turn(arrived) = read.asked else { panic!("not a turn") };
    assert_eq!(arrived.scope.unwrap().tenant(), &other_tenant());
    assert_eq!(arrived.actor, Actor::named("bus"));
    assert_eq!(arrived.request.instructions, None);
    assert_eq!(arrived.tenant, None);
    // And what says nothing of ours is no message of ours.
    let plain = plain_turn(&errand(), "p1", Millis(5_000));
    assert!(read_request(&plain, Speech::Sealed, &other_tenant()).is_err());
    assert!(!String::from_utf8_lossy(&plain).contains("ours"));
}

#[test]
fn a_plain_request_says_what_it_is_called_here_and_there() {
    let read =
        read_request(&plain_turn(&errand(), "p1", Millis(5_000)), Speech::Plain, &other_tenant()).unwrap();
    assert_eq!((read.request_id.as_str(), read.own_name.as_deref()), ("p1", Some("r-1")));
    // Until that is held against the other it is called what everybody hears.
    let Asked::Turn(arrived) = read.asked else { panic!("not a turn") };
    assert_eq!(arrived.request.request_id.as_deref(), Some("p1"));
    for metadata in ["{}", r#"{"request_id":7}"#, r#"{"request_id":null}"#] {
        let json = format!(
            r#"{{"request_id":"1","query":"hi","session_id":"discord_conv:1","room_context":[],"metadata":{metadata}}}"#
        );
        let read = read_request(json.as_bytes(), Speech::Plain, &other_tenant()).unwrap();
        assert_eq!((read.request_id.as_str(), read.own_name), ("1", None), "{metadata}");
    }
}

#[test]
fn a_plain_request_says_who_reads_the_answer_and_one_that_does_not_is_a_rooms() {
    let asked = |json: &[u8]| match read_request(json, Speech::Plain, &other_tenant()).unwrap().asked {
        Asked::Turn(arrived) => arrived.request.audience,
        other => panic!("not a turn: {other:?}"),
    };
    for audience in [Audience::Private, Audience::Room] {
        let request = TurnRequest { audience: Some(audience), ..errand().request };
        assert_eq!(asked(&plain_turn(&Errand { request, ..errand() }, "p1", Millis(5_000))), Some(audience));
    }
    // Keyed by person and without a word of a room: it may still be one, and then nothing private is recalled.
    for metadata in ["{}", r#"{"audience":"everyone"}"#, r#"{"audience":{"private":true}}"#, "null"] {
        let json = format!(
            r#"{{"request_id":"1","query":"hi","session_id":"discord_conv:1","room_context":[],"metadata":{metadata}}}"#
        );
        assert_eq!(asked(json.as_bytes()), Some(Audience::Room), "{metadata}");
    }
}

#[test]
fn a_plain_request_arrives_with_what_it_was_given() {
    let arrived = |json: &[u8]| match read_request(json, Speech::Plain, &other_tenant()).unwrap().asked {
        Asked::Turn(arrived) => arrived.request,
        other => panic!("not a turn: {other:?}"),
    };
    let errand = errand();
    let (there, sent) = (arrived(&plain_turn(&errand, "p1", Millis(5_000))), errand.request);
    assert_eq!((&there.instructions, &there.focus), (&sent.instructions, &sent.focus));
    assert_eq!((there.brought[0].text.as_str(), there.settings), ("before", sent.settings));
    // A stranger has no such word, or means something else by it; and nothing to say is not said.
    for metadata in
        ["{}", r#"{"given":7}"#, r#"{"given":{"instructions":["a"]}}"#, r#"{"given":{"capture":1}}"#]
    {
        let json = format!(
            r#"{{"request_id":"1","query":"hi","session_id":"discord_conv:1","room_context":[],"metadata":{metadata}}}"#
        );
        assert_eq!(arrived(json.as_bytes()).instructions, None, "{metadata}");
    }
    let bare = TurnRequest { query: "hi".to_owned(), ..TurnRequest::default() };
    let bare = plain_turn(&Errand { request: bare, ..self::errand() }, "p1", Millis(5_000));
    assert!(!String::from_utf8_lossy(&bare).contains("given"));
}

#[test]
fn a_turn_without_memory_says_its_tenant_and_is_called_off_by_its_call() {
    let acme = TenantId::new("acme").unwrap();
    let errand = Errand { scope: None, tenant: Some(acme.clone()), ..errand() };
    let read = read_request(&turn(&errand, &call()), Speech::Sealed, &other_tenant()).unwrap();
    let Asked::Turn(arrived) = read.asked else { panic!("not a turn") };
    assert_eq!((arrived.scope, arrived.tenant), (None, Some(acme)));
    let read = read_request(&call_off("r-1", call()), Speech::Sealed, &other_tenant()).unwrap();
    assert!(matches!(read.asked, Asked::CallOff));
    assert_eq!(read.call.unwrap().attempt, "a1");
}

#[test]
fn requests_of_the_first_version_are_understood() {
    let json = br#"{"request_id":"1","query":"hi","metadata":{"room_id":"!r:m.org","user_id":"@a:m.org","timestamp":1}}"#;
    let read = read_request(json, Speech::Plain, &other_tenant()).unwrap();
    let Asked::Turn(arrived) = read.asked else { panic!("not a turn") };
    assert_eq!(arrived.scope.unwrap().session_id(), "!r:m.org:main:@a:m.org");
    for (json, named) in [
        (&b"{"[..], false),
        (br#"{"request_id":"1","query":"hush"}"#, true),
        (br#"{"request_id":"1","query":"hush","session_id":"hush"}"#, true),
    ] {
        let refused = read_request(json, Speech::Plain, &other_tenant()).unwrap_err();
        assert_eq!(refused.request_id.is_some(), named);
        assert!(!refused.why.to_string().contains("hush"), "{}", refused.why);
    }
}

fn back(heard: &Heard) -> Heard {
    let json = response("r-1", Some("a1"), heard).unwrap();
    let read = read_response(&json).unwrap();
    assert_eq!((read.request_id.as_str(), read.attempt.as_deref()), ("r-1", Some("a1")));
    read.heard
}

#[test]
fn responses_between_our_roles_arrive_whole() {
    let mut metadata = Box::new(Metadata::new(MemoryState::Kept, Audience::Private));
    metadata.recalled = 7;
    metadata.memory_error = Some("rolled-back".into());
    metadata.failed_aspects = vec!["profile".into()];
    let answer = Final { request_id: "r-1".to_owned(), content: "hello".to_owned(), metadata };
    let Heard::Event(Outbound::Final(arrived)) = back(&Heard::Event(Outbound::Final(answer.clone()))) else {
        panic!("not an answer")
    };
    assert_eq!((arrived.content, arrived.metadata), (answer.content, answer.metadata));
    let delta = Outbound::Delta { seq: 3, text: "x".to_owned() };
    assert!(matches!(back(&Heard::Event(delta)), Heard::Event(Outbound::Delta { seq: 3, .. })));
    assert!(matches!(back(&Heard::Accepted), Heard::Accepted));
    assert!(matches!(back(&Heard::Alive), Heard::Alive));
    assert!(matches!(back(&Heard::Done), Heard::Done));
}

#[test]
fn a_turn_without_an_answer_says_what_its_worker_alone_knows_of_harm() {
    let safety = SafetyRecord { flagged_for_review: true, ..SafetyRecord::default() };
    let unanswered = || Heard::Unanswered(Box::new(Outbound::Error(Error::Cancelled)), safety);
    let Heard::Unanswered(event, arrived) = back(&unanswered()) else { panic!("no score") };
    assert!(matches!(*event, Outbound::Error(Error::Cancelled)) && arrived == safety);
    // Of a process that does not know of scores, and of one that does not tell any.
    let json = response("r-1", Some("a1"), &unanswered()).unwrap();
    let said: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((&said["message_type"], &said["metadata"]["code"]), (&json!("error"), &json!("cancelled")));
    assert!(matches!(
        back(&Heard::Event(Outbound::Error(Error::Busy))),
        Heard::Event(Outbound::Error(Error::Busy))
    ));
    // The first system has no such word, and whoever speaks in its words is not believed.
    let plain = response("r-1", None, &unanswered()).unwrap();
    assert!(!String::from_utf8_lossy(&plain).contains("safety"));
    let stranger = br#"{"request_id":"r","message_type":"error","metadata":{"code":"busy","safety":{"terminated":true}}}"#;
    assert!(matches!(read_response(stranger).unwrap().heard, Heard::Event(Outbound::Error(Error::Busy))));
}

#[test]
fn errors_keep_their_names_on_the_way() {
    let all = [
        Error::RequestReused,
        Error::AnswerGone,
        Error::Busy,
        Error::Erased,
        Error::AwaitsApproval,
        Error::NoSuchApproval,
        Error::ApprovalExpired,
        Error::NotYourApproval,
        Error::Cancelled,
        Error::Interrupted,
        Error::NoWorker,
        Error::Stopping,
        Error::Internal,
        Error::Store(StoreError::Full),
        Error::Model(ModelError::TimedOut),
        Error::Model(ModelError::Refused(503)),
        Error::Tampered(Tampering::RolledBack),
        Error::Invalid { what: "bad".to_owned(), hint: "better".to_owned() },
    ];
    for error in all {
        let (code, text) = (error.code(), error.to_string());
        let Heard::Event(Outbound::Error(arrived)) = back(&Heard::Event(Outbound::Error(error))) else {
            panic!("not an error")
        };
        assert_eq!((arrived.code(), arrived.to_string()), (code, text));
    }
}

#[test]
fn what_a_log_says_of_a_failed_turn_is_told_by_its_name() {
    for (word, code) in [
        ("cancelled", "cancelled"),
        ("interrupted", "model_failed"),
        ("model_failed", "model_failed"),
        ("storage_full", "storage_full"),
        ("invalid_request", "invalid_request"),
        ("who knows", "internal"),
    ] {
        let error = error(word);
        assert_eq!(error.code(), code, "{word}");
        assert!(error.to_string().contains("; "), "{error}");
    }
}

#[test]
fn a_request_as_other_programs_write_it_is_read_or_answered() {
    let read = |rest: &str| {
        let json = format!(r#"{{"request_id":"r","query":"hi",{rest}}}"#);
        read_request(json.as_bytes(), Speech::Plain, &other_tenant())
    };
    for rest in [
        r#""session_id":"discord_conv:1","room_context":[{"sender":"a","content":"b","timestamp":1700000000.5,"is_bot":null}]"#,
        r#""session_id":"discord_conv:1","room_context":[{"sender":"a","content":"b","timestamp":null,"redacted":null}]"#,
        r#""session_id":"discord_conv:1","metadata":{"user_id":42,"room_id":7}"#,
        r#""session_id":"discord_conv:1","metadata":{"ours":1,"room_id":[],"given":"x"}"#,
        r#""session_id":"discord_conv:1","metadata":"none""#,
        r#""session_id":"discord_conv:1","room_context":null,"metadata":null"#,
        r#""metadata":{"user_id":42,"room_id":"cli:db"}"#,
    ] {
        let Ok(Request { asked: Asked::Turn(_), .. }) = read(rest) else { panic!("not a turn: {rest}") };
    }
    // What cannot be read at all is answered as long as it has a name.
    for rest in
        [r#""session_id":7"#, r#""session_id":"discord_conv:1","room_context":"x""#, r#""metadata":{}"#]
    {
        assert_eq!(read(rest).unwrap_err().request_id.as_deref(), Some("r"), "{rest}");
    }
    assert_eq!(read_request(b"[]", Speech::Plain, &other_tenant()).unwrap_err().request_id, None);
    // And it is said when it was sent.
    let sent: Value = serde_json::from_slice(&plain_turn(&errand(), "p1", Millis(5_000))).unwrap();
    assert_eq!(sent["metadata"]["timestamp"], 5);
}

#[test]
fn a_foreign_workers_answer_is_an_answer() {
    for json in [
        &br#"{"request_id":"r","message_type":"final_response","content":"hello","metadata":{"latency":3}}"#
            [..],
        br#"{"request_id":"r","message_type":"final_response","content":"hello"}"#,
        br#"{"request_id":"r","response":"hello","status":"success"}"#,
    ] {
        let read = read_response(json).unwrap();
        let Heard::Event(Outbound::Final(answer)) = read.heard else { panic!("not an answer") };
        assert_eq!(answer.content, "hello");
    }
    for json in [
        &br#"{"request_id":"r","status":"error","error":"hush"}"#[..],
        br#"{"request_id":"r","error":"hush"}"#,
        br#"{"request_id":"r","response":"","status":"failure","error":null}"#,
        br#"{"request_id":"r","message_type":"error","content":"hush"}"#,
    ] {
        let failed = read_response(json).unwrap();
        let Heard::Event(Outbound::Error(error)) = failed.heard else { panic!("not an error") };
        let said = error.to_string();
        assert!(
            said.contains("the worker that answers reported an error") && !said.contains("hush"),
            "{said}"
        );
    }
    assert!(read_response(br#"{"request_id":"r","message_type":"who knows"}"#).is_none());
}

#[test]
fn a_foreign_workers_question_keeps_its_options() {
    let json = json!({
        "request_id": "r", "message_type": "hitl_request", "content": "Delete 3 records?",
        "metadata": { "options": ["approve", { "label": "deny" }, 7, "", ["?"], "two\nlines"], "timeout_seconds": 3600 },
    });
    let read = read_response(json.to_string().as_bytes()).unwrap();
    let Heard::Event(Outbound::Final(asked)) = read.heard else { panic!("not a question") };
    assert_eq!(asked.content, "Delete 3 records?\n\nAnswer with one of: approve, deny, 7, two lines");
    let question = asked.metadata.asks.unwrap();
    assert_eq!(question.options, ["approve", "deny", "7", "two lines"]);
    assert_eq!((&*question.question, question.timeout_seconds), ("Delete 3 records?", Some(3600)));
    // It may say nothing of options, or all of it in its metadata.
    let json = json!({
        "request_id": "r", "message_type": "hitl_request", "metadata": { "question": "Really?", "options": "any" },
    });
    let read = read_response(json.to_string().as_bytes()).unwrap();
    let Heard::Event(Outbound::Final(asked)) = read.heard else { panic!("not a question") };
    assert_eq!(asked.content, "Really?");
    assert!(asked.metadata.asks.unwrap().options.is_empty());
    // Many and long ones are cut.
    let json = json!({
        "request_id": "r", "message_type": "hitl_request", "content": "?",
        "metadata": { "options": vec!["x".repeat(10_000); 1000] },
    });
    let read = read_response(json.to_string().as_bytes()).unwrap();
    let Heard::Event(Outbound::Final(asked)) = read.heard else { panic!("not a question") };
    assert!(asked.content.len() < 10_000);
}

#[test]
fn a_late_end_is_told_in_the_first_systems_words() {
    let metadata = Box::new(Metadata::new(MemoryState::Kept, Audience::Room));
    let answer = Final { request_id: "own".to_owned(), content: "done".to_owned(), metadata };
    let told: Value = serde_json::from_slice(&late("asked", &Ok(Ending::Answer(answer)))).unwrap();
    assert_eq!(
        (&told["request_id"], &told["message_type"], &told["content"]),
        (&json!("asked"), &json!("final_response"), &json!("done"))
    );
    let told: Value = serde_json::from_slice(&late("asked", &Err(Error::Interrupted))).unwrap();
    assert_eq!((&told["message_type"], &told["metadata"]["code"]), (&json!("error"), &json!("interrupted")));
}
