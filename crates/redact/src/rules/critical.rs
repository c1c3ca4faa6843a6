//! What must never be stored, not even by mistake: private keys, Authorization headers, bearer tokens.
//!
//! A shape is enough here. Where a key's end is missing, everything that still looks like key goes with it.

use std::ops::Range;

use super::value::{has_any, is_code, is_filler, is_stand_in, secretness};
use super::{Family, Found, Rule, Trigger, whole_word};
use crate::encoded;
use crate::finding::Tier;
use crate::opaque;

const fn critical(
    id: &'static str,
    label: &'static str,
    trigger: Trigger,
    pattern: &'static str,
    check: super::Check,
    matches: &'static [&'static str],
    misses: &'static [&'static str],
) -> Rule {
    let (tier, family) = (Tier::Critical, Family::Critical);
    Rule { id, label, tier, family, trigger, pattern, check, matches, misses }
}

pub(super) static RULES: &[Rule] = &[
    critical(
        "private_key",
        "PRIVATE_KEY",
        Trigger::Anywhere(&["-----BEGIN", "---- BEGIN"]),
        r"-----BEGIN[ A-Z0-9_-]{0,40}PRIVATE[ _]KEY(?: BLOCK)?-----|---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----",
        private_key,
        &[
            "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIG1\n-----END PRIVATE KEY-----",
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIFHDBOBgkqhkiG9w0BBQ0wQTApBgkqhkiG9w0",
            "-----BEGIN OPENSSH PRIVATE KEY-----\\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\\n",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\nlQOYBFkx0d0BCADVQ5bnJ8cX2vT9\n-----END PGP PRIVATE KEY BLOCK-----",
        ],
        &[
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----",
            "-----BEGIN CERTIFICATE-----",
            "look for -----BEGIN RSA PRIVATE KEY----- in files",
        ],
    ),
    critical(
        "putty_private_key",
        "PRIVATE_KEY",
        Trigger::Keyword(&["PuTTY-User-Key-File-"]),
        "PuTTY-User-Key-File-[0-9]: ?",
        putty,
        &[
            "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 1\nAAAAIHk3Jd9fQw7eRt5yUi1oPa8s\n",
        ],
        &["PuTTY-User-Key-File-3 is the first line"],
    ),
    critical(
        "private_key_body",
        "PRIVATE_KEY",
        Trigger::Keyword(&["MII", "b3BlbnNzaC1rZXktdjE", "MC4CAQAw", "MHcCAQEE", "MIGHAgEA", "MIGkAgEB"]),
        concat!(
            r"(?:MI[IG][A-Za-z0-9+/]{1,6}(?:IBAAKC|IBAAK[BC]|IBADANBgkqh|AgEAMBMGByqG|AgEAMBAGByqG|AgEBBD)",
            r"|b3BlbnNzaC1rZXktdjEAAAAA|MC4CAQAwBQYDK2V|MHcCAQEEI)[A-Za-z0-9+/=\r\n\\]{24,}"
        ),
        key_body,
        &[concat!("key: MIIEpAIBAAKCAQEA", "k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bNm3QwErTyUiOpAsDfGhJkLz")],
        &["MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ"],
    ),
    critical(
        "age_secret_key",
        "PRIVATE_KEY",
        Trigger::Keyword(&["AGE-SECRET-KEY-"]),
        "AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{58,}",
        whole_word,
        &[concat!("AGE-SECRET-KEY-1", "QZ3X7PL9K2M4N6R8S0T5V7W9Y1ACDEFGHJKLMNPQRSTUVWXYZ234567QZQ")],
        &["AGE-SECRET-KEY-1XYZ"],
    ),
    critical(
        "private_jwk",
        "PRIVATE_KEY",
        Trigger::Anywhere(&["kty"]),
        r#"kty["'\\]{0,3}\s{0,4}[:=]\s{0,4}["'\\\[]{0,4}(?:EC|RSA|OKP|oct|AKP)\b"#,
        jwk,
        &[
            r#"{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","x":"11qYAY"}"#,
            r#"{"k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75", "kty":"oct"}"#,
        ],
        &[
            r#"{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8"}"#,
        ],
    ),
    critical(
        "authorization_header",
        "AUTHORIZATION",
        Trigger::Anywhere(&[
            "authorization",
            "authorisation",
            "x-auth-token",
            "x-vault-token",
            "private-token",
            "x-access-token",
        ]),
        concat!(
            r#"(?i)(?:authori[sz]ation|x-auth-token|x-vault-token|private-token|x-access-token)["'`\])\\]{0,4}\s{0,4}"#,
            r#"(?:[:=,]|=>|:=|\s)(?:>|=)?\s{0,8}(?:\(|\[|\\){0,3}["'`\\]{0,4}\s{0,2}"#,
            r#"(?:(?:bearer|basic|token|digest|ntlm|negotiate|api-?key|key|jwt|oauth|hawk|splunk|ssws|genie-?key|bot|apitoken|pve[a-z]{0,9}token|aws4-hmac-sha256|snyk|discogs|sharedkey|privatekey|zoho-oauthtoken)(?:[\s:=+,]|%20){1,4}["'`\\]{0,3})?"#,
            r#"([A-Za-z0-9$<{%*_.~+/=@:|&!^-][^\s"'`,;\\)\]}>]{5,})"#
        ),
        header,
        &[
            "Authorization: Basic amFuZTpodW50ZXIy",
            r#"{"authorization": "Bearer k3Jd9fQw7eRt5yUi1oPa8s"}"#,
            "curl -H 'Authorization: token 0f3a9c5b7d1e2f4a6b8c0d9e1f2a3b4c5d6e7f80'",
            "Proxy-Authorization: Basic amFuZTpodW50ZXIy",
            "authorization = k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz",
        ],
        &[
            "Authorization: Bearer $TOKEN",
            "Authorization: Bearer <token>",
            "Authorization: Bearer YOUR_API_KEY",
            "authorization: required for all requests",
            "set the Authorization header to something",
        ],
    ),
    critical(
        "authorization_parameters",
        "AUTHORIZATION",
        Trigger::Anywhere(&["authorization", "authorisation"]),
        concat!(
            r#"(?i)authori[sz]ation["'`\])\\]{0,4}\s{0,4}[:=,]\s{0,4}["'`\\]{0,4}"#,
            r#"(?:digest|aws4-[a-z0-9-]{8,20}|oauth|hawk|mac|signature|goog4-[a-z0-9-]{8,20})\s{1,4}"#,
            r#"([^\n]{0,500}?\b(?:response|oauth_signature|signature|mac)\s?=\s?[\\"']{0,3}[A-Za-z0-9+/=%_-]{16,})"#
        ),
        parameters,
        &[
            r#"Authorization: Digest username="jane", nonce="k3Jd9fQw", response="6629fae49393a05397450978507c4ef1""#,
            "authorization: AWS4-HMAC-SHA256 Credential=k3Jd9fQw7eRt/20260830/aws4_request, Signature=5d672d79c15b13162d9279b0855cfba6",
            r#""Authorization": "OAuth oauth_nonce=\"k3Jd\", oauth_signature=\"tnnArxj06cWHq44gCs1OSKk%2FjLY%3D\"""#,
        ],
        &[
            r#"Authorization: Digest username="jane", response="<response>""#,
            "Authorization: Digest is older than Basic",
            "authorization: Signature=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        ],
    ),
    critical(
        "bearer_token",
        "BEARER_TOKEN",
        Trigger::Keyword(&["bearer"]),
        r#"(?i)bearer["'`\\]{0,3}(?:\s{0,3}[:=]\s{0,3}|\s{1,3}|%20)["'`\\]{0,3}([A-Za-z0-9][A-Za-z0-9._~+/=:|-]{15,})"#,
        bearer,
        &["Bearer k3Jd9fQw7eRt5yUi1oPa8s", "--oauth2-bearer 'k3Jd9fQw7eRt5yUi1oPa8s'"],
        &["the bearer of news", "Bearer authentication_scheme_name", "bearer responsibilities"],
    ),
    critical(
        "curl_user",
        "AUTHORIZATION",
        Trigger::Keyword(&["curl", "wget", "http ", "https "]),
        r#"(?:curl|wget|https?)\b[^\n;|]{0,400}?\s(?:-u|--user|--proxy-user|-U|-a|--auth)(?:\s{1,3}|=)?["']?([^\s"':$<{]{1,80}:[^\s"'@$<{][^\s"']{2,})"#,
        curl_user,
        &[
            "curl -u jane:hunter2x https://example.org",
            "curl -s --user 'api:k3Jd9fQw7eRt' https://example.org",
        ],
        &[
            "curl -u $USER:$PASS https://example.org",
            "curl -u user:password https://example.org",
            "curl https://example.org",
        ],
    ),
];

/// From the header to the end line, or as far as it looks like a key. A header alone, in a sentence, is none.
fn private_key(found: &Found<'_>) -> Option<Range<usize>> {
    let rest = &found.text[found.whole.end..found.text.len().min(found.whole.end + LONGEST_KEY)];
    let stop = find(rest, b"-----BEGIN").unwrap_or(rest.len());
    let rest = &rest[..stop];
    let end = match find(rest, b"-----END").or_else(|| find(rest, b"---- END")) {
        Some(at) => {
            let line =
                rest[at + 5..].iter().position(|byte| matches!(byte, b'\n' | b'"' | b'\'' | b'`' | b'\\'));
            let tail = &rest[at..line.map_or(rest.len(), |line| at + 5 + line)];
            let dashes = find(&tail[5..], b"----").map_or(tail.len(), |dashes| 5 + dashes);
            let close = tail[dashes..].iter().take_while(|byte| **byte == b'-').count();
            at + dashes + close
        }
        None => {
            let key = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=\\ \t\r\n\"',-:*#().;`".contains(byte);
            rest.iter().take_while(|byte| key(byte)).count()
        }
    };
    let body = &rest[..end];
    let words = body.iter().filter(|byte| **byte == b' ').count() * 4 > body.len();
    let told = body.ends_with(b"--") && body.contains(&b'\n') && find(body, PLACEHOLDER).is_none();
    let real = told || (has_key(body) && !words);
    real.then(|| found.whole.start..found.whole.end + end)
}

/// Whether something long enough for a line of a key is in it.
fn has_key(body: &[u8]) -> bool {
    body.split(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')))
        .any(|run| run.len() >= LEAST_LINE)
}

fn putty(found: &Found<'_>) -> Option<Range<usize>> {
    let rest = &found.text[found.whole.end..found.text.len().min(found.whole.end + LONGEST_KEY)];
    let key = find(rest, b"Private-Lines")?;
    let mac = find(rest, b"Private-MAC");
    let lines = &rest[key..mac.filter(|mac| *mac > key).unwrap_or(rest.len())];
    // Somebody has taken the key out already.
    if find(lines, PLACEHOLDER).is_some() && !has_key(lines) {
        return None;
    }
    let end = mac.map_or(rest.len(), |at| {
        at + rest[at..].iter().position(|byte| *byte == b'\n').unwrap_or(rest.len() - at)
    });
    Some(found.whole.start..found.whole.end + end)
}

/// The rest of the base64 goes with its start.
fn key_body(found: &Found<'_>) -> Option<Range<usize>> {
    let key = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/=\\\r\n".contains(byte);
    let rest = found.after().iter().take(LONGEST_KEY).take_while(key).count();
    (!is_filler(found.value())).then(|| found.whole.start..found.whole.end + rest)
}

/// A key set has a private part beside its type: `d`, or `k` of a symmetric one.
fn jwk(found: &Found<'_>) -> Option<Range<usize>> {
    let from = found.whole.start.saturating_sub(NEAR_JWK);
    let near = &found.text[from..found.text.len().min(found.whole.end + NEAR_JWK)];
    for (at, byte) in near.iter().enumerate() {
        if !matches!(byte, b'd' | b'k') {
            continue;
        }
        if at > 0 && (near[at - 1].is_ascii_alphanumeric() || matches!(near[at - 1], b'_' | b'-')) {
            continue;
        }
        let gap = near[at + 1..].iter().take(12).take_while(|byte| b"\"'\\ \t\n\r:=".contains(byte)).count();
        let start = at + 1 + gap;
        let sign = near[at + 1..start].iter().any(|byte| matches!(byte, b':' | b'='));
        let key = near[start..]
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'='))
            .count();
        if sign && key >= 20 && opaque::cost(&near[start..start + key]) > 5.5 {
            return Some(from + start..from + start + key);
        }
    }
    None
}

