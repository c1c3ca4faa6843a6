//! Contract tests: a double speaks the API as it is documented. No real Cascade takes part, so they show that we keep to
//! the contract, not that the network does.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use super::api::Events;
use super::*;
use crate::blobs::conformance::{self, sealed, unnoted};
use crate::blobs::stub::{Reply, Request, Stub};

/// The network's side.
#[derive(Debug, Default)]
struct Network {
    /// State and bytes by action.
    actions: Mutex<HashMap<String, (String, Vec<u8>)>>,
    /// So many requests to the supernode are answered with a fault first.
    faults: AtomicU32,
    /// Uploads end like this; empty means well.
    upload_ends: Mutex<String>,
    /// So often a task says that it is still at work.
    rounds: AtomicU32,
    fee: AtomicU32,
    registered: Mutex<Vec<String>>,
}

impl Network {
    fn answer(&self, request: &Request) -> Reply {
        let path: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
        match (request.method.as_str(), &path[..]) {
            ("GET", ["LumeraProtocol", "lumera", "action", "v1", rest @ ..]) => self.chain(rest),
            (_, ["api", "v1", ..]) if self.faults.load(Ordering::SeqCst) > 0 => {
                self.faults.fetch_sub(1, Ordering::SeqCst);
                Reply::new(503, "CANARY in a body")
            }
            ("POST", ["api", "v1", "actions", "cascade"]) => self.uploaded(request),
            ("GET", ["api", "v1", "actions", "cascade", "tasks", task, "status"]) => {
                let ends = self.upload_ends.lock().unwrap().clone();
                let ends = if ends.is_empty() { "sdk:completed".into() } else { ends };
                self.task(task, &ends)
            }
            ("POST", ["api", "v1", "actions", "cascade", action, "downloads"]) => {
                let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
                match self.state(action).as_str() {
                    "" => Reply::new(404, ""),
                    _ if body != json!({ "signature": format!("get.{action}") }) => Reply::new(403, "CANARY"),
                    _ => Reply { status: 202, ..Reply::json(&json!({ "task_id": format!("t-{action}") })) },
                }
            }
            ("GET", ["api", "v1", "downloads", "cascade", task, "status"]) => {
                self.task(task, "sdk:download_completed")
            }
            ("GET", ["api", "v1", "downloads", "cascade", task, "file"]) => {
                Reply::new(200, self.actions.lock().unwrap()[&task[2..]].1.clone())
            }
            other => panic!("not of the API: {other:?}"),
        }
    }

    fn chain(&self, path: &[&str]) -> Reply {
        match path {
            ["params"] => Reply::json(&json!({ "params": { "fee_per_kbyte": { "amount": "10" } } })),
            ["get_action_fee", kb] => {
                let fee = 10_000 + 10 * kb.parse::<u32>().unwrap() + self.fee.load(Ordering::SeqCst);
                Reply::json(&json!({ "amount": fee.to_string() }))
            }
            ["get_action", action] => match self.state(action).as_str() {
                "" => Reply::new(404, ""),
                state => Reply::json(&json!({ "action": { "state": format!("ACTION_STATE_{state}") } })),
            },
            other => panic!("not of the API: {other:?}"),
        }
    }

