//! Sessions to make cards of: some as people would have them, and any number made of sentences and planted secrets.

use serde_json::{Value, json};

/// The session that the seed's example card is of.
pub(crate) fn seed() -> Value {
    json!({
        "session_id": "demo-001",
        "timestamp": "2025-12-21T12:00:00Z",
        "tool_name": "bug-tracker",
        "success": false,
        "summary": "Investigated production bug in auth-service. JWT validation failed with \"Invalid token format\". \
            Decided to roll back to v2.3.1. TODO: fix JWT validation before next deploy.",
        "tags": ["production", "bug-fix"],
    })
}

/// An hour with a coding agent.
pub(crate) fn coding() -> Value {
    json!({
        "tool_name": "coder",
        "messages": [
            { "role": "system", "content": "You are a careful engineer. You must never guess." },
            { "role": "user", "content": "<command-name>/clear</command-name>" },
            { "role": "user", "content": "Can you fix the flaky test `retry_backoff` in crates/http/src/retry.rs? It fails about once in ten runs in CI, see ABC-481." },
            { "role": "assistant", "content": "I'll start by looking at the test.\n\nI need to read the file first." },
            { "role": "tool", "tool": "bash", "content": "running 1 test\ntest retry_backoff ... FAILED\n\nthread 'retry_backoff' panicked at crates/http/src/retry.rs:88:9:\nassertion failed: elapsed < Duration::from_millis(50)\nnote: run with `RUST_BACKTRACE=1`\nerror: test failed, to rerun pass `-p http --lib`" },
            { "role": "assistant", "content": "The test measures wall-clock time, e.g. `Instant::now()`, and so depends on the load of the machine. Should we mock the clock?" },
            { "role": "user", "content": "yes, but let's use tokio's paused clock instead of a mock. mail jane.roe@example.org when it is in" },
            { "role": "assistant", "content": "Switched to `tokio::time::pause()` in the test." },
            { "role": "assistant", "content": "Fixed the flaky test.\n\n## Changes\n- `crates/http/src/retry.rs` now uses `tokio::time::Instant`, so the test no longer depends on the load.\n- Added `start_paused = true` to `retry_backoff`.\n- [x] Ran the suite 200 times: **all passed**.\n\n## Next steps\n- [ ] Remove the `#[ignore]` from `retry_jitter` as well\n- Update `docs/testing.md`\n\nThat should not be a problem for Rust 1.85." },
        ],
        "todos": [
            { "content": "Reproduce the failure", "status": "completed" },
            { "content": "Backport the fix to release/0.9", "status": "pending" },
        ],
    })
}

/// A night of operations.
pub(crate) fn incident() -> Value {
    json!({
        "tool_name": "ops-agent",
        "success": true,
        "error_message": "2025-03-02T03:12:44Z ERROR connection to payments-db refused: ECONNREFUSED after 5 retries",
        "summary": "Checkout returned HTTP 500 for 41 minutes, from 03:05 to 03:46. Root cause: the PostgreSQL pool of payments-api was exhausted, \
            because a migration (v3.8.0) held a lock on `orders`. We first decided to scale payments-api to 12 pods. That did not help. \
            We then rolled back to v3.7.4 and killed the lock. The on-call engineer (<ops@example.net>) approved the rollback. \
            No need to touch the CDN. Follow up with the database team about lock timeouts. We must set `lock_timeout` in all migrations.",
        "output": "kubectl rollout undo deployment/payments-api\ndeployment.apps/payments-api rolled back\nTraceback (most recent call last):\n  File \"migrate.py\", line 40, in run\nOperationalError: canceling statement due to lock timeout",
        "tags": ["incident", "payments"],
    })
}

/// A chat in Chinese and German.
pub(crate) fn foreign() -> Value {
    json!({
        "tool_name": "chat",
        "messages": [
            { "role": "user", "content": "认证服务昨天开始登录失败，请帮我查一下原因。" },
            { "role": "assistant", "content": "原因是认证服务的令牌验证在 v2.4.0 之后拒绝了旧格式。日志里写着「令牌格式无效，请重新登录」。" },
            { "role": "user", "content": "那怎么办？" },
            { "role": "assistant", "content": "我们决定先把认证服务回滚到 v2.3.1。还需要修复令牌验证并补充测试。\n\nFür das Team in Berlin: Wir haben uns für den Rollback entschieden. Wir müssen noch die Doku anpassen." },
        ],
    })
}

