//! How long sessions live.

use std::time::Duration;

use confidant_seal::Scope;

use crate::clock::Millis;

/// How long a session lives after its last turn; `None` is for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// Sessions keyed by room and thread.
    pub place: Option<Duration>,
    /// Sessions keyed by person alone.
    pub person: Option<Duration>,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self { place: Some(Duration::from_secs(86_400)), person: None }
    }
}

impl Lifetimes {
    /// The same for a scope whose channel has this lifetime of its own, if it has one.
    pub(crate) fn expiry(&self, own: Option<Duration>, scope: &Scope, now: Millis) -> Option<Millis> {
        let lifetime = own.or(if scope.is_person() { self.person } else { self.place })?;
        // Rounded, so that the index by expiry is not rewritten for every turn; down, so that nothing outlives its lifetime.
        let grain = i64::try_from(lifetime.as_millis() / 1000).unwrap_or(i64::MAX).clamp(1, 60_000);
        Some(Millis(now.plus(lifetime).0 / grain * grain))
    }
}

#[cfg(test)]
mod tests {
    use confidant_seal::TenantId;

    use super::*;

    #[test]
    fn a_channel_may_have_a_lifetime_of_its_own() {
        let (day, lifetimes) = (Duration::from_secs(86_400), Lifetimes::default());
        let expiry = |own, id: &str| {
            let tenant = TenantId::new("t").expect("it is a name");
            lifetimes.expiry(own, &Scope::parse(tenant, id).expect("it is a session"), Millis(0))
        };
        for id in ["discord_conv:7", "discord:1:main:7"] {
            assert_eq!(expiry(Some(30 * day), id), Some(Millis(0).plus(30 * day)), "{id}");
        }
        assert_eq!(expiry(None, "cli_conv:7"), None);
        assert_eq!(expiry(None, "cli:1:main:7"), Some(Millis(0).plus(day)));
    }
}
