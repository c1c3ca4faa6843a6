//! One file of the index: several named parts, sealed in pages and opened a page at a time.
//!
//! Owns the files on disk of everything but the manifest. A container is written once, under a key of its own, and never
//! changed; how a page is sealed is [`PageSeal`]'s business, and what the parts mean [`super::segment`]'s. Easy to get
//! wrong: a key must never seal two files. [`write()`] takes a name that has just been made for that reason.
//!
//! ```text
//! plain content = parts ‖ table of parts (JSON) ‖ length of the table (4)
//! ```
//!
//! Truncated, lengthened, swapped and rolled back pages are all [`Damaged`].

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use confidant_display::debug_without_content;
use confidant_seal::{Key, OpenFailed, PageSeal};
use tantivy::directory::OwnedBytes;

use super::pages::Pages;
use crate::regular;

/// Bytes of the index that are not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a file of the search index does not open: it was changed, truncated or swapped, or its key is gone")]
pub(super) struct Damaged;

impl From<Damaged> for io::Error {
    fn from(damaged: Damaged) -> Self {
        Self::new(io::ErrorKind::InvalidData, damaged)
    }
}

impl From<OpenFailed> for Damaged {
    fn from(_: OpenFailed) -> Self {
        Self
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
    let len = end + table.len() as u64 + table_len.len() as u64;
    let seal = PageSeal::new(key, name, len).ok_or(Damaged)?;
    let mut file = create(&folder.join(name))?;
    file.write_all(&seal.header())?;
    let mut page = Vec::with_capacity(PageSeal::SEALED);
    let mut number = 0;
    let pieces = parts.iter().map(|(_, bytes)| bytes.as_slice()).chain([table.as_slice(), &table_len]);
    for mut piece in pieces {
        while !piece.is_empty() {
            let (now, later) = piece.split_at(piece.len().min(PAGE - page.len()));
            page.extend_from_slice(now);
            piece = later;
            if page.len() == PAGE {
                seal.seal(number, &mut page);
                file.write_all(&page)?;
                page.clear();
                number += 1;
            }
        }
    }
    if !page.is_empty() {
        seal.seal(number, &mut page);
        file.write_all(&page)?;
    }
    file.sync_all()?;
    Ok(seal.file_len())
}

/// An open container.
pub(super) struct Container {
    file: File,
    seal: PageSeal,
    /// Names this container's pages in the cache of all.
    serial: u64,
    table: Vec<(String, u64, u64)>,
    pages: Arc<Pages>,
}

debug_without_content!(Container { pages: seal.pages() });

impl Container {
    /// Opens a container and its table of parts; the parts themselves are read when asked for.
    pub(super) fn open(folder: &Path, name: &str, key: &Key, pages: &Arc<Pages>) -> io::Result<Self> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let file = regular::open(&folder.join(name))
            .map_err(|error| if regular::is_not_regular(&error) { Damaged.into() } else { error })?;
        let mut header = [0; PageSeal::HEADER];
        read_at(&file, &mut header, 0).map_err(|_| Damaged)?;
        let seal = PageSeal::of_header(key, name, &header).map_err(Damaged::from)?;
        let len = seal.plain_len();
        if len < 4 || file.metadata()?.len() != seal.file_len() {
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
        if range.start > range.end || range.end > self.seal.plain_len() {
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
        let mut bytes = vec![0; count * PageSeal::SEALED];
        read_at(&self.file, &mut bytes, PageSeal::offset(first))?;
        let mut end = 0;
        for (number, start) in (first..).zip((0..bytes.len()).step_by(PageSeal::SEALED)) {
            let page = &mut bytes[start..start + PageSeal::SEALED];
            self.seal.open(number, page).map_err(Damaged::from)?;
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
        let mut page = vec![0; PageSeal::SEALED];
        read_at(&self.file, &mut page, PageSeal::offset(number))?;
        self.seal.open(number, &mut page).map_err(Damaged::from)?;
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
    static ONE: parking_lot::Mutex<()> = parking_lot::Mutex::new(());
    let _one = ONE.lock();
    let mut file = file;
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}

/// Plain bytes of a page.
pub(super) const PAGE: usize = PageSeal::PAGE;
/// Reads of more pages than this pass the cache by.
const LONG: u64 = 32;

#[cfg(test)]
mod tests;
