//! `confidant chat --server`: chats that only their owner can open, on somebody's server.
//!
//! This process is a device of the account: it seals before it sends, and checks what it gets. Its files are sealed in a folder
//! of its own. What is written while the server cannot be reached waits there, and can be looked at; a conversation tries the server
//! again by itself.

mod again;
mod asking;
mod authenticator;
mod commands;
mod giving;
mod keeping;
mod restore;
mod snapshots;
mod switches;

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use confidant_chat_format::{ChatId, Login, Origin, RecoveryCode};
use confidant_chat_protocol::Phase;

use confidant_client::{Consent, Credential, Device, Error, Folder, Http, News, Offer, Registration, Setup};
use confidant_engine::clock::{Clock as _, SystemClock};
use secrecy::{ExposeSecret as _, SecretString};

use super::hidden;
use super::lines::{Line, Remember, editor, read_line};
use super::shared::{JsonArg, Outcome};
use crate::config::Loaded;
use crate::output::{self, counted, note};

#[derive(Debug, Args)]
#[command(next_help_heading = "Chats that only you can open")]
pub(super) struct ServerArgs {
    /// Use an account at the server with this address
    #[arg(long, value_name = "URL", conflicts_with_all = ["user", "room", "once", "room_line", "room_context"])]
    pub(super) server: Option<String>,
    /// Your login name on that server
    #[arg(long, value_name = "NAME", requires = "server")]
    login: Option<String>,
    /// Make an account, with an invitation or the code that the server printed at its start
    #[arg(long, value_name = "CODE", requires = "login", num_args = 0..=1)]
    register: Option<Option<String>>,
    /// Add this device to an account: shows digits to type on another device, after /pair
    #[arg(long, requires = "server", conflicts_with_all = ["login", "register"])]
    pair: bool,
    /// Log in with the recovery code instead of the password
    #[arg(long, requires = "login", conflicts_with = "register")]
    recover: bool,
    /// Restore an account that the server lost, with the operator's code; without one, print what to ask for
    #[arg(long, value_name = "CODE", requires = "server", conflicts_with_all = ["register", "pair", "recover"], num_args = 0..=1)]
    restore: Option<Option<String>>,
    /// With --restore: discard what the server still has of the account
    #[arg(long, requires = "restore")]
    anew: bool,
    /// The folder for this device's files [default: one per server in your data folder]
    #[arg(long, value_name = "FOLDER", requires = "server")]
    device: Option<PathBuf>,
    /// Show a snapshot that somebody shared, and exit; without a link, it is asked for
    #[arg(
        long,
        value_name = "LINK",
        num_args = 0..=1,
        conflicts_with_all = ["server", "user", "room", "once", "room_line", "room_context"]
    )]
    pub(super) open: Option<Option<String>>,
    /// Run this command and exit; may be repeated; /help lists the commands
    #[arg(long = "do", value_name = "COMMAND", requires = "server")]
    commands: Vec<String>,
}

/// Somebody at a device.
struct Remote<'a> {
    device: Device,
    /// The chat that is being talked in.
    chat: Option<ChatId>,
    loaded: &'a Loaded,
    login: Option<String>,
    json: bool,
    /// What a tool waits for.
    question: Option<asking::Question>,
    /// What the server asks for, the first of it shown.
    data_requests: VecDeque<giving::Asked>,
    /// Whether somebody is there to be asked.
    consent: Consent,
    /// When a connection that is gone is made again.
    again: again::Again,
    /// Whether this process ends with what it was told to do: nothing that comes later is heard.
    ends: bool,
}

/// Whether to go on.
enum Next {
    Go,
    End,
    /// The account ends, and this device with it.
    Erase(Box<Credential>),
}

/// Shows a snapshot that somebody shared.
pub(super) async fn open(link: Option<&str>, form: &JsonArg) -> anyhow::Result<Outcome> {
    snapshots::open(link, form).await
}

