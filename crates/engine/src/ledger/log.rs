//! A session's log: what is opened from a store, and how the next entries are sealed onto it.
//!
//! Pure: no store, no clock. Each record's associated data has its scope, its key, its sequence and the tag of the record
//! before it, so that no record opens anywhere but in its place; the snapshot carries the last tag it covers, so that
//! the chain goes on across it. What is easy to get wrong: a log that advanced and was not stored is ahead of the truth;
//! [`Log::advance`] therefore consumes it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_display::debug_without_content;
use confidant_seal::{Context, Key, Scope, Sealed, Suite, open, seal};
use serde::{Deserialize, Serialize};

use crate::clock::Millis;
use crate::error::Tampering;
use crate::ledger::checkpoint::Checkpoint;
use crate::ledger::entry::Entry;
use crate::ledger::epoch::Epoch;
use crate::store::Loaded;

/// A fold drops what is more than a conversation keeps. Beyond that it only makes opening quicker, by less than half, and
/// costs a turn as much as all that it covers, so it is done seldom: never below this many bytes of records,
const SMALLEST_FOLD: usize = 4 << 20;
/// and then only when they are this many times the snapshot: every byte is written about once more, however long the log.
const OUTGROWN: usize = 4;
/// A fold that drops waits for as many exchanges as are kept, and for no fewer than these: whoever keeps less for a while and
/// then more again finds them.
const FEWEST_DROPPED: u64 = 64;
/// Nor are fewer records than this folded, whatever they hold.
const FEWEST_FOLDED: u64 = 16;
/// Every object in a log is written once.
const REVISION: u32 = 1;

/// An opened log.
pub(crate) struct Log {
    /// The canonical scope, as associated data has it.
    owner: String,
    key: Key,
    /// The key's id in hex, as associated data has it.
    container: String,
    version: u64,
    head: Option<[u8; 16]>,
    /// Sealed bytes of the snapshot and of the entries after it: their ratio decides when to fold.
    snapshot_bytes: usize,
    tail_bytes: usize,
    covers: u64,
    /// How many exchanges the snapshot had dropped; those that went since are still in records.
    dropped: u64,
    checkpoint: Checkpoint,
    /// The last erasure of the session or its person, which was before this log was made: a later one ends the log.
    erased: Epoch,
}

/// What a store must take for a log to have advanced.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) record: Sealed,
    pub(crate) snapshot: Option<(u64, Sealed)>,
    /// When the log ends if nothing more is written; it is sealed in the record, too.
    pub(crate) expires_at: Option<Millis>,
}

/// The plaintext of a snapshot.
#[derive(Serialize, Deserialize)]
struct Snapshot<C> {
    /// The tag of the last entry covered, in hex.
    head: String,
    checkpoint: C,
}

impl Log {
    /// A log that holds nothing yet.
    pub(crate) fn new(scope: &Scope, key: Key) -> Self {
        Self {
            owner: URL_SAFE_NO_PAD.encode(scope.canonical()),
            container: key.kid().to_string(),
            key,
            version: 0,
            head: None,
            snapshot_bytes: 0,
            tail_bytes: 0,
            covers: 0,
            dropped: 0,
            checkpoint: Checkpoint::default(),
            erased: Epoch::default(),
        }
    }

    /// The same, made or opened after this erasure.
    pub(crate) fn after(mut self, erased: Epoch) -> Self {
        self.erased = erased;
        self
    }

    /// The last erasure of the session or its person.
    pub(crate) fn erased(&self) -> Epoch {
        self.erased
    }

    /// Opens what a store had, and refuses whatever is not exactly what was written.
    ///
    /// `anchor` is the highest version that the keyring has seen. At most `max_messages` messages are kept of it.
    pub(crate) fn open(
        scope: &Scope,
        key: Key,
        loaded: &Loaded,
        anchor: u64,
        max_messages: usize,
    ) -> Result<Self, Tampering> {
        if loaded.version < anchor {
            return Err(Tampering::RolledBack);
        }
        let mut log = Self::new(scope, key);
        if let Some((covers, sealed)) = &loaded.snapshot {
            log.open_snapshot(*covers, sealed)?;
        }
        for (seq, sealed) in &loaded.entries {
            if *seq != log.version + 1 {
                return Err(if *seq > log.version {
                    Tampering::LogTruncated
                } else {
                    Tampering::LogOverfull
                });
            }
            for entry in log.open_record(*seq, sealed)? {
                log.checkpoint.apply(entry).map_err(|_| Tampering::RecordRefused)?;
            }
            log.version = *seq;
            log.head = sealed.tag();
            log.tail_bytes += sealed.as_bytes().len();
        }
        log.checkpoint.trim(max_messages);
        match log.version.cmp(&loaded.version) {
            std::cmp::Ordering::Less => Err(Tampering::LogTruncated),
            std::cmp::Ordering::Equal => Ok(log),
            std::cmp::Ordering::Greater => Err(Tampering::LogOverfull),
        }
    }

