//! Accounts: register, log in, change and recover credentials, devices and sessions, log out.
//!
//! ```text
//! register  an id from the server ─▶ account key, rings, floors and manifest made here ─▶ session
//! log in    proof ─▶ session and the account key, sealed for this credential ─▶ opened here
//! ```
//!
//! Easy to get wrong: a log-in that makes a key. If the server has none, it is `account-missing`; a key is made once, by
//! the device that registers.

use confidant_chat_format::{
    AccountKey, BoxKey, CredentialId, DeviceId, Digest, Entry, FieldName, Floor, Login, Manifest, Place,
    PublicKey, RecoveryCode, Refused, Ring, RingOf, SeenWrap, Shelf, Text, open_record, seal_record,
};
use confidant_chat_protocol::{
    AccountChanged, Bytes, ChangeCredentials, ClientEvent, CredentialKind, CredentialList, Devices, Done,
    Envelope, FirstManifest, KeyEntry, LabelDevice, List, LoginRequest, Logout, Recover, Register,
    RegisterBegin, RegisterOffer, RequestCredentials, RequestDevices, RevokeDevice, RevokeSession,
    ServerEvent, SessionOpened, Totp, TotpSetup,
};
use confidant_display::debug_without_content;
use confidant_seal::Key;

use crate::credential::{Credential, Link, Signing, read};
use crate::device::{Device, Setup};
use crate::error::Error;
use crate::files::Cabinet;
use crate::state::{Bin, Book, Keys, Session, State};
use crate::write::{NOTHING, seal_manifest};

/// Who registers.
#[derive(Clone)]
pub struct Registration {
    /// The login, which is in use from now on.
    pub login: Login,
    /// The credentials, the one that signs first. A passkey needs a recovery code beside it.
    pub credentials: Vec<Credential>,
    /// The code that the server printed for the first account, or an invitation.
    pub code: Option<String>,
}

debug_without_content!(Registration { credentials: credentials.len() });

/// A device of the account, as the list has it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceLine {
    /// Its id.
    pub device: DeviceId,
    /// Its label; none if it has none, or one that does not open.
    pub label: Option<String>,
    /// When it first came, in milliseconds since 1970.
    pub created_at: u64,
    /// The day on which it was last seen, in days since 1970.
    pub last_seen_day: u32,
    /// Its open sessions: what each is revoked by.
    pub sessions: Vec<[u8; 16]>,
    /// Whether it is this one.
    pub is_this: bool,
}

debug_without_content!(DeviceLine { device, is_this });

/// A way to log in, as the list has it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WayIn {
    /// What kind.
    pub kind: CredentialKind,
    /// Its id; a password has none.
    pub id: Option<CredentialId>,
    /// What the person calls it.
    pub name: Option<String>,
}

debug_without_content!(WayIn { kind });

/// Changes to how codes of an authenticator are asked for.
#[derive(Clone)]
#[non_exhaustive]
pub enum TotpChange {
    /// From now on, with this secret; the code shows that the authenticator has it.
    On {
        /// The secret.
        secret: [u8; 32],
        /// A code of now.
        code: Totp,
    },
    /// No more.
    Off,
}

debug_without_content!(TotpChange(***));

impl Device {
    /// Opens an account, and a session on this device.
    pub async fn register(setup: Setup, who: Registration) -> Result<Self, Error> {
        let cabinet = Cabinet::vacant(&setup)?;
        let link = Link { transport: setup.transport.clone(), session: None };
        let invite = who.code.map(confidant_chat_protocol::Text::new).transpose()?;
        let ask = RegisterBegin { login: who.login.clone(), invite };
        let offer: RegisterOffer = link.post("/account/register/begin", &ask).await?;
        let salt = Some(&offer.server_salt.0);
        let ready = who.credentials.iter().map(|credential| credential.signing(salt, offer.profile));
        let ready = ready.collect::<Result<Vec<Signing>, Error>>()?;
        let by = ready.first().ok_or(Refused::LoginRefused)?;
        let (ak, device) = (AccountKey::first(), DeviceId::random());
        let new = NewAccount::make(&ak, &offer.account, &device, (setup.clock)())?;
        let credentials = ready.iter().map(|one| one.new_credential(&ak, &offer.account, 1));
        let request = Register {
            account: offer.account.clone(),
            login: who.login,
            credentials: List::new(credentials.collect::<Result<_, _>>()?)?,
            ring: new.ring,
            mailbox: new.mailbox,
            box_pub: new.book.box_pub,
            first: new.first,
            device: device.clone(),
        };
        let signed = by.sign(&request, &link, offer.challenge)?;
        let (json, id) = link.raw("/account/register", &signed).await?;
        let opened: SessionOpened = read(&json)?;
        if opened.account != offer.account {
            return Err(Error::Unexpected);
        }
        let mut state = State::new(offer.account, device, &ak);
        state.book = Some(new.book);
        take_session(&mut state, &opened, id)?;
        let mut this = Self::with(setup, cabinet, state);
        this.load()?;
        this.save()?;
        Ok(this)
    }

