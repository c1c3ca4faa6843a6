//! Answers of many frames, made one by one as they are fetched.
//!
//! A step is done when its frame has been made, and not before: whoever stops waiting in between loses nothing.

use std::collections::VecDeque;

use confidant_chat_format::{AccountId, ChatId, DeviceId, Digest, EmbedId, TurnId};
use confidant_chat_protocol::{
    Body as _, ClientFrame, Export, RefusedSent, ServerEvent, ServerFrame, SnapshotLine, Versions, limits,
};
use confidant_display::debug_without_content;

use super::identity::Proven;
use super::refusals::{Answer, not_found, unavailable};
use super::remembered::RememberedStep;
use super::socket::Peer;
use super::sync::{ChatsStep, SendReason};
use super::witness::Act;
use super::{Answered, Body, Caller, Service};
use crate::store::{Session, StoreError};

/// Frames of one answer.
pub struct Frames {
    service: Service,
    peer: Peer,
    re: Option<u32>,
    steps: VecDeque<Step>,
}

debug_without_content!(Frames { steps: steps.len() });

/// A part of an answer.
pub(crate) enum Step {
    /// A frame that is made.
    Ready(Option<u64>, Box<ServerEvent>),
    /// Chats.
    Chats(ChatsStep),
    /// Embeds of a chat.
    Embeds(ChatId, Vec<EmbedId>),
    /// What is remembered of the safety of chats.
    Safety(Vec<ChatId>),
    /// A snapshot that the account shares.
    Snapshot(Box<SnapshotLine>),
    /// What is kept of chats beyond their words.
    Remembered(RememberedStep),
    /// Letters that wait, after this one.
    Letters(Option<(ChatId, TurnId)>),
}

/// Who asks for an export.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Owner,
    Operator,
}

impl Step {
    /// An event that changes nothing.
    pub(crate) fn event(event: ServerEvent) -> Self {
        Self::Ready(None, Box::new(event))
    }

    /// An event with the number of its change.
    pub(crate) fn change(seq: u64, event: ServerEvent) -> Self {
        Self::Ready(Some(seq), Box::new(event))
    }

    pub(crate) fn is_ready(&self) -> bool {
        matches!(self, Self::Ready(..))
    }
}

impl Frames {
    pub(crate) fn new(service: Service, peer: Peer, re: Option<u32>, steps: Vec<Step>) -> Self {
        Self { service, peer, re, steps: steps.into() }
    }

    /// The next frame; `None` after the last. May be dropped at any time: the same frame is made again.
    pub async fn next(&mut self) -> Option<ServerFrame> {
        if let Step::Ready(..) = self.steps.front()?
            && let Some(Step::Ready(seq, event)) = self.steps.pop_front()
        {
            return Some(ServerFrame { re: self.re, seq, event: *event });
        }
        let service = &self.service.inner;
        let made = match self.steps.front()? {
            Step::Ready(..) => return None,
            Step::Chats(step) => service.chats_frame(&self.peer, step).await.map(|(event, rest)| {
                let rest = rest.map(Step::Chats);
                (event, rest)
            }),
            Step::Embeds(chat, embeds) => {
                let made = service.embeds_frame(&self.peer, chat, embeds).await;
                made.map(|(event, rest)| (event, rest.map(|rest| Step::Embeds(chat.clone(), rest))))
            }
            Step::Safety(chats) => {
                let made = service.safety_frame(&self.peer.account, chats).await;
                made.map(|event| (event, None))
            }
            Step::Snapshot(line) => {
                let made = service.snapshot_frame(&self.peer.account, line).await;
                made.map(|event| (event, None))
            }
            Step::Remembered(left) => {
                let made = service.remembered_frame(&self.peer.account, left).await;
                made.map(|(event, rest)| (event, rest.map(Step::Remembered)))
            }
            Step::Letters(after) => {
                let made = service.letters_frame(&self.peer.account, after.clone()).await;
                made.map(|(event, last)| (event, last.map(|last| Step::Letters(Some(last)))))
            }
        };
        match made {
            Ok((event, rest)) => {
                self.steps.pop_front();
                if let Some(rest) = rest {
                    self.steps.push_front(rest);
                }
                Some(ServerFrame { re: self.re, seq: None, event })
            }
            Err(refused) => {
                self.steps.clear();
                Some(refused_frame(self.re, refused))
            }
        }
    }
}

