//! Addresses of crypto-currency wallets: Bitcoin and its like with their checksums, Ethereum by its shape.

use std::ops::Range;

use sha2::{Digest as _, Sha256};

use super::{Family, Found, Rule, Trigger};
use crate::finding::Tier;

const fn wallet(
    id: &'static str,
    trigger: Trigger,
    pattern: &'static str,
    check: super::Check,
    matches: &'static [&'static str],
    misses: &'static [&'static str],
) -> Rule {
    let (tier, family) = (Tier::Noncritical, Family::Personal);
    Rule { id, label: "CRYPTO_WALLET", tier, family, trigger, pattern, check, matches, misses }
}

pub(super) static RULES: &[Rule] = &[
    wallet(
        "bitcoin_address",
        Trigger::Word(26, 35),
        "[13DLMTX][1-9A-HJ-NP-Za-km-z]{25,34}",
        base58,
        &["1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2", "to 3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy."],
        &["1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN3", "3abcdefghijkmnopqrstuvwxyz1234"],
    ),
    wallet(
        "bitcoin_segwit_address",
        Trigger::Keyword(&["bc1", "tb1", "ltc1", "addr1", "cosmos1"]),
        "(?i)(?:bc1|tb1|ltc1|addr1|cosmos1)[qpzry9x8gf2tvdw0s3jn54khce6mua7l]{38,110}",
        bech32,
        &[
            "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
            "BC1QAR0SRRR7XFKVY5L643LYDNW9RE59GTZZWF5MDQ",
            "bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr",
        ],
        &["bc1qshort", "bc1", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdx"],
    ),
    wallet(
        "ethereum_address",
        Trigger::Keyword(&["0x"]),
        "0x[0-9a-fA-F]{40}",
        ethereum,
        &["0x52908400098527886E0F7030069857D2E4169EE7"],
        &["0x529084000985", "0x0000000000000000000000000000000000000000"],
    ),
];

/// A version byte, a hash, and the first four bytes of their double SHA-256.
fn base58(found: &Found<'_>) -> Option<Range<usize>> {
    let mut bytes = [0u8; 26];
    for symbol in found.value() {
        let digit = ALPHABET.iter().position(|letter| letter == symbol)?;
        let mut carry = u32::try_from(digit).ok()?;
        for byte in bytes.iter_mut().rev() {
            carry += u32::from(*byte) * 58;
            *byte = (carry & 0xff) as u8;
            carry >>= 8;
        }
        if carry > 0 {
            return None;
        }
    }
    let right = bytes[0] == 0 && VERSIONS.contains(&bytes[1]) && checksum(&bytes[1..22]) == bytes[22..];
    (right && found.ends_well()).then(|| found.secret.clone())
}

/// The letters behind the last `1` hold a checksum over themselves and what stands before it; in one case.
fn bech32(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value().to_ascii_lowercase();
    let mixed = value != found.value() && value.to_ascii_uppercase() != found.value();
    let split = value.iter().rposition(|byte| *byte == b'1')?;
    let (name, data) = (&value[..split], &value[split + 1..]);
    let high = name.iter().map(|byte| byte >> 5);
    let low = name.iter().map(|byte| byte & 31);
    let letters = data.iter().map(|byte| BECH32.iter().position(|letter| letter == byte).unwrap_or(0) as u8);
    let sum = high.chain([0]).chain(low).chain(letters).fold(1u32, |sum, five| {
        let top = sum >> 25;
        let next = (sum & 0x01ff_ffff) << 5 ^ u32::from(five);
        (0..5).filter(|bit| top >> bit & 1 == 1).fold(next, |sum, bit| sum ^ BECH32_SUMS[bit])
    });
    (!mixed && matches!(sum, 1 | 0x2bc8_30a3) && found.ends_well()).then(|| found.secret.clone())
}

fn ethereum(found: &Found<'_>) -> Option<Range<usize>> {
    let digits = &found.value()[2..];
    let varied = digits.iter().collect::<std::collections::HashSet<_>>().len() >= 6;
    (varied && found.ends_well()).then(|| found.secret.clone())
}

fn checksum(payload: &[u8]) -> [u8; 4] {
    let twice = Sha256::digest(Sha256::digest(payload));
    [twice[0], twice[1], twice[2], twice[3]]
}

/// Of Bitcoin, Dogecoin, Litecoin, Dash and Tron.
const VERSIONS: &[u8] = &[0, 5, 22, 30, 48, 50, 65, 76];
const BECH32: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const BECH32_SUMS: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
