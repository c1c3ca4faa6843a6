"""The client for Python where the network or the server goes away: what is tried again, what never is, and what is said."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import confidant_memory as ours
import pytest
from confidant_memory import Answer, AsyncConfidant, Delta, _wire
from conftest import Confidant, free_port
from recording_model import RecordingModel

ALICE = "http:team:main:alice"


class Cutter:
    """A server in between that cuts the first connections: once what comes back has the words, or before anything goes through."""

    def __init__(self, port: int, words: bytes, cuts: int, then: Callable[[], object] = lambda: None) -> None:
        self._port, self._words, self._then, self.left, self.connections = port, words, then, cuts, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._between, args=(client,), daemon=True).start()

    def _between(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._port)) as server:
            threading.Thread(target=pump, args=(client, server), daemon=True).start()
            seen = b""
            while piece := receive(server):
                seen += piece
                client.sendall(piece)
                if self.left and self._words in seen:
                    self.left -= 1
                    # The other thread waits for more of it, and would keep it open.
                    client.shutdown(socket.SHUT_RDWR)
                    self._then()
                    return

    def close(self) -> None:
        self._listener.close()


def receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except OSError:
        return b""


def pump(source: socket.socket, sink: socket.socket) -> None:
    while piece := receive(source):
        try:
            sink.sendall(piece)
        except OSError:
            return


@contextmanager
def deaf(answer: Callable[[int], bytes | None]) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers the nth request with these bytes and hangs up, or with None says nothing; gives what it was sent."""
    listener = socket.create_server(("127.0.0.1", 0))
    heard: list[bytes] = []
    open_: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            request = b""
            while b"\r\n\r\n" not in request and (piece := receive(connection)):
                request += piece
            heard.append(request)
            reply = answer(len(heard))
            if reply is None:
                open_.append(connection)
                continue
            # What is still unread would make a reset of the end.
            connection.sendall(reply)
            connection.shutdown(socket.SHUT_WR)
            while receive(connection):
                pass
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", heard
    finally:
        listener.close()
        for connection in open_:
            connection.close()


def reply(status: int, body: str, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "Content-Type: application/json", "Connection: close", *headers]
    return "\r\n".join([*lines, "", body]).encode()


BUSY = reply(503, '{"error": {"code": "stopping", "message": "it stops", "hint": "wait"}}', "Retry-After: 0")


@pytest.mark.parametrize("kind", ["blocking", "asynchronous"])
def test_a_lost_connection_costs_no_answer_and_no_second_turn(recording: Confidant, recorder: RecordingModel, kind: str) -> None:
    # The server is cut off while it has said the first piece only, twice.
    recorder.halfway = threading.Event()
    cutter = Cutter(recording.port, b"noted", cuts=2)
    events: list[object] = []

    def hear(event: object) -> None:
        events.append(event)
        if isinstance(event, Delta):
            threading.Timer(0.5, recorder.halfway.set).start()

    def blocking() -> None:
        with ours.Confidant(cutter.url, token=recording.token, retries=20) as client:
            with client.session(ALICE).stream("hello") as stream:
                for event in stream:
                    hear(event)

    async def asynchronous() -> None:
        async with AsyncConfidant(cutter.url, token=recording.token, retries=20) as client:
            async with client.session(ALICE).stream("hello") as stream:
                async for event in stream:
                    hear(event)

    blocking() if kind == "blocking" else asyncio.run(asynchronous())
    answer = events[-1]
    assert isinstance(answer, Answer) and answer.text == "noted: hello"
    assert [event.text for event in events if isinstance(event, Delta)] == ["noted: "], "no piece comes twice"
    assert cutter.connections >= 2 and cutter.left <= 1
    assert len(recorder.prompts) == 1, "the model was asked once"
    cutter.close()


def test_a_server_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    server = Confidant(tmp_path, port=free_port())
    server.start()
    token = server.token
    server.stop()
    said: list[object] = []
    with ours.Confidant(server.url, token=token, retries=200) as client:
        asking = threading.Thread(target=lambda: said.append(client.session(ALICE).ask("Hello, I'm Alice")))
        asking.start()
        try:
            server.start()
            asking.join(120)
            assert isinstance(said[0], Answer)
        finally:
            server.stop()
    with ours.Confidant(server.url, token=token, retries=1) as client:
        for work in (client.session(ALICE).export, client.session(ALICE).erase, lambda: client.session(ALICE).ask("x"), client.memory("a").list):
            with pytest.raises(ours.Unreachable) as lost:
                work()
            assert "confidant serve" in lost.value.hint or lost.value.request_id