pub(super) async fn run(
    server: &str,
    args: &ServerArgs,
    form: &JsonArg,
    loaded: &Loaded,
) -> anyhow::Result<Outcome> {
    let origin = Origin::parse(server.trim_end_matches('/')).map_err(|_| {
        anyhow!("--server is not a server's address; hint: write it as in a browser, such as https://chat.example.org")
    })?;
    let folder = folder(args, origin.as_str(), loaded)?;
    let transport = Http::new(origin)?;
    let files = Folder::open(&folder)?;
    let setup = Setup {
        transport: Arc::new(transport),
        files: Arc::new(files),
        key: None,
        clock: Arc::new(|| SystemClock.now().0.try_into().unwrap_or_default()),
    };
    let device = match (Device::open(setup.clone())?, &args.register, args.pair) {
        (Some(_), Some(_), _) | (Some(_), _, true) => {
            return Err(anyhow!(
                "{} already belongs to an account; hint: leave out --register and --pair, or choose another folder with --device",
                folder.display()
            ));
        }
        (Some(mut device), None, false) => {
            match &args.restore {
                None => {}
                Some(None) => return restore::ask(&device, form),
                Some(Some(code)) => restore::run(&mut device, args, code, form, loaded).await?,
            }
            device
        }
        (None, ..) if args.restore.is_some() => {
            return Err(anyhow!(
                "{} contains no device; hint: with --device, choose the folder of a device that has the account",
                folder.display()
            ));
        }
        (None, Some(code), _) => register(setup, args, code.clone(), form, loaded).await?,
        (None, None, true) => pair(&setup).await?,
        (None, None, false) => log_in(setup, args, loaded).await?,
    };
    let consent = if args.commands.is_empty() { Consent::Person } else { Consent::Switches };
    let mut remote = Remote {
        device,
        chat: None,
        loaded,
        login: args.login.clone(),
        json: form.json,
        question: None,
        data_requests: VecDeque::new(),
        consent,
        again: again::Again::new(),
        ends: !args.commands.is_empty(),
    };
    // What is refused can be looked at, and is what /put-back is for.
    let puts_back = args.commands.first().is_some_and(|command| command.trim() == PUT_BACK);
    if !puts_back {
        match remote.arrive().await {
            Err(error) if args.commands.is_empty() && error.is::<Error>() => {
                output::error(&output::whole(&error));
            }
            arrived => arrived?,
        }
    }
    if args.commands.is_empty() {
        return remote.converse().await;
    }
    for command in &args.commands {
        match remote.obey(command).await? {
            Next::Go => {}
            Next::End => break,
            Next::Erase(by) => {
                remote.erase(&by).await?;
                return Ok(Outcome::Done);
            }
        }
    }
    // A draft that followed another: nobody else sends it.
    if let Some(wait) = remote.device.draft_wait().filter(|_| remote.device.is_connected()) {
        tokio::time::sleep(wait).await;
        remote.send().await?;
    }
    Ok(Outcome::Done)
}

fn folder(args: &ServerArgs, server: &str, loaded: &Loaded) -> anyhow::Result<PathBuf> {
    if let Some(folder) = &args.device {
        return Ok(folder.clone());
    }
    let home =
        loaded.data_home.as_ref().context("there is no home folder; hint: choose a folder with --device")?;
    let name: String = server
        .trim_start_matches("https://")
        .trim_start_matches("http://")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
        .collect();
    Ok(home.join("confidant").join("devices").join(name))
}

async fn register(
    setup: Setup,
    args: &ServerArgs,
    code: Option<String>,
    form: &JsonArg,
    loaded: &Loaded,
) -> anyhow::Result<Device> {
    let login = login_of(args.login.as_deref())?;
    let password = new_password(loaded)?;
    let recovery = RecoveryCode::random();
    let credentials = vec![
        Credential::password(login.as_str(), password.expose_secret())?,
        Credential::Recovery(recovery.clone()),
    ];
    note("making the account; deriving a key from the password takes a moment");
    let device = match Device::register(setup, Registration { login, credentials, code }).await {
        // The server does not tell which: a stranger would learn who has an account.
        Err(Error::Denied { error, .. }) if error.name() == "login-refused" => {
            return Err(anyhow!(
                "the server refused to make this account (login-refused); hint: the code may be wrong or used, or the name taken; \
                 a server without accounts prints a code at its start, and `confidant account invite` makes others"
            ));
        }
        made => made?,
    };
    let text = recovery.dangerously_to_text();
    if form.json {
        output::line(&serde_json::json!({ "recovery_code": text.as_str() }).to_string())?;
    } else {
        output::line(&text)?;
    }
    note(
        "this is your recovery code, shown once: write it down. Without it and the password, nobody can open your chats",
    );
    Ok(device)
}

