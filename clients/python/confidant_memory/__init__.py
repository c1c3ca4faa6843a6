"""Confidant for Python: turns with streaming, approvals, export, erasure, memory and redaction.

    from confidant_memory import Answer, Confidant

    with Confidant("http://127.0.0.1:7367", token=token) as confidant:
        answer = confidant.session("http:team:main:alice").ask("Hello, I'm Alice")

`AsyncConfidant` is the same with `await`. `redact` needs no server. `confidant_memory.langchain` has parts for LangChain.
"""

from ._wire import VERSION as __version__
from .aio import AsyncConfidant, AsyncMemories, AsyncPerson, AsyncSession, AsyncTurnStream
from .client import Confidant, Memories, Person, Session, TurnStream
from .errors import (
    Blocked,
    Cancelled,
    ConfidantError,
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    ProgramFailed,
    RateLimited,
    ServerFailed,
    TimedOut,
    Unauthenticated,
    Unavailable,
    UnexpectedReply,
    Unreachable,
)
from .redaction import Finding, Redacted, RedactingFilter, Redactor, redact
from .types import (
    Answer,
    Approval,
    Card,
    Delta,
    Ending,
    Enriched,
    Estimate,
    Forgotten,
    Hit,
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
)

__all__ = [name for name in dir() if not name.startswith("_") or name == "__version__"]
