//! What cannot work is said, with what to do, and without the password.

use confidant_engine::Storage;
use confidant_engine::storage::PostgresSettings;

use crate::rig::*;
use crate::server::*;

async fn refused(settings: &PostgresSettings) -> String {
    let error = Storage::postgres(settings).await.map(drop).unwrap_err().to_string();
    assert!(error.contains("; hint: "), "{error}");
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_addresses_and_passwords_are_named() {
    let Some(url) = server("CONFIDANT_TEST_POSTGRES") else { return };
    let at = |url: &str| postgres_settings(url);
    let wrong = refused(&at(&url.replace(":secret@", ":CANARY@"))).await;
    assert!(wrong.contains("rejected this user") && !wrong.contains("CANARY"), "{wrong}");
    let none = refused(&at(&url.replace(":secret@", "@"))).await;
    assert!(none.contains("no password was given"), "{none}");
    let missing = refused(&at(&format!("{}/nowhere", url.rsplit_once('/').unwrap().0))).await;
    assert!(missing.contains("does not exist") && missing.contains("createdb"), "{missing}");
    let gone = refused(&at("postgres://confidant:secret@127.0.0.1:1/confidant")).await;
    assert!(gone.contains("connection refused"), "{gone}");
    let odd = refused(&PostgresSettings { schema: "a; DROP".to_owned(), ..at(&url) }).await;
    assert!(odd.contains("store.schema"), "{odd}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_certificate_is_refused() {
    let Some(url) = server("CONFIDANT_TEST_POSTGRES_TLS") else { return };
    let ca = std::fs::read(server("CONFIDANT_TEST_POSTGRES_CA").unwrap()).unwrap();
    let good = PostgresSettings { ca: Some(ca.clone()), ..postgres_settings(&url) };
    Storage::postgres(&good).await.unwrap();
    // Nobody that the system trusts has signed it.
    let unknown = refused(&PostgresSettings { ca: None, ..good.clone() }).await;
    assert!(
        unknown.contains("TLS: the server's certificate is not signed by a trusted authority"),
        "{unknown}"
    );
    // Signed, but for another host.
    let elsewhere = url.replace("127.0.0.1", "db.example") + "&hostaddr=127.0.0.1";
    let elsewhere = PostgresSettings { ca: Some(ca), ..postgres_settings(&elsewhere) };
    let elsewhere = refused(&elsewhere).await;
    assert!(elsewhere.contains("TLS: the server's certificate is for another host name"), "{elsewhere}");
    let nonsense = refused(&PostgresSettings { ca: Some(b"nonsense".to_vec()), ..good }).await;
    assert!(nonsense.contains("ca_file"), "{nonsense}");
}

/// Tables that a newer program made are left alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn newer_tables_are_left_alone() {
    let Some(settings) = settings() else { return };
    stop(engine_at(&settings, &Recorder::new()).await).await;
    let client = raw(&server("CONFIDANT_TEST_POSTGRES").unwrap(), &settings.schema).await;
    client.batch_execute("INSERT INTO migrations (version) VALUES (1000)").await.unwrap();
    let newer = refused(&settings).await;
    assert!(newer.contains("newer"), "{newer}");
}

/// Processes that start at once make the tables once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_first_starts_make_one_schema() {
    let Some(settings) = settings() else { return };
    let starts: Vec<_> = (0..6)
        .map(|_| {
            let settings = settings.clone();
            tokio::spawn(async move { engine_at(&settings, &Recorder::new()).await })
        })
        .collect();
    let mut engines = Vec::new();
    for start in starts {
        engines.push(start.await.unwrap());
    }
    for (n, engine) in engines.iter().enumerate() {
        insist(engine, "http:r:main:alice", &format!("r{n}"), &format!("q{n}")).await;
    }
    assert_eq!(transcript(&engines[0], "http:r:main:alice").await, whole(6));
}
