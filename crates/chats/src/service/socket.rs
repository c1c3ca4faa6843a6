//! A socket: a ticket first, then requests and news.
//!
//! The transport drives it: it hands in every frame ([`Socket::receive`]) and sends what comes out of it, and it always waits for
//! [`Socket::news`] beside. Short answers come from `receive` at once; long ones come from `news`, part by part, so that a
//! socket which is read slowly holds no more than one frame.
//!
//! ```text
//! loop { select! { frame = transport.next()  => send all of socket.receive(frame).await
//!                  frame = socket.news()     => send it } }        Err(closing): send closing.last, close with closing.code
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use confidant_chat_format::{AccountId, DeviceId, Digest, Origin};
use confidant_chat_protocol::limits::MAX_FRAME;
use confidant_chat_protocol::{
    Body as _, ClientEvent, ClientFrame, CloseCode, ForceLogout, Hello, LogoutReason, Ready, RefusedSent,
    ServerEvent, ServerFrame,
};
use confidant_display::debug_without_content;
use tokio::time::Instant;

use super::frames::{Frames, Step};
use super::hub::{Seat, SessionFilter};
use super::rate::{Bucket, Rate};
use super::refusals::{malformed, too_fast};
use super::{Caller, Inner, Network, Service, hashed};
use crate::store::{CodeKind, Millis, Session};

/// Who is at the other end.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) account: AccountId,
    pub(crate) device: DeviceId,
    /// The hash of the session's id.
    pub(crate) session: Digest,
    /// The socket's number, if it is one.
    pub(crate) seat: Option<u64>,
}

debug_without_content!(Peer);

/// A socket. Dropping it ends it.
#[derive(Debug)]
pub struct Socket {
    service: Service,
    origin: Origin,
    network: Network,
    /// Until when `hello` has to come.
    deadline: Instant,
    bucket: Bucket,
    state: State,
    /// Long answers, in the order of the requests.
    later: VecDeque<Frames>,
}

#[derive(Debug)]
enum State {
    Waiting,
    Open(Box<Open>),
    Closed(CloseCode),
}

#[derive(Debug)]
struct Open {
    peer: Peer,
    seat: Seat,
    /// When the session was last looked at.
    checked: Millis,
}

/// The socket ends.
#[derive(Debug, PartialEq, Eq)]
pub struct Closing {
    /// The code of the close frame.
    pub code: CloseCode,
    /// What is sent before it.
    pub last: Option<Box<ServerFrame>>,
}

impl Socket {
    pub(crate) fn new(service: Service, origin: Origin, network: Network) -> Self {
        let bucket = Bucket::full(RATE, service.inner.now());
        let deadline = Instant::now() + HELLO;
        Self { service, origin, network, deadline, bucket, state: State::Waiting, later: VecDeque::new() }
    }

    /// Where it comes from.
    #[must_use]
    pub fn network(&self) -> Network {
        self.network
    }

