"""The blocking client."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2

from . import _wire
from ._quiet import unlogged
from ._wire import Request
from .errors import ConfidantError
from .types import (
    Answer,
    Approval,
    Audience,
    Decision,
    Delta,
    Ending,
    Enriched,
    Estimate,
    Forgotten,
    Hits,
    Json,
    Memory,
    PastChat,
    PersonExport,
    Preview,
    Progress,
    Question,
    Receipt,
    RoomLine,
    SessionExport,
    Stored,
    TurnEvent,
    WouldErase,
)


class Confidant:
    """A Confidant server. Threads may share one; `close` it at the end, or use it with `with`.

    `timeout` is how long the server may be silent, in seconds: while a turn runs it gives a sign of life every 15 seconds, so this
    does not limit how long an answer takes. `retries` is how often something is tried again that may safely be done twice.
    """

    def __init__(
        self, url: str = "http://127.0.0.1:7367", *, token: str, timeout: float = 60, retries: int = 4, http: httpx2.Client | None = None
    ) -> None:
        self._url, self._timeout, self._retries = _wire.origin(url), timeout, retries
        self._headers = {"Authorization": f"Bearer {_wire.bearer(token)}"}
        self._own = http is None
        self._http = http or httpx2.Client()

    @classmethod
    def from_token_file(cls, url: str, path: str | Path, **options: Any) -> Self:
        """With a token that a file has, such as `confidant-data/admin.token`."""
        return cls(url, token=Path(path).read_text(encoding="utf-8"), **options)

    def session(self, session_id: str) -> Session:
        """One conversation of one person, such as `http:team:main:alice`."""
        return Session(self, session_id)

    def person(self, user_id: str) -> Person:
        """A person, with everything that is kept about them."""
        return Person(self, user_id)

    def memory(self, user_id: str | None = None) -> Memories:
        """A person's memories of earlier sessions of work. A `user:` token has only its own, and needs no id."""
        return Memories(self, user_id)

    def approval(self, approval_id: str) -> Approval:
        """An approval that this token's bearer may decide, in anybody's conversation."""
        return _wire.approval(self._ask(Request("GET", _wire.approval_path(approval_id), idempotent=True)))

    def decide(self, approval: Approval | str, decision: Decision, *, user_id: str | None = None) -> Ending:
        """Decides in anybody's conversation. Who may not read it hears only that the decision counts."""
        return TurnStream(self, _wire.decision(None, approval, decision, user_id)).ending()

    def close(self) -> None:
        """Closes the connections."""
        if self._own:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Confidant({self._url!r})"

    def _ask(self, request: Request) -> dict[str, Any]:
        """The JSON that a request is answered with."""
        return self._reply(request, lambda response: _wire.object_of(response.content))

    def _call(self, request: Request) -> dict[str, Any]:
        """What a tool of the memory gives back."""
        return self._reply(request, lambda response: _wire.tool_result(response.content, response.headers.get("content-type", "")))

    def _reply(self, request: Request, read: Callable[[httpx2.Response], dict[str, Any]]) -> dict[str, Any]:
        for tries in count():
            unsent = False
            try:
                with unlogged():
                    response = self._http.send(self._built(request))
            except httpx2.HTTPError as error:
                failure, unsent = _wire.failed(error, request, self._timeout), _wire.is_unsent(error)
            else:
                if response.is_success:
                    return read(response)
                failure = _wire.refused(response.status_code, response.headers.get("retry-after"), response.content, request.request_id)
            self._wait(request, failure, unsent, tries)
        raise AssertionError("count ends")

    def _built(self, request: Request) -> httpx2.Request:
        headers = {**self._headers, **request.headers}
        url = self._url + request.path
        return self._http.build_request(
            request.method, url, json=request.body, headers=headers, params=dict(request.params) or None, timeout=self._timeout
        )

    def _wait(self, request: Request, failure: ConfidantError, unsent: bool, tries: int) -> None:
        """Waits before the next try; raises if there is none."""
        pause = request.pause(failure, unsent, tries, self._retries)
        if pause is None:
            raise failure
        time.sleep(pause)


