//! From a session to the exact bytes that are stored of it, before they are sealed.
//!
//! The order is the promise: redact everything that came in, derive the card from what is left, scan what was derived.
//! What a dry run shows and what is stored are the same bytes: nothing in them depends on when or where it is done.

use confidant_seal::{Context, Key, Sealed, Suite, open, seal};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::api::{ArtifactType, IndexOf, Indexed, Raw, Redaction, StoreRequest};
use crate::blobs::{Locator, Pointer};
use crate::gate::{Fired, Gate, Passed, Redacted};
use crate::index::Bag;
use crate::keys::{ArtifactId, OwnerKey};
use crate::replaced::Replaced;
use crate::truth::row_refused;
use crate::{Card, Error, Result, Session, when};

/// What would be stored of a session.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) artifact_type: ArtifactType,
    pub(crate) session_id: String,
    pub(crate) tool: String,
    pub(crate) tags: Vec<String>,
    pub(crate) card: Card,
    pub(crate) report: Vec<Fired>,
    /// When the session was, in milliseconds since 1970, if it says so.
    pub(crate) at: Option<i64>,
    /// The exact bytes.
    pub(crate) payload: Vec<u8>,
    /// The session's words, if they are indexed.
    pub(crate) bag: Option<Bag>,
    /// What was taken out of it.
    pub(crate) replaced: Replaced,
}

/// The payload. Its members come in this order.
#[derive(Serialize)]
struct Payload<'p> {
    artifact_type: ArtifactType,
    session_id: &'p str,
    timestamp: Option<String>,
    memory_card: &'p Card,
    redaction_report: &'p [Fired],
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_session: Option<&'p Value>,
    tags: &'p [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'p Value>,
}

/// What came through the gate, before a card is made of it.
#[derive(Debug)]
pub(crate) struct Cleared {
    session_id: String,
    passed: Passed,
    /// Tags that are labels, by their place: they go around the gate's model of names.
    labels: Vec<(usize, String)>,
    /// What was taken out.
    replaced: Replaced,
}

impl Cleared {
    /// The redacted session.
    pub(crate) fn session(&self) -> Redacted {
        self.passed.redacted.member("session").unwrap_or_default()
    }
}

/// Redacts everything that came in. Fails if any of it must not be stored in any form.
pub(crate) fn clear(gate: &Gate, session: &Session, request: &StoreRequest) -> Result<Cleared> {
    let mut members = session.members().clone();
    members.remove("session_id");
    let labels: Vec<_> =
        request.tags.iter().cloned().enumerate().filter(|(_, tag)| gate.is_label(tag.trim())).collect();
    let mut tags = request.tags.clone();
    labels.iter().for_each(|(at, _)| tags[*at].clear());
    let whole = json!({ "session": members, "tags": tags, "metadata": request.metadata });
    let mut replaced = Replaced::default();
    let mut passed = gate.pass_telling(&whole, &mut |taken| replaced.add(taken));
    let (session_id, of_id) = gate.name(session.id());
    passed.add(of_id);
    if !passed.critical.is_empty() {
        return Err(Error::Blocked { places: passed.critical });
    }
    Ok(Cleared { session_id, passed, labels, replaced })
}

/// Makes the payload of what was cleared and of the card that was derived from it.
pub(crate) fn prepare(
    gate: &Gate,
    cleared: &Cleared,
    card: Card,
    raw: Raw,
    index: IndexOf,
) -> Result<Prepared> {
    let redacted = cleared.passed.redacted.value();
    let session = cleared.session();
    let session = session.value();
    let at = when::of_session(session);
    let judged = tags(redacted, &[])?;
    let tags = tags(redacted, &cleared.labels)?;
    let metadata = redacted.get("metadata").filter(|value| value.as_object().is_some_and(|o| !o.is_empty()));
    let artifact_type = match raw {
        Raw::No => ArtifactType::ArtifactOnly,
        Raw::Acknowledged => ArtifactType::RawPlusArtifact,
    };
    let mut payload = Payload {
        artifact_type,
        session_id: "",
        timestamp: at.map(when::format),
        memory_card: &card,
        redaction_report: &[],
        raw_session: (raw == Raw::Acknowledged).then_some(session),
        tags: &judged,
        metadata,
    };
    // Everything that came from the session. Its name was judged as a name, which elsewhere would be taken for a
    // secret, its labels as labels, and the report has only names of rules.
    gate.again(&serde_json::to_value(&payload).map_err(|_| unserialisable())?)?;
    payload.session_id = &cleared.session_id;
    payload.redaction_report = &cleared.passed.report;
    payload.tags = &tags;
    let bytes = serde_json::to_vec(&payload).map_err(|_| unserialisable())?;
    let tool = session.get("tool_name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (session_id, report) = (cleared.session_id.clone(), cleared.passed.report.clone());
    let (bag, replaced) = match index {
        IndexOf::Session => (Some(Bag::of(session)), cleared.replaced.clone()),
        IndexOf::Card => (None, Replaced::default()),
    };
    Ok(Prepared { artifact_type, session_id, tool, tags, card, report, at, payload: bytes, bag, replaced })
}

impl Prepared {
    /// The hash that a dry run shows.
    pub(crate) fn sha256(&self) -> String {
        Pointer::of(&self.payload).hex()
    }

    /// What a search would know of it beside the card.
    pub(crate) fn indexed(&self) -> Indexed {
        let words = self.bag.iter().flat_map(|bag| bag.terms().map(|(term, _)| term.to_owned()));
        Indexed {
            words: words.collect(),
            passages: self.bag.as_ref().map_or(0, Bag::passages),
            replaced_values: self.replaced.values(),
        }
    }

    pub(crate) fn redaction(&self) -> Redaction {
        Redaction { rules_fired: self.report.clone() }
    }

    /// The first bullets, for lists.
    pub(crate) fn snippet(&self) -> String {
        self.card.summary_bullets.iter().take(2).map(String::as_str).collect::<Vec<_>>().join(" | ")
    }
}

/// An artifact's place: what its seal is bound to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArtifactPlace<'a> {
    pub(crate) owner: &'a OwnerKey,
    /// The session's redacted id.
    pub(crate) session_id: &'a str,
    pub(crate) id: ArtifactId,
    pub(crate) artifact_type: ArtifactType,
}