    /// Its number in this process, once it is open: see [`Caller::stream`].
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match &self.state {
            State::Open(open) => Some(open.seat.number),
            State::Waiting | State::Closed(_) => None,
        }
    }

    /// A frame of the client. `Ok`: what to send now; long answers come from [`Socket::news`]. Wait for its end: a write that is
    /// given up half-way may be stored without being answered or told.
    pub async fn receive(&mut self, frame: &[u8]) -> Result<Vec<ServerFrame>, Closing> {
        let now = self.service.inner.now();
        if frame.len() > MAX_FRAME {
            return Err(self.close(CloseCode::TooLarge, None));
        }
        if self.bucket.take(RATE, now).is_err() {
            return Err(self.close(CloseCode::Rate, None));
        }
        match &mut self.state {
            State::Closed(code) => Err(Closing { code: *code, last: None }),
            State::Waiting => self.hello(frame).await,
            State::Open(open) => {
                if let Some(reason) = open.still_there(&self.service.inner, now).await {
                    return Err(self.close(CloseCode::LoggedOut, Some(logged_out(reason))));
                }
                let peer = open.peer.clone();
                Ok(self.request(peer, frame).await)
            }
        }
    }

    /// The next frame for this device: a part of a long answer, a change by another device, or the end of the session. Pends
    /// until there is one. May be dropped at any time: nothing is lost.
    pub async fn news(&mut self) -> Result<ServerFrame, Closing> {
        loop {
            let open = match &mut self.state {
                State::Waiting => {
                    tokio::time::sleep_until(self.deadline).await;
                    return Err(self.close(CloseCode::Late, None));
                }
                State::Closed(code) => return Err(Closing { code: *code, last: None }),
                State::Open(open) => open,
            };
            if let Some(reason) = open.seat.ended() {
                return Err(self.close(CloseCode::LoggedOut, Some(logged_out(reason))));
            }
            if let Some(answer) = self.later.front_mut() {
                // Boxed: most sockets wait for news, and would have room for this all the time.
                match Box::pin(answer.next()).await {
                    Some(frame) => return Ok(frame),
                    None => drop(self.later.pop_front()),
                }
                continue;
            }
            match open.seat.queue.recv().await {
                Some(frame) => return Ok(Arc::unwrap_or_clone(frame)),
                None if open.seat.ended().is_some() => {}
                // It did not keep up: it comes again and syncs.
                None => return Err(self.close(CloseCode::Stopping, None)),
            }
        }
    }

    async fn hello(&mut self, frame: &[u8]) -> Result<Vec<ServerFrame>, Closing> {
        let read = ClientFrame::read(frame);
        let Ok(ClientFrame { id, event: ClientEvent::Hello(hello) }) = read else {
            return Err(self.close(CloseCode::Unauthorised, None));
        };
        let opened = self.service.inner.open_socket(&self.origin, &hello).await;
        match opened {
            Ok(Some((open, ready))) => {
                self.state = State::Open(Box::new(open));
                Ok(vec![ServerFrame { re: Some(id), seq: None, event: ServerEvent::Ready(ready) }])
            }
            Ok(None) => Err(self.close(CloseCode::Unauthorised, None)),
            Err(refused) => {
                let code = match refused.retry_ms {
                    Some(_) => CloseCode::Rate,
                    None => CloseCode::Stopping,
                };
                let last = ServerFrame { re: Some(id), seq: None, event: ServerEvent::Refused(refused) };
                Err(self.close(code, Some(last)))
            }
        }
    }

    async fn request(&mut self, peer: Peer, frame: &[u8]) -> Vec<ServerFrame> {
        let (re, event) = match ClientFrame::read(frame) {
            Ok(ClientFrame { id, event }) => (Some(id), event),
            Err(malformed) => return refused(ClientFrame::id_of(frame), (&malformed).into()),
        };
        if matches!(event, ClientEvent::Hello(_)) {
            return refused(re, malformed("the socket is open already"));
        }
        if self.later.len() >= WAITING {
            return refused(re, too_fast(1000));
        }
        match self.service.inner.handle(&peer, event).await {
            Ok(steps) if steps.iter().all(Step::is_ready) => {
                let frame = |step| match step {
                    Step::Ready(seq, event) => Some(ServerFrame { re, seq, event: *event }),
                    _ => None,
                };
                steps.into_iter().filter_map(frame).collect()
            }
            Ok(steps) => {
                self.later.push_back(Frames::new(self.service.clone(), peer, re, steps));
                Vec::new()
            }
            Err(error) => refused(re, error),
        }
    }

    fn close(&mut self, code: CloseCode, last: Option<ServerFrame>) -> Closing {
        self.state = State::Closed(code);
        self.later.clear();
        Closing { code, last: last.map(Box::new) }
    }
}

impl Service {
    /// A socket of somebody who shows a session: no frame has to come in before news go out. Also the frame that comes first.
    pub async fn connect_session(
        &self,
        caller: &Caller,
        heard: Option<u64>,
    ) -> Result<(Socket, ServerFrame), RefusedSent> {
        let this = &*self.inner;
        this.own_origin(&caller.origin)?;
        let session = this.session(caller).await?;
        let (open, ready) = this.seated(session, heard).await?;
        let mut socket = self.connect(caller.origin.clone(), caller.network);
        socket.state = State::Open(Box::new(open));
        Ok((socket, ServerFrame { re: None, seq: None, event: ServerEvent::Ready(ready) }))
    }
}

