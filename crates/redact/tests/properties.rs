//! What holds for every input.

use base64::Engine as _;
use confidant_redact::{Numbering, Options, Redactor};
use proptest::prelude::*;
use serde_json::json;

fn redactor() -> Redactor {
    Redactor::new(Options::default()).expect("no lists of words were given")
}

proptest! {
    #[test]
    fn places_exist_and_twice_is_once(text in "(password|token|key|Bearer|@|=|: |\"|\n|\\\\n|%40|[a-zA-Z0-9]{1,24}|[0-9 .-]{1,14}|\u{200b}|\u{e9}){0,24}") {
        let redactor = redactor();
        let redacted = redactor.redact_text(&text);
        let mut end = 0;
        for finding in &redacted.findings {
            prop_assert!(end <= finding.start && finding.start < finding.end && finding.end <= text.chars().count());
            end = finding.end;
        }
        prop_assert_eq!(&redactor.redact_text(&redacted.text).text, &redacted.text);
    }

    #[test]
    fn twice_is_once_with_placeholders_among_keys(text in "(-----(BEGIN|END) RSA PRIVATE KEY-----|Authorization: (Basic |Bearer )?|Bearer |curl -u |<REDACTED:(EMAIL|AUTHORIZATION|BEARER_TOKEN|PRIVATE_KEY)(:[0-9])?>|a@example.org|[ \n]|[a-zA-Z0-9+/=]{1,40}|[a-z]{1,8} ){0,24}") {
        let redactor = redactor();
        let redacted = redactor.redact_text(&text);
        prop_assert_eq!(&redactor.redact_text(&redacted.text).text, &redacted.text);
    }
}

