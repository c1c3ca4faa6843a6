//! Stage 1: who asks what, and whether that is acceptable.

use confidant_seal::Scope;

use super::decide::{self, CarryOut, Meant};
use super::outlet::Outlet;
use super::told::{Told, plain_words};
use super::{Ending, Final, Inbound, MemoryState, Metadata, TurnRequest, forgotten};
use crate::about::{FocusChange, Note};
use crate::approval::Decider;
use crate::aspects::Situation;
use crate::audience::{Audience, Sharing};
use crate::audit::Action;
use crate::concepts::InScope;
use crate::engine::Settings;
use crate::entry::Entry;
use crate::error::Error;
use crate::log::Log;
use crate::session::{Session, Wrote};
use crate::tokens;

/// Turns a request into one that later stages need not doubt.
pub(super) fn inbound(
    request: TurnRequest,
    audience: Audience,
    settings: &Settings,
) -> Result<Inbound, Error> {
    let query = request.query;
    if query.trim().is_empty() {
        return Err(invalid("the query is empty", "say something"));
    }
    if query.len() > settings.max_query_bytes {
        let most = settings.max_query_bytes;
        return Err(invalid(
            &format!("the query has more than {most} bytes"),
            "shorten it or send it in parts",
        ));
    }
    let request_id = request.request_id.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
    let printable = |c: char| c.is_ascii_graphic();
    if request_id.is_empty() || request_id.len() > 128 || !request_id.chars().all(printable) {
        let hint = "use up to 128 visible ASCII characters, such as a UUID";
        return Err(invalid("the request_id is not usable", hint));
    }
    Ok(Inbound {
        request_id,
        tokens: tokens::count(&query),
        query,
        audience,
        room: request.room,
        instructions: request.instructions,
        brought: request.brought,
        sampling: request.sampling,
        restore: request.restore,
        profile: request.profile,
        focus: request.focus,
        past_chats: request.past_chats,
        available_settings: request.available_settings,
        settings: request.settings,
        capture: request.capture,
    })
}

/// Who reads the answer when the channel does not say: the narrowest that fits what it does say.
pub(super) fn default_audience(scope: &Scope, request: &TurnRequest) -> Audience {
    match request.audience {
        Some(audience) => audience,
        None if scope.is_person() && request.room.is_empty() => Audience::Private,
        None => Audience::Room,
    }
}

/// Something a person tells the memory itself, not the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Told(Told),
    Share(Sharing),
    /// Starts a focus mode, or ends it.
    Focus(FocusChange),
}

/// The command that a query is, if it is one.
pub(super) fn command(inbound: &Inbound) -> Option<Command> {
    let lower = inbound.query.to_lowercase();
    match plain_words(&lower).as_slice() {
        ["!focus", "off"] => Some(Command::Focus(FocusChange::Off)),
        ["!focus", id] => Some(Command::Focus(FocusChange::On((*id).to_owned()))),
        ["!share-private", "on"] => Some(Command::Share(Sharing::PrivateInRooms)),
        ["!share-private", "off"] => Some(Command::Share(Sharing::KeepPrivate)),
        words => Told::read(words).map(Command::Told),
    }
}

