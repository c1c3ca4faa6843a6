//! Files that may be compressed with Zstandard, as newer Codex rollouts are.
//!
//! Owns telling by the first bytes (not by the name), several frames in one file, and the bound on what comes out: a few
//! kilobytes can unpack to terabytes. Nothing is unpacked to disk.

use std::fs::File;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Seek};
use std::path::Path;

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::regular;

/// The most that one file may unpack to.
const MOST_UNPACKED: u64 = 1 << 30;
/// The first bytes of a compressed file.
pub(crate) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A file to be read, unpacked if it is packed.
pub(crate) fn open(path: &Path) -> std::io::Result<Box<dyn BufRead>> {
    open_at_most(path, MOST_UNPACKED)
}

fn open_at_most(path: &Path, limit: u64) -> std::io::Result<Box<dyn BufRead>> {
    let mut file = regular::open(path)?;
    let mut first = Vec::with_capacity(MAGIC.len());
    file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut first)?;
    file.rewind()?;
    let source = BufReader::new(file);
    if first != MAGIC {
        return Ok(Box::new(source));
    }
    let unpacked = Unpacked { source, decoder: FrameDecoder::new(), in_frame: false, left: limit };
    Ok(Box::new(BufReader::new(unpacked)))
}

/// Frame after frame, until the limit. The decoder itself refuses windows over 100 MiB.
struct Unpacked {
    source: BufReader<File>,
    decoder: FrameDecoder,
    in_frame: bool,
    left: u64,
}

impl Unpacked {
    fn begin_frame(&mut self) -> std::io::Result<()> {
        match self.decoder.init(&mut self.source) {
            Ok(()) => self.in_frame = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                let mut passed = self.source.by_ref().take(u64::from(length));
                std::io::copy(&mut passed, &mut std::io::sink())?;
            }
            Err(_) => return Err(damaged()),
        }
        Ok(())
    }

    fn within_frame(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
            let one = BlockDecodingStrategy::UptoBlocks(1);
            self.decoder.decode_blocks(&mut self.source, one).map_err(|_| damaged())?;
        }
        self.decoder.read(into)
    }
}

impl Read for Unpacked {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame {
                if self.source.fill_buf()?.is_empty() {
                    return Ok(0);
                }
                self.begin_frame()?;
                continue;
            }
            let most = into.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
            if most == 0 {
                return Err(damaged());
            }
            let read = self.within_frame(&mut into[..most])?;
            self.left -= read as u64;
            if read > 0 {
                return Ok(read);
            }
            self.in_frame = false;
        }
    }
}

fn damaged() -> Error {
    Error::new(ErrorKind::InvalidData, "damaged or too long")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn unpack(bytes: &[u8], limit: u64) -> std::io::Result<Vec<u8>> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(bytes)?;
        let mut out = Vec::new();
        open_at_most(file.path(), limit)?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn frames_follow_each_other_and_some_are_skipped() {
        let mut packed = compress_to_vec(&b"one "[..], CompressionLevel::Fastest);
        packed.extend_from_slice(&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9]);
        packed.extend(compress_to_vec(&b"two"[..], CompressionLevel::Fastest));
        assert_eq!(unpack(&packed, 100).unwrap(), b"one two");
    }

    #[test]
    fn what_unpacks_to_too_much_is_damage() {
        let packed = compress_to_vec(&vec![b'a'; 1 << 20][..], CompressionLevel::Fastest);
        assert_eq!(unpack(&packed, 1 << 16).unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(unpack(&packed[..packed.len() / 2], 1 << 21).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn plain_files_are_read_as_they_are() {
        assert_eq!(unpack(b"plain", 1).unwrap(), b"plain");
        assert_eq!(unpack(b"", 1).unwrap(), b"");
    }
}
