//! The connection: said and heard with `NOTIFY` and `LISTEN`, made again when it breaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use confidant_chat_format::AccountId;
use confidant_display::debug_without_content;
use confidant_postgres::{Ear, Link, Pool, Voice};
use tokio::time::{Instant, sleep, timeout};

use super::outbox::Outbox;
use super::senders::{Heard, Senders};
use super::wire::{Gateway, Message, pieces, read_piece};
use crate::service::{AccountEvent, News, NewsCounts, Service, WeakService};
use crate::store::Result;
use crate::vault::{Tag, Vault};

/// News over a PostgreSQL, on a connection of their own.
pub struct PostgresNews {
    pool: Pool,
    vault: Arc<dyn Vault>,
    channel: String,
    gateway: Gateway,
    outbox: Outbox,
    counts: Counts,
}

debug_without_content!(PostgresNews);

#[derive(Default)]
struct Counts {
    is_connected: AtomicBool,
    told: AtomicU64,
    heard: AtomicU64,
    malformed: AtomicU64,
    lost: AtomicU64,
    /// The last message of this gateway that came back to it.
    echo: AtomicU64,
}

/// Why listening ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// The connection broke.
    Broken,
    /// This gateway does not hear itself.
    Deaf,
    /// There is no service any more.
    Gone,
}

impl PostgresNews {
    /// News among the gateways that keep chats where the link leads. Does not connect yet.
    pub fn new(link: &Link, vault: Arc<dyn Vault>) -> Result<Self> {
        let pool = Pool::new(link, &[])?;
        let channel = format!("confidant_{}", vault.tag("news-channel", link.schema.as_bytes()));
        let gateway = *crate::service::random::<16>();
        Ok(Self { pool, vault, channel, gateway, outbox: Outbox::new(), counts: Counts::default() })
    }

    #[cfg(test)]
    pub(crate) fn channel(&self) -> &str {
        &self.channel
    }

    /// Tells and hears until the connection ends.
    async fn exchange(&self, service: &WeakService, voice: Voice, ear: Ear) -> Ended {
        tokio::select! {
            ended = self.tell(&voice) => ended,
            ended = self.hear(service, ear) => ended,
        }
    }

    async fn tell(&self, voice: &Voice) -> Ended {
        let mut asked = None;
        let mut silent = Instant::now();
        loop {
            let due = (silent + PING).saturating_duration_since(Instant::now());
            if timeout(due, self.outbox.wait()).await.is_err() {
                if asked.is_some_and(|number| self.counts.echo.load(Ordering::Relaxed) < number) {
                    return Ended::Deaf;
                }
                (asked, silent) = (self.outbox.ping(), Instant::now());
            }
            let batch = self.outbox.batch();
            let Some(last) = batch.last().map(|post| post.number) else { continue };
            let said = batch
                .iter()
                .filter_map(|post| pieces(&self.gateway, post.number, &post.text, |rest| self.tag(rest)));
            let said: Vec<String> = said.flatten().collect();
            if voice.say(&said).await.is_err() {
                return Ended::Broken;
            }
            self.outbox.settle(last);
            self.counts.told.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
    }

    async fn hear(&self, service: &WeakService, mut ear: Ear) -> Ended {
        let mut senders = Senders::default();
        while let Some(said) = ear.next().await {
            let Some(piece) = read_piece(&said, |rest| self.tag(rest)) else {
                self.counts.malformed.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            if piece.gateway == self.gateway {
                self.counts.echo.fetch_max(piece.number, Ordering::Relaxed);
                continue;
            }
            let Some(service) = service.upgrade() else { return Ended::Gone };
            let taken = match senders.take(&piece) {
                Heard::Nothing => continue,
                Heard::Whole(text) => self.take(&service, &text),
                Heard::AfterLoss(text) => self.take(&service, &text).max(Taken::Check),
                Heard::Lost => Taken::Check,
            };
            if taken == Taken::Check {
                self.counts.lost.fetch_add(1, Ordering::Relaxed);
                if service.catch_up().await.is_err() {
                    // Connected anew, it is tried again.
                    return Ended::Broken;
                }
            }
        }
        Ended::Broken
    }

    fn take(&self, service: &Service, text: &str) -> Taken {
        match Message::read(text) {
            Some(Message::Happened(account, happened)) => {
                self.counts.heard.fetch_add(1, Ordering::Relaxed);
                service.hear(&account, &happened);
                Taken::Done
            }
            Some(Message::Ping) => Taken::Done,
            Some(Message::Check) => Taken::Check,
            // One of ours that this version cannot read: what it was about is in the store.
            None => {
                self.counts.malformed.fetch_add(1, Ordering::Relaxed);
                Taken::Check
            }
        }
    }

    fn tag(&self, rest: &str) -> Tag {
        self.vault.tag("news", rest.as_bytes())
    }
}

/// What a message asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Taken {
    Done,
    /// Sockets are held against the store.
    Check,
}

#[async_trait]
impl News for PostgresNews {
    fn happened(&self, account: &AccountId, happened: &AccountEvent) {
        self.outbox.push(account, happened);
    }

    async fn listen(&self, service: WeakService) {
        let (mut pause, mut is_said) = (SHORTEST_PAUSE, false);
        loop {
            let listening = self.pool.listen(&self.channel).await;
            let Some(strong) = service.upgrade() else { return };
            // What was said before this gateway listened is in the store.
            let caught_up = match &listening {
                Ok(_) => strong.catch_up().await.is_ok(),
                Err(_) => false,
            };
            drop(strong);
            if let Ok((voice, ear)) = listening
                && caught_up
            {
                if std::mem::take(&mut is_said) {
                    tracing::info!("chats: other gateways are heard again");
                }
                self.counts.is_connected.store(true, Ordering::Relaxed);
                let since = Instant::now();
                let ended = self.exchange(&service, voice, ear).await;
                self.counts.is_connected.store(false, Ordering::Relaxed);
                self.counts.lost.fetch_add(1, Ordering::Relaxed);
                if ended == Ended::Gone {
                    return;
                }
                if since.elapsed() > LONGEST_PAUSE {
                    pause = SHORTEST_PAUSE;
                }
                if ended == Ended::Deaf {
                    tracing::warn!(
                        "chats: this gateway does not hear what it says through PostgreSQL; is there a pooler \
                         that lends connections for single transactions? Devices hear of each other's changes late"
                    );
                }
            }
            if !std::mem::replace(&mut is_said, true) {
                tracing::warn!("chats: other gateways cannot be heard through PostgreSQL; it is tried again");
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn counts(&self) -> NewsCounts {
        let Counts { is_connected, told, heard, malformed, lost, .. } = &self.counts;
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        NewsCounts {
            is_connected: is_connected.load(Ordering::Relaxed),
            told: count(told),
            heard: count(heard),
            malformed: count(malformed),
            lost: count(lost),
        }
    }
}

/// A gateway that has nothing to say says so, this often.
const PING: Duration = Duration::from_secs(15);
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
