//! A word now and then while something takes long, for clients that asked for it.

use std::time::{Duration, Instant};

use confidant_memory::import::Progress as Step;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};
use tokio::sync::watch;

/// Where progress is told, if anywhere.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    to: Option<(Peer<RoleServer>, ProgressToken)>,
}

impl Progress {
    /// To whoever made this request, if they gave a token for it.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        Self { to: context.meta.get_progress_token().map(|token| (context.peer.clone(), token)) }
    }

    /// Does something, and says every second that it is still being done. The number is the seconds it took so far.
    pub(super) async fn during<T>(&self, what: &'static str, work: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let mut work = std::pin::pin!(work);
        let mut ticks = tokio::time::interval(EVERY);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                _ = ticks.tick() => self.tell(began.elapsed().as_secs_f64(), None, what).await,
            }
        }
    }

    /// Does an import, and says how far it is, in bytes of its files.
    pub(super) async fn following<T>(
        &self,
        mut steps: watch::Receiver<Step>,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = std::pin::pin!(work);
        let mut told = None;
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                Ok(()) = steps.changed() => {
                    let step = *steps.borrow_and_update();
                    // Progress has to grow: several sessions of one file are at the same place.
                    if told.is_none_or(|told| told < step.bytes_done) {
                        told = Some(step.bytes_done);
                        let what = format!("{} of {} files", step.files_done, step.files_total);
                        self.tell(step.bytes_done as f64, Some(step.bytes_total as f64), &what).await;
                    }
                }
            }
        }
    }

    /// Says how far something is. That nobody listens any more is no reason to stop.
    pub(super) async fn tell(&self, done: f64, total: Option<f64>, what: &str) {
        let Some((peer, token)) = &self.to else { return };
        let mut said = ProgressNotificationParam::new(token.clone(), done).with_message(what);
        said.total = total;
        if let Err(error) = peer.notify_progress(said).await {
            tracing::debug!(error = %error, "progress could not be sent");
        }
    }
}

const EVERY: Duration = Duration::from_secs(1);
