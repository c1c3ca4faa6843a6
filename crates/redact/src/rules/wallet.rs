//! Addresses of crypto-currency wallets: Bitcoin and its like with their checksums, Ethereum by its shape.

use std::ops::Range;

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
    let once = sha256(payload);
    let twice = sha256(&once);
    [twice[0], twice[1], twice[2], twice[3]]
}

/// SHA-256 of at most 55 bytes: one block. Too little to carry a crate of hashes for.
fn sha256(message: &[u8]) -> [u8; 32] {
    let mut block = [0u8; 64];
    block[..message.len()].copy_from_slice(message);
    block[message.len()] = 0x80;
    block[56..].copy_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    let mut words = [0u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for at in 16..64 {
        let (a, b) = (words[at - 15], words[at - 2]);
        let s0 = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
        let s1 = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
        words[at] = words[at - 16].wrapping_add(s0).wrapping_add(words[at - 7]).wrapping_add(s1);
    }
    let mut h = START;
    for at in 0..64 {
        let s1 = h[4].rotate_right(6) ^ h[4].rotate_right(11) ^ h[4].rotate_right(25);
        let choice = (h[4] & h[5]) ^ (!h[4] & h[6]);
        let one = h[7].wrapping_add(s1).wrapping_add(choice).wrapping_add(ROUNDS[at]).wrapping_add(words[at]);
        let s0 = h[0].rotate_right(2) ^ h[0].rotate_right(13) ^ h[0].rotate_right(22);
        let most = (h[0] & h[1]) ^ (h[0] & h[2]) ^ (h[1] & h[2]);
        let two = s0.wrapping_add(most);
        h = [one.wrapping_add(two), h[0], h[1], h[2], h[3].wrapping_add(one), h[4], h[5], h[6]];
    }
    let mut digest = [0; 32];
    for (at, bytes) in digest.chunks_exact_mut(4).enumerate() {
        bytes.copy_from_slice(&START[at].wrapping_add(h[at]).to_be_bytes());
    }
    digest
}

/// Of Bitcoin, Dogecoin, Litecoin, Dash and Tron.
const VERSIONS: &[u8] = &[0, 5, 22, 30, 48, 50, 65, 76];
const BECH32: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const BECH32_SUMS: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const START: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];
const ROUNDS: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];
