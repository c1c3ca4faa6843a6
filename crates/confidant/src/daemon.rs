//! The server's life: open, listen, look after what is left over, stop in good order.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::ValueEnum;
use confidant_engine::access::Role as TokenRole;
use confidant_engine::audit::Action;
use confidant_engine::bus::{BusSettings, Worker};
use confidant_engine::turn::Ending;
use confidant_engine::{Actor, Engine, Notice, TenantId};
use confidant_http as http;
use confidant_mcp::Mount;
use secrecy::ExposeSecret as _;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;

use crate::channels::Channels;
use crate::config::{ChatsPlace, DEFAULT_TENANT, KeyringUrl, Loaded, StoreKind};
use crate::files::{self, Made};
use crate::open::{self, Opened, Purpose};
use crate::output::note;
use crate::{patience, served};

/// What a server does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Everything, in one process
    #[default]
    All,
    /// HTTP and channels; turns are run by workers
    Gateway,
    /// Turns, for gateways; listens on HTTP for health and metrics only with --listen
    Worker,
}

/// Serves until a signal says to stop.
pub(crate) async fn run(loaded: &Loaded, role: Role, listen: Option<SocketAddr>) -> anyhow::Result<()> {
    match role {
        Role::All | Role::Gateway => serve(loaded, role).await,
        Role::Worker => work(loaded, listen).await,
    }
}

/// Takes requests, and runs their turns unless workers do.
async fn serve(loaded: &Loaded, role: Role) -> anyhow::Result<()> {
    let config = &loaded.config;
    let bus = (role == Role::Gateway).then(|| loaded.bus()).transpose()?;
    // From here on a signal stops us in good order, however early it comes.
    let mut signals = Signals::listen()?;
    let listener = bind(config.server.listen).await?;
    // Not the one that was asked for, whose port may be 0.
    let address = listener.local_addr()?;
    let mut loaded = loaded.clone();
    loaded.config.server.listen = address;
    check_chats(&mut loaded, role)?;
    let loaded = &loaded;
    open::make_folder(&config.server.data_dir)?;
    let (listener, mut opened) = match bus {
        None => (listener, open::open(loaded, Purpose::Answer).await?),
        Some(bus) => {
            let starting = patience::while_answering(listener, start_gateway(loaded, bus));
            tokio::select! {
                started = starting => started?,
                () = signals.next() => return Ok(()),
            }
        }
    };
    opened.prepared.tell();
    opened.serve_chats(loaded).await?;
    opened.tell_of_damage();
    opened.tell_of_other_keys().await;
    let engine = opened.engine.clone();
    admin_token(&engine, loaded).await?;
    note_start(&engine).await;

    let (stop, stopped) = watch::channel(());
    let listening = tokio::spawn(listen(engine.clone(), engine.notices()));
    let channels = Channels::start(loaded, &opened)?;
    // What a channel received it takes up itself, with what is said around it; the rest waits a moment for that.
    let first = if channels.any() { CHANNELS_FIRST } else { Duration::ZERO };
    // In a gateway, what was left undone is a worker's to do.
    let left = (role == Role::All).then(|| engine.clone());
    let recovering = tokio::spawn(recover(left, first, stopped.clone()));
    let remembering = opened.memory.clone().map(|memory| tokio::spawn(crate::memory::keep(memory)));
    let sweeping = tokio::spawn(sweep(engine.clone(), config.checkpoint.sweep));
    let chatting = opened.chats.clone().map(|service| tokio::spawn(crate::chats::keep(service)));
    let http = config.server.http();
    let mcp = Mount::new(served::ready(&opened), config.server.hosts(), http.max_body_bytes)?;
    let components = crate::chats::components(&opened);
    let (damaged, stores) = (opened.damaged.clone(), Some(stores(loaded)));
    let standing = http::Standing { components, channels: channels.health(), damaged, stores };
    let other_routes = crate::chats::router(loaded, &opened);
    let mut until = stopped;
    let shutdown = Box::pin(async move { drop(until.changed().await) });
    // Before anybody can ask for an account.
    tell_first_code(&opened, address).await;
    tell_of_others(loaded, &opened).await;
    let mut server =
        tokio::spawn(http::serve(listener, engine.clone(), http, mcp, standing, other_routes, shutdown));
    warn_of_plain_http(address);
    note(&format!("listening on http://{address}"));
    tracing::info!(server.listen = %address, model.name = engine.model_name(), "started");

    tokio::select! {
        () = signals.next() => tracing::info!("stopping"),
        ended = &mut server => {
            tokio::join!(channels.stop(Duration::ZERO), engine.stop(Duration::ZERO));
            ended.context("the HTTP server failed")?;
            return Err(anyhow!("the HTTP server stopped unexpectedly; hint: start it again and report this"));
        }
    }
    let _ = stop.send(());
    remembering.into_iter().chain(chatting).for_each(|task| task.abort());
    sweeping.abort();
    let ended = tokio::select! {
        result = wind_down(&engine, channels, server, recovering, config.server.shutdown_grace) => result,
        () = signals.next() => Err(anyhow!("stopped at once by a second signal; hint: the next start resumes the turns that were running")),
    };
    if let Some(chats) = opened.chats.as_ref().filter(|_| ended.is_ok()) {
        chats.let_go(LAST_BYTES).await;
    }
    listening.abort();
    opened.stop_tools().await;
    ended
}

