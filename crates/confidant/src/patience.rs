//! Gateways and workers that start before the servers they need: they wait for those, and say so.
//!
//! Whoever starts everything at once starts nothing in order. A process on its own ends with the error instead: there a wrong
//! address is likelier than a server that comes later, and somebody looks at the terminal.

use std::time::Duration;

use confidant_engine::{Engine, Error, OpenError, StoreError};
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::config::Loaded;
use crate::open::{self, Opened, Purpose};
use crate::output::note;

/// Opens what the settings describe, once its servers can be reached.
pub(crate) async fn open(loaded: &Loaded, purpose: Purpose) -> anyhow::Result<Opened> {
    let mut waiting = Waiting::default();
    loop {
        match open::open(loaded, purpose).await {
            Err(error) if is_away(&error) => waiting.pause(&error).await,
            opened => return opened,
        }
    }
}

/// Meets others on the bus, once that can be reached.
pub(crate) async fn meet<T, F>(engine: &Engine, meet: impl Fn(Engine) -> F) -> anyhow::Result<T>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut waiting = Waiting::default();
    loop {
        match meet(engine.clone()).await.map_err(anyhow::Error::from) {
            Err(error) if is_away(&error) => waiting.pause(&error).await,
            met => return met,
        }
    }
}

/// Does something while `/healthz` says that the process lives; gives the listener back with what came of it.
pub(crate) async fn while_answering<T>(
    listener: TcpListener,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<(TcpListener, T)> {
    // The same socket twice: who connects in between the two is served by the second.
    let listener = listener.into_std()?;
    let again = TcpListener::from_std(listener.try_clone()?)?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let until = Box::pin(async move { drop(stopped.await) });
    let answering = tokio::spawn(confidant_http::serve_waiting(TcpListener::from_std(listener)?, until));
    let done = work.await;
    drop(stop);
    let _ = answering.await;
    Ok((again, done?))
}

/// Whether a server is out of reach, which may pass by itself.
fn is_away(error: &anyhow::Error) -> bool {
    let store = match (error.downcast_ref::<OpenError>(), error.downcast_ref::<Error>()) {
        (Some(OpenError::Store(store)), _) | (_, Some(Error::Store(store) | Error::Unloaded(store))) => {
            Some(store)
        }
        _ => error.downcast_ref::<StoreError>(),
    };
    matches!(store, Some(StoreError::Unreachable(_) | StoreError::Uncertain | StoreError::Busy))
}

struct Waiting {
    pause: Duration,
    told: bool,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { pause: Duration::from_millis(200), told: false }
    }
}

impl Waiting {
    /// Waits a moment, longer each time. Says so once.
    async fn pause(&mut self, error: &anyhow::Error) {
        if !std::mem::replace(&mut self.told, true) {
            note(&format!("waiting: {error:#}"));
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

const LONGEST_PAUSE: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn what_may_pass_is_waited_for_and_nothing_else() {
        let away = || StoreError::Unreachable("connection refused".to_owned());
        let passing: [anyhow::Error; 3] =
            [OpenError::Store(away()).into(), Error::Store(away()).into(), away().into()];
        for error in passing {
            assert!(is_away(&error), "{error}");
            assert!(is_away(&Err::<(), _>(error).context("opening").expect_err("it is an error")));
        }
        let lasting: [anyhow::Error; 3] = [
            OpenError::Store(StoreError::Refused("password".to_owned())).into(),
            OpenError::KeyringMissing.into(),
            anyhow::anyhow!("anything else"),
        ];
        for error in lasting {
            assert!(!is_away(&error), "{error}");
        }
    }
}
