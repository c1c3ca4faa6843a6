//! One owner's memories: store, search, retrieve, forget.

use std::collections::HashSet;
use std::sync::Arc;

use confidant_seal::{Key, Kid};
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::api::{
    Crypto, DryRun, Forget, Forgotten, Hits, Matched, MemoryHit, Overturned, Preview, QueryRequest,
    Retrieved, StoreRequest, Stored, Verified,
};
use crate::artifact::{self, ArtifactPlace, Prepared};
use crate::blobs::{Locator, Pointer, Removed};
use crate::corrections::{self, Fact, Superseded};
use crate::index::{self, Bag, Hit, Query};
use crate::instances::AtWork;
use crate::keys::{ArtifactId, Keys, OwnerKey};
use crate::locator::LocatorSeal;
use crate::memory::{Inner, blocking, detached};
use crate::truth::{
    Doomed, Finished, Inserted, NewRow, StoredRow, TaskKind, Texts, Upload, Why, row_refused,
};
use crate::witness::Act;
use crate::{Card, Error, Owner, Result, Session, private, replaced, when};

/// One owner's memories: nothing here reaches another's.
#[derive(Clone, Debug)]
pub struct OwnMemory {
    pub(crate) inner: Arc<Inner>,
    pub(crate) owner: Owner,
    actor: String,
    lookup: Lookup,
}

/// Whether sessions that are named by their id only may be looked for on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lookup {
    /// Not for somebody from elsewhere: the files may be anybody's.
    #[default]
    Closed,
    /// For somebody who may read the files anyway.
    Open,
}

impl OwnMemory {
    pub(crate) fn new(inner: Arc<Inner>, owner: Owner, actor: &str) -> Self {
        Self { inner, owner, actor: actor.to_owned(), lookup: Lookup::Closed }
    }

    /// The same, for somebody who may have the sessions that are on this machine: they are found by their id.
    #[must_use]
    pub fn reading_files(self) -> Self {
        Self { lookup: Lookup::Open, ..self }
    }

    /// What storing would store. Writes nothing.
    pub fn preview<'a>(&'a self, request: &'a StoreRequest) -> BoxFuture<'a, Result<DryRun>> {
        Box::pin(async move {
            self.inner.store_of(request.mode.as_deref())?;
            let prepared = self.prepare(request).await?;
            let payload: Value = serde_json::from_slice(&prepared.payload).unwrap_or_default();
            let preview = Preview {
                artifact_type: prepared.artifact_type,
                fields: payload.as_object().map(artifact::fields).unwrap_or_default(),
                bytes: prepared.payload.len(),
                would_upload: false,
                sha256: prepared.sha256(),
                payload_json: String::from_utf8_lossy(&prepared.payload).into_owned(),
                payload,
            };
            Ok(DryRun {
                ok: true,
                dry_run: true,
                preview,
                redaction: prepared.redaction(),
                session_index: prepared.indexed(),
                session_id: prepared.session_id,
                memory_card: prepared.card,
            })
        })
    }

    /// Redacts, derives, scans again, seals, stores and indexes. Goes on to its end even if the caller goes away.
    pub fn store<'a>(&'a self, request: &'a StoreRequest) -> BoxFuture<'a, Result<Stored>> {
        Box::pin(async move {
            let (own, request) = (self.clone(), request.clone());
            let stored = detached(async move { own.store_to_the_end(&request).await }).await;
            if let Err(error) = &stored {
                self.note_skipped(error.code()).await;
            }
            stored
        })
    }

    /// Searches; local, without any network.
    pub fn query<'a>(&'a self, request: &'a QueryRequest) -> BoxFuture<'a, Result<Hits>> {
        Box::pin(async move {
            let own = self.clone();
            let query = Query {
                text: request.query.clone(),
                tags: request.tags.clone(),
                from: request.from,
                until: request.until,
                limit: request.limit.clamp(1, MOST_HITS),
                offset: request.offset.min(MOST_OFFSET),
                now: (self.inner.clock)(),
                hidden: Vec::new(),
            };
            let hits = blocking(move || own.search(&query)).await?;
            self.note(Act::Queried, hits.hits.len() as u64).await?;
            Ok(hits)
        })
    }

