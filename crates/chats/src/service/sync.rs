//! Sync: the account first, then chats in phases, then whatever is asked for.
//!
//! What `phased_sync_complete` says was sent is read before anything else is: whatever comes later has a greater `seq`, and
//! comes as news.

use std::collections::{BTreeMap, HashSet, VecDeque};

use confidant_chat_format::{AccountId, ChatId, Digest, EmbedId, ItemId, Trail};
use confidant_chat_protocol::{
    AccountState, Change, Changed, ChatContentBatchResponse, ChatSent, ChatsSent, DataName, Envelope,
    FloorSent, ItemSent, List, LoadMoreChats, LoadMoreChatsResponse, Map, Phase, PhasedSyncComplete,
    PhasedSyncRequest, RequestChatContentBatch, SendEmbedData, ServerEvent, StepSent, SyncStatus, TrailSent,
    Versions, limits,
};

use super::Inner;
use super::frames::Step;
use super::parts::{At, Embeds, Made};
use super::refusals::{Answer, not_found, unavailable};
use super::socket::Peer;
use crate::store::{self, AccountList, AccountRow, ChatLine, Have, HaveList, Millis, RingName};

/// Chats that are sent, frame by frame.
#[derive(Clone, Debug)]
pub(crate) struct ChatsStep {
    reason: SendReason,
    /// The chats, with what the device has of each.
    todo: VecDeque<(ChatId, Versions)>,
    /// How far the first of them has been sent.
    at: Option<At>,
}

/// Why chats are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendReason {
    /// A phase of a sync.
    Phase(Phase),
    /// They were asked for.
    Batch,
    /// The account is exported, embeds included.
    Export,
    /// Older ones were asked for; whether there are still older ones.
    Older(bool),
}

impl ChatsStep {
    pub(crate) fn new(reason: SendReason, todo: impl IntoIterator<Item = (ChatId, Versions)>) -> Self {
        Self { reason, todo: todo.into_iter().collect(), at: None }
    }

    fn event(&self, chats: Vec<ChatSent>, missing: Vec<ChatId>, more: bool) -> Answer<ServerEvent> {
        let chats = List::new(chats)?;
        Ok(match self.reason {
            SendReason::Phase(Phase::LastChat) => ServerEvent::PhaseOne(ChatsSent { chats, more }),
            SendReason::Phase(Phase::Recent) => ServerEvent::PhaseTwo(ChatsSent { chats, more }),
            SendReason::Phase(_) => ServerEvent::PhaseThree(ChatsSent { chats, more }),
            SendReason::Batch | SendReason::Export => {
                ServerEvent::ChatContentBatchResponse(ChatContentBatchResponse {
                    chats,
                    missing: List::new(missing)?,
                    more,
                })
            }
            SendReason::Older(older) => {
                ServerEvent::LoadMoreChatsResponse(LoadMoreChatsResponse { chats, more, older })
            }
        })
    }
}

/// An account as one view of the store has it.
pub(crate) struct State {
    parts: Vec<AccountState>,
    /// Every chat, the one written to most recently first.
    pub(crate) lines: Vec<ChatLine>,
    seq: u64,
}

impl State {
    pub(crate) fn steps(&self) -> Vec<Step> {
        let parts = self.parts.iter().cloned();
        parts.map(|part| Step::event(ServerEvent::AccountState(part))).collect()
    }

    pub(crate) fn complete(&self, phase: Phase) -> ServerEvent {
        let older = self.lines.len() > PHASES;
        ServerEvent::PhasedSyncComplete(PhasedSyncComplete { phase, seq: self.seq, older })
    }
}

