//! Every leaf and key of a JSON value.
//!
//! Strings are looked at decoded, with the key that they stand under, since a password has nothing but its key to be
//! known by; numbers are looked at as they are written. The strings of an array are looked at once more as the lines of
//! one text, since keys come as such, and headers as name and value by turns. A string that is JSON itself is walked
//! too. An object that is a private key (JWK) is one whatever the order and the distance of its members. Paths are JSON
//! pointers of redacted keys. A value that two places take for two things, such as a number that is an id beside one word
//! and a telephone's beside another, is one thing in the whole document, the surer of the two: then the document is walked
//! a second time. Easy to get wrong: two keys may become the same placeholder, and neither may be lost.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::finding::{self, Count, Finding, Hit};
use crate::placeholders::{self, Placeholders};
use crate::rules::{self, Family, NAME, Rule};
use crate::{Redactor, keys, stream};

/// A redacted JSON value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RedactedJson {
    /// The value with placeholders.
    pub value: Value,
    /// What was found, each with its path.
    pub findings: Vec<Finding>,
    /// Whether something critical was found: then nothing of the value may be stored durably.
    pub blocked: bool,
    /// How often each rule held.
    pub report: Vec<Count>,
}

impl Redactor {
    /// Redacts every leaf and every key of a JSON value.
    #[must_use]
    pub fn redact_json(&self, value: &Value) -> RedactedJson {
        self.redact_json_telling(value, &mut |_| {})
    }

    /// The same, and shows `taken` each value that is replaced, for whoever must recognise it again without keeping it. A
    /// value may be shown more than once.
    #[must_use]
    pub fn redact_json_telling(&self, value: &Value, taken: &mut dyn FnMut(Taken<'_>)) -> RedactedJson {
        let mut walk = Walk::new(self, Kinds::default(), &mut *taken);
        let mut redacted = walk.value(value, "", None, 0);
        let Walk { mut findings, kinds, .. } = walk;
        if kinds.differ {
            let mut again = Walk::new(self, Kinds { settled: true, ..kinds }, taken);
            redacted = again.value(value, "", None, 0);
            findings = again.findings;
        }
        let (blocked, report) = (finding::blocks(&findings), finding::report(&findings));
        RedactedJson { value: redacted, findings, blocked, report }
    }
}

/// What each personal value of the document is taken for.
#[derive(Default)]
struct Kinds {
    /// By its letters and digits: the surest rule so far.
    surest: HashMap<String, &'static Rule>,
    /// Whether two places take one value for two things.
    differ: bool,
    /// Whether all is known, and goes for every place.
    settled: bool,
}

impl Kinds {
    /// The rule that a value goes by, found by this one here.
    fn of(&mut self, value: &str, rule: &'static Rule) -> &'static Rule {
        if !matches!(rule.family, Family::Personal | Family::Loose) {
            return rule;
        }
        let plain: String =
            value.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        match self.surest.entry(plain) {
            Entry::Occupied(known) if self.settled => known.get(),
            Entry::Occupied(mut known) if known.get().label != rule.label => {
                self.differ = true;
                if rule.family.sureness() > known.get().family.sureness() {
                    known.insert(rule);
                }
                rule
            }
            Entry::Occupied(_) => rule,
            Entry::Vacant(place) => place.insert(rule),
        }
    }
}

/// A value that was taken out. Nobody is to keep it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Taken<'t> {
    /// What kind of value it is.
    pub kind: TakenKind,
    /// The value itself.
    pub value: &'t str,
}

impl std::fmt::Debug for Taken<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Taken").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// What a value that was taken out is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TakenKind {
    /// The name of a person.
    Name,
    /// It says who or where somebody is, or is one of the words that are always replaced.
    Personal,
    /// It opens something, or may.
    Secret,
}

fn kind(rule: &Rule) -> TakenKind {
    match rule.family {
        _ if rule.id == NAME.id => TakenKind::Name,
        Family::Personal | Family::Loose | Family::Dictionary => TakenKind::Personal,
        _ => TakenKind::Secret,
    }
}

struct Walk<'r> {
    redactor: &'r Redactor,
    placeholders: Placeholders,
    findings: Vec<Finding>,
    kinds: Kinds,
    taken: &'r mut dyn FnMut(Taken<'_>),
}

