//! People over a bare connection: they register, log in and write, without the work of a real device.

use anyhow::{Context as _, Result};
use confidant_chat_format::{ChatId, Login, Origin};
use confidant_chat_protocol::{
    Body as _, Challenge, ChallengeRequest, ClientEvent, ClientFrame, CredentialKind, LoginRequest, Provable,
    RegisterBegin, RegisterOffer, Secret, ServerEvent, ServerFrame, SessionOpened, Signed, Text, Ticket,
    TicketRequest,
};

use crate::device::Person;
use crate::line::{Line, Reply, Session};

/// A new account, and its session. The code is for the first one.
pub(crate) async fn register(
    line: &mut Line,
    origin: &Origin,
    login: &str,
    code: Option<&str>,
) -> Result<(Person, Session)> {
    let login = Login::parse(login).map_err(|_| anyhow::anyhow!("no login"))?;
    let invite = code.map(|code| Text::new(code.to_owned())).transpose()?;
    let begin = RegisterBegin { login: login.clone(), invite };
    let offer: RegisterOffer = line.post("/account/register/begin", None, &begin).await?.read()?;
    let (person, signed) = Person::new(&login, offer, origin);
    let session = opened(&line.post("/account/register", None, &signed).await?)?;
    Ok((person, session))
}

/// One more session: a challenge, a proof, the session.
pub(crate) async fn log_in(line: &mut Line, origin: &Origin, person: &Person) -> Result<Session> {
    let request = LoginRequest { kind: CredentialKind::Password, device: None };
    let ask = ChallengeRequest { purpose: LoginRequest::PURPOSE };
    let challenge: Challenge = line.post("/account/challenge", None, &ask).await?.read()?;
    let signed = Signed::sign(&request, &person.root, origin, person.signer(), challenge.challenge)?;
    opened(&line.post("/account/login", None, &signed).await?)
}

/// Writes a message of some 300 bytes.
pub(crate) async fn write(
    line: &mut Line,
    session: &Session,
    person: &mut Person,
    chat: &ChatId,
) -> Result<()> {
    let event = ClientEvent::EncryptedChatMetadata(person.write(chat, 300));
    let reply = line.post("/chats/events", Some(session), &ClientFrame { id: 1, event }).await?;
    let frame = reply.body.split(|byte| *byte == b'\n').next().context("no frame")?;
    match ServerFrame::read(frame)?.event {
        ServerEvent::EncryptedMetadataStored(_) => Ok(()),
        other => anyhow::bail!("a write was not stored: {other:?}"),
    }
}

pub(crate) async fn ticket(line: &mut Line, session: &Session) -> Result<Secret> {
    Ok(line.post("/chats/ticket", Some(session), &TicketRequest {}).await?.read::<Ticket>()?.ticket)
}

fn opened(reply: &Reply) -> Result<Session> {
    let body: SessionOpened = reply.read()?;
    // A secret is shown nowhere but in the message that has it.
    let json: serde_json::Value = serde_json::from_slice(&body.write()?)?;
    let secret = json["session"].as_str().context("no session")?.to_owned();
    Ok(Session { id: reply.session.clone().context("no session")?, secret })
}