impl Inner {
    pub(crate) async fn phased_sync(&self, peer: &Peer, request: PhasedSyncRequest) -> Answer<Vec<Step>> {
        let state = self.account_state(peer, request.manifest).await?;
        let mut steps = state.steps();
        let phases: &[Phase] = match request.phase {
            Phase::LastChat => &[Phase::LastChat],
            Phase::Recent => &[Phase::Recent],
            Phase::Rest => &[Phase::Rest],
            Phase::All => &[Phase::LastChat, Phase::Recent, Phase::Rest],
        };
        let mut sent: HashSet<ChatId> = HashSet::new();
        for phase in phases {
            let wanted = match phase {
                Phase::LastChat => store::Phase::LastOpened,
                Phase::Recent => store::Phase::Recent,
                Phase::Rest | Phase::All => store::Phase::Rest,
            };
            let mut todo = Vec::new();
            for line in self.store.lines(&peer.account, wanted).await? {
                let have = request.client_chat_versions.get(&line.chat).cloned().unwrap_or(NOTHING);
                if have != versions(&line) && sent.insert(line.chat.clone()) {
                    todo.push((line.chat, have));
                }
            }
            steps.push(Step::Chats(ChatsStep::new(SendReason::Phase(*phase), todo)));
        }
        steps.push(Step::event(state.complete(request.phase)));
        Ok(steps)
    }

    /// The account, for a device that has this revision of the manifest.
    pub(crate) async fn account_state(&self, peer: &Peer, manifest: u32) -> Answer<State> {
        let account = &peer.account;
        let room = self.hub.room(account);
        for attempt in 1..=TRIES {
            // The last time, nobody of this process writes meanwhile.
            let _turn = if attempt == TRIES { Some(room.turn().await) } else { None };
            let row = self.store.account(account).await?;
            let have = HaveList { floors: [0; 16], trail_from: manifest };
            let list = self.store.list(account, have).await?;
            let lines = self.lines(account).await?;
            // Nothing was written meanwhile, so that the parts are of one state.
            if self.store.account(account).await?.seq == row.seq {
                let seq = row.seq;
                let parts = self.state_parts(peer, &row, list, &lines, manifest).await?;
                return Ok(State { parts, lines, seq });
            }
        }
        Err(unavailable("the account is being written to all the time"))
    }

    async fn state_parts(
        &self,
        peer: &Peer,
        row: &AccountRow,
        list: AccountList,
        lines: &[ChatLine],
        have: u32,
    ) -> Answer<Vec<AccountState>> {
        let account = &peer.account;
        // Also finds out whether somebody put an old record back.
        let _known = self.known(account).await?;
        let (ring, _) = self.open_ring(account, &RingName::Account, list.ring).await?;
        let (mailbox, box_pub) = self.open_ring(account, &RingName::Box, list.box_ring).await?;
        let box_pub = box_pub.ok_or_else(|| unavailable("the account has no mailbox"))?;
        let is_same = list.manifest.rev == have;
        let floors = if is_same { Vec::new() } else { list.floors };
        let floor = |floor: store::FloorRow| {
            Ok(FloorSent { shelf: floor.shelf, envelope: Envelope::new(floor.envelope)? })
        };
        let floors = floors.into_iter().map(floor).collect::<Answer<Vec<_>>>()?;
        let chats: BTreeMap<ChatId, Versions> =
            lines.iter().map(|line| (line.chat.clone(), versions(line))).collect();
        let mut trails = trails(&list.trail, have > 0 && have < list.manifest.rev)?;
        let mut part = AccountState {
            account_rev: row.rev,
            generation: row.generation,
            ring: List::new(ring)?,
            mailbox: List::new(mailbox)?,
            box_pub,
            manifest: Envelope::new(list.manifest.envelope)?,
            trail: trails.pop_front().flatten(),
            floors: List::new(floors)?,
            chats: Map::new(chats)?,
            more: !trails.is_empty(),
        };
        let mut parts = vec![part.clone()];
        (part.floors, part.chats) = (List::default(), Map::default());
        while let Some(trail) = trails.pop_front() {
            (part.trail, part.more) = (trail, !trails.is_empty());
            parts.push(part.clone());
        }
        Ok(parts)
    }

