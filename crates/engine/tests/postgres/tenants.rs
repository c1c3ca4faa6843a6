//! Row-level security: a connection that works for one tenant sees no row of another, whatever it asks.

use confidant_engine::{Actor, Scope, TenantId, UserId};
use tokio_postgres::Client;

use crate::rig::*;
use crate::server::*;

/// Tables that say nothing of anybody: which lanes, processes, roots and migrations there are.
const OF_NOBODY: [&str; 5] = ["audit_lanes", "instances", "key_roots", "lane_anchors", "migrations"];

async fn tables(client: &Client, schema: &str) -> Vec<(String, bool)> {
    let sql = "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
               WHERE nspname = $1 AND relkind = 'r' ORDER BY relname";
    let rows = client.query(sql, &[&schema]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

async fn bind(client: &Client, tenant: &str) {
    client.batch_execute(&format!("SET confidant.tenant = '{tenant}'")).await.unwrap();
}

async fn count(client: &Client, table: &str) -> i64 {
    client.query_one(&format!("SELECT count(*) FROM (SELECT * FROM {table}) t"), &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_of_one_tenant_sees_no_row_of_another() {
    let Some(settings) = settings() else { return };
    let url = server("CONFIDANT_TEST_POSTGRES").unwrap();
    let engine = engine_at(&settings, &Recorder::new()).await;
    let (acme, other) = (TenantId::new("acme").unwrap(), TenantId::new("other").unwrap());
    for (tenant, turns) in [(&acme, 2), (&other, 3)] {
        for user in ["alice", "bob"] {
            let scope = Scope::parse(tenant.clone(), &format!("http:r:main:{user}")).unwrap();
            for i in 0..turns {
                engine
                    .session(scope.clone(), Actor::cli())
                    .turn(says(&format!("q{i}")))
                    .finish()
                    .await
                    .unwrap();
            }
        }
    }
    let client = raw(&url, &settings.schema).await;
    let role = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user";
    assert!(!client.query_one(role, &[]).await.unwrap().get::<_, bool>(0), "else nothing is shown here");
    // By default a connection works for nobody and sees nothing.
    let all = tables(&client, &settings.schema).await;
    assert!(all.len() > 9, "{all:?}");
    for (table, protected) in &all {
        assert_eq!(*protected, !OF_NOBODY.contains(&table.as_str()), "{table}");
        if *protected {
            assert_eq!(count(&client, table).await, 0, "{table}");
        }
    }
    // The system sees all.
    bind(&client, "*").await;
    assert_eq!(count(&client, "sessions").await, 4);
    assert!(count(&client, "session_keys").await == 4 && count(&client, "audit_records").await >= 10);
    let rows = client
        .query("SELECT encode(tenant_tag, 'hex'), count(*) FROM session_entries GROUP BY 1 ORDER BY 2", &[])
        .await
        .unwrap();
    let tags: Vec<(String, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let [(ours, few), (theirs, many)] = tags.as_slice() else { panic!("{tags:?}") };
    assert!(few < many);
    // A tenant sees its own.
    bind(&client, ours).await;
    assert_eq!((count(&client, "sessions").await, count(&client, "session_entries").await), (2, *few));
    for table in
        ["session_keys", "named_keys", "tokens", "audit_records", "conversation_context", "concept_captures"]
    {
        assert_eq!(count(&client, table).await, 0, "{table}");
    }
    // Nor can it change or add what is another's.
    let theirs_only = format!("tenant_tag = decode('{theirs}', 'hex')");
    for change in [
        format!("DELETE FROM sessions WHERE {theirs_only}"),
        format!("UPDATE sessions SET version = 0 WHERE {theirs_only}"),
        format!("DELETE FROM session_entries WHERE {theirs_only}"),
    ] {
        assert_eq!(client.execute(&change, &[]).await.unwrap(), 0, "{change}");
    }
    let give_away = format!("UPDATE sessions SET tenant_tag = decode('{theirs}', 'hex')");
    let refused = client.execute(&give_away, &[]).await.unwrap_err();
    assert!(refused.as_db_error().unwrap().message().contains("row-level security"), "{refused}");
    // A wrong query of our own: the right session, asked for in the wrong tenant's name.
    bind(&client, "*").await;
    let ask =
        format!("SELECT count(*) FROM sessions s, LATERAL load_session(s.scope_tag, $1) WHERE {theirs_only}");
    let found = async |tenant: &str| -> i64 { client.query_one(&ask, &[&tenant]).await.unwrap().get(0) };
    assert_eq!((found(theirs).await, found(ours).await), (2, 0));
    engine.dangerously_administer(Actor::cli()).verify_everything().await.unwrap();
}

/// The table of the first systems has their columns and key, and its tenants are apart, as are those of the log beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversation_context_is_of_its_tenant() {
    let Some(settings) = settings() else { return };
    let _engine = engine_at(&settings, &Recorder::new()).await;
    let client = raw(&server("CONFIDANT_TEST_POSTGRES").unwrap(), &settings.schema).await;
    let columns = "SELECT column_name || ' ' || data_type FROM information_schema.columns
                   WHERE table_schema = $1 AND table_name = 'conversation_context' ORDER BY ordinal_position";
    let rows = client.query(columns, &[&settings.schema]).await.unwrap();
    let columns: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let key = [
        "tenant_id uuid",
        "conversation_id uuid",
        "context_json jsonb",
        "updated_at timestamp with time zone",
    ];
    assert_eq!(columns, [&key[..], &["version bigint", "kid bytea", "archived_at bigint"]].concat());
    let tenant = |n: u8| format!("{n:02x}").repeat(16);
    let insert = |table: &str, of: &str| {
        let nine = tenant(9);
        let values = match table {
            "conversation_context" => format!("'{of}', '{nine}', '{{}}', now(), 1, ''"),
            _ => format!("decode('{of}', 'hex'), decode('{nine}', 'hex'), '', '', '', 0, ''"),
        };
        format!("INSERT INTO {table} VALUES ({values})")
    };
    for table in ["conversation_context", "concept_captures"] {
        for n in [1, 2] {
            bind(&client, &tenant(n)).await;
            client.batch_execute(&insert(table, &tenant(n))).await.unwrap();
            assert_eq!(count(&client, table).await, 1);
            let twice = client.batch_execute(&insert(table, &tenant(n))).await.unwrap_err();
            assert_eq!(twice.code().unwrap().code(), "23505", "one for each conversation");
        }
        let foreign = client.batch_execute(&insert(table, &tenant(1))).await.unwrap_err();
        assert!(foreign.as_db_error().unwrap().message().contains("row-level security"), "{foreign}");
    }
}

/// A role for which row-level security does not hold is pointed out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_sees_everything_is_pointed_out() {
    let Some(settings) = settings() else { return };
    let engine = engine_at(&settings, &Recorder::new()).await;
    let (data, keys) = engine.check_storage().await.unwrap();
    assert!(data.starts_with("PostgreSQL ") && data == keys, "{data}, {keys}");
    let Some(url) = server("CONFIDANT_TEST_POSTGRES_SUPERUSER") else { return };
    let engine = engine_at(&postgres_settings(&url), &Recorder::new()).await;
    let error = engine.check_storage().await.unwrap_err().to_string();
    assert!(error.contains("row-level security") && error.contains("; hint: "), "{error}");
}

/// Lists in a tenant's name whose conditions are wrong: they show what they should not of the same tenant, and nothing of another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_with_a_wrong_condition_shows_no_other_tenants_rows() {
    let Some(settings) = settings() else { return };
    let engine = engine_at(&settings, &Recorder::new()).await;
    let (acme, alice) = (TenantId::new("acme").unwrap(), UserId::new("alice").unwrap());
    for tenant in ["acme", "other"] {
        for user in ["alice", "bob"] {
            let tenant = TenantId::new(tenant).unwrap();
            let scope = Scope::parse(tenant, &format!("http:r:main:{user}")).unwrap();
            engine.session(scope, Actor::cli()).turn(says("hello")).finish().await.unwrap();
        }
    }
    let admin = engine.dangerously_administer(Actor::cli());
    let listed = async || {
        let of_tenant = admin.sessions(Some(&acme), 10).await.unwrap().len();
        (of_tenant, admin.count_person(&acme, &alice).await.unwrap())
    };
    assert_eq!(listed().await, (2, 1));
    let client = raw(&server("CONFIDANT_TEST_POSTGRES").unwrap(), &settings.schema).await;
    let tenant = |n: u8| format!("{n:02x}").repeat(16);
    for n in [1, 2] {
        bind(&client, &tenant(n)).await;
        let values = format!("decode('{}', 'hex'), '', 'turn {n}', 'session {n}', '', 0, ''", tenant(n));
        client.batch_execute(&format!("INSERT INTO concept_captures VALUES ({values})")).await.unwrap();
    }
    for (function, condition) in [
        ("sessions_of_tenant", "s.tenant_tag = tenant"),
        ("sessions_of_person", "s.person_tag = person"),
        ("captures_of_session", "c.scope_tag = scope"),
    ] {
        let definition =
            "SELECT pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
                          WHERE nspname = $1 AND proname = $2";
        let right: String =
            client.query_one(definition, &[&settings.schema, &function]).await.unwrap().get(0);
        let wrong = right.replace(condition, "true");
        assert_ne!(wrong, right);
        client.batch_execute(&wrong).await.unwrap();
    }
    // A person's sessions are not told by a list, but by their keys.
    assert_eq!(listed().await, (2, 1));
    bind(&client, "*").await;
    let captures =
        format!("SELECT count(*) FROM captures_of_session(decode('{}', 'hex'), 'session 2')", tenant(1));
    assert_eq!(client.query_one(&captures, &[]).await.unwrap().get::<_, i64>(0), 1);
}
