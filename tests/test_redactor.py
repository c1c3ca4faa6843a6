"""Redaction from Python: the program as a child, asked line by line, and what logs and chains make of it."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confidant_memory import ProgramFailed, Redacted, RedactingFilter, Redactor
from conftest import TESTS, wait_until

PROGRAM = os.environ.get("CONFIDANT_BIN", "")
MAIL = "write to jane@example.org"
CLEAN = "write to <REDACTED:EMAIL>"
KEY = "Authorization: Basic amFuZTpodW50ZXIy"


@pytest.fixture
def redactor() -> Iterator[Redactor]:
    with Redactor(program=Path(PROGRAM).resolve()) as made:
        yield made


def child(redactor: Redactor) -> subprocess.Popen[bytes]:
    process = redactor._running._child
    assert process is not None
    return process


def test_texts_and_values_are_redacted_by_one_program(redactor: Redactor) -> None:
    told = redactor.redact(MAIL)
    assert (told.text, told.blocked) == (CLEAN, False)
    (found,) = told.findings
    assert (found.rule, found.critical, MAIL[found.start : found.end]) == ("email", False, "jane@example.org")
    first = child(redactor)
    assert redactor.redact(KEY).blocked and redactor.redact(KEY).findings[0].critical
    value = {"password": "hunter2!x", "to": ["jane@example.org", 7, None]}
    told = redactor.redact_json(value)
    assert told.value == {"password": "<REDACTED:PASSWORD>", "to": ["<REDACTED:EMAIL>", 7, None]} == json.loads(told.text)
    assert {found.path for found in told.findings} == {"/password", "/to/0"}
    for odd in ("", " ", "\n", "two\nlines of jane@example.org", "\u2028 \x00 🦉", "\ud83d", "x" * 300_000):
        assert redactor.redact(odd).text.count("jane") == 0
    assert redactor.redact("Yesterday I met Margaret Thompson in the office.").text == "Yesterday I met <REDACTED:NAME> in the office."
    assert child(redactor) is first
    assert "jane" not in f"{told!r}{redactor!r}" and not isinstance(told, str)


def test_options_reach_the_program(tmp_path: Path) -> None:
    (tmp_path / "always").write_text("Project Zebra\n")
    (tmp_path / "never").write_text("info@example.org\n")
    options = {"always": tmp_path / "always", "never": tmp_path / "never", "names": False, "numbered": True}
    with Redactor(program=PROGRAM, **options) as redactor:
        said = redactor.redact("project zebra: Margaret Thompson, info@example.org, a@x.org b@x.org a@x.org").text
    assert said == "<REDACTED:TERM:1>: Margaret Thompson, info@example.org, <REDACTED:EMAIL:1> <REDACTED:EMAIL:2> <REDACTED:EMAIL:1>"


def test_threads_and_tasks_get_their_own_answers(redactor: Redactor) -> None:
    texts = [f"{n} jane{n}@example.org {n}" for n in range(200)]
    expected = [f"{n} <REDACTED:EMAIL> {n}" for n in range(200)]
    with ThreadPoolExecutor(8) as threads:
        assert [told.text for told in threads.map(redactor.redact, texts)] == expected

    async def tasks() -> list[Redacted]:
        # One that is called off takes nobody's answer away.
        late = asyncio.create_task(redactor.aredact("x" * 100_000))
        await asyncio.sleep(0)
        late.cancel()
        return await asyncio.gather(*map(redactor.aredact, texts))

    assert [told.text for told in asyncio.run(tasks())] == expected
    assert asyncio.run(redactor.aredact_json({"to": "a@x.org"})).value == {"to": "<REDACTED:EMAIL>"}


def test_a_program_that_dies_is_started_again(redactor: Redactor) -> None:
    assert redactor.redact(MAIL).text == CLEAN
    first = child(redactor)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert redactor.redact(MAIL).text == CLEAN and child(redactor).pid != first.pid


def test_closing_ends_the_program_and_is_final(redactor: Redactor) -> None:
    redactor.redact(MAIL)
    process = child(redactor)
    redactor.close()
    assert process.returncode == 0, "by itself, at the end of its input"
    redactor.close()
    with pytest.raises(ProgramFailed) as closed:
        redactor.redact(MAIL)
    assert closed.value.code == "closed"


def test_a_forked_process_has_a_program_of_its_own(redactor: Redactor) -> None:
    assert redactor.redact(MAIL).text == CLEAN
    fork = os.fork()
    if fork == 0:
        os._exit(0 if redactor.redact("a@x.org").text == "<REDACTED:EMAIL>" else 1)
    assert os.waitpid(fork, 0)[1] == 0
    assert redactor.redact(MAIL).text == CLEAN


def test_this_process_takes_its_program_with_it() -> None:
    code = f"from confidant_memory import Redactor; r = Redactor(program={PROGRAM!r}); r.redact('x'); print(r._running._child.pid)"
    environment = os.environ | {"PYTHONPATH": str(TESTS.parent / "clients/python")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    wait_until(lambda: not Path(f"/proc/{done.stdout.strip()}").exists(), 60, lambda: "the program is still there")


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("exec sleep 1000", "timed_out", "said nothing for 0.5 s"),
        ("echo 'error: no room; hint: make some' >&2; exit 3", "program_ended", "ended with status 3"),
        ("kill -9 $$", "program_ended", "ended with status -9"),
    ],
)
def test_what_goes_wrong_is_said_and_repeats_nothing(tmp_path: Path, body: str, code: str, words: str) -> None:
    with Redactor(program=script(tmp_path / "program", body), timeout=0.5 if code == "timed_out" else 60) as redactor:
        for _ in range(2):
            with pytest.raises(ProgramFailed) as failed:
                redactor.redact(MAIL)
            assert failed.value.code == code and words in str(failed.value) and "jane" not in str(failed.value) and failed.value.hint
            assert not redactor._running.lives


def test_a_missing_program_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for redactor in (Redactor(), Redactor(program=tmp_path / "nothing")):
        with redactor, pytest.raises(ProgramFailed) as missing:
            redactor.redact(MAIL)
        assert missing.value.code == "no_program" and "pip install confidant-memory" in missing.value.hint
    script(tmp_path / "confidant", f'exec {Path(PROGRAM).resolve()} "$@"')
    with Redactor() as redactor:
        assert redactor.redact(MAIL).text == CLEAN, "found on the PATH"


def logged(redactor: Redactor | None, work: object) -> str:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s %(who)s", defaults={"who": ""}))
    handler.addFilter(RedactingFilter(redactor))
    logger = logging.Logger("test.redaction")
    logger.addHandler(handler)
    work(logger)  # type: ignore[operator]
    return out.getvalue()


def test_logs_are_redacted_wherever_the_words_are(redactor: Redactor) -> None:
    assert logged(redactor, lambda log: log.info("%s; %d", MAIL, 7)) == f"INFO {CLEAN}; 7 \n"
    assert logged(redactor, lambda log: log.info("hello", extra={"who": "jane@example.org"})) == "INFO hello <REDACTED:EMAIL>\n"
    assert logged(redactor, lambda log: log.info({"to": "jane@example.org"})).count("jane") == 0

    def raising(log: logging.Logger) -> None:
        try:
            raise ValueError(MAIL)
        except ValueError:
            log.exception("failed for %s", "jane@example.org", stack_info=True)

    said = logged(redactor, raising)
    assert "failed for <REDACTED:EMAIL>" in said and f"ValueError: {CLEAN}" in said and "Traceback" in said and "jane@" not in said


def test_a_log_that_cannot_be_redacted_is_not_written(tmp_path: Path) -> None:
    with Redactor(program=tmp_path / "nothing") as broken:
        said = logged(broken, lambda log: log.error("mail %s", "jane@example.org", extra={"who": "jane@example.org"}, exc_info=ValueError("jane")))
    assert said == "ERROR not logged: redaction failed (no_program) None\n"
    assert "jane" not in logged(None, lambda log: log.error("%d", "jane@example.org")), "arguments that do not fit"


def test_chains_are_redacted(redactor: Redactor) -> None:
    from confidant_memory import InvalidRequest
    from confidant_memory.langchain import Redact
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnableLambda

    redact = Redact(redactor)
    assert redact.invoke(MAIL) == CLEAN and asyncio.run(redact.ainvoke({"a": [MAIL, 1]})) == {"a": [CLEAN, 1]}
    prompt = ChatPromptTemplate.from_messages([("system", "Be brief."), ("human", "{said}")])
    seen = (prompt | redact | RunnableLambda(lambda value: value.to_messages())).invoke({"said": MAIL})
    assert [message.content for message in seen] == ["Be brief.", CLEAN]
    call = {"name": "send", "args": {"to": "jane@example.org"}, "id": "1", "type": "tool_call"}
    message = redact.invoke(AIMessage(content=[{"type": "text", "text": MAIL}], tool_calls=[call]))
    assert "jane" not in str(message) and message.tool_calls[0]["args"] == {"to": "<REDACTED:EMAIL>"}
    document = redact.invoke(Document(page_content=MAIL, metadata={"author": "jane@example.org"}))
    assert "jane" not in str(document)
    assert redact.batch([HumanMessage(MAIL)] * 3)[2].content == CLEAN
    with pytest.raises(InvalidRequest) as refused:
        redact.invoke(object())
    assert "object" in str(refused.value)
