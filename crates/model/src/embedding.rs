//! What embeddings are made of, and what they are.

use confidant_display::debug_without_content;

/// What embeddings are asked of.
#[derive(Clone, PartialEq)]
pub struct Embedding {
    /// The texts.
    pub input: EmbeddingInput,
    /// How many numbers each embedding is to have; unset leaves that to the model.
    pub dimensions: Option<u32>,
}

/// Texts, as they are or as tokens of the model's own vocabulary.
#[derive(Clone, PartialEq)]
pub enum EmbeddingInput {
    /// Texts.
    Texts(Vec<String>),
    /// Texts as tokens.
    Tokens(Vec<Vec<u32>>),
}

impl EmbeddingInput {
    /// How many texts there are.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Self::Texts(texts) => texts.len(),
            Self::Tokens(texts) => texts.len(),
        }
    }
}

/// Embeddings.
#[derive(Clone, PartialEq)]
pub struct Embedded {
    /// One for each input, in their order, all equally long.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens of the input as the provider counted them, if it did.
    pub tokens: Option<u32>,
}

debug_without_content!(Embedding { dimensions });
debug_without_content!(EmbeddingInput);
debug_without_content!(Embedded { tokens });
