//! Where a request comes from: the peer, or what a trusted proxy says.
//!
//! Every proxy adds the address that it saw at the end of `X-Forwarded-For`; what stands before that is whatever the client
//! wrote. So it is read from the end, and only as far as it was written by proxies of ours.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use axum::http::{HeaderMap, HeaderName};
use confidant_chats::service::Network;
use ipnet::IpNet;

/// Whose word about where a request comes from is believed: an address, or all of a network (`10.0.0.0/8`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proxy(IpNet);

impl Proxy {
    fn is(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl From<IpAddr> for Proxy {
    fn from(address: IpAddr) -> Self {
        Self(address.to_canonical().into())
    }
}

/// It is neither an address nor a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotANetwork;

impl fmt::Display for NotANetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "this is neither an address nor a network; hint: write 10.0.0.1, fd00::1, 10.0.0.0/8 or fd00::/8",
        )
    }
}

impl std::error::Error for NotANetwork {}

impl FromStr for Proxy {
    type Err = NotANetwork;

    /// Reads an address or a network. A network of IPv4 addresses in IPv6 is refused: write it as IPv4.
    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(address.into());
        }
        let network: IpNet = text.parse().map_err(|_| NotANetwork)?;
        if network.addr().to_canonical() == network.addr() {
            Ok(Self(network.trunc()))
        } else {
            Err(NotANetwork)
        }
    }
}

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The network of whoever asked.
pub(crate) fn of(peer: IpAddr, headers: &HeaderMap, proxies: &[Proxy]) -> Network {
    let is_proxy = |address: IpAddr| proxies.iter().any(|proxy| proxy.is(address));
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
        let proxies = ["10.0.0.1", "::1", "172.16.0.0/12", "fd00::/8"].map(|proxy| proxy.parse().unwrap());
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
            // Any of a network.
            ("172.31.255.1", &["203.0.113.5"], "203.0.113.5"),
            ("::ffff:172.16.0.1", &["203.0.113.5, fd12:3456::7"], "203.0.113.5"),
            ("172.32.0.1", &["203.0.113.5"], "172.32.0.1"),
            ("fe00::1", &["203.0.113.5"], "fe00::1"),
            ("10.0.0.1", &[""], "10.0.0.1"),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(FORWARDED_FOR, line.parse().unwrap());
            }
            assert_eq!(of(ip(peer), &headers, &proxies), Network::of(ip(expected)), "{peer} {lines:?}");
        }
    }

    #[test]
    fn a_proxy_is_an_address_or_a_network() {
        let read = |text: &str| text.parse::<Proxy>();
        assert_eq!(read("::ffff:10.0.0.1"), read("10.0.0.1"));
        assert_eq!(read("10.0.0.1/32"), read("10.0.0.1"));
        assert_eq!(read("10.1.2.3/8"), read("10.0.0.0/8"));
        for text in ["", "10.0.0", "10.0.0.0/33", "proxy.example", "10.0.0.1:80", "::ffff:10.0.0.0/104", "*"]
        {
            assert_eq!(read(text), Err(NotANetwork), "{text}");
        }
    }
}
