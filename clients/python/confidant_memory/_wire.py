"""How requests and replies look on the wire: what the blocking and the asynchronous client share. Nothing here does I/O."""

from __future__ import annotations

import functools
import json
import random
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NoReturn, ParamSpec, TypeVar
from urllib.parse import quote, urlsplit

import httpx2

from .errors import ConfidantError, InvalidRequest, TimedOut, UnexpectedReply, Unreachable, kind_of
from .types import (
    Answer,
    Approval,
    Audience,
    Card,
    Decision,
    Delta,
    Ending,
    Enriched,
    Estimate,
    Forgotten,
    Hit,
    Hits,
    Json,
    Memory,
    Message,
    PastChat,
    PersonExport,
    Preview,
    Progress,
    Question,
    Receipt,
    RoomLine,
    SessionExport,
    SettingsRequest,
    Stored,
    TurnEvent,
    WouldErase,
    moment,
)

VERSION = "0.1.0"
MCP_REVISION = "2026-07-28"
P = ParamSpec("P")
T = TypeVar("T")
EVENTS = {"Accept": "text/event-stream"}


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Nobody sees it printed: paths name people."""

    method: str
    path: str = field(repr=False)
    body: Json | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: Whether doing it twice is the same as doing it once.
    idempotent: bool = False
    #: The turn that it is about.
    request_id: str | None = field(default=None, repr=False)

    def pause(self, failure: ConfidantError, unsent: bool, tries: int, retries: int) -> float | None:
        """Seconds to wait before another try; None if there must not be one."""
        if tries >= retries:
            return None
        # What the server refused before it did anything, and what it never got, may be sent again in any case.
        refused = failure.status == 429 or failure.code == "starting"
        passing = refused or isinstance(failure, Unreachable | TimedOut) or failure.status in (502, 503, 504) or failure.retry_after is not None
        passing = passing or failure.code in ("stopping", "no_worker", "bus_unreachable", "busy", "timeout")
        # A model that failed has been answered for.
        if not passing or failure.code == "model_failed" or not (self.idempotent or refused or unsent):
            return None
        if failure.retry_after is not None and failure.retry_after > LONGEST_PAUSE:
            return None
        backoff: float = min(0.25 * 2**tries, 8) * (0.5 + random.random() / 2)
        return max(backoff, failure.retry_after or 0)


#: Who is told to wait for longer decides for themselves.
LONGEST_PAUSE = 60


def origin(url: str) -> str:
    """The server's address, if it is one."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        invalid("the server's address is not an http or https URL", "give it like http://127.0.0.1:7367")
    if parts.username is not None or parts.password is not None:
        invalid("the server's address has a user name or password in it", "give the token as `token`")
    return url.rstrip("/")