/// What data and keys are kept in, by name.
fn stores(loaded: &Loaded) -> http::Stores {
    let data = loaded.config.store.url.name();
    http::Stores { data, keyring: loaded.config.keyring.url.as_ref().map_or(data, KeyringUrl::name) }
}

/// Opens a gateway, waiting for what it needs.
async fn start_gateway(loaded: &Loaded, bus: BusSettings) -> anyhow::Result<Opened> {
    let opened = patience::open(loaded, Purpose::Relay).await?;
    let met = patience::meet(&opened.engine, |engine| {
        let bus = bus.clone();
        async move { engine.become_gateway(bus).await }
    });
    met.await?;
    Ok(opened)
}

/// Opens a worker, waiting for what it needs.
async fn start_worker(loaded: &Loaded, bus: BusSettings) -> anyhow::Result<(Opened, Worker)> {
    let opened = patience::open(loaded, Purpose::Answer).await?;
    crate::chats::relay(loaded, &opened.engine)?;
    opened.engine.warm_up();
    let met = patience::meet(&opened.engine, |engine| {
        let bus = bus.clone();
        async move { engine.become_worker(bus).await }
    });
    let worker = met.await?;
    Ok((opened, worker))
}

/// Runs turns that gateways ask for.
async fn work(loaded: &Loaded, address: Option<SocketAddr>) -> anyhow::Result<()> {
    let config = &loaded.config;
    let mut signals = Signals::listen()?;
    let bus = loaded.bus()?;
    open::make_folder(&config.server.data_dir)?;
    let (opened, mut worker) = tokio::select! {
        started = start_worker(loaded, bus) => started?,
        () = signals.next() => return Ok(()),
    };
    opened.prepared.tell();
    opened.tell_of_damage();
    opened.tell_of_other_keys().await;
    let engine = opened.engine.clone();
    note_start(&engine).await;

    let (stop, stopped) = watch::channel(());
    let listening = tokio::spawn(listen(engine.clone(), engine.notices()));
    let recovering = tokio::spawn(recover(Some(engine.clone()), Duration::ZERO, stopped.clone()));
    let remembering = opened.memory.clone().map(|memory| tokio::spawn(crate::memory::keep(memory)));
    let sweeping = tokio::spawn(sweep(engine.clone(), config.checkpoint.sweep));
    let mut until = stopped;
    let shutdown = Box::pin(async move { drop(until.changed().await) });
    let server = match address {
        Some(address) => {
            let listener = bind(address).await?;
            note(&format!("health and metrics on http://{}", listener.local_addr()?));
            tokio::spawn(http::serve_health(listener, engine.clone(), config.server.http(), shutdown))
        }
        None => tokio::spawn(shutdown),
    };
    note("working: turns are taken from the bus");
    tracing::info!(model.name = engine.model_name(), "started");
    tokio::select! {
        () = signals.next() => tracing::info!("stopping"),
        () = worker.work() => tracing::error!("the bus failed"),
    }
    let _ = stop.send(());
    remembering.inspect(JoinHandle::abort);
    sweeping.abort();
    let ended = tokio::select! {
        result = wind_down(&engine, Channels::default(), server, recovering, config.server.shutdown_grace) => result,
        () = signals.next() => Err(anyhow!("stopped at once by a second signal; hint: other workers resume the turns that were running")),
    };
    listening.abort();
    opened.stop_tools().await;
    ended
}