impl Service {
    /// Everything that the server has of an account.
    pub(crate) async fn export(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let this = &*self.inner;
        let Proven { known, request, .. } = this.proven::<Export>(caller, body).await?;
        if request.account != known.account {
            return Err(not_found());
        }
        this.must_witness(&known.account, Act::Exported).await?;
        let session = this.session_of(caller, &known.account).await.ok();
        let frames = Box::new(self.exported(&known.account, session, By::Owner).await?);
        Ok(Answered { body: Body::Frames(frames), session: None })
    }

    /// Everything that the server has of an account, for somebody who may ask for it otherwise than by its credentials, as an
    /// operator may for a person. It is ciphertext: only a device of the account's opens it. What the server can read because the owner
    /// switched that on is left out.
    pub async fn export_account(&self, account: &AccountId) -> Result<Frames, RefusedSent> {
        self.exported(account, None, By::Operator).await
    }

    /// How many chats an account has; none if there is no such account.
    pub async fn count_chats(&self, account: &AccountId) -> Result<u64, RefusedSent> {
        match self.inner.store.account(account).await {
            Err(StoreError::NotFound) => Ok(0),
            there => {
                there?;
                Ok(self.inner.lines(account).await?.len() as u64)
            }
        }
    }

    async fn exported(&self, account: &AccountId, session: Option<Session>, by: By) -> Answer<Frames> {
        let this = &*self.inner;
        let peer = Peer {
            account: account.clone(),
            device: session.as_ref().map_or_else(DeviceId::random, |one| one.device.clone()),
            session: session.map_or(Digest::ZERO, |one| one.id),
            seat: None,
        };
        let state = this.account_state(&peer, 0).await?;
        let mut steps = state.steps();
        steps.extend(this.data_steps(&peer, None).await?);
        let devices = this.devices(account, peer.session).await?;
        steps.push(Step::event(ServerEvent::Devices(devices)));
        let nothing = Versions { messages_v: 0, title_v: 0, draft_v: 0 };
        for chats in state.lines.chunks(limits::MAX_BATCH) {
            let todo = chats.iter().map(|line| (line.chat.clone(), nothing.clone()));
            steps.push(Step::Chats(ChatsStep::new(SendReason::Export, todo)));
            steps.push(Step::Safety(chats.iter().map(|line| line.chat.clone()).collect()));
            if by == By::Owner {
                steps.push(Step::Remembered(RememberedStep::of(chats.iter().map(|line| line.chat.clone()))));
            }
        }
        let snapshots = this.snapshot_lines(account).await?;
        steps.extend(snapshots.into_iter().map(|line| Step::Snapshot(Box::new(line))));
        steps.push(Step::Letters(None));
        steps.push(Step::event(state.complete(confidant_chat_protocol::Phase::All)));
        Ok(Frames::new(self.clone(), peer, None, steps))
    }

    /// A frame without a socket. One that names a stream of its session is answered as on a socket: what comes later comes there.
    pub(crate) async fn posted(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let this = &self.inner;
        let session = this.session(caller).await?;
        let ClientFrame { id, event } = ClientFrame::read(body)?;
        let is_there = |number| this.hub.is_of(&session.account, session.id, number);
        if caller.stream.is_some_and(|number| !is_there(number)) {
            return Err(unavailable("the stream of news is over, or at another gateway"));
        }
        let peer = Peer {
            account: session.account,
            device: session.device,
            session: session.id,
            seat: caller.stream,
        };
        let steps = this.handle(&peer, event).await?;
        let frames = Box::new(Frames::new(self.clone(), peer, Some(id), steps));
        Ok(Answered { body: Body::Frames(frames), session: None })
    }
}

fn refused_frame(re: Option<u32>, refused: RefusedSent) -> ServerFrame {
    ServerFrame { re, seq: None, event: ServerEvent::Refused(refused) }
}