def bearer(token: str) -> str:
    """The token, if it can be sent."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable():
        invalid("the token is empty or has characters that no token has", "give what `confidant token new` printed")
    return token


def invalid(message: str, hint: str) -> NoReturn:
    raise InvalidRequest(message, code="invalid_request", hint=hint)


def approval_path(approval_id: str) -> str:
    return f"/api/v1/approvals/{quote(approval_id, safe='')}"


def session_path(session_id: str, *rest: str) -> str:
    return "/".join(["/api/v1/session", *(quote(part, safe="") for part in (session_id, *rest))])


def person_path(user_id: str, *rest: str) -> str:
    return "/".join(["/api/v1/person", *(quote(part, safe="") for part in (user_id, *rest))])


def turn(
    session_id: str,
    query: str,
    *,
    request_id: str | None,
    room: Iterable[RoomLine] | None,
    audience: Audience | None,
    focus: str | None,
    profile: Json | None,
    past_chats: Iterable[PastChat],
    settings: Mapping[str, str] | None,
    available_settings: Iterable[str],
    title: str | None,
    enrich: bool,
) -> Request:
    """A turn. Its id makes it safe to send again."""
    name = request_id or f"py-{uuid.uuid4().hex}"
    body: dict[str, Any] = {"query": query, "request_id": name}
    if room is not None:
        body["room_context"] = [_line(line) for line in room]
    chats = [{"title": chat.title, "summary": chat.summary} for chat in past_chats]
    more = {
        "audience": audience,
        "focus": focus,
        "profile": None if profile is None else dict(profile),
        "past_chats": chats or None,
        "settings": None if settings is None else dict(settings),
        "available_settings": list(available_settings) or None,
        "current_chat_title": title,
        "enrich": enrich or None,
    }
    body |= {key: value for key, value in more.items() if value is not None}
    return Request("POST", session_path(session_id, "turns"), body, EVENTS, idempotent=True, request_id=name)


def _line(line: RoomLine) -> dict[str, Any]:
    at = line.timestamp
    said = {
        "sender": line.sender,
        "content": line.content,
        "timestamp": int(at.timestamp() if isinstance(at, datetime) else at),
        "is_bot": line.is_bot,
        "redacted": line.redacted,
        "event_id": line.event_id,
        "replaces": line.replaces,
    }
    return {key: value for key, value in said.items() if value is not None}


def decision(session_id: str | None, approval: Approval | str, what: Decision, user_id: str | None) -> Request:
    """A decision: about exactly the call that was shown, if the approval is given and not only its id."""
    body: dict[str, Any] = {"approval_id": approval if isinstance(approval, str) else approval.approval_id, "decision": what}
    if isinstance(approval, Approval):
        body["hash"] = approval.hash
    if user_id is not None:
        body["user_id"] = user_id
    path = "/api/v1/decisions" if session_id is None else session_path(session_id, "decisions")
    waits = approval.request_id if isinstance(approval, Approval) else None
    # Only the first decision counts, so repeating one is safe.
    return Request("POST", path, body, EVENTS, idempotent=True, request_id=waits)


def tool(name: str, arguments: Json, user_id: str | None, *, idempotent: bool) -> Request:
    """A call of one of the memory's tools, in the revision of MCP that needs no session."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MCP_REVISION,
        "io.modelcontextprotocol/clientInfo": {"name": "confidant-memory", "version": VERSION},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": name, "arguments": {key: value for key, value in arguments.items() if value is not None}, "_meta": meta}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MCP_REVISION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    }
    if user_id is not None:
        if not user_id.isascii() or not user_id.isprintable():
            invalid("the person's id cannot be sent in a header", "memories are kept under ids in ASCII, without line breaks")
        headers["X-Confidant-User"] = user_id
    return Request("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, headers, idempotent=idempotent)


def failed(error: httpx2.HTTPError, request: Request, timeout: float) -> ConfidantError:
    """Why a request got no reply."""
    again = "the same request_id gets its answer" if request.request_id else "check that it runs, and the address"
    if isinstance(error, httpx2.TimeoutException):
        hint = f"raise `timeout`, or ask again: {again}"
        return TimedOut(f"the server was silent for {timeout:g} s", code="timed_out", hint=hint, request_id=request.request_id)
    hint = again if request.request_id else "check that `confidant serve` runs, and the address"
    return Unreachable(f"the server cannot be reached ({type(error).__name__})", code="unreachable", hint=hint, request_id=request.request_id)


def is_unsent(error: httpx2.HTTPError) -> bool:
    """Whether the server cannot have got the request."""
    return isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)


def cut_off(request: Request) -> ConfidantError:
    """A stream ended without an ending."""
    message, hint = "the connection was lost before the answer was whole", "ask again; the same request_id gets the answer"
    return Unreachable(message, code="unreachable", hint=hint, request_id=request.request_id)


def refused(status: int, retry_after: str | None, body: bytes, request_id: str | None = None) -> ConfidantError:
    """The error of a reply that is not a success: in our own form, or in JSON-RPC's."""
    detail: Any = None
    try:
        detail = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        pass
    wait = float(retry_after) if retry_after is not None and retry_after.isdecimal() else None
    if not isinstance(detail, dict) or not isinstance(detail.get("message"), str):
        message = f"the server answered with status {status} and without a reason"
        hint = "check the address, and what stands between: this is not how Confidant answers"
        return UnexpectedReply(message, code="unexpected_reply", hint=hint, status=status, retry_after=wait, request_id=request_id)
    data = detail["data"] if isinstance(detail.get("data"), dict) else detail
    message, _, hint = detail["message"].partition("; hint: ")
    code = str(data.get("code", "error"))
    return kind_of(code, status)(
        message,
        code=code,
        hint=str(data.get("hint") or hint or "see the server's log"),
        status=status,
        request_id=detail.get("request_id") or request_id,
        retry_after=wait,
    )