    /// The newest first.
    pub fn list<'a>(&'a self, request: &'a QueryRequest) -> BoxFuture<'a, Result<Hits>> {
        Box::pin(async move { self.query(&QueryRequest { query: String::new(), ..request.clone() }).await })
    }

    /// Fetches an artifact, checks and opens it.
    pub fn retrieve<'a>(&'a self, uri: &'a str, mode: Option<&'a str>) -> BoxFuture<'a, Result<Retrieved>> {
        Box::pin(async move {
            let pointer = Pointer::parse(uri)?;
            if let Some(mode) = mode {
                self.inner.store_of(Some(mode))?;
            }
            let (own, wanted) = (self.clone(), pointer.clone());
            let found = blocking(move || {
                let Some(owner) = own.inner.keys.known_owner(&own.owner)? else { return Ok(None) };
                let Some(row) = own.inner.truth.by_pointer(owner.tag, &wanted)? else { return Ok(None) };
                let Some((key, texts)) = own.inner.open_row(&owner, &row)? else { return Ok(None) };
                Ok(Some((owner, row, key, texts)))
            })
            .await?;
            let Some((owner, row, key, texts)) = found else { return Err(no_such_memory()) };
            if mode.is_some_and(|mode| mode != row.mode) {
                return Err(Error::not_found(
                    "this memory is not in the store that `mode` names",
                    "leave `mode` out: the memory knows where it is",
                ));
            }
            let artifact = self.fetch(&owner, &row, &key, &texts).await?;
            self.note(Act::Retrieved, 1).await?;
            let crypto = Verified { verified: true };
            Ok(Retrieved {
                ok: true,
                cascade_uri: pointer.to_string(),
                artifact_type: row.artifact_type,
                artifact,
                crypto,
            })
        })
    }

    /// Destroys keys, rows, index entries and blobs. A dry run says what would go.
    pub fn forget<'a>(&'a self, what: &'a Forget, dry_run: bool) -> BoxFuture<'a, Result<Forgotten>> {
        Box::pin(async move {
            let (own, what) = (self.clone(), what.clone());
            detached(async move { own.forget_to_the_end(&what, dry_run).await }).await
        })
    }

    /// Writes down that a session was not stored, and why in a word. That it could not be written down changes nothing.
    pub async fn note_skipped(&self, reason: &'static str) {
        if let Err(error) = self.note(Act::Skipped(reason), 1).await {
            tracing::warn!(
                error = error.code(),
                "it could not be written down that a session was not stored"
            );
        }
    }

    /// How many memories there are, whatever their tags say.
    pub fn count(&self) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async move {
            let own = self.clone();
            blocking(move || {
                let Some(owner) = own.inner.keys.known_owner(&own.owner)? else { return Ok(0) };
                let under_way = own.inner.under_way()?;
                let all = own.inner.keys.artifacts_of(&owner)?;
                let there = all.keys.iter().filter(|held| !under_way.contains(&held.id)).count();
                Ok((there + all.missing.len()) as u64)
            })
            .await
        })
    }

    /// Everything that is kept, opened: the export that a person has a right to. It goes by the keys, not by what rows say whose
    /// they are. Where a row is missing or does not open, or a store does not give the artifact, `unreadable` has the word
    /// for why.
    pub fn export(&self) -> BoxFuture<'_, Result<Vec<Value>>> {
        Box::pin(async move {
            let own = self.clone();
            let found = blocking(move || {
                let Some(owner) = own.inner.keys.known_owner(&own.owner)? else { return Ok(None) };
                let mut opened = Vec::new();
                let going = own.inner.under_way()?;
                let all = own.inner.keys.artifacts_of(&owner)?;
                for held in all.keys {
                    match own.inner.truth.by_artifact(held.id)? {
                        Some(row) => {
                            let texts = row.texts(&owner, &held.key);
                            opened.push((Some(row), texts.map(|texts| (held.key, texts))));
                        }
                        None if going.contains(&held.id) => {}
                        None => opened.push((None, Err(row_refused()))),
                    }
                }
                opened.extend(all.missing.iter().map(|_| (None, Err(row_refused()))));
                Ok(Some((owner, opened)))
            })
            .await?;
            let Some((owner, opened)) = found else { return Ok(Vec::new()) };
            let mut exported = Vec::with_capacity(opened.len());
            // A store that does not answer is not waited for once for each of a thousand memories.
            let mut silent: Option<(String, Error)> = None;
            for (row, opened) in &opened {
                let (row, key, texts) = match (row, opened) {
                    (Some(row), Ok((key, texts))) => (row, key, texts),
                    (Some(row), Err(error)) => {
                        exported.push(exported_row(row, None, Err(error.clone())));
                        continue;
                    }
                    (None, _) => {
                        exported.push(serde_json::json!({ "unreadable": row_refused().code() }));
                        continue;
                    }
                };
                let artifact = match &silent {
                    Some((mode, error)) if *mode == row.mode => Err(error.clone()),
                    _ => self.fetch(&owner, row, key, texts).await,
                };
                if let Err(error @ Error::Unavailable { .. }) = &artifact {
                    silent = Some((row.mode.clone(), error.clone()));
                }
                exported.push(exported_row(row, Some(texts), artifact));
            }
            Ok(exported)
        })
    }

    /// The artifact of a row, fetched, checked and opened.
    async fn fetch(&self, owner: &OwnerKey, row: &StoredRow, key: &Key, texts: &Texts) -> Result<Value> {
        self.inner.fetch(owner, row, key, texts).await
    }

    async fn prepare(&self, request: &StoreRequest) -> Result<Prepared> {
        let session = match &request.session {
            Some(members) => Session::new(&request.session_id, members.clone())?,
            None if self.lookup == Lookup::Open => self.inner.sources.find(&request.session_id).await?,
            None => {
                return Err(Error::not_found(
                    "there is no session with this id, and this server does not look for session files",
                    "send the session itself as `session`",
                ));
            }
        };
        let mut again = request.clone();
        again.tags.iter_mut().for_each(|tag| *tag = private::without(tag));
        again.metadata = private::without_in(again.metadata);
        let inner = Arc::clone(&self.inner);
        let cleared = blocking(move || artifact::clear(&inner.gate, &session, &again)).await?;
        let written = match &self.inner.card_writer {
            Some(writer) => writer.card(&self.owner, &cleared.session(), (self.inner.clock)()).await,
            None => None,
        };
        let (inner, raw) = (Arc::clone(&self.inner), request.raw);
        blocking(move || {
            // One that is not clean is not worth refusing the session for: the rules make another.
            let clean = |card: &Card| inner.gate.again(&serde_json::json!(card)).is_ok();
            let written = written.map(|card| card.settled(&inner.gate).0).filter(clean);
            let card = written.unwrap_or_else(|| Card::derive(&cleared.session()).settled(&inner.gate).0);
            artifact::prepare(&inner.gate, &cleared, card, raw, inner.index_of)
        })
        .await
    }

    async fn store_to_the_end(&self, request: &StoreRequest) -> Result<Stored> {
        let (mode, store) = self.inner.store_of(request.mode.as_deref())?;
        let prepared = self.prepare(request).await?;
        if let Some(expected) = &request.expect_sha256
            && !expected.eq_ignore_ascii_case(&prepared.sha256())
        {
            return Err(Error::Changed);
        }
        let prepared = Arc::new(prepared);
        let (mut patience, mut lost) = (PATIENCE, None);
        let begun = loop {
            let (own, asked, mode) = (self.clone(), request.session_id.clone(), mode.to_owned());
            let what = Arc::clone(&prepared);
            match blocking(move || own.begin(&what, &asked, &mode, lost)).await? {
                Start::Begun(begun) => match &begun.state {
                    // What was stored once may be gone from its store; nobody could retrieve it.
                    Begun::Already { artifact, locator } if !store.has(&begun.pointer, locator).await? => {
                        lost = Some(*artifact);
                    }
                    _ => break begun,
                },
                Start::Lost(artifact) => lost = Some(artifact),
                // Theirs will do, when it is done; what nobody is at any more is gone on with.
                Start::ByAnother(artifact) if patience > 0 => {
                    patience -= 1;
                    self.inner.go_on(artifact).await?;
                    tokio::time::sleep(BETWEEN_LOOKS).await;
                }
                Start::ByAnother(_) => {
                    return Err(Error::unavailable(
                        "another request is storing exactly this session, and is not done yet",
                        "wait a moment and ask again",
                    ));
                }
            }
        };
        let mut stored = begun.describe(&prepared);
        match begun.state {
            Begun::Already { .. } => stored.already_stored = true,
            Begun::Pending(memory) => {
                let upload = Upload {
                    owner: begun.seal.owner.tag,
                    memory,
                    artifact: begun.seal.id,
                    pointer: begun.pointer.clone(),
                    mode: mode.to_owned(),
                };
                match self.inner.upload(store, &begun, upload).await? {
                    Finished::Shown { instead_of } => {
                        stored.supersedes = instead_of.map(|pointer| pointer.to_string());
                    }
                    Finished::Superseded => stored.indexed = false,
                    Finished::Gone => {
                        return Err(Error::not_found(
                            "this was forgotten while it was being stored, so nothing of it is kept",
                            "store the session again if that was not intended",
                        ));
                    }
                }
            }
        }
        self.catch_up();
        self.note(Act::Stored, 1).await?;
        Ok(stored)
    }

    /// Seals the payload and writes it down, pending, with its upload, unless the same is being uploaded.
    fn begin(
        &self,
        prepared: &Prepared,
        session_id: &str,
        mode: &str,
        lost: Option<ArtifactId>,
    ) -> Result<Start> {
        let inner = &self.inner;
        let owner = inner.keys.owner(&self.owner)?;
        let id = ArtifactId::random();
        let at_work = inner.instances.start(id);
        let key = confidant_seal::Key::random();
        let place = ArtifactPlace {
            owner: &owner,
            session_id: &prepared.session_id,
            id,
            artifact_type: prepared.artifact_type,
        };
        let ciphertext = place.seal(&key, &prepared.payload).as_bytes().to_vec();
        let pointer = Pointer::of(&ciphertext);
        let now = (inner.clock)();
        let row = NewRow {
            owner: &owner,
            artifact: id,
            pointer: &pointer,
            artifact_type: prepared.artifact_type,
            mode,
            session_tag: inner.keys.tag(&owner, "session", &[session_id.trim().as_bytes()]),
            payload_tag: inner.keys.tag(&owner, "payload", &[&prepared.payload, mode.as_bytes()]),
            created_at: when::format(prepared.at.unwrap_or(now)),
            now: when::format(now),
            texts: texts(prepared, &Keys::replaced_key(&owner)),
        };
        let vouch = inner.keys.tasks_key()?;
        match inner.truth.insert(&row, &key, &ciphertext, inner.writer(&vouch), lost)? {
            Inserted::New(memory) => {
                let made = inner.keys.create_artifact(&owner, id, &key, &pointer);
                let (kid, state) = (key.kid(), Begun::Pending(memory));
                let seal = LocatorSeal { owner, id, key };
                let begun = Beginning { pointer, ciphertext, kid, state, seal, _at_work: at_work };
                match made {
                    Ok(()) => Ok(Start::Begun(Box::new(begun))),
                    Err(error) => {
                        // Nothing was uploaded and nothing opens the row: as if it had never been.
                        inner.truth.undo(memory)?;
                        Err(error)
                    }
                }
            }
            Inserted::Same(row) => {
                if !row.live {
                    return Ok(Start::ByAnother(row.artifact));
                }
                let Some(key) = inner.keys.artifact(&owner, row.artifact)? else {
                    return Ok(Start::Lost(row.artifact));
                };
                let kid = key.kid();
                let seal = LocatorSeal { owner, id: row.artifact, key };
                let (pointer, locator) = (row.pointer.clone(), seal.open(&row.locator)?);
                let state = Begun::Already { artifact: row.artifact, locator };
                let begun = Beginning { pointer, ciphertext, kid, seal, state, _at_work: None };
                Ok(Start::Begun(Box::new(begun)))
            }
        }
    }

    fn search(&self, query: &Query) -> Result<Hits> {
        let nothing = Hits { ok: true, hits: Vec::new(), unreadable: 0 };
        let Some(owner) = self.inner.keys.known_owner(&self.owner)? else { return Ok(nothing) };
        let index = self.inner.index(&owner)?;
        let source = self.inner.source(&owner);
        let hidden = replaced::asked(&query.text, &Keys::replaced_key(&owner));
        let query = Query { hidden, ..query.clone() };
        let terms = index::terms(&query.text);
        let found = index.search(&query, &source)?;
        let ids: Vec<u64> = found.iter().map(|hit| hit.id).collect();
        let rows = self.inner.truth.by_ids(owner.tag, &ids)?;
        let mut told = Hits { hits: Vec::with_capacity(rows.len()), ..nothing };
        let mut cards = Vec::with_capacity(rows.len());
        for row in &rows {
            let Some(&of) = found.iter().find(|hit| hit.id == row.id) else { continue };
            match self.inner.open_row(&owner, row) {
                Ok(Some((_, texts))) => {
                    let metadata: Value = serde_json::from_str(&texts.metadata_json).unwrap_or_default();
                    let matched = matched(&metadata, &terms, of);
                    told.hits.push(hit(row, texts, of.score, matched));
                    cards.push(metadata);
                }
                Ok(None) => {}
                // The others are what was asked for.
                Err(Error::Tampered { .. }) => told.unreadable += 1,
                Err(error) => return Err(error),
            }
        }
        if !terms.is_empty() {
            mark_overturned(&mut told.hits, &cards);
        }
        Ok(told)
    }

    async fn forget_to_the_end(&self, what: &Forget, dry_run: bool) -> Result<Forgotten> {
        let (own, what) = (self.clone(), what.clone());
        let found = blocking(move || own.find_to_forget(&what)).await?;
        let Some((owner, doomed)) = found.filter(|(_, doomed)| !doomed.is_empty()) else {
            return Err(no_such_memory());
        };
        let cascade_uris = doomed.iter().filter_map(|one| Some(one.pointer.as_ref()?.to_string())).collect();
        let forgotten = doomed.len() as u64;
        let mut told = Forgotten { ok: true, dry_run, forgotten, permanent: 0, pending: 0, cascade_uris };
        if dry_run {
            return Ok(told);
        }
        let artifacts: Vec<ArtifactId> = doomed.iter().map(|one| one.artifact).collect();
        let (inner, ours) = (Arc::clone(&self.inner), artifacts.clone());
        let cleared = blocking(move || {
            let vouch = inner.keys.tasks_key()?;
            let marks = inner.truth.remove(&doomed, owner.tag, Why::Forgotten, inner.writer(&vouch))?;
            // One that cannot be cleared to the end now keeps nothing else from going, and is gone on with by the outbox.
            let ids: Vec<u64> = doomed.iter().map(|one| one.id).collect();
            let keys = inner.keys.destroy_artifacts(&owner, &artifacts, &marks);
            Ok(inner.index(&owner).and_then(|index| index.forget(&ids)).and(keys))
        })
        .await?;
        self.note(Act::Forgotten, forgotten).await?;
        cleared?;
        for task in self.inner.tasks().await? {
            if task.kind == TaskKind::Remove && ours.contains(&task.artifact) {
                match self.inner.remove_blob(&task).await {
                    Ok(Removed::Gone) => {}
                    Ok(Removed::Permanent) => told.permanent += 1,
                    Err(_) => told.pending += 1,
                }
            }
        }
        Ok(told)
    }

    /// What goes, by the keys: a tag that was changed neither keeps a memory nor costs another.
    fn find_to_forget(&self, what: &Forget) -> Result<Option<(OwnerKey, Vec<Doomed>)>> {
        let inner = &self.inner;
        let Some(owner) = inner.keys.known_owner(&self.owner)? else { return Ok(None) };
        let doomed = match what {
            Forget::Uri(uri) => inner.doomed_at(&owner, &Pointer::parse(uri)?)?,
            Forget::Session(id) => {
                let session = inner.keys.tag(&owner, "session", &[id.trim().as_bytes()]);
                let mut doomed = Vec::new();
                for held in inner.keys.artifacts_of(&owner)?.keys {
                    let row = inner.truth.by_artifact(held.id)?;
                    let row = row.filter(|row| row.sealed_session(&owner, &held.key) == Some(session));
                    doomed.extend(row.map(|row| row.doomed(Some(&held), Some(session))));
                }
                doomed
            }
        };
        Ok(Some((owner, doomed)))
    }

    pub(crate) async fn note(&self, act: Act, count: u64) -> Result<()> {
        match &self.inner.witness {
            Some(witness) => witness.note(&self.actor, &self.owner, act, count).await,
            None => Ok(()),
        }
    }

    /// Takes what is new into the index files when there is enough of it, beside everything else.
    fn catch_up(&self) {
        let own = self.clone();
        tokio::task::spawn_blocking(move || {
            let done = own.inner.keys.known_owner(&own.owner).and_then(|owner| match owner {
                Some(owner) => own.inner.index(&owner)?.catch_up(&own.inner.source(&owner), false).map(drop),
                None => Ok(()),
            });
            if let Err(error) = done {
                tracing::warn!(error = error.code(), "new memories could not be added to the search index");
            }
        });
    }
}

