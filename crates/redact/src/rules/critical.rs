//! What must never be stored, not even by mistake, beside private keys: Authorization headers, bearer tokens, and what
//! command lines give to be sent as such.
//!
//! A header that names its scheme is believed whatever its value looks like, stand-ins, code and prose aside; a scheme
//! that nobody knows, a token without a header, and a header without a scheme ask for an opaque value.

use std::ops::Range;

use super::stand_in;
use super::value::{has_any, is_code, is_filler, is_marked, is_stand_in, secretness};
use super::{Family, Found, Rule, Trigger};
use crate::encoded;
use crate::finding::Tier;
use crate::opaque::Make;

pub(super) const fn critical(
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
            r#"(?:[:=,>]|=>|:=|\s)(?:>|=)?\s{0,8}(?:["'\\]{0,2}value["'\\]{0,2}\s{0,2}[:=]\s{0,4})?(?:\(|\[|\\){0,3}["'`\\]{0,4}\s{0,2}"#,
            r#"(?:(?:bearer|basic|token|digest|ntlm|negotiate|api-?key|key|jwt|oauth|hawk|splunk|ssws|genie-?key|bot|apitoken|pve[a-z]{0,9}token|aws4-hmac-sha256|snyk(?: token)?|sharedaccesssignature|discogs|sharedkey|privatekey|zoho-oauthtoken)(?:[\s:=+,]|%20){1,4}["'`\\]{0,3}(?:\*\*|__)?)?"#,
            r#"([A-Za-z0-9$<{\[(%*_.~+/=@:|&!^-][^\s"'`,;\\)\]}>]{3,})"#
        ),
        header,
        &[
            "Authorization: Basic amFuZTpodW50ZXIy",
            r#"{"authorization": "Bearer k3Jd9fQw7eRt5yUi1oPa8s"}"#,
            "curl -H 'Authorization: token 0f3a9c5b7d1e2f4a6b8c0d9e1f2a3b4c5d6e7f80'",
            "Proxy-Authorization: Basic amFuZTpodW50ZXIy",
            "authorization = k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz",
            "Authorization: Bearer hunter2",
            "-H 'Authorization: Bearer correct-horse-battery-staple'",
            "Authorization: Bearer 123456789012",
            "Authorization: Bearer a1b2a1b2a1b2a1b2",
            "authorization: basic YTpi",
            "Authorization: Bearer <k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz>",
            "Authorization: NTLM TlRMTVNTUAABAAAAB4IIogAAAAAAAAAAAAAAAAAAAAA=",
            "Authorization: Snyk token c3619dd1-c6ca-4418-a887-0ccaf63c5c70",
            "Authorization: SharedAccessSignature sr=hub.acme.net%2Fd&sig=crCzK3Jd9fQw7eRt5yUi%3D&se=1700000000",
            r#"{"key": "Authorization", "value": "Bot k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz"}"#,
            "- name: Authorization\n  value: k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz",
            "Authorization: Bearer **k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz**",
            "Authorization: Bearer open-sesame-and-the-secret-key and so on",
            "Authorization: Bearer opensesame",
            r#"<header name="Authorization">Bearer opensesame</header>"#,
            "Authorization: Bearer k3Jd9fQw.example.7eRt5yUi",
            "Authorization: Bearer k3Jd9fQw..7eRt5yUi",
            "Authorization: Bearer k3Jd9fQw(7eRt5yUi",
            r#"{"Authorization": "Bearer \"my-own-word\""}"#,
        ],
        &[
            "Authorization: Bearer $TOKEN",
            "Authorization: Bearer <token>",
            "Authorization: Bearer YOUR_API_KEY",
            "authorization: required for all requests",
            "set the Authorization header to something",
            "Authorization: Bearer tokens are used",
            "Authorization: Bearer authentication",
            "Authorization: Bearer ${token}",
            "Authorization: Bearer {{token}}",
            "headers['Authorization'] = 'Bearer ' + token",
            "headers['Authorization'] = 'Bearer '+token",
            "header.Set(\"Authorization\", \"Bearer \"+token1234)",
            "Authorization: Bearer access_token",
            "Authorization: Basic authentication, as in RFC7617",
            "Authorization: Bearer xxx",
            "Authorization: Bearer @@TOKEN@@",
            "Authorization: Bearer ...",
            "Authorization: Bearer eyJhbGciOi...",
            "Authorization: Bearer support was added in curl",
            "-H 'Authorization: Bearer example-access-token'",
            "Authorization: Digest username=\"Mufasa\", realm=\"test\"",
            "\"AWS::AppFabric::AppAuthorization\": \"0f3a9c5b7d1e2f4a6b8c0d9e1f2a3b4c\"",
        ],
    ),
    critical(
        "authorization_scheme",
        "AUTHORIZATION",
        Trigger::Anywhere(&["authorization", "authorisation"]),
        concat!(
            r#"(?i)authori[sz]ation["'`\])\\]{0,4}(?:\s{0,4}(?:=>|:=|[:=,])\s{0,4}(?:["'\\]{0,2}value["'\\]{0,2}\s{0,2}[:=]\s{0,4})?(?:\(|\[|\\){0,3}["'`\\]{0,4}|\s{1,4}["'])\s{0,2}"#,
            r#"[A-Za-z][A-Za-z0-9._-]{1,40}(?:\s|%20|\+){1,4}(?:[A-Za-z][A-Za-z0-9_-]{0,24}\s?=\s?)?[<\[({"'`\\]{0,3}"#,
            r#"([A-Za-z0-9_.~+/=|:-][^\s"'`,;\\)\]}>]{11,})"#
        ),
        scheme,
        &[
            "Authorization: DPoP k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz",
            "Authorization: MyScheme-V2 k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz",
            r#"{"Authorization": "Custom k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz"}"#,
            r#"Authorization: Token token="k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz""#,
            r#"proxy_set_header Authorization "Client-ID k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz";"#,
        ],
        &[
            "Authorization: see https://example.org/docs/rfc7235/section-4.2",
            "authorization: required springSecurityOauth2AutoconfigureVersion",
            "Authorization: Custom YOUR_TOKEN_GOES_HERE_1234",
        ],
    ),
    critical(
        "authorization_parameters",
        "AUTHORIZATION",
        Trigger::Anywhere(&["authorization", "authorisation"]),
        concat!(
            r#"(?i)authori[sz]ation["'`\])\\]{0,4}\s{0,4}(?:=>|[:=,])\s{0,4}(?:["'\\]{0,2}value["'\\]{0,2}\s{0,2}[:=]\s{0,4})?\[?["'`\\]{0,4}"#,
            r#"(?:digest|aws4-[a-z0-9-]{8,20}|oauth|hawk|mac|signature|goog4-[a-z0-9-]{8,20})\s{1,4}"#,
            r#"([^\n]{0,500}?\b(?:response|oauth_signature|signature|mac)\s?=\s?[\\"']{0,3}[A-Za-z0-9+/=%_-]{16,})"#
        ),
        parameters,
        &[
            r#"Authorization: Digest username="jane", nonce="k3Jd9fQw", response="6629fae49393a05397450978507c4ef1""#,
            "authorization: AWS4-HMAC-SHA256 Credential=k3Jd9fQw7eRt/20260830/aws4_request, Signature=5d672d79c15b13162d9279b0855cfba6",
            r#"'Authorization' => 'Signature keyId="k3Jd9fQw",algorithm="hs2019",signature="tnnArxj06cWHq44gCs1OSKk""#,
            r#""Authorization": "OAuth oauth_nonce=\"k3Jd\", oauth_signature=\"tnnArxj06cWHq44gCs1OSKk%2FjLY%3D\"""#,
        ],
        &[
            r#"Authorization: Digest username="jane", response="<response>""#,
            "Authorization: Digest is older than Basic",
            "authorization: Signature=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        ],
    ),
    critical(
        "authorization_near",
        "AUTHORIZATION",
        Trigger::Keyword(&[
            "basic",
            "token",
            "apikey",
            "api-key",
            "ntlm",
            "negotiate",
            "ssws",
            "snyk",
            "dpop",
            "splunk",
            "hawk",
            "geniekey",
            "jwt",
        ]),
        concat!(
            r#"(?i)(?:basic|(?:snyk )?token|api-?key|ntlm|negotiate|ssws|dpop|splunk|hawk|geniekey|jwt)"#,
            r#"(?:\\?[ \t+]|%20|["'],[ \t]?["']|["'][ \t]["']){1,2}([A-Za-z0-9+/_~-][A-Za-z0-9+/=_.~-]{7,})"#
        ),
        near_header,
        &[
            r#"request.setValue("Basic amFuZTpodW50ZXIy", forHTTPHeaderField: "Authorization")"#,
            r#"http.Header{"Authorization": []string{"Basic amFuZTpodW50ZXIy"}}"#,
            r#"new AuthenticationHeaderValue("Basic", "amFuZTpodW50ZXIy")"#,
            "I set the Authorization header to Basic amFuZTpodW50ZXIy and it failed",
        ],
        &[
            "a basic amFuZTpodW50ZXIy",
            "Authorization needs a token springSecurityOauth2AutoconfigureVersion",
            r#"{"name": "Authorization", "value": "Basic YOUR_CREDENTIALS"}"#,
            "the Authorization header holds Basic credentials, base64-encoded",
        ],
    ),
    critical(
        "bearer_token",
        "BEARER_TOKEN",
        Trigger::Keyword(&["bearer", "setbearerauth(", "set_bearer_auth("]),
        concat!(
            r#"(?i)(?:(?:set_?)?bearer_?auth\(|bearer(?:[ _-]?token)?["'`\\]{0,3}(?:</b>|\*\*)?(?:\s{0,3}(?:=>|:=|[:=])\s{0,3}|\s{1,3}|%20|\+))"#,
            r#"["'`\\]{0,3}(?:\*\*|__)?[<\[({]?["'`\\]{0,3}([A-Za-z0-9_-][A-Za-z0-9._~+/=:|-]{11,})"#
        ),
        bearer,
        &[
            "Bearer k3Jd9fQw7eRt5yUi1oPa8s",
            "Bearer -k3Jd9fQw7eRt5yUi1oPa8s",
            "Bearer k3Jd9fQw7eRt",
            "Bearer [k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz]",
            "Bearer <k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz>",
            "BEARER_TOKEN=k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz",
            "bearerToken: \"k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz\"",
            "bearer token: k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz",
            "?auth=Bearer+k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz",
            "request.setBearerAuth(\"k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz\")",
            r#"request.setValue("Bearer open-sesame-now", forHTTPHeaderField: "Authorization")"#,
            r#"http.Header{"Authorization": []string{"Bearer open-sesame-now"}}"#,
        ],
        &[
            "the bearer of news",
            "Bearer authentication_scheme_name",
            "bearer responsibilities",
            "Bearer <your-token-here>",
            "bearer token: authentication-tokens",
        ],
    ),
    critical(
        "curl_user",
        "AUTHORIZATION",
        Trigger::Keyword(&["curl", "wget", "http ", "https "]),
        r#"(?:curl|wget|https?)\b[^\n;|]{0,400}?\s(?:-[A-Za-z]{0,6}u|--user|--proxy-user|-U|-a|--auth)(?:\s{1,3}|=)?["']?([^\s"':$<{]{1,80}:[^\s"'@$<{][^\s"']{2,})"#,
        curl_user,
        &[
            "curl -u jane:hunter2x https://example.org",
            "curl -s --user 'api:k3Jd9fQw7eRt' https://example.org",
            "curl -sSLu jane:hunter2x https://example.org",
        ],
        &[
            "curl -u $USER:$PASS https://example.org",
            "curl -u user:password https://example.org",
            "curl https://example.org",
        ],
    ),
];