/// Whether a command is one here: `approve` is a word like any other where nothing waits to be approved.
pub(super) async fn is_meant(session: &Session, command: &Command, inbound: &Inbound) -> Result<bool, Error> {
    if !matches!(command, Command::Told(Told::Decide(_, None))) {
        return Ok(true);
    }
    let mut held = session.lock().await?;
    match held.fresh().await {
        Ok(log) => Ok(log
            .map(Log::checkpoint)
            .is_some_and(|log| !log.waiting().is_empty() || log.decided_by(&inbound.request_id).is_some())),
        // The turn itself says what is wrong, and answers without the log.
        Err(Error::Tampered(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Does what the person told the memory.
pub(super) async fn obey(
    session: &Session,
    command: Command,
    inbound: &Inbound,
    outlet: &Outlet,
) -> Result<Ending, Error> {
    let mut metadata = Box::new(Metadata::new(MemoryState::Forgotten, inbound.audience));
    let content = match command {
        Command::Told(Told::Forget) => {
            let id = inbound.request_id.as_str();
            let before = forgotten::receipt(session, id).await?;
            metadata.replayed = before.is_some();
            let receipt = match before {
                Some(receipt) => receipt,
                None => {
                    let receipt = session.erase().await?;
                    forgotten::keep(session, id, &receipt).await?;
                    receipt
                }
            };
            let said =
                "I have erased our conversation: its key is destroyed, and nothing of it can be read again.";
            metadata.receipt = Some(Box::new(receipt));
            said
        }
        // In a room anyone could be talked into it; the choice is made where only the person listens.
        Command::Share(_) if inbound.audience == Audience::Room => {
            return Err(invalid(
                "this choice concerns what you said in private, so it is made in private",
                "send it in a direct message",
            ));
        }
        Command::Share(sharing) => {
            share(session, sharing).await?;
            metadata.memory = MemoryState::Kept;
            match sharing {
                Sharing::PrivateInRooms => "From now on I may recall in rooms what you told me in private.",
                Sharing::KeepPrivate => "What you told me in private stays private again.",
            }
        }
        Command::Focus(change) => {
            let on = matches!(change, FocusChange::On(_));
            focus(session, change, inbound).await?;
            metadata.memory = MemoryState::Kept;
            if on { "The focus mode is on." } else { "No focus mode is on any more." }
        }
        Command::Told(Told::Decide(decision, code)) => {
            let by = Decider::Person(session.scope().user().as_str().to_owned());
            let meant = code.map_or(Meant::Only, Meant::Code);
            let said_as = Some(inbound.request_id.clone());
            let word = decide::Word { meant, decision, by, said_as };
            return decide::decide(session, &word, CarryOut::Here, outlet).await;
        }
        Command::Told(Told::Cancel) => {
            metadata.memory = MemoryState::Kept;
            match session.cancel(None).await? {
                0 => "Nothing was running.",
                _ => "Cancelled.",
            }
        }
    };
    Ok(Ending::Answer(Final {
        request_id: inbound.request_id.clone(),
        content: content.to_owned(),
        metadata,
    }))
}

async fn share(session: &Session, sharing: Sharing) -> Result<(), Error> {
    let mut held = session.lock().await?;
    loop {
        held.log().await?;
        let owner = held.owner();
        let entry = Entry::Sharing { at: session.inner.now(), sharing };
        if held.write(vec![entry], owner, session.record(Action::SessionChoice)).await? == Wrote::Done {
            return Ok(());
        }
    }
}

async fn focus(session: &Session, change: FocusChange, inbound: &Inbound) -> Result<(), Error> {
    let inner = &session.inner;
    if let FocusChange::On(id) = &change {
        let situation = Situation {
            scope: Some(session.scope()),
            audience: inbound.audience,
            now: inner.now(),
            prepared: None,
            profile: &inbound.profile,
            focus: None,
            tools: 0,
            concepts: &InScope::default(),
        };
        let modes = inner.instructions.catalogue(situation).focus_modes;
        if !modes.iter().any(|mode| mode.id == *id) {
            let ids: Vec<&str> = modes.iter().map(|mode| mode.id.as_str()).collect();
            let hint = match ids.as_slice() {
                [] => "none is set up; see docs/INSTRUCTIONS.md".to_owned(),
                ids => format!("there are {}", ids.join(", ")),
            };
            return Err(invalid("there is no such focus mode", &hint));
        }
    }
    let mut held = session.lock().await?;
    loop {
        held.log().await?;
        let (owner, at) = (held.owner(), inner.now());
        let note = Box::new(Note { focus: Some(change.clone()), ..Note::default() });
        let entry = Entry::Noted { request_id: inbound.request_id.clone(), at, note, harm: None };
        if held.write(vec![entry], owner, session.record(Action::SessionChoice)).await? == Wrote::Done {
            return Ok(());
        }
    }
}

fn invalid(what: &str, hint: &str) -> Error {
    Error::Invalid { what: what.to_owned(), hint: hint.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(query: &str) -> Option<Command> {
        let request = TurnRequest { query: query.to_owned(), ..TurnRequest::default() };
        command(&inbound(request, Audience::Private, &Settings::default()).unwrap())
    }

    #[test]
    fn only_the_exact_words_are_commands() {
        for query in [
            "!forget",
            "forget our conversation",
            "@bot forget our conversation.",
            "Please forget our conversation!",
            "@bot:matrix.org: !forget",
        ] {
            assert_eq!(parsed(query), Some(Command::Told(Told::Forget)), "{query}");
        }
        for query in [
            "do not forget our conversation",
            "did you forget our conversation",
            "forget it",
            "what does !forget do?",
            "!forget me not",
        ] {
            assert_eq!(parsed(query), None, "{query}");
        }
        assert_eq!(parsed("!share-private on"), Some(Command::Share(Sharing::PrivateInRooms)));
    }

    #[test]
    fn bad_requests_are_refused_with_a_hint() {
        let too_long = "x".repeat(70_000);
        for (query, id) in [("  ", "r"), (too_long.as_str(), "r"), ("hi", ""), ("hi", "a b"), ("hi", "é")] {
            let request = TurnRequest {
                query: query.to_owned(),
                request_id: Some(id.to_owned()),
                ..TurnRequest::default()
            };
            let error = inbound(request, Audience::Room, &Settings::default()).unwrap_err();
            assert!(error.to_string().contains("; hint: "), "{error}");
        }
    }
}
