//! Devices and sessions: listed, labelled, revoked.

use confidant_chat_format::{AccountId, DeviceId, Digest, Refused};
use confidant_chat_protocol::{
    Body as _, Bytes, Device, Devices, DevicesChanged, Envelope, LabelDevice, List, RequestDevices,
    RevokeDevice, RevokeSession, ServerEvent, ServerFrame, Session,
};

use super::identity::Proven;
use super::refusals::{Answer, not_found};
use super::rows::{open_label, seal_label};
use super::witness::Act;
use super::{Answered, Caller, Inner};
use crate::store::RingName;

impl Inner {
    pub(crate) async fn list_devices(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let _: RequestDevices = RequestDevices::read(body)?;
        let session = self.session(caller).await?;
        Answered::json(&self.devices(&session.account, session.id).await?)
    }

    /// The account's devices and sessions, as the session `this` sees them.
    pub(crate) async fn devices(&self, account: &AccountId, this: Digest) -> Answer<Devices> {
        let key = self.vault.key(account, None).await?;
        let key = key.ok_or(Refused::AccountMissing)?;
        let mut devices = Vec::new();
        for device in self.store.devices(account).await? {
            let label = open_label(&key, account, &device.device, &device.label)?;
            devices.push(Device {
                device: device.device,
                label: label.map(Envelope::new).transpose()?,
                created_at: device.created_at.0,
                last_seen_day: device.seen_day,
                seq: device.cursor,
            });
        }
        let sessions = self.store.sessions(account, self.now()).await?.into_iter().map(|session| Session {
            session: Bytes(name_of(&session.id)),
            device: session.device,
            this: session.id == this,
            created_at: session.created_at.0,
            expires_at: session.expires_at.0,
            last_seen_day: session.seen_day,
        });
        Ok(Devices { devices: List::new(devices)?, sessions: List::new(sessions.collect())? })
    }

    /// Gives a device a label, which a key of the account's ring seals: the number of the change.
    pub(crate) async fn label_device(&self, account: &AccountId, label: &LabelDevice) -> Answer<u64> {
        let ring = self.store.ring(account, &RingName::Account).await?;
        if !ring.iter().any(|entry| entry.subs.contains(&label.label.kid())) {
            return Err(Refused::KeyRefused.into());
        }
        let key = self.vault.key(account, None).await?;
        let key = key.ok_or(Refused::AccountMissing)?;
        let sealed = seal_label(&key, account, &label.device, Some(label.label.sealed()));
        Ok(self.store.label_device(account, &label.device, sealed).await?)
    }

    pub(crate) async fn revoke_device(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let Proven { known, request, .. } = self.proven::<RevokeDevice>(caller, body).await?;
        self.drop_device(&known.account, &request.device).await?;
        self.witness(&known.account, Act::DeviceRevoked).await;
        self.publish_devices(&known.account).await?;
        Answered::done()
    }

    pub(crate) async fn revoke_session(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let Proven { known, request, .. } = self.proven::<RevokeSession>(caller, body).await?;
        let sessions = self.store.sessions(&known.account, self.now()).await?;
        let session = sessions.iter().find(|session| name_of(&session.id) == request.session.0);
        let session = session.ok_or_else(not_found)?;
        self.drop_session(&known.account, session.id).await?;
        self.witness(&known.account, Act::SessionRevoked).await;
        self.publish_devices(&known.account).await?;
        Answered::done()
    }

    /// Tells every socket of the account that a device or session came or went.
    pub(crate) async fn publish_devices(&self, account: &AccountId) -> Answer<()> {
        let seq = Some(self.store.account(account).await?.seq);
        let event = ServerEvent::DevicesChanged(DevicesChanged {});
        self.hub.publish(account, None, vec![ServerFrame { re: None, seq, event }]);
        Ok(())
    }

    /// Notes how far a device has read; one that was revoked meanwhile has nothing to note.
    pub(crate) async fn note_cursor(&self, account: &AccountId, device: &DeviceId, seq: u64) -> Answer<()> {
        match self.store.set_cursor(account, device, seq).await {
            Err(crate::store::StoreError::NotFound) => Ok(()),
            noted => Ok(noted?),
        }
    }
}

/// What a session is called: half of the hash of its id.
fn name_of(id: &Digest) -> [u8; 16] {
    std::array::from_fn(|at| id.as_bytes()[at])
}
