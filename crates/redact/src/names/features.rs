//! The features a token shows to the model, as rows of its table.
//!
//! Their order and their hashing are the format of `names.bin`: the trainer includes this file by path.

use super::text::{EDGE, Token};

/// Features index a table of this many rows, as a power of two.
pub(crate) const BITS: u32 = 19;
/// Columns of the weight table: begin, inside, other entity. Outside is the zero they are measured from.
pub(crate) const COLUMNS: usize = 3;

/// Calls `each` with the table row of every feature of the token at `at`.
pub(crate) fn features(tokens: &[Token], at: usize, mut each: impl FnMut(usize)) {
    let Some(here) = tokens.get(at) else { return };
    let near = |distance: isize| {
        at.checked_add_signed(distance).and_then(|index| tokens.get(index)).unwrap_or(&EDGE)
    };
    let (before, after, before2, after2) = (near(-1), near(1), near(-2), near(2));
    let mut kind = 0_u32;
    let mut put = |parts: &[u32]| {
        kind += 1;
        let mut hash = kind.wrapping_mul(0x9E37_79B1);
        for part in parts {
            hash = (hash ^ part).wrapping_mul(0x85EB_CA6B);
            hash ^= hash >> 15;
        }
        each((hash.wrapping_mul(0xC2B2_AE35) >> (32 - BITS)) as usize);
    };
    let regime = u32::from(here.regime);
    let (case, own) = (here.case as u32, known(here));
    put(&[]);
    put(&[here.low]);
    put(&[before.low]);
    put(&[after.low]);
    put(&[before2.low]);
    put(&[after2.low]);
    put(&[before.low, here.low]);
    put(&[here.low, after.low]);
    put(&[before2.low, before.low]);
    put(&[after.low, after2.low]);
    put(&[here.shape]);
    put(&[before.shape, here.shape]);
    put(&[here.shape, after.shape]);
    put(&[before.case as u32, case, after.case as u32]);
    put(&[case, regime, u32::from(here.opens)]);
    for affix in here.affixes {
        put(&[affix]);
    }
    put(&[here.affixes[2], case, u32::from(here.flags != 0)]);
    put(&[u32::from(here.flags)]);
    put(&[u32::from(here.flags), case, regime]);
    put(&[own, regime, u32::from(here.opens)]);
    put(&[known(before)]);
    put(&[known(after)]);
    put(&[known(before), own]);
    put(&[own, known(after)]);
    put(&[known(before), own, known(after)]);
    put(&[known(before2), known(before), own]);
    put(&[own, known(after), known(after2)]);
    put(&[u32::from(here.cluster), case]);
    put(&[u32::from(before.cluster)]);
    put(&[u32::from(after.cluster)]);
    put(&[u32::from(before2.cluster)]);
    put(&[u32::from(after2.cluster)]);
    put(&[u32::from(before.cluster >> 3), u32::from(after.cluster >> 3), own]);
    put(&[u32::from(here.cluster >> 3), case]);
    put(&[u32::from(before2.cluster >> 3), u32::from(before.cluster >> 3), own]);
    put(&[u32::from(after.cluster >> 3), u32::from(after2.cluster >> 3), own]);
    put(&[u32::from(before.cluster), own]);
    put(&[own, u32::from(after.cluster)]);
    put(&[u32::from(before.cluster), u32::from(here.cluster)]);
    put(&[u32::from(here.cluster), u32::from(after.cluster)]);
    put(&[u32::from(before.cluster), case, u32::from(after.cluster)]);
    put(&[before.low, own]);
    put(&[own, after.low]);
    put(&[before.low, case]);
    put(&[case, after.low]);
    put(&[before2.low, before.low, own]);
    put(&[before.low, case, after.low]);
    written([before2, before, here, after, after2], &mut put);
    put(&[u32::from(here.glue), case]);
    put(&[u32::from(here.glue), own, regime]);
}

/// How people write the word and its neighbours, and in what kind of text it stands.
fn written([before2, before, here, after, after2]: [&Token; 5], put: &mut impl FnMut(&[u32])) {
    let (case, own, regime) = (here.case as u32, known(here), u32::from(here.regime));
    let (brown, other) = (u32::from(here.brown), u32::from(here.other));
    let (kin, kin_before, kin_after) = (brown & 0x3F, u32::from(before.brown), u32::from(after.brown));
    put(&[brown, case]);
    put(&[brown & 0xFF, case, regime]);
    put(&[kin, case, own]);
    put(&[other, case]);
    put(&[u32::from(here.usage), case]);
    put(&[u32::from(here.usage >> 4), case, regime, u32::from(here.opens)]);
    put(&[u32::from(here.usage >> 4), own]);
    put(&[kin_before, case]);
    put(&[case, kin_after]);
    put(&[kin_before & 0xFF, own]);
    put(&[own, kin_after & 0xFF]);
    put(&[kin_before & 0x3F, kin, case]);
    put(&[kin, case, kin_after & 0x3F]);
    put(&[kin_before & 0xFF, kin_after & 0xFF, case]);
    put(&[kin_before & 0x3F, kin_after & 0x3F, own]);
    put(&[u32::from(before2.brown), kin_before, case]);
    put(&[kin_after, u32::from(after2.brown), case]);
    put(&[u32::from(before.usage >> 4), u32::from(here.usage >> 4), u32::from(after.usage >> 4), case]);
    let tone = here.tone as u32;
    put(&[tone, case, regime, u32::from(here.opens)]);
    put(&[tone, own]);
    put(&[tone, u32::from(here.usage), case]);
    put(&[tone, kin, case]);
    put(&[tone, kin_before & 0x3F, case]);
    put(&[tone, case, kin_after & 0x3F]);
}

/// Name, place and word bits with the case: coarse enough to combine.
fn known(token: &Token) -> u32 {
    let flags = u32::from(token.flags);
    let some = |shift: u32| u32::from((flags >> shift) & 3 != 0);
    let (first, last) = (flags & 3, some(2));
    first
        | last << 2
        | some(4) << 3
        | (flags >> 6) << 4
        | (token.case as u32) << 6
        | u32::from(flags == 0) << 10
}