impl<'r> Walk<'r> {
    fn new(redactor: &'r Redactor, kinds: Kinds, taken: &'r mut dyn FnMut(Taken<'_>)) -> Self {
        Self { redactor, placeholders: Placeholders::default(), findings: Vec::new(), kinds, taken }
    }

    fn value(&mut self, value: &Value, path: &str, key: Option<&str>, depth: usize) -> Value {
        match value {
            Value::Null | Value::Bool(_) => value.clone(),
            Value::Number(number) => {
                let text = number.to_string();
                let redacted = self.text(&text, Vec::new(), path, key);
                if redacted == text { value.clone() } else { Value::String(redacted) }
            }
            Value::String(text) => Value::String(self.string(text, Vec::new(), path, key, depth)),
            Value::Array(items) => Value::Array(self.array(items, path, key, depth)),
            Value::Object(members) => Value::Object(self.object(members, path, key, depth)),
        }
    }

    fn array(&mut self, items: &[Value], path: &str, key: Option<&str>, depth: usize) -> Vec<Value> {
        if is_key_in_numbers(items) {
            // One string for all of them: a number in the place of a number would say that nothing was taken out.
            let hit = Hit { start: 0, end: 1, rule: rules::PRIVATE_KEY_BODY };
            return vec![Value::String(self.replace("0", &[hit], path))];
        }
        let mut together = self.redactor.hits_together(items);
        let item = |(at, item): (usize, &Value)| {
            let path = format!("{path}/{at}");
            let Value::String(text) = item else { return self.value(item, &path, key, depth) };
            let hits = together.get_mut(at).map(std::mem::take).unwrap_or_default();
            Value::String(self.string(text, hits, &path, key, depth))
        };
        items.iter().enumerate().map(item).collect()
    }

    fn object(
        &mut self,
        members: &Map<String, Value>,
        path: &str,
        above: Option<&str>,
        depth: usize,
    ) -> Map<String, Value> {
        // {"name": "DB_PASSWORD", "value": "…"}: the key of the value is the name.
        let named = ["name", "key", "Name", "Key"].iter().find_map(|name| members.get(*name)?.as_str());
        let kind = members.get("kty").and_then(Value::as_str);
        // {"bearer": [{"key": "token", "value": "…"}]}, {"type": "bearer", "token": "…"}: settings of API clients.
        let is_bearer = |name: &str| name.eq_ignore_ascii_case("bearer");
        let bearer = above.is_some_and(is_bearer)
            || members.get("type").and_then(Value::as_str).is_some_and(is_bearer);
        let mut redacted = Map::new();
        let mut alike = HashMap::new();
        for (key, value) in members {
            let new_key = apart(self.key(key, path), &redacted, &mut alike);
            let pointer = format!("{path}/{}", new_key.replace('~', "~0").replace('/', "~1"));
            let context = match (key.as_str(), named) {
                ("value" | "Value", Some(named)) => named,
                ("value" | "Value" | "values" | "text", None) => above.unwrap_or(key),
                _ => key,
            };
            let value = match value {
                Value::String(text) if kind.is_some_and(|kind| rules::is_private_part(kind, key, text)) => {
                    let hit = Hit { start: 0, end: text.len(), rule: rules::PRIVATE_JWK };
                    Value::String(self.replace(text, &[hit], &pointer))
                }
                Value::String(text)
                    if bearer
                        && matches!(key.as_str(), "token" | "value")
                        && placeholders::find(text).is_empty()
                        && rules::is_bearer_token(text.as_bytes()) =>
                {
                    let hit = Hit { start: 0, end: text.len(), rule: rules::CLIENT_BEARER };
                    Value::String(self.replace(text, &[hit], &pointer))
                }
                _ => self.value(value, &pointer, Some(context), depth),
            };
            redacted.insert(new_key, value);
        }
        redacted
    }

    fn key(&mut self, key: &str, path: &str) -> String {
        let hits = self.redactor.hits_of(key);
        if hits.is_empty() { key.to_owned() } else { self.replace(key, &hits, path) }
    }

    /// A string of which some is known already, and the JSON in it if it is some.
    fn string(&mut self, text: &str, known: Vec<Hit>, path: &str, key: Option<&str>, depth: usize) -> String {
        let redacted = self.text(text, known, path, key);
        let nested = text.trim_start().starts_with(['{', '[']) && depth < MOST_NESTED;
        if nested && let Ok(value) = serde_json::from_str::<Value>(&redacted) {
            let found = self.findings.len();
            let value = self.value(&value, path, None, depth + 1);
            if self.findings.len() > found {
                // Places inside the nested text are no places of the string: it is named as a whole.
                let end = text.chars().count();
                for finding in &mut self.findings[found..] {
                    (finding.start, finding.end, finding.path) = (0, end, Some(path.to_owned()));
                }
                return value.to_string();
            }
        }
        redacted
    }

    fn text(&mut self, text: &str, known: Vec<Hit>, path: &str, key: Option<&str>) -> String {
        let mut hits = self.redactor.hits_of(text);
        if !known.is_empty() {
            hits.extend(known);
            hits = finding::join(hits);
        }
        if let Some(key) = key
            && text.len() <= MOST_WITH_KEY
            && !text.is_empty()
        {
            hits.extend(self.redactor.hits_under(key, text));
            hits = finding::join(hits);
        }
        if hits.is_empty() { text.to_owned() } else { self.replace(text, &hits, path) }
    }

    fn replace(&mut self, text: &str, hits: &[Hit], path: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let (mut at, mut points) = (0, 0);
        for hit in hits {
            let (before, value) = (&text[at..hit.start], &text[hit.start..hit.end]);
            out.push_str(before);
            let numbering = self.redactor.options.numbering;
            let rule = self.kinds.of(value, hit.rule);
            out.push_str(&self.placeholders.placeholder(numbering, rule.label, value));
            (self.taken)(Taken { kind: kind(rule), value });
            let start = points + before.chars().count();
            points = start + value.chars().count();
            at = hit.end;
            let (rule, tier, path) = (rule.id, rule.tier, Some(path.to_owned()));
            self.findings.push(Finding { rule, tier, start, end: points, path });
        }
        out.push_str(&text[at..]);
        out
    }
}

impl Redactor {
    /// The hits of a text of any length, in bytes.
    fn hits_of(&self, text: &str) -> Vec<Hit> {
        stream::hits(text, |part| self.hits(part))
    }

