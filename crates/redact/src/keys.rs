//! Private keys as bytes: what stands in base64 and hexadecimal without the lines of PEM around it.
//!
//! A key is told by its structure, whatever its curve, size or program: PKCS #8 (plain and encrypted), SEC 1, PKCS #1, DSA,
//! PKCS #12, packets of PGP, OpenSSH, key stores of Java, blobs of Windows, expressions of gpg. Certificates, requests,
//! public keys and parameters have other structures. Only the beginning is read, since lines, windows and people cut keys
//! anywhere. That is also why DER is walked by hand: the crates for it (`der` with `pkcs8`, `sec1`, `pkcs1`, `pkcs12`) read
//! whole values and refuse one that is cut, as they refuse the indefinite lengths in which PKCS #12 is written by some; and
//! of all that they read, the shape is the one thing that is wanted here.

/// Whether bytes begin a private key. They may end anywhere; [`ENOUGH`] of them tell.
pub(crate) fn is_private_key(bytes: &[u8]) -> bool {
    match bytes.first() {
        Some(&SEQUENCE) => is_der(bytes),
        Some(0x94..=0x96 | 0x9c..=0x9e | 0xc5 | 0xc7) => is_pgp(bytes),
        _ => is_marked(bytes),
    }
}

/// Whether a private key can begin so: most bytes do not.
pub(crate) fn may_begin(first: u8) -> bool {
    matches!(
        first,
        SEQUENCE | 0x94..=0x96 | 0x9c..=0x9e | 0xc5 | 0xc7 | b'o' | b'S' | b'(' | 0xfe | 0xce | 0x07 | 0x1e
    )
}

/// A value of DER or BER, as much of it as is there.
struct Value<'b> {
    tag: u8,
    /// What it says; None if it does not (BER).
    length: Option<usize>,
    bytes: &'b [u8],
}

impl Value<'_> {
    fn is_cut(&self) -> bool {
        self.length.is_some_and(|length| length > self.bytes.len())
    }
}

/// Takes the next value off the bytes.
fn next<'b>(bytes: &mut &'b [u8]) -> Option<Value<'b>> {
    let [tag, first, rest @ ..] = *bytes else { return None };
    let (length, rest) = match first {
        0..=0x7f => (Some(usize::from(*first)), rest),
        0x80 => (None, rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (Some(digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit))), rest)
        }
        _ => return None,
    };
    let (inside, rest) = rest.split_at(length.unwrap_or(usize::MAX).min(rest.len()));
    *bytes = rest;
    Some(Value { tag: *tag, length, bytes: inside })
}

fn is_der(bytes: &[u8]) -> bool {
    let read = || {
        let outer = next(&mut &*bytes)?;
        let mut inside = outer.bytes;
        let first = next(&mut inside)?;
        if first.tag == SEQUENCE {
            // EncryptedPrivateKeyInfo: an algorithm for encrypting with passwords, and what it made.
            let oid = next(&mut &*first.bytes).filter(|oid| oid.tag == OID)?;
            return Some(oid.bytes.starts_with(PBES) || oid.bytes.starts_with(PBE_PKCS12));
        }
        let &[version] = first.bytes else { return None };
        let second = (first.tag == INTEGER).then(|| next(&mut inside))??;
        Some(match (version, second.tag) {
            (0 | 1, SEQUENCE) => is_pkcs8(&second, inside, outer.is_cut()),
            (1, OCTETS) => is_sec1(outer.length, &second, inside),
            (0 | 1, INTEGER) => is_numbers(&outer, &second),
            // PFX: version 3, and a ContentInfo of PKCS #7.
            (3, SEQUENCE) => {
                let oid = next(&mut &*second.bytes).filter(|oid| oid.tag == OID)?;
                matches!(oid.bytes.strip_prefix(PKCS7), Some([1 | 2]))
            }
            _ => false,
        })
    };
    read().unwrap_or(false)
}

/// Version, algorithm, key.
fn is_pkcs8(algorithm: &Value<'_>, mut rest: &[u8], cut: bool) -> bool {
    let Some(oid) = next(&mut &*algorithm.bytes).filter(|oid| oid.tag == OID) else { return false };
    // Version and OID begin parameters of curves and encrypted data, too.
    if oid.bytes.starts_with(PKCS7) || oid.bytes.starts_with(FIELD) {
        return false;
    }
    match next(&mut rest) {
        Some(key) => key.tag == OCTETS && key.length.is_none_or(|length| length >= LEAST_KEY),
        None => cut && FAMILIES.iter().any(|family| oid.bytes.starts_with(family)),
    }
}

/// Version, key, and perhaps the curve and the public half.
fn is_sec1(length: Option<usize>, key: &Value<'_>, mut rest: &[u8]) -> bool {
    let (Some(length), Some(own)) = (length, key.length) else { return false };
    let behind = length.checked_sub(own + 5);
    let told = match next(&mut rest) {
        Some(Value { tag: CURVE, bytes, .. }) => matches!(bytes.first(), None | Some(&(OID | SEQUENCE))),
        Some(Value { tag: PUBLIC, bytes, .. }) => matches!(bytes.first(), None | Some(&BITS)),
        Some(_) => false,
        None => true,
    };
    (LEAST_KEY..=LARGEST_SCALAR).contains(&own) && behind.is_some_and(|behind| behind < MOST_BEHIND) && told
}

/// Version and one large number after the other: RSA, and DSA as OpenSSL wrote it. Public keys have no version.
fn is_numbers(outer: &Value<'_>, first: &Value<'_>) -> bool {
    let (Some(length), Some(own)) = (outer.length, first.length) else { return false };
    own >= LEAST_MODULUS && length * 2 >= own * 5 && length <= own * 8
}