/// Writes into the audit log that a server has the keys in hand from now on. A store that takes no writes is no reason not to
/// answer.
async fn note_start(engine: &Engine) {
    let noted = async {
        let keys = engine.key_status().await?.keys;
        engine.dangerously_administer(Actor::system()).note_keys(Action::KeysOpened, keys).await
    };
    if let Err(error) = noted.await {
        tracing::warn!(error = %error, "the start could not be recorded in the audit log");
    }
}

/// Lets running turns finish and their connections drain, within the grace.
async fn wind_down(
    engine: &Engine,
    channels: Channels,
    server: JoinHandle<()>,
    mut recovering: JoinHandle<()>,
    grace: Duration,
) -> anyhow::Result<()> {
    let abort = server.abort_handle();
    // A turn that is being taken up has the same grace as one that somebody waits for.
    // So does a reply that is on its way to a channel: the turn is over by then, so it gets a moment more.
    let (stopped, _, ()) = tokio::join!(
        engine.stop(grace),
        tokio::time::timeout(grace, &mut recovering),
        channels.stop(grace + LAST_BYTES)
    );
    recovering.abort();
    // Turns are over or parked by now; what is left is the last bytes on their way to clients.
    match tokio::time::timeout(LAST_BYTES, server).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) => tracing::error!("the HTTP server failed"),
        Err(_) => abort.abort(),
    }
    tracing::info!(turns.parked = stopped.parked, "stopped");
    Ok(())
}

/// Refuses to be one of several servers that have chats each for themselves. Where nobody asked for chats, there are none.
fn check_chats(loaded: &mut Loaded, role: Role) -> anyhow::Result<()> {
    let apart = matches!(loaded.config.chats_place(), Some(ChatsPlace::Sqlite(_)));
    if role != Role::Gateway || !apart {
        return Ok(());
    }
    if loaded.config.web.is_wanted() {
        return Err(anyhow!(
            "gateways share chats in a PostgreSQL only, and here they are in a file of this machine; hint: set web.url to \
             postgres://…, or web.enabled = false"
        ));
    }
    note(
        "this gateway has no chats that only their owner can open, since gateways share those in a PostgreSQL only; set web.url \
         to postgres://… to have them, or web.enabled = false",
    );
    loaded.config.web.turn_off();
    Ok(())
}

/// Says it where another server may have chats of its own, for the same people.
async fn tell_of_others(loaded: &Loaded, opened: &Opened) {
    let apart = matches!(loaded.config.chats_place(), Some(ChatsPlace::Sqlite(_)));
    if opened.chats.is_some() && opened.shared && apart && opened.engine.others_alive().await.unwrap_or(false)
    {
        note(
            "another process uses the same store; if it is a server on another machine, each of them has accounts and chats of its \
             own; set web.url to postgres://… to share them, or web.enabled = false on all but one",
        );
    }
}

/// Prints the code that the first account needs, while there is none. It is not in the log.
async fn tell_first_code(opened: &Opened, address: SocketAddr) {
    let Some(chats) = &opened.chats else { return };
    let here = if address.ip().is_unspecified() {
        SocketAddr::from(([127, 0, 0, 1], address.port()))
    } else {
        address
    };
    match chats.count_accounts().await {
        Ok(1..) => {}
        Ok(0) => match chats.first_code().await {
            Ok(code) => note(&format!(
                "chats that only their owner can open: nobody has an account yet; open http://{here} in a browser, and register; \
                 the first account needs this code, today: {}",
                code.as_str()
            )),
            Err(refused) => {
                tracing::warn!(reason = refused.error.name(), "no code for the first account could be made")
            }
        },
        Err(refused) => tracing::warn!(reason = refused.error.name(), "accounts could not be counted"),
    }
}

/// Says that whoever is on the way can read along, where others than this machine may be on it.
fn warn_of_plain_http(address: SocketAddr) {
    if !address.ip().to_canonical().is_loopback() {
        note(&format!(
            "warning: other machines can reach {address}, without TLS: tokens and messages can be read in \
             transit; put a TLS proxy in front, or listen on 127.0.0.1"
        ));
        tracing::warn!(server.listen = %address, "listening without TLS on an address that other machines can reach");
    }
}

