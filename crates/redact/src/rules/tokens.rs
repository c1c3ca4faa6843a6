//! Bearer tokens that stand without their header: in exports of API clients, on command lines of Kubernetes, in answers of
//! OAuth. Whoever holds one is believed, so they block as the header does.

use std::ops::Range;

use super::critical::critical;
use super::stand_in;
use super::value::{is_code, is_ladder, is_stand_in, secretness};
use super::{Found, Rule, Trigger};
use crate::opaque::Make;

/// The place of `client_bearer` among the rules.
pub(super) const CLIENT: usize = 0;

pub(super) static RULES: &[Rule] = &[
    critical(
        "client_bearer",
        "BEARER_TOKEN",
        Trigger::Keyword(&["bearer\"", "bearer'", "auth:bearer"]),
        concat!(
            r#"(?i)(?:bearer["']\s{0,8}(?::\s{0,8}[\[{][\s\[{]{0,80}[^\]}]{0,240}?|,\s{0,80})["'](?:value|token)["']\s{0,8}:\s{0,8}["']"#,
            r#"|auth:bearer\s{0,4}\{\s{1,20}token:\s{0,4})([^"'\\\s]{4,})"#
        ),
        plainly,
        &[
            r#""auth": {"type": "bearer", "bearer": [{"key": "token", "value": "open-sesame-now", "type": "string"}]}"#,
            r#""authentication": {"type": "bearer", "token": "k3Jd9fQw7eRt5yUi"}"#,
            r#""bearer": {"token": "hunter2x"}"#,
            "auth:bearer {\n  token: open-sesame-now\n}",
        ],
        &[
            r#""bearer": [{"key": "token", "value": "{{access_token}}", "type": "string"}]"#,
            r#""type": "bearer", "token": "<your token>""#,
            r#""schemes": ["basic", "bearer"], "token": "hunter2x""#,
        ],
    ),
    critical(
        "kubectl_token",
        "BEARER_TOKEN",
        Trigger::Keyword(&["kubectl", "oc ", "helm ", "kubeadm", "k9s"]),
        r#"(?:kubectl|oc|helm|kubeadm|k9s)\b[^\n]{0,400}?\s--(?:kube-)?token(?:=|\s{1,3})["']?([^\s"'`;|)&]{4,})"#,
        plainly,
        &[
            "kubectl get pods --token open-sesame-now",
            "kubectl --server=https://k8s.example.org --token=k3Jd9fQw7eRt5yUi get nodes",
            "oc login --token=sha256~k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bNm3Qw",
        ],
        &[
            "kubectl --token=$TOKEN get pods",
            "kubectl --token <token> get pods",
            "kubeadm join --token abcdef.0123456789abcdef",
            "kubectl create token default --duration 10m",
        ],
    ),
    critical(
        "bearer_option",
        "BEARER_TOKEN",
        Trigger::Anywhere(&[
            "--oauth2-bearer",
            "-a bearer",
            "--auth-type bearer",
            "--auth-type=bearer",
            "AuthenticationHeaderValue(",
        ]),
        r#"(?i)(?:--oauth2-bearer(?:=|\s{1,3})|(?:-A|--auth-type)[ =]bearer\s{1,3}(?:-a|--auth)(?:=|\s{1,3})|AuthenticationHeaderValue\(\s{0,2}["']Bearer["'],\s{0,4}["'])["']?([^\s"'`;|)&]{4,})"#,
        plainly,
        &[
            "curl --oauth2-bearer open-sesame https://example.org",
            "http -A bearer -a open-sesame example.org",
            r#"new AuthenticationHeaderValue("Bearer", "open-sesame")"#,
            "--oauth2-bearer 'k3Jd9fQw7eRt5yUi1oPa8s'",
        ],
        &["curl --oauth2-bearer $TOKEN https://example.org", "http -A bearer -a <token> example.org"],
    ),
    critical(
        "kubeconfig_token",
        "BEARER_TOKEN",
        Trigger::Keyword(&["user:"]),
        r#"user:[\s>#|]{1,24}token:\s{1,4}["']?([A-Za-z0-9_.~+/=-]{16,})"#,
        opaque,
        &["- name: admin\n  user:\n    token: k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz"],
        &["user:\n  token: your-token-goes-here"],
    ),
    critical(
        "oauth_token",
        "BEARER_TOKEN",
        Trigger::Anywhere(&[
            "access_token",
            "accesstoken",
            "access-token",
            "refresh_token",
            "refreshtoken",
            "id_token",
        ]),
        concat!(
            r#"(?i)(?:(?:access|refresh)[_-]?token|id_token)["'\\\]]{0,4}\s{0,4}(?:(?:,\s{0,8}["']value["']\s{0,4})?:|=>|:=|=)"#,
            r#"\s{0,4}["'`\\]{0,4}([A-Za-z0-9_.~+/=|%-]{16,})"#
        ),
        oauth,
        &[
            r#"{"access_token": "k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz", "token_type": "Bearer", "expires_in": 3600}"#,
            "https://api.example.org/me?access_token=k3Jd9fQw7eRt5yUi1oPa8s",
            "refresh_token=1//0k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz&grant_type=refresh_token",
            r#"{"key": "access_token", "value": "k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz"}"#,
        ],
        &[
            "access_token = twitter_oauth_token",
            "access_token=AbCdEfGhIjKlMnOpQrStUvWxYz1234567890AbCdEf",
            r#""access_token": "YOUR_ACCESS_TOKEN""#,
            "access_token = await client.fetchAccessToken(request)",
            "https://example.org/?access_token=urlencoded",
        ],
    ),
];

/// Everything that is no plain stand-in, and is not counted up as examples are.
fn plainly(found: &Found<'_>) -> Option<Range<usize>> {
    is_given(found.value()).then(|| found.secret.clone())
}

/// Whether a value in a bearer token's own place is one.
pub(crate) fn is_given(value: &[u8]) -> bool {
    value.len() >= LEAST && !stand_in::is_plain(value) && !(is_ladder(value) && value.len() < LONGEST_LADDER)
}

fn opaque(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    let real = value.starts_with(b"eyJ") || (Make::of(value).digits > 0 && secretness(value) > 5.9);
    (real && !is_ladder(value) && !is_stand_in(value) && !is_code(value)).then(|| found.secret.clone())
}

/// The name must be whole: `twitter_access_token` is a key of a service, which its own rule judges.
fn oauth(found: &Found<'_>) -> Option<Range<usize>> {
    let whole = !found
        .before(1)
        .first()
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if whole { opaque(found) } else { None }
}

const LEAST: usize = 4;
const LONGEST_LADDER: usize = 40;