    /// Every chat of an account.
    pub(crate) async fn lines(&self, account: &AccountId) -> Answer<Vec<ChatLine>> {
        let mut lines = Vec::new();
        let mut after = (Millis(u64::MAX), ChatId::from_bits(&[0xff; 16]));
        loop {
            let phase = store::Phase::Older(after.0, after.1.clone(), store::limits::PAGE);
            let page = self.store.lines(account, phase).await?;
            let Some(last) = page.last() else { return Ok(lines) };
            after = (last.updated_at, last.chat.clone());
            lines.extend(page);
        }
    }

    pub(crate) fn batch(request: RequestChatContentBatch) -> Vec<Step> {
        vec![Step::Chats(ChatsStep::new(SendReason::Batch, request.chats.into_map()))]
    }

    pub(crate) async fn older(&self, peer: &Peer, request: LoadMoreChats) -> Answer<Vec<Step>> {
        let (at, chat) = match request.before {
            Some(chat) => {
                let nothing = Have { messages_v: u32::MAX, draft_v: 0, trail_from: 0 };
                (self.store.chat(&peer.account, &chat, nothing).await?.chat.updated_at, chat)
            }
            None => (Millis(u64::MAX), ChatId::from_bits(&[0xff; 16])),
        };
        let limit = usize::try_from(request.limit).unwrap_or(limits::MAX_BATCH);
        let mut lines = self.store.lines(&peer.account, store::Phase::Older(at, chat, limit + 1)).await?;
        let older = lines.len() > limit;
        lines.truncate(limit);
        let todo = lines.into_iter().map(|line| (line.chat, NOTHING));
        Ok(vec![Step::Chats(ChatsStep::new(SendReason::Older(older), todo))])
    }

    /// As many chats as fit into a frame, and what is left.
    pub(crate) async fn chats_frame(
        &self,
        peer: &Peer,
        step: &ChatsStep,
    ) -> Answer<(ServerEvent, Option<ChatsStep>)> {
        let mut rest = step.clone();
        let embeds = if rest.reason == SendReason::Export { Embeds::Sent } else { Embeds::Left };
        let (mut chats, mut missing, mut left) = (Vec::new(), Vec::new(), FRAME);
        while let Some((chat, have)) = rest.todo.front() {
            let room = (left, chats.is_empty());
            match self.part(&peer.account, chat, have, rest.at, embeds, room).await? {
                Made::NotNow => break,
                Made::Missing => missing.push(chat.clone()),
                Made::Part(part, size, at) => {
                    left = left.saturating_sub(size);
                    chats.push(*part);
                    rest.at = at;
                    if at.is_some() {
                        break;
                    }
                    // Enough for now: the device works on it while the next is made.
                    if FRAME - left >= ENOUGH {
                        rest.todo.pop_front();
                        break;
                    }
                }
            }
            rest.todo.pop_front();
        }
        let more = !rest.todo.is_empty();
        if !more && rest.reason == SendReason::Phase(Phase::Rest) {
            self.loaded(&peer.account, &peer.device).await;
        }
        Ok((step.event(chats, missing, more)?, more.then_some(rest)))
    }

    /// As many embeds as fit into a frame, and those that are left.
    pub(crate) async fn embeds_frame(
        &self,
        peer: &Peer,
        chat: &ChatId,
        embeds: &[EmbedId],
    ) -> Answer<(ServerEvent, Option<Vec<EmbedId>>)> {
        let everything = self.store.chat(&peer.account, chat, Have::default()).await?.changed;
        let seqs: BTreeMap<ItemId, u32> = everything.into_iter().map(|line| (line.item, line.seq)).collect();
        let wanted = embeds.iter().cloned().map(ItemId::Embed).collect();
        let rows = self.store.items(&peer.account, chat, wanted, EMBEDS).await?;
        let last = rows.last().and_then(|row| embeds.iter().rposition(|id| is_embed(&row.item, id)));
        let done = last.map_or(embeds.len(), |last| last + 1);
        let there = |id: &EmbedId| rows.iter().any(|row| is_embed(&row.item, id));
        let missing = embeds[..done].iter().filter(|id| !there(id)).cloned().collect();
        let mut items = Vec::new();
        for row in rows {
            items.push(ItemSent {
                seq: seqs.get(&row.item).copied().unwrap_or(0).into(),
                hash: Digest::of(row.envelope.as_bytes()),
                envelope: Some(Envelope::new(row.envelope)?),
                item: row.item,
            });
        }
        let rest = embeds[done..].to_vec();
        let more = !rest.is_empty();
        let event = SendEmbedData {
            chat: chat.clone(),
            items: List::new(items)?,
            missing: List::new(missing)?,
            more,
        };
        Ok((ServerEvent::SendEmbedData(event), more.then_some(rest)))
    }

