//! The laws of contexts and of the log that says why something is in scope.

use super::*;
use crate::contexts::{CaptureRow, CapturesOf, ContextRow, ConversationName, Put, PutContext, WholeContext};

fn conversation(tenant: u8, n: u8) -> ConversationName {
    ConversationName { tenant: tag(tenant), conversation: tag(n) }
}

fn put(name: ConversationName, expected: u64, content: &str) -> PutContext {
    PutContext {
        name,
        kid: kid(1),
        expected,
        content: content.as_bytes().to_vec(),
        updated_at: Millis(i64::try_from(expected).unwrap()),
        archived_at: None,
        expires_at: None,
        capture: None,
        forget: None,
        audit: Vec::new(),
    }
}

fn captured(name: ConversationName, request: u8, scope: u8) -> CaptureRow {
    let at = Millis(i64::from(request));
    CaptureRow {
        name,
        request: tag(request),
        scope: tag(scope),
        person: tag(9),
        at,
        sealed: Sealed::from_bytes(vec![request; 40]),
    }
}

pub(super) async fn a_context_is_compare_and_set_with_its_reason(f: &Fresh) {
    let name = conversation(200, 1);
    assert_eq!(f.store.context(name).await.unwrap(), None);
    let with_reason = |expected| PutContext {
        capture: Some(captured(name, 7, 1)),
        audit: vec![note()],
        ..put(name, expected, "text")
    };
    assert_eq!(f.store.put_context(with_reason(3)).await.unwrap(), Put::Conflict);
    assert!(f.store.captures(CapturesOf::Conversation(name)).await.unwrap().is_empty());
    assert_eq!(f.store.put_context(with_reason(0)).await.unwrap(), Put::Done);
    for expected in [0, 2] {
        let other = PutContext { content: b"other".to_vec(), ..with_reason(expected) };
        assert_eq!(f.store.put_context(other).await.unwrap(), Put::Conflict);
    }
    let other_key = PutContext { kid: kid(2), ..put(name, 1, "other") };
    assert_eq!(f.store.put_context(other_key).await.unwrap(), Put::Conflict);
    let row = f.store.context(name).await.unwrap().unwrap();
    assert_eq!((row.version, row.kid, row.content.as_slice()), (1, kid(1), b"text".as_slice()));
    // What the same turn is the reason for is in it already, and nothing is written.
    let twice = PutContext { content: b"twice".to_vec(), ..with_reason(1) };
    assert_eq!(f.store.put_context(twice).await.unwrap(), Put::Known);
    assert_eq!(f.store.context(name).await.unwrap().unwrap(), row);
    assert_eq!(f.store.captures(CapturesOf::Conversation(name)).await.unwrap(), [captured(name, 7, 1)]);
    assert_eq!(recorded(f).await.len(), 1);
}

pub(super) async fn contexts_of_tenants_never_see_each_other(f: &Fresh) {
    let (ours, theirs) = (conversation(200, 1), conversation(201, 1));
    for name in [ours, theirs] {
        let capture = Some(captured(name, 1, 5));
        f.store.put_context(PutContext { capture, ..put(name, 0, "x") }).await.unwrap();
    }
    f.store.put_context(put(ours, 1, "y")).await.unwrap();
    assert_eq!(f.store.context(theirs).await.unwrap().unwrap().version, 1);
    assert_eq!(f.store.captures(CapturesOf::Tenant(tag(200))).await.unwrap(), [captured(ours, 1, 5)]);
    for name in [ours, theirs] {
        let of = CapturesOf::SessionOf { tenant: name.tenant, scope: tag(5) };
        assert_eq!(f.store.captures(of).await.unwrap(), [captured(name, 1, 5)]);
    }
    assert_eq!(f.store.captures(CapturesOf::Session(tag(5))).await.unwrap().len(), 2);
    assert_eq!(f.store.erase_context(ours, vec![note()]).await.unwrap(), 1);
    assert_eq!(f.store.context(ours).await.unwrap(), None);
    assert_eq!(f.store.captures(CapturesOf::Session(tag(5))).await.unwrap(), [captured(theirs, 1, 5)]);
    assert_eq!(f.store.erase_context(ours, vec![]).await.unwrap(), 0);
}

