//! Row-level security: statements without their `WHERE` see one account, and the owner of the tables is bound as well.

use super::*;

/// Tells a connection for whom its transaction works, and what it shows.
async fn works(client: &Client, account: &str, shown: &str) {
    let sql = "SELECT set_config('confidant.account', $1, true), set_config('confidant.shown', $2, true)";
    client.batch_execute("ROLLBACK; BEGIN").await.unwrap();
    client.query(sql, &[&account, &shown]).await.unwrap();
}

async fn count(client: &Client, sql: &str) -> i64 {
    client.query_one(&format!("SELECT count(*) FROM {sql}"), &[]).await.unwrap().get(0)
}

/// The tables whose rows name their account.
async fn owned(place: &Database) -> Vec<String> {
    let sql = "SELECT table_name::text FROM information_schema.columns
               WHERE table_schema = current_schema() AND column_name = 'account' ORDER BY 1";
    place.everything.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_statement_without_its_where_sees_one_account_only() {
    let Some(place) = place().await else { return };
    let store = &place.store;
    let (ana, _, write) = person(store, "ana").await;
    store.write(write).await.unwrap();
    add_the_rest(store, &ana, "ana").await;
    let (bea, ..) = person(store, "bea").await;
    let owner = store.pool.connect_apart().await.unwrap();
    let sql =
        "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tableowner <> current_user";
    let others: i64 = owner.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(others, 0, "this connection owns the tables");
    let tables = owned(&place).await;
    assert_eq!(tables.len(), 26, "{tables:?}");
    for table in &tables {
        // There is something to be seen, and its owner sees it.
        let theirs = format!("{table} WHERE account = '{}'", ana.id);
        assert!(count(&place.everything, &theirs).await > 0, "{table} has no row of this account");
        let is_code = matches!(table.as_str(), "codes" | "pairings");
        works(&owner, ana.id.as_str(), "").await;
        assert_eq!(count(&owner, table).await > 0, !is_code, "{table}");
        works(&owner, bea.id.as_str(), "").await;
        assert_eq!(count(&owner, &theirs).await, 0, "{table} shows another account's rows");
        let seen = format!("{table} WHERE account <> '{}'", bea.id);
        assert_eq!(count(&owner, &seen).await, 0, "{table} shows rows of others");
        works(&owner, "", "").await;
        assert_eq!(count(&owner, table).await, 0, "{table} shows rows to nobody");
    }
    for table in place.tables().await {
        let is_bound = table == "unscrubbed" || count(&owner, &table).await == 0;
        assert!(is_bound, "{table} shows rows to nobody");
    }
}

#[tokio::test]
async fn nobody_writes_to_another_account() {
    let Some(place) = place().await else { return };
    let store = &place.store;
    let ((ana, ..), (bea, ..)) = (person(store, "ana").await, person(store, "bea").await);
    let owner = store.pool.connect_apart().await.unwrap();
    let before = place.dump().await;
    works(&owner, bea.id.as_str(), "").await;
    for sql in ["UPDATE chats SET head = ''", "DELETE FROM items", "UPDATE accounts SET record = ''"] {
        owner.batch_execute(sql).await.unwrap();
    }
    owner.batch_execute("COMMIT").await.unwrap();
    let after = place.dump().await;
    for table in ["chats", "items", "accounts"] {
        let of_ana = |dump: &BTreeMap<String, Vec<String>>| -> Vec<String> {
            dump[table].iter().filter(|row| row.contains(ana.id.as_str())).cloned().collect()
        };
        assert!(!of_ana(&before).is_empty());
        assert_eq!(of_ana(&before), of_ana(&after), "{table}");
        assert_ne!(before[table], after[table], "her own rows were changed");
    }
    works(&owner, bea.id.as_str(), "").await;
    let sql = format!("INSERT INTO deleted_chats (account, chat) VALUES ('{}', 'x')", ana.id);
    let error = owner.batch_execute(&sql).await.unwrap_err();
    assert_eq!(error.code().map(tokio_postgres::error::SqlState::code), Some("42501"));
}

/// What is found before the account is known is found by what the caller shows, and nothing beside it.
#[tokio::test]
async fn what_is_shown_finds_its_own_row_only() {
    let Some(place) = place().await else { return };
    let store = &place.store;
    for name in ["ana", "bea"] {
        let (person, ..) = person(store, name).await;
        add_the_rest(store, &person, name).await;
    }
    let owner = store.pool.connect_apart().await.unwrap();
    let id = Digest::of(b"ana");
    for (table, shown) in [
        ("accounts", hex::encode(tag("ana").as_bytes())),
        ("credentials", hex::encode(tag("ana's passkey").as_bytes())),
        ("sessions", hex::encode(id.as_bytes())),
        ("codes", hex::encode(id.as_bytes())),
        ("pairings", hex::encode(&id.as_bytes()[..16])),
        ("attempts", hex::encode(tag("ana").as_bytes())),
    ] {
        assert_eq!(count(&place.everything, table).await, 2, "{table}");
        works(&owner, "", &shown).await;
        assert_eq!(count(&owner, table).await, 1, "{table}");
        for other in [
            "chats",
            "items",
            "rings",
            "devices",
            "floors",
            "feed",
            "letters",
            "marks",
            "safety",
            "snapshots",
        ] {
            assert_eq!(count(&owner, other).await, 0, "{table} opens {other}");
        }
    }
    // Shown alone changes nothing.
    works(&owner, "", &hex::encode(id.as_bytes())).await;
    assert_eq!(owner.execute("DELETE FROM sessions", &[]).await.unwrap(), 0);
    // What has not expired is not seen by whoever removes what has.
    works(&owner, "", "").await;
    let until = format!("SELECT set_config('confidant.until', '{}', true)", NOW.0);
    owner.query(&until, &[]).await.unwrap();
    for table in ["sessions", "codes", "pairings", "attempts", "letters", "marks", "safety", "snapshots"] {
        let was_then = matches!(table, "attempts" | "letters" | "marks");
        assert_eq!(count(&owner, table).await > 0, was_then, "{table}");
    }
}

#[tokio::test]
async fn a_table_without_row_level_security_is_found_by_the_check() {
    let Some(place) = place().await else { return };
    place.store.check().await.unwrap();
    place.batch("ALTER TABLE items NO FORCE ROW LEVEL SECURITY").await;
    assert!(matches!(place.store.check().await, Err(StoreError::Corrupt(_))));
}

/// A policy is a condition of its own, which must not keep the server from using an index.
#[tokio::test]
async fn every_statement_has_an_index_in_spite_of_the_policies() {
    let Some(place) = place().await else { return };
    let owner = place.store.pool.connect_apart().await.unwrap();
    works(&owner, "acct_x", "00").await;
    // Then a whole table is read only where nothing else can be done.
    owner.batch_execute("SET LOCAL enable_seqscan = off; SET LOCAL confidant.until = '1'").await.unwrap();
    let plan = async |sql: &str| -> String {
        let rows = owner.query(&format!("EXPLAIN {sql}"), &[]).await.unwrap();
        rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect()
    };
    let whole = plan("SELECT * FROM steps WHERE live = ''").await;
    assert!(whole.contains("Seq Scan"), "{whole}");
    for sql in [
        "SELECT rev FROM accounts WHERE account = 'x' FOR NO KEY UPDATE",
        "SELECT account FROM accounts WHERE login = '\\x00'",
        "SELECT account FROM credentials WHERE tag = '\\x00'",
        "SELECT account FROM sessions WHERE id = '\\x00'",
        "SELECT n FROM chats WHERE account = 'x' AND chat = 'x'",
        "SELECT n FROM chats WHERE account = 'x' ORDER BY updated_at DESC, chat DESC LIMIT 20",
        "SELECT n FROM chats WHERE account = 'x' AND (updated_at, chat) < (1, 'x') ORDER BY updated_at DESC, chat DESC LIMIT 9",
        "SELECT n FROM chats WHERE account = 'x' ORDER BY opened_at DESC, chat DESC LIMIT 1",
        "SELECT item, hash FROM items WHERE chat = (SELECT n FROM chats WHERE account = 'x' AND chat = 'x')",
        "SELECT item FROM tombstones WHERE chat = 1 AND removed_at > 1 ORDER BY item",
        "SELECT envelope FROM envelopes WHERE chat = 1 AND item = 'x'",
        "SELECT n FROM rings WHERE account = 'x' AND (container, kind, n) > ('', 0, 0) ORDER BY container, kind, n LIMIT 9",
        "SELECT seq FROM feed WHERE account = 'x' AND seq > 1 ORDER BY seq LIMIT 9",
        "DELETE FROM codes WHERE kind = 1 AND key = '\\x00'",
        "DELETE FROM codes WHERE login = '\\x00'",
        "DELETE FROM codes WHERE expires_at <= 1",
        "DELETE FROM attempts WHERE login = '\\x00'",
        "DELETE FROM attempts WHERE last <= 1",
        "DELETE FROM sessions WHERE account = 'x' AND id <> '\\x00'",
        "DELETE FROM sessions WHERE expires_at <= 1",
        "SELECT account FROM accounts WHERE frozen_until <= 1",
        "SELECT turn FROM letters WHERE account = 'x' AND (chat, turn) > ('', '') ORDER BY chat, turn",
        "SELECT turn FROM letters WHERE account = 'x' ORDER BY left_at DESC, chat DESC, turn DESC OFFSET 999",
        "DELETE FROM letters WHERE left_at <= 1",
        "SELECT turn FROM marks WHERE look_at <= 1 ORDER BY look_at LIMIT 9",
        "SELECT turn FROM marks WHERE account = 'x' ORDER BY asked_at DESC, chat DESC, turn DESC OFFSET 999",
        "DELETE FROM marks WHERE asked_at <= 1",
        "SELECT chat FROM snapshots WHERE id = '\\x00' AND expires_at > 1",
        "SELECT chat FROM snapshots WHERE account = 'x' AND expires_at > 1 ORDER BY id",
        "DELETE FROM snapshots WHERE account = 'x' AND id = '\\x00'",
        "DELETE FROM snapshots WHERE expires_at <= 1",
        "SELECT rev FROM safety WHERE account = 'x' AND chat = 'x'",
    ] {
        let plan = plan(sql).await;
        assert!(!plan.contains("Seq Scan"), "{sql}:\n{plan}");
    }
}