    /// Takes the form apart as a server does.
    fn uploaded(&self, request: &Request) -> Reply {
        let boundary = request.head.split_once("boundary=").unwrap().1.lines().next().unwrap();
        let edge = format!("\r\n--{boundary}");
        let body = [b"\r\n", &request.body[..]].concat();
        let mut parts = HashMap::new();
        let mut rest = &body[..];
        while let Some(at) = rest.windows(edge.len()).position(|window| window == edge.as_bytes()) {
            if let Some(split) = rest[..at].windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8(rest[..split].to_vec()).unwrap();
                let name = head.split_once("name=\"").unwrap().1.split('"').next().unwrap().to_owned();
                parts.insert(name, (head, rest[split + 4..at].to_vec()));
            }
            rest = &rest[at + edge.len()..];
        }
        assert_eq!(rest, b"--\r\n");
        let text = |name: &str| String::from_utf8(parts[name].1.clone()).unwrap();
        let (action, bytes) = (text("action_id"), parts["file"].1.clone());
        let hash = STANDARD.encode(blake3::hash(&bytes).as_bytes());
        if text("signature") != format!("put.{hash}") {
            return Reply::new(403, "CANARY");
        }
        assert!(parts["file"].0.contains(".bin\""), "{}", parts["file"].0);
        self.actions.lock().unwrap().insert(action.clone(), ("PROCESSING".into(), bytes));
        Reply { status: 202, ..Reply::json(&json!({ "task_id": format!("t-{action}") })) }
    }

    fn task(&self, task: &str, ends: &str) -> Reply {
        let mut events = String::from(": hello\n\nevent: status\ndata: {\"status\": \"sdk:started\"}\n\n");
        if self.rounds.load(Ordering::SeqCst) > 0 {
            self.rounds.fetch_sub(1, Ordering::SeqCst);
        } else {
            events += &format!("data: {{\"status\": \"{ends}\", \"data\": {{}}}}\n\n");
            let kept = if ends.ends_with("completed") { "DONE" } else { "PENDING" };
            self.actions.lock().unwrap().get_mut(&task[2..]).unwrap().0 = kept.into();
        }
        Reply { status: 200, kind: "text/event-stream", body: events.into_bytes() }
    }

    fn state(&self, action: &str) -> String {
        self.actions.lock().unwrap().get(action).map(|(state, _)| state.clone()).unwrap_or_default()
    }

    fn set_state(&self, action: &str, state: &str) {
        self.actions.lock().unwrap().get_mut(action).unwrap().0 = state.into();
    }
}

#[async_trait]
impl Registrar for Network {
    async fn register(&self, registration: &Registration<'_>) -> Result<Registered> {
        assert_eq!(registration.data_hash, STANDARD.encode(blake3::hash(registration.data).as_bytes()));
        assert_eq!(registration.size_kbs, (registration.data.len() as u64).div_ceil(1024));
        let mut registered = self.registered.lock().unwrap();
        registered.push(registration.file_name.to_owned());
        let action_id = registered.len().to_string();
        self.actions.lock().unwrap().insert(action_id.clone(), ("PENDING".into(), Vec::new()));
        Ok(Registered {
            signature: format!("put.{}", registration.data_hash),
            download_signature: format!("get.{action_id}"),
            action_id,
        })
    }
}

async fn double() -> (Stub, Arc<Network>, Cascade) {
    let network = Arc::new(Network::default());
    let answering = Arc::clone(&network);
    let stub = Stub::start(move |request| answering.answer(request)).await;
    let settings = CascadeSettings::new(&stub.url, format!("{}/", stub.url));
    let mut api = Api::open(&settings).unwrap();
    api.sleep = |_| Box::pin(tokio::task::yield_now());
    let registrar: Arc<dyn Registrar> = network.clone();
    let cascade = Cascade { api, registrar, max_fee: settings.max_fee_ulume, limit: settings.total_limit };
    (stub, network, cascade)
}

fn uploads(stub: &Stub) -> usize {
    stub.seen().iter().filter(|request| request.path == "/api/v1/actions/cascade").count()
}

#[tokio::test]
async fn contract_what_is_put_is_got() {
    conformance::what_is_put_is_got(&double().await.2).await;
}

#[tokio::test]
async fn contract_putting_twice_is_paying_once() {
    let (stub, network, cascade) = double().await;
    conformance::putting_twice_is_putting_once(&cascade).await;
    assert_eq!((network.registered.lock().unwrap().len(), uploads(&stub)), (1, 1));
}

#[tokio::test]
async fn contract_what_is_missing_is_not_found() {
    let (_stub, _network, cascade) = double().await;
    conformance::what_is_missing_is_not_found(&cascade).await;
    let action = Action { action_id: "9".into(), signature: "s".into(), download_signature: "get.9".into() };
    let note = Note { file_name: "x.bin".into(), action: Some(action) };
    let (pointer, _) = sealed("elsewhere");
    let error = cascade.get(&pointer, &note.locator().unwrap()).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
}

#[tokio::test]
async fn contract_nothing_is_removed() {
    let (_stub, _network, cascade) = double().await;
    let (pointer, bytes) = sealed("for ever");
    let locator = cascade.put(&pointer, &bytes, None, &unnoted).await.unwrap();
    assert_eq!(cascade.remove(&pointer, &locator).await.unwrap(), Removed::Permanent);
    assert_eq!(cascade.get(&pointer, &locator).await.unwrap(), bytes);
    cascade.check().await.unwrap();
}

