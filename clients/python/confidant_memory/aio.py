"""The asynchronous client: the same as the blocking one, with `await`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
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


class AsyncConfidant:
    """A Confidant server. Tasks of one event loop may share one; `close` it at the end, or use it with `async with`.

    `timeout` is how long the server may be silent, in seconds: while a turn runs it gives a sign of life every 15 seconds, so this
    does not limit how long an answer takes. `retries` is how often something is tried again that may safely be done twice.
    """

    def __init__(
        self, url: str = "http://127.0.0.1:7367", *, token: str, timeout: float = 60, retries: int = 4, http: httpx2.AsyncClient | None = None
    ) -> None:
        self._url, self._timeout, self._retries = _wire.origin(url), timeout, retries
        self._headers = {"Authorization": f"Bearer {_wire.bearer(token)}"}
        self._own = http is None
        self._http = http or httpx2.AsyncClient()

    @classmethod
    def from_token_file(cls, url: str, path: str | Path, **options: Any) -> Self:
        """With a token that a file has, such as `confidant-data/admin.token`."""
        return cls(url, token=Path(path).read_text(encoding="utf-8"), **options)

    def session(self, session_id: str) -> AsyncSession:
        """One conversation of one person, such as `http:team:main:alice`."""
        return AsyncSession(self, session_id)

    def person(self, user_id: str) -> AsyncPerson:
        """A person, with everything that is kept about them."""
        return AsyncPerson(self, user_id)

    def memory(self, user_id: str | None = None) -> AsyncMemories:
        """A person's memories of earlier sessions of work. A `user:` token has only its own, and needs no id."""
        return AsyncMemories(self, user_id)

    async def approval(self, approval_id: str) -> Approval:
        """An approval that this token's bearer may decide, in anybody's conversation."""
        return _wire.approval(await self._ask(Request("GET", _wire.approval_path(approval_id), idempotent=True)))

    async def decide(self, approval: Approval | str, decision: Decision, *, user_id: str | None = None) -> Ending:
        """Decides in anybody's conversation. Who may not read it hears only that the decision counts."""
        return await AsyncTurnStream(self, _wire.decision(None, approval, decision, user_id)).ending()

    async def close(self) -> None:
        """Closes the connections."""
        if self._own:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncConfidant({self._url!r})"

    async def _ask(self, request: Request) -> dict[str, Any]:
        """The JSON that a request is answered with."""
        return await self._reply(request, lambda response: _wire.object_of(response.content))

    async def _call(self, request: Request) -> dict[str, Any]:
        """What a tool of the memory gives back."""
        return await self._reply(request, lambda response: _wire.tool_result(response.content, response.headers.get("content-type", "")))

    async def _reply(self, request: Request, read: Callable[[httpx2.Response], dict[str, Any]]) -> dict[str, Any]:
        for tries in count():
            unsent = False
            try:
                with unlogged():
                    response = await self._http.send(self._built(request))
            except httpx2.HTTPError as error:
                failure, unsent = _wire.failed(error, request, self._timeout), _wire.is_unsent(error)
            else:
                if response.is_success:
                    return read(response)
                failure = _wire.refused(response.status_code, response.headers.get("retry-after"), response.content, request.request_id)
            await self._wait(request, failure, unsent, tries)
        raise AssertionError("count ends")

    def _built(self, request: Request) -> httpx2.Request:
        headers = {**self._headers, **request.headers}
        url = self._url + request.path
        return self._http.build_request(
            request.method, url, json=request.body, headers=headers, params=dict(request.params) or None, timeout=self._timeout
        )

    async def _wait(self, request: Request, failure: ConfidantError, unsent: bool, tries: int) -> None:
        """Waits before the next try; raises if there is none."""
        pause = request.pause(failure, unsent, tries, self._retries)
        if pause is None:
            raise failure
        await asyncio.sleep(pause)


