//! The headers of a request, judged as the routes judge them but without a connection around them.

use axum::http::{HeaderName, HeaderValue, Request};
use confidant_chat_format::Origin;

use crate::caller::{self, Client};
use crate::settings::Settings;

/// What a request is taken for.
#[derive(Debug)]
pub struct Asked {
    /// At which origin it is made.
    pub origin: String,
    /// Whether a page makes it.
    pub is_page: bool,
    /// Whether it shows a session.
    pub has_session: bool,
}

/// Who makes a request with these headers to a server of these origins. Headers that cannot be sent are left out.
pub fn asked(origins: &[&str], headers: &[(&[u8], &[u8])]) -> Result<Asked, String> {
    let origins = origins.iter().filter_map(|origin| Origin::parse(origin).ok()).collect();
    let loopback = std::net::IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED);
    let settings = Settings { proxies: vec![loopback.into()], ..Settings::new(origins) };
    let mut parts = Request::new(()).into_parts().0;
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            parts.headers.append(name, value);
        }
    }
    let known = caller::of(&parts, &settings);
    let known = known.map_err(|refused| format!("{} {}", refused.what.as_str(), refused.hint.as_str()))?;
    Ok(Asked {
        origin: known.caller.origin.as_str().to_owned(),
        is_page: known.client == Client::Page,
        has_session: known.caller.session.is_some(),
    })
}
