//! Where a request comes from: the peer, or what a trusted proxy says.
//!
//! Every proxy adds the address that it saw at the end of `X-Forwarded-For`; what stands before that is whatever the client
//! wrote. So it is read from the end, and only as far as it was written by proxies of ours.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName};
use confidant_chats::service::Network;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The network of whoever asked.
pub(crate) fn of(peer: IpAddr, headers: &HeaderMap, proxies: &[IpAddr]) -> Network {
    let is_proxy =
        |address: IpAddr| proxies.iter().any(|proxy| proxy.to_canonical() == address.to_canonical());
    let lines: Vec<&str> =
        headers.get_all(FORWARDED_FOR).iter().map(|line| line.to_str().unwrap_or_default()).collect();
    let mut address = peer;
    for entry in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
        if !is_proxy(address) {
            break;
        }
        let Some(before) = parse(entry.trim()) else { break };
        address = before;
    }
    Network::of(address)
}

/// An address, perhaps with a port.
fn parse(entry: &str) -> Option<IpAddr> {
    let bare = entry.strip_prefix('[').and_then(|entry| entry.strip_suffix(']')).unwrap_or(entry);
    bare.parse().ok().or_else(|| Some(entry.parse::<SocketAddr>().ok()?.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_proxies_are_believed_and_only_what_they_wrote() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let proxies = [ip("10.0.0.1"), ip("::1")];
        for (peer, lines, expected) in [
            ("192.0.2.9", &["203.0.113.5"][..], "192.0.2.9"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["203.0.113.5"], "203.0.113.5"),
            // Whoever asks may have written the first.
            ("10.0.0.1", &["198.51.100.1, 203.0.113.5"], "203.0.113.5"),
            ("10.0.0.1", &["198.51.100.1", "203.0.113.5"], "203.0.113.5"),
            // Two proxies, one behind the other.
            ("::1", &["198.51.100.1, 203.0.113.5, 10.0.0.1"], "203.0.113.5"),
            ("::ffff:10.0.0.1", &["203.0.113.5:4711"], "203.0.113.5"),
            ("10.0.0.1", &["[2001:db8::1]:4711"], "2001:db8::1"),
            ("10.0.0.1", &["[2001:db8::1]"], "2001:db8::1"),
            ("10.0.0.1", &["203.0.113.5, unknown"], "10.0.0.1"),
            ("10.0.0.1", &[""], "10.0.0.1"),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(FORWARDED_FOR, line.parse().unwrap());
            }
            assert_eq!(of(ip(peer), &headers, &proxies), Network::of(ip(expected)), "{peer} {lines:?}");
        }
    }
}
