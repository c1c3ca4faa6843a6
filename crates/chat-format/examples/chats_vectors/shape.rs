//! The shape of the vector file. Structs rather than `json!` so that the order of fields never depends on features.

use serde::{Deserialize, Serialize};

macro_rules! shapes {
    ($($name:ident { $($field:ident: $type:ty),+ $(,)? })+) => {$(
        #[derive(Clone, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name { $(pub(crate) $field: $type),+ }
    )+};
}

/// Purpose, owner, container, object, field.
pub(crate) type Fields = [String; 5];

shapes! {
    Vectors {
        about: String,
        ids: Vec<IdCase>,
        refused_ids: Vec<String>,
        salts: Vec<Salt>,
        prf_input: String,
        password_roots: Vec<PasswordRoot>,
        recovery_roots: Vec<RecoveryRoot>,
        keys_of_roots: Vec<RootKeys>,
        proofs: Vec<Proof>,
        wraps: Vec<WrapCase>,
        entries: Vec<EntryCase>,
        lives: Vec<LiveCase>,
        chains: Vec<ChainCase>,
        shelves: Vec<ShelfCase>,
        manifest_lives: Vec<ManifestLive>,
        records: Vec<RecordCase>,
        histories: Vec<HistoryCase>,
        transcripts: Vec<TranscriptCase>,
        beside: Vec<BesideCase>,
        summaries: Vec<SummaryCase>,
        mailbox: Vec<MailboxCase>,
        pairing: Vec<PairingCase>,
        rotation: Vec<RotationCase>,
        snapshots: Vec<SnapshotCase>,
        refused_links: Vec<String>,
        must_fail: MustFail,
    }
    IdCase { bits: String, account: String, chat: String, message: String }
    Salt { logins_key: String, login: String, server_salt: String, salt: String }
    PasswordRoot { password: String, salt: String, profile: u32, root: String }
    RecoveryRoot { code: String, text: String, root: String, credential: String }
    RootKeys { root: String, kek: String, sign_seed: String, public_key: String }
    Proof {
        root: String, origin: String, purpose: String, signer: String, challenge: String, body: String,
        statement: String, public_key: String, proof: String,
    }
    WrapCase {
        kek: String, account: String, generation: u32, field: String, rev: u32, salt: String,
        account_key: String, sealed: String,
    }
    EntryCase {
        account_key: String, generation: u32, account: String, container: String, field: String, n: u32, key: String,
        born: u32, kid: String, subs: Vec<String>, salt: String, sealed: String,
    }
    LiveCase { list: Vec<(String, String)>, live: String }
    ChainCase { before: String, envelope_before: String, live: String, chain: String }
    ShelfCase { chat: String, digit: String }
    ManifestLive { floors: Vec<String>, live: String }
    RecordCase {
        name: String, key: String, label: String, context: Fields, rev: u32, salt: String, json: String,
        sealed: String,
    }
    HistoryCase { chat_key: String, branch: Vec<(String, u32)>, digest: String }
    Line { id: String, kind: u8, text: String, deltas: Vec<String>, transcript: String, proof: String }
    TranscriptCase { account_key: String, chat: String, start: String, lines: Vec<Line> }
    BesideCase { turn: String, n: u32, id: String }
    SummaryCase {
        account_key: String, chat: String, sums_up: String, id: String, text: String, proof: String, next: String,
        transcript: String,
    }
    MailboxCase {
        ephemeral: String, box_key: String, box_pub: String, context: Fields, salt: String, json: String, key: String,
        wire: String,
    }
    PairingCase {
        secret: String, text: String, id: String, new_key: String, new_pub: String, old_key: String, origin: String,
        account: String, generation: u32, account_key: String, manifest_rev: u32, manifest: String, salt: String,
        key: String, wire: String,
    }
    RotationCase { entries: Vec<(String, u32, String)>, digest: String }
    SnapshotCase {
        key: String, id: String, origin: String, link: String, now: u64, salt: String, list_json: String, list: String,
        items: Vec<SnapshotItem>, chat_key: String, kept_context: Fields, kept_salt: String, kept: String,
    }
    SnapshotItem { item: String, json: String, sealed: String }
    MustFail {
        profiles: Vec<BadProfile>,
        proofs: Vec<BadProof>,
        wraps: Vec<BadWrap>,
        rings: Vec<BadRing>,
        json: Vec<BadJson>,
        envelopes: Vec<BadEnvelope>,
        transcripts: Vec<BadTranscript>,
        letters: Vec<BadLetter>,
        pairings: Vec<BadPairing>,
        snapshots: Vec<BadSnapshot>,
    }
    BadProfile { profile: u32, error: String }
    BadProof { name: String, case: Proof, error: String }
    BadWrap {
        name: String, kek: String, account: String, generation: u32, sealed: Option<String>, seen_generation: u32, seen_rev: u32,
        error: String,
    }
    Row { n: u32, kid: String, subs: Vec<String>, sealed: String }
    BadRing {
        name: String, account_key: String, generation: u32, account: String, chat: String, rows: Vec<Row>,
        error: String,
    }
    BadJson { name: String, record: String, json: String, error: String }
    BadEnvelope { name: String, key: String, context: Fields, sealed: String, error: String }
    BadTranscript {
        name: String, account_key: String, chat: String, before: String, id: String, kind: u8, text: String,
        proof: String, adopted: u8, transcript: String,
    }
    BadLetter {
        name: String, box_key: String, context: Fields, head: String, listed: Vec<String>, wire: String, error: String,
    }
    BadPairing {
        name: String, secret: String, new_key: String, origin: String, account: String, generation: u32, wire: String,
        error: String,
    }
    BadSnapshot {
        name: String, key: String, id: String, now: u64, list: String, items: Vec<(String, String)>, error: String,
    }
}