def object_of(body: bytes) -> dict[str, Any]:
    """The JSON object that a reply is."""
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        unexpected("the reply is not a JSON object")
    return value


def unexpected(what: str) -> NoReturn:
    hint = "check the address; if it is right, install the client of the server's version"
    raise UnexpectedReply(what, code="unexpected_reply", hint=hint)


def reader(read: Callable[P, T]) -> Callable[P, T]:
    """Says so if a reply has another form than this version knows."""

    @functools.wraps(read)
    def checked(*given: P.args, **named: P.kwargs) -> T:
        try:
            return read(*given, **named)
        except (KeyError, TypeError, ValueError, AttributeError):
            unexpected("the reply has another form than this client knows")

    return checked


class EventParser:
    """Takes server-sent events apart. Bytes may be cut anywhere, also inside of a character."""

    def __init__(self) -> None:
        self._rest = b""
        self._name, self._data = "message", list[str]()

    def feed(self, piece: bytes) -> Iterator[tuple[str, str]]:
        """The events that are whole with this piece."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for raw in lines:
            line = raw.removesuffix(b"\r").decode(errors="replace")
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "event":
                self._name = value
            elif name == "data":
                self._data.append(value)
            elif not line:
                event, data = self._name, self._data
                self._name, self._data = "message", []
                if data:
                    yield event, "\n".join(data)


@reader
def event(name: str, data: str, asked: Request) -> TurnEvent | ConfidantError | None:
    """What an event says; None if it is of a kind that this version does not know."""
    body = json.loads(data)
    match name:
        case "progress":
            return Progress(body["content"])
        case "delta":
            return Delta(body["content"], body["metadata"]["seq"])
        case "settings_request":
            return SettingsRequest(tuple(body["metadata"]["settings"]))
        case "enriched":
            return Enriched(body["metadata"])
        case "final_response" | "hitl_request":
            return ending(body)
        case "error":
            told = body["metadata"]
            kind = kind_of(told["code"], None)
            return kind(body["content"], code=told["code"], hint=told["hint"], request_id=body.get("request_id") or asked.request_id)
    return None


@reader
def ending(body: Json) -> Ending:
    """How a turn ended, for now."""
    told, request_id = body["metadata"], body["request_id"]
    if body["message_type"] == "final_response":
        return Answer(
            request_id=request_id,
            text=body["content"],
            memory=told["memory"],
            model=told.get("model"),
            recalled=told.get("recalled", 0),
            replayed=told.get("replayed", False),
            pending_approvals=told.get("pending_approvals", 0),
            raw=told,
        )
    if "approval_id" in told:
        return approval(told)
    return Question(request_id, body["content"], tuple(told.get("options", ())))


@reader
def approval(told: Json) -> Approval:
    return Approval(
        approval_id=told["approval_id"],
        request_id=told["request_id"],
        question=told["question"],
        tool=told["tool"],
        arguments=told["arguments"],
        hash=told["hash"],
        code=told["code"],
        expires_at=moment(told["expires_at"]),
        audience=told["audience"],
    )


@reader
def approvals(body: Json) -> list[Approval]:
    return [approval(one) for one in body["approvals"]]


@reader
def session_export(body: Json) -> SessionExport:
    messages = tuple(
        Message(one["type"], one["content"], moment(one["timestamp"]), one["audience"], one["request_id"], one.get("unanswered"), one)
        for one in body["messages"]
    )
    return SessionExport(body["session_id"], moment(body["exported_at"]), messages, body)


@reader
def person_export(body: Json) -> PersonExport:
    sessions = tuple(session_export(one) for one in body["sessions"])
    return PersonExport(body["user_id"], moment(body["exported_at"]), sessions, tuple(body.get("unreadable", ())), body)


def erasure(body: Json) -> Receipt | WouldErase:
    if body.get("dry_run"):
        return WouldErase(body["erased"], body["sessions"], body.get("messages"), body.get("derived", {}))
    counts = (body["sessions"], body["records"], body["tokens"], body.get("derived", {}))
    return Receipt(body["erased"], moment(body["at"]), *counts, body)


@reader
def receipt(body: Json) -> Receipt:
    done = erasure(body)
    if not isinstance(done, Receipt):
        unexpected("the server did not erase")
    return done


@reader
def would_erase(body: Json) -> WouldErase:
    looked = erasure(body)
    if not isinstance(looked, WouldErase):
        unexpected("the server erased instead of looking")
    return looked


@reader
def tool_result(body: bytes, media: str) -> dict[str, Any]:
    """What a tool gives back, as JSON or in a stream of events; raises what it refuses with."""
    message: dict[str, Any] | None = None
    if media.startswith("text/event-stream"):
        for _, data in EventParser().feed(body + b"\n\n"):
            one = object_of(data.encode())
            # Progress is told before.
            if "result" in one or "error" in one:
                message = one
    else:
        message = object_of(body)
    if message is None:
        unexpected("the memory's reply has no result")
    if "error" in message:
        raise refused(400, None, json.dumps(message).encode())
    result = message.get("result", {}).get("structuredContent")
    if not isinstance(result, dict):
        unexpected("the memory's reply has no structured result")
    if result.get("ok") is not True:
        error = result["error"]
        places = tuple((place["rule"], place["path"]) for place in error.get("places", ()))
        raise kind_of(error["code"], 400)(error["message"], code=error["code"], hint=error["hint"], places=places)
    return result


def card(told: Json) -> Card:
    lists = ("summary_bullets", "decisions", "todos", "entities", "keywords", "notable_quotes")
    return Card(told["title"], *(tuple(told[name]) for name in lists))


def _fired(told: Json) -> dict[str, int]:
    return {rule["rule"]: rule["count"] for rule in told["rules_fired"]}


@reader
def stored(told: Json) -> Stored:
    return Stored(
        session_id=told["session_id"],
        uri=told["cascade_uri"],
        indexed=told["indexed"],
        already_stored=told.get("already_stored", False),
        card=card(told["memory_card"]),
        redactions=_fired(told["redaction"]),
        raw=told,
    )


@reader
def preview(told: Json) -> Preview:
    shown = told["preview"]
    kept = card(told["memory_card"])
    return Preview(shown["sha256"], shown["bytes"], shown["payload_json"], kept, _fired(told["redaction"]), told)


@reader
def hits(told: Json) -> Hits:
    return [
        Hit(one["cass_session_id"], one["cascade_uri"], one["title"], one["snippet"], tuple(one["tags"]), one["created_at"], one["score"])
        for one in told["hits"]
    ]


@reader
def memory(told: Json) -> Memory:
    kept = told["artifact"]
    return Memory(
        uri=told["cascade_uri"],
        session_id=kept["session_id"],
        timestamp=kept.get("timestamp"),
        card=card(kept["memory_card"]),
        tags=tuple(kept["tags"]),
        transcript=kept.get("raw_session"),
        raw=told,
    )


@reader
def forgotten(told: Json) -> Forgotten:
    counts = (told.get("permanent", 0), told.get("pending", 0))
    return Forgotten(told["forgotten"], told["dry_run"], *counts, tuple(told["cascade_uris"]))


@reader
def estimate(told: Json) -> Estimate:
    return Estimate(
        told["bytes"], told["monthly_storage_usd"], told["estimated_request_usd"], told["total_estimated_usd"], told.get("assumptions", {})
    )


def page(tags: Sequence[str], limit: int | None, offset: int, start: str | None, end: str | None) -> dict[str, Any]:
    """Which memories, of those that fit."""
    span = {key: value for key, value in (("start", start), ("end", end)) if value is not None}
    return {"tags": list(tags) or None, "limit": limit, "offset": offset or None, "time_range": span or None}


def to_store(
    session_id: str, session: Json | None, tags: Sequence[str], metadata: Json | None, expect_sha256: str | None, *, dry_run: bool
) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "session": None if session is None else dict(session),
        "tags": list(tags) or None,
        "metadata": None if metadata is None else dict(metadata),
        "expect_sha256": expect_sha256,
        "dry_run": dry_run or None,
    }