async fn log_in(setup: Setup, args: &ServerArgs, loaded: &Loaded) -> anyhow::Result<Device> {
    let credential = if args.recover {
        Credential::Recovery(recovery(loaded)?)
    } else {
        let login = args.login.as_deref().ok_or_else(|| {
            anyhow!("nobody is logged in on this device; hint: add --login NAME (and --register CODE for a new account), or --pair")
        })?;
        password(login, loaded)?
    };
    authenticator::with_totp(credential, async |credential| Device::log_in(setup.clone(), credential).await)
        .await
}

async fn pair(setup: &Setup) -> anyhow::Result<Device> {
    let offer = Offer::make(setup.clone()).await?;
    output::line(&offer.dangerously_to_text())?;
    note(
        "on a device of the account, type /pair and these digits within two minutes; let nobody else see them",
    );
    loop {
        tokio::time::sleep(PAIRING).await;
        if let Some(device) = offer.finish().await? {
            note("paired");
            return Ok(device);
        }
    }
}

fn login_of(login: Option<&str>) -> anyhow::Result<Login> {
    let login = login.ok_or_else(|| anyhow!("the login name is missing; hint: add --login NAME"))?;
    Login::parse(login).map_err(|_| {
        anyhow!(
            "this is not a valid login name; hint: use lower-case letters, digits and .-_@, without spaces"
        )
    })
}

fn new_password(loaded: &Loaded) -> anyhow::Result<SecretString> {
    if let Some(password) = &loaded.secrets.chat_password {
        return Ok(password.clone());
    }
    let password = hidden::ask("New password: ", "CHAT_PASSWORD_FILE")?;
    if io::stdin().is_terminal() {
        let again = hidden::ask("The same again: ", "CHAT_PASSWORD_FILE")?;
        if again.expose_secret() != password.expose_secret() {
            return Err(anyhow!("the two passwords differ; hint: try again"));
        }
    }
    Ok(password)
}

fn password(login: &str, loaded: &Loaded) -> anyhow::Result<Credential> {
    let login = login_of(Some(login))?;
    let password = match &loaded.secrets.chat_password {
        Some(password) => password.clone(),
        None => hidden::ask("Password: ", "CHAT_PASSWORD_FILE")?,
    };
    Ok(Credential::password(login.as_str(), password.expose_secret())?)
}

fn recovery(loaded: &Loaded) -> anyhow::Result<RecoveryCode> {
    let code = match &loaded.secrets.chat_recovery_code {
        Some(code) => code.clone(),
        None => hidden::ask("Recovery code: ", "CHAT_RECOVERY_CODE_FILE")?,
    };
    RecoveryCode::parse(code.expose_secret().trim())
        .map_err(|_| anyhow!("this is not a recovery code; hint: type all of it, as it was shown"))
}

