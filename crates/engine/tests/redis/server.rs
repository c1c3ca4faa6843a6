//! A Redis server of a test's own: it can be killed, stopped in its tracks and started again with what it has on disk.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server, which ends with this.
pub(crate) struct Server {
    program: String,
    options: Vec<String>,
    pub(crate) port: u16,
    folder: tempfile::TempDir,
    process: Option<Child>,
}

impl Server {
    /// Starts one with these options, if there is a program to start.
    ///
    /// Without it nothing is tested, which is an error where all must be.
    pub(crate) fn start(options: &[&str]) -> Option<Self> {
        #[expect(clippy::disallowed_methods, reason = "a test, told by its environment what to run")]
        let (program, required) =
            (std::env::var("CONFIDANT_TEST_REDIS_SERVER"), std::env::var_os("REQUIRE_ALL_STORES"));
        let Ok(program) = program else {
            assert!(required.is_none_or(|value| value != "1"), "CONFIDANT_TEST_REDIS_SERVER is not set");
            #[expect(clippy::print_stderr, reason = "a skip is never silent")]
            {
                eprintln!(
                    "skipped: CONFIDANT_TEST_REDIS_SERVER is not set; hint: run it through tests/redis_servers.py"
                );
            }
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let mut server = Self { program, options, port: free_port(), folder, process: None };
        server.start_again();
        Some(server)
    }

    /// One that has every write on disk before it answers.
    pub(crate) fn durable() -> Option<Self> {
        Self::start(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    /// Starts it with what it has on disk.
    pub(crate) fn start_again(&mut self) {
        let child = Command::new(&self.program)
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .arg("--dir")
            .arg(self.folder.path())
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.process = Some(child);
        // One that wants a password says so, and is there.
        let is_there = |error: redis::RedisError| !error.is_io_error() && error.code() != Some("LOADING");
        self.wait_until(|server| {
            server.try_ask::<String>(&["PING"]).map_or_else(is_there, |pong| pong == "PONG")
        });
    }

    /// Ends it at once, as a loss of power would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Sends it a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Asks the server itself, past everything that is tested.
    pub(crate) fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_ask(words).unwrap()
    }

    pub(crate) fn try_ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        let client = redis::Client::open(self.url())?;
        let mut connection = client.get_connection_with_timeout(Duration::from_secs(60))?;
        let mut cmd = redis::Cmd::new();
        for word in words {
            cmd.arg(*word);
        }
        cmd.query(&mut connection)
    }

    /// Every key with its time to live in milliseconds; -1 for none.
    pub(crate) fn keys(&self) -> Vec<(String, i64)> {
        let keys: Vec<String> = self.ask(&["KEYS", "*"]);
        let lives = keys.into_iter().map(|key| {
            let left = self.ask(&["PTTL", &key]);
            (key, left)
        });
        // One that ends between the two questions is not there any more.
        lives.filter(|(_, left)| *left != -2).collect()
    }

    /// Waits until something holds.
    pub(crate) fn wait_until(&self, holds: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < Duration::from_secs(90), "it did not come about");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn free_port() -> u16 {
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if TcpStream::connect(("127.0.0.1", port)).is_err() {
            return port;
        }
    }
}
