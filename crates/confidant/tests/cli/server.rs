//! The server as a process: start, stop, and life beside commands.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::home::{CONTENT, Home, Server};

#[test]
fn a_server_starts_serves_and_stops_in_good_order() {
    let home = Home::new();
    let server = Server::start(&home);
    let token = fs::read_to_string(home.data("admin.token")).unwrap();
    assert_eq!(fs::metadata(home.data("admin.token")).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(server.ask("GET /healthz", "", "").starts_with("HTTP/1.1 200"));
    let turns = "POST /api/v1/session/cli:db:main:alice/turns";
    let body = format!(r#"{{"query": "Hello, I'm Alice and I prefer {CONTENT}"}}"#);
    let answer = server.ask(turns, token.trim(), &body);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // A command beside it sees the same data and takes the address for ours.
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
    let doctor = home.run(&["doctor"]);
    assert!(doctor.out.contains("sessions: all open: 1 key and 1 log"), "{}", doctor.out);
    let taken = server.address.clone();
    home.run(&["serve", "--listen", &taken]).failed("is in use", "server.listen");
    let (code, said) = server.stop();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("the administrator's token is in ./confidant-data/admin.token"), "{said}");
    for secret in [token.trim(), CONTENT, "alice", home.master_key().trim()] {
        assert!(!said.contains(secret), "{said}");
    }
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
}

#[test]
fn a_health_check_needs_no_other_program() {
    let home = Home::new();
    let server = Server::start(&home);
    let before = fs::read_dir(home.path("confidant-data")).unwrap().count();
    let asked = home.run(&["doctor", "--ready", &server.address]).done();
    assert_eq!(asked.out, format!("the server on {} is ready\n", server.address));
    // By its settings, where it listens on every address.
    let port = server.address.rsplit(':').next().unwrap();
    let home = home.set("CONFIDANT_SERVER__LISTEN", &format!("0.0.0.0:{port}"));
    assert_eq!(home.run(&["doctor", "--ready"]).done().out, asked.out);
    assert_eq!(fs::read_dir(home.path("confidant-data")).unwrap().count(), before);
    server.stop();
    home.run(&["doctor", "--ready"]).failed("no server answers on 127.0.0.1:", "confidant serve");
}

#[test]
fn a_running_server_follows_a_rotation() {
    let home = Home::with_alice();
    let server = Server::start(&home);
    let token = fs::read_to_string(home.data("admin.token")).unwrap();
    let ask = |user: &str, query: &str| {
        let turns = format!("POST /api/v1/session/cli:db:main:{user}/turns");
        let answer = server.ask(&turns, token.trim(), &format!(r#"{{"query": "{query}"}}"#));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    };
    ask("bob", "Hello, I'm Bob");
    home.run(&["keys", "rotate"]).done();
    assert!(ask("alice", "What is my name?").contains("Alice"));
    assert!(ask("bob", "What is my name?").contains("Bob"));
    ask("carol", "Hello, I'm Carol");
    let status = home.run(&["keys", "status", "--json"]).done().json();
    assert_eq!((&status["keys"], &status["under_others"]), (&3.into(), &0.into()));
    assert_eq!(server.stop().0, 0);
    assert!(home.run(&["keys", "verify"]).done().out.starts_with("all open: 3 keys and 3 sessions"));
}

#[test]
fn sessions_end_with_their_lifetime_while_a_server_runs() {
    let home = Home::with_alice();
    let home = home.set("CHECKPOINT_TTL", "1").set("CONFIDANT_CHECKPOINT__SWEEP_SECONDS", "1");
    home.bob("Hello, I'm Bob").done();
    let mut server = Server::start(&home);
    server.wait_until_it_says("sessions.expired=1");
    assert!(!home.run(&["session", "list"]).out.contains("bob"));
    server.stop();
}

#[test]
fn logs_can_be_json() {
    let home = Home::new().set("CONFIDANT_LOG__FORMAT", "json");
    let (_, said) = Server::start(&home).stop();
    let started = said.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    assert!(
        started.into_iter().any(|line| line["message"] == "started" && line["level"] == "INFO"),
        "{said}"
    );
}

#[test]
fn a_turn_that_a_stop_cuts_off_is_taken_up_at_the_next_start() {
    // A model that takes the question and never answers.
    let model = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let home = Home::new()
        .set("CONFIDANT_MODEL__PROVIDER", "openai")
        .set("CONFIDANT_MODEL__MODEL", "m")
        .set("CONFIDANT_MODEL__BASE_URL", &format!("http://{}/v1", model.local_addr().unwrap()))
        .set("CONFIDANT_SERVER__SHUTDOWN_GRACE_SECONDS", "1");
    let server = Server::start(&home);
    let token = fs::read_to_string(home.data("admin.token")).unwrap();
    let mut home = home;
    let (code, said) = std::thread::scope(|scope| {
        let turns = "POST /api/v1/session/cli:db:main:alice/turns";
        let body = format!(r#"{{"query": "I'm Alice and I prefer {CONTENT}"}}"#);
        let asking = server.connect(turns, token.trim(), &body);
        let asked = scope.spawn(move || model.accept().unwrap());
        let connection = asked.join().unwrap();
        let ended = server.stop();
        drop((asking, connection));
        ended
    });
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("turns.parked=1") && !said.contains(CONTENT), "{said}");
    home.variables.clear();
    let server = Server::start(&home);
    // As soon as it has been taken up; the server does that beside its work.
    let answered = (0..3000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        home.run(&["session", "show", "cli:db:main:alice"]).out.contains("2 messages")
    });
    assert!(answered);
    let (_, said) = server.stop();
    assert!(said.contains("turns.resumed=1"), "{said}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let model = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let home = Home::new()
        .set("CONFIDANT_MODEL__PROVIDER", "openai")
        .set("CONFIDANT_MODEL__MODEL", "m")
        .set("CONFIDANT_MODEL__BASE_URL", &format!("http://{}/v1", model.local_addr().unwrap()))
        .set("CONFIDANT_SERVER__SHUTDOWN_GRACE_SECONDS", "600");
    let mut server = Server::start(&home);
    let token = fs::read_to_string(home.data("admin.token")).unwrap();
    let _asking =
        server.connect("POST /api/v1/session/cli_conv:alice/turns", token.trim(), r#"{"query": "hello"}"#);
    let _connection = model.accept().unwrap();
    server.signal("TERM");
    server.wait_until_it_says("stopping");
    let (code, said) = server.stop();
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("error: stopped at once by a second signal\nhint: "), "{said}");
}
