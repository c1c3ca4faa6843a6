//! Promises 1 and 4 of chats against somebody who can write to the database and has no key.
//!
//! Every column of every table is changed, emptied, exchanged with another row's, copied and given twice; rows are taken away, put
//! back as they were earlier, and given to another account. Whatever was done, four devices look at it: one that has everything, one
//! that was away since earlier, one that remembers nothing, and somebody else's.
//!
//! ```text
//! what is shown    is what its owner wrote there last, in the same place      no older words, no other place's, nobody else's
//! no error         everything is shown                                        nothing is missing without a word
//! somebody else    is not concerned, unless rows of theirs were touched
//! ```
//!
//! `CONFIDANT_STRANGER_ALL=1` makes every attack on every column; else each column gets two of them, others by turns.
//!
//! Easy to get wrong: what a chat's head does not cover. Drafts and account data are pieces of their own: a device that never saw one
//! cannot miss it, nor tell an earlier one from the newest.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use confidant_chat_format::{ChatId, MessageId, Role};
use confidant_chats::store::{Cell, Copied, Part, StoreError, Table, copy};
use confidant_client::{Device, Error, Phase};
use parking_lot::Mutex;

use crate::place::Place;
use crate::world::{DRAFTS_MS, MemoryFiles, Person, World};

/// What a person sees: titles and other fields, words by message, the branch that is shown.
type Shown = BTreeMap<ChatId, (BTreeMap<String, String>, BTreeMap<MessageId, String>, Vec<MessageId>)>;

/// A person: what is there now, and what drafts and data may say.
struct Story {
    person: Person,
    /// A device that has everything.
    knows: Arc<MemoryFiles>,
    /// One that was away since earlier.
    away: Arc<MemoryFiles>,
    name: &'static str,
    then: Shown,
    now: Shown,
    drafts: Vec<String>,
    data: Vec<String>,
}

struct Scene {
    world: World,
    ana: Story,
    ben: Story,
    earlier: Vec<Part>,
    rows: Vec<Part>,
}

fn shown(device: &Device) -> Shown {
    let view = |chat: ChatId| {
        let view = device.chat(&chat).unwrap();
        let words = view.messages.values().map(|message| (message.id.clone(), message.body.clone()));
        let branch = view.branch.iter().map(|message| message.id.clone());
        (chat, (view.fields.clone(), words.collect(), branch.collect()))
    };
    device.chats().into_iter().map(view).collect()
}

/// Rows by table and account.
#[derive(Debug, Default)]
struct Taken(Mutex<Vec<Part>>);

#[async_trait]
impl Copied for Taken {
    async fn accounts_after(&self, _: &str) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    async fn rows(&self, _: &'static Table, _: &str, _: &[Cell]) -> Result<Vec<Vec<Cell>>, StoreError> {
        Ok(Vec::new())
    }

    async fn put_rows(&self, part: &Part) -> Result<(), StoreError> {
        let mut whole = self.0.lock();
        match whole.last_mut() {
            Some(last) if (last.table, &last.account) == (part.table, &part.account) => {
                last.rows.extend(part.rows.clone());
            }
            _ => whole.push(part.clone()),
        }
        Ok(())
    }
}

async fn rows(world: &World) -> Vec<Part> {
    let taken = Taken::default();
    copy(&*world.kept.rows, &taken).await.unwrap();
    taken.0.into_inner()
}

/// Makes these the rows of a new store; whether it takes them.
async fn fill(place: &Place, rows: &[Part]) -> bool {
    let kept = place.open().await;
    for part in rows {
        if kept.rows.put_rows(part).await.is_err() {
            return false;
        }
    }
    true
}

/// Somebody who writes, and has a second device.
struct Writer {
    name: &'static str,
    person: Person,
    one: Device,
    knows: Arc<MemoryFiles>,
    away: Arc<MemoryFiles>,
    chats: Vec<ChatId>,
    said: Vec<MessageId>,
}

impl Writer {
    async fn begin(world: &World, name: &'static str) -> Self {
        let (person, knows, away) = (Person::new(), MemoryFiles::new(), MemoryFiles::new());
        let login = format!("{name}@example.org");
        let registered = world.register(world.transport(), &knows, &login, vec![person.recovery()]).await;
        let mut one = registered.unwrap();
        let chats =
            ["trip", "ends"].map(|title| one.new_chat(Some(&format!("{name}'s {title}"))).unwrap()).to_vec();
        let say = |body: &str| format!("{name} says {body}");
        let said = ["one", "two", "three"].map(|body| one.say(&chats[0], &say(body)).unwrap()).to_vec();
        one.say(&chats[1], &say("goodbye")).unwrap();
        let map = one.add_embed(&chats[0], &say("a map")).unwrap();
        one.write(&chats[0], Role::User, &say("see the map"), &[map], None).unwrap();
        one.set_draft(&chats[0], Some(&say("half"))).unwrap();
        one.set_data("settings", "theme", Some(&say("light"))).unwrap();
        one.flush().await.unwrap();
        let mut two = Device::log_in(world.setup(&away), &person.recovery()).await.unwrap();
        two.sync(Phase::All).await.unwrap();
        Self { name, person, one, knows, away, chats, said }
    }