impl Remote<'_> {
    /// Loads what is new, where that can be done now.
    async fn arrive(&mut self) -> anyhow::Result<()> {
        match self.catch_up().await {
            Ok(()) => self.tell_of_turns().await,
            Err(error @ (Error::Offline | Error::NotLoggedIn | Error::LoggedOut(_))) => {
                self.device.disconnect();
                note(&error.to_string());
                self.tell_of_waiting();
                Ok(())
            }
            Err(Error::Refused(refused)) => {
                note(&restore::words(&self.device, refused));
                Err(Error::Refused(refused).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn catch_up(&mut self) -> Result<(), Error> {
        self.device.sync(Phase::All).await?;
        self.device.flush().await
    }

    /// Says what came of questions while this device was away.
    async fn tell_of_turns(&mut self) -> anyhow::Result<()> {
        while let Some(told) = self.device.told() {
            self.heed(&News::Turn(told)).await?;
        }
        Ok(())
    }

    /// Sends what waits. What cannot be sent now stays, and is said.
    async fn send(&mut self) -> anyhow::Result<()> {
        match self.device.flush().await {
            Ok(()) => {
                self.tell_of_copies();
                Ok(())
            }
            Err(Error::Offline | Error::Frozen | Error::NotLoggedIn | Error::LoggedOut(_)) => {
                self.tell_of_waiting();
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn tell_of_waiting(&self) {
        let waiting = self.device.waiting().len();
        if waiting > 0 {
            note(&format!(
                "offline: {} kept on this device until the server can be reached; /queue shows them",
                if waiting == 1 { "1 change is".to_owned() } else { format!("{waiting} changes are") }
            ));
        }
    }

    fn tell_of_copies(&self) {
        let copies = self.device.copies().len();
        if copies > 0 {
            note(&format!(
                "another device was first: {} of yours became copies; /queue shows them",
                counted(copies as u64, "change")
            ));
        }
    }

    async fn converse(mut self) -> anyhow::Result<Outcome> {
        if io::stdin().is_terminal() {
            note("chats that only you can open. /help for help, Ctrl-D to end.");
        }
        let mut editor = Some(editor(Remember::Yes)?);
        loop {
            let prompt = if io::stdin().is_terminal() { "> " } else { "" };
            let line = {
                let mut reading = Box::pin(read_line(&mut editor, prompt, String::new()));
                loop {
                    tokio::select! {
                        line = &mut reading => break line?,
                        happened = again::meanwhile(&mut self.device, &mut self.again) => {
                            self.heed_meanwhile(happened).await?;
                        }
                    }
                }
            };
            let text = match line {
                Line::Text(text) => text,
                Line::TakenBack => continue,
                Line::End => return Ok(Outcome::Done),
            };
            // What fails is said, and the conversation goes on.
            match self.obey(text.trim()).await {
                Ok(Next::Go) => {}
                Ok(Next::End) => return Ok(Outcome::Done),
                Ok(Next::Erase(by)) => {
                    self.erase(&by).await?;
                    return Ok(Outcome::Done);
                }
                Err(error) if output::is_broken_pipe(&error) => return Err(error),
                Err(error) => output::error(&output::whole(&error)),
            }
        }
    }

    async fn erase(self, by: &Credential) -> anyhow::Result<()> {
        let receipt = self.device.erase(by).await?;
        output::line(&receipt)?;
        note("erased; this is the receipt, which the server's operator can check");
        Ok(())
    }

    /// Says what happened, and stores what came of turns.
    async fn heed(&mut self, news: &News) -> anyhow::Result<()> {
        match news {
            News::Turn(told) => Box::pin(self.heed_turn(&told.chat, &told.turn, &told.what)).await,
            news => {
                self.tell(news);
                Ok(())
            }
        }
    }

    /// Says what another device did.
    fn tell(&self, news: &News) {
        match news {
            News::Chat(chat) if Some(chat) == self.chat.as_ref() => {
                if let Some(last) = self.device.chat(chat).ok().and_then(|view| view.branch.last().cloned()) {
                    note(&format!("{}: {}", commands::speaker(&last), output::clean(&last.body)));
                }
            }
            News::Chat(chat) => note(&format!("changed on another device: {}", self.title(chat))),
            News::Gone(chats) => {
                note(&format!("{} deleted on another device", counted(chats.len() as u64, "chat")))
            }
            News::Devices => note("a device was added or removed; /devices lists them"),
            _ => {}
        }
    }

    fn title(&self, chat: &ChatId) -> String {
        let title = self.device.chat(chat).ok().and_then(|view| view.title().map(str::to_owned));
        output::clean(&title.unwrap_or_else(|| "(no title)".to_owned())).into_owned()
    }

    /// The credential that signs what needs a proof.
    fn credential(&self) -> anyhow::Result<Credential> {
        match &self.login {
            Some(login) => password(login, self.loaded),
            None => Err(anyhow!("this needs your password; hint: start with --login NAME")),
        }
    }
}

/// Writes what this device has over what the server shows.
const PUT_BACK: &str = "/put-back";
const PAIRING: Duration = Duration::from_secs(1);
