//! The server's life: open, listen, look after what is left over, stop in good order.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use confidant_engine::{Actor, Ending, Engine, Notice, Role as TokenRole, TenantId};
use secrecy::ExposeSecret as _;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;

use crate::channels::Channels;
use crate::cli::{DEFAULT_TENANT, Role, note};
use crate::config::{Loaded, StoreKind};
use crate::files::{self, Made};
use crate::http;
use crate::mcp::{LazyMemory, Mount};
use crate::open::{self, Purpose};

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
    open::make_folder(&config.server.data_dir)?;
    let purpose = if bus.is_some() { Purpose::Relay } else { Purpose::Answer };
    let opened = open::open(loaded, purpose).await?;
    crate::cli::tell_of_new_key(&opened.prepared);
    opened.tell_of_other_keys().await;
    let engine = opened.engine.clone();
    if let Some(bus) = bus {
        engine.become_gateway(bus).await?;
    }
    admin_token(&engine, loaded).await?;

    let (stop, stopped) = watch::channel(());
    let listening = tokio::spawn(listen(engine.clone(), engine.notices()));
    let channels = Channels::start(loaded, &engine, opened.inbox.as_ref())?;
    // What a channel received it takes up itself, with what is said around it; the rest waits a moment for that.
    let first = if channels.any() { CHANNELS_FIRST } else { Duration::ZERO };
    // In a gateway, what was left undone is a worker's to do.
    let left = (role == Role::All).then(|| engine.clone());
    let recovering = tokio::spawn(recover(left, first, stopped.clone()));
    let remembering = opened.memory.clone().map(|memory| tokio::spawn(crate::memory::keep(memory)));
    let sweeping = tokio::spawn(sweep(engine.clone(), config.checkpoint.sweep));
    let http = config.server.http();
    let mcp =
        Mount::new(LazyMemory::ready(opened.memory.clone()), config.server.hosts(), http.max_body_bytes)?;
    let mut until = stopped;
    let mut server =
        tokio::spawn(http::serve(listener, engine.clone(), http, mcp, channels.health(), async move {
            let _ = until.changed().await;
        }));
    note(&format!("listening on http://{address}"));
    tracing::info!(server.listen = %address, model.name = engine.model_name(), "started");

    tokio::select! {
        () = signals.next() => tracing::info!("stopping"),
        ended = &mut server => {
            tokio::join!(channels.stop(Duration::ZERO), engine.stop(Duration::ZERO));
            ended.context("the HTTP server ended by a fault")?.context("serving failed")?;
            return Err(anyhow!("the HTTP server ended by itself; hint: start it again and report this"));
        }
    }
    let _ = stop.send(());
    remembering.inspect(JoinHandle::abort);
    sweeping.abort();
    let ended = tokio::select! {
        result = wind_down(&engine, channels, server, recovering, config.server.shutdown_grace) => result,
        () = signals.next() => Err(anyhow!("stopped at once by a second signal; hint: turns that were running are taken up at the next start")),
    };
    listening.abort();
    opened.stop_tools().await;
    ended
}

/// Runs turns that gateways ask for.
async fn work(loaded: &Loaded, address: Option<SocketAddr>) -> anyhow::Result<()> {
    let config = &loaded.config;
    let mut signals = Signals::listen()?;
    let bus = loaded.bus()?;
    open::make_folder(&config.server.data_dir)?;
    let opened = open::open(loaded, Purpose::Answer).await?;
    crate::cli::tell_of_new_key(&opened.prepared);
    opened.tell_of_other_keys().await;
    let engine = opened.engine.clone();
    engine.warm_up();
    let mut worker = engine.become_worker(bus).await?;

    let (stop, stopped) = watch::channel(());
    let listening = tokio::spawn(listen(engine.clone(), engine.notices()));
    let recovering = tokio::spawn(recover(Some(engine.clone()), Duration::ZERO, stopped.clone()));
    let remembering = opened.memory.clone().map(|memory| tokio::spawn(crate::memory::keep(memory)));
    let sweeping = tokio::spawn(sweep(engine.clone(), config.checkpoint.sweep));
    let mut until = stopped;
    let shutdown = async move {
        let _ = until.changed().await;
    };
    let server = match address {
        Some(address) => {
            let listener = bind(address).await?;
            note(&format!("health and metrics on http://{}", listener.local_addr()?));
            tokio::spawn(http::serve_health(listener, engine.clone(), config.server.http(), shutdown))
        }
        None => tokio::spawn(async move {
            shutdown.await;
            Ok(())
        }),
    };
    note("working: turns are taken from the bus");
    tracing::info!(model.name = engine.model_name(), "started");
    tokio::select! {
        () = signals.next() => tracing::info!("stopping"),
        () = worker.work() => tracing::error!("the bus ended by a fault"),
    }
    let _ = stop.send(());
    remembering.inspect(JoinHandle::abort);
    sweeping.abort();
    let ended = tokio::select! {
        result = wind_down(&engine, Channels::default(), server, recovering, config.server.shutdown_grace) => result,
        () = signals.next() => Err(anyhow!("stopped at once by a second signal; hint: other workers take up the turns that were running")),
    };
    listening.abort();
    opened.stop_tools().await;
    ended
}

/// Lets running turns finish and their connections drain, within the grace.
async fn wind_down(
    engine: &Engine,
    channels: Channels,
    server: JoinHandle<std::io::Result<()>>,
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
        Ok(Ok(served)) => served.context("serving failed")?,
        Ok(Err(_)) => tracing::error!("the HTTP server ended by a fault"),
        Err(_) => abort.abort(),
    }
    tracing::info!(turns.parked = stopped.parked, "stopped");
    Ok(())
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
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
    if path.exists() && !passing {
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
        tracing::warn!(file = %path.display(), "the administrator's token is not valid here; remove the file to have one made");
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
                turns.unreadable = found.unreadable,
                "took up turns that were left"
            ),
            Err(error) => tracing::warn!(error = %error, "turns that were left could not be taken up"),
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
                tracing::info!(scope.tag = %tag, outcome, "a turn ended that nobody waited for");
            }
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "turns ended that nobody waited for, too many to name");
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
            Ok(swept) => tracing::info!(sessions.expired = swept, "erased sessions whose lifetime was over"),
            Err(error) => {
                tracing::warn!(error = %error, "sessions whose lifetime is over could not be erased")
            }
        }
    }
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("signals cannot be listened for");
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
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