    /// Everything that there is changes: so no earlier row is one of now.
    async fn go_on(mut self, world: &World) -> Story {
        let Self { name, one, chats, said, .. } = &mut self;
        let say = |body: &str| format!("{name} says {body}");
        let trip = &chats[0];
        one.edit(trip, &said[1], &say("two, again")).unwrap();
        one.delete(trip, &said[2]).unwrap();
        one.rename(trip, &say("a longer trip")).unwrap();
        one.delete_chat(&chats[1]).unwrap();
        let third = one.new_chat(Some(&say("new"))).unwrap();
        one.say(&third, &say("hello")).unwrap();
        one.say(trip, &say("four")).unwrap();
        world.pass(DRAFTS_MS);
        one.set_draft(trip, Some(&say("whole"))).unwrap();
        one.set_data("settings", "theme", Some(&say("dark"))).unwrap();
        one.flush().await.unwrap();
        one.label(&say("kitchen")).await.unwrap();
        let next = Person::new();
        let by = self.person.recovery();
        self.one.change_credentials(&by, &[next.recovery()], None).await.unwrap();
        self.one.sync(Phase::All).await.unwrap();
        let both = |one, two| [one, two].map(|body| format!("{} says {body}", self.name)).to_vec();
        let then = shown(&world.open(&self.away.snapshot()));
        Story {
            name: self.name,
            then,
            now: shown(&self.one),
            drafts: both("half", "whole"),
            data: both("light", "dark"),
            person: next,
            knows: self.knows.snapshot(),
            away: self.away.snapshot(),
        }
    }
}

async fn scene(place: Place) -> Scene {
    let world = World::at(place).await;
    let (ana, ben) = (Writer::begin(&world, "ana").await, Writer::begin(&world, "ben").await);
    let earlier = rows(&world).await;
    let (ana, ben) = (ana.go_on(&world).await, ben.go_on(&world).await);
    let rows = rows(&world).await;
    Scene { world, ana, ben, earlier, rows }
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Changed,
    Emptied,
    Exchanged,
    Copied,
    Doubled,
}

impl Way {
    const ALL: [Self; 5] = [Self::Changed, Self::Emptied, Self::Exchanged, Self::Copied, Self::Doubled];

    /// Another part, if this changes anything.
    fn on(self, part: &Part, row: usize, column: usize) -> Option<Part> {
        let mut after = part.clone();
        let (rows, many) = (&mut after.rows, part.rows.len());
        let other = (row + 1) % many;
        match self {
            Self::Changed => rows[row][column] = changed(&part.rows[row][column]),
            Self::Emptied => rows[row][column] = Cell::Nothing,
            Self::Exchanged => {
                (rows[row][column], rows[other][column]) =
                    (part.rows[other][column].clone(), part.rows[row][column].clone());
            }
            Self::Copied => rows[row][column] = part.rows[other][column].clone(),
            Self::Doubled => {
                let mut again = part.rows[row].clone();
                again[column] = changed(&again[column]);
                rows.push(again);
            }
        }
        (after != *part).then_some(after)
    }
}

/// Something else of the same kind.
fn changed(cell: &Cell) -> Cell {
    match cell {
        Cell::Nothing => Cell::Number(1_000_003),
        Cell::Number(number) => Cell::Number(number + 1),
        Cell::Text(text) => {
            let (rest, last) = text.split_at(text.len().saturating_sub(1));
            Cell::Text(format!("{rest}{}", if last == "a" { "b" } else { "a" }))
        }
        Cell::Bytes(bytes) => {
            let mut bytes = bytes.clone();
            let middle = bytes.len() / 2;
            match bytes.get_mut(middle) {
                Some(byte) => *byte ^= 1,
                None => bytes.push(0),
            }
            Cell::Bytes(bytes)
        }
    }
}

/// An attack, what it leaves, and whose rows it touches.
struct Attack {
    name: String,
    rows: Vec<Part>,
    touches_ben: bool,
    /// Whether it is all of an earlier account. A device that does not know more cannot tell it from one of now (docs/PRIVACY.md).
    is_earlier: bool,
}

