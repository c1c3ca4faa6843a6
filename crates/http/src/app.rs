//! What all requests share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::body::Bytes;
use axum::http::StatusCode;
use confidant_engine::Engine;
use confidant_engine::clock::{Clock as _, SystemClock};
use confidant_mcp::Mount;

use crate::console::Watch;
use crate::error::ApiError;
use crate::known::Known;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::settings::HttpSettings;
use crate::standing::Standing;

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) settings: HttpSettings,
    /// What is below `/mcp`; nothing where there is no memory, as in tests of other things.
    pub(crate) mcp: Option<Mount>,
    pub(crate) limits: Limits,
    /// Tokens that were looked up, for when the store is away.
    pub(crate) known: Known,
    /// The state of the parts apart from the engine.
    pub(crate) standing: Standing,
    pub(crate) metrics: Metrics,
    /// What the administrator's page is told that takes longer to find out.
    pub(crate) watch: Watch,
    pub(crate) clock: SystemClock,
    /// `/openapi.json`, written once.
    pub(crate) description: Bytes,
    /// Set when the server was asked to stop; turns that end without a word were parked then.
    pub(crate) stopping: AtomicBool,
}

pub(crate) type App = Arc<Shared>;

impl Shared {
    /// Milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now().0
    }

    /// Seconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        self.clock.now().0 / 1000
    }

    /// Does something to its end, even if the client goes away: a half-done erasure would have no receipt.
    pub(crate) async fn detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, confidant_engine::Error>> + Send + 'static,
    ) -> Result<T, ApiError> {
        match tokio::time::timeout(self.settings.request_timeout, tokio::spawn(work)).await {
            Ok(Ok(outcome)) => Ok(outcome?),
            Ok(Err(_)) => Err(ApiError::internal()),
            Err(_) => {
                let hint = "ask again later; the audit log shows when it is done";
                let message = "this takes longer than the request timeout; it continues in the background";
                Err(ApiError::new(StatusCode::GATEWAY_TIMEOUT, "timeout", message, hint))
            }
        }
    }
}

/// Makes what they share.
pub(crate) fn shared(
    engine: Engine,
    settings: HttpSettings,
    mcp: Option<Mount>,
    standing: Standing,
    description: Bytes,
) -> App {
    Arc::new(Shared {
        limits: Limits::new(settings.requests_per_minute),
        known: Known::new(),
        metrics: Metrics::new(engine.clone(), &standing),
        standing,
        watch: Watch::new(SystemClock.now()),
        clock: SystemClock,
        description,
        stopping: AtomicBool::new(false),
        engine,
        settings,
        mcp,
    })
}