/// A packet of PGP with a secret key or subkey, by its version, time and algorithm.
fn is_pgp(bytes: &[u8]) -> bool {
    let read = || {
        let (tag, rest) = bytes.split_first()?;
        let lengths = match (tag, rest.first()?) {
            (0x94 | 0x9c, _) | (0xc5 | 0xc7, 0..=191) => 1,
            (0x95 | 0x9d, _) | (0xc5 | 0xc7, 192..=223) => 2,
            (0x96 | 0x9e, _) => 4,
            (_, 255) => 5,
            _ => return None,
        };
        let [version @ (4..=6), 0x2c..=0xa0, _, _, _, algorithm, key @ ..] = rest.get(lengths..)? else {
            return None;
        };
        // Later versions say how long the public half is.
        let key = if *version == 4 { key } else { key.get(4..)? };
        Some(match (algorithm, key) {
            (1..=3 | 16 | 17 | 20, [high, low, first, ..]) => {
                let bits = u32::from(u16::from_be_bytes([*high, *low]));
                (512..=16_384).contains(&bits) && first.leading_zeros() == (8 - bits % 8) % 8
            }
            (18 | 19 | 22, [3..=10, 0x2a | 0x2b, ..]) => true,
            (25..=28, _) => lengths == 1 && key.len() >= LEAST_KEY,
            _ => false,
        })
    };
    read().unwrap_or(false)
}

/// Formats that begin with a mark of their own.
fn is_marked(bytes: &[u8]) -> bool {
    let mark = MARKS.iter().any(|mark| bytes.starts_with(mark));
    // The first entry of a key store: a private key, not a certificate.
    let store = (bytes.starts_with(&[0xfe, 0xed, 0xfe, 0xed]) || bytes.starts_with(&[0xce; 4]))
        && bytes.get(4..7) == Some(&[0, 0, 0])
        && bytes.get(12..16) == Some(&[0, 0, 0, 1]);
    let blob = bytes.starts_with(&[7, 2, 0, 0]) && matches!(bytes.get(8..12), Some(b"RSA2" | b"DSS2"));
    mark || store || blob
}

/// So many bytes tell whether a private key begins.
pub(crate) const ENOUGH: usize = 96;
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BITS: u8 = 0x03;
const OCTETS: u8 = 0x04;
const OID: u8 = 0x06;
const CURVE: u8 = 0xa0;
const PUBLIC: u8 = 0xa1;
/// Shorter ones protect nothing.
const LEAST_KEY: usize = 14;
const LEAST_MODULUS: usize = 32;
/// 521 bits, with room.
const LARGEST_SCALAR: usize = 80;
/// A curve with all its parameters, and a point.
const MOST_BEHIND: usize = 1024;
/// 1.2.840.113549.1.5: passwords.
const PBES: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05];
/// 1.2.840.113549.1.12.1: passwords as in PKCS #12.
const PBE_PKCS12: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x0c, 0x01];
/// 1.2.840.113549.1.7.
const PKCS7: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07];
/// 1.2.840.10045.1: the field of a curve.
const FIELD: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x01];
/// What most keys are of, for those that are cut behind it: RSA, Diffie-Hellman, DSA, elliptic curves, Edwards and
/// Montgomery curves, and what NIST has numbered (ML-DSA and the like).
const FAMILIES: &[&[u8]] = &[
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01],
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x03],
    &[0x2a, 0x86, 0x48, 0xce, 0x38, 0x04],
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02],
    &[0x2b, 0x65],
    &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04],
];
const MARKS: &[&[u8]] = &[
    b"openssh-key-v1\0",
    b"SSH PRIVATE KEY FILE FORMAT 1.",
    b"(11:private-key(",
    b"(21:protected-private-key(",
    &[0x1e, 0xf1, 0xb5, 0xb0, 0, 0, 0, 0],
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ED25519: &[u8] =
        b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20abcdefghijklmnopqrstuvwxyz012345";

    #[test]
    fn a_key_is_told_wherever_it_is_cut() {
        for length in 14..=ED25519.len() {
            assert!(is_private_key(&ED25519[..length]), "{length}");
        }
        let long = b"\x30\x83\x00\x00\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20abcd";
        let endless = b"\x30\x80\x02\x01\x03\x30\x80\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01";
        assert!(is_private_key(long) && is_private_key(endless));
    }

    #[test]
    fn what_only_resembles_a_key_is_none() {
        for bytes in [
            // Parameters of a curve, encrypted data, a public key, a request of SNMP, a signature, nothing.
            &b"\x30\x81\xe0\x02\x01\x01\x30\x2c\x06\x07\x2a\x86\x48\xce\x3d\x01\x01\x02\x21\x00\xff\xff"[..],
            b"\x30\x50\x02\x01\x00\x30\x4b\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01\x30\x14",
            b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00abcdefghijkl",
            b"\x30\x29\x02\x01\x01\x04\x06public\xa0\x1c\x02\x04",
            b"\x30\x45\x02\x21\x00\xd1abcdefghijklmnopqrstuvwxyz01234\x02\x20abcdefghij",
            b"\x30",
            b"",
        ] {
            assert!(!is_private_key(bytes), "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..120), length in any::<u8>()) {
            let _ = is_private_key(&bytes);
            let _ = is_private_key(&[&[SEQUENCE, length, INTEGER, 1, length & 3], &bytes[..]].concat());
            let _ = is_private_key(&[&[0x94, length, 4], &bytes[..]].concat());
            prop_assert!(may_begin(ED25519[0]));
            if is_private_key(&bytes) {
                prop_assert!(may_begin(bytes[0]));
            }
        }
    }
}
