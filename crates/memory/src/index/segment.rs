//! A segment: the cards of one range of ids as one immutable, searchable container.
//!
//! Owns how cards become terms, columns and vectors, and how segments become one. Made in memory, bounded by the number of
//! cards, and only then written. Field weights are applied by counting a term several times (BM25F in its simplest form:
//! Robertson, Zaragoza and Taylor, 2004), so that one list per term is read instead of ten, and the tail can count alike.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use confidant_display::debug_without_content;
use serde::{Deserialize, Serialize};
use tantivy::columnar::ColumnValues;
use tantivy::directory::{Directory as _, OwnedBytes, RamDirectory};
use tantivy::fastfield::{AliveBitSet, write_alive_bitset};
use tantivy::index::{InvertedIndexReader, SegmentReader};
use tantivy::indexer::merge_filtered_segments;
use tantivy::schema::{FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use tantivy::{
    BitSet, Index, IndexBuilder, IndexSettings, ReloadPolicy, Searcher, SingleSegmentIndexWriter,
    TantivyDocument,
};

use super::container::{Container, Damaged, Parts};
use super::directory::SealedDirectory;
use super::meaning::{self, Vector, WIDTH};
use super::pages::Pages;
use super::vectors::{self, Passages, Vectors};
use super::{Bag, Document, FileKeys, words};
use crate::{Result, when};

/// What the manifest says of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Info {
    /// Of its file and its key; random.
    pub(super) name: String,
    pub(super) documents: u32,
    /// Lowest and highest id.
    pub(super) first: u64,
    pub(super) last: u64,
    /// Earliest and latest time.
    pub(super) from: i64,
    pub(super) until: i64,
    /// How many terms its documents have, each document's counted once: what rewriting it costs.
    pub(super) terms: u64,
}

impl Info {
    fn empty() -> Self {
        Self {
            name: String::new(),
            documents: 0,
            first: u64::MAX,
            last: 0,
            from: i64::MAX,
            until: i64::MIN,
            terms: 0,
        }
    }

    fn add(&mut self, id: u64, at: i64) {
        self.documents += 1;
        self.first = self.first.min(id);
        self.last = self.last.max(id);
        self.from = self.from.min(at);
        self.until = self.until.max(at);
    }
}

/// A segment that is not written yet.
pub(super) struct Made {
    /// With an empty name.
    pub(super) info: Info,
    pub(super) parts: Parts,
}

/// Calls `each` with every term of a document, as often as it counts.
pub(super) fn terms(document: &Document, each: &mut dyn FnMut(&str)) {
    let card = &document.card;
    let mut left = DOCUMENT_TERMS;
    let mut field = |weight: usize, text: &str| {
        words::document_terms(words::cut(text, FIELD_BYTES), &mut |term| {
            for _ in 0..weight.min(left) {
                each(term);
            }
            left = left.saturating_sub(weight);
        });
    };
    field(3, &card.title);
    for (weight, texts) in [
        (2, &card.keywords),
        (2, &card.entities),
        (2, &document.tags),
        (1, &card.decisions),
        (1, &card.summary_bullets),
        (1, &card.todos),
        (1, &card.notable_quotes),
    ] {
        for text in texts {
            field(weight, text);
        }
    }
    field(1, &document.tool);
    field(1, &document.session_id);
    let Some(bag) = &document.bag else { return };
    // People ask for what was in May, or on the 8th.
    field(1, &when::spoken(document.created_at));
    for (term, count) in bag.terms() {
        for _ in 0..(count as usize).min(left) {
            each(term);
        }
        left = left.saturating_sub(count as usize);
    }
}

