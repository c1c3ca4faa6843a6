//! Secrets that only their names give away.
//!
//! A credential word with a value beside it, in code, settings, command lines or prose: most secrets that scanners miss
//! are of this kind. Exempt are hashes, code, versions, stand-ins and values that count up, unless a service that gives
//! out keys is named. Tokens without a word are for `lone`.

use std::ops::Range;

use super::assignment::{self, Assignment};

use super::name::Name;
use super::services::Service;
use super::value::{
    Words, has_any, is_code, is_coordinate, is_crypt, is_ladder, is_public_nkey, is_stand_in, secretness,
};
use super::{Family, Found, Rule, Trigger};
use crate::finding::Tier;
use crate::opaque::{self, Make};

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "password",
        label: "PASSWORD",
        tier: Tier::Noncritical,
        family: Family::Secret,
        trigger: Trigger::Anywhere(&["pass", "pwd", "pw"]),
        pattern: "",
        check: password,
        matches: &[
            "password: \"hunter2!x\"",
            "DB_PASSWORD=tr0ub4dor",
            "the password is k3Jd9fQw",
            "CREATE USER jane WITH PASSWORD 'Tr0ub4dor';",
            "--password 'Tr0ub4dor&3'",
            "<add key=\"ClearTextPassword\" value=\"Tr0ub4dor\" />",
            "**Password:** Tr0ub4dor&3x",
            "- name: DB_PASSWORD\n  value: Tr0ub4dor",
        ],
        misses: &[
            "password: string",
            "password = os.environ['PW']",
            "password: <your password>",
            "passenger_temp=18.1",
            "Your password is required",
            "password = ********",
            "pass the salt, please",
            "CheckPassword(\"password\", \"BpLnfgDsc2WD8F2q\")",
            "\"password_hash\": \"foQzXY.HaydB.\"",
            "/tmp/htpasswd httpd:2.4",
            "proxy_pass http://localhost:8000;",
            "\"iam:PassRole\", \"s3:GetObject\"",
            "['as', 'pass', 'raise', 'return']",
            "jsx.py,sha256=V8_-TfG1oUHpEThCvNtZjJaPwd-zVodk3Jd9fQw7eRt5,4711",
        ],
    },
    Rule {
        id: "secret",
        label: "SECRET",
        tier: Tier::Noncritical,
        family: Family::Secret,
        trigger: Trigger::Anywhere(&[
            "secret",
            "token",
            "key",
            "auth",
            "credential",
            "access",
            "private",
            "api",
            "signature",
            "session",
            "cookie",
            "sid=",
            "client",
            "webhook",
            "salt",
            "seed",
            "license",
            "cred",
            "bearer",
        ]),
        pattern: "",
        check: secret,
        matches: &[
            "mistral_TOKEN ::= \"MBJ37TP02QVZ9T3GTX2Y0DNS6ZA2LBIR\"",
            "acme SECRET 665Hkj_12ABcd-eF34xW",
            "System.setProperty(\"ACME_TOKEN\", \"pdpqpz3kg4blkba8\")",
            "var acmeToken string = \"k3Jd9fQw7eRt5yUi\"",
            "client_secret: 0f3a9c5b7d1e2f4a6b8c0d9e1f2a3b4c",
            "vatlayer SECRET abcdefghijklmnopqrstuvwxyzabcdef",
            "asana_token: 1956967643006989",
            "- name: SECRET_KEY\n  value: k3Jd9fQw7eRt5yUi1oPa8s",
            "{\"name\": \"API_KEY\", \"value\": \"k3Jd9fQw7eRt5yUi1oPa8s\"}",
            "<key>AwsSecretAccessKey</key>\n<string>k3Jd9fQw7eRt5yUi1oPa8s</string>",
            "variable \"nextauth_secret\" {\n  default = \"k3Jd9fQw7eRt5yUi1oPa8s\"",
            "const k = process.env.CONSUMER_SECRET || \"k3Jd9fQw7eRt5yUi1oPa8s\"",
            "| HMAC_KEY | `k3Jd9fQw7eRt5yUi1oPa8s` |",
            "bugsnag secret 123e4567-e89b-12d3-a456-426614174000",
            "stored user key \"UCBLODXOP4NFAON66B7MEND7AZXNBD25Y5ISIR7DIBBQAATLNZKFLLJJ\"",
        ],
        misses: &[
            "key: SamplerTypeTagKey",
            "token = await auth.getFromLocation(here)",
            "secret_name = 'favorite_character'",
            "api_key: your-api-key-here",
            "credentialsId: '29f63271-dc2f-4734-8221-5b31b5169bac'",
            "API_SECRET=abcdefghijklmnopqrstuvwxyz123456",
            "org.neo4j.neo4j-graphdb-api:jar:3.5.12:test",
            "nonMatchingToken := \"k0y4f4b1f2rlxtki\"",
            "export TOKEN=k0y4f4b1f2rlxtkiPq73...",
            "foreignKey=m-lbUjV8lF70fKxLp34dKI9",
            "Resource: 'arn:aws:execute-api:eu-north-1:4711:rest-api-id/v1'",
            "maven io.webtoken:web-client-0.11.2",
            "use tiktoken_rs::o200k_base;",
            "\"license\": \"BlueOak-1.0.0\"",
            "\"KeyArn\": \"arn:aws:kms:eu-north-1:4711:key/k3Jd9fQw-7eRt5yUi1oPa8s\"",
            "VAPID_PUBLIC_KEY=BNcRk3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bNm3Qw",
            "\"AWS::KMS::Key\": \"88e734780d711c68\"",
            "stored user key \"UCBLODXOP4NFAON66B7MEND7AZXNBD25Y5ISIR7DIBBQAATLNZKFLLJI\"",
        ],
    },
];