/// With a scheme, anything that is no stand-in; without one, what looks like a key.
fn header(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    let lead = found.text[found.whole.start..found.secret.start].to_ascii_lowercase();
    let schemed =
        !lead.trim_ascii_end().ends_with(b":") && has_any(lead.get(5..).unwrap_or_default(), SCHEMES);
    let basic = has_any(&lead, &["basic"]);
    if is_stand_in(value) || is_code(value) {
        return None;
    }
    let real = if basic {
        encoded::decode(value).is_some_and(|text| text.contains(':')) || secretness(value) > 6.0
    } else if schemed {
        secretness(value) > 5.4 || value.starts_with(b"eyJ")
    } else {
        value.len() >= 12 && (secretness(value) > 5.9 || value.starts_with(b"eyJ"))
    };
    real.then(|| found.secret.clone())
}

/// The list of parameters with which a request proves who sent it, as far as its proof, unless that is a stand-in.
fn parameters(found: &Found<'_>) -> Option<Range<usize>> {
    let proof = found.value().rsplit(|byte| matches!(byte, b' ' | b'"' | b'\'')).next().unwrap_or_default();
    let proof = proof.splitn(2, |byte| *byte == b'=').last().unwrap_or_default();
    (!is_filler(proof)).then(|| found.secret.clone())
}

fn bearer(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    let real =
        !is_stand_in(value) && !is_code(value) && (secretness(value) > 5.6 || value.starts_with(b"eyJ"));
    real.then(|| found.secret.clone())
}

fn curl_user(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    let password = value.split(|byte| *byte == b':').nth(1).unwrap_or_default();
    let common =
        [&b"password"[..], b"pass", b"passwd", b"pwd", b"secret", b"token", b"x", b"PASSWORD", b"PASS"];
    let real = !is_stand_in(password)
        && !is_stand_in(value)
        && !common.contains(&password)
        && !password.starts_with(b"//");
    real.then(|| found.secret.clone())
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

const SCHEMES: &[&str] = &[
    "bearer",
    "basic",
    "token",
    "digest",
    "ntlm",
    "negotiate",
    "key",
    "jwt",
    "oauth",
    "hawk",
    "splunk",
    "ssws",
    "bot",
    "aws4",
    "snyk",
    "discogs",
];
/// What a key that was taken out has left.
const PLACEHOLDER: &[u8] = b"<REDACTED:";
const LEAST_LINE: usize = 14;
/// An RSA key of 16,384 bits, with room.
const LONGEST_KEY: usize = 16 * 1024;
const NEAR_JWK: usize = 4096;
