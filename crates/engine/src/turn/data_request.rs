//! What a turn can ask a person's device for, and the way for what is given. When it is asked for is in `asking.rs`.

use confidant_display::debug_without_content;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// What a turn may ask its device for. Nothing, unless somebody says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MayAsk {
    /// Settings and memories, of those whose names it knows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub settings: bool,
    /// Summaries of similar past chats.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub past_chats: bool,
    /// What a search through the person's chats finds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub search: bool,
}

/// What a turn asks its device for.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataRequest {
    /// Settings and memories with these names.
    Settings(Vec<String>),
    /// Past chats that have to do with these tags.
    PastChats(Vec<String>),
    /// What the person's chats say about these words.
    Search(String),
}

/// Something that a device gives for one turn.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Its name or title.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// A request for data, and the way for what is given. Dropped, nothing is given, and the turn goes on at once.
#[derive(Debug)]
pub struct Wanted {
    /// What is asked for.
    pub data_request: DataRequest,
    answer: oneshot::Sender<Vec<Piece>>,
}

debug_without_content!(DataRequest, Piece);

impl Wanted {
    /// A request for data, and where what is given comes out.
    pub(crate) fn new(data_request: DataRequest) -> (Self, oneshot::Receiver<Vec<Piece>>) {
        let (answer, given) = oneshot::channel();
        (Self { data_request, answer }, given)
    }

    /// The request, and the way for what is given, apart.
    pub(crate) fn parted(self) -> (DataRequest, oneshot::Sender<Vec<Piece>>) {
        (self.data_request, self.answer)
    }

    /// Waits until nobody waits for it any more.
    pub async fn closed(&mut self) {
        self.answer.closed().await;
    }

    /// Gives this. A turn that went on without it hears nothing.
    pub fn give(self, pieces: Vec<Piece>) {
        let _late = self.answer.send(pieces);
    }
}
