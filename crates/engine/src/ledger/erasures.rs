//! The order of erasures: what was asked before one ends with it, wherever it waited meanwhile.
//!
//! Every erasure has a number, one more than the one before it, and leaves a mark in the keyring: whose data went, as a tag,
//! and the number. Whatever may outlive an erasure knows how many there had been when it began: a session by its data key
//! (the key's generation is that number plus one, and is sealed into it), a request by the [`Epoch`] it was asked in, which goes
//! with it to other processes and into inboxes. So two questions have an answer, whoever asks them, and after any restart:
//!
//! - A session whose key is older than the mark of its session or person was erased. It does not open again, also when
//!   somebody puts its rows and its key back.
//! - A request that is older than such a mark ends as `erased`: it makes no new session and writes into none.
//!
//! Numbers and not times, since machines disagree about the time. What is easy to get wrong: an erasure leaves its mark before
//! it looks for what is to go, and whoever makes a session looks for marks again after its first write. So at least one of the
//! two sees the other, on stores where no transaction covers both. Marks lie on shelves, each of which is one row; beside the
//! number it is noted how new each shelf is, so that one that was taken away or put back as it was is missed.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use confidant_seal::{Context, Key, Sealed, Suite, Tag, open, seal};
use parking_lot::Mutex;

use crate::error::{Error, Tampering};
use crate::ledger::Ledger;
use crate::ledger::epoch::Epoch;
use crate::store::Names;

/// What a process knows of erasures.
#[derive(Debug, Default)]
pub(crate) struct Erasures {
    /// The highest number that was seen.
    known: AtomicU64,
    /// Numbers of erasures that this process made, the newest last.
    made_here: Mutex<VecDeque<u64>>,
}

impl Erasures {
    pub(crate) fn known(&self) -> Epoch {
        Epoch(self.known.load(Ordering::SeqCst))
    }

    fn see(&self, epoch: Epoch) {
        self.known.fetch_max(epoch.0, Ordering::SeqCst);
    }

    fn make(&self, epoch: Epoch) {
        let mut made = self.made_here.lock();
        made.push_back(epoch.0);
        if made.len() > MADE_KEPT {
            made.pop_front();
        }
        drop(made);
        self.see(epoch);
    }

    fn was_made_here(&self, epoch: Epoch) -> bool {
        self.made_here.lock().contains(&epoch.0)
    }
}

/// When something was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// As many erasures as this process knew of then: an erasure that it makes itself is newer for sure.
    floor: Epoch,
    /// As many as there were; nothing as long as nobody needed to look.
    at: Option<Epoch>,
}

impl Asked {
    /// Now, or in the epoch that the request brought along.
    pub(crate) fn now(ledger: &Ledger, brought: Option<Epoch>) -> Self {
        Self { floor: brought.unwrap_or_else(|| ledger.erasures.known()), at: brought }
    }

    /// Looks how many erasures there are, unless that is known.
    pub(crate) async fn look(&mut self, ledger: &Ledger) -> Result<Epoch, Error> {
        match self.at {
            Some(at) => Ok(at),
            None => {
                let at = ledger.epoch().await?;
                Ok(*self.at.insert(at))
            }
        }
    }

    /// The epoch to send along: the oldest that it can be.
    pub(crate) fn epoch(&self) -> Epoch {
        self.at.unwrap_or(self.floor)
    }

    /// Whether the erasure that left this mark came afterwards.
    pub(crate) fn is_before(&self, ledger: &Ledger, mark: Epoch) -> bool {
        self.at.is_some_and(|at| mark > at) || (mark > self.floor && ledger.erasures.was_made_here(mark))
    }
}

impl Ledger {
    /// How many erasures there have been.
    pub(crate) async fn epoch(&self) -> Result<Epoch, Error> {
        let (_, count) = counter(self).await?;
        self.erasures.see(count.last);
        Ok(count.last)
    }