class TurnStream:
    """A turn as it happens. Iterate over its events; the last is an `Answer`, an `Approval` or a `Question`.

    If the connection is lost, the stream asks again with the same `request_id`: the turn is not run twice. From then on there are
    no more pieces, and the answer comes whole. Closing the stream does not stop the turn; `cancel` does.
    """

    def __init__(self, client: Confidant, request: Request, cancel: Callable[[str], bool] | None = None) -> None:
        self._client, self._request, self._cancel = client, request, cancel
        self._events = self._run()
        self._ending: Ending | None = None

    @property
    def request_id(self) -> str | None:
        """The turn's id."""
        return self._request.request_id

    def __iter__(self) -> Iterator[TurnEvent]:
        return self

    def __next__(self) -> TurnEvent:
        event = next(self._events)
        if isinstance(event, Answer | Approval | Question):
            self._ending = event
        return event

    def text(self) -> Iterator[str]:
        """Only the words of the answer, as they come."""
        said = False
        for event in self:
            if isinstance(event, Delta):
                said = True
                yield event.text
            elif isinstance(event, Answer) and not said:
                yield event.text

    def ending(self) -> Ending:
        """How the turn ended; waits for it."""
        for _ in self:
            pass
        if self._ending is None:
            raise _wire.cut_off(self._request)
        return self._ending

    def cancel(self) -> bool:
        """Ends the turn. Whether it was still running or waiting."""
        if self._cancel is None or self.request_id is None:
            return False
        return self._cancel(self.request_id)

    def close(self) -> None:
        """Stops listening. The turn goes on."""
        self._events.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"TurnStream(ended={self._ending is not None})"

    def _run(self) -> Generator[TurnEvent]:
        request, heard, answered = self._request, False, False
        for tries in count():
            lost, unsent = heard, False
            try:
                with unlogged():
                    response = self._client._http.send(self._client._built(request), stream=True)
                try:
                    if not response.is_success:
                        failure = _wire.refused(response.status_code, response.headers.get("retry-after"), response.read(), request.request_id)
                    else:
                        failure = _wire.cut_off(request)
                        for event in _parsed(response, request):
                            if isinstance(event, ConfidantError):
                                failure = event
                                break
                            answered = answered or isinstance(event, Answer)
                            if not (lost and isinstance(event, Delta | Progress)):
                                heard = True
                                yield event
                            if isinstance(event, Approval | Question | Enriched) or (isinstance(event, Answer) and not _enriches(request)):
                                return
                finally:
                    response.close()
            except httpx2.HTTPError as error:
                failure, unsent = _wire.failed(error, request, self._client._timeout), _wire.is_unsent(error)
            # What is made of an answer may be missing; the answer is whole.
            if answered:
                return
            self._client._wait(request, failure, unsent, tries)


def _enriches(request: Request) -> bool:
    return bool(request.body and request.body.get("enrich"))


def _parsed(response: httpx2.Response, request: Request) -> Iterator[TurnEvent | ConfidantError]:
    parser = _wire.EventParser()
    for piece in response.iter_bytes():
        for name, data in parser.feed(piece):
            event = _wire.event(name, data, request)
            if event is not None:
                yield event


class Session:
    """One conversation of one person."""

    def __init__(self, client: Confidant, session_id: str) -> None:
        self._client, self.session_id = client, session_id

    def __repr__(self) -> str:
        return "Session()"

    def stream(
        self,
        query: str,
        *,
        request_id: str | None = None,
        room: Iterable[RoomLine] | None = None,
        audience: Audience | None = None,
        focus: str | None = None,
        profile: Json | None = None,
        past_chats: Iterable[PastChat] = (),
        settings: Mapping[str, str] | None = None,
        available_settings: Iterable[str] = (),
        title: str | None = None,
        enrich: bool = False,
    ) -> TurnStream:
        """Says something, and gives the answer as it is made. The same `request_id` gets the recorded answer, never a second one."""
        request = _wire.turn(
            self.session_id,
            query,
            request_id=request_id,
            room=room,
            audience=audience,
            focus=focus,
            profile=profile,
            past_chats=past_chats,
            settings=settings,
            available_settings=available_settings,
            title=title,
            enrich=enrich,
        )
        return TurnStream(self._client, request, self.cancel)

    def ask(
        self,
        query: str,
        *,
        request_id: str | None = None,
        room: Iterable[RoomLine] | None = None,
        audience: Audience | None = None,
        focus: str | None = None,
        profile: Json | None = None,
        past_chats: Iterable[PastChat] = (),
        settings: Mapping[str, str] | None = None,
        available_settings: Iterable[str] = (),
        title: str | None = None,
    ) -> Ending:
        """Says something, and gives the answer, or the approval that it waits for."""
        with self.stream(
            query,
            request_id=request_id,
            room=room,
            audience=audience,
            focus=focus,
            profile=profile,
            past_chats=past_chats,
            settings=settings,
            available_settings=available_settings,
            title=title,
        ) as events:
            return events.ending()

    def cancel(self, request_id: str) -> bool:
        """Ends a turn. Whether it was still running or waiting."""
        path = _wire.session_path(self.session_id, "turns", request_id)
        return bool(self._client._ask(Request("DELETE", path, idempotent=True))["cancelled"])

    def approvals(self) -> list[Approval]:
        """Tool calls that wait for somebody's approval, oldest first."""
        path = _wire.session_path(self.session_id, "approvals")
        return _wire.approvals(self._client._ask(Request("GET", path, idempotent=True)))

    def decide(self, approval: Approval | str, decision: Decision, *, user_id: str | None = None) -> Ending:
        """Approves or denies; gives the answer of the turn that waited, or the next approval."""
        with self.stream_decision(approval, decision, user_id=user_id) as events:
            return events.ending()

    def stream_decision(self, approval: Approval | str, decision: Decision, *, user_id: str | None = None) -> TurnStream:
        """Approves or denies; gives the rest of the turn as it happens."""
        return TurnStream(self._client, _wire.decision(self.session_id, approval, decision, user_id), self.cancel)

    def about(self) -> Json:
        """Title, summary, tags and suggestions, as far as they are known."""
        return self._client._ask(Request("GET", _wire.session_path(self.session_id, "about"), idempotent=True))

    def export(self) -> SessionExport:
        """Everything that is kept of it."""
        path = _wire.session_path(self.session_id, "export")
        return _wire.session_export(self._client._ask(Request("GET", path, idempotent=True)))

    def erase(self) -> Receipt:
        """Destroys its key and its log. Not tried again if the reply is lost: a second receipt would say that nothing was there."""
        return _wire.receipt(self._client._ask(Request("DELETE", _wire.session_path(self.session_id))))

    def would_erase(self) -> WouldErase:
        """What `erase` would erase."""
        request = Request("DELETE", _wire.session_path(self.session_id), params={"dry_run": "true"}, idempotent=True)
        return _wire.would_erase(self._client._ask(request))


