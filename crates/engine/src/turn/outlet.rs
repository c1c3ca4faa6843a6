//! Where a turn's events go. Nobody needs to listen, and what is said behind a gate is heard only once it opens.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

use super::outbound::{Ending, Outbound};
use super::relay::Tap;
use crate::error::Error;

#[derive(Clone, Debug)]
pub(crate) struct Outlet {
    events: Option<mpsc::UnboundedSender<Outbound>>,
    deltas: Arc<AtomicU64>,
    gate: Option<Arc<Gate>>,
    /// What is told behind the end.
    late: Arc<Mutex<Vec<Outbound>>>,
    /// Who tells other processes.
    tap: Arc<OnceLock<Box<dyn Tap>>>,
}

/// Holds words back until it is known that they hold.
#[derive(Debug)]
struct Gate {
    open: watch::Sender<bool>,
    held_back: Mutex<Vec<String>>,
    /// Where words go from here.
    beyond: Outlet,
    holds_back: HoldsBack,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HoldsBack {
    /// Words and deeds: nothing of a guess may happen.
    Everything,
    /// Words only: what is done was decided, how it is told was not.
    Words,
}

impl Outlet {
    pub(super) fn new(events: Option<mpsc::UnboundedSender<Outbound>>) -> Self {
        let (deltas, late, tap) = (Arc::default(), Arc::default(), Arc::default());
        Self { events, deltas, gate: None, late, tap }
    }

    /// The same behind a gate of its own, which is shut; nothing is done behind it.
    pub(super) fn gated(&self) -> Self {
        self.behind(HoldsBack::Everything)
    }

    /// The same, with its words held back and nothing else.
    pub(super) fn muted(&self) -> Self {
        self.behind(HoldsBack::Words)
    }

    fn behind(&self, holds_back: HoldsBack) -> Self {
        let (open, beyond) = (watch::channel(false).0, self.clone());
        let gate = Gate { open, held_back: Mutex::default(), beyond, holds_back };
        Self { gate: Some(Arc::new(gate)), ..self.clone() }
    }

    /// Opens the gate: what was held back is said, and what comes next is said at once.
    pub(super) fn open(&self) {
        let Some(gate) = &self.gate else { return };
        let mut held_back = gate.held_back.lock();
        for text in held_back.drain(..) {
            gate.beyond.delta(&text);
        }
        gate.open.send_replace(true);
    }

    /// Waits until things may be done.
    pub(super) async fn opened(&self) {
        let mut outlet = self;
        while let Some(gate) = &outlet.gate {
            if gate.holds_back == HoldsBack::Everything {
                // The sender is in the gate that is held here.
                let _ = gate.open.subscribe().wait_for(|open| *open).await;
            }
            outlet = &gate.beyond;
        }
    }

    /// What is said from now on is told to other processes as well.
    pub(super) fn tap(&self, tap: Box<dyn Tap>) {
        let _first = self.tap.set(tap);
    }

    pub(crate) fn send(&self, event: Outbound) {
        if let Some(tap) = self.tap.get() {
            tap.say(&event);
        }
        if let Some(events) = &self.events {
            let _ = events.send(event);
        }
    }

    pub(super) fn progress(&self, text: &'static str) {
        self.send(Outbound::Progress { text: Cow::Borrowed(text) });
    }

    /// Which tool is being called.
    pub(super) fn tool(&self, name: &str) {
        self.send(Outbound::Progress { text: Cow::Owned(format!("🔧 {name}")) });
    }

    pub(crate) fn delta(&self, text: &str) {
        let Some(gate) = &self.gate else {
            let seq = self.deltas.fetch_add(1, Ordering::Relaxed);
            return self.send(Outbound::Delta { seq, text: text.to_owned() });
        };
        let mut held_back = gate.held_back.lock();
        if *gate.open.borrow() {
            gate.beyond.delta(text);
        } else {
            held_back.push(text.to_owned());
        }
    }

    /// Tells this once the end is told.
    pub(super) fn behind_the_end(&self, event: Outbound) {
        self.late.lock().push(event);
    }

    pub(super) fn end(&self, outcome: Result<Ending, Error>) {
        self.send(match outcome {
            Ok(Ending::Answer(answer)) => Outbound::Final(answer),
            Ok(Ending::Approval(request)) => Outbound::Approval(request),
            Err(error) => Outbound::Error(error),
        });
        let mut late = self.late.lock();
        late.drain(..).for_each(|event| self.send(event));
    }
}
