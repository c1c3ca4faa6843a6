//! A Discord in one process: what is on its servers, and the levers that tests pull.

mod gateway;
mod rest;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use confidant_engine::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// The bots that may sign in, with their tokens. Tests are about the first unless they say otherwise.
pub(crate) const BOTS: [(u64, &str); 2] = [(ME, TOKEN), (OTHER, OTHER_TOKEN)];
pub(crate) const TOKEN: &str = "MTAw.fake.token";
pub(crate) const ME: u64 = 100;
pub(crate) const OTHER_TOKEN: &str = "MTAy.fake.token";
pub(crate) const OTHER: u64 = 102;
pub(crate) const GUILD: u64 = 7_000;
pub(crate) const GENERAL: u64 = 7_001;
/// A server that only tests of several connections know: the second one of two hears of it.
pub(crate) const FAR: u64 = (1 << 22) + 7_000;

/// A running fake. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Fake {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
    ids: Arc<AtomicU64>,
    pub(crate) rest: SocketAddr,
    pub(crate) gateway: SocketAddr,
}

/// A message as the server has it.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    pub(crate) id: u64,
    pub(crate) channel: u64,
    pub(crate) author: u64,
    pub(crate) text: String,
    pub(crate) reply_to: Option<u64>,
    pub(crate) edits: usize,
    /// The time of the last one, as ids have it.
    pub(crate) edited: u64,
    pub(crate) files: Vec<String>,
    pub(crate) attachments: usize,
    pub(crate) nonce: Option<String>,
    /// Bits of Discord's own. Authors may set that links are shown without a preview, and no other.
    pub(crate) flags: u64,
}

#[derive(Default)]
struct State {
    channels: BTreeMap<u64, Room>,
    posts: BTreeMap<u64, Post>,
    sessions: HashMap<String, gateway::Session>,
    /// What interactions were answered, by their tokens.
    interactions: HashMap<String, Vec<String>>,
    commands: Vec<String>,
    /// The next answers are 429s of this many seconds.
    limited: Vec<f64>,
    /// Messages that a channel takes per second, if that is bounded.
    bucket: Option<(u32, Duration)>,
    spent: HashMap<u64, (u32, tokio::time::Instant)>,
    pub(crate) counts: HashMap<&'static str, usize>,
    down: bool,
    /// What every request is answered.
    instead: Option<(u16, &'static str)>,
    intents_allowed: bool,
    identifies: usize,
    resumes: usize,
    acks: bool,
    in_guild: bool,
    /// Whether the bots are in the far server, too.
    in_far: bool,
    /// How many connections are recommended, and how many are asked for at least.
    shards: (u32, u32),
    /// How many sessions may be begun.
    sessions_left: u32,
    dm_refused: bool,
    /// How long Discord takes to hear that a slash command was heard.
    slow_callbacks: Duration,
    /// So many of the next messages are taken, and nobody is told that they were.
    swallowed: usize,
    /// Whether nonces are known no more, as after some minutes.
    nonces_forgotten: bool,
    /// Whether what was said in a channel cannot be read.
    history_closed: bool,
    /// Texts that came without the word that nobody is to be notified.
    pings: usize,
}

struct Room {
    /// Whose direct channel it is: a person's with a bot. In the server if missing.
    direct: Option<(u64, u64)>,
    /// A thread is a channel that the server lists apart.
    thread: bool,
    /// The server that it is in.
    guild: u64,
}

impl Fake {
    pub(crate) async fn start() -> Self {
        let rest = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gateway = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut state = State {
            intents_allowed: true,
            acks: true,
            in_guild: true,
            shards: (1, 1),
            sessions_left: 1000,
            ..State::default()
        };
        state.channels.insert(GENERAL, Room { direct: None, thread: false, guild: GUILD });
        let fake = Self {
            state: Arc::new(Mutex::new(state)),
            changed: Arc::default(),
            ids: Arc::default(),
            rest: rest.local_addr().unwrap(),
            gateway: gateway.local_addr().unwrap(),
        };
        tokio::spawn(rest::serve(fake.clone(), rest));
        tokio::spawn(gateway::serve(fake.clone(), gateway));
        fake
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The next id: a time and a count, as Discord's are.
    fn id(&self) -> u64 {
        let now = SystemClock.now().0;
        let wanted = u64::try_from(now - 1_420_070_400_000).unwrap() << 22;
        let next = |last: u64| wanted.max(last + 1);
        // What it was before, of which ours is the next: by now another may be there.
        next(self.ids.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| Some(next(last))).unwrap())
    }

    fn count(&self, what: &'static str) {
        *self.state().counts.entry(what).or_default() += 1;
        self.changed.notify_waiters();
    }

