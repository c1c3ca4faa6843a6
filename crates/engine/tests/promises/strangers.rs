//! Promises 1, 4 and 6 against somebody who can write to the stores and has no key.
//!
//! Every column of every table (every field, member and value of a Redis) is changed, emptied, exchanged with another row's,
//! taken away, given twice, and put back as it was earlier. Whatever was done, the laws in [`Laws`] hold: nobody gets
//! somebody else's words; what is refused or hidden is named by the check of everything; erasing one person touches no
//! other; and what a receipt says is gone stays gone, also when it is put back.

pub(super) mod dump;
mod laws;
mod redis_dump;

use std::collections::HashMap;

use confidant_engine::clock::{Clock as _, ManualClock, SystemClock};
use confidant_engine::turn::MemoryState;
use confidant_engine::{Actor, Engine, OpenError, Parts};
use dump::{Cell, Dump, Table};
use laws::*;

use crate::rig::*;

/// What the stranger does to one table.
#[derive(Clone, Copy, Debug)]
enum Attack {
    Emptied {
        row: usize,
        column: usize,
    },
    Changed {
        row: usize,
        column: usize,
    },
    Exchanged {
        row: usize,
        with: usize,
        column: usize,
    },
    Copied {
        row: usize,
        from: usize,
        column: usize,
    },
    Removed {
        row: usize,
    },
    Doubled {
        row: usize,
        column: usize,
    },
    /// All rows as they were earlier, those that are gone by now included.
    SetBack,
    /// All rows of another one that is made alike.
    Given,
}

impl Attack {
    /// The table after it; nothing if it changes nothing.
    fn on(self, table: &Table, earlier: Option<&Table>) -> Option<Table> {
        let mut after = table.clone();
        let rows = &mut after.rows;
        match self {
            Self::Emptied { row, column } => rows[row][column] = Cell::Null,
            Self::Changed { row, column } => rows[row][column] = rows[row][column].changed(),
            Self::Exchanged { row, with, column } => {
                let cell = rows[row][column].clone();
                rows[row][column] = std::mem::replace(&mut rows[with][column], cell);
            }
            Self::Copied { row, from, column } => rows[row][column] = rows[from][column].clone(),
            Self::Removed { row } => drop(rows.remove(row)),
            Self::Doubled { row, column } => {
                let mut again = rows[row].clone();
                again[column] = again[column].changed();
                rows.push(again);
            }
            Self::SetBack => *rows = earlier?.rows.clone(),
            Self::Given => return None,
        }
        (after != *table).then_some(after)
    }
}

/// One of each kind for every column of a table, on rows that chance picks.
fn attacks(table: &Table, chance: &mut Chance) -> Vec<Attack> {
    let mut attacks = vec![Attack::SetBack];
    let many = table.rows.len();
    if many == 0 {
        return attacks;
    }
    for _ in 0..many.min(3) {
        attacks.push(Attack::Removed { row: chance.below(many) });
    }
    for column in 0..table.columns.len() {
        let (row, other) = (chance.below(many), chance.below(many));
        attacks.push(Attack::Emptied { row, column });
        attacks.push(Attack::Changed { row: other, column });
        attacks.push(Attack::Doubled { row, column });
        // With another row: whose they are is what matters.
        let (with, from) = ((row + 1) % many, (row + many - 1) % many);
        attacks.push(Attack::Exchanged { row, with, column });
        attacks.push(Attack::Copied { row, from, column });
    }
    attacks
}

/// Chance that can be repeated.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

