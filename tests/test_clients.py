"""The client for Python against the real program: turns, approvals, rights and memories, blocking and asynchronous alike."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import confidant_memory as ours
import pytest
from confidant_memory import Answer, Approval, AsyncConfidant, Delta, Enriched, RoomLine
from conftest import TESTS, Confidant, wait_until
from mcp_client import SESSION as WORK
from recording_model import RecordingModel
from test_processes import run
from test_tools import entry

ALICE = "http:team:main:alice"
# Something that a person says, and that no repr, error or log may repeat.
MARKER = "zanzibar-marker"


@pytest.fixture
def client(server: Confidant) -> Iterator[ours.Confidant]:
    with ours.Confidant(server.url, token=server.token) as made:
        yield made


@pytest.fixture
def acting(tmp_path: Path, recorder: RecordingModel) -> Iterator[Confidant]:
    """A server whose model calls what it is told to, with a tool that wants approval."""
    command = [sys.executable, str(TESTS / "acting_tool.py"), str(tmp_path / "done")]
    rule = '[[tools.rules]]\ntool = "world.act"\nthen = "approve"\napprovers = ["asker", "boss"]\n'
    (tmp_path / "confidant.toml").write_text(entry("world", command=command) + rule)
    server = Confidant(tmp_path, environment=recorder.environment)
    try:
        server.start()
        wait_until(lambda: "world.act" in offered(server, recorder), 120, server.log)
        yield server
    finally:
        server.stop()


def offered(server: Confidant, recorder: RecordingModel) -> str:
    """The tools that the model is offered in a turn of somebody else's: they connect beside the server's start."""
    server.turn("http:team:main:nobody", {"query": "hello"})
    return " ".join(name.replace("_", ".") for name in recorder.offered[-1])


def answered(ending: object) -> Answer:
    assert isinstance(ending, Answer), ending
    return ending


def refused(work: Callable[[], object]) -> ours.ConfidantError:
    with pytest.raises(ours.ConfidantError) as caught:
        work()
    assert caught.value.message and caught.value.hint and MARKER not in f"{caught.value}{caught.value!r}"
    return caught.value


def test_a_turn_streams_and_is_remembered(client: ours.Confidant) -> None:
    session = client.session(ALICE)
    assert answered(session.ask("Hello, I'm Alice and I prefer Rust")).memory == "kept"
    with session.stream("What is my name?") as events:
        seen = list(events)
    answer = answered(seen[-1])
    pieces = [event for event in seen if isinstance(event, Delta)]
    assert "Alice" in answer.text and "".join(piece.text for piece in pieces) == answer.text and len(pieces) > 1
    assert (answer.recalled, answer.replayed, answer.model) == (2, False, "builtin-extractive")
    assert answer.request_id == events.request_id
    with session.stream("What do I prefer?") as events:
        assert "Rust" in "".join(events.text())
    assert "Alice" not in answered(client.session("http:team:main:bob").ask("What is my name?")).text


def test_what_goes_along_with_a_turn_is_used_and_not_kept(client: ours.Confidant, server: Confidant) -> None:
    session = client.session("http:team:main:dave")
    room = [RoomLine("carol", f"We chose PostgreSQL for {MARKER}"), RoomLine("bot", "Noted", is_bot=True)]
    answer = answered(session.ask("What database did we choose?", room=room, audience="room", profile={"persona": "tester"}))
    assert "PostgreSQL" in answer.text and answer.raw["room_lines"] == 2
    assert session.about()["title"]
    server.stop()
    assert server.files_with("We chose PostgreSQL") == []


def test_the_same_request_id_is_one_turn(client: ours.Confidant) -> None:
    session = client.session(ALICE)
    first, again = (answered(session.ask("Our release day is Thursday.", request_id="r-1")) for _ in range(2))
    assert (first.text, first.replayed, again.text, again.replayed) == (first.text, False, first.text, True)
    with session.stream("Our release day is Thursday.", request_id="r-1") as events:
        assert "".join(events.text()) == first.text, "a recorded answer comes without pieces"
    error = refused(lambda: session.ask(MARKER, request_id="r-1"))
    assert isinstance(error, ours.Conflict) and error.code == "request_id_reused" and error.request_id == "r-1"
    assert len(session.export().messages) == 2


def test_an_approval_is_in_the_stream_and_in_the_list_and_decided(acting: Confidant, tmp_path: Path) -> None:
    with ours.Confidant(acting.url, token=acting.token) as client:
        session = client.session(ALICE)
        with session.stream('call world.act {"name": "one"}') as events:
            asked = list(events)[-1]
        assert isinstance(asked, Approval) and asked.tool == "world.act" and asked.arguments == {"name": "one"}
        assert session.approvals() == [asked] and client.approval(asked.approval_id) == asked
        other = session.ask('call world.act {"name": "two"}')
        assert isinstance(other, Approval) and len(session.approvals()) == 2
        swapped = Approval(**{name: getattr(asked, name) for name in asked.__slots__} | {"hash": other.hash})
        assert refused(lambda: session.decide(swapped, "approve", user_id="alice")).code == "hash_mismatch"
        assert "did one" in answered(session.decide(asked, "approve", user_id="alice")).text
        assert refused(lambda: session.decide(asked, "deny", user_id="alice")).code in ("already_decided", "no_such_approval")
        boss = ours.Confidant(acting.url, token=run(acting, "token", "new", "--role", "user:boss").stdout.strip())
        told = answered(boss.decide(boss.approval(other.approval_id), "deny"))
        assert "denied" in told.text and "two" not in told.text, "who may not read the conversation hears that it counts"
        boss.close()
        wait_until(lambda: session.approvals() == [], 60, acting.log)
        assert (tmp_path / "done").read_text() == "one\n"

    async def deny() -> None:
        async with AsyncConfidant(acting.url, token=acting.token) as client:
            session = client.session("http:team:main:erin")
            asked = await session.ask('call world.act {"name": "three"}')
            assert isinstance(asked, Approval) and await session.approvals() == [asked]
            async with session.stream_decision(asked, "deny", user_id="erin") as events:
                seen = [event async for event in events]
            assert "denied" in answered(seen[-1]).text

    asyncio.run(deny())
    assert (tmp_path / "done").read_text() == "one\n"


def test_a_turn_is_cancelled_from_another_thread(acting: Confidant, recorder: RecordingModel) -> None:
    recorder.halfway = threading.Event()
    with ours.Confidant(acting.url, token=acting.token) as client:
        session = client.session(ALICE)
        with session.stream("hello", request_id="r-c") as events:
            pieces = (event for event in events if isinstance(event, Delta))
            assert next(pieces).text == "noted: "
            assert events.cancel() is True
            with pytest.raises(ours.Cancelled):
                list(pieces)
        recorder.halfway.set()
        assert isinstance(refused(lambda: session.ask("hello", request_id="r-c")), ours.Cancelled)
        assert session.cancel("r-never-seen") is False


def test_leaving_a_stream_leaves_the_turn(acting: Confidant, recorder: RecordingModel) -> None:
    recorder.halfway = threading.Event()

    async def leave() -> str:
        async with AsyncConfidant(acting.url, token=acting.token) as client:
            session = client.session(ALICE)

            async def listen() -> None:
                async with session.stream("leave", request_id="r-l") as events:
                    async for event in events:
                        if isinstance(event, Delta):
                            heard.set()

            heard = asyncio.Event()
            task = asyncio.create_task(listen())
            await heard.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert recorder.halfway is not None
            recorder.halfway.set()
            return answered(await session.ask("leave", request_id="r-l")).text

    assert asyncio.run(leave()) == "noted: leave"
    assert sum(prompt[-1]["content"].endswith("leave") for prompt in recorder.prompts) == 1, "the model was asked once"


def test_export_and_erasure_with_a_receipt_that_the_program_accepts(client: ours.Confidant, server: Confidant, tmp_path: Path) -> None:
    for place in ("one", "two"):
        client.session(f"http:{place}:main:alice").ask(f"Hello, I'm Alice, {MARKER}")
    session, person = client.session("http:one:main:alice"), client.person("alice")
    export = session.export()
    assert [message.kind for message in export.messages] == ["human", "ai"] and MARKER in export.messages[0].text
    assert session.would_erase() == ours.WouldErase("session", 1, 2, {})
    assert {one.session_id for one in person.export().sessions} == {"http:one:main:alice", "http:two:main:alice"}
    assert person.would_erase().sessions == 2
    receipt = session.erase()
    assert (receipt.erased, receipt.sessions, receipt.records) == ("session", 1, 2)
    assert isinstance(refused(session.export), ours.NotFound)
    whole = person.erase()
    assert (whole.erased, whole.sessions) == ("person", 1) and person.export().sessions == ()
    for n, proof in enumerate((receipt, whole)):
        proof.save(tmp_path / f"receipt-{n}.json")
        done = run(server, "audit", "verify", "--receipt", str(tmp_path / f"receipt-{n}.json"))
        assert done.returncode == 0 and "genuine" in done.stdout + done.stderr, done.stderr
    forged = json.loads((tmp_path / "receipt-0.json").read_text()) | {"records": 7}
    (tmp_path / "forged.json").write_text(json.dumps(forged))
    assert run(server, "audit", "verify", "--receipt", str(tmp_path / "forged.json")).returncode != 0


def test_memories_are_kept_found_opened_and_forgotten(client: ours.Confidant) -> None:
    memory = client.memory("alice")
    preview = memory.preview("bug-1", WORK, tags=["bug"])
    assert preview.redactions == {"email": 1} and "john.doe@example.com" not in preview.payload and memory.list() == []
    changed = refused(lambda: memory.store("bug-1", WORK, expect_sha256="0" * 64))
    assert isinstance(changed, ours.Conflict) and changed.code == "changed"
    stored = memory.store("bug-1", WORK, tags=["bug"], expect_sha256=preview.sha256)
    assert stored.indexed and not stored.already_stored and stored.card == preview.card
    assert memory.store("bug-1", WORK, tags=["bug"]).already_stored
    (hit,) = memory.query("why did we roll back?")
    assert (hit.uri, hit.session_id) == (stored.uri, "bug-1") and "bug" in hit.tags
    assert memory.query("roll back", tags=["nothing"]) == [] and client.memory("bob").list() == []
    assert memory.list(start="2025-12-21T00:00:00Z", end="2025-12-22T00:00:00Z", limit=5) and memory.list(start="2026-01-01T00:00:00Z") == []
    opened = memory.retrieve(hit.uri)
    assert opened.card == stored.card and any("v2.3.1" in decision for decision in opened.card.decisions) and opened.transcript is None
    assert memory.estimate(10**9, provider="s3", redundancy=2).monthly_storage_usd > 0
    assert memory.forget(uri=hit.uri, dry_run=True).dry_run and memory.list()
    assert memory.forget(session_id="bug-1").forgotten == 1 and memory.list() == []
    assert isinstance(refused(lambda: memory.retrieve(hit.uri)), ours.NotFound)


def test_a_secret_blocks_a_memory_and_is_named_by_rule_and_place(client: ours.Confidant) -> None:
    session = {"summary": "fine", "output": f"Authorization: Bearer {MARKER}0123456789abcdef"}
    error = refused(lambda: client.memory("alice").store("s", session))
    assert isinstance(error, ours.Blocked) and [path for _, path in error.places] == ["/session/output"]
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is ours.Blocked and vars(again) == vars(error) and str(again) == str(error)


def test_errors_are_typed_and_say_what_to_do(client: ours.Confidant, server: Confidant) -> None:
    user = run(server, "token", "new", "--role", "user:bob").stdout.strip()
    with ours.Confidant(server.url, token="confidant_nobody") as stranger, ours.Confidant(server.url, token=user) as bob:
        cases = [
            (lambda: stranger.session(ALICE).ask(MARKER), ours.Unauthenticated, 401),
            (lambda: bob.session(ALICE).ask(MARKER), ours.Forbidden, 403),
            (lambda: bob.person("alice").erase(), ours.Forbidden, 403),
            (lambda: client.session(MARKER).ask("hello"), ours.InvalidRequest, 400),
            (lambda: client.session(ALICE).ask(MARKER, request_id="ü"), ours.InvalidRequest, None),
            (lambda: client.memory().list(), ours.InvalidRequest, 400),
            (lambda: client.memory("alice").retrieve(MARKER), ours.InvalidRequest, None),
            (lambda: client.approval("apr-none"), ours.NotFound, 404),
        ]
        for work, kind, status in cases:
            error = refused(work)
            assert type(error) is kind and (status is None or error.status == status), error
        assert bob.memory().list() == [], "a token of one person needs no id"
    for bad in ("127.0.0.1:7367", "ftp://x", "http://me:secret@127.0.0.1"):
        assert "secret" not in str(refused(lambda bad=bad: ours.Confidant(bad, token="x")))
    for bad in ("", "a\nb", "tökén"):
        assert bad not in str(refused(lambda bad=bad: ours.Confidant(server.url, token=bad))) or not bad


def test_nothing_that_was_said_is_in_a_repr_or_a_log(
    client: ours.Confidant, server: Confidant, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    person = f"{MARKER}-person"
    session = client.session(f"http:{MARKER}-place:main:{person}")
    shown = []
    with session.stream(f"Hello, {MARKER}", room=[RoomLine(MARKER, MARKER)], request_id=MARKER, enrich=True) as events:
        shown += [events, *events]
    memory = client.memory(person)
    stored = memory.store(f"{MARKER}-session", {"summary": f"We decided on {MARKER}."}, tags=[MARKER])
    work = f"{MARKER}-session"
    shown += [client, session, session.export(), session.export().messages, client.person(person), client.person(person).export()]
    shown += [memory, stored, memory.preview(work, {"summary": MARKER}), memory.query(MARKER), memory.retrieve(stored.uri)]
    shown += [session.would_erase(), session.erase(), RoomLine(MARKER, MARKER)]
    asked = ours._wire.turn(ALICE, MARKER, room=None, request_id=MARKER, audience=None, focus=None, profile=None, past_chats=(), settings=None, available_settings=(), title=None, enrich=False)
    shown.append(asked)
    assert any(isinstance(one, Answer) for one in shown) and not any(isinstance(one, Enriched) for one in shown)
    for one in shown:
        assert MARKER not in repr(one), type(one)
    assert server.token not in caplog.text and MARKER not in caplog.text, "the HTTP library logs addresses"
    # What others do with the same library is logged as ever.
    ours.client.httpx2.get(f"{server.url}/healthz")
    assert "/healthz" in caplog.text


def test_blocking_and_asynchronous_clients_are_the_same() -> None:
    for name in ("Confidant", "Session", "Person", "Memories", "TurnStream"):
        kinds = getattr(ours, name), getattr(ours, f"Async{name}")
        methods = [{n: f for n, f in inspect.getmembers(kind, inspect.isfunction) if not n.startswith("_")} for kind in kinds]
        assert methods[0].keys() == methods[1].keys()
        for method, one in methods[0].items():
            parameters = [[str(p.replace(annotation=p.empty)) for p in inspect.signature(f).parameters.values()] for f in (one, methods[1][method])]
            assert parameters[0] == parameters[1] and one.__doc__ == methods[1][method].__doc__, method


def test_the_asynchronous_client_does_what_the_other_does(server: Confidant) -> None:
    async def work() -> None:
        async with AsyncConfidant.from_token_file(server.url, server.data_dir / "admin.token") as client:
            session = client.session(ALICE)
            first, second = await asyncio.gather(session.ask("Hello, I'm Alice", request_id="a"), client.session("http:t:m:bob").ask("Hello, I'm Bob"))
            assert answered(first).memory == answered(second).memory == "kept"
            async with session.stream("What is my name?") as events:
                assert "Alice" in "".join([piece async for piece in events.text()])
            assert answered(await session.ask("Hello, I'm Alice", request_id="a")).replayed
            memory = client.memory("alice")
            stored = await memory.store("w", WORK)
            assert [hit.uri for hit in await memory.query("roll back")] == [stored.uri]
            assert (await memory.retrieve(stored.uri)).card == stored.card
            assert (await memory.forget(uri=stored.uri)).forgotten == 1
            assert (await memory.estimate(1)).size == 1 and await memory.list() == []
            assert (await memory.preview("w", WORK)).size > 0
            assert len((await session.export()).messages) == 4 and (await session.about())["title"]
            assert (await session.would_erase()).messages == 4
            assert (await session.erase()).records == 4
            assert (await client.person("bob").export()).sessions
            assert (await client.person("bob").would_erase()).sessions == 1
            assert (await client.person("bob").erase()).sessions == 1
            with pytest.raises(ours.NotFound):
                await session.export()
            with pytest.raises(ours.NotFound):
                await client.approval("apr-none")
            assert await session.cancel("none") is False and await session.approvals() == []

    asyncio.run(work())


def test_the_types_are_strict(tmp_path: Path) -> None:
    """The client, and a program that uses it."""
    program = tmp_path / "program.py"
    program.write_text(
        "from confidant_memory import Answer, Approval, Confidant, Question, redact\n"
        "def said(client: Confidant) -> str:\n"
        "    match client.session('a:b:c:d').ask('hello'):\n"
        "        case Answer() as answer: return answer.text\n"
        "        case Approval() as approval: return approval.question\n"
        "        case Question() as question: return question.text\n"
        "hits: list[str] = [hit.title for hit in Confidant(token='x').memory('a').query('b')]\n"
        "text: str = redact('x').text\n"
    )
    check = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache"]
    environment = os.environ | {"MYPYPATH": str(TESTS.parent / "clients/python")}
    for what in (["-p", "confidant_memory"], [program]):
        done = subprocess.run([*check, *what], env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    program.write_text(program.read_text().replace("text: str", "text: int"))
    assert subprocess.run([*check, program], env=environment, cwd=tmp_path, capture_output=True).returncode == 1
