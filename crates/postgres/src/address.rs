//! Where a PostgreSQL is.

use std::str::FromStr as _;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// The address of a database, as `store.url` has it. Never prints its password.
#[derive(Clone)]
pub struct PostgresAddress {
    pub(crate) config: Config,
    pub(crate) tls: Tls,
    /// A connection is waited for at least that long.
    pub(crate) patience: Duration,
}

/// How far the connection is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tls {
    /// Not at all.
    No,
    /// Encrypted, and the server's certificate is checked for its name.
    Verified,
}

impl PostgresAddress {
    /// Reads `postgres://[user[:password]@]host[:port][/database][?sslmode=…]`.
    ///
    /// The connection is encrypted and the certificate checked unless the host is this machine or `sslmode=disable` says
    /// otherwise; there is no mode that encrypts and checks nothing. The error quotes nothing: an address may hold a password.
    pub fn parse(url: &str) -> Result<Self, String> {
        // The driver knows no mode that checks certificates: it leaves that to what does TLS.
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut rest = Vec::new();
        let mut mode = None;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                _ => rest.push(pair),
            }
        }
        let plain = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        let mut config = Config::from_str(&plain).map_err(|_| refused("it is malformed"))?;
        if config.get_hosts().is_empty() {
            return Err(refused("a host is missing"));
        }
        let tls = match mode {
            None if is_local(&config) => Tls::No,
            None | Some("require" | "verify-ca" | "verify-full") => Tls::Verified,
            Some("disable") => Tls::No,
            Some(_) => return Err(refused("sslmode is neither disable nor verify-full")),
        };
        config.ssl_mode(if tls == Tls::No { SslMode::Disable } else { SslMode::Require });
        Ok(Self { config, tls, patience: Duration::ZERO })
    }

    /// The same address with this password, unless it has one.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        if self.config.get_password().is_none() {
            self.config.password(password);
        }
        self
    }

    /// The same address for tests, which want an answer however busy their machine is: a connection is waited for at least
    /// that long.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn waited_for(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Hosts and database, for people to see.
    #[must_use]
    pub fn shown(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(host) => host.clone(),
            Host::Unix(path) => path.display().to_string(),
        });
        let tls = if self.tls == Tls::Verified { " over TLS" } else { "" };
        let database = self.config.get_dbname().map_or_else(String::new, |name| format!(", database {name}"));
        format!("PostgreSQL at {}{database}{tls}", hosts.collect::<Vec<_>>().join(", "))
    }
}

/// Whether every host is this machine, by its name and by the address that stands in for it.
fn is_local(config: &Config) -> bool {
    let is_here = config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback);
    is_here
        && config.get_hosts().iter().all(|host| match host {
            Host::Unix(_) => true,
            Host::Tcp(host) => {
                host == "localhost"
                    || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
            }
        })
}

impl PartialEq for PostgresAddress {
    fn eq(&self, other: &Self) -> bool {
        (self.tls, self.patience) == (other.tls, other.patience) && self.config == other.config
    }
}

impl Eq for PostgresAddress {}

impl std::fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PostgresAddress({})", self.shown())
    }
}

fn refused(why: &str) -> String {
    format!(
        "this is not a PostgreSQL address: {why}; \
         hint: use postgres://[user:password@]host[:port][/database], with ?sslmode=disable for a connection without TLS"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_meant() {
        let tls = |url: &str| PostgresAddress::parse(url).unwrap().tls;
        assert_eq!(tls("postgres://me:pw@db.example/app"), Tls::Verified);
        assert_eq!(
            tls("postgresql://db.example:5433/app?sslmode=verify-full&application_name=x"),
            Tls::Verified
        );
        assert_eq!(tls("postgres://db.example/app?sslmode=disable"), Tls::No);
        assert_eq!(tls("postgres://me@127.0.0.1:5433/app"), Tls::No);
        assert_eq!(tls("postgres://me@localhost/app?sslmode=require"), Tls::Verified);
        // The address in place of the name is where it connects to.
        assert_eq!(tls("postgres://localhost/app?hostaddr=10.0.0.5"), Tls::Verified);
        assert_eq!(tls("postgres://localhost/app?hostaddr=127.0.0.1"), Tls::No);
        assert_eq!(tls("postgres://db.example/app?hostaddr=127.0.0.1"), Tls::Verified);
        let shown = format!("{:?}", PostgresAddress::parse("postgres://me:hush@h/app").unwrap());
        assert!(
            shown.contains("PostgreSQL at h, database app over TLS") && !shown.contains("hush"),
            "{shown}"
        );
    }

    #[test]
    fn what_is_no_address_is_refused_without_being_quoted() {
        for url in
            ["postgres://h:hush/d", "postgres://h/d?sslmode=hush", "postgres:///hush", "postgres://h?hush=1"]
        {
            let error = PostgresAddress::parse(url).unwrap_err();
            assert!(error.contains("; hint: ") && !error.contains("hush"), "{url}: {error}");
        }
    }
}
