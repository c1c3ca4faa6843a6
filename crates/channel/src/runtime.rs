//! Keeps channels connected and their events worked on: for ever, with patience, until told to stop.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use confidant_display::Hinted as _;
use confidant_engine::clock::{Clock, Millis};
use confidant_engine::{Engine, TenantId};
use confidant_seal::Tag;
use parking_lot::Mutex;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::backoff::Backoff;
use crate::channel::{Channel, Trouble};
use crate::health::{Condition, Health};
use crate::inbox::{Account, Inbox, InboxError, RowKind, Vault, older_than, rows};
use crate::intake::Intake;
use crate::stop::Stop;
use crate::waiting::look_around;
use crate::worker::{Bench, event_of};

/// What channels run on.
#[derive(Clone, Debug)]
pub struct Runtime {
    engine: Engine,
    inbox: Inbox,
    clock: Arc<dyn Clock>,
    tenant: TenantId,
    health: Health,
    started: Millis,
}

/// Channels that are being kept up.
#[derive(Debug)]
pub struct Hosted {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Hosted {
    /// Lets go of connections, gives replies that are under way up to `grace`, and leaves the rest for the next start.
    pub async fn stop(mut self, grace: Duration) {
        let _ = self.stop.send(true);
        let all = async {
            for task in &mut self.tasks {
                let _ = task.await;
            }
        };
        let _ = tokio::time::timeout(grace, all).await;
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        // Each task holds what it started, so that ending it ends that, too.
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Runtime {
    /// A runtime on an engine and its inbox, which must be attached to it.
    #[must_use]
    pub fn new(engine: Engine, inbox: Inbox, clock: Arc<dyn Clock>, tenant: TenantId) -> Self {
        let started = clock.now();
        Self { engine, inbox, clock, tenant, health: Health::default(), started }
    }

    /// How the channels are.
    #[must_use]
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// The inbox, for counting what is not done.
    pub async fn backlog(&self) -> Result<u64, InboxError> {
        self.inbox.with(|c| rows::backlog(c)).await
    }

    /// Keeps channels up until stopped.
    #[must_use]
    pub fn host(&self, channels: Vec<Arc<dyn Channel>>) -> Hosted {
        let (stop, stopped) = Stop::new();
        let mut tasks = vec![tokio::spawn(self.clone().keep_house(stopped.clone()))];
        let locked = Arc::new(tokio::sync::OnceCell::new());
        let served = Arc::default();
        for channel in channels {
            let host = Host {
                runtime: self.clone(),
                channel,
                stop: stopped.clone(),
                served: Arc::clone(&served),
                dispatch: HashMap::new(),
            };
            tasks.push(tokio::spawn(host.keep_up(Arc::clone(&locked))));
        }
        Hosted { stop, tasks }
    }

    /// Removes tags of events that were done long ago.
    async fn keep_house(self, mut stop: Stop) {
        loop {
            let before = older_than(self.clock.now());
            if let Err(error) = self.inbox.with(move |c| rows::prune(c, before)).await {
                tracing::warn!(error = %error, "the inbox could not be cleaned up");
            }
            tokio::select! {
                () = stop.said() => return,
                () = tokio::time::sleep(HOUSEKEEPING) => {}
            }
        }
    }
}

/// One channel and what is done for it.
struct Host {
    runtime: Runtime,
    channel: Arc<dyn Channel>,
    stop: Stop,
    /// Which channel an account belongs to: two that worked on the same events would answer them twice.
    served: Arc<Mutex<HashMap<Tag, (&'static str, String)>>>,
    /// A task that works on an account's events, for each account that the channel has been.
    dispatch: HashMap<Tag, (Arc<Notify>, JoinHandle<()>)>,
}

type Locked = tokio::sync::OnceCell<crate::inbox::Lock>;

impl Host {
    /// Signs in, listens, and does so again whenever that ends.
    async fn keep_up(mut self, locked: Arc<Locked>) {
        let platform = self.channel.platform();
        let pulse = self.runtime.health.begin(platform, self.channel.label(), self.runtime.clock.now());
        let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
        let mut stop = self.stop.clone();
        while !stop.is_said() {
            let up_before = self.runtime.clock.now();
            let outcome = tokio::select! {
                outcome = self.connect(&pulse, &locked) => outcome,
                // Listening hears of the stop by itself and ends in good order; only signing in does not.
                () = lingering(stop.clone()) => Ok(()),
            };
            if stop.is_said() {
                break;
            }
            let trouble = outcome.err().unwrap_or_else(|| {
                Trouble::passing("the connection ended", "nothing to do: Confidant reconnects")
            });
            if self.runtime.health.all().iter().any(|status| {
                status.platform == platform
                    && status.label == self.channel.label()
                    && status.condition == Condition::Up
                    && status.since >= up_before
            }) {
                backoff.reset();
            }
            pulse.trouble(&trouble, self.runtime.clock.now());
            tracing::warn!(channel = platform, label = self.channel.label(), trouble = %trouble, "a channel is not connected");
            let wait = match &trouble {
                Trouble::Passing { after, .. } => after.unwrap_or_default().max(backoff.wait()),
                Trouble::Refused { .. } | Trouble::Gone => backoff.wait().max(REFUSED_WAIT),
            };
            tokio::select! {
                () = stop.said() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        for (_, (_, task)) in self.dispatch.drain() {
            let _ = task.await;
        }
        pulse.stopped(self.runtime.clock.now());
    }

    /// Makes an account this channel's, if it is not another's already.
    fn claim(&self, account: Tag) -> Result<(), Trouble> {
        let own = (self.channel.platform(), self.channel.label().to_owned());
        let mut served = self.served.lock();
        let first = served.entry(account).or_insert_with(|| own.clone());
        if *first == own {
            return Ok(());
        }
        Err(Trouble::refused(
            format!("this is the same account as {} {}", first.0, first.1),
            "remove one of the two from the settings, or give it a token of its own",
        ))
    }

    async fn connect(&mut self, pulse: &crate::health::Pulse, locked: &Locked) -> Result<(), Trouble> {
        let Runtime { engine, inbox, clock, tenant, started, .. } = &self.runtime;
        locked.get_or_try_init(|| async { inbox.lock() }).await.map_err(|error| {
            let (what, hint) = error.what_and_hint("try again");
            Trouble::passing(what, hint)
        })?;
        let platform = self.channel.platform();
        let vault = Vault::new(inbox, engine, platform, self.channel.label());
        let id = self.channel.sign_in(&vault).await?;
        let account = Account::new(engine, platform, &id);
        self.claim(account.tag)?;
        if !self.dispatch.contains_key(&account.tag) {
            let bell = Arc::new(Notify::new());
            let bench = Bench {
                engine: engine.clone(),
                inbox: inbox.clone(),
                account: account.clone(),
                channel: Arc::clone(&self.channel),
                clock: Arc::clone(clock),
                pulse: pulse.clone(),
                started: *started,
                seen: Arc::default(),
            };
            let looking = look_around(bench.clone(), Arc::clone(&bell), self.stop.clone());
            let working = dispatch(bench, Arc::clone(&bell), self.stop.clone());
            let task = tokio::spawn(async move {
                tokio::join!(working, looking);
            });
            self.dispatch.insert(account.tag, (bell, task));
        }
        let bell = Arc::clone(&self.dispatch[&account.tag].0);
        let intake = Intake {
            engine: engine.clone(),
            inbox: inbox.clone(),
            account,
            vault,
            tenant: tenant.clone(),
            clock: Arc::clone(clock),
            pulse: pulse.clone(),
            bell,
        };
        tracing::info!(channel = platform, label = self.channel.label(), "a channel signed in");
        self.channel.listen(&intake, self.stop.clone()).await
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for (_, task) in self.dispatch.values() {
            task.abort();
        }
    }
}

/// A moment after the stop: enough to close a connection in good order.
async fn lingering(mut stop: Stop) {
    stop.said().await;
    tokio::time::sleep(CLOSING).await;
}

/// Works on an account's events as they come, several side by side, those of one session in their order.
async fn dispatch(bench: Bench, bell: Arc<Notify>, mut stop: Stop) {
    let usual = Arc::new(Semaphore::new(bench.channel.manners().concurrency.max(1)));
    let urgent = Arc::new(Semaphore::new(URGENT));
    let mut workers = JoinSet::new();
    let mut notices = bench.engine.notices();
    let account = bench.account.tag;
    take_up(&bench).await;
    while !stop.is_said() {
        while workers.try_join_next().is_some() {}
        let now = bench.clock.now();
        let most = rows::Room { usual: usual.available_permits(), urgent: urgent.available_permits() };
        let claimed = bench
            .inbox
            .with(move |c| Ok((rows::claim(c, account, now, most)?, rows::next_time(c, account, now)?)));
        let (claimed, next) = match claimed.await {
            Ok(found) => found,
            Err(error) => {
                tracing::error!(error = %error, "the inbox could not be read");
                (Vec::new(), Some(now.plus(FIRST_WAIT)))
            }
        };
        for row in claimed {
            let places = if row.kind == RowKind::Urgent { &urgent } else { &usual };
            let Ok(place) = Arc::clone(places).try_acquire_owned() else { break };
            let (bench, bell) = (bench.clone(), Arc::clone(&bell));
            workers.spawn(async move {
                bench.work(row).await;
                drop(place);
                // The session's next event can be worked on now.
                bell.notify_one();
            });
        }
        let wait = next
            .map_or(IDLE, |next| Duration::from_millis(u64::try_from(next.0 - now.0).unwrap_or(0)).min(IDLE));
        tokio::select! {
            () = stop.said() => {}
            () = bell.notified() => {}
            () = tokio::time::sleep(wait) => {}
            notice = notices.recv() => match notice {
                Ok(notice) => if let Some(event) = event_of(&notice.request_id) {
                    let _ = bench.inbox.with(move |c| rows::wake(c, event)).await;
                },
                // Too many to hear: everything that waits is looked at.
                Err(RecvError::Lagged(_)) => wake_all(&bench).await,
                Err(RecvError::Closed) => {}
            },
        }
    }
    while workers.join_next().await.is_some() {}
}

/// Puts back what the process before this one had begun, and looks at what waits for approvals.
async fn take_up(bench: &Bench) {
    let account = bench.account.tag;
    match bench.inbox.with(move |c| rows::release(c, account)).await {
        Ok(0) => {}
        Ok(released) => tracing::info!(events = released, "resumed unfinished events"),
        Err(error) => tracing::error!(error = %error, "unfinished events could not be resumed"),
    }
    wake_all(bench).await;
}

async fn wake_all(bench: &Bench) {
    let account = bench.account.tag;
    let woken = bench.inbox.with(move |c| {
        for row in rows::waiting(c, account)? {
            rows::wake(c, row.event)?;
        }
        Ok(())
    });
    if let Err(error) = woken.await {
        tracing::warn!(error = %error, "events that wait for approvals could not be read");
    }
}

/// How many commands that do not wait are worked on side by side, besides everything else.
const URGENT: usize = 4;
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// Somebody has to change something first.
const REFUSED_WAIT: Duration = Duration::from_secs(60);
const CLOSING: Duration = Duration::from_secs(5);
/// Looking at nothing now and then costs nothing, and covers a bell that nobody heard.
const IDLE: Duration = Duration::from_secs(30);
const HOUSEKEEPING: Duration = Duration::from_secs(3600);
