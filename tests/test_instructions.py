"""Instruction files reach the model as its system text, and a change does so without a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Confidant, wait_until
from recording_model import RecordingModel

SESSION = "discord_conv:alice"
ROOM = "!abc123:matrix.org:main:@dave:matrix.org"


@pytest.fixture
def recorder() -> Iterator[RecordingModel]:
    model = RecordingModel()
    try:
        yield model
    finally:
        model.close()


@pytest.fixture
def recorded(tmp_path: Path, recorder: RecordingModel) -> Iterator[Confidant]:
    """A server that asks the recording model and has a folder of instructions."""
    environment = recorder.environment | {
        "CONFIDANT_ASPECTS__INSTRUCTIONS": str(tmp_path / "instructions"),
        "CONFIDANT_SERVER__REQUESTS_PER_MINUTE": "0",
    }
    confidant = Confidant(tmp_path, environment=environment)
    (tmp_path / "instructions").mkdir()
    try:
        confidant.start()
        yield confidant
    finally:
        confidant.stop()


def system(confidant: Confidant, recorder: RecordingModel, session: str = SESSION) -> str:
    """The system text of a turn's prompt."""
    confidant.turn(session, {"query": "hello"})
    roles = {message["role"]: message["content"] for message in recorder.prompts[-1]}
    return roles["system"]


def test_files_are_followed_while_the_server_runs(recorded: Confidant, recorder: RecordingModel) -> None:
    folder = recorded.folder / "instructions"
    assert "Be honest." in system(recorded, recorder)

    (folder / "mate.md").write_text("---\nslot: mate\nname: Robin\n---\nYour name is Robin.\n")
    (folder / "room.md").write_text("---\nslot: ethics\naudience: room\n---\nOthers read along.\n")
    wait_until(lambda: "Your name is Robin." in system(recorded, recorder), 120, lambda: "no mate")
    wait_until(lambda: "Others read along." in system(recorded, recorder, ROOM), 120, lambda: "no ethics for rooms")
    assert "Others read along." not in system(recorded, recorder)
    text = system(recorded, recorder, ROOM)
    assert text.index("Be honest.") < text.index("Others read along.") < text.index("Your name is Robin.")

    # A file that went wrong stays as it was, and the log names it without quoting it.
    (folder / "mate.md").write_text("---\nslot: mate\nnmae: zanzibar\n---\nYour name is Zanzibar.\n")
    wait_until(lambda: "unknown key nmae" in recorded.log(), 120, lambda: f"no warning:\n{recorded.log()}")
    assert "Your name is Robin." in system(recorded, recorder)
    assert "zanzibar" not in recorded.log().lower()

    (folder / "mate.md").unlink()
    wait_until(lambda: "Your name is Robin." not in system(recorded, recorder), 120, lambda: "the mate stayed")