#[tokio::test]
async fn contract_names_are_random_and_noted_before_paying() {
    let (_stub, network, cascade) = double().await;
    let (pointer, bytes) = sealed("notes");
    let notes = Mutex::new(Vec::new());
    let note = |locator: &Locator| {
        let paid = network.registered.lock().unwrap().len();
        notes.lock().unwrap().push((paid, Note::parse(locator).unwrap()));
    };
    cascade.put(&pointer, &bytes, None, &note).await.unwrap();
    let notes = notes.into_inner().unwrap();
    assert_eq!(notes.len(), 2);
    assert_eq!((notes[0].0, &notes[0].1.action), (0, &None), "the name comes before the payment");
    assert_eq!((notes[1].0, notes[1].1.action.as_ref().unwrap().action_id.as_str()), (1, "1"));
    assert_eq!(notes[0].1.file_name, notes[1].1.file_name);
    assert!(!pointer.hex().contains(&notes[0].1.file_name[..8]));

    cascade.put(&pointer, &bytes, None, &unnoted).await.unwrap();
    let names = network.registered.lock().unwrap().clone();
    assert_ne!(names[0], names[1]);
}

#[tokio::test]
async fn contract_a_crash_before_paying_keeps_the_name() {
    let (_stub, network, cascade) = double().await;
    let (pointer, bytes) = sealed("crash");
    let note = Note::fresh().unwrap();
    cascade.put(&pointer, &bytes, Some(&note.locator().unwrap()), &unnoted).await.unwrap();
    assert_eq!(*network.registered.lock().unwrap(), [note.file_name]);
}

#[tokio::test]
async fn contract_a_crash_after_paying_goes_on_with_the_action() {
    for (state, expected) in [
        // State on the chain, then: actions paid for, uploads.
        ("PENDING", (1, 2)),
        ("DONE", (1, 1)),
        ("APPROVED", (1, 1)),
        ("REJECTED", (2, 2)),
        ("FAILED", (2, 2)),
        ("EXPIRED", (2, 2)),
    ] {
        let (stub, network, cascade) = double().await;
        let (pointer, bytes) = sealed("resume");
        let first = cascade.put(&pointer, &bytes, None, &unnoted).await.unwrap();
        network.set_state("1", state);
        let second = cascade.put(&pointer, &bytes, Some(&first), &unnoted).await.unwrap();
        assert_eq!((network.registered.lock().unwrap().len(), uploads(&stub)), expected, "{state}");
        assert_eq!(cascade.get(&pointer, &second).await.unwrap(), bytes, "{state}");
    }
}

#[tokio::test]
async fn contract_faults_are_waited_out_ten_times() {
    let (_stub, network, cascade) = double().await;
    let (pointer, bytes) = sealed("faults");
    network.faults.store(9, Ordering::SeqCst);
    network.rounds.store(3, Ordering::SeqCst);
    let locator = cascade.put(&pointer, &bytes, None, &unnoted).await.unwrap();
    network.faults.store(9, Ordering::SeqCst);
    network.rounds.store(3, Ordering::SeqCst);
    assert_eq!(cascade.get(&pointer, &locator).await.unwrap(), bytes);
    network.faults.store(10, Ordering::SeqCst);
    let error = cascade.get(&pointer, &locator).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Cascade's supernode has an error or is overloaded; hint: try again later",
        "and no body is quoted"
    );
}

#[tokio::test]
async fn contract_an_upload_that_fails_is_said_and_can_be_resumed() {
    for ends in ["sdk:failed", "sdk:supernodes_unavailable"] {
        let (_stub, network, cascade) = double().await;
        let (pointer, bytes) = sealed("fails");
        *network.upload_ends.lock().unwrap() = ends.into();
        let noted = Mutex::new(Locator::default());
        let note = |locator: &Locator| noted.lock().unwrap().clone_from(locator);
        let error = cascade.put(&pointer, &bytes, None, &note).await.unwrap_err();
        assert!(error.to_string().starts_with("Cascade could not store the artifact; "), "{error}");

        network.upload_ends.lock().unwrap().clear();
        let noted = noted.into_inner().unwrap();
        let locator = cascade.put(&pointer, &bytes, Some(&noted), &unnoted).await.unwrap();
        assert_eq!(cascade.get(&pointer, &locator).await.unwrap(), bytes);
        assert_eq!(network.registered.lock().unwrap().len(), 1, "paid once");
    }
}