    /// Begins an erasure: from now on nothing of this session or person that is older opens, and nothing that was asked for
    /// before is written.
    pub(crate) async fn begin_erasure(&self, subject: Tag) -> Result<Epoch, Error> {
        let count = count_on(self).await?;
        self.erasures.make(count.last);
        mark(self, subject, &count).await?;
        note_shelf(self, shelf(subject), count.last).await?;
        Ok(count.last)
    }

    /// The last erasure of a session or of its person; the epoch before all others if there was none.
    pub(crate) async fn last_erasure(&self, names: &Names) -> Result<Epoch, Error> {
        let (session, person) =
            tokio::try_join!(self.last_erasure_of(names.scope), self.last_erasure_of(names.person))?;
        Ok(session.max(person))
    }

    /// The last erasure of a session, a person or a token; the epoch before all others if there was none.
    pub(crate) async fn last_erasure_of(&self, tag: Tag) -> Result<Epoch, Error> {
        // One that does not open is refused: without it nobody knows what was erased.
        let marks = look(self, shelf(tag)).await?.1.ok_or(Tampering::KeyRefused)?;
        Ok(marks.iter().find(|(marked, _)| *marked == tag).map_or(Epoch::default(), |(_, epoch)| *epoch))
    }

    /// Every mark, for whoever goes through everything, and the rows that are older than they were.
    pub(crate) async fn all_erasures(&self) -> Result<(Marked, Vec<String>), Error> {
        let (mut all, mut behind) = (HashMap::new(), Vec::new());
        let (there, count) = counter(self).await?;
        for shelf in 0..SHELVES {
            let marks = look(self, shelf).await?.1.ok_or(Tampering::KeyRefused)?;
            if count.misses(shelf, &marks) || marks.iter().any(|(marked, _)| *marked == LOST) {
                behind.push(shelf_name(shelf));
            }
            all.extend(marks);
        }
        if there.is_none() && !all.is_empty() {
            behind.push(COUNTER.to_owned());
        }
        Ok((Marked(all), behind))
    }
}

/// All marks that there are.
#[derive(Debug, Default)]
pub(crate) struct Marked(HashMap<Tag, Epoch>);

impl Marked {
    /// The last erasure of a session or of its person.
    pub(crate) fn last(&self, names: &Names) -> Epoch {
        let of = |tag: Tag| self.0.get(&tag).copied().unwrap_or_default();
        of(names.scope).max(of(names.person))
    }
}

/// The rows of the keyring that all this is in, for whoever copies it.
pub(crate) fn rows() -> impl Iterator<Item = String> {
    std::iter::once(COUNTER.to_owned()).chain((0..SHELVES).map(shelf_name))
}

/// How many erasures there were, and the newest mark that each shelf has had.
#[derive(Clone, Copy, Debug)]
struct Count {
    last: Epoch,
    /// Unknown in what was written before they were counted, until the next change.
    shelves: Option<Shelves>,
}

type Shelves = [Epoch; SHELVES as usize];

impl Count {
    const NONE: Self = Self { last: Epoch(0), shelves: Some([Epoch(0); SHELVES as usize]) };

    /// Whether a shelf is older than it was.
    fn misses(&self, shelf: u8, marks: &[(Tag, Epoch)]) -> bool {
        self.shelves.is_some_and(|shelves| newest(marks) < shelves[usize::from(shelf)])
    }

    fn to_bytes(self) -> Vec<u8> {
        let shelves = self.shelves.into_iter().flatten();
        std::iter::once(self.last).chain(shelves).flat_map(|epoch| epoch.0.to_be_bytes()).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, []) = bytes.as_chunks::<8>() else { return None };
        let mut numbers = numbers.iter().map(|number| Epoch(u64::from_be_bytes(*number)));
        let last = numbers.next()?;
        let shelves: Vec<Epoch> = numbers.collect();
        let shelves = if shelves.is_empty() { None } else { Some(shelves.try_into().ok()?) };
        Some(Self { last, shelves })
    }
}

/// The counter as stored, and what it says.
async fn counter(ledger: &Ledger) -> Result<(Option<Sealed>, Count), Error> {
    let Some((_, sealed)) = ledger.keyring.store().named(COUNTER).await? else {
        return Ok((None, Count::NONE));
    };
    let opened = open(&key(ledger), &context(COUNTER), &sealed).map_err(|_| Tampering::KeyRefused)?;
    let count = Count::from_bytes(&opened.data).ok_or(Tampering::KeyRefused)?;
    Ok((Some(sealed), count))
}