pub(crate) async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => anyhow!(
            "{address} is in use; hint: is a server running already? Choose another with server.listen or --listen"
        ),
        kind => anyhow!("cannot listen on {address} ({kind}); hint: choose another with server.listen or --listen"),
    })
}

/// Writes the administrator's token at the first start. The token itself is never shown.
async fn admin_token(engine: &Engine, loaded: &Loaded) -> anyhow::Result<()> {
    let path = loaded.config.server.data_dir.join(ADMIN_TOKEN);
    let passing = loaded.config.store.url == StoreKind::Memory;
    if files::is_there(&path)? && !passing {
        return check_admin_token(engine, &path).await;
    }
    let administrator = engine.dangerously_administer(Actor::system());
    let (bearer, token) = administrator.new_token(&TenantId::new(DEFAULT_TENANT)?, &TokenRole::Admin).await?;
    let content = zeroize::Zeroizing::new(format!("{}\n", token.expose_secret()));
    let made = if passing {
        files::replace(&path, content.as_bytes()).map(|()| Made::New)
    } else {
        files::create(&path, content.as_bytes())
    };
    match made {
        Ok(Made::New) => note(&format!("the administrator's token is in {}", path.display())),
        // Another process was first, and its token is the one in the file.
        Ok(Made::Existing) => drop(administrator.revoke_token(&bearer.token_id).await?),
        Err(error) => {
            administrator.revoke_token(&bearer.token_id).await?;
            return Err(anyhow!(
                "{} cannot be written ({}); hint: check the data folder's permissions",
                path.display(),
                error.kind()
            ));
        }
    }
    Ok(())
}

async fn check_admin_token(engine: &Engine, path: &Path) -> anyhow::Result<()> {
    let known = match files::read_secret(path) {
        Ok(token) => engine.authenticate(token.trim()).await?.is_some(),
        Err(error) => {
            tracing::warn!(error = %error, "the administrator's token cannot be used");
            return Ok(());
        }
    };
    if !known {
        tracing::warn!(file = %path.display(), "the administrator's token is not valid here; remove the file, and the next start makes a new one");
    }
    Ok(())
}

/// Takes up what other processes left: turns that were cut off, decisions that nobody has carried out, approvals that
/// nobody gave in time.
async fn recover(engine: Option<Engine>, first: Duration, mut stopped: watch::Receiver<()>) {
    let Some(engine) = engine else { return };
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + first, ROUNDS);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            _ = ticks.tick() => {}
        }
        match engine.recover().await {
            Ok(found) if found == confidant_engine::Recovered::default() => {}
            Ok(found) => tracing::info!(
                turns.resumed = found.resumed,
                turns.reported = found.reported,
                turns.expired = found.expired,
                turns.caught_up = found.caught_up,
                turns.unreadable = found.unreadable,
                "resumed unfinished turns of other processes"
            ),
            Err(error) => tracing::warn!(error = %error, "unfinished turns could not be resumed"),
        }
    }
}

/// Says in the log how turns ended that nobody waited for. What they say is in their sessions.
async fn listen(engine: Engine, mut notices: broadcast::Receiver<std::sync::Arc<Notice>>) {
    loop {
        match notices.recv().await {
            Ok(notice) => {
                let tag = engine.session(notice.scope.clone(), Actor::system()).tag();
                let outcome = match &notice.outcome {
                    Ok(Ending::Answer(_)) => "answered",
                    Ok(Ending::Approval(_)) => "approval_asked",
                    Err(error) => error.code(),
                };
                tracing::info!(scope.tag = %tag, outcome, "a turn ended while nobody waited for it");
            }
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "turns ended while nobody waited for them, too many to list");
            }
            Err(RecvError::Closed) => return,
        }
    }
}

async fn sweep(engine: Engine, every: Duration) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match engine.sweep().await {
            Ok(0) => {}
            Ok(swept) => tracing::info!(sessions.expired = swept, "erased expired sessions"),
            Err(error) => {
                tracing::warn!(error = %error, "expired sessions could not be erased")
            }
        }
    }
}

pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

const ADMIN_TOKEN: &str = "admin.token";
/// How often to look for what was left: a decision that another process left to us waits no longer than this.
const ROUNDS: Duration = Duration::from_secs(2);
const CHANNELS_FIRST: Duration = Duration::from_secs(5);
const LAST_BYTES: Duration = Duration::from_secs(2);
