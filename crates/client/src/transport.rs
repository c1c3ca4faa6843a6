//! How requests and frames travel. Everything else in this crate talks to these two traits.
//!
//! ```text
//! Transport::post     path, body ──▶ body, and the id of a new session
//! Transport::connect  ──▶ Connection: send a frame, wait for the next one
//! ```
//!
//! Easy to get wrong: a request that failed may have been carried out. A transport never repeats one by itself.

use async_trait::async_trait;
use confidant_chat_format::Origin;
use confidant_chat_protocol::{CloseCode, RefusedSent};
use confidant_display::debug_without_content;

use crate::error::Error;

/// What a session is shown by: both halves, or none.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKeys {
    /// Its id: a browser has it in the cookie.
    pub id: [u8; 32],
    /// Its secret: the header `Confidant-Session`.
    pub secret: [u8; 32],
}

debug_without_content!(SessionKeys(***));

/// The answer to a POST.
#[derive(Clone)]
pub struct Posted {
    /// The JSON; of an answer in frames, one frame per line.
    pub body: Vec<u8>,
    /// The id of the session that this answer opened, if it opened one.
    pub session: Option<[u8; 32]>,
}

debug_without_content!(Posted { bytes: body.len() });

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportError {
    /// The server cannot be reached, or the answer did not come. Whether the request was carried out is unknown.
    Offline,
    /// The server refused.
    Refused(Box<RefusedSent>),
    /// The server closed the socket with this code.
    Closed(u16),
}

impl From<TransportError> for Error {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::Refused(refused) => (*refused).into(),
            TransportError::Closed(code) if code == CloseCode::Unauthorised.code() => Self::NotLoggedIn,
            TransportError::Offline | TransportError::Closed(_) => Self::Offline,
        }
    }
}

/// A server, as a client reaches it.
#[async_trait]
pub trait Transport: Send + Sync + std::fmt::Debug {
    /// The server's origin, as the person spells it. Proofs are bound to it.
    fn origin(&self) -> &Origin;

    /// Sends a POST to one of [`confidant_chat_protocol::ROUTES`].
    async fn post(
        &self,
        path: &str,
        session: Option<&SessionKeys>,
        body: Vec<u8>,
    ) -> Result<Posted, TransportError>;

    /// Opens a socket. The first frame has to be `hello`.
    async fn connect(&self) -> Result<Box<dyn Connection>, TransportError>;
}

/// An open socket. Dropping it closes it.
#[async_trait]
pub trait Connection: Send + std::fmt::Debug {
    /// Sends a frame.
    async fn send(&mut self, frame: Vec<u8>) -> Result<(), TransportError>;

    /// The next frame of the server. May be dropped while it waits: no frame is lost.
    async fn next(&mut self) -> Result<Vec<u8>, TransportError>;
}