    pub(crate) fn counted(&self, what: &'static str) -> usize {
        self.state().counts.get(what).copied().unwrap_or(0)
    }

    // What people do.

    /// The direct channel of a person.
    pub(crate) fn direct(&self, user: u64) -> u64 {
        self.direct_with(user, ME)
    }

    /// The direct channel of a person with one of the bots.
    pub(crate) fn direct_with(&self, user: u64, bot: u64) -> u64 {
        let channel = bot * 1_000_000_000 + user;
        self.state().channels.entry(channel).or_insert(Room {
            direct: Some((user, bot)),
            thread: false,
            guild: 0,
        });
        channel
    }

    pub(crate) fn add_channel(&self, channel: u64) {
        self.state().channels.insert(channel, Room { direct: None, thread: false, guild: GUILD });
    }

    /// Puts the bots into the far server, with a channel there.
    pub(crate) fn add_far(&self, channel: u64) {
        let mut state = self.state();
        state.in_far = true;
        state.channels.insert(channel, Room { direct: None, thread: false, guild: FAR });
    }

    pub(crate) fn add_thread(&self, channel: u64) {
        self.state().channels.insert(channel, Room { direct: None, thread: true, guild: GUILD });
    }

    /// Says something, and tells whoever listens.
    pub(crate) fn say(&self, user: u64, channel: u64, text: &str) -> u64 {
        let post = self.post(user, channel, text);
        self.tell(post);
        post
    }

    /// Puts something on the server without telling anybody.
    pub(crate) fn post(&self, user: u64, channel: u64, text: &str) -> u64 {
        let id = self.id();
        let post = Post {
            id,
            channel,
            author: user,
            text: text.to_owned(),
            reply_to: None,
            edits: 0,
            edited: 0,
            files: Vec::new(),
            attachments: 0,
            nonce: None,
            flags: 0,
        };
        self.add(post);
        id
    }

    pub(crate) fn attach(&self, user: u64, channel: u64, text: &str) -> u64 {
        let id = self.post(user, channel, text);
        self.state().posts.get_mut(&id).unwrap().attachments = 1;
        self.tell(id);
        id
    }

    fn add(&self, post: Post) {
        self.state().posts.insert(post.id, post);
        self.changed.notify_waiters();
    }

    /// Tells of a message (again).
    pub(crate) fn tell(&self, id: u64) {
        let event = self.message_json(id);
        self.dispatch("MESSAGE_CREATE", event);
    }

    /// Tells every bot that sees the channel of something.
    fn dispatch(&self, kind: &str, event: Value) {
        let channel = event["channel_id"].as_str().or_else(|| event["channel"]["id"].as_str());
        let channel: Option<u64> = channel.map(|channel| channel.parse().unwrap());
        let direct =
            channel.and_then(|channel| self.state().channels.get(&channel).and_then(|room| room.direct));
        gateway::dispatch(self, direct.map(|(_, bot)| bot), kind, &event);
    }

    pub(crate) fn edit(&self, id: u64, text: &str) {
        let edited = self.id();
        {
            let mut state = self.state();
            let post = state.posts.get_mut(&id).unwrap();
            post.text = text.to_owned();
            post.edits += 1;
            post.edited = edited;
        }
        let event = self.message_json(id);
        self.dispatch("MESSAGE_UPDATE", event);
    }

    pub(crate) fn delete(&self, id: u64) {
        let post = self.state().posts.remove(&id).unwrap();
        let mut event = json!({ "id": id.to_string(), "channel_id": post.channel.to_string() });
        if let Some(guild) = self.guild_of(post.channel) {
            event["guild_id"] = json!(guild.to_string());
        }
        self.dispatch("MESSAGE_DELETE", event);
    }

    /// Gives a slash command; its token names what it is answered.
    pub(crate) fn slash(&self, user: u64, channel: u64, name: &str) -> String {
        let id = self.id();
        let token = format!("token-{id}");
        let guild = self.guild_of(channel);
        let mut event = json!({
            "id": id.to_string(), "application_id": ME.to_string(), "type": 2, "token": token, "version": 1,
            "attachment_size_limit": 10_000_000, "authorizing_integration_owners": {}, "entitlements": [],
            "channel": { "id": channel.to_string(), "type": if guild.is_some() { 0 } else { 1 } },
            "data": { "id": "1", "name": name, "type": 1 },
        });
        if let Some(guild) = guild {
            event["guild_id"] = json!(guild.to_string());
            event["member"] = json!({
                "user": user_json(user), "roles": [], "joined_at": "2024-01-01T00:00:00.000000+00:00", "deaf": false,
                "mute": false, "flags": 0, "permissions": "0",
            });
        } else {
            event["user"] = user_json(user);
        }
        gateway::dispatch(self, Some(ME), "INTERACTION_CREATE", &event);
        token
    }