impl ArtifactPlace<'_> {
    pub(crate) fn seal(&self, key: &Key, payload: &[u8]) -> Sealed {
        let id = self.id.hex();
        seal(key, Suite::Aes256Gcm, &self.context(&id), 0, payload)
    }

    /// Opens what a store returned for `pointer`; nothing unverified comes out.
    pub(crate) fn open(&self, key: &Key, pointer: &Pointer, ciphertext: Vec<u8>) -> Result<Value> {
        let damaged = |what: &str| {
            Error::tampered(what, "restore the artifact from a backup of its store, or forget this memory")
        };
        if !pointer.names(&ciphertext) {
            return Err(damaged("the stored bytes do not match this cascade_uri"));
        }
        let id = self.id.hex();
        let opened = open(key, &self.context(&id), &Sealed::from_bytes(ciphertext));
        let opened = opened.map_err(|_| damaged("the stored artifact cannot be opened in its place"))?;
        serde_json::from_slice(&opened.data).map_err(|_| damaged("the stored artifact is not an artifact"))
    }

    /// Where a store put the blob, in the store's words, which may be signatures.
    pub(crate) fn seal_locator(&self, key: &Key, locator: &Locator) -> Vec<u8> {
        let id = self.id.hex();
        seal(key, Suite::Aes256Gcm, &self.locator_context(&id), 0, locator.0.as_bytes()).as_bytes().to_vec()
    }

    /// The same, opened; what is empty was never sealed.
    pub(crate) fn open_locator(&self, key: &Key, sealed: &[u8]) -> Result<Locator> {
        if sealed.is_empty() {
            return Ok(Locator::default());
        }
        let (id, sealed) = (self.id.hex(), Sealed::from_bytes(sealed.to_vec()));
        let opened = open(key, &self.locator_context(&id), &sealed).map_err(|_| row_refused())?;
        String::from_utf8(opened.data.to_vec()).map(Locator).map_err(|_| row_refused())
    }

    fn locator_context<'c>(&'c self, id: &'c str) -> Context<'c> {
        Context {
            purpose: "memory-row",
            owner: self.owner.name(),
            container: id,
            object: "locator",
            field: "",
        }
    }

    fn context<'c>(&'c self, id: &'c str) -> Context<'c> {
        Context {
            purpose: "memory",
            owner: self.owner.name(),
            container: self.session_id,
            object: id,
            field: self.artifact_type.as_str(),
        }
    }
}

/// The request's tags and the session's own, redacted, each once.
fn tags(redacted: &Value, labels: &[(usize, String)]) -> Result<Vec<String>> {
    let listed = |value: Option<&Value>| {
        let list = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        list.iter().map(|tag| tag.as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let mut given = listed(redacted.get("tags"));
    for (at, label) in labels {
        given[*at].clone_from(label);
    }
    given.extend(listed(redacted.pointer("/session/tags")));
    let mut tags: Vec<String> = Vec::new();
    for tag in &given {
        let tag = tag.trim();
        if tag.chars().count() > LONGEST_TAG || tag.chars().any(char::is_control) {
            return Err(Error::invalid(
                format!("a tag has more than {LONGEST_TAG} characters or a control character"),
                "use short tags, such as production or bug-fix",
            ));
        }
        if !tag.is_empty() && !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    if tags.len() > MOST_TAGS {
        return Err(Error::invalid(format!("there are more than {MOST_TAGS} tags"), "use fewer"));
    }
    Ok(tags)
}

/// The members of a payload, in order.
pub(crate) fn fields(payload: &Map<String, Value>) -> Vec<String> {
    const ORDER: [&str; 8] = [
        "artifact_type",
        "session_id",
        "timestamp",
        "memory_card",
        "redaction_report",
        "raw_session",
        "tags",
        "metadata",
    ];
    ORDER.iter().filter(|name| payload.contains_key(**name)).map(|name| (*name).to_owned()).collect()
}

fn unserialisable() -> Error {
    Error::invalid("the session cannot be written as JSON", "check its members")
}

const LONGEST_TAG: usize = 64;
const MOST_TAGS: usize = 64;
