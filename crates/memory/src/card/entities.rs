//! The things that a session is about: files, symbols, packages, services, products, error codes, versions, tickets.
//!
//! An entity is always a run of the text as it stands, in its own case, and is known by its shape or by a list; that a
//! word opens a sentence with a capital says nothing. Ids and hashes are no entities. Where people talk to each other,
//! days and names are entities, too.

use std::collections::HashMap;

use super::days;
use super::lines::{Form, Statement};
use super::lists;
use super::shapes::{
    AMBIGUOUS, is_acronym, is_branch, is_branch_name, is_error, is_service, is_symbol, is_ticket, is_upper,
    is_version, path,
};
use super::source::Source;
use super::words::{is_opaque, is_spaceless, placeholders};

/// At most `most` entities, those that matter most first.
pub(super) fn entities(said: &[Statement], most: usize) -> Vec<String> {
    let mut found: HashMap<String, Entity> = HashMap::new();
    let named = names_tell(said);
    for statement in said {
        let people = if statement.source == Source::Talk { of_people(statement, named) } else { Vec::new() };
        for (kind, name) in of(statement).into_iter().chain(people) {
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
    kind: EntityKind,
    weight: f32,
    /// How many were found before it.
    order: usize,
}

impl Entity {
    fn score(&self) -> f32 {
        let kind = match self.kind {
            EntityKind::Error | EntityKind::Ticket => 2.0,
            EntityKind::Service | EntityKind::Path => 1.7,
            EntityKind::Product | EntityKind::Version | EntityKind::Branch => 1.5,
            EntityKind::Day => 1.3,
            EntityKind::Symbol => 1.2,
            EntityKind::Name => 1.0,
        };
        kind * (1.0 + self.weight).ln()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntityKind {
    Path,
    Symbol,
    Service,
    Product,
    Error,
    Version,
    Ticket,
    Branch,
    Day,
    Name,
}

fn weight(source: Source) -> f32 {
    match source {
        Source::Summary => 4.0,
        Source::Error | Source::Final | Source::Request => 2.0,
        Source::Talk => 1.5,
        Source::Other | Source::Answer => 1.0,
        Source::Output => 0.4,
    }
}

/// Whether a capital inside a sentence says that something is a name: not in German, where every noun has one.
fn names_tell(said: &[Statement]) -> bool {
    let (mut german, mut all) = (0, 0);
    for statement in said.iter().filter(|one| one.source == Source::Talk) {
        let tokens = tokens(&statement.text);
        all += tokens.len();
        german += tokens.iter().filter(|(_, token)| lists::GERMAN.has(&token.to_lowercase())).count();
    }
    german * GERMAN_WORDS <= all
}

/// Days and names in what a person says to another.
fn of_people(statement: &Statement, named: bool) -> Vec<(EntityKind, &str)> {
    let text = statement.text.as_str();
    let tokens = tokens(text);
    let days = days::days(text, &tokens).into_iter().map(|day| (EntityKind::Day, day));
    let names = if named { days::names(text, &tokens) } else { Vec::new() };
    days.chain(names.into_iter().map(|name| (EntityKind::Name, name))).collect()
}

/// The entities of a statement, in order.
fn of(statement: &Statement) -> Vec<(EntityKind, &str)> {
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
                && kind != EntityKind::Branch
                && found.last().is_some_and(|(_, last): &(EntityKind, &str)| {
                    before.is_some_and(|(_, token)| *last == token)
                })
            {
                found.pop();
            }
            found.push((kind, &text[from..at + token.len()]));
        } else if let Some((kind, name)) = single(token, shouted) {
            found.push((kind, name));
        }
    }
    if statement.form == Form::Code {
        found.retain(|(kind, _)| matches!(kind, EntityKind::Path | EntityKind::Error | EntityKind::Ticket));
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
fn pair(
    text: &str,
    (from, first): (usize, &str),
    (at, second): (usize, &str),
) -> Option<(usize, EntityKind)> {
    if text.get(from + first.len()..at)? != " " {
        return None;
    }
    let plain = first.to_ascii_lowercase();
    let code = second.len() == 3
        && second.bytes().all(|byte| byte.is_ascii_digit())
        && second.starts_with(['4', '5']);
    if code && matches!(plain.as_str(), "http" | "status") {
        return Some((if plain == "http" { from } else { at }, EntityKind::Error))
            .filter(|(from, _)| *from < at);
    }
    let numbered = second.strip_prefix('#').is_some_and(|rest| {
        !rest.is_empty() && rest.len() <= 6 && rest.bytes().all(|byte| byte.is_ascii_digit())
    });
    if numbered && matches!(plain.as_str(), "pr" | "issue" | "mr" | "ticket" | "bug" | "request") {
        return Some((if plain == "request" { at } else { from }, EntityKind::Ticket));
    }
    if plain == "branch" && second.contains(['/', '-']) && second.chars().all(is_branch) && !is_opaque(second)
    {
        return Some((at, EntityKind::Branch));
    }
    let named = lists::PRODUCTS.has(&plain) || is_service(first);
    (named && is_version(second) && !second.starts_with('v')).then_some((from, EntityKind::Version))
}

fn single(token: &str, shouted: bool) -> Option<(EntityKind, &str)> {
    let plain = token.to_lowercase();
    if is_opaque(token) || token.contains("://") || token.contains('@') && !token.starts_with('@') {
        return None;
    }
    if is_error(token) {
        return Some((EntityKind::Error, token));
    }
    if token.starts_with('v') && is_version(token) {
        return Some((EntityKind::Version, token));
    }
    if is_ticket(token) {
        return Some((EntityKind::Ticket, token));
    }
    if lists::PRODUCTS.has(&plain)
        && (token.chars().any(char::is_uppercase) || !AMBIGUOUS.contains(&plain.as_str()))
    {
        return Some((EntityKind::Product, token));
    }
    if let Some(path) = path(token) {
        return Some((if is_branch_name(path) { EntityKind::Branch } else { EntityKind::Path }, path));
    }
    if is_service(token) {
        return Some((EntityKind::Service, token));
    }
    if is_symbol(token) {
        return Some((EntityKind::Symbol, token));
    }
    (is_acronym(token) && !shouted).then_some((EntityKind::Product, token))
}

const LONGEST: usize = 80;
/// Of so many words of German, more than one is among the commonest.
const GERMAN_WORDS: usize = 8;
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
