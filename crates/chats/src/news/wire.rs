//! How news are spelled between gateways: lines of text, in pieces that PostgreSQL passes on.
//!
//! ```text
//! piece   = tag " " gateway " " number " " place "/" count " " text        fewer than 8000 bytes
//! message = "frames" account LF frame (LF frame)*                          frames as sockets get them
//!         | "ended" account which LF frame                                 `force_logout`, which says why
//!         | "missed" account                                               news of it were lost
//!         | "check"                                                        news of anybody may have been lost
//!         | "ping"
//! ```
//!
//! Everything in it goes to sockets as well: client ciphertext, ids, numbers. Anybody who is let into the database can say something
//! on its channels, so every piece has a tag under a key of ours, and is read as if it had none.
//!
//! Easy to get wrong: a message that a reader does not know. It is counted and left; the gap in numbers says that
//! something happened.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_chat_format::{AccountId, DeviceId, Digest};
use confidant_chat_protocol::{Body as _, ForceLogout, ServerEvent, ServerFrame};
use confidant_seal::Tag;

use crate::service::{AccountEvent, SessionFilter};

/// Which gateway says something: new with every start.
pub(super) type Gateway = [u8; 16];

/// A message, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) gateway: Gateway,
    /// Counts the gateway's messages.
    pub(super) number: u64,
    /// Which piece of the message it is, from 0.
    pub(super) place: usize,
    pub(super) count: usize,
    pub(super) text: &'a str,
}

/// What a gateway says.
#[derive(Clone, Debug)]
pub(super) enum Message {
    Happened(AccountId, AccountEvent),
    Check,
    Ping,
}

/// A message in pieces; `None` if it would be too many.
pub(super) fn pieces(
    gateway: &Gateway,
    number: u64,
    message: &str,
    tag: impl Fn(&str) -> Tag,
) -> Option<Vec<String>> {
    let parts = split(message);
    let count = parts.len();
    if count > MOST {
        return None;
    }
    let gateway = Tag::from_bytes(*gateway);
    let piece = |(place, text): (usize, &&str)| {
        let rest = format!("{gateway} {number} {place}/{count} {text}");
        format!("{} {rest}", tag(&rest))
    };
    Some(parts.iter().enumerate().map(piece).collect())
}

/// Reads a piece whose tag is right.
pub(super) fn read_piece(said: &str, tag: impl Fn(&str) -> Tag) -> Option<Piece<'_>> {
    let (shown, rest) = said.split_once(' ')?;
    // Not secret, and each try is a message: no need to compare in constant time.
    if Tag::from_hex(shown)? != tag(rest) {
        return None;
    }
    parse_piece(rest)
}

/// Reads a piece behind its tag.
pub(super) fn parse_piece(rest: &str) -> Option<Piece<'_>> {
    let mut words = rest.splitn(4, ' ');
    let (gateway, number, place, text) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let (place, count) = place.split_once('/')?;
    let (place, count) = (place.parse().ok()?, count.parse().ok()?);
    let is_one = place < count && count <= MOST && text.len() <= LONGEST;
    let gateway = *Tag::from_hex(gateway)?.as_bytes();
    is_one.then_some(Piece { gateway, number: number.parse().ok()?, place, count, text })
}

impl Message {
    /// As it is said; `None` if it is too long for that.
    pub(super) fn write(&self) -> Option<String> {
        let (account, happened) = match self {
            Self::Happened(account, happened) => (account, happened),
            Self::Check => return Some("check".to_owned()),
            Self::Ping => return Some("ping".to_owned()),
        };
        let mut text = match happened {
            AccountEvent::Frames(_) => format!("frames {account}"),
            AccountEvent::Ended { which, .. } => format!("ended {account} {}", write_which(which)),
            AccountEvent::Missed => format!("missed {account}"),
        };
        let reason;
        let frames = match happened {
            AccountEvent::Frames(frames) => &frames[..],
            AccountEvent::Ended { reason: why, .. } => {
                let event = ServerEvent::ForceLogout(ForceLogout { reason: *why });
                reason = [ServerFrame { re: None, seq: None, event }];
                &reason[..]
            }
            AccountEvent::Missed => &[],
        };
        for frame in frames {
            let json = String::from_utf8(frame.write().ok()?).ok()?;
            if text.len() + json.len() > LARGEST {
                return None;
            }
            text.push('\n');
            text.push_str(&json);
        }
        Some(text)
    }

