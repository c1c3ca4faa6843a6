//! JSON web tokens: two or three parts of base64, of which the first is a header.

use std::ops::Range;

use super::{Family, Found, Rule, Trigger};
use crate::encoded;
use crate::finding::Tier;

pub(super) static RULES: &[Rule] = &[Rule {
    id: "jwt",
    label: "JWT",
    tier: Tier::Noncritical,
    family: Family::Jwt,
    trigger: Trigger::Anywhere(&["eyJ", "ewog"]),
    pattern: r"e[yw][JAo][A-Za-z0-9_=-]{8,700}",
    check: jwt,
    matches: &[
        concat!(
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.",
            "eyJzdWIiOiIxMjM0NSJ9.k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bNm3Qw"
        ),
        concat!("eyJhbGciOiJub25lIn0.", "eyJzdWIiOiIxMjM0NSJ9."),
    ],
    misses: &["eyJhbGciOiJIUzI1NiJ9", "eyJub3QiOiJhIGp3dCJ9", "eyJ.eyJ.x"],
}];

/// The header may be damaged or long; what follows it may not be missing.
fn jwt(found: &Found<'_>) -> Option<Range<usize>> {
    let part = |at: usize| {
        let token =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'=' | b'+' | b'/');
        found.text[at..].iter().take(MOST).take_while(|byte| token(byte)).count()
    };
    let start = found.whole.start;
    if start > 0 && found.text[start - 1].is_ascii_alphanumeric() {
        return None;
    }
    let header = part(start);
    let mut end = start + header;
    let mut parts = 1;
    while parts < 5 && found.text.get(end) == Some(&b'.') {
        let length = part(end + 1);
        if length == 0 && parts == 1 {
            return None;
        }
        end += 1 + length;
        parts += 1;
    }
    let decoded = encoded::decode(&found.text[start..start + header.min(400)]);
    let known = |text: &String| {
        ["\"alg\"", "\"typ\"", "\"kid\"", "\"enc\"", "\"cty\"", "\"x5"].iter().any(|name| text.contains(name))
    };
    let claims = found.text[start + header..end].starts_with(b".eyJ") || parts == 5;
    let whole = parts >= 2 && end - start - header >= 12 && claims && decoded.as_ref().is_some_and(known);
    whole.then_some(start..end)
}

const MOST: usize = 8 * 1024;