/// Changes the counter as it is when nobody else does; says what it was changed to.
async fn change(ledger: &Ledger, mut to: impl FnMut(Count) -> Count) -> Result<Count, Error> {
    for _ in 0..MOST_TRIES {
        let (before, mut count) = counter(ledger).await?;
        if count.shelves.is_none() {
            count.shelves = Some(shelves(ledger).await?);
        }
        let after = to(count);
        if put(ledger, COUNTER, before.as_ref(), &after.to_bytes()).await? {
            return Ok(after);
        }
    }
    Err(Tampering::KeyRefused.into())
}

/// Takes the number of the next erasure, which nobody else gets.
async fn count_on(ledger: &Ledger) -> Result<Count, Error> {
    change(ledger, |count| Count { last: Epoch(count.last.0 + 1), ..count }).await
}

/// Notes that a shelf has a mark that is so new, after it has.
async fn note_shelf(ledger: &Ledger, shelf: u8, epoch: Epoch) -> Result<(), Error> {
    let note = |mut count: Count| {
        if let Some(shelves) = &mut count.shelves {
            let newest = &mut shelves[usize::from(shelf)];
            *newest = epoch.max(*newest);
        }
        count
    };
    change(ledger, note).await.map(drop)
}

/// Makes the counter not less than a mark that stands. A server that failed over may have lost its last number and kept the
/// mark; without this its person could never begin anew.
pub(crate) async fn catch_up(ledger: &Ledger, mark: Epoch) -> Result<(), Error> {
    if counter(ledger).await?.1.last < mark {
        change(ledger, |count| Count { last: count.last.max(mark), ..count }).await?;
    }
    Ok(())
}

async fn mark(ledger: &Ledger, subject: Tag, count: &Count) -> Result<(), Error> {
    let (shelf, epoch) = (shelf(subject), count.last);
    for _ in 0..MOST_TRIES {
        // Whoever wants to be forgotten is, whatever was done to the marks of others.
        let (before, marks) = look(ledger, shelf).await?;
        // But that these are lost is not forgotten with it.
        let lost = marks.as_ref().is_none_or(|marks| count.misses(shelf, marks));
        let mut marks = marks.unwrap_or_default();
        let known = marks.iter().find(|(marked, _)| *marked == subject).map(|(_, epoch)| *epoch);
        if known >= Some(epoch) {
            return Ok(());
        }
        marks.retain(|(marked, _)| *marked != subject);
        if lost {
            marks.push((LOST, epoch));
        }
        marks.push((subject, epoch));
        // Oldest first; with so many, whatever was asked before the oldest has long ended.
        let excess = marks.len().saturating_sub(MARKS_KEPT);
        let bytes: Vec<u8> = marks[excess..]
            .iter()
            .flat_map(|(marked, epoch)| [marked.as_bytes().as_slice(), &epoch.0.to_be_bytes()].concat())
            .collect();
        if put(ledger, &shelf_name(shelf), before.as_ref(), &bytes).await? {
            return Ok(());
        }
    }
    Err(Tampering::KeyRefused.into())
}

/// The newest mark on each shelf, as they stand.
async fn shelves(ledger: &Ledger) -> Result<Shelves, Error> {
    let mut shelves = [Epoch(0); SHELVES as usize];
    for (shelf, there) in (0..SHELVES).zip(&mut shelves) {
        *there = newest(&look(ledger, shelf).await?.1.unwrap_or_default());
    }
    Ok(shelves)
}

fn newest(marks: &[(Tag, Epoch)]) -> Epoch {
    marks.iter().map(|(_, epoch)| *epoch).max().unwrap_or_default()
}

/// Marks, each with whom it is of.
type Marks = Vec<(Tag, Epoch)>;

