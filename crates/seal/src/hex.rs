//! Lower-case hexadecimal for key ids and tags.

use std::fmt::{self, Write as _};

/// Tags are written into the context of every record, so this is by table and not by `{:02x}`.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    for byte in bytes {
        f.write_char(DIGITS[usize::from(byte >> 4)])?;
        f.write_char(DIGITS[usize::from(byte & 0x0f)])?;
    }
    Ok(())
}

const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];

/// Reads exactly `N` bytes; either case.
pub(crate) fn read<const N: usize>(text: &str) -> Option<[u8; N]> {
    let text = text.as_bytes();
    if text.len() != 2 * N {
        return None;
    }
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(out)
}

fn digit(c: u8) -> Option<u8> {
    char::from(c).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
