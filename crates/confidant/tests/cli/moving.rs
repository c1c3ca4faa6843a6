//! From one store to another, and from the first system.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::home::{CONTENT, Home, KEY, OTHER_KEY};
use crate::redis::on_redis;

/// The tests' PostgreSQL. Without it nothing is tested, which is an error where all must be.
pub(crate) fn postgres() -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "a test, told by its environment where servers are")]
    let (url, required) = (std::env::var("CONFIDANT_TEST_POSTGRES"), std::env::var_os("REQUIRE_ALL_STORES"));
    if url.is_err() {
        assert!(required.is_none_or(|value| value != "1"), "CONFIDANT_TEST_POSTGRES is not set");
        #[expect(clippy::print_stderr, reason = "a skip is never silent")]
        {
            eprintln!(
                "skipped: CONFIDANT_TEST_POSTGRES is not set; hint: run it through tests/postgres_servers.py"
            );
        }
    }
    url.ok()
}

#[test]
fn a_conversation_moves_from_files_to_redis_to_postgres() {
    let (Some(home), Some(postgres)) = (on_redis(), postgres()) else { return };
    let redis = home.variables["REDIS_URL"].clone();
    let schema = format!(
        "cli_{}",
        home.folder.path().file_name().unwrap().to_str().unwrap().trim_start_matches(['.', '_'])
    );
    let mut home = home.set("CHECKPOINT_ENCRYPTION_KEY", KEY).set(
        "CONFIDANT_STORE__SCHEMA",
        &schema.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_"),
    );
    home.variables.remove("REDIS_URL");
    home.run(&["store", "copy", "--from", "sqlite:", "--to", &redis])
        .failed("no data in the store after --from", "address");
    home.alice(&format!("Hello, I'm Alice and I prefer {CONTENT}")).done();
    home.bob("hello").done();
    let receipt = home.run(&["session", "delete", "cli:db:main:bob"]).done().out;
    std::fs::write(home.path("receipt.json"), receipt).unwrap();
    home.run(&["store", "copy", "--from", "sqlite:", "--to", "sqlite:"])
        .failed("are the same", "another store");
    let copied = home.run(&["store", "copy", "--from", "sqlite:", "--to", &redis]).done();
    assert!(
        copied.out.starts_with("1 session and 1 key copied, 0 of them in an earlier run"),
        "{}",
        copied.out
    );
    let again = home.run(&["store", "copy", "--from", "sqlite:", "--to", &redis]).done();
    assert!(again.out.starts_with("the copy is complete"), "{}", again.out);
    let json = home.run(&["store", "copy", "--from", &redis, "--to", &postgres, "--json"]).done().json();
    assert_eq!(json["copied"]["sessions"], 1);
    // Keys under another root cannot be taken along half way.
    let home = home.set("CONFIDANT_STORE__URL", &postgres);
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
    home.run(&["audit", "verify", "--receipt", "receipt.json"]).done();
    let doctor = home.run(&["doctor"]);
    assert!(
        doctor.out.contains("databases: PostgreSQL ") && doctor.out.contains(" is sound"),
        "{}",
        doctor.out
    );
    let mut rotating = home.command(&["keys", "rotate"]);
    rotating.env("CHECKPOINT_ENCRYPTION_KEY", OTHER_KEY).env("OLD_CHECKPOINT_ENCRYPTION_KEY", KEY);
    let rotated = rotating.output().unwrap();
    let said = String::from_utf8_lossy(&rotated.stderr);
    assert!(
        rotated.status.success() && said.contains("every other machine with its own data folder"),
        "{said}"
    );
    home.alice("What is my name?").failed("wrong master key", "set the key");
    let home = home.set("CHECKPOINT_ENCRYPTION_KEY", OTHER_KEY);
    let status = home.run(&["keys", "status", "--json"]).done().json();
    assert_eq!((status["keys"].as_u64(), status["under_others"].as_u64()), (Some(1), Some(0)));
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
    home.run(&["keys", "verify"]).done();
}

/// Nobody gave a key, so it is in the folder that the data comes from, wherever that is.
#[test]
fn the_key_that_was_made_for_a_folder_goes_along() {
    let Some(home) = on_redis() else { return };
    let url = home.variables["REDIS_URL"].clone();
    let mut home = home;
    home.variables.remove("REDIS_URL");
    home.alice("Hello, I'm Alice").done();
    let (folder, elsewhere) = (home.path("confidant-data"), home.path("elsewhere"));
    std::fs::rename(&folder, &elsewhere).unwrap();
    let from = format!("sqlite:{}", elsewhere.display());
    let copied = home.run(&["store", "copy", "--from", &from, "--to", &url]).done();
    let key = elsewhere.join("master.key");
    let advice = format!("CHECKPOINT_ENCRYPTION_KEY_FILE={}", key.display());
    assert!(copied.err.contains(&advice), "{}", copied.err);
    let home = home.set("REDIS_URL", &url);
    home.alice("What is my name?").failed("you must provide the master key", "keys generate");
    std::fs::rename(&elsewhere, &folder).unwrap();
    home.alice("What is my name?")
        .failed("you must provide the master key", "CHECKPOINT_ENCRYPTION_KEY_FILE=");
    let key = folder.join("master.key");
    let home = home.set("CHECKPOINT_ENCRYPTION_KEY_FILE", key.to_str().unwrap());
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
}

#[test]
fn passwords_in_addresses_are_not_repeated() {
    let home = Home::new().set("CHECKPOINT_ENCRYPTION_KEY", KEY);
    let gone = format!("postgres://me:{CONTENT}@127.0.0.1:1/d");
    home.run(&["store", "copy", "--from", &gone, "--to", "sqlite:"]).failed("cannot be reached", "store.url");
    home.run(&["store", "copy", "--from", "memory:", "--to", "sqlite:"])
        .failed("--from: a memory:", "is kept");
    home.run(&["store", "copy", "--from", &format!("mysql://{CONTENT}"), "--to", "sqlite:"])
        .failed("--from: this is not the address of a store", "use sqlite:");
}