/// With a scheme, anything that is no stand-in; without one, what looks like a key.
fn header(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    let lead = found.text[found.whole.start..found.secret.start].to_ascii_lowercase();
    let schemed =
        !lead.trim_ascii_end().ends_with(b":") && has_any(lead.get(5..).unwrap_or_default(), SCHEMES);
    if let [b'<' | b'[' | b'(' | b'{', inside @ ..] = value {
        let opaque = is_opaque(inside) || (gives_bearer(found, &lead) && !stand_in::is_plain(value));
        let real = schemed && inside.len() >= LEAST_BRACKETED && opaque;
        return real.then(|| found.secret.start + 1..found.secret.end);
    }
    let explicit = lead.iter().any(|byte| matches!(byte, b':' | b'=' | b',' | b'>'));
    if explicit && gives_bearer(found, &lead) {
        let real = !stand_in::is_plain(value) && !stand_in::is_prose(value, found.after());
        return real.then(|| found.secret.clone());
    }
    if schemed && explicit && is_given(found) {
        return Some(found.secret.clone());
    }
    if is_stand_in(value) || is_code(value) || value.len() < LEAST_UNTOLD {
        return None;
    }
    // `AppAuthorization` is the name of something else.
    if !schemed && found.before(1).first().is_some_and(u8::is_ascii_alphabetic) {
        return None;
    }
    let basic = has_any(&lead, &["basic"]);
    let real = if basic {
        encoded::decode(value).is_some_and(|text| text.contains(':')) || secretness(value) > 6.0
    } else if schemed {
        secretness(value) > 5.4 || value.starts_with(b"eyJ")
    } else {
        value.len() >= 12 && (secretness(value) > 5.9 || value.starts_with(b"eyJ"))
    };
    real.then(|| found.secret.clone())
}

