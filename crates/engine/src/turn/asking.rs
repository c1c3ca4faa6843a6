//! What a turn of a chat asks the person's device for, in the middle of it: what only devices can read.
//!
//! ```text
//! prepare ─▶ settings by name, past chats by tags ─┐
//! respond ─▶ memory.search                         ├─▶ Outbound::Wanted ─▶ device, person ─▶ Piece ─▶ the prompt, and nowhere else
//!                                                  └─ nobody answers for a few seconds: the turn goes on without
//! ```
//!
//! Each kind is asked for once in a turn, only where the question said that it may be, and only in chats that devices keep. What is
//! given is bounded here again, whoever sends it. Easy to get wrong: keeping it. It goes into this turn's prompt; what the log keeps of
//! a search says only that there was one ([`unkept`]).

use std::borrow::Cow;
use std::time::Duration;

use confidant_display::debug_without_content;
use confidant_model::Step;
use parking_lot::Mutex;

use super::data_request::{DataRequest, MayAsk, Piece, Wanted};
use super::outbound::Outbound;
use super::outlet::Outlet;
use super::remember;
use super::request::TurnRequest;
use crate::approval::{Current, Work};

/// What one turn may ask for, and has asked for.
#[derive(Debug, Default)]
pub(super) struct Asking {
    may: MayAsk,
    /// Whether the conversation begins: then it is told of similar ones.
    begins: bool,
    /// How long the turn waits for an answer.
    wait: Duration,
    so_far: Mutex<SoFar>,
}

#[derive(Default)]
struct SoFar {
    settings: bool,
    past_chats: bool,
    search: bool,
    pieces: usize,
    bytes: usize,
    given: Vec<String>,
}

debug_without_content!(SoFar { pieces, bytes });

impl Asking {
    /// For a turn of a chat that a device asked for; `begins` where nothing was said before.
    pub(super) fn new(request: &TurnRequest, begins: bool, wait: Duration) -> Self {
        let off = &request.off;
        let may = MayAsk {
            settings: request.asks.settings && !off.settings,
            past_chats: request.asks.past_chats && !off.past_chats,
            search: request.asks.search && !off.has_tool(remember::NAME),
        };
        // What came with the question counts.
        let texts = request.settings.values().chain(request.past_chats.iter().map(|chat| &chat.summary));
        let texts = texts.chain(request.profile.values());
        let (mut pieces, mut bytes) = (0, 0);
        for text in texts {
            (pieces, bytes) = (pieces + 1, bytes + text.len());
        }
        let so_far = SoFar { pieces, bytes, ..SoFar::default() };
        Self { may, begins, wait, so_far: Mutex::new(so_far) }
    }

    /// Whether a search may look on the device.
    pub(super) fn may_search(&self) -> bool {
        self.may.search
    }

    /// Whether it may be that something is asked for before the answer, so that none can be begun on a guess.
    pub(super) fn may_come_first(&self, knows_names: bool) -> bool {
        (self.may.settings && knows_names) || (self.may.past_chats && self.begins)
    }

    /// Whether something was given on the way.
    pub(super) fn has_given(&self) -> bool {
        !self.so_far.lock().given.is_empty()
    }

    /// What was given on the way: nothing that is made of the turn may repeat it.
    pub(super) fn given(&self) -> Vec<String> {
        self.so_far.lock().given.clone()
    }

    /// Settings and memories with these names; of others nothing is taken.
    pub(super) async fn settings(&self, names: &[String], outlet: &Outlet) -> Vec<Piece> {
        if names.is_empty() {
            return Vec::new();
        }
        self.ask(DataRequest::Settings(names.to_vec()), outlet, |piece| names.contains(&piece.name)).await
    }

    /// Past chats that have to do with these tags, where a conversation begins.
    pub(super) async fn past_chats(&self, tags: &[String], outlet: &Outlet) -> Vec<Piece> {
        if tags.is_empty() || !self.begins {
            return Vec::new();
        }
        self.ask(DataRequest::PastChats(tags.to_vec()), outlet, |_| true).await
    }

