//! One file of the index: several named parts, sealed in pages and opened a page at a time.
//!
//! Owns the bytes on disk of everything but the manifest. A container is written once, under a key of its own, and never
//! changed; what the parts mean is [`super::segment`]'s business. Easy to get wrong: the nonce is the page's number, so
//! a key must never seal two files. [`write()`] takes a name that has just been made for that reason.
//!
//! ```text
//! file      = magic (8) ‖ plain length (8, big endian) ‖ page 0 ‖ page 1 ‖ …
//! page      = AES-256-GCM(key.derive("index/pages"), nonce = page number, 16 KiB) ‖ tag (16)
//! data that is authenticated with it = magic ‖ plain length ‖ page number ‖ number of pages ‖ name
//! plain     = parts ‖ table of parts (JSON) ‖ length of the table (4), then zeros to the end of the page
//! ```
//!
//! So a page opens only at its place, in the file of its name, at its length: truncated, lengthened, swapped and rolled
//! back pages are all [`Damaged`].

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use confidant_seal::Key;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use tantivy::directory::OwnedBytes;

use super::pages::Pages;

/// Bytes of the index that are not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a file of the search index does not open: it was changed, cut, swapped, or its key is gone")]
pub(super) struct Damaged;

impl From<Damaged> for io::Error {
    fn from(damaged: Damaged) -> Self {
        Self::new(io::ErrorKind::InvalidData, damaged)
    }
}

/// Parts to write, in order.
pub(super) type Parts = Vec<(String, OwnedBytes)>;

/// Writes parts as the file `name` in `folder`, durably, and returns its length. The key must be new.
pub(super) fn write(folder: &Path, name: &str, key: &Key, parts: &Parts) -> io::Result<u64> {
    let mut table = Vec::with_capacity(parts.len());
    let mut end = 0;
    for (part, bytes) in parts {
        table.push((part.as_str(), end, end + bytes.len() as u64));
        end += bytes.len() as u64;
    }
    let table = serde_json::to_vec(&table)?;
    let table_len = u32::try_from(table.len()).map_err(|_| Damaged)?.to_be_bytes();
    let seal = Seal::new(name, key, end + table.len() as u64 + table_len.len() as u64)?;
    let mut file = create(&folder.join(name))?;
    file.write_all(&seal.header())?;
    let mut page = Vec::with_capacity(PAGE + TAG);
    let mut number = 0;
    let pieces = parts.iter().map(|(_, bytes)| bytes.as_slice()).chain([table.as_slice(), &table_len]);
    for mut piece in pieces {
        while !piece.is_empty() {
            let (now, later) = piece.split_at(piece.len().min(PAGE - page.len()));
            page.extend_from_slice(now);
            piece = later;
            if page.len() == PAGE {
                file.write_all(seal.seal(number, &mut page)?)?;
                page.clear();
                number += 1;
            }
        }
    }
    if !page.is_empty() {
        page.resize(PAGE, 0);
        file.write_all(seal.seal(number, &mut page)?)?;
    }
    file.sync_all()?;
    Ok(seal.file_len())
}

/// An open container.
pub(super) struct Container {
    file: File,
    seal: Seal,
    /// Names this container's pages in the cache of all.
    serial: u64,
    table: Vec<(String, u64, u64)>,
    pages: Arc<Pages>,
}

impl std::fmt::Debug for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Container").field("pages", &self.seal.pages()).finish_non_exhaustive()
    }
}

