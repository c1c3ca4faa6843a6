//! Stage 1: who asks what, and whether that is acceptable.

use confidant_model::{Attachment, AttachmentSource, Models};
use confidant_seal::Scope;

use super::after::decide::{self, CarryOut, Meant};
use super::after::{forgotten, remote};
use super::handed;
use super::outbound::{Ending, Final, MemoryState, Metadata};
use super::outlet::Outlet;
use super::request::{Inbound, SwitchedOff, TurnRequest};
use super::spoken::SpokenCommand;
use crate::about::{FocusChange, Note};
use crate::approval::Decider;
use crate::aspects::Situation;
use crate::audience::{Audience, Sharing};
use crate::concepts::InScope;
use crate::error::Error;
use crate::ledger::audit::Action;
use crate::ledger::entry::Entry;
use crate::ledger::erasures::Asked;
use crate::ledger::log::Log;
use crate::ledger::session::{Session, Wrote};
use crate::ledger::web_scope::is_web;
use crate::settings::Settings;

/// Turns a request into one that later stages need not doubt.
pub(super) fn inbound(
    mut request: TurnRequest,
    audience: Audience,
    settings: &Settings,
) -> Result<Inbound, Error> {
    handed::check(&request)?;
    let query = &request.query;
    // What goes on with a turn need not say again what that was asked.
    if query.trim().is_empty() && request.steps.is_empty() {
        return Err(invalid("the query is empty", "say something"));
    }
    if query.len() > settings.max_query_bytes {
        let most = settings.max_query_bytes;
        return Err(invalid(
            &format!("the query is longer than {most} bytes"),
            "shorten it or send it in parts",
        ));
    }
    let request_id = request.request_id.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
    let printable = |c: char| c.is_ascii_graphic();
    if request_id.is_empty() || request_id.len() > 128 || !request_id.chars().all(printable) {
        let hint = "use up to 128 visible ASCII characters, such as a UUID";
        return Err(invalid("the request_id is not valid", hint));
    }
    if request.attachments.len() > MOST_ATTACHMENTS || bytes_of(&request.attachments) > LARGEST_ATTACHMENTS {
        return Err(invalid(
            "there are too many images or files, or too large ones",
            "send up to 16, of 20 MiB together",
        ));
    }
    SwitchedOff::strip(&mut request);
    Ok(Inbound { request_id, audience, tokens: 0, request })
}

/// In bytes of base64.
fn bytes_of(attachments: &[Attachment]) -> usize {
    let size = |attachment: &Attachment| match &attachment.source {
        AttachmentSource::Data(data) => data.len(),
        AttachmentSource::Address(url) => url.len(),
    };
    attachments.iter().map(size).sum()
}

const MOST_ATTACHMENTS: usize = 16;
/// 20 MiB, as base64 has them.
const LARGEST_ATTACHMENTS: usize = (20 << 20) / 3 * 4 + 4 * MOST_ATTACHMENTS;

/// Refuses what none of those who may answer could do: an answer that only looks like what was asked for helps nobody.
pub(super) fn can_be_answered(inbound: Inbound, models: Option<&Models>) -> Result<Inbound, Error> {
    let without_tools =
        !inbound.request.tools.is_empty() && models.is_some_and(|models| !models.call_tools());
    let refused = models.and_then(|models| models.refuses(&inbound.request.sampling));
    let mut attachments = inbound.request.attachments.iter();
    if models.is_some_and(|models| attachments.any(|attachment| !models.take(attachment))) {
        return Err(invalid(
            "the model that answers here does not take such an image or file",
            "leave it out, or set [model] to one that takes it",
        ));
    }
    match refused.or(without_tools.then_some("tools")) {
        Some(name) => {
            Err(invalid(&format!("the model that answers here does not support `{name}`"), "leave it out"))
        }
        None => Ok(inbound),
    }
}

/// Who reads the answer when the channel does not say: the narrowest that fits what it does say.
pub(super) fn default_audience(scope: &Scope, request: &TurnRequest) -> Audience {
    match request.audience {
        _ if is_web(scope) => Audience::Private,
        Some(audience) => audience,
        None if scope.is_person() && request.room.is_empty() => Audience::Private,
        None => Audience::Room,
    }
}