    /// Logs in with any credential. What this device remembers of the account is kept and compared with.
    pub async fn log_in(setup: Setup, credential: &Credential) -> Result<Self, Error> {
        let cabinet = Cabinet::open(setup.files.clone(), setup.key.clone())?;
        let known = match cabinet.read(crate::device::STATE)? {
            Some(json) => Some(State::from_json(&json).ok_or(Error::Damaged)?),
            None => None,
        };
        let link = Link { transport: setup.transport.clone(), session: None };
        let by = link.ready(credential).await?;
        let device = known.as_ref().map(|state| state.device.clone());
        let signed = link.signed(&LoginRequest { kind: by.kind, device }, &by).await?;
        let (json, id) = link.raw("/account/login", &signed).await?;
        let opened: SessionOpened = read(&json)?;
        if known.as_ref().is_some_and(|state| state.account != opened.account) {
            return Err(Error::Occupied);
        }
        let name = by.name();
        let seen = known.as_ref().map(|state| SeenWrap {
            generation: state.generation,
            rev: state.wraps.get(&name).copied().unwrap_or(0),
        });
        let wrap = opened.wrap.as_ref().map(Envelope::sealed);
        let (ak, wrap_rev) = AccountKey::open(
            &by.root.kek(),
            &opened.account,
            opened.generation,
            by.wrap(),
            wrap,
            seen.unwrap_or_default(),
        )?;
        let mut state =
            known.unwrap_or_else(|| State::new(opened.account.clone(), opened.device.clone(), &ak));
        if state.generation == ak.generation() && state.ak.0 != *ak.key() {
            return Err(Refused::KeyRefused.into());
        }
        state.set_account_key(&ak);
        state.wraps.insert(name, wrap_rev);
        take_session(&mut state, &opened, id)?;
        let mut this = Self::with(setup, cabinet, state);
        this.load()?;
        this.save()?;
        Ok(this)
    }

    /// Logs this device in again, after its session ended. What it remembers stays, the queue with it.
    pub async fn log_in_again(&mut self, credential: &Credential) -> Result<(), Error> {
        *self = Self::log_in(self.setup.clone(), credential).await?;
        Ok(())
    }

    /// Ends this session, or all of the account's. The files stay, for the next log-in; [`Device::forget`] removes them.
    pub async fn log_out(&mut self, everywhere: bool) -> Result<(), Error> {
        let _: Done = self.link.post("/account/logout", &Logout { everywhere }).await?;
        self.disconnect();
        (self.state.session, self.link.session) = (None, None);
        self.save()
    }

    /// Removes every file of this device.
    pub fn forget(self) -> Result<(), Error> {
        self.cabinet.clear()
    }

    /// Adds credentials, or replaces those of the same kind and id. Removing one is [`Device::rotate`].
    pub async fn change_credentials(
        &mut self,
        by: &Credential,
        new: &[Credential],
        totp: Option<TotpChange>,
    ) -> Result<(), Error> {
        let by = self.link.ready(by).await?;
        let mut ready = Vec::new();
        for credential in new {
            ready.push(self.link.ready(credential).await?);
        }
        for attempt in 0..2 {
            let rev = self.account_rev().await?;
            let (ak, id) = (self.ak(), &self.state.account);
            let credentials = ready.iter().map(|one| one.new_credential(&ak, id, rev.saturating_add(1)));
            let (setup, totp_off) = match totp.clone() {
                Some(TotpChange::On { secret, code }) => {
                    let secret = confidant_chat_protocol::Secret::from_bytes(secret);
                    (Some(TotpSetup { secret, code }), false)
                }
                Some(TotpChange::Off) => (None, true),
                None => (None, false),
            };
            let request = ChangeCredentials {
                account_rev: rev,
                credentials: List::new(credentials.collect::<Result<_, _>>()?)?,
                totp: setup,
                totp_off,
            };
            let answer = self.link.prove("/account/credentials", &request, &by).await;
            match answer {
                Err(error) if error.is_conflict() && attempt == 0 => self.state.account_rev = 0,
                answer => return self.changed(answer?),
            }
        }
        Err(Error::Denied {
            error: confidant_chat_protocol::ErrorName::Content(Refused::Conflict),
            retry_ms: None,
        })
    }