    /// Reads what was said.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut lines = text.split('\n');
        let first = lines.next()?;
        let mut frames = lines.map(|line| ServerFrame::read(line.as_bytes()).ok());
        let mut words = first.split(' ');
        let (what, account, which, rest) = (words.next()?, words.next(), words.next(), words.next());
        let account = account.map(AccountId::parse).transpose().ok()?;
        let read = match (what, account, which, rest) {
            ("frames", Some(account), None, None) => {
                let frames: Vec<ServerFrame> = frames.by_ref().collect::<Option<_>>()?;
                // News are about a change, and answer nobody.
                if frames.is_empty() || frames.iter().any(|frame| frame.re.is_some()) {
                    return None;
                }
                Self::Happened(account, AccountEvent::Frames(frames))
            }
            ("ended", Some(account), Some(which), None) => {
                let Some(ServerFrame { event: ServerEvent::ForceLogout(why), .. }) = frames.next()? else {
                    return None;
                };
                let ended = AccountEvent::Ended { which: read_which(which)?, reason: why.reason };
                Self::Happened(account, ended)
            }
            ("missed", Some(account), None, None) => Self::Happened(account, AccountEvent::Missed),
            ("check", None, ..) => Self::Check,
            ("ping", None, ..) => Self::Ping,
            _ => return None,
        };
        frames.next().is_none().then_some(read)
    }
}

fn write_which(which: &SessionFilter) -> String {
    let digest = |digest: &Digest| URL_SAFE_NO_PAD.encode(digest.as_bytes());
    match which {
        SessionFilter::All => "all".to_owned(),
        SessionFilter::AllBut(session) => format!("but:{}", digest(session)),
        SessionFilter::Session(session) => format!("session:{}", digest(session)),
        SessionFilter::Device(device) => format!("device:{device}"),
    }
}

fn read_which(text: &str) -> Option<SessionFilter> {
    let digest = |text: &str| {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        Some(Digest::from_bytes(bytes.try_into().ok()?))
    };
    Some(match text.split_once(':') {
        None if text == "all" => SessionFilter::All,
        Some(("but", session)) => SessionFilter::AllBut(digest(session)?),
        Some(("session", session)) => SessionFilter::Session(digest(session)?),
        Some(("device", device)) => SessionFilter::Device(DeviceId::parse(device).ok()?),
        _ => return None,
    })
}

/// Parts of a text that have at most [`LONGEST`] bytes each, and one at least.
fn split(mut text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    while text.len() > LONGEST {
        let (part, rest) = text.split_at(text.floor_char_boundary(LONGEST));
        parts.push(part);
        text = rest;
    }
    parts.push(text);
    parts
}

/// The text of a piece: with what stands before it, fewer than the 8000 bytes that the server takes.
const LONGEST: usize = 7800;
/// Pieces of one message: the longest message of a chat has room. What is larger is not said: sockets sync instead.
const MOST: usize = 48;
/// A message: its pieces may be three bytes shorter, where a letter would be cut.
const LARGEST: usize = (LONGEST - 3) * MOST;

#[cfg(test)]
mod tests {
    use confidant_chat_protocol::{ChatDeleted, LogoutReason};
    use proptest::prelude::*;

    use super::*;

    fn tag(text: &str) -> Tag {
        let digest = Digest::of(text.as_bytes());
        Tag::from_bytes(std::array::from_fn(|at| digest.as_bytes()[at]))
    }

    fn spelled(message: &Message) -> String {
        let text = message.write().unwrap();
        let again = Message::read(&text).unwrap();
        assert_eq!(again.write().unwrap(), text);
        text
    }

