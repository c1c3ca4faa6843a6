//! Who asks, as far as headers say: from which origin, with which session.
//!
//! ```text
//! Host ─▶ one of our origins' hosts? ─▶ Sec-Fetch-Site: same-origin, or none ─▶ Origin
//!                                                                   ours, of this host ─┬─ none
//!                                              page: cookie + header Confidant-Session ─┘   └─ program: Authorization + header
//! ```
//!
//! `Host` is checked because an attacker can point a name at this machine: then a browser sends the attacker's page's requests
//! here, as of the same origin. Easy to get wrong: a header that is there twice. Two servers on the way would read two
//! values, so it is refused.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use confidant_chat_format::{Origin, Refused};
use confidant_chat_protocol::{ErrorName, Failure, RefusedSent};
use confidant_chats::service::{Caller, SessionSecrets};

use crate::settings::Settings;
use crate::{cookie, network};

/// The header with a session's second secret.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("confidant-session");
/// The header with a session's id, in an answer to a program.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("confidant-session-id");
/// The header with the number of a stream of news: in its answer, and in requests that are answered there.
pub(crate) const STREAM: HeaderName = HeaderName::from_static("confidant-stream");
/// The header that says which release a page is.
const PAGE: HeaderName = HeaderName::from_static("confidant-page");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// The scheme of `Authorization` for programs.
const SCHEME: &str = "Confidant-Session";

/// A caller, and what it is.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) caller: Caller,
    pub(crate) client: Client,
}

/// What asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// A page, in a browser: its session's id is in a cookie.
    Page,
    /// Anything else: it keeps the id itself.
    Program,
}

/// Who makes this request.
pub(crate) fn of(parts: &Parts, settings: &Settings) -> Result<Known, RefusedSent> {
    let headers = &parts.headers;
    let mut known = of_socket(parts, settings)?;
    if let (Some(page), Some(ours)) = (single(headers, &PAGE)?, &settings.page)
        && page != ours
    {
        let error = ErrorName::Request(Failure::StaleClient);
        let hint = "load the page again; what you have not sent yet is kept";
        return Err(RefusedSent::new(error, "this page and the server are of different releases", hint));
    }
    let (origin, client) = (&known.caller.origin, known.client);
    let cookie = cookie::read(headers, origin)?;
    let authorization = single(headers, &header::AUTHORIZATION)?;
    let id = match (client, cookie, authorization) {
        (_, Some(_), Some(_)) => return Err(Refused::TwoCredentials.into()),
        (Client::Page, None, Some(_)) => {
            return Err(refused("a page identifies its session by the cookie", "leave Authorization out"));
        }
        // A browser that does not say where a request comes from is too old to be trusted with a cookie.
        (Client::Page, Some(_), None) if single(headers, &FETCH_SITE)?.is_none() => {
            return Err(refused("a cookie came without Sec-Fetch-Site", "use a newer browser"));
        }
        (Client::Page, cookie, None) => cookie,
        (Client::Program, _, authorization) => authorization.map(authorized).transpose()?,
    };
    let secret = single(headers, &SESSION)?.and_then(cookie::decode);
    known.caller.session = id.zip(secret).map(|(id, secret)| SessionSecrets { id, secret });
    let stream = single(headers, &STREAM)?.map(str::parse::<u64>).transpose();
    known.caller.stream = stream.map_err(|_| {
        malformed("Confidant-Stream is not a number", "send back what the stream was opened with")
    })?;
    Ok(known)
}

/// Who makes this request, which reads and changes nothing. A browser names no origin with it; that it comes from our page says
/// `Sec-Fetch-Site`.
pub(crate) fn of_reading(parts: &Parts, settings: &Settings) -> Result<Known, RefusedSent> {
    let is_ours = single(&parts.headers, &FETCH_SITE)? == Some("same-origin");
    if !is_ours || single(&parts.headers, &header::ORIGIN)?.is_some() {
        return of(parts, settings);
    }
    let host = single(&parts.headers, &header::HOST)?.unwrap_or_default();
    let origin = settings.origins.iter().find(|origin| is_host_of(host, origin));
    let mut named = parts.clone();
    if let Some(Ok(origin)) = origin.map(|origin| HeaderValue::from_str(origin.as_str())) {
        named.headers.insert(header::ORIGIN, origin);
    }
    of(&named, settings)
}

