//! Sealed pages: a file that is written once, under a key of its own, and read a page at a time.
//!
//! Owns the bytes of such a file, from header to last tag; leaves to callers the file itself and what its plain content
//! means. An envelope would have to be opened as a whole, and the search index reads a little of a large file. Easy to get
//! wrong: the nonce is the page's number, so a key must never seal two files.
//!
//! ```text
//! file   = header ‖ page 0 ‖ page 1 ‖ …
//! header = magic (8) ‖ plain length (8)
//! page   = AES-256-GCM(key.derive("index/pages"), nonce = 4 zero bytes ‖ page number (8), 16 KiB) ‖ tag (16)
//! aad    = header ‖ page number (8) ‖ number of pages (8) ‖ name of the file
//! ```
//!
//! So a page opens only at its place, in the file of its name, at its length: truncated, lengthened, swapped and rolled
//! back pages do not open. The last page is filled up with zeros.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::envelope::OpenFailed;
use crate::key::Key;

/// What every page of one file is sealed with.
pub struct PageSeal {
    key: LessSafeKey,
    name: String,
    plain_len: u64,
}

impl PageSeal {
    /// Bytes before the first page.
    pub const HEADER: usize = 16;
    /// Plain bytes of a page: small enough that a look at one term opens little, large enough that the tag costs 0.1 %.
    pub const PAGE: usize = 16 * 1024;
    /// Bytes of a page as it stands in the file.
    pub const SEALED: usize = Self::PAGE + TAG;

    /// For a file of this name that will hold so many plain bytes; nothing if they are more than 1 TiB. The key must be new.
    pub fn new(key: &Key, name: &str, plain_len: u64) -> Option<Self> {
        if plain_len > MAX_LEN {
            return None;
        }
        let key = key.derive(LABEL);
        let key =
            UnboundKey::new(&AES_256_GCM, key.dangerously_expose_bytes()).expect("AES-256 takes 32 bytes");
        Some(Self { key: LessSafeKey::new(key), name: name.to_owned(), plain_len })
    }

    /// For a file that was written, by its header. The header is believed only when a page opens.
    pub fn of_header(key: &Key, name: &str, header: &[u8; Self::HEADER]) -> Result<Self, OpenFailed> {
        let [magic @ .., l0, l1, l2, l3, l4, l5, l6, l7] = header;
        if magic != MAGIC {
            return Err(OpenFailed(()));
        }
        let plain_len = u64::from_be_bytes([*l0, *l1, *l2, *l3, *l4, *l5, *l6, *l7]);
        Self::new(key, name, plain_len).ok_or(OpenFailed(()))
    }

    /// What the file begins with.
    pub fn header(&self) -> [u8; Self::HEADER] {
        let mut header = [0; Self::HEADER];
        header[..MAGIC.len()].copy_from_slice(MAGIC);
        header[MAGIC.len()..].copy_from_slice(&self.plain_len.to_be_bytes());
        header
    }

    /// How many plain bytes the file holds, without the zeros at its end.
    pub fn plain_len(&self) -> u64 {
        self.plain_len
    }

    /// How many pages the file has.
    pub fn pages(&self) -> u64 {
        self.plain_len.div_ceil(Self::PAGE as u64)
    }

    /// How long the file is. Another length is another file.
    pub fn file_len(&self) -> u64 {
        Self::offset(self.pages())
    }

    /// Where in a file this page begins.
    pub fn offset(number: u64) -> u64 {
        Self::HEADER as u64 + number * Self::SEALED as u64
    }

    /// Seals the page with this number, in place. A page is sealed once: the number is its nonce.
    ///
    /// # Panics
    /// When there is more than a page.
    pub fn seal(&self, number: u64, page: &mut Vec<u8>) {
        assert!(page.len() <= Self::PAGE, "a page has at most 16 KiB");
        page.resize(Self::PAGE, 0);
        self.key
            .seal_in_place_append_tag(nonce(number), self.place(number), page)
            .expect("AES-GCM takes more than 16 KiB");
    }

    /// Opens the page with this number, in place: its first [`PageSeal::PAGE`] bytes are then plain, what follows is not.
    pub fn open(&self, number: u64, page: &mut [u8]) -> Result<(), OpenFailed> {
        let opened = self.key.open_in_place(nonce(number), self.place(number), page);
        opened.map(drop).map_err(|_| OpenFailed(()))
    }

    /// What a page is bound to.
    fn place(&self, number: u64) -> Aad<Vec<u8>> {
        let mut place = self.header().to_vec();
        place.extend_from_slice(&number.to_be_bytes());
        place.extend_from_slice(&self.pages().to_be_bytes());
        place.extend_from_slice(self.name.as_bytes());
        Aad::from(place)
    }
}

impl fmt::Debug for PageSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageSeal").field("pages", &self.pages()).finish_non_exhaustive()
    }
}

/// The page's number: each file has its own key.
fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

const MAGIC: &[u8; 8] = b"cfdidx\x00\x01";
const LABEL: &str = "index/pages";
const TAG: usize = 16;
/// Far above what anybody writes; keeps arithmetic on lengths from a damaged header in range.
const MAX_LEN: u64 = 1 << 40;

#[cfg(test)]
mod tests;