def test_only_what_may_be_done_twice_is_sent_twice() -> None:
    cut = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"
    for lost in (cut, BUSY):
        for name, times in (("export", 3), ("erase", 1), ("forget", 1), ("store", 3), ("cancel", 3)):
            with deaf(lambda n, lost=lost: lost) as (url, heard), ours.Confidant(url, token="t", retries=2) as client:
                session, memory = client.session(ALICE), client.memory("alice")
                work = {
                    "export": session.export,
                    "erase": session.erase,
                    "forget": lambda: memory.forget(session_id="s"),
                    "store": lambda: memory.store("s", {}),
                    "cancel": lambda: session.cancel("r"),
                }
                with pytest.raises((ours.Unreachable, ours.Unavailable)):
                    work[name]()
            assert len(heard) == times, (name, lost)


def test_what_was_refused_before_it_was_done_is_sent_again() -> None:
    limited = reply(429, '{"error": {"code": "rate_limited", "message": "too many", "hint": "wait"}}', "Retry-After: 0")
    done = reply(200, '{"cancelled": 1}')
    with deaf(lambda n: limited if n < 3 else done) as (url, heard), ours.Confidant(url, token="t") as client:
        assert client.session(ALICE).cancel("r") and len(heard) == 3
    with deaf(lambda n: limited) as (url, heard), ours.Confidant(url, token="t", retries=2) as client:
        with pytest.raises(ours.RateLimited):
            client.session(ALICE).erase()
        assert len(heard) == 3
    patient = reply(429, '{"error": {"code": "rate_limited", "message": "too many", "hint": "wait"}}', "Retry-After: 3600")
    with deaf(lambda n: patient) as (url, heard), ours.Confidant(url, token="t") as client:
        with pytest.raises(ours.RateLimited) as told:
            client.session(ALICE).export()
        assert told.value.retry_after == 3600 and len(heard) == 1, "who is told to wait for an hour decides for themselves"


def test_silence_is_an_error_with_the_turns_name() -> None:
    with deaf(lambda n: None) as (url, _), ours.Confidant(url, token="t", timeout=0.3, retries=0) as client:
        with pytest.raises(ours.TimedOut) as late:
            client.session(ALICE).ask("hello", request_id="r-1")
        assert late.value.request_id == "r-1" and "0.3 s" in str(late.value)

    async def work(url: str) -> None:
        async with AsyncConfidant(url, token="t", timeout=0.3, retries=0) as client:
            with pytest.raises(ours.TimedOut):
                await client.session(ALICE).export()

    with deaf(lambda n: None) as (url, _):
        asyncio.run(work(url))


@pytest.mark.parametrize(
    "body", ["<html>canary</html>", '"canary"', "[]", '{"error": "canary"}', '{"messages": "canary"}', "", '{"jsonrpc": "2.0", "id": 1}']
)
@pytest.mark.parametrize("status", [200, 400, 404, 418])
def test_what_is_not_confidant_is_said_to_be_something_else(body: str, status: int) -> None:
    with deaf(lambda n: reply(status, body)) as (url, _), ours.Confidant(url, token="t", retries=0) as client:
        for work in (client.session(ALICE).approvals, client.memory("a").list):
            with pytest.raises(ours.UnexpectedReply) as strange:
                work()
            assert "canary" not in str(strange.value)


def test_events_are_read_however_they_are_cut() -> None:
    stream = 'event: delta\ndata: {"ä": 1}\n\n: keep-alive\n\ndata: a\r\ndata:b\r\n\r\nevent: x\n\ndata: last\n\n'.encode()
    expected = [("delta", '{"ä": 1}'), ("message", "a\nb"), ("message", "last")]
    for size in range(1, len(stream) + 1):
        parser = _wire.EventParser()
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert [event for piece in pieces for event in parser.feed(piece)] == expected, size
