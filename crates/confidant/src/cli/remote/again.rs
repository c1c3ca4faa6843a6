//! Coming back: a connection that is gone is made again, after pauses that grow.
//!
//! ```text
//! lost ─▶ 1 s ─▶ 2 s ─▶ 4 s … a minute ─▶ connected: sync, send, say what came meanwhile
//!   └ logged out: only the person can do something about it
//! ```
//!
//! Easy to get wrong: giving up what is half done when a line is typed. Only waiting and connecting may be given up.

use std::time::Duration;

use confidant_client::{Device, Error, News};
use tokio::time::Instant;

use super::Remote;
use crate::output::{self, note};

/// When the server is tried again.
pub(super) struct Again {
    next: Instant,
    pause: Duration,
    /// The session is over: nobody tries.
    is_over: bool,
    /// When a draft that waits may be sent.
    draft: Option<Instant>,
}

/// What happened while nobody typed.
pub(super) enum Meanwhile {
    News(News),
    /// The server is there again.
    Back,
    /// A draft that had to wait may be sent.
    Draft,
}

impl Again {
    pub(super) fn new() -> Self {
        let mut again = Self { next: Instant::now(), pause: FIRST, is_over: false, draft: None };
        again.later();
        again
    }

    /// The connection is gone, which is said once.
    fn lost(&mut self, error: &Error) {
        self.is_over = matches!(error, Error::NotLoggedIn | Error::LoggedOut(_));
        self.pause = FIRST;
        self.later();
        if self.is_over {
            note(&error.to_string());
        } else {
            note(&format!(
                "the connection is lost ({}); trying again until the server is back",
                error.name()
            ));
        }
    }

    /// Next time it is twice as long, and never the same for two devices that were cut off together.
    fn later(&mut self) {
        let mut random = [0; 1];
        // Without randomness, all of them come at once, which is no reason not to come.
        let _even = getrandom::fill(&mut random);
        self.next = Instant::now() + self.pause.mul_f64(0.75 + f64::from(random[0]) / 512.0);
        self.pause = (self.pause * 2).min(LONGEST);
    }
}

/// The next news; or the connection, once it is there again. May be dropped at any time.
pub(super) async fn meanwhile(device: &mut Device, again: &mut Again) -> Meanwhile {
    loop {
        if device.is_connected() {
            // Kept here: a line that is typed meanwhile does not make it later.
            again.draft = again.draft.or_else(|| Some(Instant::now() + device.draft_wait()?));
            let heard = tokio::select! {
                heard = device.listen() => heard,
                () = at(again.draft) => {
                    again.draft = None;
                    return Meanwhile::Draft;
                }
            };
            match heard {
                Ok(news) => return Meanwhile::News(news),
                Err(error @ Error::Refused(_)) => note(&error.to_string()),
                Err(error) => {
                    device.disconnect();
                    again.lost(&error);
                }
            }
            continue;
        }
        if again.is_over || !device.is_logged_in() {
            return std::future::pending().await;
        }
        tokio::time::sleep_until(again.next).await;
        match device.connect().await {
            Ok(()) => return Meanwhile::Back,
            Err(error @ (Error::NotLoggedIn | Error::LoggedOut(_))) => again.lost(&error),
            Err(_) => again.later(),
        }
    }
}

/// Waits until then; for ever, if there is no such time.
async fn at(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}

impl Remote<'_> {
    /// Takes in what happened while nobody typed. What fails is said, and the conversation goes on.
    pub(super) async fn heed_meanwhile(&mut self, happened: Meanwhile) -> anyhow::Result<()> {
        match happened {
            Meanwhile::News(news) => self.heed(&news).await,
            Meanwhile::Draft => self.send().await,
            Meanwhile::Back => {
                match self.arrive().await {
                    Ok(()) if self.device.is_connected() => {
                        self.again.pause = FIRST;
                        note("connected again");
                    }
                    Ok(()) => self.again.later(),
                    Err(error) if output::is_broken_pipe(&error) => return Err(error),
                    Err(error) => output::error(&output::whole(&error)),
                }
                Ok(())
            }
        }
    }

    /// Somebody has logged in again: the server may be tried.
    pub(super) fn try_again(&mut self) {
        self.again = Again::new();
    }
}

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_a_minute_and_begin_anew() {
        let mut again = Again::new();
        let mut pauses = Vec::new();
        for _ in 0..12 {
            pauses.push(again.next.duration_since(Instant::now()).as_secs_f64());
            tokio::time::sleep_until(again.next).await;
            again.later();
        }
        for (at, pause) in pauses.iter().enumerate() {
            let whole = 2_f64.powi(i32::try_from(at).unwrap()).min(60.0);
            assert!((0.74 * whole..=1.26 * whole).contains(pause), "{pauses:?}");
        }
        again.lost(&Error::Offline);
        assert!(again.next.duration_since(Instant::now()) <= Duration::from_secs(2) && !again.is_over);
        again.lost(&Error::NotLoggedIn);
        assert!(again.is_over, "trying does not log in");
    }
}