#[tokio::test]
async fn contract_more_than_may_be_spent_is_not_spent() {
    let (stub, network, cascade) = double().await;
    network.fee.store(1_000_000, Ordering::SeqCst);
    let (pointer, bytes) = sealed("dear");
    let error = cascade.put(&pointer, &bytes, None, &unnoted).await.unwrap_err();
    assert!(matches!(error, Error::NotAllowed { .. }), "{error:?}");
    assert!(network.registered.lock().unwrap().is_empty() && uploads(&stub) == 0);
}

#[tokio::test]
async fn contract_a_wrong_signature_is_said() {
    let (_stub, _network, cascade) = double().await;
    let (pointer, bytes) = sealed("signature");
    let locator = cascade.put(&pointer, &bytes, None, &unnoted).await.unwrap();
    let mut note = Note::parse(&locator).unwrap();
    note.action.as_mut().unwrap().download_signature = "CANARY".into();
    let error = cascade.get(&pointer, &note.locator().unwrap()).await.unwrap_err();
    assert!(error.to_string().starts_with("Cascade's supernode does not accept the signature; "), "{error}");
    assert!(!error.to_string().contains("CANARY"), "{error}");
}

#[tokio::test]
async fn a_network_that_is_down_or_slow_is_said() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut settings = CascadeSettings::new(&url, &url);
    settings.request_limit = Duration::from_millis(20);
    let open = |settings: &CascadeSettings| {
        let mut api = Api::open(settings).unwrap();
        api.sleep = |_| Box::pin(tokio::task::yield_now());
        let registrar: Arc<dyn Registrar> = Arc::new(Network::default());
        Cascade { api, registrar, max_fee: 0, limit: settings.total_limit }
    };
    let error = open(&settings).check().await.unwrap_err();
    assert!(error.to_string().starts_with("Cascade's chain did not answer in time; "), "{error}");

    settings.request_limit = Duration::from_secs(60);
    settings.total_limit = Duration::from_millis(20);
    let error = open(&settings).check().await.unwrap_err();
    assert!(error.to_string().starts_with("Cascade did not answer in time; "), "{error}");

    drop(listener);
    settings.total_limit = Duration::from_secs(60);
    let error = open(&settings).check().await.unwrap_err();
    assert!(error.to_string().starts_with("Cascade's chain cannot be reached; "), "{error}");
}

