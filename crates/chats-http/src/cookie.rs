//! The cookie of a session: its name, its value, its attributes.
//!
//! On `https` it is `__Host-confidant`: a browser takes such a name only from this very host, over TLS, and no other host can
//! put one in its place. On `http`, which is for this machine, a browser would not take that name. There the port is part
//! of the name, since cookies are shared between the ports of a host.

use std::time::{Duration, UNIX_EPOCH};

use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_chat_format::Origin;
use confidant_chat_protocol::RefusedSent;
use confidant_chats::service::Cookie;

use crate::caller::malformed;

/// The session's id from the cookie; `None` if there is none, or it is not one of ours.
pub(crate) fn read(headers: &HeaderMap, origin: &Origin) -> Result<Option<[u8; 32]>, RefusedSent> {
    let mut found = values(headers, &name(origin)).collect::<Vec<_>>();
    match (found.pop(), found.is_empty()) {
        (None, _) => Ok(None),
        (Some(value), true) => Ok(decode(&value)),
        _ => Err(malformed("the session's cookie is there twice", "delete the cookies of this site")),
    }
}

/// Whether there is a session's cookie, whatever its value.
pub(crate) fn is_there(headers: &HeaderMap, origin: &Origin) -> bool {
    values(headers, &name(origin)).next().is_some()
}

/// The header that sets it or removes it.
pub(crate) fn header(cookie: &Cookie, origin: &Origin) -> Option<HeaderValue> {
    let name = name(origin);
    let secure = if is_https(origin) { "; Secure" } else { "" };
    let (value, until) = match cookie {
        Cookie::Set { id, expires_at } => (encode(id), UNIX_EPOCH + Duration::from_millis(expires_at.0)),
        Cookie::Clear => (String::new(), UNIX_EPOCH),
    };
    let until = httpdate::fmt_http_date(until);
    let text = format!("{name}={value}; Path=/; Expires={until}; HttpOnly; SameSite=Strict{secure}");
    let mut header = HeaderValue::try_from(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// 32 bytes as text.
pub(crate) fn encode(bytes: &[u8; 32]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// 32 bytes from text.
pub(crate) fn decode(text: &str) -> Option<[u8; 32]> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

fn name(origin: &Origin) -> String {
    if is_https(origin) {
        return "__Host-confidant".to_owned();
    }
    let port = origin.as_str().rsplit_once(':').map(|(_, port)| port);
    let port = port.filter(|port| port.bytes().all(|digit| digit.is_ascii_digit())).unwrap_or("80");
    format!("confidant-{port}")
}

fn is_https(origin: &Origin) -> bool {
    origin.as_str().starts_with("https://")
}

fn values(headers: &HeaderMap, name: &str) -> impl Iterator<Item = String> {
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    let pairs = pairs.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |pair| pair.0 == name).map(|(_, value)| value.to_owned())
}

#[cfg(test)]
mod tests {
    use confidant_chats::store::Millis;

    use super::*;

    fn origin(text: &str) -> Origin {
        Origin::parse(text).unwrap()
    }

    #[test]
    fn a_cookie_is_bound_to_its_host_and_unseen_by_scripts() {
        let set = Cookie::Set { id: [1; 32], expires_at: Millis(1_800_000_000_000) };
        let id = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";
        let secure = header(&set, &origin("https://chat.example")).unwrap();
        assert_eq!(
            secure.to_str().unwrap(),
            format!(
                "__Host-confidant={id}; Path=/; Expires=Fri, 15 Jan 2027 08:00:00 GMT; HttpOnly; SameSite=Strict; Secure"
            )
        );
        assert!(secure.is_sensitive() && !format!("{secure:?}").contains(id));
        let gone = header(&Cookie::Clear, &origin("http://localhost:8080")).unwrap();
        assert_eq!(
            gone.to_str().unwrap(),
            "confidant-8080=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; SameSite=Strict"
        );
        for (text, cookie) in [
            ("http://localhost", "confidant-80"),
            ("http://[::1]:7", "confidant-7"),
            ("http://[::1]", "confidant-80"),
        ] {
            assert_eq!(name(&origin(text)), cookie);
        }
    }

    #[test]
    fn what_is_set_is_read() {
        let (https, mut headers) = (origin("https://chat.example"), HeaderMap::new());
        assert_eq!(read(&headers, &https), Ok(None));
        let value = format!("x=1;__Host-confidant={} ; y", encode(&[9; 32]));
        headers.insert(header::COOKIE, value.parse().unwrap());
        assert_eq!(read(&headers, &https), Ok(Some([9; 32])));
        assert!(!is_there(&headers, &origin("http://localhost:8080")));
        // Two lines count as one.
        headers.append(header::COOKIE, "__Host-confidant=".parse().unwrap());
        assert!(read(&headers, &https).is_err());
    }
}
