//! `confidant page`: the page of chats from one's own machine, for a server elsewhere.
//!
//! A server that hands out its own page could hand out another one, which sends what it should seal. Here the page is the one in
//! this program, and the server is only asked for what is sealed. What passes between the two is in [`confidant_page::Relay`].

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context as _, anyhow};
use clap::Args;
use confidant_chat_format::Origin;
use confidant_client::http_builder;
use confidant_page::{Page, Reach, Relay};

use super::shared::{JsonArg, Outcome};
use crate::config::Loaded;
use crate::daemon::{Signals, bind};
use crate::output::{self, note};

#[derive(Debug, Args)]
#[command(after_help = "\
The page comes from this program, not from the server: an attacker who broke into the server cannot change it. Only this machine
can use it, and only with the printed address. Passkeys belong to the server's own address and do not work here: log in with the
password or the recovery code. It runs until you stop it.

Examples:
  confidant page --server https://chat.example.org
  confidant page --server https://chat.example.org --listen 127.0.0.1:9000 --json")]
pub(super) struct PageArgs {
    /// The server whose chats the page shows
    #[arg(long, value_name = "URL")]
    server: String,
    /// The address to serve it at, on this machine
    #[arg(long, value_name = "ADDRESS", default_value_t = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7368))]
    listen: SocketAddr,
    #[command(flatten)]
    form: JsonArg,
}

pub(super) async fn run(args: PageArgs, loaded: &Loaded) -> anyhow::Result<Outcome> {
    let server = server(&args.server)?;
    if !args.listen.ip().is_loopback() {
        return Err(anyhow!(
            "other machines can reach {}, and the page is served without TLS; hint: use 127.0.0.1 and a port",
            args.listen
        ));
    }
    let page = crate::chats::page(loaded, &[]);
    if page.release().is_none() && loaded.config.web.page_folder.is_none() {
        return Err(anyhow!(
            "this program was built without the page; hint: install Node.js 20 or newer with npm and build it again with scripts/run"
        ));
    }
    let mut signals = Signals::listen()?;
    let listener = bind(args.listen).await?;
    let relay = relay(listener.local_addr()?, server)?;
    match relay.look().await {
        Reach::WrongCertificate => {
            return Err(anyhow!(
                "the certificate of {} is not valid, so somebody else may be answering; hint: check the address and this machine's \
                 clock; if the certificate is new or self-signed, make this machine trust it first",
                relay.server.as_str()
            ));
        }
        Reach::Answers => {}
        reach => tell(&reach),
    }
    print(&relay, &args)?;
    serve(relay, listener, page, &mut signals).await;
    Ok(Outcome::Done)
}

fn server(text: &str) -> anyhow::Result<Origin> {
    let origin = Origin::parse(text.trim_end_matches('/')).map_err(|_| {
        anyhow!("--server is not a server's address; hint: write it as in a browser, such as https://chat.example.org")
    })?;
    let is_near = origin.as_str().strip_prefix("http://").is_none_or(|host| {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next(),
            None => host.split(':').next(),
        };
        let name = name.unwrap_or_default();
        name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    });
    if is_near {
        return Ok(origin);
    }
    Err(anyhow!(
        "{} is reached without TLS, so anybody on the network between could change its answers; hint: use https://",
        origin.as_str()
    ))
}

fn relay(here: SocketAddr, server: Origin) -> anyhow::Result<Relay> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|_| anyhow!("the system provides no random bytes; hint: try again"))?;
    let built = "the program cannot make connections";
    Ok(Relay {
        here,
        key: hex::encode(key),
        client: http_builder(&server).build().context(built)?,
        sockets: http_builder(&server).http1_only().build().context(built)?,
        server,
        tell,
    })
}

fn print(relay: &Relay, args: &PageArgs) -> anyhow::Result<()> {
    if args.form.json {
        return output::json(&serde_json::json!({
            "open": relay.address(),
            "listen": relay.here.to_string(),
            "server": relay.server.as_str(),
        }));
    }
    output::line(&relay.address())?;
    note(&format!(
        "open this address in your browser: the page comes from this program, for {}. The address contains a key, so keep it to \
         yourself. Ctrl-C stops the page.",
        relay.server.as_str()
    ));
    Ok(())
}

async fn serve(relay: Relay, listener: tokio::net::TcpListener, page: Page, signals: &mut Signals) {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = relay.serve(listener, page, Box::pin(async move { drop(stopped.await) }));
    tokio::pin!(serving);
    tokio::select! {
        () = &mut serving => return,
        () = signals.next() => drop(stop),
    }
    // Answers that are under way may end; nobody waits for long.
    let _ = tokio::time::timeout(std::time::Duration::from_secs(2), serving).await;
}

/// Says on stderr how the server is.
fn tell(reach: &Reach) {
    note(match reach {
        Reach::Answers => "the server answers again",
        Reach::Away => {
            "the server cannot be reached; the page shows what this browser has, and sends what you write once the server is back"
        }
        Reach::WrongCertificate => {
            "the server's certificate is no longer valid: nothing is sent; check who answers at this address"
        }
        Reach::NoChats => "no chats are served at this address, or they are switched off; check the address",
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_reached_by_tls_or_is_on_this_machine() {
        for good in [
            "https://chat.example.org",
            "https://chat.example.org:8443/",
            "http://localhost:7367",
            "http://[::1]:7",
            "http://127.0.0.1",
        ] {
            assert!(server(good).is_ok(), "{good}");
        }
        for bad in [
            "http://chat.example.org",
            "http://127.0.0.1.example.org",
            "chat.example.org",
            "ftp://x",
            "https://",
            "https://x/y",
        ] {
            let error = server(bad).unwrap_err().to_string();
            assert!(error.contains("; hint: "), "{bad}: {error}");
        }
    }

    #[test]
    fn the_address_has_a_key_of_its_own_each_time() {
        let made =
            || relay("127.0.0.1:7368".parse().unwrap(), server("http://localhost:1").unwrap()).unwrap();
        let (one, two) = (made(), made());
        assert!(one.address().starts_with("http://127.0.0.1:7368/open/") && one.key.len() == 64);
        assert_ne!(one.key, two.key);
        assert!(!format!("{one:?}").contains(&one.key));
    }
}