    /// What is critical in the strings of an array when they are read as lines of one text: for each item the hits in it,
    /// or nothing at all.
    fn hits_together(&self, items: &[Value]) -> Vec<Vec<Hit>> {
        let mut text = String::new();
        let mut starts = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let Value::String(item) = item else { continue };
            starts.push((text.len(), at, item.len()));
            text.push_str(item);
            text.push_str(if names_header(item) { ": " } else { "\n" });
        }
        if starts.len() < 2 {
            return Vec::new();
        }
        let hits = stream::hits(&text, |part| self.critical_hits(part));
        let mut together = if hits.is_empty() { Vec::new() } else { vec![Vec::new(); items.len()] };
        for hit in hits {
            let first = starts.partition_point(|(start, _, length)| start + length <= hit.start);
            for &(start, at, length) in starts[first..].iter().take_while(|(start, ..)| *start < hit.end) {
                let (from, to) = (hit.start.saturating_sub(start), (hit.end - start).min(length));
                together[at].push(Hit { start: from, end: to, ..hit });
            }
        }
        together
    }

    /// What a string is because of the key that it stands under.
    fn hits_under(&self, key: &str, text: &str) -> Vec<Hit> {
        if key.len() > MOST_KEY || key.contains(['"', '\\', '\n']) {
            return Vec::new();
        }
        let lead = format!("\"{key}\": \"");
        let (start, end) = (lead.len(), lead.len() + text.len());
        let hits = self.hits(&format!("{lead}{text}\""));
        let inside = hits.into_iter().filter(|hit| hit.start >= start && hit.end <= end);
        inside.map(|hit| Hit { start: hit.start - start, end: hit.end - start, ..hit }).collect()
    }
}

/// A key that no other member has: the second that redacts alike ends with `~2`, the next with `~3`. Each number is tried
/// once, so the work is that of the keys.
fn apart(key: String, taken: &Map<String, Value>, alike: &mut HashMap<String, usize>) -> String {
    if !taken.contains_key(&key) {
        return key;
    }
    let number = alike.entry(key.clone()).or_insert(1);
    loop {
        *number += 1;
        let numbered = format!("{key}~{number}");
        if !taken.contains_key(&numbered) {
            return numbered;
        }
    }
}

/// Whether the numbers of an array are the bytes of a private key.
fn is_key_in_numbers(items: &[Value]) -> bool {
    let byte = |item: &Value| {
        let number = item.as_i64().filter(|number| (-128..256).contains(number))?;
        u8::try_from(number.rem_euclid(256)).ok()
    };
    let start: Option<Vec<u8>> = items.iter().take(keys::ENOUGH).map(byte).collect();
    start.is_some_and(|bytes| keys::is_private_key(&bytes))
}

/// Whether a string is the name of a header whose value tells who someone is.
fn names_header(text: &str) -> bool {
    let name =
        text.len() <= MOST_KEY && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let text = if name { text.to_ascii_lowercase() } else { return false };
    ["authorization", "authorisation", "-token"].iter().any(|end| text.ends_with(end))
}

/// JSON in JSON in JSON: more is no message but a trick, and is still looked at as text.
const MOST_NESTED: usize = 4;
const MOST_KEY: usize = 128;
/// Longer strings are documents, and no value of a key.
const MOST_WITH_KEY: usize = 8 * 1024;