/// Makes every attack on every table, each on a fresh copy.
async fn attack_everything(place: &Place, dump: &mut dyn Dump) {
    let laws = Laws::prepare(place, dump).await;
    let (earlier, now) = (laws.earlier.clone(), dump.read().await);
    let mut chance = Chance(7_367);
    let (mut made, mut wrong) = (0, Vec::new());
    let mut met: HashMap<String, usize> = HashMap::new();
    for (at, table) in now.iter().enumerate() {
        // Of many that are alike, such as the shards of a keyring, one is enough.
        let like = |other: &&Table| other.kind() == table.kind() && other.name != table.name;
        let times = met.entry(table.kind()).or_default();
        *times += 1;
        if *times > 1 {
            continue;
        }
        let before = earlier.iter().find(|one| one.name == table.name);
        let others = now[at..].iter().chain(&now[..at]).filter(like).take(1);
        let all = attacks(table, &mut chance).into_iter().map(|attack| (attack, attack.on(table, before)));
        let whole =
            others.map(|other| (Attack::Given, Some(Table { rows: other.rows.clone(), ..table.clone() })));
        for (attack, after) in all.chain(whole).collect::<Vec<_>>() {
            let Some(after) = after else { continue };
            // What the store itself does not take cannot be done to it.
            if !dump.write(&after).await {
                dump.restore(&now).await;
                continue;
            }
            made += 1;
            let held = match laws.hold(place).await {
                Ok(true) => laws.hold_after_putting_back(place, dump, table).await,
                Ok(false) => Ok(()),
                Err(broken) => Err(broken),
            };
            if let Err(broken) = held {
                wrong.push(format!("{} {attack:?} ({:?}): {broken}", table.name, attack.column(table)));
            }
            dump.restore(&now).await;
        }
    }
    assert!(wrong.is_empty(), "{} of {made}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(made > 60, "only {made} attacks were made");
}

impl Attack {
    fn column(self, table: &Table) -> Option<&str> {
        let (Self::Emptied { column, .. }
        | Self::Changed { column, .. }
        | Self::Exchanged { column, .. }
        | Self::Copied { column, .. }
        | Self::Doubled { column, .. }) = self
        else {
            return None;
        };
        table.columns.get(column).map(String::as_str)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_4_no_column_of_the_files_can_be_used_against_anybody() {
    let place = Place::sqlite();
    let mut dump = dump::Files::new(place.path());
    attack_everything(&place, &mut dump).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_4_no_column_of_a_postgresql_can_be_used_against_anybody() {
    let Some(place) = Place::postgres_at("CONFIDANT_TEST_POSTGRES") else { return };
    let Some(url) = server("CONFIDANT_TEST_POSTGRES_SUPERUSER") else { return };
    let schema = place.as_postgres().unwrap().schema.clone();
    let mut dump = dump::Schema::new(&url, &schema).await;
    attack_everything(&place, &mut dump).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_4_no_key_of_a_redis_can_be_used_against_anybody() {
    let Some(place) = Place::redis_at("CONFIDANT_TEST_REDIS") else { return };
    let Some(url) = server("CONFIDANT_TEST_REDIS") else { return };
    let prefix = place.as_redis().unwrap().prefix.clone();
    let mut dump = redis_dump::Keys::new(&url, &prefix).await;
    attack_everything(&place, &mut dump).await;
}

/// The rows of a person are given to another, in another tenant: neither gets them, and erasing one does not touch the other's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_1_tags_of_somebody_else_give_nobody_their_words() {
    let place = Place::sqlite();
    let mut dump = dump::Files::new(place.path());
    let laws = Laws::prepare(&place, &mut dump).await;
    let engine = place.engine(&Recorder::new()).await;
    let (alice, eve) = (laws.names(&engine, &ALICE), laws.names(&engine, &EVE));
    stop(engine).await;
    let db = rusqlite::Connection::open(place.file("confidant.db")).unwrap();
    let eves = "(SELECT person_tag, tenant_tag FROM sessions WHERE scope_tag = ?1)";
    let sql = format!("UPDATE sessions SET (person_tag, tenant_tag) = {eves} WHERE scope_tag = ?2");
    for theirs in &alice {
        assert_eq!(db.execute(&sql, [&eve[0], theirs]).unwrap(), 1);
    }
    drop(db);
    let engine = place.engine(&Recorder::new()).await;
    let admin = engine.dangerously_administer(Actor::cli());
    assert!(!text(&admin.export_person(&EVE.tenant(), &EVE.user()).await.unwrap()).contains(ALICE.marker));
    assert!(text(&admin.export_person(&ALICE.tenant(), &ALICE.user()).await.unwrap()).contains(ALICE.marker));
    let listed = admin.sessions(Some(&EVE.tenant()), 100).await.unwrap();
    assert_eq!(listed.len(), EVE.sessions.len(), "a tenant's list has its own sessions");
    let found = admin.verify_everything().await.unwrap();
    assert_eq!(found.refused.iter().filter(|(_, reason)| reason == "relabelled").count(), alice.len());
    admin.erase_person(&EVE.tenant(), &EVE.user()).await.unwrap();
    assert!(ALICE.reads(&engine).await.is_ok_and(|words| words), "nobody else's erasure ends what is hers");
    let receipt = admin.erase_person(&ALICE.tenant(), &ALICE.user()).await.unwrap();
    assert_eq!(receipt.sessions, ALICE.sessions.len() as u64);
    assert!(!ALICE.reads(&engine).await.unwrap_or(false));
}

/// Everything but the marks is put back after an erasure, keys and all: nobody reads it, and the check of everything names it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_6_what_was_erased_and_put_back_is_refused() {
    let place = Place::sqlite();
    let mut dump = dump::Files::new(place.path());
    let laws = Laws::prepare(&place, &mut dump).await;
    let before = dump::Dump::read(&mut dump).await;
    let engine = place.engine(&Recorder::new()).await;
    let admin = engine.dangerously_administer(Actor::cli());
    admin.erase_person(&ALICE.tenant(), &ALICE.user()).await.unwrap();
    session_of(&engine, &BOB, BOB.sessions[0]).erase().await.unwrap();
    stop(engine).await;
    for table in before.iter().filter(|table| !table.name.ends_with(".named")) {
        assert!(dump::Dump::write(&mut dump, table).await);
    }
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let found = engine.dangerously_administer(Actor::cli()).verify_everything().await.unwrap();
    let put_back = found.refused.iter().filter(|(_, reason)| reason == "put-back").count();
    assert_eq!(put_back, 3, "{found:?}");
    assert!(engine.authenticate(&laws.alices_token).await.unwrap().is_none());
    assert!(engine.authenticate(&laws.revoked_token).await.unwrap().is_none());
    for (whose, id) in ALICE.sessions.iter().map(|id| (&ALICE, *id)).chain([(&BOB, BOB.sessions[0])]) {
        assert!(session_of(&engine, whose, id).export().await.unwrap().is_none(), "{id}");
        // The chat begins anew, and what was put back is gone again.
        let answer = session_of(&engine, whose, id).turn(says("hello?")).finish().await.unwrap();
        assert_eq!(answer.metadata.memory, MemoryState::Kept);
        assert!(!model.take().concat().contains(whose.marker));
    }
    let found = engine.dangerously_administer(Actor::cli()).verify_everything().await.unwrap();
    assert!(!found.refused.iter().any(|(_, reason)| reason == "put-back"), "{found:?}");
}

/// Whoever takes away what says that somebody was erased, or puts it back as it was before, is noticed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_6_marks_of_erasures_that_are_gone_are_missed() {
    let place = Place::sqlite();
    let mut dump = dump::Files::new(place.path());
    Laws::prepare(&place, &mut dump).await;
    let erase = async |whose: &Person| {
        let engine = place.engine(&Recorder::new()).await;
        engine
            .dangerously_administer(Actor::cli())
            .erase_person(&whose.tenant(), &whose.user())
            .await
            .unwrap();
        stop(engine).await;
    };
    let faults = async || {
        let engine = place.engine(&Recorder::new()).await;
        let found = engine.dangerously_administer(Actor::cli()).verify_everything().await.unwrap();
        stop(engine).await;
        found.refused
    };
    erase(&ALICE).await;
    let once = std::fs::read(place.file("keyring.db")).unwrap();
    erase(&ALICE).await;
    erase(&BOB).await;
    assert_eq!(faults().await, []);
    let keyring = place.file("keyring.db");
    let change = |sql: &str| rusqlite::Connection::open(&keyring).unwrap().execute(sql, []).unwrap();
    let kept = std::fs::read(&keyring).unwrap();
    let put = |bytes: &[u8]| {
        for journal in ["keyring.db-wal", "keyring.db-shm"] {
            let _ = std::fs::remove_file(place.file(journal));
        }
        std::fs::write(&keyring, bytes).unwrap();
    };
    for missing in ["LIKE 'erased.%'", "= 'erasures'"] {
        assert!(change(&format!("DELETE FROM named WHERE name {missing}")) > 0);
        let found = faults().await;
        assert!(!found.is_empty() && found.iter().all(|(_, reason)| reason == "put-back"), "{found:?}");
        if missing.starts_with("LIKE") {
            // A later erasure on the same shelf does not cover it up.
            erase(&ALICE).await;
            erase(&BOB).await;
            assert!(faults().await.len() >= found.len().min(2), "{found:?}");
        }
        put(&kept);
    }
    // As they were after the first erasure.
    std::fs::write(place.file("once.db"), once).unwrap();
    let older = "(SELECT sealed FROM once.named AS o WHERE o.name = named.name)";
    let db = rusqlite::Connection::open(&keyring).unwrap();
    db.execute("ATTACH ?1 AS once", [place.file("once.db").to_str().unwrap()]).unwrap();
    let sql = format!("UPDATE named SET sealed = {older} WHERE name LIKE 'erased.%' AND {older} IS NOT NULL");
    assert!(db.execute(&sql, []).unwrap() > 0);
    drop(db);
    assert!(!faults().await.is_empty());
}

/// With a new key in the place of one that was taken out, nothing of before would be found, nor erased.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_6_a_keyring_without_one_of_its_own_keys_is_not_made_whole() {
    for name in ["names", "audit", "tokens", "bus"] {
        let place = Place::sqlite();
        let engine = place.engine(&Recorder::new()).await;
        session(&engine, "http:r:main:alice").turn(says("hello")).finish().await.unwrap();
        stop(engine).await;
        let keyring = rusqlite::Connection::open(place.file("keyring.db")).unwrap();
        assert_eq!(keyring.execute("DELETE FROM named WHERE name = ?1", [name]).unwrap(), 1);
        drop(keyring);
        let opened = Engine::open(Parts::new(place.storage().await, keys(&[1]), Recorder::new() as _)).await;
        assert!(matches!(opened, Err(OpenError::KeyringIncomplete(missing)) if missing == name), "{name}");
    }
    // A first start that was cut off goes on.
    let place = Place::sqlite();
    stop(place.engine(&Recorder::new()).await).await;
    let keyring = rusqlite::Connection::open(place.file("keyring.db")).unwrap();
    assert!(keyring.execute("DELETE FROM named WHERE name <> 'names'", []).unwrap() > 3);
    drop(keyring);
    stop(place.engine(&Recorder::new()).await).await;
}

/// A lifetime that somebody took away, beside the log and in the keyring, is over all the same; one that they set is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_4_a_lifetime_is_what_was_sealed() {
    let place = Place::sqlite();
    let clock = std::sync::Arc::new(ManualClock::new(SystemClock.now()));
    let open = async || {
        let parts = Parts::new(place.storage().await, keys(&[1]), Recorder::new() as _);
        Engine::open(Parts { clock: clock.clone(), ..parts }).await.unwrap()
    };
    let id = "http:r:main:alice";
    let engine = open().await;
    session(&engine, id).turn(says("for a day")).finish().await.unwrap();
    stop(engine).await;
    let change = |to: &str| {
        let (data, keyring) = (place.file("confidant.db"), place.file("keyring.db"));
        rusqlite::Connection::open(data).unwrap().execute(&format!("UPDATE sessions SET {to}"), []).unwrap();
        rusqlite::Connection::open(keyring)
            .unwrap()
            .execute(&format!("UPDATE session_keys SET {to}"), [])
            .unwrap();
    };
    for to in ["expires_at = NULL", "expires_at = expires_at + 86400000", "expires_at = 1"] {
        change("expires_at = expires_at");
        let kept = std::fs::read(place.file("confidant.db")).unwrap();
        let keyring = std::fs::read(place.file("keyring.db")).unwrap();
        change(to);
        let engine = open().await;
        engine.sweep().await.unwrap();
        assert_eq!(session(&engine, id).export().await.unwrap_err().code(), "lifetime-changed", "{to}");
        let found = engine.dangerously_administer(Actor::cli()).verify_everything().await.unwrap();
        assert_eq!(found.refused.len(), 1, "{to}");
        stop(engine).await;
        for (name, bytes) in [("confidant.db", &kept), ("keyring.db", &keyring)] {
            let _ = std::fs::remove_file(place.file(&format!("{name}-wal")));
            let _ = std::fs::remove_file(place.file(&format!("{name}-shm")));
            std::fs::write(place.file(name), bytes).unwrap();
        }
    }
    change("expires_at = NULL");
    clock.advance(std::time::Duration::from_secs(2 * 86_400));
    let engine = open().await;
    assert!(session(&engine, id).export().await.unwrap().is_none(), "it is over, whatever is said of it");
}
