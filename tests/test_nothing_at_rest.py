"""Promise 2 of the whole program: after chats and memories by every way in, no file anywhere holds a readable word."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Confidant
from mcp import StdioServerParameters
from mcp_client import SESSION, Endpoint, call, environment, run

BINARY = Path(os.environ["CONFIDANT_BIN"]).resolve()
# One for each way in, so that a find tells which one leaks. Plain words: nothing in them is redacted.
CHAT, ROOM = "zanzibarite", "kelpwhistle"
STDIO, HTTP, CLI = "quillborne", "marlinspike", "halyardine"
IMPORT_MCP, IMPORT_CLI, RAW, FORGOTTEN = "brontolith", "wolframene", "oxbowlark", "thistlewane"
SEARCHED, REFUSED, NAME = "umbervale", "cragmellow", "quibbleworth"
MARKERS = (
    CHAT, ROOM, STDIO, HTTP, CLI, IMPORT_MCP, IMPORT_CLI, RAW, FORGOTTEN, SEARCHED, REFUSED, NAME
)  # fmt: skip
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n-----END OPENSSH PRIVATE KEY-----"

LOGGED = re.compile(r"^\S+Z +(TRACE|DEBUG|INFO|WARN|ERROR) ")


def needles(word: str) -> list[bytes]:
    """The word as text, as UTF-16, in hexadecimal digits, and in base64 wherever in it it begins."""
    found = [word.encode(), word.upper().encode(), word.encode("utf-16-le"), word.encode().hex().encode()]
    for before in range(3):
        # What stands before and after changes the first and last characters.
        encoded = base64.b64encode(b"x" * before + word.encode()).rstrip(b"=")
        found.append(encoded[-(-before * 8 // 6) : len(encoded) - 1])
    return found


def leaks(folder: Path) -> list[tuple[str, str]]:
    """Every marker with each file below the folder that holds it, in its name or in its bytes."""
    sought = {word: needles(word) for word in MARKERS}
    found = []
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        content = name.encode() + (path.read_bytes() if path.is_file() else b"")
        found += [(word, name) for word in MARKERS if any(needle in content for needle in sought[word])]
    return found


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    hidden = [CLI.encode(), CLI.encode("utf-16-le"), CLI.encode().hex().encode()]
    hidden += [base64.b64encode(b"." * before + CLI.encode() + b" and more") for before in range(3)]
    for number, content in enumerate(hidden):
        (tmp_path / f"{number}").write_bytes(b"\0\xff" + content)
    (tmp_path / f"a-{CLI}").mkdir()
    assert leaks(tmp_path) == [(CLI, name) for name in ("0", "1", "2", "3", "4", "5", f"a-{CLI}")]


@dataclass
class Here(Endpoint):
    """A memory whose program has nowhere else to write to than the server's folder, its log included."""

    def parameters(self) -> StdioServerParameters:
        parameters = super().parameters()
        logged = ["-c", 'exec "$0" "$@" 2>>mcp.log', parameters.command, *parameters.args]
        return parameters.model_copy(update={"command": "sh", "args": logged, "env": at_home(self.server)})


def at_home(server: Confidant) -> dict[str, str]:
    for name in ("tmp", "home"):
        (server.folder / name).mkdir(exist_ok=True)
    places = {"TMPDIR": str(server.folder / "tmp"), "HOME": str(server.folder / "home")}
    return environment() | places | {"CONFIDANT_SERVER__DATA_DIR": str(server.data_dir), "CONFIDANT_LOG__LEVEL": "trace"}


