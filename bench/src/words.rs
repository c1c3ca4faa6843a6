//! Messages as the peers' measurements have them: 300 bytes of letters and some spaces that do not repeat.

/// How long a message is.
pub(crate) const MESSAGE_BYTES: usize = 300;

/// An endless supply of messages, the same in every run.
#[derive(Debug)]
pub(crate) struct Words(u64);

impl Words {
    pub(crate) fn new() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }

    /// A new message.
    pub(crate) fn message(&mut self) -> String {
        (0..MESSAGE_BYTES).map(|_| char::from(LETTERS[self.below(LETTERS.len())])).collect()
    }

    /// xorshift64*: good enough to keep a compressor and a tokenizer from finding repetitions.
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(high).unwrap_or_default() % limit
    }
}

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ     ";
