//! The things that a session is about: files, symbols, packages, services, products, error codes, versions, tickets.
//!
//! An entity is always a run of the text as it stands, in its own case, and is known by its shape or by a list; that a
//! word opens a sentence with a capital says nothing. Ids and hashes are no entities.

use std::collections::HashMap;

use super::lines::{Form, Statement};
use super::lists;
use super::source::Source;
use super::words::{is_opaque, is_spaceless, placeholders};

/// At most `most` entities, those that matter most first.
pub(super) fn entities(said: &[Statement], most: usize) -> Vec<String> {
    let mut found: HashMap<String, Entity> = HashMap::new();
    for statement in said {
        for (kind, name) in of(statement) {
            if name.chars().count() > LONGEST || found.len() >= MOST_SEEN {
                continue;
            }
            let order = found.len();
            let entity = found.entry(name.to_lowercase()).or_insert_with(|| Entity {
                name: name.to_owned(),
                kind,
                weight: 0.0,
                order,
            });
            entity.weight += weight(statement.source);
        }
    }
    // A path makes its file's bare name superfluous.
    let tails: Vec<String> =
        found.keys().filter_map(|name| Some(name.rsplit_once('/')?.1.to_owned())).collect();
    tails.iter().for_each(|tail| _ = found.remove(tail));
    let mut ranked: Vec<Entity> = found.into_values().collect();
    ranked.sort_by(|one, other| {
        other.score().total_cmp(&one.score()).then_with(|| one.order.cmp(&other.order))
    });
    ranked.truncate(most);
    ranked.into_iter().map(|entity| entity.name).collect()
}

struct Entity {
    name: String,
    kind: Kind,
    weight: f32,
    /// How many were found before it.
    order: usize,
}