/// Who opens this socket, without a session: that is the ticket's. A browser may send its cookie with it, and need not say
/// more than its origin: not every browser sends `Sec-Fetch-Site` with a handshake.
pub(crate) fn of_socket(parts: &Parts, settings: &Settings) -> Result<Known, RefusedSent> {
    let (origin, client) = origin_of(parts, settings)?;
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |ConnectInfo(peer)| peer.ip());
    let network = network::of(peer, &parts.headers, &settings.proxies);
    Ok(Known { caller: Caller { origin, network, session: None, stream: None }, client })
}

/// The origin that a request is made at, and whether a page makes it.
fn origin_of(parts: &Parts, settings: &Settings) -> Result<(Origin, Client), RefusedSent> {
    let headers = &parts.headers;
    let host = single(headers, &header::HOST)?;
    // Where the request's line names a host as well, it is the same.
    let is_other = |host: &str| parts.uri.authority().is_some_and(|other| other.as_str() != host);
    let Some(host) = host.filter(|host| !is_other(host)) else {
        return Err(refused("the request names no host", "send one Host header"));
    };
    let here: Vec<&Origin> = settings.origins.iter().filter(|origin| is_host_of(host, origin)).collect();
    if here.is_empty() {
        let hint = "use an address that the operator has listed as an origin of this server";
        return Err(refused("this server does not serve this host name", hint));
    }
    let site = single(headers, &FETCH_SITE)?;
    if site.is_some_and(|site| site != "same-origin") {
        return Err(foreign());
    }
    if let Some(origin) = single(headers, &header::ORIGIN)? {
        let ours = here.into_iter().find(|ours| ours.as_str() == origin);
        return Ok((ours.ok_or_else(foreign)?.clone(), Client::Page));
    }
    if site.is_some() || here.iter().any(|origin| cookie::is_there(headers, origin)) {
        return Err(refused("a browser's request came without its origin", "send the Origin header"));
    }
    Ok((here[0].clone(), Client::Program))
}

/// The session's id, from `Authorization`.
fn authorized(value: &str) -> Result<[u8; 32], RefusedSent> {
    let hint = "send `Authorization: Confidant-Session ID`; API tokens are not valid here";
    let id = value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case(SCHEME));
    id.and_then(|(_, id)| cookie::decode(id.trim()))
        .ok_or_else(|| refused("Authorization names no session", hint))
}

/// The only value of a header; `None` if it is not there.
pub(crate) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, RefusedSent> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    match (first.map(|value| value.to_str()), values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(value)), None) => Ok(Some(value)),
        _ => Err(malformed(&format!("the header {name} is there twice, or not text"), "send it once")),
    }
}

/// Whether `Host` has the host and port of an origin. Compared as text: a number can be spelled in many ways.
fn is_host_of(host: &str, origin: &Origin) -> bool {
    let (authority, port) = match origin.as_str().split_once("://") {
        Some(("https", authority)) => (authority, ":443"),
        Some((_, authority)) => (authority, ":80"),
        None => return false,
    };
    let has_port = authority.rsplit(']').next().is_some_and(|after| after.contains(':'));
    let bare = if has_port { host } else { host.strip_suffix(port).unwrap_or(host) };
    bare.eq_ignore_ascii_case(authority)
}

fn foreign() -> RefusedSent {
    refused("the request comes from another site", "use the page that this server serves")
}

/// What is said to whoever shows no session where one is needed.
pub(crate) fn no_session() -> RefusedSent {
    refused("there is no valid session", "log in again")
}

fn refused(what: &str, hint: &str) -> RefusedSent {
    RefusedSent::new(ErrorName::Request(Failure::Unauthorised), what, hint)
}