/// How storing begins.
enum Start {
    Begun(Box<Beginning>),
    /// The same payload is pending, as this artifact.
    ByAnother(ArtifactId),
    /// The same payload is there, as this artifact, and nothing opens it any more.
    Lost(ArtifactId),
}

/// An artifact that is sealed and written down.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) pointer: Pointer,
    pub(crate) ciphertext: Vec<u8>,
    kid: Kid,
    seal: LocatorSeal,
    state: Begun,
    /// As long as it is in here, no recovery takes the upload for one that was left.
    _at_work: Option<AtWork>,
}

#[derive(Clone, Debug)]
enum Begun {
    Pending(u64),
    /// It is there, as this artifact, if its store still has it.
    Already {
        artifact: ArtifactId,
        locator: Locator,
    },
}

impl Beginning {
    pub(crate) fn seal(&self, locator: &Locator) -> Vec<u8> {
        self.seal.seal(locator)
    }

    pub(crate) fn locator_seal(&self) -> LocatorSeal {
        self.seal.clone()
    }

    pub(crate) fn artifact(&self) -> ArtifactId {
        self.seal.id
    }

    fn describe(&self, prepared: &Prepared) -> Stored {
        Stored {
            ok: true,
            session_id: prepared.session_id.clone(),
            cascade_uri: self.pointer.to_string(),
            artifact_type: prepared.artifact_type,
            indexed: true,
            memory_card: prepared.card.clone(),
            redaction: prepared.redaction(),
            crypto: Crypto {
                enc: "AES-256-GCM",
                bytes: self.ciphertext.len(),
                key_id: self.kid.to_string(),
                plaintext_sha256: prepared.sha256(),
                ciphertext_sha256: self.pointer.hex(),
            },
            already_stored: false,
            supersedes: None,
        }
    }
}

