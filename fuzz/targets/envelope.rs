//! Opening never panics, a changed record never opens, and an authentic one opens to what was sealed.

#![no_main]

use confidant_seal::vectors::{
    Reason, open_with_reason, seal_plain_with_salt_insecure_for_testing, seal_with_salt_insecure_for_testing,
};
use confidant_seal::{Context, Key, Sealed, Suite, open};
use libfuzzer_sys::fuzz_target;

const CONTEXT: Context<'_> =
    Context { purpose: "message", owner: "u_1", container: "c_1", object: "m_1", field: "content" };

fuzz_target!(|input: &[u8]| {
    let key = Key::from_bytes([7; 32]);
    let Some((&choice, rest)) = input.split_first() else { return };
    let suite = if choice & 1 == 0 { Suite::Aes256Gcm } else { Suite::ChaCha20Poly1305 };
    match choice >> 1 & 3 {
        0 => arbitrary(&key, rest),
        1 => right_header(&key, suite, rest),
        2 => mutated(&key, suite, rest),
        _ => authentic(&key, suite, rest),
    }
});

/// Anything at all, as bytes and as text.
fn arbitrary(key: &Key, input: &[u8]) {
    let sealed = Sealed::from_bytes(input.to_vec());
    let _ = (sealed.kid(), sealed.rev(), sealed.tag());
    assert!(open(key, &CONTEXT, &sealed).is_err());
    assert_eq!(Sealed::from_base64url(&sealed.to_base64url()), Ok(sealed));
    if let Ok(text) = std::str::from_utf8(input)
        && let Ok(sealed) = Sealed::from_base64url(text)
    {
        assert_eq!(sealed.to_base64url(), text);
    }
}

/// Our version, suite and key id before anything at all.
fn right_header(key: &Key, suite: Suite, input: &[u8]) {
    let good = seal_with_salt_insecure_for_testing(key, suite, &CONTEXT, 1, b"", &[1; 24]).into_bytes();
    let bytes = [&good[..10], input].concat();
    if bytes != good {
        let reason = open_with_reason(key, &CONTEXT, &Sealed::from_bytes(bytes)).err();
        assert!(matches!(reason, Some(Reason::Format | Reason::Tamper)), "{reason:?}");
    }
}

/// A good record with bytes changed, cut or added: pairs of position and difference, then a length.
fn mutated(key: &Key, suite: Suite, input: &[u8]) {
    let Some((&[grow, len], edits)) = input.split_first_chunk::<2>() else { return };
    let data = vec![0xaa; usize::from(len)];
    let good = seal_with_salt_insecure_for_testing(key, suite, &CONTEXT, 5, &data, &[2; 24]).into_bytes();
    let mut bad = good.clone();
    for edit in edits.chunks_exact(3) {
        let at = usize::from(u16::from_be_bytes([edit[0], edit[1]])) % bad.len();
        bad[at] ^= edit[2];
    }
    if grow & 1 == 1 {
        bad.resize(bad.len() + usize::from(grow), 0);
    } else {
        bad.truncate(bad.len().saturating_sub(usize::from(grow)));
    }
    match open(key, &CONTEXT, &Sealed::from_bytes(bad.clone())) {
        Ok(opened) => assert!(bad == good && opened.rev == 5 && *opened.data == data),
        Err(_) => assert!(bad != good),
    }
}

/// Any plaintext under a valid tag: it opens exactly when sealing the result gives the same record again.
fn authentic(key: &Key, suite: Suite, input: &[u8]) {
    let sealed = seal_plain_with_salt_insecure_for_testing(key, suite, &CONTEXT, 5, input, &[3; 24]);
    match open_with_reason(key, &CONTEXT, &sealed) {
        Ok(opened) => {
            let again = seal_with_salt_insecure_for_testing(key, suite, &CONTEXT, 5, &opened.data, &[3; 24]);
            assert_eq!(again, sealed);
        }
        Err(reason) => assert_eq!(reason, if input.len() < 64 { Reason::Format } else { Reason::Padding }),
    }
    let sealed = seal_with_salt_insecure_for_testing(key, suite, &CONTEXT, 5, input, &[4; 24]);
    assert_eq!(open(key, &CONTEXT, &sealed).expect("just sealed").data.as_slice(), input);
}
