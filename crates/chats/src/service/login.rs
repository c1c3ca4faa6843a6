//! Opening and ending sessions.

use std::time::Duration;

use confidant_chat_format::{AccountId, DeviceId, PROFILE};
use confidant_chat_protocol::{
    Body as _, Bytes, Envelope, LoginRequest, Logout, LogoutReason, Prelogin, PreloginAnswer, Secret,
    SessionOpened, Ticket, TicketRequest,
};
use confidant_seal::{Key, Sealed};

use super::hub::SessionFilter;
use super::identity::Proven;
use super::refusals::{Answer, login_refused};
use super::rows::seal_label;
use super::witness::Act;
use super::{Answered, Caller, Cookie, Inner, Service, hashed, random};
use crate::store::{AccountRow, Code, CodeKind, NewDevice, Session, StoreError};

/// Which device a session is on.
pub(crate) enum On {
    /// One that was here before, if it is known; else a new one.
    Known(Option<DeviceId>),
    /// A new one with this id.
    New(DeviceId),
}

/// A session that has begun, on a device that may have nothing yet.
pub(crate) struct Begun {
    pub(crate) answered: Answered,
    pub(crate) account: AccountId,
    pub(crate) device: DeviceId,
}

impl Service {
    /// Reads ahead what the device will ask for, and answers.
    pub(crate) fn begun(&self, begun: Begun) -> Answered {
        self.warm(&begun.account, &begun.device);
        begun.answered
    }
}

impl Inner {
    /// How to stretch a password: the same work and shape for everybody.
    pub(crate) fn prelogin(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        self.admit(caller)?;
        let request = Prelogin::read(body)?;
        Answered::json(&PreloginAnswer { profile: PROFILE, server_salt: self.server_salt(&request.login) })
    }

    pub(crate) fn server_salt(&self, login: &confidant_chat_format::Login) -> Bytes<16> {
        Bytes(*self.vault.tag("prelogin", login.as_str().as_bytes()).as_bytes())
    }

    pub(crate) async fn login(&self, caller: &Caller, body: &[u8]) -> Answer<Begun> {
        let Proven { known, by, request } = self.proven::<LoginRequest>(caller, body).await?;
        if request.kind != by.kind {
            return Err(login_refused());
        }
        self.must_witness(&known.account, Act::LoggedIn).await?;
        let on = On::Known(request.device);
        let (opened, cookie) =
            self.begin_session(&known.account, &known.row, &known.key, on, Some(by.wrap)).await?;
        let answered = Answered::json(&opened)?.with(cookie);
        Ok(Begun { answered, account: opened.account, device: opened.device })
    }

    /// Begins a session, on a device that is added if it is new. Where there are too many, the longest unused one goes: nobody is
    /// locked out by sessions of long ago.
    pub(crate) async fn begin_session(
        &self,
        account: &AccountId,
        row: &AccountRow,
        key: &Key,
        on: On,
        wrap: Option<Sealed>,
    ) -> Answer<(SessionOpened, Cookie)> {
        let now = self.now();
        let devices = self.store.devices(account).await?;
        let (device, is_new) = match on {
            On::Known(Some(device)) if devices.iter().any(|known| known.device == device) => (device, false),
            On::Known(_) => (DeviceId::random(), true),
            On::New(device) => (device, true),
        };
        if is_new {
            let room = self.hub.room(account);
            let _turn = room.turn().await;
            let label = seal_label(key, account, &device, None);
            let new = NewDevice { device: device.clone(), label, now };
            match self.store.add_device(account, new.clone()).await {
                Err(StoreError::TooMany(_)) => {
                    let oldest = devices.iter().min_by_key(|device| (device.seen_day, device.created_at));
                    if let Some(oldest) = oldest {
                        self.drop_device(account, &oldest.device).await?;
                    }
                    self.store.add_device(account, new).await?;
                }
                added => added?,
            }
            self.publish_devices(account).await?;
        }
        let (id, secret) = (random::<32>(), random::<32>());
        let expires_at = now.plus(self.settings.session);
        let session = Session {
            id: hashed(&id),
            secret: hashed(&secret),
            account: account.clone(),
            device: device.clone(),
            epoch: row.epoch,
            created_at: now,
            expires_at,
            seen_day: now.day(),
        };
        match self.store.add_session(session.clone()).await {
            Err(StoreError::TooMany(_)) => {
                if let Some(oldest) = self.store.sessions(account, now).await?.last() {
                    self.drop_session(account, oldest.id).await?;
                }
                self.store.add_session(session).await?;
            }
            added => added?,
        }
        let opened = SessionOpened {
            account: account.clone(),
            device,
            session: Secret::from_bytes(*secret),
            expires_at: expires_at.0,
            account_rev: row.rev,
            generation: row.generation,
            wrap: wrap.map(Envelope::new).transpose()?,
        };
        Ok((opened, Cookie::Set { id: *id, expires_at }))
    }

    pub(crate) async fn logout(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let request = Logout::read(body)?;
        let session = self.session(caller).await?;
        let ended = if request.everywhere {
            self.store.sessions(&session.account, self.now()).await?
        } else {
            vec![session]
        };
        for session in ended {
            self.drop_session(&session.account, session.id).await?;
            self.witness(&session.account, Act::LoggedOut).await;
        }
        Ok(Answered::done()?.with(Cookie::Clear))
    }

    /// Ends a session and its sockets. One that has ended already is fine.
    pub(crate) async fn drop_session(
        &self,
        account: &AccountId,
        id: confidant_chat_format::Digest,
    ) -> Answer<()> {
        match self.store.end_session(account, id).await {
            Ok(()) | Err(StoreError::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
        self.hub.end(account, &SessionFilter::Session(id), LogoutReason::Revoked);
        Ok(())
    }

    /// Removes a device and ends its sockets.
    pub(crate) async fn drop_device(&self, account: &AccountId, device: &DeviceId) -> Answer<()> {
        self.store.revoke_device(account, device).await?;
        self.hub.end(account, &SessionFilter::Device(device.clone()), LogoutReason::Revoked);
        Ok(())
    }

    pub(crate) async fn ticket(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let _: TicketRequest = TicketRequest::read(body)?;
        let session = self.session(caller).await?;
        let ticket = Secret::from_bytes(*random());
        let carries = [session.id.as_bytes(), caller.origin.as_str().as_bytes()].concat();
        let code = Code {
            kind: CodeKind::Ticket,
            key: hashed(ticket.dangerously_expose_bytes()),
            account: Some(session.account),
            login: None,
            carries,
            expires_at: self.now().plus(TICKET),
        };
        self.store.issue(code).await?;
        Answered::json(&Ticket { ticket, expires_ms: u64::try_from(TICKET.as_millis()).unwrap_or(u64::MAX) })
    }
}

/// How long a ticket is good.
const TICKET: Duration = Duration::from_secs(30);
