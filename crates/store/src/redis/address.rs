//! Where a Redis or Valkey is: one server, a group that Sentinels watch, or a Cluster.

use zeroize::Zeroizing;

/// The address of a Redis or Valkey, as `store.url` has it. Never prints its password.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisAddress {
    pub(super) kind: Deployment,
    /// Host and port of servers or Sentinels.
    pub(super) nodes: Vec<(String, u16)>,
    pub(super) tls: Tls,
    pub(super) user: Option<String>,
    pub(super) password: Option<Zeroizing<String>>,
    pub(super) database: i64,
    /// The login of the Sentinels, if they need one.
    pub(super) sentinel: Credentials,
}

/// What is at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deployment {
    /// One server.
    Single,
    /// Sentinels, which know where the server of this name is.
    Sentinel(String),
    /// A Cluster.
    Cluster,
}

/// Whether the connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tls {
    No,
    Yes,
}

impl RedisAddress {
    /// Reads `redis://`, `rediss://`, `redis+sentinel://` and `redis+cluster://` with their `rediss` forms.
    ///
    /// The error says what is wrong and what to do, and quotes nothing: an address may hold a password.
    pub fn parse(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| refused("it has no ://"))?;
        let (tls, form) = match scheme.split_once('+').unwrap_or((scheme, "")) {
            ("redis", form) => (Tls::No, form),
            ("rediss", form) => (Tls::Yes, form),
            _ => return Err(refused("its scheme is unknown")),
        };
        if rest.contains(['?', '#']) {
            return Err(refused("it has a ? or #; inside a password write %3F and %23"));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        // Sentinels have a login of their own, behind that of the server.
        let (login, sentinel) = match login.and_then(|login| login.rsplit_once('@')) {
            Some((login, sentinel)) if form == "sentinel" => (Some(login), Some(sentinel)),
            _ => (login, None),
        };
        let ((user, password), sentinel) = (credentials(login)?, credentials(sentinel)?);
        let mut path = path.split('/').filter(|part| !part.is_empty());
        let (kind, port) = match form {
            "" => (Deployment::Single, 6379),
            "cluster" => (Deployment::Cluster, 6379),
            "sentinel" => {
                let service =
                    path.next().ok_or_else(|| refused("/SERVICE is missing after the Sentinels"))?;
                (Deployment::Sentinel(service.to_owned()), 26379)
            }
            _ => return Err(refused("only sentinel or cluster may follow the +")),
        };
        let nodes = hosts.split(',').map(|host| node(host, port)).collect::<Result<Vec<_>, _>>()?;
        let database = match path.next() {
            None => 0,
            Some(number) => number.parse().map_err(|_| refused("the database is not a number"))?,
        };
        if path.next().is_some() {
            return Err(refused("it has too many parts"));
        }
        match kind {
            Deployment::Single if nodes.len() > 1 => {
                Err(refused("it names several servers; write redis+cluster:// or redis+sentinel://"))
            }
            Deployment::Cluster if database != 0 => Err(refused("a Cluster has no numbered databases")),
            _ => Ok(Self { kind, nodes, tls, user, password, database, sentinel }),
        }
    }

    /// The same address with this password, unless it has one.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.password.get_or_insert_with(|| Zeroizing::new(password.to_owned()));
        self
    }

    /// Hosts and what is there, for people to see.
    #[must_use]
    pub fn shown(&self) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        let kind = match &self.kind {
            Deployment::Single => String::new(),
            Deployment::Sentinel(service) => format!(" (Sentinels of {service})"),
            Deployment::Cluster => " (Cluster)".to_owned(),
        };
        let tls = if self.tls == Tls::Yes { " over TLS" } else { "" };
        format!("Redis at {}{kind}{tls}", hosts.join(", "))
    }

    pub(super) fn is_cluster(&self) -> bool {
        self.kind == Deployment::Cluster
    }
}

impl std::fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RedisAddress({})", self.shown())
    }
}

type Credentials = (Option<String>, Option<Zeroizing<String>>);

fn credentials(login: Option<&str>) -> Result<Credentials, String> {
    let Some(login) = login else { return Ok((None, None)) };
    let (user, password) =
        login.split_once(':').map_or((login, None), |(user, password)| (user, Some(password)));
    let user = decode(user)?;
    let password = password.map(decode).transpose()?.filter(|password| !password.is_empty());
    Ok((Some(user).filter(|user| !user.is_empty()), password.map(Zeroizing::new)))
}