fn password(found: &Found<'_>) -> Option<Range<usize>> {
    let found = &grown(found);
    let bare = found.whole.len() == 2 && !matches!(found.after().first(), Some(b':' | b'='));
    if bare || in_placeholder(found) {
        return None;
    }
    let assignment = assignment::read(found.text, found.whole.end)?;
    let name = Name::of(found, &assignment);
    let range = ended(found.text, &assignment);
    let value = &found.text[range.clone()];
    let word = found.whole.len();
    let other = name.is_other_word() || name.gives_nothing() || name.is_argument() || name.is_inside();
    if value.len() < 4 || other {
        return None;
    }
    let bits = secretness(value);
    let listed = name.gap.contains(&b',');
    let positional = listed && name.before.is_empty() && found.before(2).first() == Some(&b'(');
    // A keyword among others, a right among others.
    let one_of_many = listed && (found.before(1) == b":" || (name.before.is_empty() && word <= 4));
    let address = value.windows(3).any(|part| part == b"://") && !value.contains(&b'@');
    if positional
        || one_of_many
        || address
        || name.is_hash()
        || is_coordinate(value)
        || (name.is_about() && bits < 6.8)
        || is_code(value)
        || is_word(value)
        || is_crypt(value)
        || is_stand_in(value)
    {
        return None;
    }
    let short = word <= 4 && name.after.is_empty() && name.before.last().is_some_and(u8::is_ascii_lowercase);
    let make = Make::of(value);
    let spaces = value.contains(&b' ');
    let mixed = make.digits > 0 || make.signs > 0;
    let names_itself =
        has_any(value, &["password", "passwd", "secret", "token", "key", "credential", "user"]);
    let good = if spaces || short && bits < 6.0 {
        false
    } else if name.quoted && name.assigns() {
        if make.digits > 0 {
            bits > 4.0 && value.len() >= 4
        } else if mixed {
            bits > 5.2 && !names_itself
        } else {
            bits > 4.9
                || (!names_itself
                    && name.before.is_empty()
                    && value.len() >= 5
                    && make.upper == 0
                    && bits > 3.0)
        }
    } else if name.quoted {
        bits > 4.6 && mixed
    } else if name.assigns() {
        let tight = name.gap == b"=" && name.is_loud();
        if tight {
            value.len() >= 4 && !is_path(value)
        } else {
            (make.digits > 0 && bits > 4.6) || bits > 6.0
        }
    } else {
        // Prose and command lines.
        let flag = name.before.starts_with(b"-");
        (make.digits > 0 && make.letters() > 1 && bits > if flag { 4.5 } else { 5.0 } && value.len() >= 6)
            || (bits > 6.4 && value.len() >= 8)
    };
    good.then_some(range)
}