fn texts(prepared: &Prepared, key: &Key) -> Texts {
    let mut metadata = serde_json::json!({
        "memory_card": prepared.card,
        "redaction_report": prepared.report,
    });
    if let Some(mut bag) = prepared.bag.clone() {
        for (term, count) in prepared.replaced.terms(key) {
            bag.add(&term, count);
        }
        metadata["session_index"] = bag.to_json();
    }
    Texts {
        tags_json: serde_json::to_string(&prepared.tags).unwrap_or_default(),
        source_session_id: prepared.session_id.clone(),
        source_tool: prepared.tool.clone(),
        title: prepared.card.title.clone(),
        snippet: prepared.snippet(),
        metadata_json: metadata.to_string(),
    }
}

/// What of a memory fits best: the line of its card with the most of the query's words, and the nearest passage.
fn matched(metadata: &Value, terms: &HashSet<String>, hit: Hit) -> Option<Matched> {
    if terms.is_empty() {
        return None;
    }
    let lists = ["summary_bullets", "decisions", "todos", "notable_quotes"];
    let lines = lists.iter().filter_map(|name| metadata.pointer(&format!("/memory_card/{name}"))?.as_array());
    let lines = lines.flatten().filter_map(Value::as_str);
    let shared = lines.map(|line| (index::shared(terms, line), line)).filter(|(shared, _)| *shared > 0);
    let bullet = shared.reduce(|best, other| if other.0 > best.0 { other } else { best });
    let passages = hit.passage.and_then(|_| Bag::from_json(metadata.get("session_index")?));
    let matched = Matched {
        bullet: bullet.map(|(_, line)| line.to_owned()),
        passage: hit.passage.map(|passage| passage + 1),
        passages: passages.and_then(|bag| u32::try_from(bag.passages()).ok()),
    };
    (matched.bullet.is_some() || matched.passage.is_some()).then_some(matched)
}