impl Container {
    /// Opens a container and its table of parts; the parts themselves are read when asked for.
    pub(super) fn open(folder: &Path, name: &str, key: &Key, pages: &Arc<Pages>) -> io::Result<Self> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let file = File::open(folder.join(name))?;
        let mut header = [0; HEADER];
        read_at(&file, &mut header, 0).map_err(|_| Damaged)?;
        let (magic, len) = header.split_at(MAGIC.len());
        let len = u64::from_be_bytes(len.try_into().map_err(|_| Damaged)?);
        if magic != MAGIC || !(4..=MAX_LEN).contains(&len) {
            return Err(Damaged.into());
        }
        let seal = Seal::new(name, key, len)?;
        if file.metadata()?.len() != seal.file_len() {
            return Err(Damaged.into());
        }
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let mut container = Self { file, seal, serial, table: Vec::new(), pages: Arc::clone(pages) };
        let end = container.read(len - 4..len)?;
        let table_len = u64::from(u32::from_be_bytes(end.as_slice().try_into().map_err(|_| Damaged)?));
        let start = (len - 4).checked_sub(table_len).ok_or(Damaged)?;
        container.table = serde_json::from_slice(container.read(start..len - 4)?.as_slice())?;
        Ok(container)
    }

    /// Where a part lies.
    pub(super) fn part(&self, name: &str) -> Option<Range<u64>> {
        let (_, start, end) = self.table.iter().find(|(part, ..)| part == name)?;
        Some(*start..*end)
    }

    /// Bytes of the plain content, authenticated.
    pub(super) fn read(&self, range: Range<u64>) -> io::Result<OwnedBytes> {
        if range.start > range.end || range.end > self.seal.len {
            return Err(Damaged.into());
        }
        if range.is_empty() {
            return Ok(OwnedBytes::empty());
        }
        let (first, last) = (range.start / PAGE as u64, (range.end - 1) / PAGE as u64);
        let offset = usize::try_from(range.start % PAGE as u64).map_err(|_| Damaged)?;
        let len = usize::try_from(range.end - range.start).map_err(|_| Damaged)?;
        if first == last {
            return Ok(OwnedBytes::new(self.page(first)?).slice(offset..offset + len));
        }
        // What is read in one long piece is kept by who asked; it would only push the small pieces out.
        let mut bytes = if last - first < LONG {
            let mut bytes = Vec::with_capacity(len + PAGE);
            for number in first..=last {
                let from = if number == first { offset } else { 0 };
                bytes.extend_from_slice(&self.page(number)?[from..]);
            }
            bytes
        } else {
            self.open_pages(first, last, offset)?
        };
        bytes.truncate(len);
        Ok(OwnedBytes::new(bytes))
    }

    /// Many pages at once, in one buffer, without the first `offset` bytes.
    fn open_pages(&self, first: u64, last: u64, offset: usize) -> io::Result<Vec<u8>> {
        let count = usize::try_from(last - first + 1).map_err(|_| Damaged)?;
        let mut bytes = vec![0; count * (PAGE + TAG)];
        read_at(&self.file, &mut bytes, HEADER as u64 + first * (PAGE + TAG) as u64)?;
        let mut end = 0;
        for (number, start) in (first..).zip((0..bytes.len()).step_by(PAGE + TAG)) {
            self.seal.open(number, &mut bytes[start..start + PAGE + TAG])?;
            let from = if number == first { start + offset } else { start };
            bytes.copy_within(from..start + PAGE, end);
            end += start + PAGE - from;
        }
        bytes.truncate(end);
        Ok(bytes)
    }

    fn page(&self, number: u64) -> io::Result<Arc<[u8]>> {
        if let Some(page) = self.pages.get(self.serial, number) {
            return Ok(page);
        }
        let page: Arc<[u8]> = self.open_page(number)?.into();
        self.pages.put(self.serial, number, Arc::clone(&page));
        Ok(page)
    }

    fn open_page(&self, number: u64) -> io::Result<Vec<u8>> {
        let mut page = vec![0; PAGE + TAG];
        read_at(&self.file, &mut page, HEADER as u64 + number * (PAGE + TAG) as u64)?;
        self.seal.open(number, &mut page)?;
        page.truncate(PAGE);
        Ok(page)
    }
}

/// What was opened of a container goes with it: it may be closed because it is to be forgotten.
impl Drop for Container {
    fn drop(&mut self) {
        self.pages.remove(self.serial);
    }
}

/// What every page of one file is sealed with.
struct Seal {
    key: LessSafeKey,
    name: String,
    /// Length of the plain content, before padding.
    len: u64,
}

impl Seal {
    fn new(name: &str, key: &Key, len: u64) -> io::Result<Self> {
        let key = key.derive("index/pages");
        let key = UnboundKey::new(&AES_256_GCM, key.dangerously_expose_bytes()).map_err(|_| Damaged)?;
        if len > MAX_LEN {
            return Err(Damaged.into());
        }
        Ok(Self { key: LessSafeKey::new(key), name: name.to_owned(), len })
    }

    fn pages(&self) -> u64 {
        self.len.div_ceil(PAGE as u64)
    }

    fn file_len(&self) -> u64 {
        HEADER as u64 + self.pages() * (PAGE + TAG) as u64
    }

    fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(MAGIC);
        header[8..].copy_from_slice(&self.len.to_be_bytes());
        header
    }

    fn nonce(number: u64) -> Nonce {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&number.to_be_bytes());
        Nonce::assume_unique_for_key(nonce)
    }

    fn place(&self, number: u64) -> Aad<Vec<u8>> {
        let mut place = self.header().to_vec();
        place.extend_from_slice(&number.to_be_bytes());
        place.extend_from_slice(&self.pages().to_be_bytes());
        place.extend_from_slice(self.name.as_bytes());
        Aad::from(place)
    }

    fn seal<'a>(&self, number: u64, page: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        self.key
            .seal_in_place_append_tag(Self::nonce(number), self.place(number), page)
            .map_err(|_| Damaged)?;
        Ok(page)
    }

    fn open(&self, number: u64, page: &mut [u8]) -> io::Result<()> {
        self.key.open_in_place(Self::nonce(number), self.place(number), page).map_err(|_| Damaged)?;
        Ok(())
    }
}

/// A new file that only its owner can read.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt as _;
    file.read_exact_at(bytes, offset)
}

#[cfg(not(unix))]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    // One place for all handles on one file: two reads must not move it under each other.
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut file = file;
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}

const MAGIC: &[u8; 8] = b"cfdidx\x00\x01";
const HEADER: usize = 16;
/// Plain bytes of a page: small enough that a look at one term opens little, large enough that the tag costs 0.1 %.
pub(super) const PAGE: usize = 16 * 1024;
const TAG: usize = 16;
/// Reads of more pages than this pass the cache by.
const LONG: u64 = 32;
/// Far above a segment's size; keeps arithmetic on lengths from a damaged header in range.
const MAX_LEN: u64 = 1 << 40;

#[cfg(test)]
mod tests;