def command(server: Confidant, *arguments: str, status: int = 0, said: str | None = None) -> str:
    """A command beside the server. It may tell its person what was stored, but no log and no error has a marker in it."""
    done = subprocess.run(
        [BINARY, *arguments],
        cwd=server.folder,
        env=at_home(server),
        input=said or "",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == status, done.stderr
    written = [line for line in done.stderr.splitlines() if status or LOGGED.search(line)]
    assert not [word for word in MARKERS if word in "\n".join(written)], done.stderr
    return done.stdout


def session(word: str) -> dict:
    summary = f"Moved {word} to the new cluster. We decided to keep {word}. TODO: water {word} again."
    messages = [{"role": "user", "content": f"What about {word}?"}, {"role": "tool", "content": f"error: no {word}"}]
    return SESSION | {"summary": summary, "messages": messages, "output": f"{word} is there", "tags": [f"tag-{word}"]}


def sources(folder: Path, word: str) -> Path:
    """Session files of two agents, outside of the program's own folder."""
    folder.mkdir()
    fixtures = {f"session-{word}": {"session_id": f"session-{word}"} | session(word)}
    (folder / "fixtures.json").write_text(json.dumps(fixtures))
    claude = folder / "11111111-2222-4333-8444-555555555555.jsonl"
    line = {"type": "user", "sessionId": claude.stem, "uuid": "a", "cwd": f"/home/{NAME}/{word}"}
    claude.write_text(json.dumps(line | {"message": {"role": "user", "content": f"Fix {word}, please"}}) + "\n")
    return folder


def many_sources(folder: Path, word: str) -> Path:
    """So many sessions that the search index is written to disk."""
    sources(folder, word)
    rows = {f"row-{at}": {"tool_name": word, "summary": f"Planted {word} in row {at} of the orchard."} for at in range(300)}
    (folder / "rows.json").write_text(json.dumps(rows))
    return folder


async def remember(endpoint: Endpoint, word: str, files: Path) -> None:
    """Stores, stores raw, imports, searches, opens, forgets and is refused, over MCP."""
    raw = {"allow_raw_export": True, "raw_export_ack": "I understand the risk", "note": word}
    async with endpoint.connect() as client:
        asked = {"session_id": f"demo-{word}", "session": session(word), "tags": [f"also-{word}"]}
        await call(client, "store_session_to_cascade", asked | {"dry_run": True})
        uri = (await call(client, "store_session_to_cascade", asked))["cascade_uri"]
        of_raw = {"session_id": f"raw-{word}", "session": session(RAW), "metadata": raw}
        assert (await call(client, "store_session_to_cascade", of_raw))["artifact_type"] == "raw_plus_artifact"
        doomed = {"session_id": f"doomed-{word}", "session": session(FORGOTTEN)}
        doomed_uri = (await call(client, "store_session_to_cascade", doomed))["cascade_uri"]
        hits = (await call(client, "query_memories", {"query": f"{word} {SEARCHED}"}))["hits"]
        assert uri in [hit["cascade_uri"] for hit in hits], "the words are there to be found"
        assert word in json.dumps(await call(client, "retrieve_session_from_cascade", {"cascade_uri": uri}))
        assert (await call(client, "forget_memory", {"cascade_uri": doomed_uri}))["forgotten"] == 1
        wanted = {"path": str(files), "dry_run": False, "tags": [f"from-{word}"]}
        if endpoint.transport == "stdio":
            assert (await call(client, "import_sessions", wanted))["stored"] == 2
        else:
            # Files are for whoever runs the machine; what is refused leaves nothing either.
            assert (await client.call_tool("import_sessions", wanted)).is_error
        await call(client, "list_memories", {"tags": [f"from-{word}"]})
        blocked = {"session_id": f"no-{REFUSED}", "session": {"summary": f"{REFUSED} {KEY}"}}
        assert (await client.call_tool("store_session_to_cascade", blocked)).is_error
        assert (await client.call_tool("query_memories", {"query": 7, REFUSED: REFUSED})).is_error


def remember_by_command(server: Confidant, files: Path) -> None:
    """The same with `confidant memory`."""
    store = ("memory", "store", f"demo-{CLI}", "--session", "-", "--tag", f"also-{CLI}", "--user", NAME)
    command(server, *store, "--dry-run", said=json.dumps(session(CLI)))
    uri = command(server, *store, said=json.dumps(session(CLI))).strip()
    command(server, "memory", "store", "doomed", "--session", "-", "--user", NAME, said=json.dumps(session(FORGOTTEN)))
    assert CLI in command(server, "memory", "query", CLI, SEARCHED, "--user", NAME)
    assert CLI in command(server, "memory", "retrieve", uri, "--json", "--user", NAME)
    command(server, "memory", "forget", "--session-id", "doomed", "--user", NAME)
    command(server, "memory", "import", str(files), "--tag", f"from-{IMPORT_CLI}", "--user", NAME)
    assert IMPORT_CLI in command(server, "memory", "query", IMPORT_CLI, "--user", NAME)
    refused = json.dumps({"summary": f"{REFUSED} {KEY}"})
    command(server, "memory", "store", f"no-{REFUSED}", "--session", "-", "--user", NAME, status=2, said=refused)
    command(server, "redact", said=f"Mail {REFUSED}@example.org")
    assert CLI in command(server, "person", "export", NAME)


def test_promise_2_no_marker_is_in_any_file(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("sources")
    of_mcp, of_http = (sources(elsewhere / word, word) for word in (IMPORT_MCP, HTTP))
    of_cli = many_sources(elsewhere / IMPORT_CLI, IMPORT_CLI)
    server = Confidant(tmp_path, environment={"CONFIDANT_LOG__LEVEL": "trace"})
    server.start()
    try:
        line = {"sender": NAME, "content": f"We chose {ROOM}", "timestamp": 0, "is_bot": False}
        server.turn(f"http:{CHAT}:main:{NAME}", {"query": f"Hello, I prefer {CHAT}", "room_context": [line]})

        async def work() -> None:
            await remember(Here("stdio", server, user=NAME), STDIO, of_mcp)
            await remember(Here("http", server, user=NAME), HTTP, of_http)

        run(work)
        remember_by_command(server, of_cli)
        # While everything is open, with write-ahead logs that are not folded in.
        assert any(tmp_path.rglob("*-wal")), "there is a log to look at"
        assert any(path.is_file() for path in (server.data_dir / "memory" / "index").rglob("*")), "and an index"
        assert leaks(tmp_path) == []
        # As a power cut leaves it, and taken up again.
        assert server.process is not None
        server.process.kill()
        server.process.wait()
        assert leaks(tmp_path) == []
        server.start()
        assert CLI in command(server, "memory", "query", CLI, "--user", NAME), "it is all still there"
        assert STDIO in command(server, "person", "export", NAME)
    finally:
        server.stop()
    assert leaks(tmp_path) == []
    receipt = json.loads(command(server, "person", "erase", NAME))
    assert receipt["derived"]["memories"] > 0
    assert leaks(tmp_path) == []
