//! What keeps: data and keys, when and for how long, and what this process knows of both.
//!
//! ```text
//! session ── the only door to a conversation     keyring ── root ─▶ named keys, data keys     rights ── export, erasure, receipts
//!    └ log ── sealed entries ─▶ checkpoint          └ anchors ── how far each log has come     audit ── who did what
//! ```

pub mod access;
pub(crate) mod account_scope;
pub(crate) mod accounts;
pub(crate) mod amend;
pub(crate) mod anchors;
pub mod audit;
pub(crate) mod channel_keys;
pub(crate) mod checkpoint;
pub(crate) mod copy;
pub(crate) mod derived;
pub(crate) mod entry;
pub(crate) mod epoch;
pub(crate) mod erased;
pub(crate) mod erasures;
pub(crate) mod expire;
pub(crate) mod headroom;
pub(crate) mod keyring;
pub(crate) mod legacy;
pub(crate) mod lifetimes;
pub(crate) mod log;
pub(crate) mod owed;
pub(crate) mod retention;
pub mod rights;
pub(crate) mod session;
pub(crate) mod slots;
pub mod storage;
pub(crate) mod web_cache;
pub(crate) mod web_scope;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use confidant_seal::Scope;
use parking_lot::Mutex;

use crate::clock::{Clock, Millis};
use crate::concepts::Concepts;
use crate::counts::Counters;
use crate::error::{Error, StoreError};
use crate::ledger::account_scope::is_account_key;
use crate::ledger::anchors::Anchors;
use crate::ledger::audit::AuditRecord;
use crate::ledger::derived::Derived;
use crate::ledger::erasures::Erasures;
use crate::ledger::headroom::{Headroom, RoomLent};
use crate::ledger::keyring::Keyring;
use crate::ledger::slots::Slots;
use crate::ledger::web_scope::Keep;
use crate::notices::Agenda;
use crate::settings::Settings;
use crate::store::volatile::Volatile;
use crate::store::{AuditHead, Instance, Naming, Store};
use crate::turn::LeftOpen;

/// Where things are kept, and what is known of that.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) store: Arc<dyn Store>,
    /// What the store wants sessions to be called.
    pub(crate) naming: Naming,
    pub(crate) keyring: Keyring,
    /// Sessions that are kept in this process only, which store and keyring have beside them.
    pub(crate) volatile: Arc<Volatile>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) channel_lifetimes: BTreeMap<String, Duration>,
    pub(crate) derived: Vec<Arc<dyn Derived>>,
    pub(crate) concepts: Concepts,
    pub(crate) headroom: Option<Arc<dyn Headroom>>,
    /// Up to which key it was looked whether contexts can be found.
    pub(crate) looked_for_contexts: Mutex<Option<confidant_seal::Tag>>,
    /// Held by whoever asks every key whose it is.
    pub(crate) reading_through: tokio::sync::Mutex<()>,
    /// When what could not be taken up is tried again.
    pub(crate) unreadable: Agenda,
    pub(crate) agenda: Agenda,
    pub(crate) left_open: LeftOpen,
    /// This engine among those on the same store.
    pub(crate) instance: Instance,
    /// Keeps the instance alive in the eyes of others; let go of at the stop.
    pub(crate) enlisted: Mutex<Option<Box<dyn Any + Send + Sync>>>,
    pub(crate) slots: Slots,
    pub(crate) anchors: Arc<Anchors>,
    pub(crate) counters: Counters,
    pub(crate) erasures: Erasures,
}

impl Ledger {
    pub(crate) fn now(&self) -> Millis {
        self.clock.now()
    }

    /// Room for an erasure on a full disk, for as long as this is held.
    pub(crate) fn room(&self) -> Option<RoomLent> {
        self.headroom.clone().map(RoomLent::of)
    }

    /// Puts a record of its own into the audit log; says where it stands.
    pub(crate) async fn record(&self, note: AuditRecord) -> Result<AuditHead, Error> {
        let head = match self.store.record(vec![note.clone().pending(&self.keyring)]).await {
            // Whoever only looks must be able to on a full disk, and is written down there as well.
            Err(StoreError::Full) => {
                let _room = self.room();
                self.store.record(vec![note.pending(&self.keyring)]).await?
            }
            recorded => recorded?,
        };
        self.anchors.mark_audit();
        head.ok_or(Error::Internal)
    }

    /// When a session of this scope ends if nothing more is said.
    pub(crate) fn expiry(&self, scope: &Scope, now: Millis) -> Option<Millis> {
        if is_account_key(scope) {
            return None;
        }
        // To the moment: the order of their uses is told by it.
        match web_scope::keep(scope) {
            Some(Keep::Once) => return Some(now.plus(UNCONFIRMED)),
            Some(Keep::Stored | Keep::Memory) => return Some(now.plus(self.settings.web.lives)),
            None => {}
        }
        let own = self.channel_lifetimes.get(scope.channel().as_str()).copied();
        self.settings.lifetimes.expiry(own, scope, now)
    }
}

/// The longest that an answer waits to be confirmed, in a session that is kept no longer.
const UNCONFIRMED: Duration = Duration::from_secs(3600);