impl Scene {
    /// These rows with other parts in the place of some.
    fn with(&self, name: String, parts: Vec<Part>) -> Attack {
        let touches_ben = parts.iter().any(|part| part.account == self.account(&self.ben));
        let mut rows = self.rows.clone();
        for part in parts {
            let at = rows.iter().position(|one| (one.table, &one.account) == (part.table, &part.account));
            match at {
                Some(at) => rows[at] = part,
                None => rows.push(part),
            }
        }
        Attack { name, rows, touches_ben, is_earlier: false }
    }

    fn account(&self, story: &Story) -> String {
        self.world.open(&story.knows.snapshot()).account_id().as_str().to_owned()
    }

    /// One of Ana's tables at a time.
    fn attacks(&self, every: bool) -> Vec<Attack> {
        let (ana, ben) = (self.account(&self.ana), self.account(&self.ben));
        let (mut attacks, mut turn) = (Vec::new(), 0);
        for part in self.rows.iter().filter(|part| part.account == ana || part.account.is_empty()) {
            let table = part.table.name();
            for row in 0..part.rows.len().min(3) {
                let mut after = part.clone();
                after.rows.remove(row);
                attacks.push(self.with(format!("{table}: row {row} taken away"), vec![after]));
            }
            for (column, name) in part.table.columns().into_iter().enumerate() {
                let ways = Way::ALL.len();
                for at in 0..if every { ways } else { 2 } {
                    let (way, row) = (Way::ALL[(turn + at * 2) % ways], (turn + at) % part.rows.len());
                    let after = way.on(part, row, column);
                    let named = format!("{table}.{name}: {way:?}, row {row}");
                    attacks.extend(after.map(|after| self.with(named, vec![after])));
                }
                turn += 1;
            }
            let find = |rows: &[Part], account: &str| {
                rows.iter().find(|one| (one.table, one.account.as_str()) == (part.table, account)).cloned()
            };
            if let Some(before) = find(&self.earlier, &part.account).filter(|before| before != part) {
                attacks.push(self.with(format!("{table}: as it was earlier"), vec![before]));
            }
            // Each other's: what is not to be had twice goes as well.
            if let Some(theirs) = find(&self.rows, &ben) {
                let given = |part: &Part, account: &str| Part { account: account.to_owned(), ..part.clone() };
                let both = vec![given(&theirs, &ana), given(part, &ben)];
                attacks.push(self.with(format!("{table}: given to each other"), both));
            }
        }
        attacks.extend(self.whole(&ana, &ben));
        attacks
    }

    /// Everything of a chat, and everything of an account but its record: put back, or given to somebody else.
    fn whole(&self, ana: &str, ben: &str) -> Vec<Attack> {
        let chats = ["chats", "items", "steps", "tombstones", "drafts"];
        let lists =
            [&chats[..], &["rings", "floors", "manifests", "list_steps", "deleted_chats", "data"]].concat();
        let of = |rows: &[Part], tables: &[&str], account: &str| -> Vec<Part> {
            let is_one = |part: &&Part| part.account == account && tables.contains(&part.table.name());
            rows.iter().filter(is_one).cloned().collect()
        };
        let given = |parts: Vec<Part>, account: &str| -> Vec<Part> {
            parts.into_iter().map(|part| Part { account: account.to_owned(), ..part }).collect()
        };
        let mut attacks = Vec::new();
        for (name, tables) in [("chats", &chats[..]), ("chats and lists", &lists)] {
            let back = self.with(format!("{name}: as they were earlier"), of(&self.earlier, tables, ana));
            attacks.push(Attack { is_earlier: tables.len() == lists.len(), ..back });
            let both = [given(of(&self.rows, tables, ben), ana), given(of(&self.rows, tables, ana), ben)];
            attacks.push(self.with(format!("{name}: given to each other"), both.concat()));
        }
        attacks
    }

    /// Makes an attack on a copy and lets everybody look; `None` if the store does not take it, else whether anybody was refused.
    async fn hold(&self, attack: &Attack) -> Result<Option<bool>, String> {
        let place = Place::sqlite();
        if !fill(&place, &attack.rows).await {
            return Ok(None);
        }
        let world = self.world.over(place).await;
        let mut refused = false;
        for (story, is_touched) in [(&self.ana, true), (&self.ben, attack.touches_ben)] {
            for who in Who::ALL {
                let looked =
                    tokio::time::timeout(PATIENCE, look(&world, story, who, attack.is_earlier && is_touched))
                        .await;
                let looked = looked.map_err(|_| "nothing comes".to_owned()).and_then(|looked| looked);
                let error = looked.map_err(|broken| format!("{}, {who:?}: {broken}", story.name))?;
                if let Some(error) = error.as_ref().filter(|_| !is_touched) {
                    return Err(format!("{}, {who:?}, is not concerned: {error:?}", story.name));
                }
                refused |= error.is_some();
            }
        }
        Ok(Some(refused))
    }
}

