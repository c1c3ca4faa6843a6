//! The built-in encoder: a small sentence transformer (MiniLM, three layers) whose weights are in the program.
//!
//! English, 128 word pieces, 384 coordinates. Its weights are unpacked on first use, some 70 MB that stay; nothing is
//! loaded by making one.

use super::{Encoder, quantise, words};
use crate::{Error, Result};

/// The encoder that comes with the program.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltInEncoder;

impl Encoder for BuiltInEncoder {
    fn encode(&self, text: &str) -> Result<Option<Vec<i8>>> {
        // More than this has more word pieces than it looks at.
        let text = words::cut(text, BYTES).trim();
        if text.is_empty() {
            return Ok(None);
        }
        let embed = || pocket_encoder::Encoder::new()?.embed(&[text]);
        let vectors = embed().map_err(|_| {
            Error::unavailable("the built-in encoder failed", "search without it: memory.embeddings = false")
        })?;
        Ok(vectors.first().map(|vector| quantise(vector)))
    }
}

const BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::vectors::nearness;

    #[test]
    fn alike_texts_are_near() {
        let encode = |text: &str| BuiltInEncoder.encode(text).unwrap().unwrap();
        let bytes = |vector: &[i8]| vector.iter().map(|v| v.cast_unsigned()).collect::<Vec<u8>>();
        let (a, b, c) =
            (encode("signing in"), encode("login to an account"), encode("the weather in Lisbon"));
        assert!(nearness(&a, &bytes(&b)) > nearness(&a, &bytes(&c)) + 0.1);
        assert!(nearness(&a, &bytes(&a)) > 0.98);
        assert_eq!(BuiltInEncoder.encode(" \n").unwrap(), None);
        assert!(BuiltInEncoder.encode(&"word ".repeat(50_000)).unwrap().is_some());
    }
}
