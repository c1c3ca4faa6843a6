"""Redaction on this machine: the program `confidant redact --jsonl`, started once and asked line by line.

Nothing leaves the machine, and nothing is stored. No error repeats what was to be redacted.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import logging
import os
import queue
import shutil
import subprocess
import sysconfig
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from .errors import ProgramFailed


@dataclass(frozen=True, slots=True)
class Finding:
    """One place at which a rule held, in code points of the text that was given."""

    rule: str
    critical: bool
    start: int
    end: int
    #: Where the text is in a JSON value, as a JSON pointer.
    path: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text, or a JSON value, without secrets and personal data."""

    text: str = field(repr=False)
    value: Any = field(repr=False)
    #: Whether there was a private key, an Authorization header or a bearer token in it. It was replaced, but do not store such a text.
    blocked: bool
    findings: tuple[Finding, ...]


class Redactor:
    """Redacts. Threads may share one. The program starts with the first text, and ends with `close` or with this process.

    `names=False` leaves people's names in, which is several times faster. `always` and `never` are files of words, one per line.
    """

    def __init__(
        self,
        *,
        names: bool = True,
        numbered: bool = False,
        always: str | Path | None = None,
        never: str | Path | None = None,
        program: str | Path | None = None,
        timeout: float = 60,
    ) -> None:
        self._options = ["redact", "--jsonl"]
        self._options += [] if names else ["--no-names"]
        self._options += ["--numbered"] if numbered else []
        self._options += [] if always is None else [f"--always={always}"]
        self._options += [] if never is None else [f"--never={never}"]
        self._program, self._timeout = program, timeout
        self._lock, self._running, self._closed = threading.Lock(), _NOT_RUNNING, False
        atexit.register(self._stop)

    def redact(self, text: str) -> Redacted:
        """A text without secrets and personal data."""
        told = self._asked(text)
        return Redacted(told["text"], told["text"], told["blocked"], _findings(told))

    def redact_json(self, value: Any) -> Redacted:
        """A JSON value without them: every text and key in it."""
        if isinstance(value, str):
            return self.redact(value)
        told = self._asked(value)
        return Redacted(json.dumps(told["value"], ensure_ascii=False), told["value"], told["blocked"], _findings(told))

    async def aredact(self, text: str) -> Redacted:
        """The same without blocking the event loop."""
        return await asyncio.to_thread(self.redact, text)

    async def aredact_json(self, value: Any) -> Redacted:
        """The same without blocking the event loop."""
        return await asyncio.to_thread(self.redact_json, value)

    def close(self) -> None:
        """Ends the program."""
        self._closed = True
        atexit.unregister(self._stop)
        self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Redactor(running={self._running.lives})"

    def _stop(self) -> None:
        with self._lock:
            running, self._running = self._running, _NOT_RUNNING
        running.end()

    def _asked(self, value: Any) -> dict[str, Any]:
        # A lone surrogate is no character; the program would refuse the line. It needs no line break inside.
        line = json.dumps(value, ensure_ascii=True).encode() + b"\n"
        with self._lock:
            if self._closed:
                _failed("closed", "the redactor is closed", "make another one")
            # A process that forked must not write into its parent's pipe.
            if not self._running.lives or self._running.owner != os.getpid():
                self._running = _Running(find_program(self._program), self._options)
            try:
                said = self._running.ask(line, self._timeout)
            except BaseException:
                # What it says next would be the answer to another question.
                self._running.end(at_once=True)
                self._running = _NOT_RUNNING
                raise
        told: dict[str, Any] = json.loads(said)
        if "error" in told:
            _failed("not_json", "the program cannot read this value", "give text, or a value that JSON has a form for")
        return told