/// A device that looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// It has everything.
    Knows,
    /// It has what was there earlier.
    WasAway,
    /// It has nothing.
    IsNew,
}

impl Who {
    const ALL: [Self; 3] = [Self::Knows, Self::WasAway, Self::IsNew];

    async fn comes(self, world: &World, story: &Story) -> (Option<Device>, Option<Error>) {
        let by = story.person.recovery();
        let mut device = match self {
            Self::Knows => world.open(&story.knows.snapshot()),
            // Credentials were changed, so its session is over.
            Self::WasAway => {
                let mut device = world.open(&story.away.snapshot());
                match device.log_in_again(&by).await {
                    Ok(()) => device,
                    Err(error) => return (Some(device), Some(error)),
                }
            }
            Self::IsNew => match Device::log_in(world.setup(&MemoryFiles::new()), &by).await {
                Ok(device) => device,
                Err(error) => return (None, Some(error)),
            },
        };
        let error = device.sync(Phase::All).await.err();
        (Some(device), error)
    }
}

/// What a device makes of it: its error, if that is all right.
async fn look(world: &World, story: &Story, who: Who, is_earlier: bool) -> Result<Option<Error>, String> {
    let (device, error) = who.comes(world, story).await;
    let Some(device) = device else { return Ok(error) };
    let seen = shown(&device);
    if is_earlier && who != Who::Knows && seen == story.then {
        return Ok(error);
    }
    if error.is_none() && seen != story.now {
        let what = differing(&seen, &story.now);
        return Err(format!("something is missing or wrong, and nothing is said: {what}"));
    }
    // Whoever was away still shows what was verified then.
    let may_be_then = who == Who::WasAway || is_earlier && who == Who::IsNew;
    let is_then = |chat: &ChatId| may_be_then && seen.get(chat) == story.then.get(chat);
    for (chat, (fields, words, _)) in seen.iter().filter(|(chat, _)| !is_then(chat)) {
        let Some((all_fields, all_words, _)) = story.now.get(chat) else {
            return Err("a chat is shown that is not there".to_owned());
        };
        let is_right = fields.iter().all(|(name, body)| all_fields.get(name) == Some(body))
            && words.iter().all(|(id, body)| all_words.get(id) == Some(body));
        if !is_right {
            return Err("other words are shown than were written".to_owned());
        }
    }
    let may_say = |said: &[String], body: Option<&String>| match (who, body) {
        (_, None) => true,
        (Who::Knows, Some(body)) => said.last() == Some(body),
        (_, Some(body)) => said.contains(body),
    };
    for chat in device.chats() {
        if !may_say(&story.drafts, device.chat(&chat).unwrap().draft.as_ref()) {
            return Err("another draft is shown".to_owned());
        }
    }
    if !may_say(&story.data, device.data("settings", "theme").ok().flatten().as_ref()) {
        return Err("another setting is shown".to_owned());
    }
    Ok(error)
}

/// Where two differ, without words.
fn differing(seen: &Shown, now: &Shown) -> String {
    if seen.keys().ne(now.keys()) {
        return format!("{} chats of {}", seen.len(), now.len());
    }
    let parts = seen.values().zip(now.values()).map(|(seen, now)| {
        [("fields", seen.0 == now.0), ("words", seen.1 == now.1), ("branch", seen.2 == now.2)]
    });
    let wrong = parts.flatten().filter(|(_, same)| !same).map(|(name, _)| name);
    wrong.collect::<Vec<_>>().join(", ")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_4_no_row_of_chats_can_be_used_against_anybody() {
    #[expect(clippy::disallowed_methods, reason = "a test, told by its environment how much to do")]
    let every = std::env::var_os("CONFIDANT_STRANGER_ALL").is_some();
    let scene = Arc::new(scene(Place::sqlite()).await);
    let whole = scene.with("nothing".to_owned(), Vec::new());
    assert_eq!(scene.hold(&whole).await, Ok(Some(false)), "as it is, all is well");
    let attacks = scene.attacks(every);
    let (mut made, mut refused, mut wrong) = (0, 0, Vec::new());
    for attack in attacks {
        let here = Arc::clone(&scene);
        let name = attack.name.clone();
        // In a task of its own: whatever panics is one of them.
        match tokio::spawn(async move { here.hold(&attack).await }).await {
            Ok(Ok(None)) => {}
            Ok(Ok(Some(is_refused))) => {
                made += 1;
                refused += usize::from(is_refused);
            }
            Ok(Err(broken)) => wrong.push(format!("{name}: {broken}")),
            Err(panicked) => wrong.push(format!("{name}: {panicked}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {made}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(made > 100 && refused > made / 4, "{made} attacks were made, and {refused} refused");
}

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