    /// Replaces a lost password and the recovery code that signs this. Log in with the code first.
    pub async fn recover(
        &mut self,
        code: &RecoveryCode,
        password: &Credential,
        new_code: &RecoveryCode,
    ) -> Result<(), Error> {
        let by = self.link.ready(&Credential::Recovery(code.clone())).await?;
        let password = self.link.ready(password).await?;
        let recovery = self.link.ready(&Credential::Recovery(new_code.clone())).await?;
        let rev = self.account_rev().await?;
        let (ak, id, next) = (self.ak(), &self.state.account, rev.saturating_add(1));
        let request = Recover {
            account_rev: rev,
            password: password.new_credential(&ak, id, next)?,
            recovery: recovery.new_credential(&ak, id, next)?,
        };
        let answer: AccountChanged = self.link.prove("/account/recover", &request, &by).await?;
        self.changed(answer)
    }

    fn changed(&mut self, changed: AccountChanged) -> Result<(), Error> {
        self.state.account_rev = changed.account_rev;
        self.save()
    }

    /// The revision of the account; asked for if it is not known.
    pub(crate) async fn account_rev(&mut self) -> Result<u32, Error> {
        if self.state.account_rev == 0 {
            self.connect().await?;
            self.refresh_account().await?;
        }
        Ok(self.state.account_rev)
    }

    /// The ways to log in that the server has. One that shall go is left out of [`Device::rotate`]: whoever held it knows the
    /// account key.
    pub async fn ways_in(&mut self) -> Result<Vec<WayIn>, Error> {
        let answer: CredentialList =
            self.link.post("/account/credentials/list", &RequestCredentials {}).await?;
        let mut ways = Vec::new();
        for one in answer.credentials.into_vec() {
            let name = match &one.id {
                Some(id) => self.data(CREDENTIAL, id.as_str())?,
                None => None,
            };
            ways.push(WayIn { kind: one.kind, id: one.id, name });
        }
        Ok(ways)
    }

    /// Calls a way to log in by a name, sealed, from now on; none: by none. It is sent with the queue.
    pub fn name_way_in(&mut self, id: &CredentialId, name: Option<&str>) -> Result<(), Error> {
        self.set_data(CREDENTIAL, id.as_str(), name)
    }

    /// The account's devices and sessions.
    pub async fn devices(&mut self) -> Result<Vec<DeviceLine>, Error> {
        let answer: Devices = self.link.post("/account/devices", &RequestDevices {}).await?;
        let lines = answer.devices.iter().map(|device| {
            let here = answer.sessions.iter().filter(|session| session.device == device.device);
            DeviceLine {
                label: device
                    .label
                    .as_ref()
                    .and_then(|label| self.open_label(&device.device, label.sealed())),
                created_at: device.created_at,
                last_seen_day: device.last_seen_day,
                sessions: here.map(|session| session.session.0).collect(),
                is_this: device.device == self.state.device,
                device: device.device.clone(),
            }
        });
        Ok(lines.collect())
    }

    fn open_label(&self, device: &DeviceId, sealed: &confidant_seal::Sealed) -> Option<String> {
        let account = self.account.as_ref()?;
        let (kind, name) = label_place(device).ok()?;
        let opened = open_record(account.ring(), account.id(), &Place::Data(&kind, &name), sealed).ok()?;
        Text::from_json(&opened.json).ok().map(|text| text.body)
    }

    /// Gives this device a label, sealed.
    pub async fn label(&mut self, text: &str) -> Result<(), Error> {
        self.connect().await?;
        let (kind, name) = label_place(&self.state.device)?;
        let scribe = self.scribe()?;
        let held = scribe.account.ring().writer().ok_or(Refused::KeyRefused)?;
        let json = crate::plan::text(text);
        let sealed = seal_record(held, &self.state.account, &Place::Data(&kind, &name), 1, &json);
        let label = LabelDevice { device: self.state.device.clone(), label: Envelope::new(sealed)? };
        match self.request_one(ClientEvent::LabelDevice(label)).await?.1 {
            ServerEvent::DevicesChanged(_) => Ok(()),
            _ => Err(Error::Unexpected),
        }
    }

