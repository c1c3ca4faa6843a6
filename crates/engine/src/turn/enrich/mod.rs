//! Stage 7: what is made of a finished turn. Off the answer's path: nobody waits for it, and a turn without it is whole.

mod enrichment;

pub use enrichment::Enrichment;
