//! A tool's arguments, read without ever repeating them.
//!
//! Serde's messages quote what they did not expect, and a model that puts a key into the wrong field would get it back in
//! an error, from where it goes into transcripts. So arguments are looked at as plain JSON, and what is wrong with one is
//! said in words of ours: the field's name, which is ours too, and what it should be. `null` is the same as nothing.

use std::ops::RangeInclusive;

use confidant_memory::when;
use serde_json::{Map, Value};

use super::failure::Failure;

/// The arguments of one call, or an object among them.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'a> {
    fields: &'a Map<String, Value>,
    /// What to say before a field's name: nothing, or `time_range.`.
    within: &'static str,
}

type Read<T> = Result<T, Failure>;

impl<'a> Arguments<'a> {
    /// Arguments of which all are known. One that is not is an error: a misspelled `dry_run` must not store anything.
    pub(super) fn of(fields: &'a Map<String, Value>, known: &[&str]) -> Read<Self> {
        Self { fields, within: "" }.only(known)
    }

    fn only(self, known: &[&str]) -> Read<Self> {
        if self.fields.keys().all(|name| known.contains(&name.as_str())) {
            return Ok(self);
        }
        let place = self.within.trim_end_matches('.');
        let place = if place.is_empty() { "the tool".to_owned() } else { format!("\"{place}\"") };
        let hint = match known {
            [] => "give it no arguments".to_owned(),
            known => format!("it takes: {}", known.join(", ")),
        };
        Err(Failure::invalid(format!("{place} was given an unknown argument"), hint))
    }

    /// A text.
    pub(super) fn text(&self, name: &str) -> Read<Option<&'a str>> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "a text", "put it in quotes")),
        }
    }

    /// A text that has to be there.
    pub(super) fn required(&self, name: &str, hint: &str) -> Read<&'a str> {
        self.text(name)?
            .ok_or_else(|| Failure::invalid(format!("\"{}{name}\" is missing", self.within), hint))
    }

    /// One of a few words.
    pub(super) fn word(&self, name: &str, words: &[&'static str]) -> Read<Option<&'static str>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let found = words.iter().copied().find(|word| *word == text);
        let expected = format!("one of {}", words.join(", "));
        found.map(Some).ok_or_else(|| self.wrong(name, &expected, "use one of these words, or leave it out"))
    }

    /// A list of texts.
    pub(super) fn texts(&self, name: &str) -> Read<Vec<String>> {
        let wrong = || self.wrong(name, "a list of texts", "write it as [\"one\", \"two\"]");
        let list = match self.value(name) {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(wrong()),
        };
        if list.len() > MOST_TEXTS {
            return Err(self.wrong(name, &format!("a list of at most {MOST_TEXTS}"), "give fewer"));
        }
        list.iter().map(|text| text.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
    }

    /// Yes or no.
    pub(super) fn flag(&self, name: &str) -> Read<Option<bool>> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.wrong(name, "true or false", "write it without quotes")),
        }
    }

    /// A whole number.
    pub(super) fn count(&self, name: &str, range: RangeInclusive<u64>) -> Read<Option<u64>> {
        let Some(value) = self.value(name) else { return Ok(None) };
        // Some clients have no other numbers than floating ones, and write 5 as 5.0.
        let whole = value.as_u64().or_else(|| {
            let float = value.as_f64()?;
            (float.fract() == 0.0 && (0.0..=EXACT).contains(&float)).then_some(float as u64)
        });
        let expected = || format!("a whole number from {} to {}", range.start(), range.end());
        whole
            .filter(|count| range.contains(count))
            .map(Some)
            .ok_or_else(|| self.wrong(name, &expected(), "give such a number, or leave it out"))
    }

    /// An object. Models that write it as a text with JSON in it are understood.
    pub(super) fn object(&self, name: &str) -> Read<Option<Map<String, Value>>> {
        let parsed = match self.value(name) {
            None => return Ok(None),
            Some(Value::Object(object)) => return Ok(Some(object.clone())),
            Some(Value::String(text)) => serde_json::from_str(text).ok(),
            Some(_) => None,
        };
        match parsed {
            Some(Value::Object(object)) => Ok(Some(object)),
            _ => Err(self.wrong(name, "an object", "write it as {…}")),
        }
    }

    /// The hash of a dry run.
    pub(super) fn sha256(&self, name: &str) -> Read<Option<String>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let text = text.trim().to_ascii_lowercase();
        let hint = "take preview.sha256 of the dry run";
        if is_sha256(&text) { Ok(Some(text)) } else { Err(self.wrong(name, "64 hexadecimal digits", hint)) }
    }

    /// `{start?, end?}`, in milliseconds since 1970.
    pub(super) fn time_range(&self) -> Read<(Option<i64>, Option<i64>)> {
        let Some(range) = self.object("time_range")? else { return Ok((None, None)) };
        let range = Arguments { fields: &range, within: "time_range." }.only(&["start", "end"])?;
        Ok((range.moment("start")?, range.moment("end")?))
    }

    fn moment(&self, name: &str) -> Read<Option<i64>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let expected = "a time in RFC 3339";
        let hint = "write it like 2025-12-21T12:00:00Z";
        when::parse_text(text).map(Some).ok_or_else(|| self.wrong(name, expected, hint))
    }

    fn value(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    fn wrong(&self, name: &str, expected: &str, hint: &str) -> Failure {
        Failure::invalid(format!("\"{}{name}\" must be {expected}", self.within), hint)
    }
}

/// Whether this is a SHA-256 in lower-case hexadecimal digits.
pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// More tags than this are no tags.
const MOST_TEXTS: usize = 256;
/// Whole numbers up to here are exact as floating ones.
const EXACT: f64 = 9_007_199_254_740_992.0;
