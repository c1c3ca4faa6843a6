//! Every event of a client, and who answers it.

use std::sync::Arc;

use confidant_chat_protocol::{
    ClientEvent, DevicesChanged, LabelDevice, List, OfflineResult, OfflineSyncComplete, Pong, ServerEvent,
    SyncOfflineChanges,
};

use super::Inner;
use super::frames::Step;
use super::lists::Drafted;
use super::refusals::{Answer, malformed};
use super::socket::Peer;
use super::writes::Outcome;

impl Inner {
    /// Answers an event of somebody with a session.
    pub(crate) async fn handle(self: &Arc<Self>, peer: &Peer, event: ClientEvent) -> Answer<Vec<Step>> {
        match event {
            ClientEvent::Hello(_) => Err(malformed("hello is for sockets")),
            ClientEvent::Ping(_) => Ok(vec![Step::event(ServerEvent::Pong(Pong {}))]),
            ClientEvent::EncryptedChatMetadata(write) => self.write_step(peer, write).await,
            ClientEvent::DeleteChat(delete) => self.delete_chat(peer, delete).await,
            ClientEvent::DeleteMessage(delete) => self.delete_message(peer, delete).await,
            ClientEvent::SetActiveChat(active) => {
                self.opened(peer, active.chat).await?;
                Ok(Vec::new())
            }
            ClientEvent::UpdateDraft(update) => self.draft_step(peer, update).await,
            ClientEvent::DeleteDraft(delete) => self.delete_draft(peer, delete).await,
            ClientEvent::UpdateData(update) => self.update_data(peer, update).await,
            ClientEvent::DeleteData(delete) => self.delete_data(peer, delete).await,
            ClientEvent::RequestData(request) => self.data_steps(peer, request.kind.as_ref()).await,
            ClientEvent::UpdateManifest(update) => self.update_manifest(peer, update).await,
            ClientEvent::PhasedSyncRequest(request) => self.phased_sync(peer, request).await,
            ClientEvent::RequestChatContentBatch(request) => Ok(Self::batch(request)),
            ClientEvent::LoadMoreChats(request) => self.older(peer, request).await,
            ClientEvent::RequestEmbed(request) => {
                Ok(vec![Step::Embeds(request.chat, request.embeds.into_vec())])
            }
            ClientEvent::SyncStatusRequest(request) => {
                Ok(vec![Step::event(self.status(peer, request.since).await?)])
            }
            ClientEvent::SyncOfflineChanges(changes) => self.offline(peer, changes).await,
            ClientEvent::RequestDevices(_) => {
                let devices = self.devices(&peer.account, peer.session).await?;
                Ok(vec![Step::event(ServerEvent::Devices(devices))])
            }
            ClientEvent::LabelDevice(label) => self.label(peer, &label).await,
            ClientEvent::ChatMessageAdded(ask) => self.ask(peer, ask).await,
            ClientEvent::ChatHistory(history) => self.hear_history(peer, history),
            ClientEvent::ClientData(data) => self.hear_data(peer, data),
            ClientEvent::ResumeAiTask(resume) => self.resume(peer, resume).await,
            ClientEvent::CancelAiTask(cancel) => self.cancel(peer, &cancel).await,
            ClientEvent::DecideAiTask(decide) => self.decide(peer, decide),
            ClientEvent::ForgetRemembered(forget) => self.forget_remembered(peer, forget).await,
            ClientEvent::AiResponseCompleted(stored) => self.stored(peer, stored).await,
        }
    }

    async fn label(&self, peer: &Peer, label: &LabelDevice) -> Answer<Vec<Step>> {
        let room = self.hub.room(&peer.account);
        let _turn = room.turn().await;
        let seq = self.label_device(&peer.account, label).await?;
        let event = ServerEvent::DevicesChanged(DevicesChanged {});
        self.tell(peer, seq, event.clone());
        Ok(vec![Step::change(seq, event)])
    }

    /// What was written offline: each is stored or not by itself.
    async fn offline(&self, peer: &Peer, changes: SyncOfflineChanges) -> Answer<Vec<Step>> {
        let mut results = Vec::new();
        for write in changes.writes.into_vec() {
            results.push(match self.write(peer, write).await {
                Ok(Outcome::Stored(stored, _)) => OfflineResult::Stored(stored),
                Ok(Outcome::Conflict(conflict)) => OfflineResult::Conflict(conflict),
                Err(refused) => OfflineResult::Refused(refused),
            });
        }
        for draft in changes.drafts.into_vec() {
            results.push(match self.update_draft(peer, draft).await {
                Ok(Drafted::Stored(stored, _)) => OfflineResult::Draft(stored),
                Ok(Drafted::Conflict(conflict)) => OfflineResult::Conflict(conflict),
                Err(refused) => OfflineResult::Refused(refused),
            });
        }
        let seq = self.store.account(&peer.account).await?.seq;
        let complete = OfflineSyncComplete { results: List::new(results)? };
        Ok(vec![Step::change(seq, ServerEvent::OfflineSyncComplete(complete))])
    }
}
