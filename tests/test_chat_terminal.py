"""A chat on a terminal: it asks before what must be approved, Ctrl-C cancels, Markdown is rendered, lines stay lines."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import FOREIGN, TESTS
from recording_model import RecordingModel

SECONDS = 60
CTRL_C, CTRL_D = b"\x03", b"\x04"
# At the beginning of its line: an answer may have the same signs, and is painted more than once while it comes.
PROMPT = "\r> "


class Terminal:
    """What a person sees and types."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.seen = ""
        self.read = 0
        # As it came, with what a terminal obeys.
        self.raw = ""

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
            self.raw += piece.decode(errors="replace")
            self.seen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", piece.decode(errors="replace"))
        shown, self.read = self.seen[self.read : at], at + len(words)
        return shown

    def type(self, text: str | bytes) -> None:
        os.write(self.device, text if isinstance(text, bytes) else f"{text}\r".encode())


@contextmanager
def chat(folder: Path, model: RecordingModel, **more: str) -> Iterator[Terminal]:
    server = json.dumps([sys.executable, str(TESTS / "tool_server.py")])
    (folder / "confidant.toml").write_text(
        f'[tools.servers.t]\ncommand = {server}\n[[tools.rules]]\ntool = "t.call"\nthen = "approve"\n'
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    process = subprocess.Popen(
        [Path(os.environ["CONFIDANT_BIN"]).resolve(), "chat", "--user", "alice"],
        cwd=folder,
        env=clean | model.environment | {"TERM": "xterm"} | more,
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
            terminal.until(PROMPT)
            terminal.type('call t.call {"a": 1}')
            question = terminal.until("Approve? [y/N] ")
            assert "May I call t.call with" in question, question
            terminal.type(word)
            terminal.until("noted: ")
            terminal.until(expected)
        # Ctrl-C at the question leaves it open, and later messages say so.
        terminal.until(PROMPT)
        terminal.type('call t.call {"a": 2}')
        terminal.until("Approve? [y/N] ")
        terminal.type(CTRL_C)
        terminal.until("decide with `confidant session approve")
        terminal.until(PROMPT)
        terminal.type("hello")
        terminal.until("1 approval in this session still pending")
        terminal.until(PROMPT)
    progress = [line for line in terminal.seen.splitlines() if "🔧 t.call" in line]
    assert progress, "the call was not shown"


def test_ctrl_c_cancels_the_answer(tmp_path: Path, recorder: RecordingModel) -> None:
    recorder.delay = 10_000
    with chat(tmp_path, recorder) as terminal:
        terminal.until(PROMPT)
        terminal.type("hello")
        terminal.until("Thinking")
        terminal.type(CTRL_C)
        terminal.until("cancelling")
        terminal.until("the turn was cancelled")
        terminal.until(PROMPT)


def asked(recorder: RecordingModel) -> list[str]:
    """What the person said, as the model was told it, in order."""
    return [[m for m in prompt if m["role"] == "user"][-1]["content"] for prompt in recorder.prompts]


def test_lines_typed_while_an_answer_comes_stay_apart(tmp_path: Path, recorder: RecordingModel) -> None:
    recorder.hold = threading.Event()
    with chat(tmp_path, recorder) as terminal:
        terminal.until(PROMPT)
        terminal.type("first")
        terminal.until("Thinking")
        terminal.type("second")
        terminal.type("third")
        terminal.type(b"fou")
        time.sleep(2)
        recorder.hold.set()
        for line in ("first", "second", "third"):
            terminal.until(f"noted: {line}")
        terminal.until(PROMPT)
        terminal.type("rth")
        terminal.until("noted: fourth")
        terminal.until(PROMPT)
    assert asked(recorder) == ["first", "second", "third", "fourth"]


def test_what_was_typed_before_the_question_is_no_answer_to_it(tmp_path: Path, recorder: RecordingModel) -> None:
    recorder.hold = threading.Event()
    with chat(tmp_path, recorder) as terminal:
        terminal.until(PROMPT)
        terminal.type('call t.call {"a": 1}')
        terminal.until("Thinking")
        terminal.type("y")
        time.sleep(2)
        recorder.hold.set()
        terminal.until("Approve? [y/N] ")
        terminal.type("n")
        terminal.until("it was denied")
        terminal.until("> y")
        terminal.until("noted: y")
        terminal.until(PROMPT)


def test_keys_for_a_new_line(tmp_path: Path, recorder: RecordingModel) -> None:
    with chat(tmp_path, recorder) as terminal:
        for key in (b"\n", b"\x1b\r"):
            terminal.until(PROMPT)
            terminal.type(b"one" + key)
            time.sleep(0.2)
            terminal.type("two")
            terminal.until("noted: two")
        terminal.until(PROMPT)
    assert asked(recorder) == ["one\ntwo", "one\ntwo"]


def test_markdown_is_rendered(tmp_path: Path, recorder: RecordingModel) -> None:
    words = "word " * 40
    recorder.answers["show"] = ["# Ti", "tle\n\nSome **bo", "ld** and `code`.\n\n- one\n- two\n\n", words, "\n\nThe end."]
    with chat(tmp_path, recorder) as terminal:
        terminal.until(PROMPT)
        terminal.type("show")
        terminal.until("The end.\r\n")
        terminal.until(PROMPT)
    raw = terminal.raw
    assert "\x1b[1mbold\x1b[0m" in raw and "\x1b[36mcode\x1b[0m" in raw and "• one\r\n• two" in raw, raw
    # Shown as it was written, it is one long line; taken back, it is rendered in lines that end between words.
    written, rendered = (part for part in raw.split("\x1b[J") if "word word" in part)
    assert len(max(written.split("\r\n"), key=len)) > 80, written
    lines = [line for line in rendered.split("\r\n") if line.startswith("word")]
    assert len(lines) == 3 and all(len(line) <= 80 and line.endswith("word") for line in lines), lines


def test_no_colours_where_they_are_not_welcome(tmp_path: Path, recorder: RecordingModel) -> None:
    recorder.answers["show"] = ["Some **bold** and `code`."]
    with chat(tmp_path, recorder, NO_COLOR="1") as terminal:
        terminal.until(PROMPT)
        terminal.type("show")
        terminal.until("Some bold and `code`.")
        terminal.until(PROMPT)
    assert not re.search(r"\x1b\[[0-9;]*m", terminal.raw), terminal.raw