    /// What the person's chats say about these words. `None` if nobody could be asked, or was asked before.
    pub(super) async fn search(&self, words: &str, outlet: &Outlet) -> Option<Vec<Piece>> {
        if words.trim().is_empty() || !self.is_open(&DataRequest::Search(String::new())) {
            return None;
        }
        Some(self.ask(DataRequest::Search(words.to_owned()), outlet, |_| true).await)
    }

    fn is_open(&self, data_request: &DataRequest) -> bool {
        let so_far = self.so_far.lock();
        let (may, was_asked) = match data_request {
            DataRequest::Settings(_) => (self.may.settings, so_far.settings),
            DataRequest::PastChats(_) => (self.may.past_chats, so_far.past_chats),
            DataRequest::Search(_) => (self.may.search, so_far.search),
        };
        may && !was_asked && so_far.pieces < MOST_PIECES && so_far.bytes < MOST_BYTES
    }

    async fn ask(
        &self,
        data_request: DataRequest,
        outlet: &Outlet,
        is_it: impl Fn(&Piece) -> bool,
    ) -> Vec<Piece> {
        if !self.is_open(&data_request) {
            return Vec::new();
        }
        {
            let mut so_far = self.so_far.lock();
            match data_request {
                DataRequest::Settings(_) => so_far.settings = true,
                DataRequest::PastChats(_) => so_far.past_chats = true,
                DataRequest::Search(_) => so_far.search = true,
            }
        }
        let (wanted, given) = Wanted::new(data_request);
        outlet.send(Outbound::Wanted(Box::new(wanted)));
        let given = tokio::time::timeout(self.wait, given).await;
        let mut given = given.ok().and_then(Result::ok).unwrap_or_default();
        given.retain(is_it);
        self.within(given)
    }

    /// As much of what is given as a turn may have.
    fn within(&self, pieces: Vec<Piece>) -> Vec<Piece> {
        let mut so_far = self.so_far.lock();
        let mut taken = Vec::new();
        for piece in pieces {
            let bytes = so_far.bytes + piece.text.len();
            if so_far.pieces >= MOST_PIECES || bytes > MOST_BYTES || piece.text.trim().is_empty() {
                continue;
            }
            (so_far.pieces, so_far.bytes) = (so_far.pieces + 1, bytes);
            so_far.given.push(piece.text.clone());
            taken.push(piece);
        }
        taken
    }
}

/// What the log keeps of a chat's work: that there was a search, and not what it found.
pub(super) fn unkept(is_web: bool, work: &Work) -> Cow<'_, Work> {
    let mut calls = work.done.iter().flat_map(|step| &step.calls);
    let current = work.current.as_ref();
    let is_search = |call: &confidant_model::ToolCall| call.name == remember::NAME;
    let searched = calls.any(is_search) || current.is_some_and(|now| now.calls.iter().any(is_search));
    if !is_web || !searched {
        return Cow::Borrowed(work);
    }
    let mut work = work.clone();
    for Step { calls, results, .. } in &mut work.done {
        let found = calls.iter().zip(results).filter(|(call, _)| is_search(call));
        found.for_each(|(_, result)| NOT_KEPT.clone_into(result));
    }
    if let Some(Current { calls, results, .. }) = &mut work.current {
        let found = calls.iter().zip(results).filter(|(call, _)| is_search(call));
        found.filter_map(|(_, result)| result.as_mut()).for_each(|result| NOT_KEPT.clone_into(result));
    }
    Cow::Owned(work)
}

