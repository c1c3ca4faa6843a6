"""Commands at a terminal: they ask before they erase, lists have a header, and long work has a bar."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest
from conftest import FOREIGN
from test_chat_terminal import SECONDS, Terminal


def environment(folder: Path) -> dict[str, str]:
    """With a home of its own: where the memory is if the folder has none."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith((*FOREIGN, "XDG_"))}
    return kept | {"TERM": "xterm", "HOME": str(folder)}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Without a terminal."""
    program = Path(os.environ["CONFIDANT_BIN"]).resolve()
    return subprocess.run(
        [program, *arguments], cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180
    )


def at_terminal(folder: Path, answer: str | None, *arguments: str) -> tuple[int, str]:
    """At one, with what is typed when it asks."""
    ours, theirs = pty.openpty()
    program = Path(os.environ["CONFIDANT_BIN"]).resolve()
    process = subprocess.Popen([program, *arguments], cwd=folder, env=environment(folder), stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    terminal = Terminal(ours)
    try:
        if answer is not None:
            terminal.until("[y/N] ")
            os.write(ours, answer.encode())
        try:
            while piece := os.read(ours, 65536):
                terminal.seen += piece.decode(errors="replace")
        except OSError:
            pass
        return process.wait(SECONDS), terminal.seen
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for user in ("alice", "bob"):
        run(tmp_path, "chat", "--user", user, "--room", "db", "--once", f"Hello, I'm {user}")
    return tmp_path


ERASING = (("person", "erase", "alice"), ("session", "delete", "cli:db:main:alice"))


@pytest.mark.parametrize("command", ERASING)
def test_erasing_asks_and_only_yes_is_yes(folder: Path, command: tuple[str, ...]) -> None:
    for answer in ("\n", "n\n", "what?\n", "\x04"):
        code, seen = at_terminal(folder, answer, *command)
        assert code == 1 and "nothing was done" in seen and "alice" in seen, seen
    assert "cli:db:main:alice" in run(folder, "session", "list").stdout
    code, seen = at_terminal(folder, "y\n", *command)
    assert code == 0 and "keep the receipt" in seen, seen
    assert "alice" not in run(folder, "session", "list").stdout


@pytest.mark.parametrize("command", ERASING)
def test_yes_and_pipes_are_not_asked(folder: Path, command: tuple[str, ...]) -> None:
    code, seen = at_terminal(folder, None, *command, "--yes")
    assert code == 0 and "[y/N]" not in seen, seen
    other = [word.replace("alice", "bob") for word in command]
    done = run(folder, *other)
    assert done.returncode == 0 and "[y/N]" not in done.stderr, done.stderr


def test_a_list_has_a_header_at_a_terminal_and_none_in_a_pipe(folder: Path) -> None:
    code, seen = at_terminal(folder, None, "session", "list")
    header, *rows = [line for line in seen.splitlines() if line.strip()]
    assert code == 0 and header.split() == ["SESSION", "TENANT", "SIZE", "EXPIRES", "STATE"], seen
    assert len(rows) == 2 and all(row.startswith("cli:db:main:") for row in rows)
    # Columns stand under their names.
    assert all(row[header.index("TENANT") :].startswith("default") for row in rows), seen
    piped = run(folder, "session", "list").stdout.splitlines()
    assert {line.split("\t")[0] for line in piped} == {"cli:db:main:alice", "cli:db:main:bob"}


def test_an_import_has_a_bar_at_a_terminal_and_lists_what_was_not_stored(tmp_path: Path) -> None:
    sessions = [f"Planted row {at} of the orchard." for at in range(30)]
    sessions.append("curl -H 'Authorization: Bearer k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz' http://x")
    lines = [json.dumps({"session_id": f"row-{at}", "messages": [{"role": "user", "content": text}]}) for at, text in enumerate(sessions)]
    file = tmp_path / "many.jsonl"
    file.write_text("\n".join(lines))
    command = ("memory", "import", str(file))
    code, seen = at_terminal(tmp_path, None, *command)
    assert code == 0 and " left" in seen and "30 stored" in seen and "1 blocked" in seen, seen
    assert "authorization_header at " in seen and "--verbose" in seen and "orchard" not in seen, seen
    code, seen = at_terminal(tmp_path, None, *command, "--user", "bob", "--verbose")
    assert code == 0 and seen.count("orchard") >= 30, seen
