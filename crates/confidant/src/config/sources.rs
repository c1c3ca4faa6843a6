//! Where each setting came from, for `confidant config --effective`.
//!
//! Defaults are those of the example, which a test holds against the real ones. What may be a secret is shown as stars, wherever
//! it stands: settings are pasted into bug reports.

use std::collections::BTreeMap;
use std::fmt;

use confidant_display::debug_without_content;
use serde::Serialize;
use toml::{Table, Value};

use super::EXAMPLE;

/// What was laid over the defaults, and by whom.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// The settings that somebody made. May hold secrets.
    pub(super) chosen: Chosen,
    /// The file, variable or flag of each, by its path.
    pub(super) of: BTreeMap<String, String>,
    /// Variables with secrets that were given, and where they stand.
    pub(super) secrets: Vec<(String, String)>,
}

/// Settings as they were written, which may hold secrets.
#[derive(Clone, Default)]
pub(super) struct Chosen(pub(super) Table);

debug_without_content!(Chosen(***));

/// Every setting in use.
#[derive(Debug, Serialize)]
pub(crate) struct Effective {
    settings: Vec<Setting>,
    secrets: Vec<Given>,
}

/// One setting.
#[derive(Debug, Serialize)]
struct Setting {
    key: String,
    value: Value,
    source: String,
}

/// A secret that was given, by its variable.
#[derive(Debug, Serialize)]
struct Given {
    variable: String,
    source: String,
}

impl Sources {
    /// Every setting in use, with its source.
    pub(crate) fn effective(&self) -> Effective {
        let mut all: Table = EXAMPLE.parse().expect("a test reads the example as settings");
        overlay(&mut all, &self.chosen.0);
        let mut settings = Vec::new();
        self.collect(&mut settings, &[], &all);
        let secrets = self.secrets.iter().cloned();
        Effective {
            settings,
            secrets: secrets.map(|(variable, source)| Given { variable, source }).collect(),
        }
    }

    fn collect(&self, into: &mut Vec<Setting>, path: &[&str], table: &Table) {
        for (name, value) in table {
            let path = [path, &[name.as_str()]].concat();
            match value {
                Value::Table(inner) => self.collect(into, &path, inner),
                value => {
                    into.push(Setting {
                        key: path.iter().map(|part| quoted(part)).collect::<Vec<_>>().join("."),
                        value: without_secrets(&path, value),
                        source: self.source(&path),
                    });
                }
            }
        }
    }

    /// Who set this, or the table that it stands in.
    fn source(&self, path: &[&str]) -> String {
        let mut places = (1..=path.len()).rev().map(|many| path[..many].join("."));
        places.find_map(|place| self.of.get(&place).cloned()).unwrap_or_else(|| "default".to_owned())
    }
}

impl fmt::Display for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<(String, &str)> = self
            .settings
            .iter()
            .map(|Setting { key, value, source }| (format!("{key} = {}", written(value)), source.as_str()))
            .collect();
        let width = lines.iter().map(|(line, _)| line.chars().count()).filter(|width| *width <= WIDEST).max();
        for (line, source) in &lines {
            writeln!(f, "{line:width$}   # {source}", width = width.unwrap_or(0))?;
        }
        for Given { variable, source } in &self.secrets {
            writeln!(f, "# {variable} is set   # {source}")?;
        }
        Ok(())
    }
}

/// Lines that are longer do not decide where the sources stand.
const WIDEST: usize = 60;

/// A part of a key as TOML has it.
fn quoted(part: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if part.chars().all(bare) { part.to_owned() } else { string(part) }
}

/// A value as TOML has it, on one line.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => string(text),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(yes) => yes.to_string(),
        Value::Datetime(moment) => moment.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let keys = table.iter().map(|(name, value)| format!("{} = {}", quoted(name), written(value)));
            format!("{{ {} }}", keys.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Text in quotes: what JSON escapes, TOML escapes in the same way.
fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn overlay(under: &mut Table, over: &Table) {
    for (name, value) in over {
        match (under.get_mut(name), value) {
            (Some(Value::Table(under)), Value::Table(over)) => overlay(under, over),
            _ => drop(under.insert(name.clone(), value.clone())),
        }
    }
}

/// The value as it may be shown.
fn without_secrets(path: &[&str], value: &Value) -> Value {
    let name = path.last().copied().unwrap_or_default();
    let is_secret = SECRET_KEYS.contains(&name) || path.iter().any(|part| SECRET_TABLES.contains(part));
    match value {
        Value::String(text) if is_secret && !text.is_empty() => Value::String(STARS.to_owned()),
        Value::String(text) => Value::String(without_password(text)),
        Value::Array(items) => Value::Array(items.iter().map(|item| without_secrets(path, item)).collect()),
        Value::Table(inner) => {
            let cleaned = inner.iter().map(|(name, value)| {
                (name.clone(), without_secrets(&[path, &[name.as_str()]].concat(), value))
            });
            Value::Table(cleaned.collect())
        }
        other => other.clone(),
    }
}

/// An address without its password; whatever stands before the last `@` may be one.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let rest = match rest.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{user}:{STARS}@{host}")
        }
        None => rest.to_owned(),
    };
    let rest = match rest.split_once('?') {
        Some((place, query)) if query.to_lowercase().contains("password") => format!("{place}?{STARS}"),
        _ => rest,
    };
    format!("{scheme}://{rest}")
}

const STARS: &str = "***";
/// Keys that hold secrets where somebody put one into the settings after all.
const SECRET_KEYS: [&str; 5] = ["bot_token", "password", "access_token", "recovery_key", "token"];
/// Tables of which nobody knows what is in them.
const SECRET_TABLES: [&str; 2] = ["env", "headers"];

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Value {
        without_secrets(&["store", "url"], &Value::String(text.to_owned()))
    }

    #[test]
    fn secrets_are_stars_wherever_they_stand() {
        assert_eq!(shown("redis://me:hush@host/0"), Value::from("redis://me:***@host/0"));
        assert_eq!(shown("redis://:hu@sh@host"), Value::from("redis://:***@host"));
        assert_eq!(shown("postgres://host/d?password=hush"), Value::from("postgres://host/d?***"));
        assert_eq!(shown("sqlite:/a/b"), Value::from("sqlite:/a/b"));
        let bots: Table =
            "discord = [{bot_token = 'hush', guild_id = '7'}]\nservers = {a = {env = {KEY = 'hush'}}}"
                .parse()
                .expect("it is TOML");
        let cleaned = written(&without_secrets(&["channels"], &Value::Table(bots)));
        assert!(!cleaned.contains("hush") && cleaned.contains('7'), "{cleaned}");
    }

    #[test]
    fn every_default_is_listed_as_one() {
        let effective = Sources::default().effective();
        assert!(effective.settings.iter().all(|setting| setting.source == "default"));
        assert!(effective.settings.iter().any(|setting| setting.key == "history.max_messages"));
        // What is printed is a file of settings again.
        let again: super::super::Config = toml::from_str(&effective.to_string()).expect("it is one");
        assert_eq!(again, super::super::Config::default());
    }
}
