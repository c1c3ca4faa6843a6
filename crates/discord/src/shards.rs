//! How many connections a bot has, and each of them kept up.
//!
//! Discord tells each server's events on one connection only: number `(server >> 22) % connections`. Direct messages come on the
//! first. How many connections there are to be says Discord, unless the settings do; a bot in more than 2 500 servers cannot
//! connect with one. What is easy to get wrong: a session can be resumed only with the number and the count that it was begun
//! with, and Discord bounds how many are begun at once and in a day.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use confidant_channel::{Backoff, Intake, Stop, Trouble};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use parking_lot::{Mutex, MutexGuard};
use twilight_gateway::ShardId;
use twilight_gateway::queue::InMemoryQueue;
use twilight_model::gateway::SessionStartLimit;
use twilight_model::id::Id;
use twilight_model::id::marker::GuildMarker;

use crate::channel::Discord;
use crate::determine::Rules;
use crate::gateway::{Ended, Kept, listen_on};
use crate::trouble;

/// What the connections of a bot share.
pub(crate) struct Shared {
    pub(crate) rules: Arc<Rules>,
    pub(crate) behind: Behind,
    /// Lets each begin its session when Discord allows it.
    pub(crate) queue: InMemoryQueue,
    /// Those that are not up.
    missing: Mutex<HashSet<u32>>,
}

/// What is not read back yet. Until everything is, live messages do not move cursors: what was said before them might
/// be passed over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Behind(Arc<BehindInner>);

#[derive(Debug, Default)]
struct BehindInner {
    what: Mutex<HashSet<String>>,
    began: AtomicI64,
}

impl Behind {
    pub(crate) fn add(&self, what: String) {
        self.what().insert(what);
    }

    pub(crate) fn done(&self, what: &str) {
        self.what().remove(what);
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.what().is_empty()
    }

    /// Notes when a connection began to listen; says when the last one did.
    pub(crate) fn began(&self, at: i64) -> i64 {
        self.0.began.fetch_max(at, Ordering::Relaxed).max(at)
    }

    fn what(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.what.lock()
    }
}

impl Shared {
    /// A connection works. The bot does when all do.
    pub(crate) fn up(&self, shard: ShardId, intake: &Intake) {
        let mut missing = self.missing();
        missing.remove(&shard.number());
        if missing.is_empty() {
            intake.up();
        }
    }

    /// A connection does not work, and is being made again.
    pub(crate) fn down(&self, shard: ShardId, intake: &Intake, trouble: &Trouble) {
        self.missing().insert(shard.number());
        intake.trouble(trouble);
    }

    fn missing(&self) -> MutexGuard<'_, HashSet<u32>> {
        self.missing.lock()
    }
}

/// Hands in what happens until told to stop, or until nothing more can come.
pub(crate) async fn listen(bot: &Discord, intake: &Intake, stop: Stop) -> Result<(), Trouble> {
    let rules = Arc::new(bot.rules(intake)?);
    let (count, limit) = ask(bot).await?;
    Kept::forget_beyond(intake, count).await;
    let behind = Behind::default();
    let mut shards = Vec::new();
    for number in 0..count {
        let shard = ShardId::new(number, count);
        let kept = Kept::read(intake, rules.me, shard).await;
        if kept.is_none() {
            behind.add(waiting(shard));
        }
        shards.push((shard, kept));
    }
    if limit.remaining == 0 && shards.iter().any(|(_, kept)| kept.is_none()) {
        return Err(no_more_sessions(Duration::from_millis(limit.reset_after)));
    }
    if count > 1 {
        let resumed = shards.iter().filter(|(_, kept)| kept.is_some()).count();
        let label = &bot.settings.label;
        tracing::info!(label, shards = count, resumed, "connecting to Discord's gateway in shards");
    }
    let queue = InMemoryQueue::new(
        limit.max_concurrency.max(1),
        limit.remaining,
        Duration::from_millis(limit.reset_after),
        limit.total.max(limit.remaining),
    );
    let shared = Shared { rules, behind, queue, missing: Mutex::new((0..count).collect()) };
    let each =
        shards.into_iter().map(|(shard, kept)| keep_up(bot, intake, &shared, shard, kept, stop.clone()));
    let mut each: FuturesUnordered<_> = each.collect();
    while let Some(ended) = each.next().await {
        ended?;
    }
    Ok(())
}

/// One connection. Where it is the only one, whoever keeps up the bot keeps it up, too; one of several must not end the others.
async fn keep_up(
    bot: &Discord,
    intake: &Intake,
    shared: &Shared,
    shard: ShardId,
    mut kept: Option<Kept>,
    mut stop: Stop,
) -> Result<(), Trouble> {
    let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(120));
    loop {
        let began = tokio::time::Instant::now();
        let trouble = match listen_on(bot, intake, shared, shard, kept.take(), stop.clone()).await? {
            Ended::Stopped => return Ok(()),
            Ended::Lost(trouble) if shard.total() == 1 => return Err(trouble),
            Ended::Lost(trouble) => trouble,
        };
        shared.down(shard, intake, &trouble);
        if began.elapsed() > LONG {
            backoff.reset();
        }
        tokio::select! {
            () = stop.said() => return Ok(()),
            () = tokio::time::sleep(backoff.wait()) => {}
        }
        kept = Kept::read(intake, shared.rules.me, shard).await;
    }
}

/// How many connections there are to be, and how many sessions Discord lets the bot begin.
async fn ask(bot: &Discord) -> Result<(u32, SessionStartLimit), Trouble> {
    let told = bot.client.gateway().authed().await.map_err(|error| trouble::of_request(&error))?;
    let told = told.model().await.map_err(|_| trouble::unread())?;
    let count = bot.settings.shards.map_or(told.shards, std::num::NonZeroU32::get);
    Ok((count.clamp(1, MOST), told.session_start_limit))
}

/// Whether this connection hears of a server.
pub(crate) fn hears(shard: ShardId, guild: Id<GuildMarker>) -> bool {
    (guild.get() >> 22) % u64::from(shard.total()) == u64::from(shard.number())
}

/// What is behind until a connection has begun its session.
pub(crate) fn waiting(shard: ShardId) -> String {
    format!("shard {}", shard.number())
}

fn no_more_sessions(for_now: Duration) -> Trouble {
    Trouble::Passing {
        what: format!(
            "Discord does not let this bot begin new sessions for {} minutes",
            for_now.as_secs().div_ceil(60).max(1)
        ),
        hint: "wait; the log says why it had to begin so many".to_owned(),
        after: Some(for_now),
    }
}

/// The most connections. Discord's largest bots have some thousands; more is a mistake somewhere.
const MOST: u32 = 16_384;
/// A connection that stood for so long begins to be patient anew.
const LONG: Duration = Duration::from_secs(60);
