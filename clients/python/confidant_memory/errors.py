"""What can go wrong, with what happened and what to do next.

No error repeats what was said: the server's messages quote nothing, and neither do these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ConfidantError(Exception):
    """Why there is no answer. `code` is a word for programs, `message` says what happened, `hint` what to do."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        hint: str,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        places: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint
        #: The HTTP status, if the server refused the request with one.
        self.status = status
        #: The turn whose answer can still be fetched with this id.
        self.request_id = request_id
        #: Seconds after which the server suggests to try again.
        self.retry_after = retry_after
        #: Rule and place of each secret that blocks storing; never the secret.
        self.places = places

    def __str__(self) -> str:
        return f"{self.message}; hint: {self.hint}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(code={self.code!r}, status={self.status!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (type(self), self.message, {**self.__dict__}))


def _again(kind: type[ConfidantError], message: str, state: Mapping[str, Any]) -> ConfidantError:
    error = kind(message, code=state["code"], hint=state["hint"])
    error.__dict__.update(state)
    return error


class Unreachable(ConfidantError):
    """There is no connection, or it was lost before the answer was whole."""


class TimedOut(ConfidantError):
    """The server was silent for longer than `timeout`."""


class UnexpectedReply(ConfidantError):
    """Something answered that is not Confidant, or another version of it."""


class InvalidRequest(ConfidantError):
    """The request is not acceptable as it is."""


class Unauthenticated(ConfidantError):
    """There is no token, or an unknown one."""


class Forbidden(ConfidantError):
    """The token may not do this."""


class NotFound(ConfidantError):
    """There is nothing of that name."""


class Conflict(ConfidantError):
    """It contradicts something that was done before: `code` says what."""


class Cancelled(Conflict):
    """The turn was cancelled."""


class RateLimited(ConfidantError):
    """Too many requests. The client has waited and tried again before it raises this."""


class Unavailable(ConfidantError):
    """The server cannot do it now: it starts, stops, or has no worker or store."""


class ServerFailed(ConfidantError):
    """The server or the model failed."""


class Blocked(InvalidRequest):
    """A secret blocks storing. `places` has rule and place of each."""


class ProgramFailed(ConfidantError):
    """The program `confidant` is missing, or ended, or did not answer."""


_BY_STATUS: dict[int, type[ConfidantError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: RateLimited,
    503: Unavailable,
}

# An error inside of a stream or of a tool's result has a code and no status.
_BY_CODE: dict[str, type[ConfidantError]] = {
    "cancelled": Cancelled,
    "not_your_approval": Forbidden,
    "forbidden": Forbidden,
    "not_allowed": Forbidden,
    "internal": ServerFailed,
    "tampered": ServerFailed,
    "not_found": NotFound,
    "no_such_approval": NotFound,
    "rate_limited": RateLimited,
    **dict.fromkeys(("invalid", "invalid_request", "invalid_session_id"), InvalidRequest),
    **dict.fromkeys(("blocked", "unclean"), Blocked),
    **dict.fromkeys(("bus_unreachable", "no_worker", "starting", "stopping", "storage_failed", "timeout", "unavailable"), Unavailable),
    **dict.fromkeys(
        ("already_decided", "answer_gone", "approval_expired", "awaits_approval", "busy", "changed", "erased", "hash_mismatch", "interrupted", "request_id_reused"),
        Conflict,
    ),
}


def kind_of(code: str, status: int | None) -> type[ConfidantError]:
    """The class of an error that the server names."""
    if (kind := _BY_CODE.get(code)) is not None:
        return kind
    if status is None or status >= 500:
        return _BY_STATUS.get(status or 500, ServerFailed)
    return _BY_STATUS.get(status, InvalidRequest)
