//! The committed vectors are what the code writes, and every case holds through the public API.

#[path = "../examples/vectors/build.rs"]
mod build;

use build::{Seal, Vectors, context, hex, reason_name};
use confidant_seal::vectors::{open_with_reason, padded_len, seal_with_salt_insecure_for_testing};
use confidant_seal::*;

const COMMITTED: &str = include_str!("../../../vectors/seal-v1.json");

fn committed() -> Vectors {
    serde_json::from_str(COMMITTED).expect("the file parses")
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("hex"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect()
}

fn key(hex: &str) -> Key {
    Key::from_bytes(bytes(hex).try_into().expect("32 bytes"))
}

fn sealed(hex: &str) -> Sealed {
    Sealed::from_bytes(bytes(hex))
}

fn holds(case: &Seal) {
    let (key, context, data) = (key(&case.key), context(&case.context), bytes(&case.data));
    let suite = [Suite::Aes256Gcm, Suite::ChaCha20Poly1305][usize::from(case.suite) - 1];
    let salt = bytes(&case.salt).try_into().expect("24 bytes");
    let again = seal_with_salt_insecure_for_testing(&key, suite, &context, case.rev, &data, &salt);
    assert_eq!(hex(again.as_bytes()), case.sealed, "{}", case.name);
    let opened = open(&key, &context, &sealed(&case.sealed)).expect(&case.name);
    assert_eq!((opened.rev, &*opened.data), (case.rev, &data), "{}", case.name);
}

#[test]
fn the_committed_file_is_what_the_code_writes() {
    let same = COMMITTED == build::text();
    assert!(same, "run `cargo run -p confidant-seal --example vectors` and look at what changed");
}

#[test]
fn keys_and_names() {
    let vectors = committed();
    for case in vectors.kids {
        assert_eq!(key(&case.key).kid().to_string(), case.kid);
    }
    for case in vectors.sub_keys {
        let sub_key = key(&case.key).derive(&case.label);
        assert_eq!(
            (sub_key.clone(), sub_key.kid().to_string()),
            (key(&case.sub_key), case.kid),
            "{}",
            case.label
        );
    }
    for case in vectors.roots {
        assert_eq!(MasterKey::from_base64(&case.master_base64).unwrap().root(), key(&case.root));
    }
    for case in vectors.macs {
        let (key, bytes) = (key(&case.key), bytes(&case.bytes));
        assert_eq!(hex(&key.mac(&case.domain, &bytes)), case.mac);
        assert_eq!(Some(key.tag(&case.domain, &bytes)), Tag::from_hex(&case.tag));
    }
}

#[test]
fn envelopes() {
    let vectors = committed();
    for case in vectors.contexts {
        assert_eq!(context(&case.context).encode(), Some(bytes(&case.encoded)));
    }
    for case in vectors.padding {
        assert_eq!(padded_len(case.data), case.plain, "{}", case.data);
    }
    vectors.seals.iter().for_each(holds);
}

#[test]
fn wraps() {
    let vectors = committed();
    let scope = |hex: &str| Scope::from_canonical(&bytes(hex)).unwrap();
    for case in vectors.session_keys {
        holds(&case.seal);
        let (roots, sealed) = (Roots::new(key(&case.root), vec![]), sealed(&case.seal.sealed));
        let opened = unwrap_session_key(&roots, &scope(&case.scope), case.generation, &sealed);
        assert_eq!(opened, Ok(key(&case.data_key)));
        assert_eq!(root_of(&roots, &sealed), Some(roots.current().kid()));
    }
    for case in vectors.named_keys {
        holds(&case.seal);
        let roots = Roots::new(key(&case.root), vec![]);
        let opened = unwrap_named_key(&roots, &case.name, &sealed(&case.seal.sealed));
        assert_eq!(opened, Ok(key(&case.named_key)));
    }
    for case in vectors.sealed_scopes {
        holds(&case.seal);
        let roots = Roots::new(key(&case.root), vec![]);
        let opened = unwrap_scope(&roots, &Tag::from_hex(&case.tag).unwrap(), &sealed(&case.seal.sealed));
        assert_eq!(opened, Ok(scope(&case.scope)));
    }
}

#[test]
fn scopes() {
    let vectors = committed();
    let tenant = || TenantId::new("acme").unwrap();
    for case in vectors.scopes {
        let scope = Scope::from_canonical(&bytes(&case.canonical)).unwrap();
        assert_eq!(hex(&scope.canonical()), case.canonical);
        assert_eq!(scope.session_id(), case.session_id);
        assert_eq!(Scope::parse_any(tenant(), &case.session_id), Ok(scope.clone()));
        let found = (scope.tenant().as_str(), scope.channel().as_str(), scope.user().as_str());
        assert_eq!(found, (case.tenant.as_str(), case.channel.as_str(), case.user.as_str()));
        assert_eq!(scope.place_id().map(PlaceId::as_str), case.place.as_deref());
        assert_eq!(scope.thread().map(ThreadId::as_str), case.thread.as_deref());
    }
    for id in vectors.refused_session_ids {
        assert!(Scope::parse_any(tenant(), &id).is_err(), "{id:?}");
    }
    for hex in vectors.refused_scopes {
        assert!(Scope::from_canonical(&bytes(&hex)).is_err(), "{hex}");
    }
}

#[test]
fn what_must_fail_fails_for_its_reason() {
    for case in committed().must_fail {
        let (key, context, sealed) = (key(&case.key), context(&case.context), sealed(&case.sealed));
        let reason = open_with_reason(&key, &context, &sealed).err().map(reason_name);
        assert_eq!(reason, Some(case.reason.as_str()), "{}", case.name);
        assert!(open(&key, &context, &sealed).is_err(), "{}", case.name);
    }
}
