//! On a Redis that processes share.

use std::fs;

use crate::home::{CONTENT, Home, KEY, OTHER_KEY, Server};

/// A folder to run in, on a namespace of its own of the tests' server; nothing if there is none.
///
/// Without it nothing is tested, which is an error where all must be.
pub(crate) fn on_redis() -> Option<Home> {
    #[expect(clippy::disallowed_methods, reason = "a test, told by its environment where servers are")]
    let (url, required) = (std::env::var("CONFIDANT_TEST_REDIS"), std::env::var_os("REQUIRE_ALL_STORES"));
    let Ok(url) = url else {
        assert!(required.is_none_or(|value| value != "1"), "CONFIDANT_TEST_REDIS is not set");
        #[expect(clippy::print_stderr, reason = "a skip is never silent")]
        {
            eprintln!(
                "skipped: CONFIDANT_TEST_REDIS is not set; hint: run it through tests/redis_servers.py"
            );
        }
        return None;
    };
    let home = Home::new();
    let prefix =
        format!("cli{}:", home.folder.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.'));
    Some(home.set("REDIS_URL", &url).set("CONFIDANT_STORE__PREFIX", &prefix))
}

#[test]
fn a_url_and_a_key_are_enough() {
    let Some(home) = on_redis() else { return };
    home.alice("hello").failed("you must provide the master key", "`confidant keys generate` makes one");
    let home = home.set("CHECKPOINT_ENCRYPTION_KEY", KEY);
    home.run(&["session", "list"])
        .failed("there is no data in Redis at 127.0.0.1", "start with `confidant serve`");
    home.alice(&format!("Hello, I'm Alice and I prefer {CONTENT}")).done();
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
    let listed = home.run(&["session", "list", "--json"]).done().json();
    assert_eq!(listed[0]["session_id"], "cli:db:main:alice");
    // Nothing of the conversation is on this machine.
    assert!(
        !home.data("confidant.db").exists()
            && !home.data("keyring.db").exists()
            && !home.data("master.key").exists()
    );
    assert!(!home.holds(CONTENT));
    let doctor = home.run(&["doctor"]);
    assert!(doctor.out.contains("databases: Redis ") && doctor.out.contains(" is sound"), "{}", doctor.out);
    assert!(doctor.out.contains("sessions: all open: 1 key and 1 log"), "{}", doctor.out);
    let erased = home.run(&["person", "erase", "alice"]).done();
    // Other machines may have files of their own.
    assert!(erased.err.contains("every other machine with its own data folder"), "{}", erased.err);
    let receipt = erased.out;
    fs::write(home.path("receipt.json"), receipt).unwrap();
    home.run(&["audit", "verify", "--receipt", "receipt.json"]).done();
    assert!(home.run(&["audit", "show", "--json"]).done().out.contains("person.erased"));
    home.run(&["session", "list"]).nothing_found();
}

/// Each gateway would have chats of its own, and a person would find theirs at one of them only.
#[test]
fn gateways_without_a_common_database_have_no_chats_and_say_so() {
    let Some(home) = on_redis() else { return };
    let home = home.set("CHECKPOINT_ENCRYPTION_KEY", KEY);
    let gateway = Server::start_as(&home, "gateway");
    assert!(gateway.said().contains("this gateway has no chats"), "{}", gateway.said());
    assert!(gateway.said().contains("set web.url to postgres://…"), "{}", gateway.said());
    assert!(!gateway.ask("POST /account/prelogin", "", r#"{"login": "ana"}"#).starts_with("HTTP/1.1 200"));
    drop(gateway);
    assert!(!home.data("chats.db").exists());
    let home = home.set("CONFIDANT_WEB__ENABLED", "true");
    home.run(&["serve", "--role", "gateway", "--listen", "127.0.0.1:0"]).failed(
        "gateways share chats in a PostgreSQL only",
        "set web.url to postgres://…, or web.enabled = false",
    );
}

#[test]
fn several_servers_share_sessions_and_follow_a_rotation() {
    let Some(home) = on_redis() else { return };
    let home = home.set("CHECKPOINT_ENCRYPTION_KEY", KEY);
    let (one, token) = (Server::start(&home), fs::read_to_string(home.data("admin.token")).unwrap());
    let two = Server::start(&home);
    // On another machine it would have accounts and chats of its own.
    let warned = "each of them has accounts and chats of its own";
    assert!(!one.said().contains(warned) && two.said().contains(warned), "{}", two.said());
    let ask = |server: &Server, query: &str| {
        let turns = "POST /api/v1/session/cli:db:main:alice/turns";
        let answer = server.ask(turns, token.trim(), &format!(r#"{{"query": "{query}"}}"#));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    };
    ask(&one, "Hello, I'm Alice");
    assert!(ask(&two, "What is my name?").contains("Alice"));
    let mut rotating = home.command(&["keys", "rotate"]);
    rotating.env("CHECKPOINT_ENCRYPTION_KEY", OTHER_KEY).env("OLD_CHECKPOINT_ENCRYPTION_KEY", KEY);
    assert!(rotating.status().unwrap().success());
    // What is warm goes on; the old key alone opens nothing more.
    assert!(ask(&two, "What is my name?").contains("Alice"));
    assert_eq!((one.stop().0, two.stop().0), (0, 0));
    home.alice("What is my name?").failed("wrong master key", "set the key");
    let home = home.set("CHECKPOINT_ENCRYPTION_KEY", OTHER_KEY);
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
    home.run(&["audit", "verify"]).done();
}

#[test]
fn keys_can_be_kept_elsewhere() {
    let Some(home) = on_redis() else { return };
    let home = home.set("CHECKPOINT_ENCRYPTION_KEY", KEY).set("CONFIDANT_KEYRING__URL", "sqlite:keys");
    home.alice("Hello, I'm Alice").done();
    assert!(home.path("keys").join("keyring.db").exists());
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
    let doctor = home.run(&["doctor"]);
    assert!(doctor.out.contains("and keyring.db are sound"), "{}", doctor.out);
    // Without them, what is in Redis is dead.
    fs::remove_dir_all(home.path("keys")).unwrap();
    home.run(&["session", "list"]).failed("the keyring is empty", "keyring");
}

#[test]
fn a_server_that_is_not_there_is_said_and_its_password_is_not() {
    let gone = format!("redis://:{CONTENT}@127.0.0.1:1");
    let home = Home::new().set("REDIS_URL", &gone).set("CHECKPOINT_ENCRYPTION_KEY", KEY);
    home.alice("hello").failed("the store cannot be reached (connection refused)", "store.url");
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, 2);
    assert!(doctor.out.contains("cannot be reached") && !doctor.out.contains(CONTENT), "{}", doctor.out);
    let home = home.set("CONFIDANT_STORE__CA_FILE", "missing.pem").set("REDIS_URL", "rediss://127.0.0.1:1");
    home.alice("hello").failed("store.ca_file missing.pem cannot be read", "check the path");
}
