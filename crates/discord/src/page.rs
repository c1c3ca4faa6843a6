//! A page of messages. One that this version cannot read is left out: it must not keep the others from being read.

use confidant_channel::Trouble;
use serde::Deserialize as _;
use serde_json::Value;
use twilight_http::Response;
use twilight_http::response::marker::ListBody;
use twilight_model::channel::message::Message;
use twilight_model::id::Id;
use twilight_model::id::marker::MessageMarker;

use crate::trouble;

/// What a page holds.
pub(crate) struct Page {
    /// Those that can be read, oldest first.
    pub(crate) messages: Vec<Message>,
    /// The first and the last id on it, whether they can be read or not.
    pub(crate) ends: Option<(Id<MessageMarker>, Id<MessageMarker>)>,
    /// How many there are, whether they can be read or not.
    pub(crate) len: usize,
}

pub(crate) async fn read(
    request: impl IntoFuture<Output = Result<Response<ListBody<Message>>, twilight_http::Error>>,
) -> Result<Page, Trouble> {
    let response = request.await.map_err(|error| trouble::of_message(&error))?;
    let bytes = response.bytes().await.map_err(|_| trouble::unread())?;
    Page::of(&bytes).ok_or_else(trouble::unread)
}

impl Page {
    fn of(bytes: &[u8]) -> Option<Self> {
        let all: Vec<Value> = serde_json::from_slice(bytes).ok()?;
        let ids: Vec<Id<MessageMarker>> =
            all.iter().filter_map(|one| Id::deserialize(&one["id"]).ok()).collect();
        let ends = ids.iter().min().copied().zip(ids.iter().max().copied());
        let len = all.len();
        let mut messages: Vec<Message> =
            all.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect();
        if messages.len() < len {
            tracing::warn!(messages = len - messages.len(), "messages could not be read and were ignored");
        }
        messages.sort_by_key(|message| message.id);
        Some(Self { messages, ends, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_left_out_and_counted() {
        let readable = |id: &str| {
            format!(
                r#"{{"id":"{id}","channel_id":"70","content":"hello","timestamp":"2024-01-01T00:00:00.000000+00:00",
                "edited_timestamp":null,"tts":false,"mention_everyone":false,"mention_roles":[],"attachments":[],"embeds":[],
                "pinned":false,"type":0,"mentions":[],
                "author":{{"id":"111","username":"alice","discriminator":"0","avatar":null}}}}"#
            )
        };
        let json = format!(r#"[{{"id":"9","type":"of the future"}},{},{}]"#, readable("8"), readable("7"));
        let page = Page::of(json.as_bytes()).unwrap();
        let ids: Vec<u64> = page.messages.iter().map(|message| message.id.get()).collect();
        assert_eq!((ids, page.len), (vec![7, 8], 3));
        assert_eq!(page.ends, Some((Id::new(7), Id::new(9))));
        assert!(Page::of(b"[]").unwrap().ends.is_none() && Page::of(b"{}").is_none());
    }
}