/// Whether the value stands behind `Bearer` as the header's own text, and is not what a program puts there
/// (`"Bearer " + token`).
fn gives_bearer(found: &Found<'_>, lead: &[u8]) -> bool {
    let Some(at) = lead.windows(6).rposition(|word| word == b"bearer") else { return false };
    let quote = lead[at..].iter().find(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let quoted = |quote: &u8| {
        found.value()[0].is_ascii_alphanumeric()
            && found.after().iter().find(|byte| **byte != b'\\') == Some(quote)
    };
    quote.is_none_or(quoted)
}

/// What a header gives behind its scheme, however weak: no stand-in, no code, and no word that goes on in a sentence.
fn is_given(found: &Found<'_>) -> bool {
    let value = found.value();
    let make = Make::of(value);
    let is_first_of_several = value.starts_with(b"username=");
    if is_marked(value, make) || is_code(value) || make.distinct <= 2 || is_first_of_several {
        return false;
    }
    // 'Bearer '+token, "Bearer ".$token: the name of a variable behind the quotes.
    let closed = matches!(found.text[..found.secret.start], [.., b' ', b'"' | b'\'' | b'`']);
    let joined = !value[0].is_ascii_alphanumeric() && (closed || make.digits == 0);
    let decoded = encoded::decode(value).is_some_and(|text| text.contains(':') && text.len() >= 3);
    if joined || decoded {
        return decoded;
    }
    if make.digits > 0 {
        let named = [&b"rfc"[..], b"http", b"oauth"];
        let about = named
            .iter()
            .any(|word| value.len() < 12 && value[..word.len().min(value.len())].eq_ignore_ascii_case(word));
        return !about && (make.letters() == 0 || value.len() >= LEAST_MIXED);
    }
    let ends = matches!(found.after().first(), None | Some(b'\n' | b'\r' | b'"' | b'\'' | b'`' | b'\\'));
    ends && value.len() >= LEAST_MIXED && !has_any(value, SPOKEN_OF)
}

/// A scheme that nobody knows, or a parameter of one that is known: the value must tell.
fn scheme(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    let address = value.windows(3).any(|part| part == b"://");
    (!address && Make::of(value).digits > 0 && is_opaque(value)).then(|| found.secret.clone())
}

/// A scheme and what it proves, with a header's name not far: in pairs, tables, calls and sentences.
fn near_header(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    let after = &found.after()[..found.after().len().min(NEAR)];
    let named = |part: &[u8]| has_any(part, &["authorization", "authorisation", "authenticationheader"]);
    if !named(found.before(NEAR)) && !named(after) {
        return None;
    }
    let is_basic =
        found.text[found.whole.start..].get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"basic"));
    let real = match is_basic {
        true => encoded::decode(value).is_some_and(|text| text.contains(':') && text.is_ascii()),
        false => value.len() >= LEAST_BRACKETED && Make::of(value).digits > 0 && is_opaque(value),
    };
    real.then(|| found.secret.clone())
}