    // What tests look at.

    pub(crate) fn said(&self, channel: u64) -> Vec<Post> {
        self.state().posts.values().filter(|post| post.channel == channel).cloned().collect()
    }

    /// What bots said in a channel, in order.
    pub(crate) fn answers(&self, channel: u64) -> Vec<Post> {
        self.said(channel).into_iter().filter(|post| is_ours(post.author)).collect()
    }

    /// Texts that might have notified somebody.
    pub(crate) fn pings(&self) -> usize {
        self.state().pings
    }

    pub(crate) fn interaction(&self, token: &str) -> Vec<String> {
        self.state().interactions.get(token).cloned().unwrap_or_default()
    }

    pub(crate) fn commands(&self) -> Vec<String> {
        self.state().commands.clone()
    }

    pub(crate) fn identifies(&self) -> usize {
        self.state().identifies
    }

    pub(crate) fn resumes(&self) -> usize {
        self.state().resumes
    }

    /// Waits for something to be so.
    pub(crate) async fn until(&self, what: &str, is: impl Fn(&Self) -> bool) {
        let wait = async {
            while !is(self) {
                let changed = self.changed.notified();
                let _ = tokio::time::timeout(Duration::from_millis(20), changed).await;
            }
        };
        assert!(tokio::time::timeout(Duration::from_secs(120), wait).await.is_ok(), "never came: {what}");
    }

    /// Waits until the bot has answered so often in a channel, and gives the answers.
    pub(crate) async fn answered(&self, channel: u64, times: usize) -> Vec<Post> {
        self.until("an answer", |fake| fake.answers(channel).len() >= times).await;
        self.answers(channel)
    }

    // Levers.

    /// Cuts every connection without a word.
    pub(crate) fn cut(&self) {
        gateway::each(self, gateway::Order::Cut);
    }

    /// Asks for a reconnect, as Discord does every few hours.
    pub(crate) fn ask_to_reconnect(&self) {
        gateway::each(self, gateway::Order::Reconnect);
    }

    /// Forgets all sessions, and says so.
    pub(crate) fn invalidate(&self) {
        gateway::each(self, gateway::Order::Invalidate);
        let mut state = self.state();
        state.sessions.values_mut().for_each(|session| session.dead = true);
    }

    /// Forgets all sessions, and tells nobody: resuming is refused.
    pub(crate) fn forget_sessions(&self) {
        self.state().sessions.values_mut().for_each(|session| session.dead = true);
    }

    pub(crate) fn close(&self, code: u16) {
        gateway::each(self, gateway::Order::Close(code));
    }

    pub(crate) fn set_down(&self, down: bool) {
        self.state().down = down;
        if down {
            self.cut();
        }
    }

