use super::*;

fn accepted(id: &str) -> Entry {
    Entry::Accepted {
        request_id: id.to_owned(),
        at: Millis(1),
        audience: Audience::Room,
        content: "q".to_owned(),
        tokens: Some(1),
    }
}

fn answered(id: &str) -> Entry {
    let reply = Reply::ai("a".to_owned(), Some(1), "m".to_owned());
    Entry::Answered { request_id: id.to_owned(), at: Millis(2), replies: vec![reply] }
}

#[test]
fn stored_forms_are_pinned() {
    let entries = [
        accepted("r1"),
        Entry::Resumed { request_id: "r1".into(), at: Millis(2) },
        answered("r1"),
        Entry::Failed { request_id: "r1".into(), at: Millis(3), reason: "interrupted".into() },
        Entry::CalledOff { request_id: "r0".into(), at: Millis(3) },
        Entry::Sharing { at: Millis(4), sharing: Sharing::PrivateInRooms },
    ];
    let json: Vec<String> = entries.iter().map(|e| serde_json::to_string(e).unwrap()).collect();
    assert_eq!(
        json,
        [
            r#"{"kind":"accepted","request_id":"r1","at":1,"audience":"room","content":"q","tokens":1}"#,
            r#"{"kind":"resumed","request_id":"r1","at":2}"#,
            r#"{"kind":"answered","request_id":"r1","at":2,"replies":[{"from":"ai","content":"a","tokens":1,"name":"m"}]}"#,
            r#"{"kind":"failed","request_id":"r1","at":3,"reason":"interrupted"}"#,
            r#"{"kind":"called_off","request_id":"r0","at":3}"#,
            r#"{"kind":"sharing","at":4,"sharing":"private_in_rooms"}"#,
        ]
    );
    let mut checkpoint = Checkpoint::default();
    checkpoint.apply(accepted("r1")).unwrap();
    checkpoint.apply(answered("r1")).unwrap();
    checkpoint.apply(accepted("r2")).unwrap();
    assert_eq!(
        serde_json::to_string(&checkpoint).unwrap(),
        concat!(
            r#"{"exchanges":[{"request_id":"r1","at":1,"audience":"room","content":"q","tokens":1,"#,
            r#""outcome":{"is":"answered","at":2,"replies":[{"from":"ai","content":"a","tokens":1,"name":"m"}]}},"#,
            r#"{"request_id":"r2","at":1,"audience":"room","content":"q","tokens":1,"#,
            r#""outcome":{"is":"open","attempts":1}}],"settled":[],"sharing":"keep_private","dropped":0}"#,
        )
    );
}

#[test]
fn what_was_called_off_is_remembered_by_name_and_closes_nothing() {
    let mut checkpoint = Checkpoint::default();
    checkpoint.apply(accepted("r1")).unwrap();
    checkpoint.apply(Entry::CalledOff { request_id: "r2".into(), at: Millis(2) }).unwrap();
    assert!(checkpoint.open_exchange().is_some_and(|open| open.request_id == "r1"));
    assert!(checkpoint.knows("r2") && checkpoint.is_called_off("r2") && !checkpoint.is_called_off("r1"));
    let json = serde_json::to_string(&checkpoint).unwrap();
    assert!(serde_json::from_str::<Checkpoint>(&json).unwrap().revived().is_called_off("r2"));
}

#[test]
fn an_answer_is_never_doubled() {
    let mut checkpoint = Checkpoint::default();
    checkpoint.apply(accepted("r1")).unwrap();
    checkpoint.apply(answered("r1")).unwrap();
    assert_eq!(checkpoint.apply(answered("r1")), Err(OutOfPlace));
    assert_eq!(checkpoint.apply(accepted("r1")), Err(OutOfPlace));
    assert_eq!(checkpoint.apply(Entry::Resumed { request_id: "r1".into(), at: Millis(3) }), Err(OutOfPlace));
}

#[test]
fn trimming_keeps_the_newest_and_remembers_what_was_settled() {
    let mut checkpoint = Checkpoint::default();
    for i in 0..10 {
        checkpoint.apply(accepted(&format!("r{i}"))).unwrap();
        checkpoint.apply(answered(&format!("r{i}"))).unwrap();
    }
    checkpoint.trim(6);
    let kept: Vec<_> = checkpoint.exchanges().iter().map(|e| e.request_id.as_str()).collect();
    assert_eq!(kept, ["r7", "r8", "r9"]);
    assert!(checkpoint.is_settled("r0") && !checkpoint.is_settled("r7"));
    assert!(checkpoint.exchange("r8").is_some_and(|e| e.request_id == "r8"));
    let json = serde_json::to_string(&checkpoint).unwrap();
    let revived = serde_json::from_str::<Checkpoint>(&json).unwrap().revived();
    assert!(revived.exchange("r9").is_some_and(|e| e.request_id == "r9"));
    assert!(revived.exchange("r0").is_none() && revived.is_settled("r0"));
}

#[test]
fn as_many_messages_as_were_taken_over_are_kept() {
    let mut checkpoint = Checkpoint::default();
    let add = |checkpoint: &mut Checkpoint, id: String| {
        checkpoint.apply(accepted(&id)).expect("a new request follows from anything");
        checkpoint.apply(answered(&id)).expect("it was accepted before");
    };
    (0..10).for_each(|i| add(&mut checkpoint, format!("r{i}")));
    let taken = Entry::TakenOver { messages: 20 };
    assert_eq!(
        serde_json::to_string(&taken).expect("entries are JSON"),
        r#"{"kind":"taken_over","messages":20}"#
    );
    checkpoint.apply(taken).expect("it follows from anything");
    checkpoint.trim(6);
    assert_eq!(checkpoint.exchanges().len(), 10);
    // A snapshot remembers it, and what is said later moves the window on.
    let json = serde_json::to_string(&checkpoint).expect("checkpoints are JSON");
    let mut revived = serde_json::from_str::<Checkpoint>(&json).expect("what was just written").revived();
    add(&mut revived, "r10".to_owned());
    revived.trim(6);
    assert_eq!((revived.exchanges().len(), revived.dropped()), (10, 1));
    // Whoever wants nothing kept gets that.
    revived.trim(0);
    assert_eq!(revived.exchanges().len(), 0);
}

#[test]
fn what_older_logs_made_of_turns_is_private() {
    let old = r#"{"exchanges":[],"settled":[],"sharing":"keep_private","dropped":0,
        "about":{"enrichment":{"chat_summary":"s","harmful_response":0.0}}}"#;
    let revived = serde_json::from_str::<Checkpoint>(old).unwrap().revived();
    let audiences: Vec<Audience> = revived.made().iter().map(|made| made.audience).collect();
    assert_eq!(audiences, [Audience::Private]);
    let made = revived.about_with_made().enrichment.unwrap();
    assert_eq!(made.chat_summary.as_deref(), Some("s"));
}

#[test]
fn an_open_exchange_is_never_dropped() {
    let mut checkpoint = Checkpoint::default();
    checkpoint.apply(accepted("r1")).unwrap();
    checkpoint.trim(0);
    assert!(checkpoint.open_exchange().is_some());
}
