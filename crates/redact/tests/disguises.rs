//! Critical secrets in every disguise that was ever seen to get through, and what resembles them and must not block.
//!
//! The keys are real (`tests/keys`); the disguises are made here: ways to write bytes, ways to wrap text, and places to put
//! the result. Nothing is skipped: every key is tried in every writing, every writing in every wrapping and place.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use confidant_redact::{Options, Redactor};
use serde_json::json;

fn redactor() -> Redactor {
    Redactor::new(Options::default()).expect("no lists of words were given")
}

/// The files of a folder of keys, by name.
fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/keys").join(folder);
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .expect("the keys are there")
        .map(|entry| entry.expect("the folder is readable"))
        .map(|entry| {
            let name = entry.file_name().into_string().expect("names are plain");
            (name, std::fs::read(entry.path()).expect("the file is readable"))
        })
        .collect();
    files.sort();
    files
}

fn wrapped(text: &str, width: usize) -> String {
    let lines: Vec<&str> =
        text.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).expect("it is ASCII")).collect();
    lines.join("\n")
}

fn hex(bytes: &[u8], between: &str) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<String>>().join(between)
}

fn utf16(text: &str, mark: bool) -> Vec<u8> {
    let units = mark.then_some(0xfeff).into_iter().chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

fn percent(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn quoted(text: &str) -> String {
    json!(text).to_string()
}

/// Bytes as text, without a line of PEM.
fn writings(bytes: &[u8]) -> Vec<(&'static str, String)> {
    let base64 = STANDARD.encode(bytes);
    let dump = |bytes: &[u8]| {
        let line = |(at, line): (usize, &[u8])| {
            let pairs: Vec<String> = line.chunks(2).map(|pair| hex(pair, "")).collect();
            let letters: String = line
                .iter()
                .map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' })
                .collect();
            format!("{:08x}: {:<39}  {letters}\n", at * 16, pairs.join(" "))
        };
        bytes.chunks(16).enumerate().map(line).collect::<String>()
    };
    vec![
        ("base64 at 64", wrapped(&base64, 64)),
        ("base64 at 76", wrapped(&base64, 76)),
        ("base64 at 48", wrapped(&base64, 48)),
        ("base64 at 40", wrapped(&base64, 40)),
        ("base64 at 24", wrapped(&base64, 24)),
        ("base64 without padding", STANDARD_NO_PAD.encode(bytes)),
        ("base64 for addresses", URL_SAFE.encode(bytes)),
        ("base64 twice", STANDARD.encode(&base64)),
        ("base64 three times", STANDARD.encode(STANDARD.encode(&base64))),
        ("base64 of lines, at 48", wrapped(&STANDARD.encode(wrapped(&base64, 64)), 48)),
        ("base64 of UTF-16", STANDARD.encode(utf16(&base64, false))),
        ("base64 of marked UTF-16", STANDARD.encode(utf16(&base64, true))),
        ("hex", hex(bytes, "")),
        ("hex in capitals", hex(bytes, "").to_uppercase()),
        ("hex at 60", wrapped(&hex(bytes, ""), 60)),
        ("hex of base64", hex(base64.as_bytes(), "")),
        ("base64 of hex", STANDARD.encode(hex(bytes, ""))),
        ("a number", format!("0x{}", hex(bytes, ""))),
        ("a dump", dump(bytes)),
    ]
}

/// Bytes with something between them: of DER, whose first byte is known.
fn spaced(bytes: &[u8]) -> Vec<(&'static str, String)> {
    let lines: Vec<String> = bytes.chunks(15).map(|line| hex(line, ":")).collect();
    vec![
        ("with colons", hex(bytes, ":")),
        ("with colons, in lines", lines.join(":\n    ")),
        ("with blanks", hex(bytes, " ")),
        ("as an array", format!("{{ 0x{} }}", hex(bytes, ", 0x"))),
        ("as numbers", format!("[{}]", bytes.iter().map(u8::to_string).collect::<Vec<String>>().join(", "))),
        ("as a string of C", format!("\\x{}", hex(bytes, "\\x"))),
    ]
}

/// Text in further text.
fn wrappings(text: &str) -> Vec<(&'static str, String)> {
    let indented: String = text.lines().map(|line| format!("    {line}\n")).collect();
    let cited: String = text.lines().map(|line| format!("> {line}\n")).collect();
    vec![
        ("as it is", text.to_owned()),
        (
            "in prose",
            format!("This is what I have, please keep it safe:\n{text}\nThank you, and see you tomorrow."),
        ),
        ("in JSON", json!({ "note": text, "count": 1 }).to_string()),
        ("in JSON in JSON", json!({ "body": json!({ "note": text }).to_string() }).to_string()),
        ("in YAML", format!("data:\n  key: |\n{indented}  other: 1\n")),
        ("in a heredoc", format!("cat > /tmp/key <<EOF\n{text}\nEOF\nchmod 600 /tmp/key\n")),
        ("in a fence", format!("Here:\n\n```\n{text}\n```\n\nDone.\n")),
        ("cited", format!("He wrote:\n{cited}\nand nothing else.\n")),
        ("percent", percent(text)),
        ("percent twice", percent(&percent(text))),
        ("percent three times", percent(&percent(&percent(text)))),
        ("percent in JSON", quoted(&percent(text))),
        ("JSON in percent", percent(&quoted(text))),
        ("markup", markup(text)),
        ("markup twice", markup(&markup(text))),
        ("base64", STANDARD.encode(text)),
        ("base64 twice", STANDARD.encode(STANDARD.encode(text))),
        ("base64 of JSON of base64", STANDARD.encode(quoted(&STANDARD.encode(text)))),
        ("base64 in percent, twice", percent(&percent(&format!("{}==", STANDARD_NO_PAD.encode(text))))),
        ("base64 of percent", STANDARD.encode(percent(text))),
        ("base64 of UTF-16", STANDARD.encode(utf16(text, true))),
        ("UTF-16 read as bytes", text.chars().flat_map(|c| [c, '\0']).collect()),
        ("hex", hex(text.as_bytes(), "")),
    ]
}

/// What got through, told by its disguise.
fn through(cases: Vec<(String, String)>) -> Vec<String> {
    let redactor = redactor();
    let passes = |(name, text): (String, String)| {
        let redacted = redactor.redact_text(&text);
        let again = redactor.redact_text(&redacted.text);
        let nested = redactor.redact_json(&json!({ "log": [{ "message": text }] })).blocked;
        let good = redacted.blocked && nested && again.text == redacted.text;
        (!good).then(|| format!("{name}: text {}, JSON {nested}", redacted.blocked))
    };
    cases.into_iter().filter_map(passes).collect()
}

#[test]
fn keys_as_bytes_block_in_every_writing() {
    let mut cases = Vec::new();
    for (name, bytes) in files("private") {
        let der = if bytes[0] == 0x30 { spaced(&bytes) } else { Vec::new() };
        // Packets of PGP, and OpenSSH's, are no dumps that begin as DER does.
        let writings = writings(&bytes).into_iter().filter(|(how, _)| bytes[0] == 0x30 || *how != "a dump");
        for (how, written) in writings.chain(der) {
            for (place, text) in wrappings(&written) {
                cases.push((format!("{name}, {how}, {place}"), text));
            }
        }
    }
    let count = cases.len();
    let through = through(cases);
    assert!(through.is_empty(), "{} of {count} got through:\n{}", through.len(), through.join("\n"));
}

#[test]
fn keys_as_text_block_in_every_wrapping() {
    let mut cases = Vec::new();
    for (name, bytes) in files("text") {
        let text = String::from_utf8(bytes).expect("it is text");
        for (place, text) in wrappings(&text) {
            cases.push((format!("{name}, {place}"), text));
        }
    }
    for (kind, file) in [("PRIVATE KEY", "secp384r1.pkcs8"), ("PGP PRIVATE KEY BLOCK", "gpg-rsa.pgp")] {
        let (_, bytes) = files("private").into_iter().find(|(name, _)| name == file).expect("it is there");
        let body = wrapped(&STANDARD.encode(bytes), 64);
        for (dashes, sign) in [
            ("none", ""),
            ("five", "-----"),
            ("pretty", "\u{2014}\u{2013}"),
            ("four", "----"),
            ("stars", "*****"),
            ("equals", "===== "),
        ] {
            let pem = format!(
                "{sign}BEGIN {kind}{}\n\n{body}\n{sign}END {kind}{sign}\n",
                sign.chars().rev().collect::<String>()
            );
            for (place, text) in wrappings(&pem) {
                cases.push((format!("{kind} with dashes: {dashes}, {place}"), text));
            }
        }
    }
    let count = cases.len();
    let through = through(cases);
    assert!(through.is_empty(), "{} of {count} got through:\n{}", through.len(), through.join("\n"));
}

#[test]
fn tokens_block_in_every_wrapping() {
    let mut cases = Vec::new();
    for token in [
        "opensesame",
        "correct-horse-battery-staple",
        "the-secret-key-of-jane",
        "k3Jd9fQw.example.7eRt5yUi",
        "example-k3Jd9fQw7eRt5yUi",
        "k3Jd9fQw..7eRt5yUi",
        "k3Jd9fQw(7eRt5yUi",
        "hunter2",
        "k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz",
    ] {
        for text in [
            format!("Authorization: Bearer {token}"),
            format!("GET / HTTP/1.1\nHost: example.org\nAuthorization: Bearer {token}\nAccept: */*\n"),
            format!("curl -H 'Authorization: Bearer {token}' https://example.org"),
            format!("{{\"Authorization\": \"Bearer {token}\"}}"),
            format!("kubectl --server=https://example.org --token={token} get pods"),
            format!("kubectl get pods --token {token}"),
            format!(
                "{{\"auth\": {{\"type\": \"bearer\", \"bearer\": [{{\"key\": \"token\", \"value\": \"{token}\", \"type\": \"string\"}}]}}}}"
            ),
        ] {
            for (place, text) in wrappings(&text) {
                cases.push((format!("{token}, {place}: {}", &text[..text.len().min(60)]), text));
            }
        }
    }
    for text in [
        r#"{"access_token": "k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz", "token_type": "Bearer", "expires_in": 3600}"#,
        "https://example.org/cb#access_token=ya29.k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz&token_type=Bearer",
        "users:\n- name: admin\n  user:\n    token: k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz\n",
    ] {
        for (place, text) in wrappings(text) {
            cases.push((format!("OAuth, {place}"), text));
        }
    }
    let count = cases.len();
    let through = through(cases);
    assert!(through.is_empty(), "{} of {count} got through:\n{}", through.len(), through.join("\n"));
}

/// The settings of API clients as JSON, not as text.
#[test]
fn tokens_of_clients_block_as_json() {
    let redactor = redactor();
    for value in [
        json!({ "auth": { "type": "bearer", "bearer": [{ "key": "token", "value": "open-sesame", "type": "string" }] } }),
        json!({ "auth": { "type": "bearer", "bearer": { "token": "open-sesame" } } }),
        json!({ "token": "open-sesame", "type": "Bearer" }),
        json!({ "access_token": "k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz", "token_type": "Bearer" }),
        json!({ "type": "Buffer", "data": files("private")[0].1 }),
        json!({ "interface": { "PrivateKey": "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=" } }),
    ] {
        let redacted = redactor.redact_json(&value);
        let text = redacted.value.to_string();
        assert!(redacted.blocked && !text.contains("sesame") && !text.contains("k3Jd9"), "{text}");
        let again = redactor.redact_json(&redacted.value);
        assert_eq!((again.findings.len(), &again.value), (0, &redacted.value), "{text}");
    }
    for value in [
        json!({ "bearer": [{ "key": "token", "value": "{{access_token}}", "type": "string" }] }),
        json!({ "type": "bearer", "token": "<token>" }),
        json!({ "type": "basic", "token": "open-sesame" }),
    ] {
        assert!(!redactor.redact_json(&value).blocked, "{value}");
    }
}

#[test]
fn what_only_resembles_them_does_not_block() {
    let redactor = redactor();
    let mut cases: Vec<(String, String)> = Vec::new();
    for (name, bytes) in files("public") {
        let written = match String::from_utf8(bytes) {
            Ok(text) => vec![("text", text)],
            Err(error) => {
                let bytes = error.into_bytes();
                writings(&bytes).into_iter().chain(spaced(&bytes)).collect()
            }
        };
        for (how, text) in written {
            for (place, text) in wrappings(&text) {
                cases.push((format!("{name}, {how}, {place}"), text));
            }
        }
    }
    let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    for text in [
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n-----END CERTIFICATE-----",
        "Send `Authorization: Bearer <token>` with each request.",
        "Authorization: Bearer tokens are the usual scheme; see RFC 6750.",
        "Authorization: Bearer $TOKEN, Authorization: Bearer {{token}}, Authorization: Bearer YOUR_TOKEN",
        "Authorization: Bearer ...",
        "headers = {'Authorization': 'Bearer ' + get_token()}",
        "The bearer of this letter is a friend.",
        "kubectl create token default | kubectl --token=$(cat) get pods",
        "{\"access_token\": \"<access token>\", \"token_type\": \"Bearer\"}",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "BEGIN PRIVATE KEY is what the first line of the file says between its dashes",
        "The private key: keep it in a safe. The priv: field is not shown.",
        "[Interface]\nPrivateKey = <private key>\n[Peer]\nPublicKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=",
        "aGVsbG8gd29ybGQsIHRoaXMgaXMganVzdCBhIHRleHQgaW4gYmFzZTY0IHRoYXQgc2F5cyBub3RoaW5n",
    ] {
        cases.extend(
            wrappings(text).into_iter().map(|(place, wrapped)| (format!("{text}, {place}"), wrapped)),
        );
    }
    cases.push(("a hash".to_owned(), format!("sha256:{hash}")));
    cases.push(("a longer hash".to_owned(), format!("sha512 {hash}{hash}")));
    let blocked: Vec<String> = cases
        .into_iter()
        .filter_map(|(name, text)| {
            let redacted = redactor.redact_text(&text);
            redacted.blocked.then(|| format!("{name}: {:?}", redacted.report))
        })
        .collect();
    assert!(blocked.is_empty(), "{}", blocked.join("\n"));
}

/// Layers upon layers, and junk made to be unwrapped: the time grows with the length, and no faster.
#[test]
fn layers_made_to_be_slow_are_not() {
    let redactor = redactor();
    let mut deep = "nothing of note is told here. ".repeat(40);
    while deep.len() < 200_000 {
        deep = STANDARD.encode(&deep);
    }
    let mut escaped = "%41\\u0041&amp;".repeat(400);
    for _ in 0..6 {
        escaped = quoted(&markup(&percent(&escaped)));
        escaped.truncate(200_000);
    }
    let junk = format!("{} ", STANDARD.encode("%2541\\\\u0041 &amp;amp; words and words")).repeat(4_000);
    let hexes = "30820101020100".repeat(20_000);
    let lines = "aVeryLongWordOfLetters\n".repeat(9_000);
    for text in [
        deep,
        escaped,
        junk,
        hexes,
        lines,
        "%25".repeat(60_000),
        "&amp;".repeat(40_000),
        "BEGIN PRIVATE KEY\n".repeat(10_000),
        "<RSAKeyValue>".repeat(15_000),
        "(private-key (rsa ".repeat(10_000),
        "PrivateKey: ".repeat(15_000),
    ] {
        // Quadratic work would take hours here, and every layer more would double it.
        let _ = redactor.redact_text(&text);
    }
}