#[test]
fn notes_that_are_not_ours_are_refused() {
    let action = r#"{"action_id":"1","signature":"a+/=","download_signature":"b"}"#;
    Note::parse(&Locator(format!(r#"{{"file_name":"x.bin","action":{action}}}"#))).unwrap();
    Note::parse(&Locator(r#"{"file_name":"x.bin"}"#.into())).unwrap();
    for text in [
        "",
        "1",
        "{}",
        r#"{"file_name":"x.bin","action_id":"1"}"#,
        r#"{"file_name":"x.bin","action":{"action_id":"1"}}"#,
        r#"{"file_name":"../x"}"#,
        r#"{"file_name":"x\"y"}"#,
        r#"{"file_name":"x","action":{"action_id":"1/../2","signature":"a","download_signature":"b"}}"#,
        r#"{"file_name":"x","action":{"action_id":"1","signature":"a\r\nb","download_signature":"b"}}"#,
    ] {
        let error = Note::parse(&Locator(text.into())).unwrap_err();
        assert!(matches!(error, Error::Tampered { .. }), "{text}: {error:?}");
    }
}

#[test]
fn events_are_read_in_any_pieces() {
    for (text, expected) in [
        ("data: {\"status\":\"sdk:completed\"}\n\n", Some(Task::Done)),
        ("data:{\"status\":\r\ndata: \"sdk:failed\"}\r\n\r\n", Some(Task::Failed)),
        (
            ": note\n\ndata: {\"status\":\"sdk:started\"}\n\ndata: {\"status\":\"sdk:completed\"}",
            Some(Task::Done),
        ),
        ("{\"status\":\n\"sdk:download_completed\"}", Some(Task::Done)),
        ("[{\"status\":\"sdk:failed\"},{\"status\":\"sdk:completed\"}]", Some(Task::Done)),
        ("[{\"status\":\"sdk:completed\"},{\"status\":\"sdk:started\"}]", None),
        ("data: {\"status\":\"sdk:started\"}\n\n", None),
        ("data: nonsense\n\n\n\ndata:\n\n", None),
        ("", None),
        ("[]", None),
    ] {
        for size in 1..=text.len().max(1) {
            let mut events = Events::default();
            let found = text.as_bytes().chunks(size).find_map(|chunk| events.take(chunk));
            assert_eq!(found.or_else(|| events.end()), expected, "{text:?} by {size}");
        }
    }
}

#[cfg(unix)]
mod by_command {
    use super::*;

    async fn register(script: &str, limit: Duration) -> Result<Registered> {
        let argv = ["sh", "-c", script].map(String::from).to_vec();
        let registration =
            Registration { data_hash: "hash", file_name: "name.bin", size_kbs: 65, data: &[7; 66_000] };
        command(argv, vec!["HOME".into()], limit)?.register(&registration).await
    }

    #[tokio::test]
    async fn a_command_registers() {
        // In any order: what else is built decides whether objects keep theirs.
        let script = r#"read -r line
            for part in '"data":"BwcH' '"data_hash":"hash"' '"file_name":"name.bin"' '"size_kbs":65'; do
                case "$line" in *"$part"*) ;; *) exit 1 ;; esac
            done
            # It sees its environment, but not the keys that are in ours.
            [ -n "$PATH" ] && [ -z "$HOME" ] || exit 2
            echo '{"action_id":"5","signature":"s","download_signature":"d"}'"#;
        let registered = register(script, Duration::from_secs(60)).await.unwrap();
        let expected =
            Registered { action_id: "5".into(), signature: "s".into(), download_signature: "d".into() };
        assert_eq!(registered, expected);
    }

    #[tokio::test]
    async fn a_command_that_does_not_is_said() {
        for (script, begins) in [
            ("exit 3", "the command that registers uploads on Cascade failed with exit status 3; "),
            (
                "cat >/dev/null; echo CANARY",
                "the command that registers uploads on Cascade printed something unexpected",
            ),
            ("kill -9 $$", "the command that registers uploads on Cascade was ended by a signal; "),
        ] {
            let error = register(script, Duration::from_secs(60)).await.unwrap_err();
            assert!(
                error.to_string().starts_with(begins) && !error.to_string().contains("CANARY"),
                "{error}"
            );
        }
        let error = register("sleep 1000", Duration::from_millis(20)).await.unwrap_err();
        assert!(error.to_string().contains("did not finish in time; it may have paid"), "{error}");
        assert!(command(Vec::new(), Vec::new(), Duration::ZERO).is_err());
        let missing = command(vec!["/no/such/program".into()], Vec::new(), Duration::from_secs(60)).unwrap();
        let registration = Registration { data_hash: "", file_name: "", size_kbs: 0, data: &[] };
        let error = missing.register(&registration).await.unwrap_err();
        assert!(error.to_string().contains("cannot be started"), "{error}");
    }

    #[tokio::test]
    async fn a_command_ends_with_all_its_children_when_its_time_is_over_or_nobody_waits() {
        let folder = tempfile::tempdir().unwrap();
        for (name, limit) in [("late", Duration::from_secs(6)), ("unwanted", Duration::from_secs(600))] {
            let file = folder.path().join(name);
            let script = format!("sleep 600 & echo $! > '{}'; wait", file.display());
            let registering = tokio::spawn(async move { register(&script, limit).await });
            let child = loop {
                match std::fs::read_to_string(&file) {
                    Ok(told) if told.ends_with('\n') => break told.trim().to_owned(),
                    _ => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            };
            if name == "unwanted" {
                registering.abort();
            } else {
                let error = registering.await.unwrap().unwrap_err();
                assert!(error.to_string().contains("did not finish in time"), "{error}");
            }
            let is_there = || {
                let state = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
                !state.is_empty() && !state.contains(") Z ")
            };
            while cfg!(target_os = "linux") && is_there() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}