    pub(crate) async fn status(&self, peer: &Peer, since: u64) -> Answer<ServerEvent> {
        let found = self.store.changes(&peer.account, since, limits::MAX_CHANGES).await?;
        let manifest = self.store.list(&peer.account, HaveList::default()).await?.manifest.rev;
        let change = |change: store::Change| Change {
            seq: change.seq,
            what: match change.what {
                store::Changed::Account | store::Changed::List => Changed::Account(manifest),
                store::Changed::Chat(chat) => Changed::Chat(chat),
                store::Changed::Deleted(chat) => Changed::ChatDeleted(chat),
                store::Changed::Draft(chat) => Changed::Draft(chat),
                store::Changed::Data(kind, name) => Changed::Data(DataName { kind, name }),
                // Which one is not kept; whoever is told asks for all of them.
                store::Changed::Devices => Changed::Device(peer.device.clone()),
            },
        };
        let more = found.changes.last().is_some_and(|last| last.seq < found.newest);
        let changes = List::new(found.changes.into_iter().map(change).collect())?;
        Ok(ServerEvent::SyncStatus(SyncStatus { seq: found.newest, changes, more, gap: found.is_behind }))
    }

    /// That this chat is looked at. One that is not there is nobody's business.
    pub(crate) async fn opened(&self, peer: &Peer, chat: Option<ChatId>) -> Answer<()> {
        let Some(chat) = chat else { return Ok(()) };
        match self.store.opened(&peer.account, &chat, self.now()).await {
            Err(store::StoreError::NotFound) => Err(not_found()),
            noted => Ok(noted?),
        }
    }
}

/// A trail in pieces that fit into a frame each; one piece without any steps where there is no trail.
fn trails(trail: &Trail, is_sent: bool) -> Answer<VecDeque<Option<TrailSent>>> {
    if !is_sent {
        return Ok([None].into());
    }
    let piece = |steps: &[confidant_chat_format::Step]| {
        let steps = steps.iter().map(|step| StepSent { live: step.live, envelope: step.envelope });
        Ok(Some(TrailSent { chain: trail.chain, steps: List::new(steps.collect())? }))
    };
    trail.steps.chunks(limits::MAX_STEPS).map(piece).collect()
}

fn is_embed(item: &ItemId, id: &EmbedId) -> bool {
    matches!(item, ItemId::Embed(embed) if embed == id)
}

fn versions(line: &ChatLine) -> Versions {
    Versions { messages_v: line.messages_v, title_v: line.title_v, draft_v: line.draft_v }
}

const NOTHING: Versions = Versions { messages_v: 0, title_v: 0, draft_v: 0 };
/// Chats of all phases.
const PHASES: usize = 100;
/// What a frame's chats may take, in JSON: room for the rest of the frame is left.
const FRAME: usize = limits::MAX_FRAME - (1 << 20);
/// A frame that has so much, in JSON, gets no further chat.
const ENOUGH: usize = 512 << 10;
/// What a frame's embeds may take, as bytes: four thirds of it in JSON.
const EMBEDS: usize = 5 << 20;
/// How often an account is read again when somebody writes to it meanwhile.
const TRIES: usize = 8;
