//! Proofs that the server's own model or tool said something, in that chat, after those words.
//!
//! ```text
//! T_0 = H("seal/v1/transcript")      T_i = H(T_{i-1} ‖ kind ‖ H(text))
//! proof = mac(sub(account key, "proof"), "proof/v1", lp(chat) ‖ lp(id) ‖ kind ‖ T_i)
//! ```
//!
//! What tools said stands in it between the question and the answer; a summary beside it, at the place behind the words that it is about.
//!
//! The account key here is the server's (its keyring has it), not the one that the person's devices share. Easy to get
//! wrong: dropping what fails. A message whose proof fails still enters the prompt, as a quotation: kind 5.

use confidant_seal::Key;
use subtle::ConstantTimeEq as _;

use crate::bytes::{Digest, hash, put};
use crate::ids::{ChatId, MessageId, TurnId};

/// Who speaks, as the transcript has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranscriptKind {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
    /// A summary by the model.
    Summary,
    /// Words that a client says were spoken, without proof.
    Quoted,
}

impl TranscriptKind {
    /// Its byte.
    pub const fn byte(self) -> u8 {
        match self {
            Self::User => 1,
            Self::Assistant => 2,
            Self::Tool => 3,
            Self::Summary => 4,
            Self::Quoted => 5,
        }
    }
}

/// Where a branch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transcript(Digest);

impl Transcript {
    /// Before the first message.
    pub fn start() -> Self {
        Self(hash(&[b"seal/v1/transcript"]))
    }

    /// A place that the server still has.
    pub const fn resume(digest: Digest) -> Self {
        Self(digest)
    }

    /// After one more message, of exactly these bytes.
    pub fn then(&self, kind: TranscriptKind, text: &str) -> Self {
        Self(hash(&[self.0.as_bytes(), &[kind.byte()], hash(&[text.as_bytes()]).as_bytes()]))
    }

    /// The digest, `T_i`.
    pub const fn digest(&self) -> &Digest {
        &self.0
    }

    /// The proof for the message that ends here.
    pub fn prove(&self, account_key: &Key, chat: &ChatId, id: &MessageId, kind: TranscriptKind) -> Digest {
        let mut bytes = Vec::new();
        put(&mut bytes, chat.as_str());
        put(&mut bytes, id.as_str());
        bytes.push(kind.byte());
        bytes.extend_from_slice(self.0.as_bytes());
        Digest::from_bytes(account_key.derive("proof").mac("proof/v1", &bytes))
    }
}

/// The id of what a turn leaves beside its answer: what tools said, then a summary, counted from 0. The same on every device.
pub fn beside(turn: &TurnId, n: u32) -> MessageId {
    let mut name = Vec::new();
    put(&mut name, turn.as_str());
    let digest = hash(&[b"seal/v1/beside", &name, &n.to_be_bytes()]);
    let bits = digest.as_bytes().first_chunk::<16>().expect("a digest has 32 bytes");
    MessageId::from_bits(bits)
}

/// A message that a client sent from its history.
#[derive(Clone, Copy)]
pub struct Said<'a> {
    /// Its id.
    pub id: &'a MessageId,
    /// Who speaks, says the client.
    pub kind: TranscriptKind,
    /// The words.
    pub text: &'a str,
    /// The server's proof, if it gave one.
    pub proof: Option<&'a Digest>,
    /// Of a summary: where the transcript stood behind the words that it is about.
    pub sums_up: Option<Transcript>,
}

confidant_display::debug_without_content!(Said<'_> { kind });

/// Takes over a branch from its first message, or from a place that the server has: gives the kind that each message has in
/// the prompt, and where the branch then stands.
///
/// A summary that says what it sums up stands beside the branch: its proof continues that place, and the next message does, too. As the
/// first of what is sent it takes the place of those words; anywhere else it has to stand right behind them.
pub fn adopt<'a>(
    account_key: &Key,
    chat: &ChatId,
    from: Transcript,
    branch: impl IntoIterator<Item = Said<'a>>,
) -> (Vec<TranscriptKind>, Transcript) {
    let (mut kinds, mut at) = (Vec::new(), from);
    for said in branch {
        let beside = said.sums_up.filter(|_| said.kind == TranscriptKind::Summary);
        let before = beside.unwrap_or(at);
        let is_in_place = before == at || kinds.is_empty();
        let next = before.then(said.kind, said.text);
        let proved = || {
            let right = next.prove(account_key, chat, said.id, said.kind);
            said.proof.is_some_and(|proof| right.as_bytes().ct_eq(proof.as_bytes()).into())
        };
        let kind = match said.kind {
            TranscriptKind::User => TranscriptKind::User,
            TranscriptKind::Assistant | TranscriptKind::Tool | TranscriptKind::Summary
                if is_in_place && proved() =>
            {
                said.kind
            }
            _ => TranscriptKind::Quoted,
        };
        at = match beside {
            Some(before) if kind == said.kind => before,
            _ if kind == said.kind => next,
            _ => at.then(kind, said.text),
        };
        kinds.push(kind);
    }
    (kinds, at)
}
