//! The bus on a Redis.
//!
//! A subscription makes its connection again for as long as somebody listens. What was published meanwhile is lost, as it
//! is on such a channel; whoever waits for it asks again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::{BusAddress, Reach, Subscription, Way};
use crate::bus::seals::Payload;
use crate::error::StoreError;
use crate::store::redis::{For, Link, connect};

#[derive(Debug)]
pub(in crate::bus) struct BusLink {
    link: Arc<Link>,
    prefix: String,
}

impl BusLink {
    pub(in crate::bus) async fn connect(address: &BusAddress) -> Result<Self, StoreError> {
        Ok(Self { link: connect(&address.0).await?, prefix: address.0.prefix.clone() })
    }

    /// Publishes a message to whoever listens now; returns whether anybody may have received it.
    ///
    /// A server of a Cluster passes it on to all, and counts only those who listen on itself.
    pub(in crate::bus) async fn publish(&self, way: &Way, payload: &Payload) -> Result<Reach, StoreError> {
        let mut cmd = redis::cmd("PUBLISH");
        cmd.arg(self.channel(way)).arg(payload.as_bytes());
        let listeners: u64 = self.link.run(For::Writing, cmd).await?;
        Ok(if listeners == 0 && !self.link.is_cluster() { Reach::Nobody } else { Reach::Perhaps })
    }

    /// Publishes several messages, in this order.
    pub(in crate::bus) async fn publish_all(
        &self,
        way: &Way,
        payloads: &[Payload],
    ) -> Result<(), StoreError> {
        let said = |payload: &Payload| {
            let mut cmd = redis::cmd("PUBLISH");
            cmd.arg(self.channel(way)).arg(payload.as_bytes());
            cmd
        };
        if !self.link.is_cluster() {
            let cmds: Vec<_> = payloads.iter().map(said).collect();
            return self.link.all::<u64>(For::Writing, &cmds).await.map(drop);
        }
        // Said at once, they would go to several servers, and be heard in any order.
        for payload in payloads {
            self.link.run::<u64>(For::Writing, said(payload)).await?;
        }
        Ok(())
    }

    /// Who listens on this channel, as far as that can be told: servers of a Cluster count their own listeners only.
    pub(in crate::bus) async fn listeners(&self, way: &Way) -> Result<Reach, StoreError> {
        if self.link.is_cluster() {
            return Ok(Reach::Perhaps);
        }
        let mut cmd = redis::cmd("PUBSUB");
        cmd.arg("NUMSUB").arg(self.channel(way));
        let (_, listeners): (String, u64) = self.link.run(For::Reading, cmd).await?;
        Ok(if listeners == 0 { Reach::Nobody } else { Reach::Perhaps })
    }

    /// Claims something that only one may have, for as long as `stands`; returns whether it is ours.
    pub(in crate::bus) async fn claim(
        &self,
        name: &str,
        by: &str,
        stands: Duration,
    ) -> Result<bool, StoreError> {
        let key = self.claim_key(name);
        let mut cmd = redis::cmd("SET");
        cmd.arg(&key).arg(by).arg("NX").arg("EX").arg(stands.as_secs());
        let taken: Option<String> = self.link.run(For::Writing, cmd).await?;
        if taken.is_some() {
            return Ok(true);
        }
        // It may have been us: a command whose reply was lost is sent again.
        let mut cmd = redis::cmd("GET");
        cmd.arg(&key);
        let holder: Option<String> = self.link.run(For::Reading, cmd).await?;
        Ok(holder.is_some_and(|holder| holder == by))
    }

    /// Renews a claim of ours for as long as this from now on, unless somebody else has it by now.
    pub(in crate::bus) async fn keep_claim(
        &self,
        name: &str,
        by: &str,
        stands: Duration,
    ) -> Result<(), StoreError> {
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(KEEP).arg(1).arg(self.claim_key(name)).arg(by).arg(stands.as_secs());
        self.link.run::<u64>(For::Writing, cmd).await.map(drop)
    }

    /// Whether somebody has claimed it.
    pub(in crate::bus) async fn is_claimed(&self, name: &str) -> Result<bool, StoreError> {
        let mut cmd = redis::cmd("EXISTS");
        cmd.arg(self.claim_key(name));
        Ok(self.link.run::<u64>(For::Reading, cmd).await? > 0)
    }

    fn claim_key(&self, name: &str) -> String {
        format!("{}vagent:claim:{name}", self.prefix)
    }

    /// Subscribes to a channel, for as long as the receiver lives.
    pub(in crate::bus) async fn listen(&self, way: Way) -> Subscription {
        let (messages, receiver) = mpsc::unbounded_channel();
        let (up, mut is_up) = watch::channel(false);
        let (link, channel) = (Arc::clone(&self.link), self.channel(&way));
        tokio::spawn(async move {
            let (mut pause, mut complained) = (SHORTEST_PAUSE, false);
            while !messages.is_closed() {
                match link.subscribe(&channel).await {
                    Ok(subscription) => {
                        if std::mem::take(&mut complained) {
                            tracing::info!("listening on the bus again");
                        }
                        up.send_replace(true);
                        hand_on(subscription, &messages).await;
                        up.send_replace(false);
                        pause = SHORTEST_PAUSE;
                    }
                    // Once each time: it is tried again every second.
                    Err(error) if !std::mem::replace(&mut complained, true) => {
                        tracing::warn!(error = %error, hint = UNHEARD, "cannot listen on the bus");
                    }
                    Err(_) => {}
                }
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        });
        // Whoever asks for something right away should hear of it.
        let _ = timeout(FIRST_CONNECTION, is_up.wait_for(|up| *up)).await;
        Subscription { messages: receiver, up: is_up }
    }

    fn channel(&self, way: &Way) -> String {
        format!("{}vagent:{}", self.prefix, way.name())
    }
}

/// Passes messages on until the connection breaks.
async fn hand_on(
    (mut sink, mut stream): (PubSubSink, PubSubStream),
    messages: &mpsc::UnboundedSender<Vec<u8>>,
) {
    let mut pings = tokio::time::interval(PING);
    pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            message = stream.next() => {
                let Some(message) = message else { return };
                if messages.send(message.get_payload_bytes().to_vec()).is_err() {
                    return;
                }
            }
            // A connection that was cut without a word looks like one on which nobody speaks. The stream is read
            // meanwhile by a task of the client's own.
            _ = pings.tick() => {
                let pong = timeout(ANSWER, sink.ping::<redis::Value>()).await;
                if !matches!(pong, Ok(Ok(_))) || messages.is_closed() {
                    return;
                }
            }
        }
    }
}

/// Takes the claim again if nobody has it: a server may have lost it.
const KEEP: &str = "local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return 1";
const UNHEARD: &str = "check that the Redis at bus.url (or store.url) is running; a dedicated user needs +@pubsub and \
                       the channels vagent:* (after store.prefix), see docs/OPERATIONS.md";
const ANSWER: Duration = Duration::from_secs(3);
const PING: Duration = Duration::from_secs(4);
const FIRST_CONNECTION: Duration = Duration::from_secs(5);
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