/// What is on a shelf, sealed, and opened if it does.
async fn look(ledger: &Ledger, shelf: u8) -> Result<(Option<Sealed>, Option<Marks>), Error> {
    let name = shelf_name(shelf);
    let Some((_, sealed)) = ledger.keyring.store().named(&name).await? else {
        return Ok((None, Some(Vec::new())));
    };
    let Ok(opened) = open(&key(ledger), &context(&name), &sealed) else { return Ok((Some(sealed), None)) };
    let marks = opened.data.chunks_exact(MARK).filter_map(|bytes| {
        let (tag, epoch) = bytes.split_first_chunk::<16>()?;
        Some((Tag::from_bytes(*tag), Epoch(u64::from_be_bytes(epoch.try_into().ok()?))))
    });
    Ok((Some(sealed), Some(marks.collect())))
}

async fn put(ledger: &Ledger, name: &str, before: Option<&Sealed>, plain: &[u8]) -> Result<bool, Error> {
    let sealed = seal(&key(ledger), Suite::ChaCha20Poly1305, &context(name), 1, plain);
    let (keys, root) = (ledger.keyring.store(), ledger.keyring.root());
    Ok(keys.put_named(name, before, root, &sealed).await?)
}

fn shelf(tag: Tag) -> u8 {
    tag.as_bytes()[0] % SHELVES
}

fn shelf_name(shelf: u8) -> String {
    format!("erased.{shelf:02x}")
}

/// Of the audit key, which survives a rotation of the root.
fn key(ledger: &Ledger) -> Key {
    ledger.keyring.audit_key().derive("erasures")
}

fn context(name: &str) -> Context<'_> {
    Context { purpose: "erasures", owner: "", container: "", object: name, field: "" }
}

