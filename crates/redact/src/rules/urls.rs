//! Credentials in addresses and connection strings.

use std::ops::Range;

use super::value::{is_stand_in, secretness};
use super::{Family, Found, Rule, Trigger};
use crate::finding::Tier;

const fn url(
    id: &'static str,
    trigger: Trigger,
    pattern: &'static str,
    check: super::Check,
    matches: &'static [&'static str],
    misses: &'static [&'static str],
) -> Rule {
    let (tier, family) = (Tier::Noncritical, Family::Url);
    Rule { id, label: "URL_CREDENTIALS", tier, family, trigger, pattern, check, matches, misses }
}

pub(super) static RULES: &[Rule] = &[
    url(
        "url_password",
        Trigger::Anywhere(&["://"]),
        r#"://[^\s/:@"'`<>?#]{0,100}:([^\s"'`<>]{1,256})@[A-Za-z0-9\[_${<-]"#,
        password,
        &[
            "postgres://app:s3cretP4ss@db.example.org/x",
            "redis://:k3Jd9fQw7e@cache:6379",
            "https://jane:h/unter2@example.org",
            "postgres://app:secret@postgres:5432/x",
        ],
        &[
            "postgres://user:${PASSWORD}@db/x",
            "https://example.org:8080/@scope/x",
            "http://user:****@host",
            "ssh://git@github.com:22/x",
            "mysql://user:secret@host:port/database",
        ],
    ),
    url(
        "url_token",
        Trigger::Anywhere(&["://"]),
        r#"://([A-Za-z0-9_.~%-]{16,256})@[A-Za-z0-9\[]"#,
        user_token,
        &["https://0f3a9c5b7d1e2f4a6b8c0d9e1f2a3b4c@sentry.example.org/3"],
        &["https://some-long-user-name@example.org"],
    ),
    url(
        "connection_string_password",
        Trigger::Keyword(&["password=", "pwd=", "password =", "pwd ="]),
        r#"(?i)(?:password|pwd) ?= ?(?:"([^"\n]{3,128})"|'([^'\n]{3,128})'|([^\s;"'&<>,()]{3,128})(?:[;&"'\s]|$))"#,
        connection,
        &["Server=db;User Id=app;Password=weakling1;", "jdbc:x://h/db?user=a&password=Zq8vN3kL0p&ssl=true"],
        &["Server=db;Password={0};", "password=;", "postgresql:///app?user=user&password=secret"],
    ),
];

fn password(found: &Found<'_>) -> Option<Range<usize>> {
    // The password ends at the last @ before the host, which may be one of several.
    let value = found.value();
    let slash = value.iter().position(|byte| *byte == b'/');
    if let Some(slash) = slash {
        // A port and a path: //host:8080/x@y.
        let port = value[..slash].iter().all(u8::is_ascii_digit);
        if port || value[slash..].contains(&b'?') || value[slash..].contains(&b' ') {
            return None;
        }
    }
    // Who it is belongs to what it is.
    let example =
        is_stand_in(value) || (is_common(value) && is_stand_in_host(&found.text[found.secret.end + 1..]));
    (!example).then(|| found.whole.start + 3..found.secret.end)
}

/// What examples have for a host.
fn is_stand_in_host(host: &[u8]) -> bool {
    ["example", "host", "your", "server"]
        .iter()
        .any(|word| host.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes())))
}

fn user_token(found: &Found<'_>) -> Option<Range<usize>> {
    (secretness(found.value()) > 6.6 && !is_stand_in(found.value())).then(|| found.secret.clone())
}

fn connection(found: &Found<'_>) -> Option<Range<usize>> {
    let joined = matches!(found.before(2), [.., b';' | b'&' | b'?'] | [b';' | b'&', b' ']);
    let told = found.follows(
        &[
            "server=",
            "source=",
            "user id=",
            "uid=",
            "host=",
            "jdbc:",
            "database=",
            "user=",
            "dsn=",
            "username=",
            "://",
        ],
        160,
    );
    (joined && told && !is_stand_in(found.value()) && !is_common(found.value())).then(|| found.secret.clone())
}

/// What examples use for a password.
fn is_common(value: &[u8]) -> bool {
    let common = [
        &b"password"[..],
        b"pass",
        b"passwd",
        b"pwd",
        b"PASSWORD",
        b"PASS",
        b"port",
        b"secret",
        b"token",
        b"secret_here",
    ];
    common.contains(&value)
}