pub(super) async fn contexts_lose_nothing_under_race(f: &Fresh) {
    let name = conversation(200, 1);
    let mut tasks = Vec::new();
    for writer in 0..64_u8 {
        let store = Arc::clone(&f.store);
        tasks.push(tokio::spawn(async move {
            loop {
                let row = store.context(name).await.unwrap();
                let (version, mut content) = row.map_or((0, Vec::new()), |row| (row.version, row.content));
                content.push(writer);
                let capture = Some(captured(name, writer, writer));
                let write = PutContext { content, capture, ..put(name, version, "") };
                if store.put_context(write).await.unwrap() == Put::Done {
                    break;
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut row = f.store.context(name).await.unwrap().unwrap();
    row.content.sort_unstable();
    assert_eq!((row.version, row.content), (64, (0..64).collect()));
    assert_eq!(f.store.captures(CapturesOf::Conversation(name)).await.unwrap().len(), 64);
}

pub(super) async fn forgetting_a_session_leaves_the_others_captures(f: &Fresh) {
    let (one, two) = (conversation(200, 1), conversation(200, 2));
    let mut version = 0;
    for (request, scope) in [(1, 5), (2, 6), (3, 5)] {
        let capture = Some(captured(one, request, scope));
        f.store.put_context(PutContext { capture, ..put(one, version, "x") }).await.unwrap();
        version += 1;
    }
    f.store.put_context(PutContext { capture: Some(captured(two, 4, 5)), ..put(two, 0, "x") }).await.unwrap();
    let without = PutContext { forget: Some(tag(5)), ..put(one, version, "less") };
    assert_eq!(f.store.put_context(without).await.unwrap(), Put::Done);
    assert_eq!(f.store.captures(CapturesOf::Conversation(one)).await.unwrap(), [captured(one, 2, 6)]);
    assert_eq!(f.store.captures(CapturesOf::Session(tag(5))).await.unwrap(), [captured(two, 4, 5)]);
    // Of one turn, only that one's.
    for (request, version) in [(9, 1), (10, 2)] {
        let capture = Some(captured(two, request, 5));
        assert_eq!(
            f.store.put_context(PutContext { capture, ..put(two, version, "x") }).await.unwrap(),
            Put::Done
        );
    }
    let without = || PutContext { forget: Some(tag(9)), ..put(two, 3, "less") };
    assert_eq!(f.store.put_context(without()).await.unwrap(), Put::Done);
    let again = if f.has_lost_replies { Put::Done } else { Put::Conflict };
    assert_eq!(f.store.put_context(without()).await.unwrap(), again);
    let left = [captured(two, 4, 5), captured(two, 10, 5)];
    assert_eq!(f.store.captures(CapturesOf::Session(tag(5))).await.unwrap(), left);
    assert_eq!(f.store.captures(CapturesOf::Conversation(two)).await.unwrap(), left);
}

pub(super) async fn idle_contexts_are_found_until_they_are_archived(f: &Fresh) {
    for (n, at) in [(1, 10), (2, 20), (3, 30)] {
        let write = PutContext { updated_at: Millis(at), ..put(conversation(200, n), 0, "x") };
        f.store.put_context(write).await.unwrap();
    }
    assert!(f.store.idle_contexts(Millis(10), 10).await.unwrap().is_empty());
    assert_eq!(f.store.idle_contexts(Millis(25), 10).await.unwrap(), [1, 2].map(|n| conversation(200, n)));
    let archived = PutContext { archived_at: Some(Millis(40)), ..put(conversation(200, 1), 1, "x") };
    f.store.put_context(PutContext { updated_at: Millis(10), ..archived }).await.unwrap();
    assert_eq!(f.store.idle_contexts(Millis(25), 10).await.unwrap(), [conversation(200, 2)]);
    let row = f.store.context(conversation(200, 1)).await.unwrap().unwrap();
    assert_eq!((row.updated_at, row.archived_at), (Millis(10), Some(Millis(40))));
    // In use again, it is found again; erased, it is not.
    let again = PutContext { updated_at: Millis(15), ..put(conversation(200, 1), 2, "x") };
    assert_eq!(f.store.put_context(again).await.unwrap(), Put::Done);
    f.store.erase_context(conversation(200, 2), vec![]).await.unwrap();
    assert_eq!(f.store.idle_contexts(Millis(35), 10).await.unwrap(), [1, 3].map(|n| conversation(200, n)));
    assert_eq!(f.store.idle_contexts(Millis(35), 1).await.unwrap(), [conversation(200, 1)]);
    // Used since, it is not idle any more, until it is.
    let used = PutContext { updated_at: Millis(50), ..put(conversation(200, 1), 3, "x") };
    assert_eq!(f.store.put_context(used).await.unwrap(), Put::Done);
    assert_eq!(f.store.idle_contexts(Millis(35), 1).await.unwrap(), [conversation(200, 3)]);
    assert_eq!(f.store.idle_contexts(Millis(60), 10).await.unwrap(), [3, 1].map(|n| conversation(200, n)));
}

pub(super) async fn a_context_that_is_written_twice_is_written_once(f: &Fresh) {
    if !f.has_lost_replies {
        return;
    }
    let name = conversation(200, 1);
    let first =
        || PutContext { capture: Some(captured(name, 7, 5)), audit: vec![note()], ..put(name, 0, "text") };
    for _ in 0..2 {
        assert_eq!(f.store.put_context(first()).await.unwrap(), Put::Done);
    }
    let second = || PutContext { forget: Some(tag(5)), ..put(name, 1, "less") };
    for _ in 0..2 {
        assert_eq!(f.store.put_context(second()).await.unwrap(), Put::Done);
    }
    // The same content for another reason is another write.
    let other = PutContext { capture: Some(captured(name, 8, 5)), ..put(name, 1, "less") };
    assert_eq!(f.store.put_context(other).await.unwrap(), Put::Conflict);
    assert_eq!(f.store.context(name).await.unwrap().unwrap().version, 2);
    assert!(f.store.captures(CapturesOf::Conversation(name)).await.unwrap().is_empty());
}

pub(super) async fn an_adopted_context_stands_as_it_was(f: &Fresh) {
    let (name, beside) = (conversation(200, 1), conversation(200, 2));
    f.store
        .put_context(PutContext { capture: Some(captured(name, 1, 5)), ..put(name, 0, "old") })
        .await
        .unwrap();
    f.store
        .put_context(PutContext { capture: Some(captured(beside, 4, 5)), ..put(beside, 0, "x") })
        .await
        .unwrap();
    let row = |archived_at| ContextRow {
        version: 17,
        kid: kid(3),
        content: b"new".to_vec(),
        updated_at: Millis(20),
        archived_at,
    };
    for archived_at in [Some(Millis(30)), None] {
        let whole = WholeContext {
            row: row(archived_at),
            captures: vec![captured(name, 2, 6), captured(name, 3, 5)],
        };
        f.store.adopt_context(name, whole.clone(), None).await.unwrap();
        assert_eq!(f.store.context(name).await.unwrap(), Some(whole.row));
        assert_eq!(f.store.captures(CapturesOf::Conversation(name)).await.unwrap(), whole.captures);
        let idle = f.store.idle_contexts(Millis(25), 10).await.unwrap();
        assert_eq!(idle.contains(&name), archived_at.is_none());
    }
    let of = async |of| f.store.captures(of).await.unwrap().iter().map(|row| row.request).collect::<Vec<_>>();
    assert_eq!(of(CapturesOf::Session(tag(5))).await, [tag(3), tag(4)]);
    assert_eq!(of(CapturesOf::Session(tag(6))).await, [tag(2)]);
    assert_eq!(of(CapturesOf::Tenant(tag(200))).await, [tag(2), tag(3), tag(4)]);
    // It goes on from there.
    let next = PutContext { kid: kid(3), ..put(name, 17, "more") };
    assert_eq!(f.store.put_context(next).await.unwrap(), Put::Done);
    assert_eq!(f.store.erase_context(name, vec![]).await.unwrap(), 2);
    assert_eq!(of(CapturesOf::Session(tag(5))).await, [tag(4)]);
    assert_eq!(of(CapturesOf::Session(tag(6))).await, []);
}
