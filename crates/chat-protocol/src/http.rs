//! The requests of an account over HTTP: which body goes where, and what answers it.
//!
//! Everything about chats goes over the socket; these are the requests that come before a session, or need a proof. A
//! refusal is [`crate::RefusedSent`] with the status of its kind.

use confidant_chat_format::Purpose;

#[cfg(feature = "describe")]
use crate::describe::{Book, Dice, Made};
use crate::limits::MAX_FRAME;

/// A request.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Route {
    /// Its path; the method is POST.
    pub path: &'static str,
    /// Who may ask.
    pub who: Who,
    /// What it is for.
    pub about: &'static str,
    /// How many bytes the body may have. A server reads no more than this before it knows who asks.
    pub limit: usize,
    /// Descriptions and samples.
    #[cfg(feature = "describe")]
    pub(crate) types: Types,
}

/// Who may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Anybody.
    Anybody,
    /// Whoever has a session.
    Session,
    /// Whoever signs, for this purpose. The body is `Signed`, with the request inside.
    Proof(Purpose),
}

#[cfg(feature = "describe")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Types {
    pub(crate) request: Type,
    pub(crate) answer: Type,
}

#[cfg(feature = "describe")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Type {
    pub(crate) describe: fn(&mut Book) -> String,
    pub(crate) make: fn(&mut Dice<'_>) -> Made,
    pub(crate) read: fn(&[u8]) -> Result<(), crate::Malformed>,
}

#[cfg(feature = "describe")]
impl Type {
    const fn of<T: crate::Body + std::fmt::Debug>() -> Self {
        Self { describe: T::describe, make: made::<T>, read: |json| T::read(json).map(drop) }
    }
}

macro_rules! routes {
    ($($path:literal, $who:ident, $request:ident => $answer:ident, $about:literal;)+) => {
        /// Every request.
        pub const ROUTES: &[Route] = &[$(Route {
            path: $path,
            who: routes!(@$who $request),
            about: $about,
            limit: limit(routes!(@$who $request), <crate::$request as crate::Body>::LIMIT),
            #[cfg(feature = "describe")]
            types: Types {
                request: Type::of::<crate::$request>(),
                answer: Type::of::<crate::$answer>(),
            },
        }),+];
    };
    (@Anybody $request:ident) => { Who::Anybody };
    (@Session $request:ident) => { Who::Session };
    (@Proof $request:ident) => { Who::Proof(<crate::$request as crate::Provable>::PURPOSE) };
}

routes! {
    "/account/prelogin", Anybody, Prelogin => PreloginAnswer, "How to stretch the password of a login.";
    "/account/challenge", Anybody, ChallengeRequest => Challenge, "A challenge to sign.";
    "/account/register/begin", Anybody, RegisterBegin => RegisterOffer, "An id for a new account.";
    "/account/register", Proof, Register => SessionOpened, "Opens an account and a session.";
    "/account/login", Proof, LoginRequest => SessionOpened, "Opens a session with any credential.";
    "/account/logout", Session, Logout => Done, "Ends this session, or all.";
    "/account/credentials", Proof, ChangeCredentials => AccountChanged, "Adds or replaces credentials.";
    "/account/credentials/list", Session, RequestCredentials => CredentialList, "The ways to log in.";
    "/account/recover", Proof, Recover => AccountChanged, "Replaces a lost password by the recovery code.";
    "/account/rotation/begin", Proof, RotationBegin => RotationBegun, "Begins a rotation of the account key.";
    "/account/rotation/stage", Session, RotationStage => RotationStaged, "Stages rings and floors.";
    "/account/rotation/commit", Proof, RotationCommit => AccountChanged, "Commits the rotation.";
    "/account/pair/offer", Anybody, PairOffer => PairOffered, "The new device's public key.";
    "/account/pair/take", Session, PairTake => PairTaken, "The old device reads the offer.";
    "/account/pair/send", Proof, PairSend => Done, "The old device sends the account key, sealed.";
    "/account/pair/fetch", Anybody, PairFetch => PairFetched, "The new device takes it, once.";
    "/account/devices", Session, RequestDevices => Devices, "Devices and sessions.";
    "/account/devices/revoke", Proof, RevokeDevice => Done, "Ends a device with its sessions.";
    "/account/sessions/revoke", Proof, RevokeSession => Done, "Ends a session.";
    "/account/export", Proof, Export => ServerFrame, "Everything, as frames of server events, one per line.";
    "/account/erase", Proof, Erase => Erased, "Erases the account.";
    "/account/restore/begin", Anybody, RestoreBegin => RestoreOffer, "What is left of an account, with the operator's code.";
    "/account/restore", Proof, Restore => SessionOpened, "Puts a lost account back, and opens a session.";
    "/account/restore/rings", Proof, RestoreRings => RingsRestored, "Puts back the keys of chats that the server lost.";
    "/chats/catalogue", Session, RequestCatalogue => Catalogue, "What answers may use: tools and focus modes.";
    "/chats/ticket", Session, TicketRequest => Ticket, "A ticket for one socket.";
    "/chats/snapshots", Session, RequestSnapshots => Snapshots, "The snapshots that the account shares.";
    "/chats/snapshots/make", Session, MakeSnapshot => SnapshotMade, "Shares a snapshot of a chat.";
    "/chats/snapshots/open", Anybody, OpenSnapshot => SnapshotSent, "A snapshot, for whoever has its link.";
    "/chats/snapshots/revoke", Session, RevokeSnapshot => Done, "Ends a snapshot.";
    "/chats/events", Session, ClientFrame => ServerFrame, "A frame without a socket; the answers are frames, one per line.";
}

/// A signed request is a text inside the body: in the worst case, every byte of it is escaped.
const fn limit(who: Who, limit: usize) -> usize {
    match who {
        Who::Anybody | Who::Session => limit,
        Who::Proof(_) if 2 * limit + MAX_PROOF < MAX_FRAME => 2 * limit + MAX_PROOF,
        Who::Proof(_) => MAX_FRAME,
    }
}

/// What a signed body has beside its request.
const MAX_PROOF: usize = 4096;

#[cfg(feature = "describe")]
fn made<T: crate::Body + std::fmt::Debug>(dice: &mut Dice<'_>) -> Made {
    let value = T::make(dice);
    let json = value.write().expect("below its limit");
    let again = T::read(&json).expect("what is written is read").write().expect("below its limit");
    let pretty = serde_json::to_string_pretty(&crate::wire::Out(&value)).expect("it was written before");
    Made { json, again, pretty, debug: format!("{value:?}") }
}
