"""A chat on a terminal: it asks before what must be approved, and Ctrl-C cancels."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import FOREIGN, TESTS
from recording_model import RecordingModel

SECONDS = 60
CTRL_C, CTRL_D = b"\x03", b"\x04"


class Terminal:
    """What a person sees and types."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.seen = ""
        self.read = 0

    def until(self, words: str) -> str:
        """Everything new up to these words."""
        deadline = time.monotonic() + SECONDS
        while (at := self.seen.find(words, self.read)) < 0:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.device], [], [], left)[0]:
                pytest.fail(f"no {words!r} in:\n{self.seen[self.read :]}", pytrace=False)
            try:
                piece = os.read(self.device, 65536)
            except OSError:
                piece = b""
            if not piece:
                pytest.fail(f"it ended without {words!r}:\n{self.seen[self.read :]}", pytrace=False)
            self.seen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", piece.decode(errors="replace"))
        shown, self.read = self.seen[self.read : at], at + len(words)
        return shown

    def type(self, text: str | bytes) -> None:
        os.write(self.device, text if isinstance(text, bytes) else f"{text}\r".encode())


@contextmanager
def chat(folder: Path, model: RecordingModel) -> Iterator[Terminal]:
    server = json.dumps([sys.executable, str(TESTS / "tool_server.py")])
    (folder / "confidant.toml").write_text(
        f'[tools.servers.t]\ncommand = {server}\n[[tools.rules]]\ntool = "t.call"\nthen = "approve"\n'
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [Path(os.environ["CONFIDANT_BIN"]).resolve(), "chat", "--user", "alice"],
        cwd=folder,
        env=clean | model.environment | {"TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        # So that Ctrl-C goes to the program, as in a real terminal.
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    try:
        yield Terminal(ours)
        os.write(ours, CTRL_D)
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.fixture
def recorder() -> Iterator[RecordingModel]:
    model = RecordingModel()
    yield model
    model.close()


def test_it_asks_before_what_must_be_approved(tmp_path: Path, recorder: RecordingModel) -> None:
    with chat(tmp_path, recorder) as terminal:
        for word, expected in (("y", "The tool said"), ("", "it was denied"), ("no", "it was denied")):
            terminal.until("> ")
            terminal.type('call t.call {"a": 1}')
            question = terminal.until("Approve? [y/N] ")
            assert "May I call t.call with" in question, question
            terminal.type(word)
            terminal.until("noted: ")
            terminal.until(expected)
        # Ctrl-C at the question leaves it open, and later messages say so.
        terminal.until("> ")
        terminal.type('call t.call {"a": 2}')
        terminal.until("Approve? [y/N] ")
        terminal.type(CTRL_C)
        terminal.until("decide with `confidant session approve")
        terminal.until("> ")
        terminal.type("hello")
        terminal.until("1 approval in this session still to be decided")
        terminal.until("> ")
    progress = [line for line in terminal.seen.splitlines() if "🔧 t.call" in line]
    assert progress, "the call was not shown"


def test_ctrl_c_cancels_the_answer(tmp_path: Path, recorder: RecordingModel) -> None:
    recorder.delay = 10_000
    with chat(tmp_path, recorder) as terminal:
        terminal.until("> ")
        terminal.type("hello")
        terminal.until("Thinking")
        terminal.type(CTRL_C)
        terminal.until("cancelling")
        terminal.until("the turn was cancelled")
        terminal.until("> ")