fn node(text: &str, port: u16) -> Result<(String, u16), String> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(inner) => inner.split_once(']').ok_or_else(|| refused("a [ has no matching ]"))?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match rest.strip_prefix(':') {
        Some(port) => port.parse().map_err(|_| refused("a port is not a number"))?,
        None if rest.is_empty() => port,
        None => return Err(refused("a host is not valid")),
    };
    if host.is_empty() { Err(refused("a host is missing")) } else { Ok((host.to_owned(), port)) }
}

/// Decodes percent escapes.
fn decode(text: &str) -> Result<String, String> {
    let bad = || refused("the user or password has a % that escapes nothing; write %25 for a literal %");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'%' {
            let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()).ok_or_else(bad)?;
            bytes.push(u8::from_str_radix(hex, 16).map_err(|_| bad())?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

fn refused(why: &str) -> String {
    format!(
        "this is not a Redis address: {why}; hint: use redis://[user:password@]host[:port][/database], rediss:// for \
         TLS, redis+sentinel://[user:password@[user:password@]]host,host/SERVICE or redis+cluster://host,host"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_meant() {
        let read = |url: &str| {
            let a = RedisAddress::parse(url).unwrap();
            let login = format!(
                "{}:{}",
                a.user.unwrap_or_default(),
                a.password.map_or(String::new(), |p| p.to_string())
            );
            (a.kind, a.nodes, a.tls, login, a.database)
        };
        let at = |host: &str, port| (host.to_owned(), port);
        assert_eq!(read("redis://h"), (Deployment::Single, vec![at("h", 6379)], Tls::No, ":".into(), 0));
        assert_eq!(
            read("rediss://me:p%40ss%25@h.example:7000/3"),
            (Deployment::Single, vec![at("h.example", 7000)], Tls::Yes, "me:p@ss%".into(), 3)
        );
        assert_eq!(
            read("redis://:pw@[::1]:7000/"),
            (Deployment::Single, vec![at("::1", 7000)], Tls::No, ":pw".into(), 0)
        );
        assert_eq!(
            read("redis+sentinel://a,b:1/main/2"),
            (Deployment::Sentinel("main".into()), vec![at("a", 26379), at("b", 1)], Tls::No, ":".into(), 2)
        );
        // The server's login, then that of the Sentinels; either may be missing.
        for (url, login, sentinels) in [
            ("redis+sentinel://u:p%40w@a/main", "u:p@w", ":"),
            ("redis+sentinel://u:p@s:q@a/main", "u:p", "s:q"),
            ("redis+sentinel://:p@:q@a/main", ":p", ":q"),
            ("redis+sentinel://@:q@a/main", ":", ":q"),
        ] {
            let a = RedisAddress::parse(url).unwrap();
            let shown = |(user, password): Credentials| {
                format!("{}:{}", user.unwrap_or_default(), password.map_or(String::new(), |p| p.to_string()))
            };
            assert_eq!((shown((a.user, a.password)), shown(a.sentinel)), (login.into(), sentinels.into()));
        }
        assert_eq!(
            read("rediss+cluster://u:p@a:1,b:2"),
            (Deployment::Cluster, vec![at("a", 1), at("b", 2)], Tls::Yes, "u:p".into(), 0)
        );
    }

    #[test]
    fn what_is_no_address_is_refused_without_being_quoted() {
        for url in [
            "redis:hush",
            "http://hush",
            "redis://",
            "redis://hush@",
            "redis://hush:port",
            "redis://a,hush",
            "redis://hush/db",
            "redis://hush/1/2",
            "redis://hush%zz@h",
            "redis://h?hush=1",
            "redis+cluster://hush/3",
            "redis+sentinel://hush",
            "redis+hush://h",
            "redis+sentinel://hush@hush%zz@h/main",
            "redis://[hush",
        ] {
            let error = RedisAddress::parse(url).unwrap_err();
            assert!(error.contains("; hint: ") && !error.contains("hush"), "{url}: {error}");
        }
        let shown = format!("{:?}", RedisAddress::parse("redis://me:hush@h").unwrap());
        assert!(shown.contains("h:6379") && !shown.contains("hush"), "{shown}");
    }
}