/// Marks what a later one of these memories states otherwise, and puts that one first.
fn mark_overturned(hits: &mut Vec<MemoryHit>, cards: &[Value]) {
    let mut facts = Vec::new();
    for (memory, (hit, card)) in hits.iter().zip(cards).enumerate() {
        let at = when::parse_text(&hit.created_at).unwrap_or_default();
        let lists = ["decisions", "summary_bullets"];
        let lists = lists.iter().filter_map(|name| card.pointer(&format!("/memory_card/{name}"))?.as_array());
        let lines = lists.flatten().filter_map(Value::as_str);
        facts.extend(lines.map(|text| Fact { memory, at, text }));
    }
    let mut order: Vec<usize> = (0..hits.len()).collect();
    for Superseded { older, newer } in corrections::superseded(&facts) {
        let (older, newer) = (facts[older], facts[newer]);
        let by = hits[newer.memory].cascade_uri.clone();
        let overturned = Overturned { line: older.text.to_owned(), now: newer.text.to_owned(), by };
        hits[older.memory].superseded.push(overturned);
        let place = |memory| order.iter().position(|one| *one == memory).unwrap_or(0);
        let (first, second) = (place(older.memory), place(newer.memory));
        if first < second {
            order[first..=second].rotate_right(1);
        }
    }
    let mut all: Vec<Option<MemoryHit>> = hits.drain(..).map(Some).collect();
    hits.extend(order.into_iter().filter_map(|at| all[at].take()));
}