class AsyncTurnStream:
    """A turn as it happens. Iterate over its events; the last is an `Answer`, an `Approval` or a `Question`.

    If the connection is lost, the stream asks again with the same `request_id`: the turn is not run twice. From then on there are
    no more pieces, and the answer comes whole. Closing the stream does not stop the turn; `cancel` does.
    """

    def __init__(self, client: AsyncConfidant, request: Request, cancel: Callable[[str], Awaitable[bool]] | None = None) -> None:
        self._client, self._request, self._cancel = client, request, cancel
        self._events = self._run()
        self._ending: Ending | None = None

    @property
    def request_id(self) -> str | None:
        """The turn's id."""
        return self._request.request_id

    def __aiter__(self) -> AsyncIterator[TurnEvent]:
        return self

    async def __anext__(self) -> TurnEvent:
        event = await anext(self._events)
        if isinstance(event, Answer | Approval | Question):
            self._ending = event
        return event

    async def text(self) -> AsyncIterator[str]:
        """Only the words of the answer, as they come."""
        said = False
        async for event in self:
            if isinstance(event, Delta):
                said = True
                yield event.text
            elif isinstance(event, Answer) and not said:
                yield event.text

    async def ending(self) -> Ending:
        """How the turn ended; waits for it."""
        async for _ in self:
            pass
        if self._ending is None:
            raise _wire.cut_off(self._request)
        return self._ending

    async def cancel(self) -> bool:
        """Ends the turn. Whether it was still running or waiting."""
        if self._cancel is None or self.request_id is None:
            return False
        return await self._cancel(self.request_id)

    async def close(self) -> None:
        """Stops listening. The turn goes on."""
        await self._events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncTurnStream(ended={self._ending is not None})"

    async def _run(self) -> AsyncGenerator[TurnEvent]:
        request, heard, answered = self._request, False, False
        for tries in count():
            lost, unsent = heard, False
            try:
                with unlogged():
                    response = await self._client._http.send(self._client._built(request), stream=True)
                try:
                    if not response.is_success:
                        failure = _wire.refused(response.status_code, response.headers.get("retry-after"), await response.aread(), request.request_id)
                    else:
                        failure = _wire.cut_off(request)
                        async for event in _parsed(response, request):
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
                    await response.aclose()
            except httpx2.HTTPError as error:
                failure, unsent = _wire.failed(error, request, self._client._timeout), _wire.is_unsent(error)
            # What is made of an answer may be missing; the answer is whole.
            if answered:
                return
            await self._client._wait(request, failure, unsent, tries)


def _enriches(request: Request) -> bool:
    return bool(request.body and request.body.get("enrich"))


async def _parsed(response: httpx2.Response, request: Request) -> AsyncIterator[TurnEvent | ConfidantError]:
    parser = _wire.EventParser()
    async for piece in response.aiter_bytes():
        for name, data in parser.feed(piece):
            event = _wire.event(name, data, request)
            if event is not None:
                yield event


