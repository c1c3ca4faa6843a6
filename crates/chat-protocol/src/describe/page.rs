//! The page `docs/PROTOCOL.md`.

use std::fmt::Write as _;

use serde::Serialize;

use super::{Book, Content, Described, Dice, Field, joined};
use crate::events::{ClientEvent, RESERVED, ServerEvent};
use crate::frames::{ClientFrame, CloseCode, ServerFrame};
use crate::http::{ROUTES, Who};
use crate::limits::MAX_FRAME;
use crate::wire::Wire as _;
use crate::{ErrorName, Signed};

/// The page, made from the types.
pub fn page() -> String {
    let mut out = INTRODUCTION.to_owned();
    let mut book = Book::default();
    frames(&mut out, &mut book);
    let mut shown =
        vec![("ClientFrame", "client-to-server"), ("ServerFrame", "server-to-client"), ("Signed", "signed")];
    shown.extend(events(&mut out, &mut book));
    routes(&mut out, &mut book);
    types(&mut out, &book, &shown);
    errors(&mut out);
    reserved(&mut out);
    for (name, place) in shown {
        out = out.replace(&format!("](#{})", name.to_lowercase()), &format!("](#{place})"));
    }
    out
}

const INTRODUCTION: &str = "# The protocol of client-sealed chats

<!-- Made by: cargo run -p confidant-chat-protocol --example protocol > docs/PROTOCOL.md -->

This page is made from the types in `crates/chat-protocol`; a test compares them, and reads every sample. What is inside the envelopes is
in [FORMAT.md](FORMAT.md), section 10.

- All messages are JSON in UTF-8. Fields may come in any order. A field twice, an unknown field, a missing field, `null` for a field that is left
  out, a fraction, half of a surrogate pair: the message is refused with `malformed`, and the error says where.
- Bytes and envelopes are base64url without padding. Digests and public keys are 32 bytes. Key ids are 16 lower-case hexadecimal digits.
- Limits count bytes before base64url. Every list and text has one. A reader stops at it; a message over the limit of its kind is refused before
  it is read.
- Revisions and key ids are not sent beside an envelope: the envelope's header has them.
- *Optional* fields are left out when there is nothing to say.

Samples have made-up bytes. They show the shape, and do not open.

";

const FRAMES: &str = "\
An event travels in a frame, the same on each transport: one message on the socket `/ws`, one `data:` line of a server-sent
event from `GET /chats/events` (with `seq` as its `id:`), or the body of a POST to `/chats/events`, whose answers are frames,
one per line.

- The first frame on a socket is `hello`. Anything else closes it.
- A request is answered by one or more frames with its `id` as `re`, in order. Requests may be sent before earlier ones are
  answered.
- A frame that cannot be read is answered with `refused`, with `re` if its `id` can be found. A frame over the limit closes the
  socket.
- A frame is a text message; a binary one is refused with `malformed`. The first frame has at most 4 KiB.
- To a client that offers the subprotocol `confidant.deflate` in the handshake, the server sends large frames as binary messages: the
  same JSON as raw DEFLATE (RFC 1951). Unpacked, they have the limit of a frame.
- `GET /chats/events` is for networks that let no socket pass: a session shown as with a POST (a browser's request has
  `Sec-Fetch-Site: same-origin` in place of `Origin`), `ready` as the first event, then news. What was missed before is not sent again; a
  device compares `ready.seq` with its own. The answer's header `Confidant-Stream` has a number. A POST to `/chats/events` of the same
  session that sends it back counts as sent on that stream: then it may ask for an answer, whose words come there.
- The server pings a socket that is quiet, and cuts off one that does not answer or does not read.
- A device that finds a gap in `seq` asks with `sync_status_request`.

";

fn frames(out: &mut String, book: &mut Book) {
    out.push_str("## Frames\n\n");
    out.push_str(FRAMES);
    for (title, name) in
        [("Client to server", ClientFrame::describe(book)), ("Server to client", ServerFrame::describe(book))]
    {
        let name = name.split(['[', ']']).nth(1).unwrap_or_default();
        let _ = writeln!(out, "### {title}\n");
        object(out, book, name);
    }
    let _ = writeln!(out, "A frame has at most {} bytes.\n", super::thousands(MAX_FRAME));
    out.push_str("### Closing\n\nThe server closes a socket with one of these codes:\n\n| code | meaning |\n|---|---|\n");
    for (close, doc) in CloseCode::ALL {
        let _ = writeln!(out, "| {} | {} |", close.code(), doc.trim());
    }
    out.push_str("| 1002, 1007 | The bytes are not WebSocket messages, or not UTF-8. |\n\n");
}