/// Two people who meet again, one of them where an agent would be.
pub(crate) fn talk() -> Value {
    json!({
        "messages": [
            { "role": "user", "content": "Hey Mel! Good to see you! How have you been?" },
            { "role": "assistant", "content": "Hey Ann! Good, thanks! How about you?" },
            { "role": "user", "content": "We decided to adopt a puppy from the shelter in Porto." },
            { "role": "assistant", "content": "Wow, that's so great! My sister adopted a puppy there in March. What is the name of the puppy?" },
            { "role": "user", "content": "Biscuit. The vet says that our puppy needs 20 mg of Apoquel a day." },
            { "role": "assistant", "content": "Let's meet at the harbour on Tuesday, I'll bring the lemon cake!" },
            { "role": "user", "content": "Yes! I have to call the vet on 7 May, so Tuesday is good for me." },
            { "role": "assistant", "content": "See you on Tuesday! Take care!" },
        ],
    })
}

/// A session of sentences drawn at random, with secrets in some, and the secrets.
pub(crate) fn generated(seed: u64) -> (Value, Vec<String>) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut planted = Vec::new();
    let mut messages = Vec::new();
    for at in 0..2 + dice.below(8) {
        let role = ["user", "assistant", "tool"][if at == 0 { 0 } else { dice.below(3) }];
        let content = text(&mut dice, &mut planted);
        messages.push(json!({ "role": role, "content": content }));
    }
    let mut session = json!({ "session_id": format!("s-{seed}"), "tool_name": dice.of(&["claude-code", "codex", "bash", "bug-tracker"]), "messages": messages });
    if dice.below(2) == 0 {
        session["summary"] = Value::String(text(&mut dice, &mut planted));
    }
    if dice.below(3) == 0 {
        session["error_message"] = Value::String(sentence(&mut dice, &mut planted));
        session["success"] = Value::Bool(false);
    }
    if dice.below(3) == 0 {
        session["metadata"] = json!({ "note": sentence(&mut dice, &mut planted), "password": plant(&mut dice, &mut planted, 8).1 });
        session["todos"] = json!([sentence(&mut dice, &mut planted), { "content": sentence(&mut dice, &mut planted), "status": "pending" }]);
    }
    (session, planted)
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % most as u64).expect("below most")
    }

    fn of<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[self.below(list.len())]
    }

    fn letters(&mut self, alphabet: &str, length: usize) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        (0..length).map(|_| letters[self.below(letters.len())]).collect()
    }
}

fn text(dice: &mut Dice, planted: &mut Vec<String>) -> String {
    let mut text = String::new();
    for _ in 0..1 + dice.below(7) {
        let sentence = sentence(dice, planted);
        match dice.below(8) {
            0 => text.push_str(&format!("\n- {sentence}\n")),
            1 => text.push_str(&format!("\n- [ ] {sentence}\n")),
            2 => text.push_str(&format!("\n```\nerror: {sentence}\n```\n")),
            3 => text.push_str(&format!("\n## {sentence}\n")),
            4 => text.push_str(&format!("He wrote \"{sentence}\" again. ")),
            _ => text.push_str(&format!("{sentence}. ")),
        }
    }
    text
}

fn sentence(dice: &mut Dice, planted: &mut Vec<String>) -> String {
    let lead = dice.of(LEADS);
    let what = dice.of(THINGS);
    let tail = dice.of(TAILS);
    let plain = format!("{lead} {what} {tail}");
    if dice.below(3) > 0 {
        return plain;
    }
    let kind = dice.below(12);
    let (lead, value) = plant(dice, planted, kind);
    match dice.below(3) {
        0 => format!("{plain} {lead}{value}"),
        1 => format!("{lead}{value} {plain}"),
        _ => format!("{plain} **{lead}{value}** and more"),
    }
}