class _Running:
    """The program while it runs, and what it says, by a thread that listens."""

    def __init__(self, program: str | None, options: list[str]) -> None:
        self.owner = os.getpid()
        self._said: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._child: subprocess.Popen[bytes] | None = None
        self._complaint = b""
        if program is None:
            return
        # Settings of the server are not this program's business.
        try:
            self._child = subprocess.Popen(
                [program, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            _failed("no_program", f"the program cannot be started ({error.strerror})", HINT)
        threading.Thread(target=self._listen, args=(self._child,), daemon=True).start()
        threading.Thread(target=self._hear_complaints, args=(self._child,), daemon=True).start()

    @property
    def lives(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def ask(self, line: bytes, timeout: float) -> bytes:
        assert self._child is not None and self._child.stdin is not None
        try:
            self._child.stdin.write(line)
            self._child.stdin.flush()
            said = self._said.get(timeout=timeout)
        except (BrokenPipeError, ValueError):
            said = None
        except queue.Empty:
            _failed("timed_out", f"the program said nothing for {timeout:g} s", "raise `timeout`, or give shorter texts")
        if said is None:
            code = self._child.wait()
            reason = self._complaint.decode(errors="replace").strip().removeprefix("error: ").split("\n")[0][:300]
            _failed("program_ended", f"the program ended with status {code}{reason and f': {reason}'}", "run `confidant redact --jsonl` to see why")
        return said

    def end(self, *, at_once: bool = False) -> None:
        """Lets it end by itself, or else makes it."""
        child, self._child = self._child, None
        if child is None or self.owner != os.getpid():
            return
        with contextlib.suppress(OSError):
            if child.stdin is not None:
                child.stdin.close()
        for stop, patience in ((child.kill if at_once else child.poll, 5.0), (child.terminate, 5.0), (child.kill, None)):
            stop()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(patience)
                return

    def _listen(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdout is not None
        with child.stdout as lines:
            for line in lines:
                self._said.put(line)
        self._said.put(None)

    def _hear_complaints(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stderr is not None
        with child.stderr as lines:
            for line in lines:
                self._complaint = (self._complaint + line)[:4096]


HINT = "pip install confidant-memory brings the program; otherwise give its path as `program`"
_NOT_RUNNING = _Running(None, [])


def find_program(given: str | Path | None = None) -> str:
    """The program: the one that is given, the one that was installed with this module, or the one on the PATH."""
    if given is not None:
        return str(given)
    with_this = Path(sysconfig.get_path("scripts")) / "confidant"
    if os.access(with_this, os.X_OK):
        return str(with_this)
    found = shutil.which("confidant")
    if found is None:
        _failed("no_program", "the program confidant is not installed here", HINT)
    return found


def _failed(code: str, message: str, hint: str) -> NoReturn:
    raise ProgramFailed(message, code=code, hint=hint)


def _findings(told: dict[str, Any]) -> tuple[Finding, ...]:
    return tuple(Finding(one["rule"], one["tier"] == "critical", one["start"], one["end"], one.get("path")) for one in told["findings"])


_shared: Redactor | None = None
_shared_lock = threading.Lock()


def redact(text: str) -> Redacted:
    """A text without secrets and personal data, by a redactor that all callers share."""
    return shared().redact(text)


def shared() -> Redactor:
    """The redactor that is used where none is given."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = Redactor()
        return _shared


class RedactingFilter(logging.Filter):
    """Redacts log records: the message with its arguments, the traceback, and texts that were added with `extra`.

    Add it to handlers, since a logger's filters do not see the records of the loggers below it. If redaction fails, the record
    says so and nothing else.
    """

    def __init__(self, redactor: Redactor | None = None) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            cleaned = self._cleaned(record)
        except Exception as error:
            reason = error.code if isinstance(error, ProgramFailed) else type(error).__name__
            cleaned = {name: None for name in self._texts(record)} | {"msg": f"not logged: redaction failed ({reason})", "exc_text": None}
        record.__dict__.update(cleaned, args=None, exc_info=None)
        return True

    def _cleaned(self, record: logging.LogRecord) -> dict[str, Any]:
        texts: dict[str, Any] = {name: value for name, value in record.__dict__.items() if name in self._texts(record)}
        texts["msg"] = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:
            texts["exc_text"] = _formatter.formatException(record.exc_info)
        redactor = self._redactor or shared()
        cleaned: dict[str, Any] = {}
        for name, value in texts.items():
            cleaned[name] = redactor.redact(value if isinstance(value, str) else str(value)).text
        return cleaned

    @staticmethod
    def _texts(record: logging.LogRecord) -> list[str]:
        """The names of what may have something of a person in it: not numbers, and not what logging itself sets."""
        given = {name for name, value in record.__dict__.items() if name not in _USUAL and not isinstance(value, int | float | None)}
        also = {name for name in ("exc_text", "stack_info") if record.__dict__.get(name)}
        return sorted(given | also)


_formatter = logging.Formatter()
# `taskName` and `message` are set for some records only.
_USUAL = frozenset(logging.LogRecord("", 0, "", 0, "", None, None).__dict__) | {"message", "asctime", "taskName"}