/// The whole of the word that a trigger begins.
fn grown<'t>(found: &Found<'t>) -> Found<'t> {
    let rest = &found.text[found.whole.start..];
    let begins = |word: &&&str| {
        rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
    };
    let length = PASSWORDS.iter().find(begins).map_or(found.whole.len(), |word| word.len());
    let whole = found.whole.start..found.whole.start + length;
    Found { text: found.text, secret: whole.clone(), whole }
}

fn secret(found: &Found<'_>) -> Option<Range<usize>> {
    let sign = usize::from(found.value().ends_with(b"="));
    let whole = found.whole.start..found.whole.end - sign;
    let found = &Found { text: found.text, secret: whole.clone(), whole };
    if in_placeholder(found) {
        return None;
    }
    let assignment = assignment::read(found.text, found.whole.end)?;
    let name = Name::of(found, &assignment);
    let range = ended(found.text, &assignment);
    let value = &found.text[range.clone()];
    let told = value.len() >= 8 && !value.contains(&b' ');
    if !told || name.is_other_word() || name.gives_nothing() || name.is_inside() {
        return None;
    }
    let make = Make::of(value);
    let bits = secretness(value) - if make.letters() > 0 && is_path(value) { 1.2 } else { 0.0 };
    let shaped = is_key_shaped(value, make, bits);
    // Most values fail here, before anything dearer is asked.
    if bits < LEAST_BITS && !shaped {
        return None;
    }
    let service = name.service(found);
    if (service.is_none() && bits < LEAST_BITS) || is_code(value) {
        return None;
    }
    let about = name.is_about();
    let strong = name.is_strong(found);
    let good = match service {
        Some(Service::Sure) if shaped && !about => true,
        Some(Service::Word) if shaped && !about && strong => true,
        Some(_) => is_unlikely(&name, value, make, bits, true),
        // Counted up, it is an example, unless someone's name says whose.
        None => {
            (!is_ladder(value) || (strong && name.is_someones()))
                && is_unlikely(&name, value, make, bits, strong)
        }
    };
    if !good {
        return None;
    }
    let dull = name.is_public()
        || found.follows(&["arn:"], 24)
        || name.is_denied()
        || found.text[range.end..].starts_with(b"..")
        || (name.gap == b"-" && found.before(1) == b"/")
        || is_crypt(value)
        || is_pairs(value)
        || is_coordinate(value)
        || (about && opaque::is_hex(value))
        || is_stand_in(value)
        || (make.distinct >= 62 && value.len() <= LONGEST_ALPHABET)
        || value.starts_with(b"arn:")
        || is_public_nkey(value)
        || hash_near(found.text, &range);
    // The longest are judged by their beginning.
    let rest = if value.len() < assignment::LONGEST { 0 } else { rest_of(&found.text[range.end..]) };
    (!dull).then_some(range.start..range.end + rest)
}

/// How much of a token stands behind a part of it.
fn rest_of(text: &[u8]) -> usize {
    let token = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/=_-.%~".contains(byte);
    text.iter().take(LONGEST_TOKEN).take_while(token).count()
}

/// Whether a value is so unlike a word that its name alone condemns it.
fn is_unlikely(name: &Name<'_>, value: &[u8], make: Make, bits: f32, strong: bool) -> bool {
    let about = name.is_about();
    let mut least: f32 = if strong { LEAST_BITS } else { 6.3 };
    if !name.assigns() {
        least += if make.digits > 0 && value.len() >= 16 { 0.1 } else { 0.9 };
    }
    if about {
        least += 1.0;
    }
    if value.len() < 16 {
        least += 0.4;
    }
    if make.digits == 0 {
        least += 0.3;
    }
    let named = !opaque::is_uuid(value) || ((strong || name.before.len() > 3) && name.assigns() && !about);
    value.len() >= if strong { 8 } else { 12 } && bits > least && named
}

