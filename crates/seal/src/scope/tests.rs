use proptest::prelude::*;

use super::*;

fn tenant() -> TenantId {
    TenantId::new("acme").unwrap()
}

fn place(channel: &str, place: &str, thread: &str, user: &str) -> Scope {
    Scope::place(
        tenant(),
        ChannelName::any(channel).unwrap(),
        PlaceId::new(place).unwrap(),
        ThreadId::new(thread).unwrap(),
        UserId::any(user).unwrap(),
    )
}

fn person(channel: &str, user: &str) -> Scope {
    Scope::person(tenant(), ChannelName::any(channel).unwrap(), UserId::any(user).unwrap())
}

#[test]
fn session_ids_read_as_documented_and_parse_back() {
    let cases = [
        // The examples of the first system.
        (
            place("matrix", "!abc123:matrix.org", "main", "@alice:matrix.org"),
            "!abc123:matrix.org:main:@alice:matrix.org",
        ),
        (
            place("matrix", "!abc123:matrix.org", "$thread456", "@bob:matrix.org"),
            "!abc123:matrix.org:$thread456:@bob:matrix.org",
        ),
        (place("matrix", "!room", "main", "@alice"), "!room:main:@alice"),
        // Ports, IPv6, event ids with a server, rooms that look like a thread.
        (place("matrix", "!r:h.org:8448", "main", "@a:[::1]:8448"), "!r:h.org:8448:main:@a:[::1]:8448"),
        (place("matrix", "!r:[2001:db8::1]:80", "$e:h.org", "@a:h"), "!r:[2001:db8::1]:80:$e:h.org:@a:h"),
        (place("matrix", "!r:main", "main", "@a:main"), "!r:main:main:@a:main"),
        (place("matrix", "!r:", "$", "@"), "!r::$:@"),
        // Matrix scopes whose parts would make it parse another way.
        (place("matrix", "!r:$x", "main", "@a"), "matrix:!r%3A$x:main:@a"),
        (place("matrix", "!r", "main", "@a:@b"), "matrix:!r:main:@a%3A@b"),
        (place("matrix", "#r", "main", "@a"), "matrix:#r:main:@a"),
        (place("matrix", "!r", "other", "@a"), "matrix:!r:other:@a"),
        (place("matrix", "!r", "main", "a"), "matrix:!r:main:a"),
        (person("discord", "42"), "discord_conv:42"),
        (person("matrix", "@a:h.org"), "matrix_conv:@a%3Ah.org"),
        (person("x_conv", "u"), "x_conv_conv:u"),
        (place("x_conv", "a", "b", "c"), "x_conv:a:b:c"),
        (person("x", "a:b:c"), "x_conv:a%3Ab%3Ac"),
        (place("discord", "!r", "main", "@a"), "discord:!r:main:@a"),
        (place("web", "100%", "a:b", "é"), "web:100%25:a%3Ab:é"),
    ];
    for (scope, id) in cases {
        assert_eq!(scope.session_id(), id);
        assert_eq!(Scope::parse_any(tenant(), id), Ok(scope.clone()), "{id}");
        assert_eq!(Scope::from_canonical(&scope.canonical()), Ok(scope));
    }
}

#[test]
fn other_spellings_are_refused() {
    let cases = [
        ("matrix:!room:main:@alice", ScopeError::NotAsPrinted),
        ("!room:main:@alice:@bob", ScopeError::NotAsPrinted),
        ("!room:$a:$b:@alice", ScopeError::NotAsPrinted),
        ("web:e\u{301}:main:u", ScopeError::NotAsPrinted),
        ("web_conv:e\u{301}", ScopeError::NotAsPrinted),
        ("web_conv:a%3ab", ScopeError::Escape),
        ("web_conv:a%41", ScopeError::Escape),
        ("web_conv:100%", ScopeError::Escape),
        ("web_conv:%2", ScopeError::Escape),
        ("", ScopeError::UnknownForm),
        ("!room", ScopeError::UnknownForm),
        ("!room:@alice", ScopeError::UnknownForm),
        ("!room:other:@alice", ScopeError::UnknownForm),
        ("!room:main:alice", ScopeError::UnknownForm),
        ("web", ScopeError::UnknownForm),
        ("web:u", ScopeError::UnknownForm),
        ("web:p:u", ScopeError::UnknownForm),
        ("web:p:t:u:", ScopeError::UnknownForm),
        ("web:p:t:u:x:y", ScopeError::UnknownForm),
        ("_conv:u", ScopeError::Empty { part: "channel name" }),
        ("web_conv:", ScopeError::Empty { part: "user" }),
        ("web:p::u", ScopeError::Empty { part: "thread" }),
        ("Web:p:t:u", ScopeError::ChannelName),
        ("web:p:t:u\n", ScopeError::ControlCharacter { part: "user" }),
        (":main:@alice", ScopeError::UnknownForm),
    ];
    for (id, error) in cases {
        assert_eq!(Scope::parse_any(tenant(), id), Err(error), "{id:?}");
    }
}

#[test]
fn ids_are_checked_and_normalised() {
    assert_eq!(UserId::new("e\u{301}").unwrap().as_str(), "é");
    assert_eq!(UserId::new(""), Err(ScopeError::Empty { part: "user" }));
    assert_eq!(UserId::new("a\0"), Err(ScopeError::ControlCharacter { part: "user" }));
    assert_eq!(UserId::new("a\u{85}"), Err(ScopeError::ControlCharacter { part: "user" }));
    assert!(UserId::new(&"x".repeat(512)).is_ok());
    assert_eq!(UserId::new(&"x".repeat(513)), Err(ScopeError::TooLong { part: "user", limit: 512 }));
    // 170 syllables of nine bytes are 510 when composed, 171 are not.
    assert!(UserId::new(&"\u{1112}\u{1161}\u{11ab}".repeat(170)).is_ok());
    assert!(UserId::new(&"\u{1112}\u{1161}\u{11ab}".repeat(171)).is_err());
    for (name, ok) in [("a", true), ("a-b_2", true), ("", false), ("2a", false), ("_a", false), ("é", false)]
    {
        assert_eq!(ChannelName::new(name).is_ok(), ok, "{name}");
    }
    assert!(ChannelName::new(&"x".repeat(64)).is_ok());
    assert_eq!(
        ChannelName::new(&"x".repeat(65)),
        Err(ScopeError::TooLong { part: "channel name", limit: 64 })
    );
}

