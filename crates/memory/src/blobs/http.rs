//! The HTTP client of the back ends that have one, and what its failures mean.
//!
//! Messages name the service in our words and never quote a URL, a header or a body: each may have a credential in it.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use reqwest::Url;

use super::object::Transport;
use crate::{Error, Result};

/// Reads the base address of a service, without a slash at its end.
pub(super) fn base(text: &str, option: &str, transport: Transport) -> Result<Url> {
    let wrong = |what: &str, hint: &str| Err(Error::invalid(format!("{option} {what}"), hint));
    let Ok(mut url) = Url::parse(text) else {
        return wrong("is not a URL", "write it like https://host or https://host:port/path");
    };
    if url.host_str().is_none() || url.query().is_some() || url.fragment().is_some() {
        return wrong("is not a plain address", "write it like https://host or https://host:port/path");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("has a user or a password in it", "give credentials in their own settings");
    }
    match (url.scheme(), transport) {
        ("https", _) | ("http", Transport::PlainHttpAllowed) => {}
        ("http", Transport::TlsOnly) if is_loopback(&url) => {}
        ("http", Transport::TlsOnly) => {
            return wrong("is not encrypted", "use https, or allow plain HTTP for a server that you trust");
        }
        _ => return wrong("is neither https nor http", "write it like https://host"),
    }
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}

/// One client for the life of a back end.
///
/// It follows no redirects: sealed bytes and signatures go to the configured server or nowhere. A loopback server is
/// never asked through a proxy, for the same reason. Without TLS it loads no certificates, which takes a while and fails
/// on a bare system.
pub(super) fn client(base: &Url, timeout: Duration) -> Result<reqwest::Client> {
    let mut builder = reqwest::Client::builder()
        .connect_timeout(timeout.min(CONNECT_LIMIT))
        .timeout(timeout)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false);
    // Somebody else in the process may have installed one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if base.scheme() == "http" {
        builder = builder.tls_certs_only(std::iter::empty());
    } else {
        builder = builder.https_only(true);
    }
    if is_loopback(base) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|_| {
        Error::unavailable(
            "TLS cannot be set up: the system's trusted certificates could not be read",
            "install the system's certificates (the package is often named ca-certificates)",
        )
    })
}

fn is_loopback(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Why no answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nobody answers at the address.
    Down,
    /// No answer in time.
    Slow,
    /// The server's certificate is not to be trusted.
    Certificate,
    /// TLS failed in another way: the server may not speak it at all.
    Tls,
    /// The connection broke, or the answer is not HTTP.
    Broken,
}

impl Trouble {
    #[cfg(feature = "cascade")]
    pub(super) fn of(error: &reqwest::Error) -> Self {
        if error.is_timeout() {
            Self::Slow
        } else if let Some(trouble) = Self::with_tls(error) {
            trouble
        } else if error.is_connect() {
            Self::Down
        } else {
            Self::Broken
        }
    }

    /// What is wrong with TLS, if that is it. What `io::Error` wraps is not among its sources, so it is asked for it.
    pub(super) fn with_tls(error: &(dyn StdError + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            match error.downcast_ref::<rustls::Error>() {
                Some(rustls::Error::InvalidCertificate(_)) => return Some(Self::Certificate),
                Some(_) => return Some(Self::Tls),
                None => {}
            }
            let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            if let Some(trouble) = wrapped.and_then(|inner| Self::with_tls(inner)) {
                return Some(trouble);
            }
            next = error.source();
        }
        None
    }

    /// Whether the same request may succeed a moment later.
    pub(super) fn may_pass(self) -> bool {
        !matches!(self, Self::Certificate | Self::Tls)
    }

    pub(super) fn error(self, service: &str) -> Error {
        let (what, hint) = match self {
            Self::Down => ("cannot be reached", "check its address and that it runs, then try again"),
            Self::Slow => ("did not answer in time", "try again later, or raise its time limit"),
            Self::Certificate => (
                "has a certificate that this system does not trust",
                "use the host name that the certificate is for, or add its authority to the system's trusted ones",
            ),
            Self::Tls => (
                "does not speak TLS, or no version that this program supports",
                "check the port, and that the server supports TLS 1.2 or 1.3",
            ),
            Self::Broken => ("broke the connection", "try again; check that its address is the right one"),
        };
        Error::unavailable(format!("{service} {what}"), hint)
    }
}

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