fn hit(row: &StoredRow, texts: Texts, score: f32, matched: Option<Matched>) -> MemoryHit {
    MemoryHit {
        superseded: Vec::new(),
        matched,
        cass_session_id: texts.source_session_id,
        cascade_uri: row.pointer.to_string(),
        artifact_type: row.artifact_type,
        title: texts.title,
        snippet: texts.snippet,
        tags: serde_json::from_str(&texts.tags_json).unwrap_or_default(),
        created_at: row.created_at.clone(),
        score: relevance(score),
    }
}

/// A score as people read it: from 0 to 1, in the order of what the search made of it. At [`HALF`] it is a half.
fn relevance(score: f32) -> f64 {
    let score = f64::from(score);
    // What is no number, or below nothing, does not fit at all.
    if score > 0.0 { score / (score + HALF) } else { 0.0 }
}

/// What the row says, as far as it opens, and what only the artifact has.
fn exported_row(row: &StoredRow, texts: Option<&Texts>, artifact: Result<Value>) -> Value {
    let mut exported = serde_json::json!({
        "cascade_uri": row.pointer.to_string(),
        "artifact_type": row.artifact_type,
        "created_at": row.created_at,
    });
    if let Some(texts) = texts {
        let metadata: Value = serde_json::from_str(&texts.metadata_json).unwrap_or_default();
        exported["session_id"] = texts.source_session_id.as_str().into();
        exported["tool"] = texts.source_tool.as_str().into();
        exported["tags"] = serde_json::from_str(&texts.tags_json).unwrap_or_default();
        for name in ["memory_card", "redaction_report"] {
            exported[name] = metadata.get(name).cloned().unwrap_or_default();
        }
        // Where a search knows the card only, there is none.
        if let Some(known) = metadata.get("session_index") {
            exported["session_index"] =
                Bag::from_json(known).map_or_else(|| known.clone(), |bag| bag.exported());
        }
    }
    match artifact {
        Ok(artifact) => {
            for name in ["raw_session", "metadata"] {
                if let Some(value) = artifact.get(name) {
                    exported[name] = value.clone();
                }
            }
        }
        Err(error) => exported["unreadable"] = error.code().into(),
    }
    exported
}

fn no_such_memory() -> Error {
    Error::not_found(
        "there is no such memory of yours",
        "query_memories and list_memories show your memories; a forgotten one is gone",
    )
}

/// How often, and how long, a store waits for another of the same.
const PATIENCE: u32 = 600;
const BETWEEN_LOOKS: std::time::Duration = std::time::Duration::from_millis(50);
/// The score of a hit in which a rare word or two stand where it counts.
const HALF: f64 = 8.0;
const MOST_HITS: usize = 100;
const MOST_OFFSET: usize = 10_000;