pub(crate) fn malformed(what: &str, hint: &str) -> RefusedSent {
    RefusedSent::new(ErrorName::Request(Failure::Malformed), what, hint)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    const ID: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";

    fn settings() -> Settings {
        let origins = ["https://chat.example", "http://localhost:8080", "https://[::1]:8443"];
        Settings::new(origins.map(|origin| Origin::parse(origin).unwrap()).to_vec())
    }

    /// The origin and client of a request with these headers, or the words of the refusal.
    fn asked(headers: &[(&str, &str)]) -> Result<(String, Client, bool), String> {
        let mut request = Request::post("/account/prelogin");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let known = of(&request.body(()).unwrap().into_parts().0, &settings());
        let shown = |known: Known| {
            (known.caller.origin.as_str().to_owned(), known.client, known.caller.session.is_some())
        };
        known.map(shown).map_err(|refused| refused.what.as_str().to_owned())
    }

    #[test]
    fn a_host_is_one_of_ours() {
        let program = |origin: &str| Ok((origin.to_owned(), Client::Program, false));
        for (host, origin) in [
            ("chat.example", "https://chat.example"),
            ("CHAT.example:443", "https://chat.example"),
            ("localhost:8080", "http://localhost:8080"),
            ("[::1]:8443", "https://[::1]:8443"),
        ] {
            assert_eq!(asked(&[("host", host)]), program(origin), "{host}");
        }
        for host in [
            "evil.example",
            "chat.example:80",
            "chat.example.",
            "x@chat.example",
            "localhost",
            "localhost:80",
            "localhost:+8080",
            "localhost:08080",
            "localhost:8080:80",
            "chat.example:",
            "chat.example:443:443",
            "127.0.0.1:8080",
            "",
            "a b",
        ] {
            assert!(asked(&[("host", host)]).is_err(), "{host}");
        }
        assert!(asked(&[]).is_err());
        assert!(asked(&[("host", "chat.example"), ("host", "chat.example")]).is_err());
    }

    #[test]
    fn an_origin_is_ours_and_of_the_host_that_is_asked() {
        let host = ("host", "chat.example");
        let page = Ok(("https://chat.example".to_owned(), Client::Page, false));
        assert_eq!(asked(&[host, ("origin", "https://chat.example")]), page);
        assert_eq!(
            asked(&[host, ("origin", "https://chat.example"), ("sec-fetch-site", "same-origin")]),
            page
        );
        for origin in [
            "http://chat.example",
            "https://chat.example:8443",
            "https://evil.example",
            "null",
            "",
            "http://localhost:8080",
        ] {
            assert!(asked(&[host, ("origin", origin)]).is_err(), "{origin}");
        }
        for site in ["cross-site", "same-site", "none", ""] {
            assert!(
                asked(&[host, ("origin", "https://chat.example"), ("sec-fetch-site", site)]).is_err(),
                "{site}"
            );
        }
        assert!(asked(&[host, ("sec-fetch-site", "same-origin")]).is_err(), "a browser names its origin");
    }

    #[test]
    fn a_session_is_shown_in_one_way_and_by_both_secrets() {
        let page = [
            ("host", "chat.example"),
            ("origin", "https://chat.example"),
            ("sec-fetch-site", "same-origin"),
            ("confidant-session", ID),
        ];
        let cookie = format!("a=b; __Host-confidant={ID}");
        let (cookie, bearer) = (("cookie", cookie.as_str()), format!("Confidant-Session {ID}"));
        let has = |headers: &[(&str, &str)]| asked(headers).map(|(_, _, session)| session);
        let without = |name: &str, more: (&'static str, &str)| {
            let mut headers: Vec<(&str, String)> = page
                .iter()
                .filter(|one| one.0 != name)
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect();
            headers.push((more.0, more.1.to_owned()));
            let headers: Vec<(&str, &str)> = headers.iter().map(|(a, b)| (*a, b.as_str())).collect();
            has(&headers)
        };
        assert_eq!(without("", cookie), Ok(true));
        assert_eq!(without("confidant-session", cookie), Ok(false));
        assert!(without("origin", cookie).is_err());
        assert!(without("sec-fetch-site", cookie).is_err());
        // The cookie of another origin is none.
        assert_eq!(without("", ("cookie", &format!("confidant-8080={ID}"))), Ok(false));
        assert_eq!(without("", ("cookie", "__Host-confidant=AQEB")), Ok(false));
        assert!(without("", ("cookie", &format!("__Host-confidant={ID}; __Host-confidant={ID}"))).is_err());
        // A page has a cookie, a program a header, and nobody has both.
        assert!(without("", ("authorization", &bearer)).is_err());
        let program =
            [("host", "chat.example"), ("confidant-session", ID), ("authorization", bearer.as_str())];
        assert_eq!(has(&program), Ok(true));
        assert_eq!(has(&program[..2]), Ok(false));
        assert!(has(&[program[0], program[1], program[2], cookie]).is_err());
        assert!(has(&[program[0], program[1], ("authorization", "Bearer x")]).is_err());
        let mut both = page.to_vec();
        both.extend([cookie, ("authorization", bearer.as_str())]);
        assert_eq!(has(&both), Err(RefusedSent::from(Refused::TwoCredentials).what.as_str().to_owned()));
    }
}