/// A session's id as a number: equal for equal ids, and that is all it is for.
pub(super) fn session_number(session_id: &str) -> u64 {
    let hash = ring::digest::digest(&ring::digest::SHA256, session_id.as_bytes());
    hash.as_ref().iter().take(8).fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Makes a segment of documents that come one after another, in order of id.
pub(super) struct Maker {
    writer: SingleSegmentIndexWriter<TantivyDocument>,
    memory: RamDirectory,
    fields: Fields,
    info: Info,
    vectors: Vec<Vector>,
    passages: Passages,
    text: String,
}

impl Maker {
    pub(super) fn new() -> tantivy::Result<Self> {
        let (schema, fields) = schema();
        let memory = RamDirectory::create();
        let builder = IndexBuilder::new().schema(schema).tokenizers(tokenizers());
        let writer = builder.single_segment_index_writer(memory.clone(), ARENA)?;
        Ok(Self {
            writer,
            memory,
            fields,
            info: Info::empty(),
            vectors: Vec::new(),
            passages: Passages::default(),
            text: String::new(),
        })
    }

    pub(super) fn add(&mut self, document: Document) -> tantivy::Result<()> {
        let mut row = TantivyDocument::new();
        self.text.clear();
        terms(&document, &mut |term| {
            self.text.push_str(term);
            self.text.push('\n');
        });
        row.add_text(self.fields.words, &self.text);
        for tag in document.tags.iter().take(TAGS) {
            row.add_text(self.fields.tags, words::tag_term(tag));
        }
        row.add_u64(self.fields.id, document.id);
        row.add_i64(self.fields.at, document.created_at);
        row.add_u64(self.fields.session, session_number(&document.session_id));
        self.writer.add_document(row)?;
        self.info.add(document.id, document.created_at);
        self.info.terms += CARD_TERMS + document.bag.as_ref().map_or(0, |bag| bag.terms().count() as u64);
        self.vectors.push(meaning::of_card(&document.card));
        self.passages.push(document.bag.as_ref().map_or(&[][..], Bag::places));
        Ok(())
    }

    /// How many documents there are.
    pub(super) fn documents(&self) -> u32 {
        self.info.documents
    }

    /// What rewriting it would cost.
    pub(super) fn terms(&self) -> u64 {
        self.info.terms
    }

    /// The highest id so far.
    pub(super) fn last(&self) -> Option<u64> {
        (self.info.documents > 0).then_some(self.info.last)
    }

    /// About how much memory it takes by now.
    pub(super) fn memory(&self) -> usize {
        self.writer.mem_usage() + (self.vectors.len() + self.passages.len()) * WIDTH
    }

    pub(super) fn finish(self) -> tantivy::Result<Made> {
        let index = self.writer.finalize()?;
        let mut parts = parts_of(&index, &self.memory)?;
        parts.extend(vectors::parts(&self.vectors));
        parts.extend(self.passages.parts());
        Ok(Made { info: self.info, parts })
    }
}

/// Makes one segment of several neighbouring ones, without the documents of these ids. Nothing if none is left.
pub(super) fn merge(segments: &[Arc<Segment>], without: &HashSet<u64>) -> Result<Option<Made>> {
    let mut rows: Vec<(usize, u32)> = Vec::new();
    let mut alive = Vec::new();
    let mut info = Info::empty();
    for (i, segment) in segments.iter().enumerate() {
        let mut keep = BitSet::with_max_value(segment.info.documents);
        for row in 0..segment.info.documents {
            let id = segment.ids.get_val(row);
            if without.contains(&id) {
                continue;
            }
            keep.insert(row);
            rows.push((i, row));
            info.add(id, segment.times.get_val(row));
        }
        let mut bytes = Vec::new();
        write_alive_bitset(&keep, &mut bytes).map_err(|_| super::damaged())?;
        alive.push(Some(AliveBitSet::open(OwnedBytes::new(bytes))));
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let memory = RamDirectory::create();
    let parts = || -> tantivy::Result<Parts> {
        let mut sources = Vec::new();
        for segment in segments {
            sources.extend(segment.index.searchable_segments()?);
        }
        let index = merge_filtered_segments(&sources, IndexSettings::default(), alive, memory.clone())?;
        parts_of(&index, &memory)
    };
    let mut parts = parts().map_err(|error| super::of_tantivy(&error))?;
    let all: Vec<&Vectors> = segments.iter().map(|segment| &segment.vectors).collect();
    parts.extend(vectors::merged(&all, &rows).map_err(|error| super::of_io(&error))?);
    // What left took its share of the terms along, about.
    let (before, documents) = segments.iter().fold((0, 0), |(terms, documents), segment| {
        (terms + segment.info.terms, documents + u64::from(segment.info.documents))
    });
    info.terms = before * u64::from(info.documents) / documents.max(1);
    Ok(Some(Made { info, parts }))
}

/// Everything tantivy wrote, by name.
fn parts_of(index: &Index, memory: &RamDirectory) -> tantivy::Result<Parts> {
    let mut parts = Parts::new();
    let mut files: Vec<_> = index.directory().list_managed_files().into_iter().collect();
    files.sort();
    for file in files.iter().filter(|file| file.as_path() != Path::new(META)) {
        if memory.exists(file)? {
            parts.push((file.to_string_lossy().into_owned(), memory.open_read(file)?.read_bytes()?));
        }
    }
    let meta = memory.atomic_read(Path::new(META))?;
    parts.push((META.to_owned(), OwnedBytes::new(meta)));
    Ok(parts)
}

/// An open segment. Its lists are read from the container a page at a time; its columns are in memory.
pub(super) struct Segment {
    pub(super) info: Info,
    pub(super) fields: Fields,
    pub(super) searcher: Searcher,
    pub(super) words: Arc<InvertedIndexReader>,
    pub(super) tags: Arc<InvertedIndexReader>,
    pub(super) ids: Arc<dyn ColumnValues<u64>>,
    pub(super) times: Arc<dyn ColumnValues<i64>>,
    pub(super) sessions: Arc<dyn ColumnValues<u64>>,
    pub(super) vectors: Vectors,
    index: Index,
}

debug_without_content!(Segment { documents: info.documents });

impl Segment {
    /// Opens a segment.
    pub(super) fn open(folder: &Path, info: &Info, keys: &dyn FileKeys, pages: &Arc<Pages>) -> Result<Self> {
        let key = keys.get(&info.name)?.ok_or_else(super::damaged)?;
        let container =
            Container::open(folder, &info.name, &key, pages).map_err(|error| super::of_io(&error))?;
        let container = Arc::new(container);
        let opened = Self::of(info, container).map_err(|error| super::of_tantivy(&error))?;
        if opened.reader().max_doc() != info.documents {
            return Err(super::damaged());
        }
        Ok(opened)
    }

    fn of(info: &Info, container: Arc<Container>) -> tantivy::Result<Self> {
        let (_, fields) = schema();
        let mut index = Index::open(SealedDirectory(Arc::clone(&container)))?;
        index.set_tokenizers(tokenizers());
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let searcher = reader.searcher();
        let segment = searcher.segment_readers().first().ok_or(Damaged).map_err(std::io::Error::from)?;
        let columns = segment.fast_fields();
        Ok(Self {
            words: segment.inverted_index(fields.words)?,
            tags: segment.inverted_index(fields.tags)?,
            ids: columns.u64("id")?.first_or_default_col(0),
            times: columns.i64("at")?.first_or_default_col(0),
            sessions: columns.u64("session")?.first_or_default_col(0),
            vectors: Vectors::open(container, info.documents)?,
            info: info.clone(),
            fields,
            searcher,
            index,
        })
    }

    /// The one segment in it.
    pub(super) fn reader(&self) -> &SegmentReader {
        self.searcher.segment_reader(0)
    }
}

/// The fields of the files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    pub(super) words: Field,
    pub(super) tags: Field,
    id: Field,
    at: Field,
    session: Field,
}

fn schema() -> (Schema, Fields) {
    static SCHEMA: OnceLock<(Schema, Fields)> = OnceLock::new();
    let made = SCHEMA.get_or_init(|| {
        let mut builder = Schema::builder();
        let lines = |record, lengths| {
            let indexing = TextFieldIndexing::default().set_tokenizer(LINES).set_index_option(record);
            TextOptions::default().set_indexing_options(indexing.set_fieldnorms(lengths))
        };
        let fields = Fields {
            words: builder.add_text_field("words", lines(IndexRecordOption::WithFreqs, true)),
            tags: builder.add_text_field("tags", lines(IndexRecordOption::Basic, false)),
            id: builder.add_u64_field("id", FAST),
            at: builder.add_i64_field("at", FAST),
            session: builder.add_u64_field("session", FAST),
        };
        (builder.build(), fields)
    });
    made.clone()
}

fn tokenizers() -> tantivy::tokenizer::TokenizerManager {
    static MANAGER: OnceLock<tantivy::tokenizer::TokenizerManager> = OnceLock::new();
    let made = MANAGER.get_or_init(|| {
        let manager = tantivy::tokenizer::TokenizerManager::default();
        manager.register(LINES, Lines);
        manager
    });
    made.clone()
}

/// One term a line: the analysis was done before.
#[derive(Clone, Copy, Debug)]
struct Lines;

impl Tokenizer for Lines {
    type TokenStream<'a> = LinesStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Self::TokenStream<'a> {
        LinesStream { lines: text.split('\n'), token: Token::default() }
    }
}

struct LinesStream<'a> {
    lines: std::str::Split<'a, char>,
    token: Token,
}

impl TokenStream for LinesStream<'_> {
    fn advance(&mut self) -> bool {
        let Some(line) = self.lines.by_ref().find(|line| !line.is_empty()) else { return false };
        self.token.text.clear();
        self.token.text.push_str(line);
        self.token.position = self.token.position.wrapping_add(1);
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

const LINES: &str = "lines";
const META: &str = "meta.json";
/// What the maker's tables are laid out for at first. They grow; who adds looks at [`Maker::memory`].
const ARENA: usize = 3_000_000;
/// Terms of one document that count, so that one huge card cannot swell the files.
const DOCUMENT_TERMS: usize = 20_000;
/// Terms of a card, about.
const CARD_TERMS: u64 = 60;
const FIELD_BYTES: usize = 64 * 1024;
const TAGS: usize = 256;