    /// Ends a device with its sessions. It still knows the account key: replace that with [`Device::rotate`].
    pub async fn revoke_device(&mut self, by: &Credential, device: &DeviceId) -> Result<(), Error> {
        let by = self.link.ready(by).await?;
        let request = RevokeDevice { device: device.clone() };
        let _: Done = self.link.prove("/account/devices/revoke", &request, &by).await?;
        Ok(())
    }

    /// Ends a session.
    pub async fn revoke_session(&mut self, by: &Credential, session: [u8; 16]) -> Result<(), Error> {
        let by = self.link.ready(by).await?;
        let request = RevokeSession { session: Bytes(session) };
        let _: Done = self.link.prove("/account/sessions/revoke", &request, &by).await?;
        Ok(())
    }
}

/// The kind of account data that has what ways to log in are called.
const CREDENTIAL: &str = "credential";

fn label_place(device: &DeviceId) -> Result<(FieldName, FieldName), Error> {
    Ok((FieldName::parse("device")?, FieldName::parse(device.as_str())?))
}

/// Takes over a session that was opened.
pub(crate) fn take_session(
    state: &mut State,
    opened: &SessionOpened,
    id: Option<[u8; 32]>,
) -> Result<(), Error> {
    let id = id.ok_or(Error::Unexpected)?;
    state.device = opened.device.clone();
    state.account_rev = opened.account_rev;
    state.session = Some(Session::new(id, *opened.session.dangerously_expose_bytes(), opened.expires_at));
    Ok(())
}

/// What a new account has.
struct NewAccount {
    ring: KeyEntry,
    mailbox: KeyEntry,
    first: FirstManifest,
    book: Book,
}

impl NewAccount {
    fn make(
        ak: &AccountKey,
        id: &confidant_chat_format::AccountId,
        device: &DeviceId,
        now: u64,
    ) -> Result<Self, Error> {
        let (uk, letters) = (Key::random(), Key::random());
        let entry = |of, key: &Key| Entry::seal(ak, id, of, 1, key, ak.generation());
        let (ring, mailbox) = (entry(RingOf::Account, &uk), entry(RingOf::Box, &letters));
        let box_pub: PublicKey = BoxKey::from_key(&letters).public_key();
        let opened = Ring::open(ak, id, RingOf::Account, std::slice::from_ref(&ring))?;
        let (mut keys, mut boxes) = (Keys::none(), Keys::none());
        keys.push(uk, ak.generation());
        boxes.push(letters, ak.generation());
        let manifest = Bin(Vec::new());
        let mut book = Book { keys, boxes, box_pub, manifest, floors: Vec::new() };
        let first = first_list(&mut book, &opened, id, device, now)?;
        Ok(Self { ring: ring.try_into()?, mailbox: mailbox.try_into()?, first, book })
    }
}

/// Empty floors and their manifest, at revision 1, for an account with the keys of `book`, which has them afterwards.
pub(crate) fn first_list(
    book: &mut Book,
    ring: &Ring,
    id: &confidant_chat_format::AccountId,
    device: &DeviceId,
    now: u64,
) -> Result<FirstManifest, Error> {
    let held = ring.writer().ok_or(Refused::KeyRefused)?;
    let json = Floor { v: 1, chats: std::collections::BTreeMap::new() }.to_json();
    let floors: Vec<_> =
        Shelf::all().map(|shelf| seal_record(held, id, &Place::Floor(shelf), 1, &json)).collect();
    book.floors = floors.iter().map(Bin::of).collect();
    let manifest = Manifest {
        v: 1,
        g: held.born(),
        uk: book.keys.count(),
        box_n: book.boxes.count(),
        box_pub: book.box_pub,
        floors: [Digest::ZERO; 16],
        chain: Digest::ZERO,
        at: now,
        device: device.clone(),
    };
    let head = seal_manifest(book, (NOTHING, Digest::ZERO), manifest, |rev, json| {
        seal_record(held, id, &Place::Manifest, rev, json)
    })?;
    book.manifest = Bin::of(head.envelope.sealed());
    let floors = floors.into_iter().map(Envelope::new).collect::<Result<_, _>>()?;
    Ok(FirstManifest { floors: List::new(floors)?, manifest: head })
}