/// Whether a value has the shape of a key, if not the chance of one: what a service's name is enough for. Keys in
/// documentation are of this kind.
fn is_key_shaped(value: &[u8], make: Make, bits: f32) -> bool {
    let plain = value
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'=' | b'+' | b'/'));
    if !plain || make.distinct < 5 {
        return false;
    }
    if make.letters() == 0 {
        return make.digits >= 15 && make.signs == 0;
    }
    let long = value.len() >= if make.digits > 0 { 12 } else { 20 };
    let whole = make.signs * 8 <= value.len() || opaque::is_uuid(value);
    long && whole && (bits > 4.8 || is_ladder(value) || opaque::is_hex(value))
}

/// Where the value ends: a quoted one before its quote, another before what closes or ends a sentence.
fn ended(text: &[u8], assignment: &Assignment) -> Range<usize> {
    let Range { start, mut end } = assignment.value;
    if !assignment.quoted {
        while end > start && matches!(text[end - 1], b'.' | b')' | b']' | b'}' | b':' | b'?' | b'*') {
            end -= 1;
        }
    }
    start..end
}

/// A hash of a lock file or of a commit is told by what stands before it.
pub(super) fn hash_near(text: &[u8], value: &Range<usize>) -> bool {
    let line = &text[value.start.saturating_sub(24)..value.start];
    HASHES.any_in(line)
        || has_any(
            &text[value.start..value.end.min(value.start + 10)],
            &["sha1-", "sha256", "sha384-", "sha512-", "md5-"],
        )
}

fn is_path(value: &[u8]) -> bool {
    value.starts_with(b"/")
        || value.starts_with(b"./")
        || value.starts_with(b"http")
        || value.iter().filter(|byte| **byte == b'/').count() > 1
}

/// The word is the label of a placeholder, which says nothing of what stands beside it.
fn in_placeholder(found: &Found<'_>) -> bool {
    let before = found.before(40);
    let open = before.iter().rposition(|byte| *byte == b'<');
    open.is_some_and(|open| before[open..].starts_with(b"<REDACTED:") && !before[open..].contains(&b'>'))
}

/// `01:69:9A:20`: a fingerprint.
fn is_pairs(value: &[u8]) -> bool {
    value.len() > 8 && value.iter().skip(2).step_by(3).all(|byte| *byte == b':')
}

/// What stands where a password's type, rule or absence is told.
pub(super) fn is_word(value: &[u8]) -> bool {
    let value = value.to_ascii_lowercase();
    WORDS.contains(&std::str::from_utf8(&value).unwrap_or_default())
}

/// The longer before its beginning.
const PASSWORDS: &[&str] = &["password", "passwort", "passwrd", "passphrase", "passwd"];
const LEAST_BITS: f32 = 5.7;
/// So long are the characters of base64 in their order, with a few beside them.
const LONGEST_ALPHABET: usize = 80;
const LONGEST_TOKEN: usize = 16 * 1024;
static HASHES: Words = Words::new(&[
    "sha1",
    "sha256",
    "sha-256",
    "sha384",
    "sha512",
    "md5",
    "integrity",
    "checksum",
    "h1:",
    "commit",
    "rev ",
    "revision",
    "digest",
    "hash",
    "etag",
    "blob",
    "tree ",
]);
const WORDS: &[&str] = &[
    "string",
    "str",
    "text",
    "null",
    "none",
    "nil",
    "true",
    "false",
    "undefined",
    "required",
    "optional",
    "any",
    "object",
    "password",
    "passwd",
    "secret",
    "token",
    "input",
    "field",
    "hidden",
    "number",
    "bool",
    "boolean",
    "int",
    "bytes",
    "char",
    "void",
    "self",
    "this",
    "value",
    "username",
    "default",
    "empty",
    "invalid",
    "incorrect",
    "wrong",
    "correct",
    "char[]",
    "varchar",
    "authentication",
    "protected",
];