/// Gives the types that are described with an event, and where.
fn events(out: &mut String, book: &mut Book) -> Vec<(&'static str, &'static str)> {
    let mut shown = Vec::new();
    out.push_str("## Events from client to server\n\n");
    for Described { name, why, describe, sample } in ClientEvent::table() {
        let frame = ClientFrame { id: 7, event: sample };
        shown.push((event(out, book, (name, why), describe, &frame), name));
    }
    out.push_str("## Events from server to client\n\n");
    for Described { name, why, describe, sample } in ServerEvent::table() {
        let news = why.first().is_some_and(|why| why.trim().starts_with("To "));
        let (re, seq) = if news { (None, Some(815)) } else { (Some(7), None) };
        let frame = ServerFrame { re, seq, event: sample };
        shown.push((event(out, book, (name, why), describe, &frame), name));
    }
    let once = |name: &str, shown: &[(&str, &str)]| shown.iter().filter(|other| other.0 == name).count() == 1;
    let found = shown.clone();
    shown.retain(|(name, _)| once(name, &found));
    shown
}

fn event(
    out: &mut String,
    book: &mut Book,
    (word, why): (&str, &[&str]),
    describe: fn(&mut Book) -> String,
    frame: &impl Serialize,
) -> &'static str {
    let link = describe(book);
    let name = link.split(['[', ']']).nth(1).unwrap_or_default();
    let entry = book.get(name).expect("described above");
    let _ = writeln!(out, "### `{word}`\n\n*{}*\n\n{}\n", joined(why), entry.doc);
    object(out, book, name);
    fenced(out, &serde_json::to_string_pretty(frame).expect("plain data"));
    entry.name
}

fn routes(out: &mut String, book: &mut Book) {
    out.push_str("## Accounts, over HTTP\n\n");
    out.push_str(
        "Each is a POST with a JSON body. *Session* means the session's cookie with the header `Confidant-Session`, at the server's \
         own origin ([Sessions](#sessions-and-origins)). *Proof* means that the body is a [Signed](#signed) request, signed for that purpose: what stands below is the \
         JSON inside its `body`. A refusal is the fields of [`refused`](#refused), with the status of its [error](#errors).\n\n",
    );
    out.push_str(SESSIONS);
    Signed::describe(book);
    out.push_str("### Signed\n\n");
    let _ = writeln!(out, "{}\n", book.get("Signed").expect("described above").doc);
    object(out, book, "Signed");
    let signed =
        Signed { body: crate::Text::cut("{\"account_rev\":3}"), ..Signed::make(&mut Dice::sample()) };
    fenced(out, &serde_json::to_string_pretty(&signed).expect("plain data"));
    out.push_str("| path | who | request | answer | limit |\n|---|---|---|---|---|\n");
    for route in ROUTES {
        let (request, answer) = ((route.types.request.describe)(book), (route.types.answer.describe)(book));
        let limit = super::thousands(route.limit);
        let _ = writeln!(out, "| `{}` | {} | {request} | {answer} | {limit} |", route.path, who(route.who));
    }
    out.push('\n');
    for route in ROUTES {
        let _ = writeln!(out, "### `POST {}`\n\n{} *{}.*\n", route.path, route.about, who(route.who));
        let _ = writeln!(out, "Request:\n");
        fenced(out, &(route.types.request.make)(&mut Dice::sample()).pretty);
        let _ = writeln!(out, "Answer:\n");
        fenced(out, &(route.types.answer.make)(&mut Dice::sample()).pretty);
    }
}

const SESSIONS: &str = "\
### Sessions and origins

A session is shown by two secrets of 32 bytes, in base64url. The login's answer has one, which is sent in the header `Confidant-Session`. The
other is the session's id:

| client | gets the id | sends the id |
|---|---|---|
| a page | in the cookie `__Host-confidant` (`confidant-PORT` at an `http` origin), which scripts do not see | the browser does |
| a program | in the header `Confidant-Session-Id` of the answer | `Authorization: Confidant-Session ID` |

