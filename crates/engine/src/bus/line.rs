//! The order in which plain requests of one session were heard. Each of them is a task of its own with waits of its own, so
//! without a line the second of two quick messages may be accepted first.

use std::collections::HashMap;

use confidant_seal::Tag;
use parking_lot::Mutex;
use tokio::sync::watch;

/// The last in line, by session.
#[derive(Debug, Default)]
pub(super) struct Lines(Mutex<HashMap<Tag, watch::Receiver<Step>>>);

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Heard,
    /// It is ours: the next may be claimed.
    Claimed,
    /// It has its place in the session's order: the next may take one.
    Begun,
}

/// A request's place behind those that were heard before it. Whoever gives it up says that it goes no further.
#[derive(Debug)]
pub(super) struct Place {
    before: Option<watch::Receiver<Step>>,
    step: watch::Sender<Step>,
}

impl Lines {
    /// A place at the end of a session's line.
    pub(super) fn join(&self, session: Tag) -> Place {
        let (step, last) = watch::channel(Step::Heard);
        let mut lines = self.0.lock();
        lines.retain(|_, last| last.has_changed().is_ok());
        Place { before: lines.insert(session, last), step }
    }
}

impl Place {
    /// Waits until whoever is before has come so far, or goes no further.
    pub(super) async fn after(&self, step: Step) {
        if let Some(mut before) = self.before.clone() {
            let _ = before.wait_for(|reached| *reached >= step).await;
        }
    }

    pub(super) fn reached(&self, step: Step) {
        self.step.send_replace(step);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn goes_on(place: &Place, step: Step) -> bool {
        place.after(step).now_or_never().is_some()
    }

    #[test]
    fn whoever_came_second_is_second() {
        let (lines, [ann, bob]) = (Lines::default(), [[1; 16], [2; 16]].map(Tag::from_bytes));
        let (first, second, other) = (lines.join(ann), lines.join(ann), lines.join(bob));
        assert!(goes_on(&first, Step::Begun) && goes_on(&other, Step::Begun));
        assert!(!goes_on(&second, Step::Claimed));
        first.reached(Step::Claimed);
        assert!(goes_on(&second, Step::Claimed) && !goes_on(&second, Step::Begun));
        let third = lines.join(ann);
        first.reached(Step::Begun);
        assert!(goes_on(&second, Step::Begun) && !goes_on(&third, Step::Claimed));
        // One that another worker has keeps nobody waiting.
        drop(second);
        assert!(goes_on(&third, Step::Begun));
        drop((first, third, other));
        let fourth = lines.join(ann);
        assert!(goes_on(&fourth, Step::Begun));
        assert_eq!(lines.0.lock().len(), 1, "those that are over are forgotten");
    }
}
