//! What runs on the server: one script per write, so that all of it happens or none.
//!
//! Scripts are called by their hash and sent whole only when the server does not know them yet. Every one of them can be
//! run twice with the same outcome, so that a call whose reply was lost may be made again.

use std::sync::LazyLock;

use redis::Cmd;

/// A script and its hash.
#[derive(Debug)]
pub(super) struct Script {
    text: String,
    hash: String,
}

macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident = $($file:literal)+;)*) => {$(
        $(#[$doc])*
        pub(super) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(&[$(include_str!(concat!("scripts/", $file, ".lua"))),+]));
    )*};
}

scripts! {
    APPEND = "lane" "append";
    RECORD = "lane" "record";
    ERASE = "erase";
    CLAIM_TURN = "claim_turn";
    CLOSE_TURN = "close_turn";
    CLAIM_LANE = "claim_lane";
    ADOPT_LANE = "adopt_lane";
    INDEX = "index";
    UNINDEX = "unindex";
    PUT_CONTEXT = "lane" "context_index" "put_context";
    INDEX_CONTEXT = "context_index" "index_context";
    ERASE_CONTEXT = "erase_context";
    ADOPT_CONTEXT = "adopt_context";
    KEY_CREATE = "key_index" "key_create";
    KEY_DESTROY = "key_index" "key_destroy";
    KEY_ANCHOR = "key_index" "key_anchor";
    KEY_REWRAP = "key_index" "key_rewrap";
    KEY_COUNT = "key_count";
    SET_ROOT = "set_root";
    PUT_NAMED = "put_named";
    RAISE_LANES = "raise_lanes";
    SHELVE = "shelve";
    UNSHELVE = "unshelve";
    BUFFER_ADD = "buffer_add";
    BUFFER_READ = "buffer_read";
}

impl Script {
    fn new(parts: &[&str]) -> Self {
        let text = parts.concat();
        // Not for safety: this is how Redis names scripts.
        let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
        let hash = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { text, hash }
    }

    /// A call of it.
    pub(super) fn call(&'static self) -> Call {
        Call { script: self, keys: Vec::new(), args: Vec::new() }
    }
}

/// A script with what it is called with.
#[derive(Clone, Debug)]
pub(super) struct Call {
    script: &'static Script,
    keys: Vec<String>,
    args: Vec<Vec<u8>>,
}

impl Call {
    pub(super) fn key(mut self, key: impl Into<String>) -> Self {
        self.keys.push(key.into());
        self
    }

    pub(super) fn arg(mut self, arg: impl AsRef<[u8]>) -> Self {
        self.args.push(arg.as_ref().to_vec());
        self
    }

    pub(super) fn number(self, number: impl std::fmt::Display) -> Self {
        self.arg(number.to_string())
    }

    /// Puts an argument before all others.
    pub(super) fn begin_with(&mut self, arg: impl AsRef<[u8]>) {
        self.args.insert(0, arg.as_ref().to_vec());
    }

    /// The command; `whole` sends the text as well.
    pub(super) fn command(&self, whole: bool) -> Cmd {
        let mut cmd = redis::cmd(if whole { "EVAL" } else { "EVALSHA" });
        cmd.arg(if whole { &self.script.text } else { &self.script.hash }).arg(self.keys.len());
        for key in &self.keys {
            cmd.arg(key);
        }
        for arg in &self.args {
            cmd.arg(arg.as_slice());
        }
        cmd
    }
}
