use proptest::prelude::*;

use super::*;

const CONTEXT: Context<'_> =
    Context { purpose: "message", owner: "u_1", container: "c_1", object: "m_1", field: "content" };

fn key() -> Key {
    Key::from_bytes(std::array::from_fn(|i| i as u8))
}

fn reason(context: &Context<'_>, bytes: &[u8]) -> Option<Reason> {
    open_with_reason(&key(), context, &Sealed(bytes.to_vec())).err()
}

#[test]
fn first_vector_of_the_specification() {
    let sealed = seal_with_salt(&key(), Suite::Aes256Gcm, &CONTEXT, 3, &[0], &[9; 24]);
    let hex: String = sealed.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        "01016c3fb748b5227a7c00000003090909090909090909090909090909090909090909090909147901f8a110fd93ea9f3a7ee540\
         593a51c8ea34d32c8e2e37bdc814a585994f33c27ef15b07dae3f46eda9c4327d5d4645690a21ef97e21c6b526350d338c1faf40\
         59a639368c8472240fee672bab61f45d3ffbe29f329506331686ebbf877c1b2d40d9b3c07d6e79167f9e9e55ae57"
    );
    let opened = open(&key(), &CONTEXT, &sealed).unwrap();
    assert_eq!((opened.rev, opened.data.as_slice()), (3, &[0][..]));
    assert_eq!((sealed.rev(), sealed.kid()), (Some(3), Some(key().kid())));
    assert_eq!(sealed.suite(), Some(Suite::Aes256Gcm));
    assert_eq!(Sealed(vec![2; 150]).suite(), None);
    assert_eq!(sealed.tag().unwrap()[..2], [0x1b, 0x2d]);
    assert_eq!(Sealed::from_base64url(&sealed.to_base64url()), Ok(sealed));
}

#[test]
fn padding_is_the_specified_one() {
    for (plain, padded) in
        [(4, 64), (64, 64), (65, 72), (72, 72), (100, 104), (129, 144), (1000, 1024), (4097, 4352)]
    {
        assert_eq!(padded_len(plain - LENGTH), padded, "{plain}");
    }
    for data in 0..10_000 {
        let (len, padded) = (data + LENGTH, padded_len(data));
        assert!(padded >= len && (padded == 64 || padded * 100 <= len * 112), "{len} {padded}");
    }
}

#[test]
fn what_is_sealed_is_as_long_as_was_said() {
    for data in [0, 59, 60, 61, 1000, 65_472, 200_000] {
        let sealed = seal(&key(), Suite::Aes256Gcm, &CONTEXT, 1, &vec![7; data]);
        assert_eq!(sealed.as_bytes().len(), sealed_len(data), "{data}");
    }
}

#[test]
fn every_flipped_byte_and_every_cut_is_noticed() {
    let key = key();
    for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
        let good = seal(&key, suite, &CONTEXT, 7, b"hello").into_bytes();
        assert_eq!(reason(&CONTEXT, &good), None);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x80;
            let expected = match at {
                0 | 1 => Reason::Version,
                2..10 => Reason::Key,
                _ => Reason::Tamper,
            };
            assert_eq!(reason(&CONTEXT, &bad), Some(expected), "{at}");
            assert_eq!(reason(&CONTEXT, &good[..at]), Some(Reason::Format), "{at}");
        }
        let mut other_suite = good.clone();
        other_suite[1] ^= 3;
        assert_eq!(reason(&CONTEXT, &other_suite), Some(Reason::Tamper));
        assert_eq!(reason(&CONTEXT, &[good.as_slice(), &[0]].concat()), Some(Reason::Tamper));
    }
}

#[test]
fn authentic_records_with_other_padding_are_refused() {
    let seal_plain = |plain: &[u8]| {
        let write = |out: &mut [u8]| out.copy_from_slice(plain);
        seal_plain_with_salt(&key(), Suite::Aes256Gcm, &CONTEXT, 0, plain.len(), write, &[1; 24]).into_bytes()
    };
    let plain = |len: u32, size: usize| [len.to_be_bytes().as_slice(), &vec![0; size - 4]].concat();
    assert_eq!(reason(&CONTEXT, &seal_plain(&plain(60, 64))), None);
    let mut dirty = plain(5, 64);
    dirty[63] = 1;
    for bad in [plain(61, 64), plain(u32::MAX, 64), plain(5, 72), plain(61, 80), plain(61, 65), dirty] {
        assert_eq!(reason(&CONTEXT, &seal_plain(&bad)), Some(Reason::Padding));
    }
    assert_eq!(reason(&CONTEXT, &seal_plain(&plain(5, 40))), Some(Reason::Format));
}

#[test]
fn a_context_too_long_to_exist_opens_nothing() {
    let long = "x".repeat(65_536);
    let sealed = seal(&key(), Suite::Aes256Gcm, &CONTEXT, 0, b"");
    assert_eq!(open(&key(), &Context { owner: &long, ..CONTEXT }, &sealed).unwrap_err(), OpenFailed(()));
    assert_eq!(Context { field: &long, ..CONTEXT }.encode(), None);
    let fits = Context { owner: &long[1..], ..CONTEXT };
    let sealed = seal(&key(), Suite::Aes256Gcm, &fits, 0, b"");
    assert!(open(&key(), &fits, &sealed).is_ok());
}

#[test]
fn nothing_secret_or_personal_is_printed() {
    let sealed = seal(&key(), Suite::ChaCha20Poly1305, &CONTEXT, 0, b"secret");
    assert_eq!(format!("{sealed:?}"), "Sealed(150 bytes)");
    assert!(!format!("{:?}", open(&key(), &CONTEXT, &sealed).unwrap()).contains("115"));
    assert_eq!(format!("{CONTEXT:?}"), "Context { purpose: \"message\", .. }");
    assert_eq!(
        open(&Key::random(), &CONTEXT, &sealed).unwrap_err().to_string(),
        "the sealed record did not open: wrong key, wrong place or tampered"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_sealed_opens(data: Vec<u8>, rev: u32, fields: [String; 5], gcm: bool) {
        let [purpose, owner, container, object, field] = &fields;
        let context = Context { purpose, owner, container, object, field };
        let suite = if gcm { Suite::Aes256Gcm } else { Suite::ChaCha20Poly1305 };
        let opened = open(&key(), &context, &seal(&key(), suite, &context, rev, &data)).unwrap();
        prop_assert_eq!((opened.rev, &*opened.data), (rev, &data));
    }

    #[test]
    fn no_two_contexts_share_a_form(one in fields(), other in fields()) {
        let encode = |[purpose, owner, container, object, field]: &[String; 5]| {
            Context { purpose, owner, container, object, field }.encode()
        };
        prop_assert_eq!(one == other, encode(&one) == encode(&other));
    }

    #[test]
    fn any_bytes_are_refused_quietly(bytes: Vec<u8>) {
        let sealed = Sealed::from_bytes(bytes);
        let _ = (sealed.kid(), sealed.rev(), sealed.tag());
        prop_assert!(open(&key(), &CONTEXT, &sealed).is_err());
    }
}

fn fields() -> impl Strategy<Value = [String; 5]> {
    proptest::array::uniform5("[a\u{0}\u{1}]{0,2}")
}