/// What leads to a secret, and the secret.
fn plant(dice: &mut Dice, planted: &mut Vec<String>, kind: usize) -> (&'static str, String) {
    const MIXED: &str = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ0123456789";
    const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    const SMALL: &str = "abcdefghijklmnopqrstuvwxyz";
    let (lead, value) = match kind {
        0 => (
            "mail ",
            format!("{}.{}@{}.com", dice.letters(SMALL, 6), dice.letters(SMALL, 7), dice.letters(SMALL, 8)),
        ),
        1 => ("key ", format!("AKIA{}", dice.letters(UPPER, 16))),
        2 => ("token ", format!("ghp_{}", dice.letters(MIXED, 36))),
        3 => (
            "at ",
            format!("postgres://{}:{}@db.internal:5432/app", dice.letters(SMALL, 6), dice.letters(MIXED, 14)),
        ),
        4 => ("call ", format!("+1 415 555 {:04}", 1000 + dice.below(9000))),
        5 => ("from ", format!("203.0.113.{}", 1 + dice.below(250))),
        6 => ("SLACK_TOKEN=", format!("xoxb-{}-{}", dice.letters("123456789", 12), dice.letters(MIXED, 24))),
        7 => (
            "jwt ",
            format!(
                "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI{}.{}",
                dice.letters(MIXED, 16),
                dice.letters(MIXED, 43)
            ),
        ),
        8 => ("password: ", format!("{}9!{}", dice.letters(MIXED, 7), dice.letters(MIXED, 5))),
        9 => ("api_key=", dice.letters(MIXED, 32)),
        10 => ("card ", "4111 1111 1111 1111".to_owned()),
        _ => ("IBAN ", "DE89 3704 0044 0532 0130 00".to_owned()),
    };
    planted.push(value.clone());
    (lead, value)
}

const LEADS: &[&str] = &[
    "Investigated",
    "Decided to roll back",
    "We need to fix",
    "TODO: rewrite",
    "Fixed",
    "Can you look at",
    "Let's use",
    "The root cause is",
    "I switched to",
    "We should document",
    "FIXME: remove",
    "Add tests for",
    "Refactored",
    "Please review",
    "The fix is to restart",
    "Why does it break in",
    "Mark as done:",
    "Grant access to",
    "Need to bill",
    "Upgraded",
    "We agreed to keep",
    "Rejected",
    "Deployed",
    "must rotate",
    "decided to mark",
    "need to chase",
    "Reverted",
];
const THINGS: &[&str] = &[
    "auth-service",
    "the JWT validation",
    "crates/http/src/retry.rs",
    "`fetch_user()`",
    "PostgreSQL 16.2",
    "the Redis cache",
    "v2.3.1",
    "Kubernetes",
    "the login page",
    "payments-api in prod",
    "**the parser**",
    "[the docs](https://docs.example.com/a/b)",
    "ABC-123",
    "Grafana",
    "the GitHub workflow",
    "Jenkins",
    "the session token",
    "Cargo.toml",
    "next.js",
    "C++ bindings",
    "springSecurityOauth2AutoconfigureVersion",
    "the API key rotation",
    "TLS certificates",
    "e.g. the U.S. shards",
    "user passwords",
    "the Victoria metrics stack",
    "Maven and Gradle",
    "the Berlin region",
    "Django admin",
    "commit 0f3a9c5b7d1e2f4a6b8c0d9e1f2a3b4c5d6e7f80",
    "the auth token refresh",
    "HTTP 500 errors",
    "the bearer of news",
];
const TAILS: &[&str] = &[
    "before the next deploy",
    "since Monday",
    "with Rust 1.85",
    "after the incident",
    "because it was slow",
    "for the mobile team",
    "in staging",
    "which returned ECONNREFUSED",
    "on branch fix/login-loop",
    "with 3.5 s latency",
    "instead of the old one",
    "as Austin asked",
    "and tell the customer",
    "at 10:30",
    "per request",
    "in release 4.2.0.1",
    "with the new secret manager",
    "again",
    "until Friday",
    "without downtime",
];