    /// Answers every request with this, as one does whose token was withdrawn, or a proxy; as usual if it is nothing.
    pub(crate) fn answer(&self, instead: Option<(u16, &'static str)>) {
        self.state().instead = instead;
    }

    pub(crate) fn answer_heartbeats(&self, acks: bool) {
        self.state().acks = acks;
    }

    pub(crate) fn allow_intents(&self, allowed: bool) {
        self.state().intents_allowed = allowed;
    }

    /// Lets some time go by before a slash command counts as heard.
    pub(crate) fn slow_callbacks(&self, by: Duration) {
        self.state().slow_callbacks = by;
    }

    /// Takes messages without saying so.
    pub(crate) fn swallow(&self, messages: usize) {
        self.state().swallowed = messages;
    }

    pub(crate) fn forget_nonces(&self) {
        self.state().nonces_forgotten = true;
    }

    pub(crate) fn close_history(&self) {
        self.state().history_closed = true;
    }

    pub(crate) fn refuse_direct(&self) {
        self.state().dm_refused = true;
    }

    /// The next requests are refused for so many seconds each.
    pub(crate) fn limit(&self, seconds: &[f64]) {
        self.state().limited.extend(seconds);
    }

    /// Bounds messages per channel.
    pub(crate) fn bound(&self, messages: u32, per: Duration) {
        self.state().bucket = Some((messages, per));
    }

    /// Recommends so many connections, and asks for so many at least.
    pub(crate) fn ask_for_shards(&self, recommended: u32, least: u32) {
        self.state().shards = (recommended, least);
    }

    /// Lets so many sessions be begun.
    pub(crate) fn allow_sessions(&self, left: u32) {
        self.state().sessions_left = left;
    }

    /// Cuts one connection without a word.
    pub(crate) fn cut_shard(&self, number: u64) {
        gateway::one(self, number, &gateway::Order::Cut);
    }

    pub(crate) fn kick(&self) {
        self.state().in_guild = false;
        gateway::dispatch(self, None, "GUILD_DELETE", &json!({ "id": GUILD.to_string() }));
    }

    pub(crate) fn invite(&self) {
        self.state().in_guild = true;
        let guild = self.guild_json(GUILD);
        gateway::dispatch(self, None, "GUILD_CREATE", &guild);
    }

    // Discord's JSON.

    fn guild_of(&self, channel: u64) -> Option<u64> {
        self.state().channels.get(&channel).filter(|room| room.direct.is_none()).map(|room| room.guild)
    }

    fn message_json(&self, id: u64) -> Value {
        let post = self.state().posts.get(&id).cloned().unwrap();
        let mut json = self.fetched_json(&post);
        if let Some(guild) = self.guild_of(post.channel) {
            json["guild_id"] = json!(guild.to_string());
            json["member"] = json!({
                "roles": [], "joined_at": "2024-01-01T00:00:00.000000+00:00", "deaf": false, "mute": false, "flags": 0,
            });
        }
        if let Some(nonce) = &post.nonce {
            json["nonce"] = json!(nonce);
        }
        json
    }

    /// A message as REST has it: it does not say of which guild it is.
    fn fetched_json(&self, post: &Post) -> Value {
        let named = BOTS.iter().filter(|(bot, _)| post.text.contains(&format!("<@{bot}>")));
        let mentions: Vec<Value> = named.map(|(bot, _)| user_json(*bot)).collect();
        let attachment = |n: usize| json!({ "id": n.to_string(), "filename": "a.png", "size": 9, "url": "http://x/a", "proxy_url": "http://x/a" });
        let mut json = json!({
            "id": post.id.to_string(), "channel_id": post.channel.to_string(), "author": user_json(post.author),
            "content": post.text, "timestamp": timestamp(post.id, 0), "edited_timestamp": null, "tts": false,
            "mention_everyone": false, "mentions": mentions, "mention_roles": [], "embeds": [], "pinned": false,
            "attachments": (1..=post.attachments).map(attachment).collect::<Vec<_>>(), "type": 0, "flags": post.flags,
        });
        if post.edits > 0 {
            json["edited_timestamp"] = json!(timestamp(post.edited, post.edits));
        }
        if let Some(reply_to) = post.reply_to {
            json["type"] = json!(19);
            json["message_reference"] = json!({ "message_id": reply_to.to_string(), "channel_id": post.channel.to_string(), "type": 0 });
        }
        json
    }

    fn guild_json(&self, guild: u64) -> Value {
        let state = self.state();
        let last = |channel: u64| {
            state.posts.values().rfind(|post| post.channel == channel).map(|post| post.id.to_string())
        };
        let listed = |thread: bool| -> Vec<Value> {
            let theirs = |room: &Room| room.direct.is_none() && room.guild == guild && room.thread == thread;
            let rooms = state.channels.iter().filter(|(_, room)| theirs(room));
            let kind = if thread { 11 } else { 0 };
            let shown = |id: &u64| json!({ "id": id.to_string(), "type": kind, "name": "general", "last_message_id": last(*id), "position": 0 });
            rooms.map(|(id, _)| shown(id)).collect()
        };
        json!({ "id": guild.to_string(), "name": "A server", "unavailable": false, "channels": listed(false), "threads": listed(true) })
    }
}

/// Whether it is one of the bots that tests are about.
fn is_ours(user: u64) -> bool {
    BOTS.iter().any(|(bot, _)| *bot == user)
}

/// The bot that a token is of.
fn bot_of(token: &str) -> Option<u64> {
    let token = token.strip_prefix("Bot ").unwrap_or(token);
    BOTS.iter().find(|(_, known)| *known == token).map(|(bot, _)| *bot)
}

fn user_json(user: u64) -> Value {
    json!({
        "id": user.to_string(), "username": format!("user{user}"), "discriminator": "0", "avatar": null,
        "global_name": format!("User {user}"), "bot": is_ours(user) || user == 101, "public_flags": 0,
    })
}

/// The time in an id, as Discord writes it, some microseconds later.
fn timestamp(id: u64, later: usize) -> String {
    let millis = (id >> 22) + 1_420_070_400_000;
    let (days, rest) = (i64::try_from(millis / 86_400_000).unwrap(), millis % 86_400_000);
    // Days to a date, by the usual arithmetic on eras of 400 years.
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    let micros = (rest % 1000) * 1000 + u64::try_from(later).unwrap();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}+00:00")
}
