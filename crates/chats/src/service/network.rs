//! Where a request comes from, as coarse as delays need it.

use std::net::{IpAddr, Ipv6Addr};

use confidant_display::debug_without_content;

/// An address; of IPv6 the /64, since one person has all of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network(IpAddr);

debug_without_content!(Network(..));

impl Network {
    /// The network of an address. An IPv4 address in IPv6 is the IPv4 address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.into()),
            IpAddr::V6(address) => Self(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into()),
        }
    }

    /// Its bytes, to be tagged.
    pub(crate) fn bytes(self) -> [u8; 16] {
        match self.0 {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_address_or_half_of_one() {
        let network = |text: &str| Network::of(text.parse().unwrap());
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:0:0:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert_ne!(network("192.0.2.1").bytes(), network("192.0.2.2").bytes());
        assert_eq!(format!("{:?}", network("192.0.2.1")), "Network(..)");
    }
}
