//! Chats that only their owner can open, as whoever runs them sees their sessions.

use confidant_engine::clock::Millis;
use confidant_engine::head::{Claim, Digest, Head};
use confidant_engine::turn::{History, Said, SaidBy};
use confidant_engine::{Engine, Keep, Session, TenantId, TurnRequest, WebSessions};

use crate::rig::says_as;

pub(crate) const ACCOUNT: &str = "acct_aaaaaaaaaaaaaaaaaaaaaaaaaa";
pub(crate) const CHAT: &str = "chat_aaaaaaaaaaaaaaaaaaaaaaaaaa";

pub(crate) fn web(engine: &Engine) -> WebSessions {
    engine.web_sessions(TenantId::new("acme").unwrap())
}

pub(crate) fn chat(engine: &Engine, chat: &str) -> Session {
    web(engine).session(ACCOUNT, chat, Keep::Stored).unwrap()
}

pub(crate) fn digest(n: u8) -> Digest {
    Digest::from_bytes([n; 32])
}

pub(crate) fn head(count: u64, n: u8) -> Head {
    Head { count, digest: digest(n) }
}

/// A message after `count` others that stand at `before`; with it and its answer they stand at `after`.
pub(crate) fn asks(id: &str, query: &str, count: u64, before: u8, after: u8) -> TurnRequest {
    let claim = Claim { count, before: digest(before), after: digest(after) };
    TurnRequest { claim: Some(claim), ..says_as(id, query) }
}

pub(crate) fn said(kind: SaidBy, id: &str, text: &str) -> Said {
    Said { id: id.to_owned(), at: Millis(1), kind, text: text.to_owned(), stand: None }
}

/// Two messages that stand at `n`: the person's name, and an answer of this kind.
pub(crate) fn history(kind: SaidBy, answer: &str, n: u8) -> History {
    let said = vec![said(SaidBy::User, "m1", "I am called Ada"), said(kind, "m2", answer)];
    History { said, head: head(2, n) }
}