/// Sends one command; gives what came back.
pub(crate) fn ask(url: &str, words: &[&[u8]]) -> String {
    let at = url.trim_start_matches("redis://").split('/').next().unwrap();
    let mut stream = TcpStream::connect(at).unwrap();
    write!(stream, "*{}\r\n", words.len()).unwrap();
    for word in words {
        write!(stream, "${}\r\n", word.len()).unwrap();
        stream.write_all(word).unwrap();
        stream.write_all(b"\r\n").unwrap();
    }
    let mut reply = [0; 4096];
    let count = stream.read(&mut reply).unwrap();
    String::from_utf8_lossy(&reply[..count]).into_owned()
}

#[test]
fn conversations_of_the_first_system_are_taken_over() {
    let Some(redis) = on_redis() else { return };
    let url = redis.variables["REDIS_URL"].clone();
    // What a run of this test before has left there, without a prefix as the first system has none.
    let clean = "for _, key in ipairs(redis.call('KEYS', 'confidant:*')) do redis.call('DEL', key) end return redis.status_reply('OK')";
    assert_eq!(ask(&url, &[b"EVAL", clean.as_bytes(), b"0"]), "+OK\r\n");
    let rows: BTreeMap<String, String> =
        serde_json::from_str(include_str!("fixtures/checkpoints.json")).unwrap();
    for (id, row) in &rows {
        let key = format!("checkpoint:{id}:latest");
        let set: [&[u8]; 5] = [b"SET", key.as_bytes(), row.as_bytes(), b"EX", b"600"];
        assert_eq!(ask(&url, &set), "+OK\r\n");
    }
    // To files here: only read.
    let home = Home::new().set("CHECKPOINT_ENCRYPTION_KEY", KEY);
    let ran = home.run(&["store", "import", "--from", &url, "--json"]);
    assert_eq!(ran.code, 2, "one was changed: {}", ran.err);
    assert!(ran.err.contains("1 checkpoint not imported") && ran.err.contains("hint: "), "{}", ran.err);
    let imported: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let expected = serde_json::json!(
        {"sessions": 4, "already": 0, "empty": 1, "partly": 2, "incomplete": 0, "messages_left": 3, "refused": 1, "unknown": 1,
         "unreadable": 0, "left": [
            {"name": "checkpoint:cli*", "kind": "string", "why": "does_not_open"},
            {"name": "checkpoint:cl*", "kind": "string", "why": "not_understood"},
        ]}
    );
    assert_eq!(imported, expected);
    assert!(ran.err.contains("2 sessions had messages that are not imported"), "{}", ran.err);
    assert!(ran.err.contains("left: checkpoint:cli* (string): does not open with these keys"), "{}", ran.err);
    assert!(ran.err.contains("1 checkpoint opened but not understood"), "{}", ran.err);
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
    // As the first system's own saver wrote it: text that Python printed.
    let dave = home.run(&["session", "export", "cli:db:main:dave"]).done();
    let dave: serde_json::Value = serde_json::from_str(&dave.out).unwrap();
    let said = |message: &serde_json::Value| {
        let text = |name: &str| message[name].as_str().unwrap().to_owned();
        (text("type"), text("content"))
    };
    let said: Vec<_> = dave["messages"].as_array().unwrap().iter().map(said).collect();
    let expected = [
        ("human", "Hello, I'm Dave.\nThey call me \"Grüße\""),
        ("tool", "noon"),
        ("ai", "Hi Dave! It's noon."),
        ("human", "I live in Oslo"),
        ("ai", "Noted."),
    ];
    assert_eq!(said, expected.map(|(who, what)| (who.to_owned(), what.to_owned())));
    let again: serde_json::Value =
        serde_json::from_str(&home.run(&["store", "import", "--from", &url, "--json"]).out).unwrap();
    assert_eq!((again["sessions"].as_u64(), again["already"].as_u64()), (Some(0), Some(4)));
    let other = Home::new().set("CHECKPOINT_ENCRYPTION_KEY", OTHER_KEY);
    let none: serde_json::Value =
        serde_json::from_str(&other.run(&["store", "import", "--from", &url, "--json"]).out).unwrap();
    assert_eq!(none["refused"], 7);
    // On the same Redis under the same names: they make way.
    let mut home = Home::new().set("CHECKPOINT_ENCRYPTION_KEY", KEY).set("REDIS_URL", &url);
    home.variables.insert("CONFIDANT_STORE__PREFIX".to_owned(), String::new());
    let ran = home.run(&["store", "import", "--from", &url]);
    assert!(ran.out.starts_with("4 sessions imported"), "{} {}", ran.out, ran.err);
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
    assert_eq!(ask(&url, &[b"TYPE", b"checkpoint:cli:db:main:alice:latest"]), "+hash\r\n");
    // What a session holds now is nowhere else: erased, it is gone, and another import does not bring it back.
    assert_eq!(ask(&url, &[b"TYPE", b"legacy:checkpoint:cli:db:main:alice:latest"]), "+none\r\n");
    home.run(&["session", "delete", "cli:db:main:alice"]).done();
    let again = home.run(&["store", "import", "--from", &url]);
    assert!(again.out.starts_with("0 sessions imported"), "{} {}", again.out, again.err);
    for id in rows.keys() {
        ask(
            &url,
            &[
                b"DEL",
                format!("checkpoint:{id}:latest").as_bytes(),
                format!("legacy:checkpoint:{id}:latest").as_bytes(),
            ],
        );
    }
}