class Person:
    """A person, with everything that is kept about them."""

    def __init__(self, client: Confidant, user_id: str) -> None:
        self._client, self.user_id = client, user_id

    def __repr__(self) -> str:
        return "Person()"

    def export(self) -> PersonExport:
        """Everything that is kept about them."""
        path = _wire.person_path(self.user_id, "export")
        return _wire.person_export(self._client._ask(Request("GET", path, idempotent=True)))

    def erase(self) -> Receipt:
        """Erases them everywhere. Not tried again if the reply is lost: a second receipt would say that nothing was there."""
        return _wire.receipt(self._client._ask(Request("DELETE", _wire.person_path(self.user_id))))

    def would_erase(self) -> WouldErase:
        """What `erase` would erase."""
        request = Request("DELETE", _wire.person_path(self.user_id), params={"dry_run": "true"}, idempotent=True)
        return _wire.would_erase(self._client._ask(request))


class Memories:
    """A person's memories of earlier sessions of work: redacted cards, and transcripts only if somebody asked twice."""

    def __init__(self, client: Confidant, user_id: str | None) -> None:
        self._client, self.user_id = client, user_id

    def __repr__(self) -> str:
        return "Memories()"

    def store(
        self,
        session_id: str,
        session: Json,
        *,
        tags: Sequence[str] = (),
        metadata: Json | None = None,
        expect_sha256: str | None = None,
    ) -> Stored:
        """Redacts a session and keeps its card. Raises `Blocked` if there is a secret in it that must not be stored."""
        arguments = _wire.to_store(session_id, session, tags, metadata, expect_sha256, dry_run=False)
        return _wire.stored(self._tool("store_session_to_cascade", arguments))

    def preview(self, session_id: str, session: Json, *, tags: Sequence[str] = (), metadata: Json | None = None) -> Preview:
        """What `store` would keep, byte for byte. Give its `sha256` as `expect_sha256` to keep exactly that."""
        arguments = _wire.to_store(session_id, session, tags, metadata, None, dry_run=True)
        return _wire.preview(self._tool("store_session_to_cascade", arguments))

    def query(
        self,
        query: str,
        *,
        tags: Sequence[str] = (),
        limit: int | None = None,
        offset: int = 0,
        start: str | None = None,
        end: str | None = None,
    ) -> Hits:
        """Searches in plain words; the best first. `start` and `end` are moments in RFC 3339."""
        return _wire.hits(self._tool("query_memories", {"query": query, **_wire.page(tags, limit, offset, start, end)}))

    def list(
        self, *, tags: Sequence[str] = (), limit: int | None = None, offset: int = 0, start: str | None = None, end: str | None = None
    ) -> Hits:
        """The newest first, a page at a time."""
        return _wire.hits(self._tool("list_memories", _wire.page(tags, limit, offset, start, end)))

    def retrieve(self, uri: str) -> Memory:
        """Opens one that was found."""
        return _wire.memory(self._tool("retrieve_session_from_cascade", {"cascade_uri": uri}))

    def forget(self, *, uri: str | None = None, session_id: str | None = None, dry_run: bool = False) -> Forgotten:
        """Destroys the keys of one memory, or of all of a session. For good."""
        arguments = {"cascade_uri": uri, "session_id": session_id, "dry_run": dry_run or None}
        return _wire.forgotten(self._tool("forget_memory", arguments, idempotent=dry_run))

    def estimate(self, size: int, *, provider: str | None = None, redundancy: int | None = None) -> Estimate:
        """What storing so many bytes costs."""
        arguments = {"bytes": size, "provider": provider, "redundancy": redundancy}
        return _wire.estimate(self._tool("estimate_storage_cost", arguments))

    def _tool(self, name: str, arguments: Json, *, idempotent: bool = True) -> dict[str, Any]:
        return self._client._call(_wire.tool(name, arguments, self.user_id, idempotent=idempotent))