/// Whether a command is one here: `approve` is a word like any other where nothing waits to be approved.
pub(super) async fn is_meant(
    session: &Session,
    command: &SpokenCommand,
    inbound: &Inbound,
) -> Result<bool, Error> {
    if !matches!(command, SpokenCommand::Decide(_, None)) {
        return Ok(true);
    }
    let mut held = session.lock().await?;
    match held.fresh().await {
        Ok(log) => Ok(log
            .map(Log::checkpoint)
            .is_some_and(|log| log.waits_for_decision() || log.decided_by(&inbound.request_id).is_some())),
        // The turn itself says what is wrong, and answers without the log.
        Err(Error::Tampered(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Does what the person told the memory.
pub(super) async fn obey(
    session: &Session,
    command: SpokenCommand,
    inbound: &Inbound,
    asked: Asked,
    outlet: &Outlet,
) -> Result<Ending, Error> {
    let mut metadata = Box::new(Metadata::new(MemoryState::Forgotten, inbound.audience));
    let content = match command {
        SpokenCommand::Forget => {
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
            let gateway = session.inner.gateway.get();
            let foreign = gateway.filter(|gateway| gateway.may_be_foreign(session.scope()));
            let said = match foreign {
                Some(gateway) => remote::forgotten_elsewhere(gateway, session, inbound, &receipt).await,
                None => remote::ERASED.to_owned(),
            };
            metadata.receipt = Some(Box::new(receipt));
            let request_id = inbound.request_id.clone();
            return Ok(Ending::Answer(Final { request_id, content: said, metadata }));
        }
        // In a room anyone could be talked into it; the choice is made where only the person listens.
        SpokenCommand::Share(_) if inbound.audience == Audience::Room => {
            return Err(invalid(
                "this choice is about what you said in private, so it can only be made in private",
                "send it in a direct message",
            ));
        }
        SpokenCommand::Share(sharing) => {
            share(session, sharing, asked).await?;
            metadata.memory = MemoryState::Kept;
            match sharing {
                Sharing::PrivateInRooms => "From now on I may recall in rooms what you told me in private.",
                Sharing::KeepPrivate => "What you told me in private stays private again.",
            }
        }
        SpokenCommand::Focus(change) => {
            let on = matches!(change, FocusChange::On(_));
            focus(session, change, inbound, asked).await?;
            metadata.memory = MemoryState::Kept;
            if on { "The focus mode is on." } else { "The focus mode is off." }
        }
        SpokenCommand::Decide(decision, code) => {
            let by = Decider::Person(session.scope().user().as_str().to_owned());
            let meant = code.map_or(Meant::Only, Meant::Code);
            let said_as = Some(inbound.request_id.clone());
            let word = decide::Word { meant, decision, by, said_as };
            return decide::decide(session, &word, CarryOut::Here, outlet).await;
        }
        SpokenCommand::Cancel => {
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

async fn share(session: &Session, sharing: Sharing, asked: Asked) -> Result<(), Error> {
    let mut held = session.lock_at(session.line_up(), asked).await?;
    loop {
        held.log().await?;
        let owner = held.owner();
        let entry = Entry::Sharing { at: session.inner.ledger.now(), sharing };
        if held.write(vec![entry], owner, session.record(Action::SessionChoice)).await? == Wrote::Done {
            return Ok(());
        }
    }
}

async fn focus(session: &Session, change: FocusChange, inbound: &Inbound, asked: Asked) -> Result<(), Error> {
    let inner = &session.inner;
    if let FocusChange::On(id) = &change {
        let situation = Situation {
            scope: Some(session.scope()),
            audience: inbound.audience,
            now: inner.ledger.now(),
            prepared: None,
            profile: &inbound.request.profile,
            focus: None,
            tools: 0,
            concepts: &InScope::default(),
        };
        let modes = inner.staff.instructions.catalogue(situation).focus_modes;
        if !modes.iter().any(|mode| mode.id == *id) {
            let ids: Vec<&str> = modes.iter().map(|mode| mode.id.as_str()).collect();
            let hint = match ids.as_slice() {
                [] => "no focus modes are set up; see docs/INSTRUCTIONS.md".to_owned(),
                ids => format!("choose one of {}", ids.join(", ")),
            };
            return Err(invalid("there is no such focus mode", &hint));
        }
    }
    let mut held = session.lock_at(session.line_up(), asked).await?;
    loop {
        held.log().await?;
        let (owner, at) = (held.owner(), inner.ledger.now());
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