const COUNTER: &str = "erasures";
/// Nobody's tag: in the place of marks that somebody took away.
const LOST: Tag = Tag::from_bytes([0; 16]);
const SHELVES: u8 = 64;
/// Marks on a shelf, the newest: a quarter of a million in all.
const MARKS_KEPT: usize = 4096;
/// A tag and a number.
const MARK: usize = 24;
/// What this process erased longer ago no request of it can have waited through.
const MADE_KEPT: usize = 1024;
/// How often others may be faster. A row that is never as it was read is not one that the keyring wrote.
const MOST_TRIES: usize = 1000;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use confidant_seal::{Scope, TenantId};

    use super::*;
    use crate::audience::Audience;
    use crate::clock::Millis;
    use crate::engine::{Engine, Parts};
    use crate::ledger::audit::Actor;
    use crate::ledger::entry::Entry;
    use crate::ledger::keyring::StaticKeys;
    use crate::ledger::log::Log;
    use crate::ledger::session::Session;
    use crate::ledger::storage::Storage;
    use crate::store::Append;
    use crate::turn::TurnRequest;
    use confidant_model::Extractive;

    fn keys() -> Arc<StaticKeys> {
        Arc::new(StaticKeys::from_base64("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").expect("32 bytes"))
    }

    /// A session as a process writes it that has not seen an erasure, and ends before it looks again.
    async fn write_blindly(session: &Session, born: Epoch) {
        let Session { inner, scope, names, name, .. } = session;
        let key = inner.ledger.keyring.data_key_or_new(scope, names, None, born).await.expect("a key").key;
        let entry = Entry::Accepted {
            request_id: "r1".to_owned(),
            at: Millis(1),
            audience: Audience::Private,
            content: "my name is Alice".to_owned(),
            tokens: None,
        };
        let (log, written) = Log::new(scope, key).advance(vec![entry], 100, |_| None).expect("fits");
        let append = Append {
            names: *names,
            name: name.clone(),
            kid: log.key().kid(),
            expected: 0,
            entries: vec![written.record],
            snapshot: None,
            expires_at: None,
            owner: Some(crate::store::Instance([7; 16]).into()),
            audit: Vec::new(),
        };
        inner.ledger.store.append(append).await.expect("stored");
    }

    #[tokio::test]
    async fn what_is_older_than_its_erasure_does_not_open_and_a_receipt_tells_of_it() {
        let parts = Parts::new(Storage::memory(), keys(), Arc::new(Extractive));
        let engine = Engine::open(parts).await.expect("opens");
        let tenant = TenantId::new("acme").expect("a name");
        let scope = Scope::parse(tenant.clone(), "discord_conv:alice").expect("a scope");
        let user = scope.user().clone();
        let session = engine.session(scope, Actor::cli());
        let admin = engine.dangerously_administer(Actor::cli());
        for by_session in [true, false] {
            let before = engine.epoch().await;
            let receipt = if by_session {
                session.erase().await.expect("erased")
            } else {
                admin.erase_person(&tenant, &user).await.expect("erased")
            };
            admin.verify_receipt(&receipt).await.expect("nothing is there");
            write_blindly(&session, before).await;
            // Nobody reads it, and the receipt does not say that all is gone.
            assert!(session.export().await.expect("looked at").is_none());
            assert_eq!(admin.verify_receipt(&receipt).await.expect_err("it is there").code(), "unverified");
            // Whoever looks after what was left open removes it.
            let recovered = engine.recover().await.expect("looked at");
            assert_eq!((recovered.resumed, recovered.reported), (0, 0));
            admin.verify_receipt(&receipt).await.expect("nothing is there again");
            // So does whoever begins anew, whose session is no lie.
            write_blindly(&session, before).await;
            let query = "hello".to_owned();
            let turn = session.turn(TurnRequest { query, ..TurnRequest::default() });
            turn.finish().await.expect("answered");
            let export = session.export().await.expect("looked at").expect("there");
            assert!(export.messages.iter().all(|message| !message.content.contains("Alice")));
            admin.verify_receipt(&receipt).await.expect("what is there is newer");
        }
    }

    #[tokio::test]
    async fn a_counter_from_before_shelves_were_counted_goes_on() {
        let parts = Parts::new(Storage::memory(), keys(), Arc::new(Extractive));
        let engine = Engine::open(parts).await.expect("opens");
        let ledger = &engine.inner().ledger;
        let session = |user: &str| {
            let scope = Scope::parse(TenantId::new("acme").expect("a name"), &format!("discord_conv:{user}"));
            engine.session(scope.expect("a scope"), Actor::cli())
        };
        let alice = session("alice");
        alice.erase().await.expect("erased");
        // As it was written then: the number alone.
        let (before, count) = counter(ledger).await.expect("opens");
        let short = Count { shelves: None, ..count }.to_bytes();
        assert_eq!(short.len(), 8);
        assert!(put(ledger, COUNTER, before.as_ref(), &short).await.expect("put"));
        assert_eq!(engine.epoch().await, count.last);
        assert!(ledger.all_erasures().await.expect("looked at").1.is_empty());
        session("bob").erase().await.expect("erased");
        assert!(ledger.all_erasures().await.expect("looked at").1.is_empty());
        // From here on the marks of before are missed, too.
        let shelf = shelf(alice.names.scope);
        let (marked, _) = look(ledger, shelf).await.expect("looked at");
        assert!(put(ledger, &shelf_name(shelf), marked.as_ref(), &[]).await.expect("put"));
        assert_eq!(ledger.all_erasures().await.expect("looked at").1, [shelf_name(shelf)]);
    }

    #[tokio::test]
    async fn a_counter_that_lost_its_last_number_locks_nobody_out() {
        let parts = Parts::new(Storage::memory(), keys(), Arc::new(Extractive));
        let engine = Engine::open(parts).await.expect("opens");
        let scope = Scope::parse(TenantId::new("acme").expect("a name"), "discord_conv:alice");
        let session = engine.session(scope.expect("a scope"), Actor::cli());
        session.erase().await.expect("erased");
        let lost = |count: Count| Count { last: Epoch(count.last.0 - 1), ..count };
        change(&engine.inner().ledger, lost).await.expect("put");
        let says = || TurnRequest { query: "hello".to_owned(), ..TurnRequest::default() };
        assert_eq!(session.turn(says()).finish().await.expect_err("not known yet").code(), "erased");
        session.turn(says()).finish().await.expect("answered");
    }
}