impl Open {
    /// Why the session is over, if it is. The store is asked every minute, since another gateway may have ended it.
    async fn still_there(&mut self, service: &Inner, now: Millis) -> Option<LogoutReason> {
        if let Some(reason) = self.seat.ended() {
            return Some(reason);
        }
        if now < self.checked.plus(CHECK) {
            return None;
        }
        match service.store.session(self.peer.session, now).await {
            Ok(None) => Some(LogoutReason::Expired),
            Ok(Some(_)) => {
                self.checked = now;
                None
            }
            // Nobody can tell now. Requests that need the store fail by themselves, and the next one asks again.
            Err(_) => None,
        }
    }
}

impl Inner {
    /// Uses a ticket up. `None`: it is not there, or for another origin, or its session is over.
    async fn open_socket(
        &self,
        origin: &Origin,
        hello: &Hello,
    ) -> Result<Option<(Open, Ready)>, RefusedSent> {
        let now = self.now();
        let key = hashed(hello.ticket.dangerously_expose_bytes());
        let Some(ticket) = self.store.consume(CodeKind::Ticket, key, now).await? else { return Ok(None) };
        let Some((session, bound)) = ticket.carries.split_first_chunk::<32>() else { return Ok(None) };
        if hello.v != 1 || bound != origin.as_str().as_bytes() {
            return Ok(None);
        }
        let session = self.store.session(Digest::from_bytes(*session), now).await?;
        let Some(session) = session else { return Ok(None) };
        self.seated(session, hello.seq).await.map(Some)
    }

    /// A seat for a session whose device has heard of changes up to this number.
    async fn seated(&self, session: Session, heard: Option<u64>) -> Result<(Open, Ready), RefusedSent> {
        let now = self.now();
        // Joined first: what happens while the number is read comes as news.
        let seat = self.hub.join(&session.account, session.id, &session.device);
        let seat = seat.ok_or_else(|| too_fast(1000))?;
        if let Some(seq) = heard {
            self.note_cursor(&session.account, &session.device, seq).await?;
        }
        let seq = self.store.account(&session.account).await?.seq;
        self.hub.begin(&session.account, &seat, seq);
        if let Some(old) = seq.checked_sub(CHANGES).filter(|old| *old > 0) {
            self.store.trim_feed(&session.account, old).await?;
        }
        let ready = Ready { v: 1, account: session.account.clone(), device: session.device.clone(), seq };
        let peer = Peer {
            account: session.account,
            device: session.device,
            session: session.id,
            seat: Some(seat.number),
        };
        Ok((Open { peer, seat, checked: now }, ready))
    }

    /// Ends sockets whose session is over.
    pub(crate) async fn check_sockets(&self) -> Result<(), RefusedSent> {
        for (account, session) in self.hub.sessions() {
            if self.store.session(session, self.now()).await?.is_none() {
                self.hub.end(&account, &SessionFilter::Session(session), LogoutReason::Expired);
            }
        }
        Ok(())
    }
}

fn refused(re: Option<u32>, error: RefusedSent) -> Vec<ServerFrame> {
    vec![ServerFrame { re, seq: None, event: ServerEvent::Refused(error) }]
}

fn logged_out(reason: LogoutReason) -> ServerFrame {
    ServerFrame { re: None, seq: None, event: ServerEvent::ForceLogout(ForceLogout { reason }) }
}

/// How long a socket may be silent at first.
const HELLO: Duration = Duration::from_secs(5);
/// How often a socket's session is looked at.
const CHECK: Duration = Duration::from_secs(60);
/// Frames of one socket.
const RATE: Rate = Rate { burst: 240, per_second: 40 };
/// Changes that are kept for devices that were away; one that missed more syncs in phases.
const CHANGES: u64 = 10_000;
/// Long answers that wait.
const WAITING: usize = 32;