fn is_opaque(value: &[u8]) -> bool {
    let real = secretness(value) > 5.9 || value.starts_with(b"eyJ");
    real && !is_stand_in(value) && !is_code(value)
}

/// The list of parameters with which a request proves who sent it, as far as its proof, unless that is a stand-in.
fn parameters(found: &Found<'_>) -> Option<Range<usize>> {
    let proof = found.value().rsplit(|byte| matches!(byte, b' ' | b'"' | b'\'')).next().unwrap_or_default();
    let proof = proof.splitn(2, |byte| *byte == b'=').last().unwrap_or_default();
    (!is_filler(proof)).then(|| found.secret.clone())
}

fn bearer(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    let least = if value.len() < 16 { 6.4 } else { 5.6 };
    let real =
        !is_stand_in(value) && !is_code(value) && (secretness(value) > least || value.starts_with(b"eyJ"));
    (real || is_set(found)).then(|| found.secret.clone())
}

/// Whether the value is what a call sets a header to: `setHeader("Authorization", "Bearer …")`, in any order.
fn is_set(found: &Found<'_>) -> bool {
    let quote = |byte: Option<&u8>| matches!(byte, Some(b'"' | b'\'' | b'`'));
    let after = found.after();
    let strings = quote(found.before(1).first()) && quote(after.first());
    let named = |part: &[u8]| has_any(part, &["authorization", "authorisation", "authenticationheader"]);
    strings
        && (named(found.before(NEAR)) || named(&after[..after.len().min(NEAR)]))
        && !stand_in::is_plain(found.value())
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
    "sharedaccess",
];
/// Words of which a sentence about headers is made.
const SPOKEN_OF: &[&str] = &[
    "token",
    "auth",
    "scheme",
    "header",
    "credential",
    "jwt",
    "key",
    "access",
    "value",
    "string",
    "secret",
    "realm",
    "bearer",
    "basic",
    "grant",
    "session",
    "require",
    "example",
    "sample",
    "abcdef",
];
/// In brackets, most are stand-ins.
const LEAST_BRACKETED: usize = 16;
/// How far a header's name may stand from its value.
const NEAR: usize = 80;
/// Shorter ones are believed behind a scheme only.
const LEAST_UNTOLD: usize = 6;
const LEAST_MIXED: usize = 6;