/// What a turn may have from a device: pieces, and bytes of all.
const MOST_PIECES: usize = 3;
const MOST_BYTES: usize = 4 * 1024;
const NOT_KEPT: &str = "What this search found was for the answer only and is not kept.";

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(name: &str, text: &str) -> Piece {
        Piece { name: name.to_owned(), text: text.to_owned() }
    }

    fn all() -> TurnRequest {
        let asks = MayAsk { settings: true, past_chats: true, search: true };
        TurnRequest { asks, ..TurnRequest::default() }
    }

    /// Somebody who gives this to whatever is asked for.
    fn giving(pieces: Vec<Piece>) -> (Outlet, tokio::task::JoinHandle<Vec<DataRequest>>) {
        let (events, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let mut data_requests = Vec::new();
            while let Some(event) = receiver.recv().await {
                if let Outbound::Wanted(wanted) = event {
                    data_requests.push(wanted.data_request.clone());
                    wanted.give(pieces.clone());
                }
            }
            data_requests
        });
        (Outlet::new(Some(events)), task)
    }

    #[tokio::test]
    async fn each_kind_is_asked_for_once_and_no_more_is_taken_than_a_turn_may_have() {
        let asking = Asking::new(&all(), true, Duration::from_secs(60));
        let (outlet, task) =
            giving(vec![piece("city", "Cork"), piece("name", &"x".repeat(4090)), piece("z", "z")]);
        let names = ["city".to_owned(), "name".to_owned()];
        let given = asking.settings(&names, &outlet).await;
        assert!(given == [piece("city", "Cork"), piece("name", &"x".repeat(4090))], "{given:?}");
        assert!(asking.settings(&names, &outlet).await.is_empty(), "a second time");
        // Two bytes are left, for one piece.
        let given = asking.past_chats(&["tides".to_owned()], &outlet).await;
        assert!(given == [piece("z", "z")], "{given:?}");
        assert_eq!(asking.search("tides", &outlet).await, None, "nothing more may be given");
        drop(outlet);
        let data_requests = task.await.unwrap();
        assert!(
            data_requests
                == [DataRequest::Settings(names.to_vec()), DataRequest::PastChats(vec!["tides".to_owned()])]
        );
    }

    #[tokio::test]
    async fn what_is_off_or_not_allowed_is_not_asked_for() {
        let mut off = all();
        off.off.settings = true;
        off.off.past_chats = true;
        off.off.tools.insert(remember::NAME.to_owned());
        for request in [off, TurnRequest::default()] {
            let asking = Asking::new(&request, true, Duration::from_secs(60));
            let (outlet, task) = giving(vec![piece("city", "Cork")]);
            assert!(asking.settings(&["city".to_owned()], &outlet).await.is_empty());
            assert!(asking.past_chats(&["tides".to_owned()], &outlet).await.is_empty());
            assert_eq!(asking.search("tides", &outlet).await, None);
            assert!(!asking.may_come_first(true) && !asking.may_search());
            drop(outlet);
            assert!(task.await.unwrap().is_empty());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_who_answers_holds_up_the_turn_for_long() {
        let asking = Asking::new(&all(), true, Duration::from_secs(10));
        let (events, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let outlet = Outlet::new(Some(events));
        assert!(asking.past_chats(&["tides".to_owned()], &outlet).await.is_empty(), "it goes on");
        let late = receiver.recv().await;
        let Some(Outbound::Wanted(wanted)) = late else { panic!("{late:?}") };
        wanted.give(vec![piece("late", "late")]);
        assert!(!asking.has_given());
        // Nobody listens at all: at once.
        drop(receiver);
        assert!(asking.settings(&["city".to_owned()], &outlet).await.is_empty());
    }

    #[test]
    fn a_search_is_kept_without_what_it_found() {
        let call = |name: &str| confidant_model::ToolCall {
            id: "1".to_owned(),
            name: name.to_owned(),
            arguments: serde_json::json!({}),
            signatures: Vec::new(),
        };
        let calls = vec![call(remember::NAME), call("files.read")];
        let results = vec!["zq7".to_owned(), "kept".to_owned()];
        let done = vec![Step { text: String::new(), calls: calls.clone(), results }];
        let mut current = Current::new(String::new(), calls);
        current.results = vec![Some("zq7".to_owned()), None];
        let work = Work { done, current: Some(current), ..Work::default() };
        let kept = serde_json::to_string(&*unkept(true, &work)).unwrap();
        assert!(!kept.contains("zq7") && kept.contains("kept"), "{kept}");
        let elsewhere = serde_json::to_string(&*unkept(false, &work)).unwrap();
        assert_eq!(elsewhere.matches("zq7").count(), 2);
    }
}