    /// Seals `entries` as the next record of the log, with a snapshot when there is enough to drop or to fold.
    ///
    /// What is written together is one record: it is there as a whole or not at all. Takes the log and gives it back
    /// advanced: whoever cannot store what was written has no log any more, and must open it again. At most
    /// `max_messages` messages are kept; what goes is in older records until the next fold. `lifetime` says when a log of
    /// this content ends.
    pub(crate) fn advance(
        mut self,
        entries: Vec<Entry>,
        max_messages: usize,
        lifetime: impl FnOnce(&Checkpoint) -> Option<Millis>,
    ) -> Result<(Self, Written), Tampering> {
        let mut plain = json(&entries);
        let (is_empty, takes_back) = (entries.is_empty(), entries.iter().any(Entry::takes_back));
        for entry in entries {
            self.checkpoint.apply(entry).map_err(|_| Tampering::RecordRefused)?;
        }
        let expires_at = lifetime(&self.checkpoint);
        // The entries say what waits, and so how long the log lives: that is why it comes last, into the same list.
        if self.checkpoint.lives() != Some(expires_at) {
            let lives = Entry::Lives { until: expires_at };
            plain.pop();
            if !is_empty {
                plain.push(b',');
            }
            plain.extend_from_slice(&json(&lives));
            plain.push(b']');
            self.checkpoint.apply(lives).map_err(|_| Tampering::RecordRefused)?;
        }
        let record = self.seal_record(&plain);
        self.version += 1;
        self.head = record.tag();
        self.tail_bytes += record.as_bytes().len();
        let outgrown = self.tail_bytes > SMALLEST_FOLD.max(OUTGROWN * self.snapshot_bytes);
        // An exchange is two messages or more, so this looks at no more than are kept.
        if self.checkpoint.exchanges().len() > max_messages / 2 {
            self.checkpoint.trim(max_messages);
        }
        let dropped = self.checkpoint.dropped().saturating_sub(self.dropped);
        let overfull = dropped > FEWEST_DROPPED.max(max_messages as u64 / 2);
        // What was taken back must not stay in an older record.
        let fold = takes_back || ((outgrown || overfull) && self.version - self.covers >= FEWEST_FOLDED);
        let snapshot = fold.then(|| (self.version, self.fold(max_messages)));
        Ok((self, Written { record, snapshot, expires_at }))
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Counts the tokens of the newest `exchanges` where that was not done before.
    pub(crate) fn count_tokens(&mut self, exchanges: usize, count: impl Fn(&str) -> u32) {
        self.checkpoint.count_tokens(exchanges, count);
    }

    pub(crate) fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    fn fold(&mut self, max_messages: usize) -> Sealed {
        self.checkpoint.trim(max_messages);
        let snapshot = Snapshot { head: tag_text(self.head.as_ref()), checkpoint: &self.checkpoint };
        let object = self.version.to_string();
        let sealed = seal(&self.key, SUITE, &self.context(&object, "snapshot"), REVISION, &json(&snapshot));
        self.covers = self.version;
        self.dropped = self.checkpoint.dropped();
        self.snapshot_bytes = sealed.as_bytes().len();
        self.tail_bytes = 0;
        sealed
    }

    fn seal_record(&self, entries: &[u8]) -> Sealed {
        let (object, field) = ((self.version + 1).to_string(), tag_text(self.head.as_ref()));
        seal(&self.key, SUITE, &self.context(&object, &field), REVISION, entries)
    }

    fn open_record(&self, seq: u64, sealed: &Sealed) -> Result<Vec<Entry>, Tampering> {
        let (object, field) = (seq.to_string(), tag_text(self.head.as_ref()));
        let opened = open(&self.key, &self.context(&object, &field), sealed);
        let opened = opened.map_err(|_| Tampering::RecordRefused)?;
        serde_json::from_slice(&opened.data).map_err(|_| Tampering::RecordRefused)
    }

    fn open_snapshot(&mut self, covers: u64, sealed: &Sealed) -> Result<(), Tampering> {
        let object = covers.to_string();
        let opened = open(&self.key, &self.context(&object, "snapshot"), sealed);
        let opened = opened.map_err(|_| Tampering::RecordRefused)?;
        let snapshot: Snapshot<Checkpoint> =
            serde_json::from_slice(&opened.data).map_err(|_| Tampering::RecordRefused)?;
        self.head = Some(tag_of(&snapshot.head).ok_or(Tampering::RecordRefused)?);
        self.checkpoint = snapshot.checkpoint.revived();
        self.version = covers;
        self.covers = covers;
        self.dropped = self.checkpoint.dropped();
        self.snapshot_bytes = sealed.as_bytes().len();
        Ok(())
    }

    fn context<'a>(&'a self, object: &'a str, field: &'a str) -> Context<'a> {
        Context { purpose: "session", owner: &self.owner, container: &self.container, object, field }
    }
}

debug_without_content!(Log { version });

/// Sessions use ChaCha20-Poly1305: as fast without special instructions, and what seed data used.
const SUITE: Suite = Suite::ChaCha20Poly1305;

/// A tag in hex; nothing for none, as for the first entry.
pub(crate) fn tag_text(tag: Option<&[u8; 16]>) -> String {
    tag.map_or_else(String::new, |tag| confidant_seal::Tag::from_bytes(*tag).to_string())
}

fn json(value: &impl Serialize) -> zeroize::Zeroizing<Vec<u8>> {
    serde_json::to_vec(value).expect("stored types have string keys only, so they are always JSON").into()
}

fn tag_of(text: &str) -> Option<[u8; 16]> {
    confidant_seal::Tag::from_hex(text).map(|tag| *tag.as_bytes())
}
