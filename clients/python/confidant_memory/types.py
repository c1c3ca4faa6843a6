"""What is sent and received, as values. Their `repr` shows nothing that somebody said, and nobody's name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

Audience = Literal["private", "room"]
Decision = Literal["approve", "deny"]
MemoryState = Literal["kept", "off", "unavailable", "forgotten"]
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RoomLine:
    """Something that was said in the room just now. It goes into one prompt and is never stored."""

    sender: str = field(repr=False)
    content: str = field(repr=False)
    #: Unix time in seconds, or a moment with a time zone.
    timestamp: float | datetime = 0
    is_bot: bool = False
    event_id: str | None = field(default=None, repr=False)
    #: The event that this one edits, or with `redacted` deletes.
    replaces: str | None = field(default=None, repr=False)
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class PastChat:
    """A conversation that may be similar. Never stored."""

    summary: str = field(repr=False)
    title: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Progress:
    """What the server is doing."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the answer. The pieces add up to the answer's text."""

    text: str = field(repr=False)
    seq: int


@dataclass(frozen=True, slots=True)
class SettingsRequest:
    """Names of settings that would help; the next turn can send them."""

    names: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Enriched:
    """What was made of an answer: suggestions, summary, tags."""

    raw: Json = field(repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer."""

    request_id: str = field(repr=False)
    text: str = field(repr=False)
    #: What memory did: `kept`, or why not.
    memory: MemoryState
    #: The model that answered.
    model: str | None
    #: Messages of the history that the model saw.
    recalled: int
    #: Whether this is the recorded answer to an earlier request with the same id.
    replayed: bool
    #: Approvals in this session that still wait.
    pending_approvals: int
    #: Everything else that the server says of the answer; /openapi.json describes it.
    raw: Json = field(repr=False)


@dataclass(frozen=True, slots=True)
class Approval:
    """A tool call that somebody must approve. Its turn waits until then."""

    approval_id: str
    #: The turn that waits.
    request_id: str = field(repr=False)
    question: str = field(repr=False)
    tool: str
    arguments: Any = field(repr=False)
    #: What a decision is bound to: exactly this call.
    hash: str = field(repr=False)
    #: For channels without buttons: `approve CODE` or `deny CODE` as the next message.
    code: str = field(repr=False)
    expires_at: datetime
    audience: Audience


@dataclass(frozen=True, slots=True)
class Question:
    """A question of another program's worker (`bus.mode = "compat"`). The next message answers it."""

    request_id: str = field(repr=False)
    text: str = field(repr=False)
    options: tuple[str, ...] = field(repr=False)


Ending = Answer | Approval | Question
TurnEvent = Progress | Delta | SettingsRequest | Enriched | Answer | Approval | Question


@dataclass(frozen=True, slots=True)
class Message:
    """One message of an export."""

    kind: Literal["human", "ai", "tool"]
    text: str = field(repr=False)
    at: datetime
    audience: Audience
    request_id: str = field(repr=False)
    #: Why the message has no answer, if its turn ended without one.
    unanswered: str | None
    raw: Json = field(repr=False)


@dataclass(frozen=True, slots=True)
class SessionExport:
    """A session's content, decrypted and portable."""

    session_id: str = field(repr=False)
    exported_at: datetime
    messages: tuple[Message, ...] = field(repr=False)
    raw: Json = field(repr=False)


@dataclass(frozen=True, slots=True)
class PersonExport:
    """Everything that is kept about a person."""

    user_id: str = field(repr=False)
    exported_at: datetime
    sessions: tuple[SessionExport, ...] = field(repr=False)
    #: Why some sessions could not be opened.
    unreadable: tuple[str, ...]
    raw: Json = field(repr=False)


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of an erasure. `confidant audit verify --receipt FILE` checks what `save` writes."""

    erased: Literal["session", "person"]
    at: datetime
    sessions: int
    records: int
    tokens: int
    derived: Mapping[str, int]
    raw: Json = field(repr=False)

    def save(self, path: str | Path) -> None:
        """Writes the receipt as the server signed it."""
        Path(path).write_text(json.dumps(dict(self.raw)) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class WouldErase:
    """What an erasure would erase. Nothing was erased."""

    erased: Literal["session", "person"]
    sessions: int
    #: None if they cannot be read.
    messages: int | None
    derived: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Card:
    """What is kept of a session of work: redacted, a few lines."""

    title: str = field(repr=False)
    summary_bullets: tuple[str, ...] = field(repr=False)
    decisions: tuple[str, ...] = field(repr=False)
    todos: tuple[str, ...] = field(repr=False)
    entities: tuple[str, ...] = field(repr=False)
    keywords: tuple[str, ...] = field(repr=False)
    notable_quotes: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Stored:
    """A memory that is kept."""

    session_id: str = field(repr=False)
    uri: str
    indexed: bool
    #: Whether exactly this was kept before, so that nothing was done.
    already_stored: bool
    card: Card
    #: How often each rule of redaction fired.
    redactions: Mapping[str, int]
    raw: Json = field(repr=False)


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be kept, byte for byte. Nothing was kept."""

    sha256: str
    size: int
    payload: str = field(repr=False)
    card: Card
    redactions: Mapping[str, int]
    raw: Json = field(repr=False)


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that was found."""

    session_id: str = field(repr=False)
    uri: str
    title: str = field(repr=False)
    snippet: str = field(repr=False)
    tags: tuple[str, ...] = field(repr=False)
    created_at: str
    #: Lower is better.
    score: float


Hits = list[Hit]


@dataclass(frozen=True, slots=True)
class Memory:
    """An opened memory."""

    uri: str
    session_id: str = field(repr=False)
    timestamp: str | None
    card: Card
    tags: tuple[str, ...] = field(repr=False)
    #: The redacted transcript, if it was kept.
    transcript: Json | None = field(repr=False)
    raw: Json = field(repr=False)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was forgotten, or would be."""

    forgotten: int
    dry_run: bool
    #: Copies in a store that cannot delete. Without their keys nobody can open them.
    permanent: int
    #: Copies that will be deleted when their store answers again.
    pending: int
    uris: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What storing costs. None where no exchange rate is set."""

    size: int
    monthly_storage_usd: float
    request_usd: float | None
    total_usd: float | None
    assumptions: Json


def moment(milliseconds: int) -> datetime:
    """A time of the server."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