#[test]
fn json_is_redacted_in_every_leaf_and_key() {
    let nested = json!({ "log": ["Authorization: Basic amFuZTpodW50ZXIy"] }).to_string();
    let value = json!({
        "jane@example.org": 1,
        "john@example.org": 2,
        "card": 4_111_111_111_111_111_u64,
        "env": [{ "name": "DB_PASSWORD", "value": "tr0ub4dor&3" }],
        "body": nested,
    });
    let redacted = redactor().redact_json(&value);
    let text = redacted.value.to_string();
    for secret in ["jane", "john", "4111", "tr0ub4dor", "amFuZTp"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    assert!(redacted.blocked);
    assert_eq!(redacted.value.as_object().unwrap().len(), 5);
    assert!(redacted.findings.iter().all(|finding| !finding.path.as_ref().unwrap().contains("jane")));
}

#[test]
fn numbers_are_of_the_document() {
    let mut options = Options::default();
    options.numbering = Numbering::PerDocument;
    let redacted = Redactor::new(options).unwrap().redact_json(&json!(["a@x.org", "b@x.org", "a@x.org"]));
    assert_eq!(redacted.value, json!(["<REDACTED:EMAIL:1>", "<REDACTED:EMAIL:2>", "<REDACTED:EMAIL:1>"]));
}

#[test]
fn disguises_and_wrappings_do_not_help() {
    let cases = [
        "j\u{200b}ane@exam\u{ad}ple.org",
        "\u{ff4a}\u{ff41}\u{ff4e}\u{ff45}\u{ff20}example.org",
        "jane%40example.org",
        "{\\\"to\\\":\\\"jane\\u0040example.org\\\"}",
        "bWFpbCBpcyBqYW5lQGV4YW1wbGUub3JnIHllcw==",
        "4111\u{a0}1111\u{a0}1111\u{a0}1111",
        "curl \\\n  -H 'Authorization: Basic amFuZTpodW50ZXIy'",
    ];
    for case in cases {
        assert!(!redactor().redact_text(case).findings.is_empty(), "{case:?}");
    }
}

/// A private key in lines, with a comment where the format has one.
fn key(comment: &str) -> String {
    let line = "MC4CAQAwBQYDK2VwBCIEIG1k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bN".to_owned();
    let kind = "PGP PRIVATE KEY BLOCK";
    format!("-----BEGIN {kind}-----\nComment: {comment}\n\n{line}\n{line}\n-----END {kind}-----\n")
}

#[test]
fn base64_is_read_behind_a_name_and_to_its_end() {
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let redactor = redactor();
    for text in [
        format!("SSH_KEY_B64={}", encode(&key("none"))),
        format!("export A=1\nKEY={}\nB=2", encode(&key("none"))),
        format!("https://example.org/?a=b&data={}&c=d", encode(&key("none"))),
        format!(
            "{{\"blob\": \"{}\"}}",
            encode(&format!("{}{}", "plain words of a log\n".repeat(2000), key("none")))
        ),
        format!("blob={}", encode(&format!("{}{}", "words of a longer log\n".repeat(30_000), key("none")))),
    ] {
        let redacted = redactor.redact_text(&text);
        assert!(redacted.blocked, "{}", &text[..40]);
        assert!(redactor.redact_text(&redacted.text).findings.is_empty());
    }
}

#[test]
fn a_placeholder_inside_does_not_hide_what_is_critical() {
    let line = "AAAAIHk3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bN";
    let putty = |lines: &str| {
        format!(
            "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: <REDACTED:EMAIL>\n\
             Public-Lines: 1\n{line}\nPrivate-Lines: 1\n{lines}\nPrivate-MAC: 0f3a9c5b7d1e2f4a6b8c0d9e1f2a3b4c\n"
        )
    };
    let redactor = redactor();
    for text in [
        key("<REDACTED:EMAIL>"),
        key("<REDACTED:EMAIL> and <REDACTED:NAME:2>"),
        format!("see\n{}and <REDACTED:PHONE>", key("jane@example.org <REDACTED:EMAIL>")),
        putty(line),
        "Authorization: Bearer k3Jd9fQw7eRt5yUi1oPa8s<REDACTED:EMAIL>".to_owned(),
    ] {
        let redacted = redactor.redact_text(&text);
        assert!(redacted.blocked, "{text}");
        assert!(!redacted.text.contains("k3Jd9fQw7eRt"), "{}", redacted.text);
        let again = redactor.redact_text(&redacted.text);
        assert_eq!((again.findings.len(), again.text), (0, redacted.text));
    }
    // Taken out already.
    let emptied = "-----BEGIN RSA PRIVATE KEY-----\n<REDACTED:PRIVATE_KEY>\n-----END RSA PRIVATE KEY-----";
    for text in [emptied, &putty("<REDACTED:PRIVATE_KEY>"), "Authorization: Basic <REDACTED:AUTHORIZATION>"] {
        assert!(!redactor.redact_text(text).blocked, "{text}");
    }
}

#[test]
fn what_replacing_leaves_is_not_read_across_what_is_left_out() {
    let far = "nothing of note is told here. ".repeat(700);
    let text = format!(
        "grep -----BEGIN RSA PRIVATE KEY----- in files\n(a@example.org)\n{far}\nb@example.org\non internationalisation -----END"
    );
    let redacted = redactor().redact_text(&text);
    assert_eq!((redacted.blocked, redacted.findings.len()), (false, 2), "{:?}", redacted.report);
}

#[test]
fn the_strings_of_an_array_are_read_together() {
    let whole = key("none");
    let lines: Vec<&str> = whole.lines().collect();
    let broken: Vec<String> = whole.lines().map(|line| format!("{line}\n")).collect();
    let encoded = base64::engine::general_purpose::STANDARD.encode(&whole);
    let wrapped: Vec<&str> =
        encoded.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
    let redactor = redactor();
    for value in [
        json!({ "cells": [{ "source": broken }] }),
        json!({ "lines": lines }),
        json!({ "nested": json!({ "lines": lines }).to_string() }),
        json!({ "lines": [1, lines, null, { "of": lines }] }),
        json!({ "wrapped": wrapped }),
        json!({ "rawHeaders": ["Host", "example.org", "Authorization", "Basic amFuZTpodW50ZXIy"] }),
        json!([["Proxy-Authorization", "Basic amFuZTpodW50ZXIy"]]),
        json!(["authorization", "Digest username=\"jane\", response=\"6629fae49393a05397450978507c4ef1\""]),
    ] {
        let redacted = redactor.redact_json(&value);
        assert!(redacted.blocked, "{value}");
        let text = redacted.value.to_string();
        assert!(!text.contains("k3Jd9") && !text.contains("amFuZ") && !text.contains("6629f"), "{text}");
        let again = redactor.redact_json(&redacted.value);
        assert_eq!((again.findings.len(), &again.value), (0, &redacted.value), "{text}");
    }
    let words = json!({ "tags": ["authorization", "required", "bearer", "token", "-----BEGIN", "private"] });
    assert_eq!(redactor.redact_json(&words).findings, []);
}

#[test]
fn a_find_in_several_strings_is_told_for_each() {
    let whole = format!("a: {}", key("none"));
    let lines: Vec<&str> = whole.trim_end().lines().collect();
    let around = |lines: &[&str]| {
        let lines = [&["\u{e9}\u{20ac}"], lines, &["<end>"]].concat();
        json!({ "lines": lines })
    };
    let redacted = redactor().redact_json(&around(&lines));
    let places: Vec<_> =
        redacted.findings.iter().map(|f| (f.path.as_deref().unwrap(), f.start, f.end)).collect();
    let length = |at: usize| lines[at].len();
    let expected = [
        ("/lines/1", 3, length(0)),
        ("/lines/2", 0, length(1)),
        ("/lines/4", 0, length(3)),
        ("/lines/5", 0, length(4)),
        ("/lines/6", 0, length(5)),
    ];
    assert_eq!(places, expected);
    let placeholder = "<REDACTED:PRIVATE_KEY>";
    let first = format!("a: {placeholder}");
    let left = [&first, placeholder, "", placeholder, placeholder, placeholder];
    assert_eq!(redacted.value, around(&left));
}

/// A short word comes up by chance in one token of a hundred.
#[test]
fn a_word_by_chance_makes_no_stand_in() {
    let signature = "k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bNm3QwErTy";
    let payload = "eyJzdWIiOiJhYmMifQ";
    let redactor = redactor();
    for chance in ["TodO", "xMy-q", "3FaKe7", "yOur9", "9some-1"] {
        for token in [
            format!("eyJhbGciOiJSUzI1NiJ9.{payload}.{signature}{chance}{signature}"),
            format!("{signature}{chance}{signature}"),
        ] {
            for text in [format!("Authorization: Bearer {token}"), format!("Bearer {token}")] {
                assert!(redactor.redact_text(&text).blocked, "{text}");
            }
        }
    }
    let stand_in = "Authorization: Bearer eyJhbGciOiJSUzI1NiJ9.your-token-here.fake";
    assert!(!redactor.redact_text(stand_in).blocked);
    // A word that says so makes no stand-in of what is long and random, either.
    assert!(redactor.redact_text(&format!("Authorization: Bearer your-{signature}")).blocked);
}

/// Inputs made to be slow take time in proportion to their length.
#[test]
fn long_repetitions_are_scanned() {
    let redactor = redactor();
    for unit in [
        "key=",
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "a@",
        "kty:\"EC\" ",
        "0 ",
        "eyJ",
        "Authorization: ",
        "::",
        "1-",
    ] {
        // Quadratic work would take hours here.
        let _ = redactor.redact_text(&unit.repeat(400_000 / unit.len()));
    }
}

/// What comes out is counted, not timed: members whose keys redact alike are told apart by a number each.
#[test]
fn keys_that_redact_alike_stay_apart_and_short() {
    let redacted = |count: usize| {
        let members = (0..count).map(|number| (format!("u{number}@x.org"), json!(number)));
        redactor().redact_json(&json!({ "users": members.collect::<serde_json::Map<_, _>>() })).value
    };
    let (once, twice) = (redacted(1_000), redacted(2_000));
    assert_eq!(twice["users"].as_object().unwrap().len(), 2_000);
    assert!(twice.to_string().len() <= 2 * once.to_string().len() + 8_000, "{}", twice.to_string().len());
    let again = redactor().redact_json(&once);
    assert_eq!((again.findings.len(), &again.value), (0, &once));
    // A key that has the number already keeps it.
    let taken = json!({ "<REDACTED:EMAIL>": 1, "<REDACTED:EMAIL>~2": 2, "a@x.org": 3, "b@x.org": 4 });
    let redacted = redactor().redact_json(&taken).value;
    let expected = json!({
        "<REDACTED:EMAIL>": 1, "<REDACTED:EMAIL>~2": 2, "<REDACTED:EMAIL>~3": 3, "<REDACTED:EMAIL>~4": 4,
    });
    assert_eq!(redacted, expected);
}

#[test]
fn a_private_key_as_an_object_is_critical() {
    let part = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
    let filler = "x".repeat(9_000);
    for value in [
        json!({ "kty": "EC", "crv": "P-256", "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "d": part }),
        json!({ "keys": [{ "alg": "HS256", "k": part, "kty": "oct" }] }),
        json!({ "d": part, "e": "AQAB", "kty": "RSA", "n": filler }),
        json!({ "kty": "AKP", "priv": part }),
    ] {
        let redacted = redactor().redact_json(&value);
        assert!(redacted.blocked, "{value}");
        assert!(!redacted.value.to_string().contains(part), "{}", redacted.value);
        assert!(redactor().redact_json(&redacted.value).findings.is_empty());
    }
    for value in [
        json!({ "kty": "EC", "x": part, "y": part }),
        json!({ "kty": "EC", "d": "<your private key here>" }),
        json!({ "kind": "EC", "d": "nothing" }),
    ] {
        assert!(!redactor().redact_json(&value).blocked, "{value}");
    }
}

#[test]
fn what_is_cut_at_a_line_or_dressed_up_is_still_found() {
    let token = "k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz";
    let body = "MC4CAQAwBQYDK2VwBCIEIG1k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bN";
    let redactor = redactor();
    let far = "and \\n so on. ".repeat(60);
    for (text, rule) in [
        ("4539 1488\n0343 6467".to_owned(), "credit_card"),
        ("4111\n1111\n1111\n1111".to_owned(), "credit_card"),
        ("DE89 3704\n0044 0532\n0130 00".to_owned(), "iban"),
        ("GB82 WEST\n1234 5698 7654 32".to_owned(), "iban"),
        ("to jane.doe@\nexample.org".to_owned(), "email"),
        ("to jane.doe@example.\norg".to_owned(), "email"),
        ("+49 30\n901820".to_owned(), "phone_international"),
        ("postgres://app:s3cret\nP4ss@db.example.org/x".to_owned(), "url_password"),
        (format!("{}{}", "ghp_8fJ2kLm9QzX4", "vB7n\nR1tY5wE3aS6dG0hC2pU4"), "github_token"),
        (format!("{far}{}{}", "ghp_8fJ2kLm9QzX4", "vB7n\nR1tY5wE3aS6dG0hC2pU4"), "github_token"),
        (format!("eyJhbGciOiJIUzI1NiJ9.\neyJzdWIiOiIxMjM0NSJ9.\n{token}"), "jwt"),
        (format!("Authorization: Bearer k3Jd9fQw\u{1b}[0m{token}"), "authorization_header"),
        (format!("-----BEGIN RSA\u{1b}[0m PRIVATE KEY-----\n{body}\n"), "private_key"),
        (format!("-----BEGIN RSA PRIVATE \u{41a}\u{415}\u{423}-----\n{body}\n"), "private_key"),
        (
            format!("\u{410}uth\u{43e}rization: \u{412}\u{435}\u{430}r\u{435}r {token}"),
            "authorization_header",
        ),
        (format!("{}BEGIN PRIVATE KEY-----\n{body}\n", "&#45;".repeat(5)), "private_key"),
        ("jane&#x40;example.org".to_owned(), "email"),
    ] {
        let redacted = redactor.redact_text(&text);
        assert!(redacted.findings.iter().any(|finding| finding.rule == rule), "{text:?}: {redacted:?}");
        assert!(redactor.redact_text(&redacted.text).findings.is_empty(), "{redacted:?}");
    }
    for text in [
        "\u{41a}\u{43b}\u{44e}\u{447}: \u{441}\u{43b}\u{43e}\u{432}\u{43e}",
        "1984\n2001\n4711\n",
        "see us @\nexample.org",
    ] {
        assert_eq!(redactor.redact_text(text).findings, [], "{text}");
    }
}

/// Ten digits of North America, drawn the same way each time: neither area nor exchange begins with 0 or 1.
fn american_numbers(count: usize) -> Vec<[String; 3]> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |most: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % most
    };
    let mut number = || [200 + below(800), 200 + below(800), below(10_000)].map(|part| part.to_string());
    let padded = |[area, exchange, line]: [String; 3]| [area, exchange, format!("{line:0>4}")];
    (0..count).map(|_| padded(number())).collect()
}

#[test]
fn a_telephone_number_is_no_ones_id() {
    let redactor = redactor();
    let (mut found, mut wrong) = (0, Vec::new());
    let numbers = american_numbers(2_000);
    for [a, b, c] in &numbers {
        let forms = [
            format!("{a}-{b}-{c}"),
            format!("{a} {b} {c}"),
            format!("{a}.{b}.{c}"),
            format!("({a}) {b}-{c}"),
            format!("1-{a}-{b}-{c}"),
            format!("1 ({a}) {b}-{c}"),
            format!("+1 {a} {b} {c}"),
            format!("+1-{a}-{b}-{c}"),
            format!("+1{a}{b}{c}"),
            format!("my personal cell: {a}{b}{c}"),
            format!("texting, call 1{a}{b}{c}"),
        ];
        for form in forms {
            let text = format!("Jo wrote {form} on the note");
            let findings = redactor.redact_text(&text).findings;
            found += usize::from(!findings.is_empty());
            if findings.iter().any(|finding| !finding.rule.starts_with("phone_")) {
                wrong.push(format!("{form}: {findings:?}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of them: {}",
        wrong.len(),
        wrong.iter().take(5).cloned().collect::<String>()
    );
    assert!(found >= 11 * numbers.len() - 20, "{found} are found at all");
}

#[test]
fn a_health_number_that_is_called_one_is_one() {
    let rule = |text: &str| redactor().redact_text(text).findings.first().map(|finding| finding.rule);
    for text in [
        "Her NHS number is 943 476 5919.",
        "NHS: 943-476-5919",
        "Tel. 415-555-0132, NHS no. 943 476 5919",
        "patient 943 476 5919 was seen",
        "seen as 123 456 7881 in March",
    ] {
        let rules: Vec<_> =
            redactor().redact_text(text).findings.iter().map(|finding| finding.rule).collect();
        assert!(rules.contains(&"uk_nhs"), "{text}: {rules:?}");
    }
    assert_eq!(rule("call 943 476 5919"), Some("phone_north_american"));
    assert_eq!(rule("the NHS can be reached by phone at 943 476 5919"), Some("phone_north_american"));
}

#[test]
fn one_value_is_one_thing_in_a_document() {
    let session = json!([
        "Call 943 476 5919.",
        { "note": "NHS number 943-476-5919, and 415-555-0132 by phone" },
        "Again: 943 476 5919 and jane@example.org, 415 555 0132",
    ]);
    let redacted = redactor().redact_json(&session);
    let expected = json!([
        "Call <REDACTED:NATIONAL_ID>.",
        { "note": "NHS number <REDACTED:NATIONAL_ID>, and <REDACTED:PHONE> by phone" },
        "Again: <REDACTED:NATIONAL_ID> and <REDACTED:EMAIL>, <REDACTED:PHONE>",
    ]);
    assert_eq!(redacted.value, expected);
    let ids = redacted.report.iter().find(|count| count.rule == "uk_nhs").map(|count| count.count);
    assert_eq!((ids, redacted.findings.len()), (Some(3), 6));
    let numbered = {
        let mut options = Options::default();
        options.numbering = Numbering::PerDocument;
        Redactor::new(options).unwrap().redact_json(&json!(["943 476 5919", "NHS 943 476 5919"])).value
    };
    assert_eq!(numbered, json!(["<REDACTED:NATIONAL_ID:1>", "NHS <REDACTED:NATIONAL_ID:1>"]));
}