class AsyncSession:
    """One conversation of one person."""

    def __init__(self, client: AsyncConfidant, session_id: str) -> None:
        self._client, self.session_id = client, session_id

    def __repr__(self) -> str:
        return "AsyncSession()"

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
    ) -> AsyncTurnStream:
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
        return AsyncTurnStream(self._client, request, self.cancel)

    async def ask(
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
        async with self.stream(
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
            return await events.ending()

    async def cancel(self, request_id: str) -> bool:
        """Ends a turn. Whether it was still running or waiting."""
        path = _wire.session_path(self.session_id, "turns", request_id)
        return bool((await self._client._ask(Request("DELETE", path, idempotent=True)))["cancelled"])

    async def approvals(self) -> list[Approval]:
        """Tool calls that wait for somebody's approval, oldest first."""
        path = _wire.session_path(self.session_id, "approvals")
        return _wire.approvals(await self._client._ask(Request("GET", path, idempotent=True)))

    async def decide(self, approval: Approval | str, decision: Decision, *, user_id: str | None = None) -> Ending:
        """Approves or denies; gives the answer of the turn that waited, or the next approval."""
        async with self.stream_decision(approval, decision, user_id=user_id) as events:
            return await events.ending()

    def stream_decision(self, approval: Approval | str, decision: Decision, *, user_id: str | None = None) -> AsyncTurnStream:
        """Approves or denies; gives the rest of the turn as it happens."""
        return AsyncTurnStream(self._client, _wire.decision(self.session_id, approval, decision, user_id), self.cancel)

    async def about(self) -> Json:
        """Title, summary, tags and suggestions, as far as they are known."""
        return await self._client._ask(Request("GET", _wire.session_path(self.session_id, "about"), idempotent=True))

    async def export(self) -> SessionExport:
        """Everything that is kept of it."""
        path = _wire.session_path(self.session_id, "export")
        return _wire.session_export(await self._client._ask(Request("GET", path, idempotent=True)))

    async def erase(self) -> Receipt:
        """Destroys its key and its log. Not tried again if the reply is lost: a second receipt would say that nothing was there."""
        return _wire.receipt(await self._client._ask(Request("DELETE", _wire.session_path(self.session_id))))

    async def would_erase(self) -> WouldErase:
        """What `erase` would erase."""
        request = Request("DELETE", _wire.session_path(self.session_id), params={"dry_run": "true"}, idempotent=True)
        return _wire.would_erase(await self._client._ask(request))


class AsyncPerson:
    """A person, with everything that is kept about them."""

    def __init__(self, client: AsyncConfidant, user_id: str) -> None:
        self._client, self.user_id = client, user_id

    def __repr__(self) -> str:
        return "AsyncPerson()"

    async def export(self) -> PersonExport:
        """Everything that is kept about them."""
        path = _wire.person_path(self.user_id, "export")
        return _wire.person_export(await self._client._ask(Request("GET", path, idempotent=True)))

    async def erase(self) -> Receipt:
        """Erases them everywhere. Not tried again if the reply is lost: a second receipt would say that nothing was there."""
        return _wire.receipt(await self._client._ask(Request("DELETE", _wire.person_path(self.user_id))))

    async def would_erase(self) -> WouldErase:
        """What `erase` would erase."""
        request = Request("DELETE", _wire.person_path(self.user_id), params={"dry_run": "true"}, idempotent=True)
        return _wire.would_erase(await self._client._ask(request))


class AsyncMemories:
    """A person's memories of earlier sessions of work: redacted cards, and transcripts only if somebody asked twice."""

    def __init__(self, client: AsyncConfidant, user_id: str | None) -> None:
        self._client, self.user_id = client, user_id

    def __repr__(self) -> str:
        return "AsyncMemories()"

    async def store(
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
        return _wire.stored(await self._tool("store_session_to_cascade", arguments))

    async def preview(self, session_id: str, session: Json, *, tags: Sequence[str] = (), metadata: Json | None = None) -> Preview:
        """What `store` would keep, byte for byte. Give its `sha256` as `expect_sha256` to keep exactly that."""
        arguments = _wire.to_store(session_id, session, tags, metadata, None, dry_run=True)
        return _wire.preview(await self._tool("store_session_to_cascade", arguments))

    async def query(
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
        return _wire.hits(await self._tool("query_memories", {"query": query, **_wire.page(tags, limit, offset, start, end)}))

    async def list(
        self, *, tags: Sequence[str] = (), limit: int | None = None, offset: int = 0, start: str | None = None, end: str | None = None
    ) -> Hits:
        """The newest first, a page at a time."""
        return _wire.hits(await self._tool("list_memories", _wire.page(tags, limit, offset, start, end)))

    async def retrieve(self, uri: str) -> Memory:
        """Opens one that was found."""
        return _wire.memory(await self._tool("retrieve_session_from_cascade", {"cascade_uri": uri}))

    async def forget(self, *, uri: str | None = None, session_id: str | None = None, dry_run: bool = False) -> Forgotten:
        """Destroys the keys of one memory, or of all of a session. For good."""
        arguments = {"cascade_uri": uri, "session_id": session_id, "dry_run": dry_run or None}
        return _wire.forgotten(await self._tool("forget_memory", arguments, idempotent=dry_run))

    async def estimate(self, size: int, *, provider: str | None = None, redundancy: int | None = None) -> Estimate:
        """What storing so many bytes costs."""
        arguments = {"bytes": size, "provider": provider, "redundancy": redundancy}
        return _wire.estimate(await self._tool("estimate_storage_cost", arguments))

    async def _tool(self, name: str, arguments: Json, *, idempotent: bool = True) -> dict[str, Any]:
        return await self._client._call(_wire.tool(name, arguments, self.user_id, idempotent=idempotent))