- `Host` is the host of one of the server's origins. `Origin` is the origin of that host. `Sec-Fetch-Site` is `same-origin`.
- A page that the server hands out may say which release it is, in the header `Confidant-Page`. Another one than the server's own is refused: `stale-client`.
- A page sends `Origin`. A cookie counts only with `Origin`, `Sec-Fetch-Site` and `Confidant-Session`, and not beside `Authorization`.
- A program sends neither `Origin` nor `Sec-Fetch-Site` nor a cookie. Its origin, for proofs and tickets, is the one that its `Host` names.
- The same rules hold for the socket `/ws`, but a page needs no `Sec-Fetch-Site` there unless the browser sends it. The ticket says whose it is.
- Bodies are `application/json`, not compressed, in UTF-8. Each of these headers may be there once.
- Frames are answered as `application/x-ndjson`, one per line, while they are made. `Retry-After` comes with `retry_ms`.

Whatever breaks these rules is refused with `unauthorised`, `two-credentials` or `malformed` before anything else is looked at.

";

fn who(who: Who) -> String {
    match who {
        Who::Anybody => "anybody".to_owned(),
        Who::Session => "session".to_owned(),
        Who::Proof(purpose) => format!("proof for `{}`", purpose.name()),
    }
}

/// Types that are part of others, without those that were shown.
fn types(out: &mut String, book: &Book, shown: &[(&str, &str)]) {
    out.push_str("## Types\n\n");
    let above = |name: &str| shown.iter().any(|other| other.0 == name);
    let mut entries: Vec<_> = book.entries().iter().filter(|entry| !above(entry.name)).collect();
    entries.sort_by_key(|entry| entry.name);
    for entry in entries {
        let _ = writeln!(out, "### {}\n\n{}\n", entry.name, entry.doc);
        object(out, book, entry.name);
    }
}

fn object(out: &mut String, book: &Book, name: &str) {
    match book.get(name).map(|entry| &entry.content) {
        Some(Content::Object(fields)) if fields.is_empty() => out.push_str("No fields.\n\n"),
        Some(Content::Object(fields)) => table(out, "field", fields),
        Some(Content::Choice(cases)) => {
            out.push_str("An object with exactly one of these fields.\n\n");
            table(out, "field", cases);
        }
        Some(Content::Words(words)) => {
            out.push_str("| word | meaning |\n|---|---|\n");
            for (word, doc) in words {
                let _ = writeln!(out, "| `{word}` | {doc} |");
            }
            out.push('\n');
        }
        None => {}
    }
}

fn table(out: &mut String, title: &str, fields: &[Field]) {
    let _ = writeln!(out, "| {title} | type | meaning |\n|---|---|---|");
    for field in fields {
        let optional = if field.optional { " *Optional.*" } else { "" };
        let _ = writeln!(out, "| `{}` | {} | {}{optional} |", field.name, field.what, joined(field.doc));
    }
    out.push('\n');
}

fn fenced(out: &mut String, json: &str) {
    let _ = writeln!(out, "```json\n{json}\n```\n");
}

fn errors(out: &mut String) {
    out.push_str(
        "## Errors\n\nThe names in `error` of `refused`, with the status that they have over HTTP. ",
    );
    out.push_str("Those of content are the format's ([FORMAT.md](FORMAT.md), section 10); ");
    out.push_str("the others are [Failure](#failure).\n\n| status | errors |\n|---|---|\n");
    let mut statuses: Vec<u16> = ErrorName::all().map(ErrorName::status).collect();
    statuses.sort_unstable();
    statuses.dedup();
    for status in statuses {
        let names = ErrorName::all().filter(|error| error.status() == status);
        let names: Vec<String> = names.map(|error| format!("`{}`", error.name())).collect();
        let _ = writeln!(out, "| {status} | {} |", names.join(" "));
    }
    out.push('\n');
}

fn reserved(out: &mut String) {
    out.push_str("## Names kept free\n\nNames of the system behind this one, whose events have no meaning here. Nothing else may have them:\n\n");
    let names: Vec<String> = RESERVED.iter().map(|name| format!("`{name}`")).collect();
    let _ = writeln!(out, "{}.", names.join(" "));
}