impl Entity {
    fn score(&self) -> f32 {
        let kind = match self.kind {
            Kind::Error | Kind::Ticket => 2.0,
            Kind::Service | Kind::Path => 1.7,
            Kind::Product | Kind::Version | Kind::Branch => 1.5,
            Kind::Symbol => 1.2,
        };
        kind * (1.0 + self.weight).ln()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Path,
    Symbol,
    Service,
    Product,
    Error,
    Version,
    Ticket,
    Branch,
}

fn weight(source: Source) -> f32 {
    match source {
        Source::Summary => 4.0,
        Source::Error | Source::Final | Source::Request => 2.0,
        Source::Other | Source::Answer => 1.0,
        Source::Output => 0.4,
    }
}

/// The entities of a statement, in order.
fn of(statement: &Statement) -> Vec<(Kind, &str)> {
    let text = statement.text.as_str();
    let tokens = tokens(text);
    let shouted =
        tokens.iter().filter(|(_, token)| is_upper(token)).count() * 2 > tokens.len() && tokens.len() > 2;
    let mut found = Vec::new();
    for (index, &(at, token)) in tokens.iter().enumerate() {
        let before = index.checked_sub(1).map(|index| tokens[index]);
        if let Some((from, kind)) = before.and_then(|before| pair(text, before, (at, token))) {
            // "Rust 1.85" says more than "Rust".
            if from < at
                && kind != Kind::Branch
                && found
                    .last()
                    .is_some_and(|(_, last): &(Kind, &str)| before.is_some_and(|(_, token)| *last == token))
            {
                found.pop();
            }
            found.push((kind, &text[from..at + token.len()]));
        } else if let Some((kind, name)) = single(token, shouted) {
            found.push((kind, name));
        }
    }
    if statement.form == Form::Code {
        found.retain(|(kind, _)| matches!(kind, Kind::Path | Kind::Error | Kind::Ticket));
    }
    found
}

/// Words as blanks and quotes part them, without the marks around them; placeholders are none.
fn tokens(text: &str) -> Vec<(usize, &str)> {
    let gone = placeholders(text);
    let mut found = Vec::new();
    let mut start = None;
    for (at, letter) in text.char_indices().chain([(text.len(), ' ')]) {
        let parts = letter.is_whitespace()
            || is_spaceless(letter)
            || matches!(
                letter,
                '"' | '“'
                    | '”'
                    | '«'
                    | '»'
                    | '`'
                    | ','
                    | ';'
                    | '<'
                    | '>'
                    | '|'
                    | '「'
                    | '」'
                    | '、'
                    | '。'
                    | '，'
                    | '（'
                    | '）'
                    | '：'
                    | '='
                    | '{'
                    | '}'
                    | '['
                    | ']'
                    | '\\'
                    | '%'
                    | '&'
                    | '$'
                    | '~'
                    | '^'
            );
        if !parts {
            start.get_or_insert(at);
        } else if let Some(from) = start.take() {
            found.extend(
                trimmed(text, from, at).filter(|(from, _)| !gone.iter().any(|place| place.contains(from))),
            );
        }
    }
    found
}

fn trimmed(text: &str, from: usize, to: usize) -> Option<(usize, &str)> {
    let token = &text[from..to];
    let inner = token.trim_start_matches(['(', '\'', '*', '‘', '!', '?', ':', '-']);
    let start = from + token.len() - inner.len();
    let inner = inner.trim_end_matches(['.', ':', '!', '?', '\'', '’', '*', '…', '-']);
    // A bracket that was not opened inside belongs to the sentence.
    let inner =
        if inner.ends_with(')') && !inner.contains('(') { inner.trim_end_matches([')', '.']) } else { inner };
    let inner = inner.strip_suffix("'s").or_else(|| inner.strip_suffix("’s")).unwrap_or(inner);
    (!inner.is_empty()).then_some((start, inner))
}

/// What two words are together: `HTTP 500`, `Rust 1.85`, `PR #12`, `branch main`.
fn pair(text: &str, (from, first): (usize, &str), (at, second): (usize, &str)) -> Option<(usize, Kind)> {
    if text.get(from + first.len()..at)? != " " {
        return None;
    }
    let plain = first.to_ascii_lowercase();
    let code = second.len() == 3
        && second.bytes().all(|byte| byte.is_ascii_digit())
        && second.starts_with(['4', '5']);
    if code && matches!(plain.as_str(), "http" | "status") {
        return Some((if plain == "http" { from } else { at }, Kind::Error)).filter(|(from, _)| *from < at);
    }
    let numbered = second.strip_prefix('#').is_some_and(|rest| {
        !rest.is_empty() && rest.len() <= 6 && rest.bytes().all(|byte| byte.is_ascii_digit())
    });
    if numbered && matches!(plain.as_str(), "pr" | "issue" | "mr" | "ticket" | "bug" | "request") {
        return Some((if plain == "request" { at } else { from }, Kind::Ticket));
    }
    if plain == "branch" && second.contains(['/', '-']) && second.chars().all(is_branch) && !is_opaque(second)
    {
        return Some((at, Kind::Branch));
    }
    let named = lists::PRODUCTS.has(&plain) || is_service(first);
    (named && is_version(second) && !second.starts_with('v')).then_some((from, Kind::Version))
}

fn single(token: &str, shouted: bool) -> Option<(Kind, &str)> {
    let plain = token.to_lowercase();
    if is_opaque(token) || token.contains("://") || token.contains('@') && !token.starts_with('@') {
        return None;
    }
    if is_error(token) {
        return Some((Kind::Error, token));
    }
    if token.starts_with('v') && is_version(token) {
        return Some((Kind::Version, token));
    }
    if is_ticket(token) {
        return Some((Kind::Ticket, token));
    }
    if lists::PRODUCTS.has(&plain)
        && (token.chars().any(char::is_uppercase) || !AMBIGUOUS.contains(&plain.as_str()))
    {
        return Some((Kind::Product, token));
    }
    if let Some(path) = path(token) {
        return Some((if is_branch_name(path) { Kind::Branch } else { Kind::Path }, path));
    }
    if is_service(token) {
        return Some((Kind::Service, token));
    }
    if is_symbol(token) {
        return Some((Kind::Symbol, token));
    }
    (is_acronym(token) && !shouted).then_some((Kind::Product, token))
}

/// E0308, TS2345, ECONNREFUSED, ERR_FOO, SIGSEGV, CVE-2024-1234.
fn is_error(token: &str) -> bool {
    let code = |lead: &str, least: usize, most: usize| {
        token.strip_prefix(lead).is_some_and(|rest| {
            (least..=most).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let loud = |lead: &str, least: usize| {
        token.strip_prefix(lead).is_some_and(|rest| {
            rest.len() >= least && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        })
    };
    code("E", 3, 5)
        || code("TS", 4, 5)
        || code("ORA-", 4, 5)
        || loud("ECONN", 3)
        || loud("ERR_", 3)
        || loud("SIG", 3)
        || [
            "ENOENT",
            "EACCES",
            "EPERM",
            "EPIPE",
            "ETIMEDOUT",
            "EADDRINUSE",
            "ENOSPC",
            "ENOTFOUND",
            "EEXIST",
            "EAGAIN",
            "EINVAL",
            "EMFILE",
            "ENOMEM",
            "EBUSY",
            "EHOSTUNREACH",
        ]
        .contains(&token)
        || (token.starts_with("CVE-") && token.len() <= 17)
}

/// Numbers with dots between, at most three: four are an address.
fn is_version(token: &str) -> bool {
    let numbers = token.strip_prefix('v').unwrap_or(token);
    let (numbers, rest) = numbers.find(['-', '+']).map_or((numbers, ""), |at| numbers.split_at(at));
    let parts: Vec<&str> = numbers.split('.').collect();
    let dotted = (2..=3).contains(&parts.len())
        && parts
            .iter()
            .all(|part| (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()));
    let whole = token.starts_with('v')
        && parts.len() == 1
        && numbers.len() <= 2
        && !numbers.is_empty()
        && numbers.bytes().all(|byte| byte.is_ascii_digit());
    (dotted || whole) && rest.len() <= 12
}

/// ABC-123.
fn is_ticket(token: &str) -> bool {
    token.split_once('-').is_some_and(|(lead, number)| {
        (2..=8).contains(&lead.len())
            && lead.bytes().all(|byte| byte.is_ascii_uppercase())
            && (1..=5).contains(&number.len())
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// A path or a file's name; of a path through someone's home, what is behind it.
fn path(token: &str) -> Option<&str> {
    let token = token.strip_prefix("a/").or_else(|| token.strip_prefix("b/")).unwrap_or(token);
    // main.rs:12:3
    let token = token.find(':').filter(|at| !token[*at..].starts_with("::")).map_or(token, |at| &token[..at]);
    if token.contains("::")
        || !token
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-' | b'@'))
    {
        return None;
    }
    let parts: Vec<&str> = token.split('/').collect();
    let file = parts.last().copied().unwrap_or_default();
    let named = file.rsplit_once('.').is_some_and(|(stem, ending)| {
        EXTENSIONS.contains(&ending)
            && (!stem.is_empty() || parts.len() > 1)
            && stem.bytes().all(|byte| byte != b'.' || parts.len() > 1 || stem.len() < 24)
    });
    if parts.len() == 1 {
        return (named && file.bytes().any(|byte| byte.is_ascii_alphabetic())).then_some(token);
    }
    let real = parts
        .iter()
        .filter(|part| !part.is_empty() && !matches!(**part, "." | ".."))
        .all(|part| part.bytes().any(|byte| byte.is_ascii_alphabetic()) && !is_opaque(part));
    let known = parts.iter().find(|part| !part.is_empty()).is_some_and(|first| ROOTS.contains(first));
    let rooted = token.starts_with('/') || token.starts_with("./") || token.starts_with("../");
    let many = parts.iter().filter(|part| part.len() > 1).count();
    let good = real
        && (named
            || (known && many > 1)
            || (rooted && many > 1)
            || is_branch_name(token)
            || (token.starts_with('@') && parts.len() == 2));
    let behind = match parts.as_slice() {
        ["", "home" | "Users", _, rest @ ..] => Some(rest.join("/").len()),
        _ => None,
    };
    let kept = behind.map_or(token, |length| &token[token.len() - length..]);
    (good && !kept.is_empty()).then_some(kept)
}

fn is_branch_name(token: &str) -> bool {
    let leads = ["feature/", "feat/", "fix/", "bugfix/", "hotfix/", "release/", "chore/", "refactor/"];
    leads.iter().any(|lead| token.len() > lead.len() + 2 && token.starts_with(lead))
        && !token.rsplit('.').next().is_some_and(|ending| EXTENSIONS.contains(&ending))
}

fn is_branch(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '/' | '-' | '_' | '.')
}

/// `auth-service`: small letters, dashes, and a part that services and packages are called after.
fn is_service(token: &str) -> bool {
    let parts: Vec<&str> = token.split('-').collect();
    let small = parts.iter().all(|part| {
        part.len() > 1 && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    });
    (2..=5).contains(&parts.len())
        && small
        && parts.last().is_some_and(|last| lists::SERVICE_PARTS.has(last) || lists::PRODUCTS.has(last))
        && !parts.iter().any(|part| {
            [
                "in", "of", "to", "the", "and", "by", "up", "on", "off", "out", "per", "non", "pre", "re",
                "multi", "cross",
            ]
            .contains(part)
        })
}

/// `a::b`, `foo()`, `snake_case`, `camelCase`, `PascalCase`.
fn is_symbol(token: &str) -> bool {
    let name = token.strip_suffix("()").unwrap_or(token);
    let called = name.len() < token.len();
    let fits = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'.'))
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if !fits || name.len() < 3 {
        return false;
    }
    let bytes = name.as_bytes();
    let humps =
        bytes.windows(2).filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()).count();
    let snake = name.trim_matches('_').contains('_');
    called || name.contains("::") || (snake && !name.contains('.')) || (humps > 0 && !name.contains('.'))
}

/// Two to six capitals, maybe with digits or a plural's s.
fn is_acronym(token: &str) -> bool {
    let name = token.strip_suffix('s').unwrap_or(token);
    let capitals = name.bytes().filter(u8::is_ascii_uppercase).count();
    let fits = (2..=6).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let sized = token.len() >= 4
        && token
            .split_once('-')
            .is_some_and(|(lead, rest)| is_upper(lead) && rest.bytes().all(|byte| byte.is_ascii_digit()));
    (fits && capitals >= 2 && !lists::NOT_ACRONYMS.has(&name.to_ascii_lowercase()))
        || (sized && token.len() <= 8)
}

fn is_upper(token: &str) -> bool {
    token.len() > 1 && token.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Products whose names are words: only their capitals tell.
const AMBIGUOUS: &[&str] = &[
    "swift",
    "ruby",
    "rust",
    "spring",
    "express",
    "rails",
    "matrix",
    "slack",
    "lambda",
    "spark",
    "vault",
    "consul",
    "helm",
    "cursor",
    "safari",
    "chrome",
    "windows",
    "alpine",
    "prettier",
    "jest",
    "poetry",
    "conda",
    "celery",
    "cypress",
    "sentry",
    "discord",
    "stripe",
    "flask",
    "react",
    "next",
    "python",
    "claude",
    "gemini",
    "llama",
    "mistral",
    "loki",
    "envoy",
    "bun",
    "ruff",
    "yarn",
    "rollup",
    "babel",
    "cargo",
    "bazel",
    "prisma",
    "hibernate",
    "selenium",
    "puppeteer",
    "solr",
    "snowflake",
    "jupyter",
];
const EXTENSIONS: &[&str] = &[
    "rs", "py", "js", "ts", "tsx", "jsx", "go", "java", "kt", "c", "h", "cpp", "hpp", "cc", "cs", "rb",
    "php", "swift", "scala", "sh", "bash", "toml", "yaml", "yml", "json", "jsonl", "xml", "html", "css",
    "scss", "md", "txt", "sql", "lock", "cfg", "ini", "conf", "env", "log", "csv", "proto", "tf", "vue",
    "svelte", "ex", "exs", "lua", "zig", "gradle", "ipynb", "db", "sqlite", "png", "svg", "pdf", "mjs",
    "cjs", "service",
];
const ROOTS: &[&str] = &[
    "src", "crates", "lib", "tests", "test", "docs", "app", "cmd", "pkg", "internal", "scripts", "packages",
    "etc", "var", "usr", "opt", "bin", "web",
];
const LONGEST: usize = 80;
/// More different ones are a listing.
const MOST_SEEN: usize = 20_000;

#[cfg(test)]
mod tests {
    use super::super::lines::statements;
    use super::*;

    fn of(text: &str) -> Vec<String> {
        entities(&statements(text, Source::Summary), 15)
    }

    #[test]
    fn entities_are_entities() {
        let cases: &[(&str, &[&str])] = &[
            ("Investigated a bug in auth-service. JWT broke.", &["auth-service", "JWT"]),
            ("Decided it. Need it. TODO: it. Important.", &[]),
            ("Rolled back to v2.3.1 with Rust 1.85.", &["v2.3.1", "Rust 1.85"]),
            ("See `src/main.rs:12` and Cargo.toml, main.rs", &["src/main.rs", "Cargo.toml"]),
            ("It hit E0308, HTTP 500 and ECONNREFUSED", &["E0308", "HTTP 500", "ECONNREFUSED"]),
            ("ABC-123 and PR #12 on branch fix/login-loop", &["ABC-123", "PR #12", "fix/login-loop"]),
            ("`parse_line` calls Foo::bar and fetchUser()", &["parse_line", "Foo::bar", "fetchUser()"]),
            ("Mail <REDACTED:EMAIL> or <REDACTED:API_KEY:2> about PostgreSQL.", &["PostgreSQL"]),
            ("a follow-up on and/or of 10/12/2024, well-known, n/a", &[]),
            ("jwt JWT Jwt", &["JWT"]),
            ("commit 0f3a9c5b7d1e and 29f63271-dc2f-4734-8221-5b31b5169bac at 10.0.0.1", &[]),
            ("THE BUILD IS BROKEN AGAIN", &[]),
            ("in /home/jane/work/src/lib.rs", &["work/src/lib.rs"]),
            ("认证服务 auth-service 用 JWT 验证", &["auth-service", "JWT"]),
            ("PostgreSQL, then postgresql and Redis", &["PostgreSQL", "Redis"]),
        ];
        for (text, expected) in cases {
            assert_eq!(&of(text), expected, "{text}");
        }
    }
}