    #[test]
    fn every_message_is_read_as_it_was_said() {
        let account = AccountId::random();
        let chat = confidant_chat_format::ChatId::random();
        let event = ServerEvent::ChatDeleted(ChatDeleted { chat });
        let frame = ServerFrame { re: None, seq: Some(7), event };
        let frames = AccountEvent::Frames(vec![frame.clone(), frame.clone()]);
        let text = spelled(&Message::Happened(account.clone(), frames));
        let Some(Message::Happened(who, AccountEvent::Frames(read))) = Message::read(&text) else { panic!() };
        assert_eq!((who, read), (account.clone(), vec![frame.clone(), frame]));
        let whiches = [
            SessionFilter::All,
            SessionFilter::AllBut(Digest::of(b"a")),
            SessionFilter::Session(Digest::of(b"b")),
            SessionFilter::Device(DeviceId::random()),
        ];
        for which in whiches {
            let ended = AccountEvent::Ended { which: which.clone(), reason: LogoutReason::Rotated };
            let text = spelled(&Message::Happened(account.clone(), ended));
            let Some(Message::Happened(_, AccountEvent::Ended { which: read, reason })) =
                Message::read(&text)
            else {
                panic!("{text}")
            };
            assert_eq!((read, reason), (which, LogoutReason::Rotated));
        }
        assert_eq!(
            spelled(&Message::Happened(account.clone(), AccountEvent::Missed)),
            format!("missed {account}")
        );
        assert_eq!(spelled(&Message::Check), "check");
        assert_eq!(spelled(&Message::Ping), "ping");
    }

    #[test]
    fn what_nobody_said_is_not_read() {
        let account = AccountId::random();
        let logout = r#"{"event":{"type":"force_logout","reason":"revoked"}}"#;
        assert!(Message::read(&format!("ended {account} all\n{logout}")).is_some());
        for text in [
            String::new(),
            "pong".to_owned(),
            "ping ping".to_owned(),
            "ping\n".to_owned(),
            format!("frames {account}"),
            format!("frames {account}\n"),
            format!("frames {account}\n{{}}"),
            format!("frames {account} all\n{logout}"),
            format!("frames acct_nobody\n{logout}"),
            format!(r#"frames {account}{}{{"re":1,"event":{{"type":"pong"}}}}"#, '\n'),
            format!("ended {account} all"),
            format!("ended {account} some\n{logout}"),
            format!("ended {account} session:AAAA\n{logout}"),
            format!("ended {account} all\n{logout}\n{logout}"),
            format!(r#"ended {account} all{}{{"event":{{"type":"pong"}}}}"#, '\n'),
            format!("missed {account}\n{logout}"),
            "missed".to_owned(),
        ] {
            assert!(Message::read(&text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_piece_without_our_tag_is_not_read() {
        let said = pieces(&[7; 16], 3, "ping", tag).unwrap();
        assert_eq!(said.len(), 1);
        let piece = read_piece(&said[0], tag).unwrap();
        assert_eq!(piece, Piece { gateway: [7; 16], number: 3, place: 0, count: 1, text: "ping" });
        assert_eq!(read_piece(&said[0].replace("ping", "pong"), tag), None);
        assert_eq!(read_piece(&said[0].replace(" 3 ", " 4 "), tag), None);
        let ours = |rest: &str| read_piece(&format!("{} {rest}", tag(rest)), tag).is_some();
        let id = "07".repeat(16);
        assert!(ours(&format!("{id} 3 0/1 ")));
        for rest in ["", "x", " ", "07 3 0/1 t"] {
            assert!(!ours(rest), "{rest}");
        }
        for rest in ["3 0/1", "3 1/1 t", "3 0/0 t", "3 0/49 t", "-3 0/1 t", "3 0 t"] {
            assert!(!ours(&format!("{id} {rest}")), "{rest}");
        }
    }

    #[test]
    fn what_is_too_long_is_not_said() {
        assert_eq!(pieces(&[7; 16], 1, &"x".repeat(LONGEST * MOST + 1), tag), None);
        let whole = "ä".repeat(LARGEST / 2);
        let said = pieces(&[7; 16], u64::MAX, &whole, tag).unwrap();
        assert!(said.len() <= MOST && said.iter().all(|piece| piece.len() < 8000));
        let texts: String = said.iter().map(|piece| read_piece(piece, tag).unwrap().text).collect();
        assert_eq!(texts, whole);
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_reader_panic(text in "\\PC{0,60}", words in "[a-z0-9 /:_\n{}\"]{0,80}") {
            for text in [text, words] {
                let _ = parse_piece(&text);
                let _ = Message::read(&text);
                let _ = read_piece(&format!("{} {text}", tag(&text)), tag);
            }
        }
    }
}