#[test]
fn debug_shows_no_id() {
    let scope = place("web", "secret", "secret", "secret");
    assert_eq!(format!("{scope:?} {:?}", scope.user()), "Scope(***) UserId(***)");
    assert_eq!((scope.place_id().unwrap().as_str(), scope.thread().unwrap().as_str()), ("secret", "secret"));
    assert_eq!((scope.tenant(), scope.channel().as_str(), scope.is_person()), (&tenant(), "web", false));
    let scope = person("web", "u");
    assert_eq!((scope.place_id(), scope.thread(), scope.is_person()), (None, None, true));
}

#[test]
fn canonical_bytes_are_strict() {
    let good = person("web", "u").canonical();
    assert_eq!(good, b"\x01\x02\x00\x04acme\x00\x03web\x00\x01u");
    assert!(Scope::from_canonical(&[good.as_slice(), b"x"].concat()).is_err());
    for cut in 0..good.len() {
        assert!(Scope::from_canonical(&good[..cut]).is_err(), "{cut}");
    }
    for bad in [
        &b"\x02\x02\x00\x04acme\x00\x03web\x00\x01u"[..],
        b"\x01\x03\x00\x04acme\x00\x03web\x00\x01u",
        b"\x01\x01\x00\x04acme\x00\x03web\x00\x01u",
        b"\x01\x02\x00\x04acme\x00\x03web\x00\x00",
        b"\x01\x02\x00\x04acme\x00\x03web\x00\x01\xff",
        b"\x01\x02\x00\x04acme\x00\x03web\x00\x03e\xcc\x81",
    ] {
        assert!(Scope::from_canonical(bad).is_err(), "{bad:?}");
    }
}

/// Text made of the pieces that the forms give a meaning to.
fn tricky() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("!"),
        Just("@"),
        Just("$"),
        Just(":"),
        Just("%"),
        Just("25"),
        Just("3A"),
        Just("main"),
        Just("_conv"),
        Just("matrix"),
        Just("a"),
        Just("b"),
        Just("é"),
        Just("e\u{301}"),
        Just("\u{301}"),
        Just("\u{1161}"),
    ];
    proptest::collection::vec(piece, 1..6).prop_map(|pieces| pieces.concat())
}

fn scopes() -> impl Strategy<Value = Scope> {
    let channel = prop_oneof![Just("matrix"), Just("web"), Just("web_conv"), Just("a")];
    let thread = prop_oneof![Just("main".to_owned()), tricky(), tricky().prop_map(|text| format!("${text}"))];
    let room = prop_oneof![tricky(), tricky().prop_map(|text| format!("!{text}"))];
    let user = prop_oneof![tricky(), tricky().prop_map(|text| format!("@{text}"))];
    (channel, room, thread, user, any::<bool>()).prop_map(|(channel, room, thread, user, alone)| {
        if alone { person(channel, &user) } else { place(channel, &room, &thread, &user) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_forms_are_undone_exactly(scope in scopes()) {
        prop_assert_eq!(Scope::parse_any(tenant(), &scope.session_id()), Ok(scope.clone()));
        prop_assert_eq!(Scope::from_canonical(&scope.canonical()), Ok(scope));
    }

    #[test]
    fn two_scopes_share_neither_form(one in scopes(), other in scopes()) {
        prop_assert_eq!(one == other, one.session_id() == other.session_id());
        prop_assert_eq!(one == other, one.canonical() == other.canonical());
    }

    #[test]
    fn any_text_that_parses_prints_the_same(id in prop_oneof![tricky(), ".*"]) {
        if let Ok(scope) = Scope::parse_any(tenant(), &id) {
            prop_assert_eq!(scope.session_id(), id);
        }
    }

    #[test]
    fn any_bytes_that_parse_print_the_same(bytes: Vec<u8>) {
        if let Ok(scope) = Scope::from_canonical(&bytes) {
            prop_assert_eq!(scope.canonical(), bytes);
        }
    }
}

#[test]
fn what_is_confidants_own_is_taken_from_nobody_else() {
    let reserved = |part| Err(ScopeError::Reserved { part });
    for channel in ["web", "accounts", "concepts"] {
        assert_eq!(ChannelName::new(channel).map(drop), reserved("channel name"));
        for id in [format!("{channel}_conv:alice"), format!("{channel}:place:main:alice")] {
            assert_eq!(Scope::parse(tenant(), &id).map(drop), reserved("channel name"), "{id}");
            let scope = Scope::parse_any(tenant(), &id).unwrap();
            assert_eq!(Scope::from_canonical(&scope.canonical()), Ok(scope), "what is stored opens");
        }
    }
    let account = "acct_aeaqcaibaeaqcaibaeaqcaibae";
    assert_eq!(UserId::new(account).map(drop), reserved("user"));
    assert_eq!(Scope::parse(tenant(), &format!("discord_conv:{account}")).map(drop), reserved("user"));
    // Neither other spellings of them nor names that only look alike.
    assert!(ChannelName::new("web2").is_ok() && UserId::new("acct").is_ok() && UserId::new("Acct_x").is_ok());
}
