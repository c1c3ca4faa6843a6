"""Requests generated from the OpenAPI document, good and bad: every reply is one that the document names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Confidant

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "unsupported_method,ignored_auth"
)


@pytest.fixture
def open_server(tmp_path: Path):
    confidant = Confidant(tmp_path, environment={"CONFIDANT_SERVER__REQUESTS_PER_MINUTE": "0"})
    try:
        confidant.start()
        yield confidant
    finally:
        confidant.stop()


# In parts, each with a server of its own: a caller who fails to prove who they are so often is told to slow down.
CONVERSATIONS = "^/v1/(conversations|responses)"
PARTS = {
    "concepts": ["--include-tag=concepts"],
    "conversations": [f"--include-path-regex={CONVERSATIONS}"],
    "the rest": ["--exclude-tag=concepts", f"--exclude-path-regex={CONVERSATIONS}"],
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_every_reply_is_one_that_the_document_names(open_server: Confidant, part: list[str]) -> None:
    done = subprocess.run(
        [
            Path(sys.executable).parent / "schemathesis",
            "run",
            f"{open_server.url}/openapi.json",
            *part,
            "--header",
            f"Authorization: Bearer {open_server.token}",
            "--checks",
            CHECKS,
            "--phases",
            "coverage,fuzzing",
            "--max-examples",
            "25",
            "--generation-deterministic",
            # More than one, and Python 3.11 may fail on its own stack while it makes up bodies as deep as a turn's.
            "--workers",
            "1",
            "--no-color",
        ],
        cwd=open_server.folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    assert "No errors" in done.stdout or "passed" in done.stdout, done.stdout[-2000:]
    assert open_server.request("GET", "/healthz").status == 200
