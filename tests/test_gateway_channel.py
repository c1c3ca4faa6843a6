"""A channel on a gateway: its turns are run by workers, and what becomes of them is told where it was asked."""

from __future__ import annotations

import re
from pathlib import Path

from conftest import turns_path, wait_until
from fake_discord import PATIENCE, FakeDiscord
from recording_model import RecordingModel
from test_discord import ALICE, BOT, Bots, fake, model
from test_roles import RedisServer, Role, server, settings
from test_tools import HOSTILE, entry

__all__ = ["fake", "model", "server"]


def test_a_decision_that_came_another_way_is_answered_in_the_channel(
    tmp_path: Path, server: RedisServer, fake: FakeDiscord, model: RecordingModel
) -> None:
    environment = settings(server, model)
    bots = Bots(tmp_path, fake, model)
    bots.configure(BOT)
    bots.environment |= environment
    bots.arguments += ["--role", "gateway"]
    worker = Role(tmp_path / "w", "worker", environment)
    worker.folder.mkdir()
    rule = '[[tools.rules]]\ntool = "bad.echo"\nthen = "approve"\n'
    (worker.folder / "confidant.toml").write_text("[tools]\n" + entry("bad", command=HOSTILE, tools=["echo"]) + rule)
    worker.start()
    bots.begin()
    try:

        def has_tool() -> bool:
            bots.turn("http:probe:main:nobody", {"query": "hello"})
            return model.offered[-1] == ["bad_echo"]

        wait_until(has_tool, 60, lambda: f"the tool did not come:\n{worker.log()}")
        room = fake.direct(ALICE)
        fake.say(ALICE, room, 'call bad.echo {"text": "hello there"}')
        wait_until(lambda: len(fake.texts(room)) == 1, PATIENCE, lambda: f"nothing was asked:\n{bots.log()}")
        (question,) = fake.texts(room)
        assert re.search(r"approve [A-Z0-9]{6}", question), question
        # Decided over HTTP, carried out by the worker: nobody tells the channel but the log.
        path = turns_path(f"discord_conv:{ALICE}").removesuffix("/turns")
        (waiting,) = bots.request("GET", f"{path}/approvals").json()["approvals"]
        decision = {"approval_id": waiting["approval_id"], "decision": "approve", "user_id": str(ALICE)}
        decided = bots.request("POST", f"{path}/decisions", decision)
        assert decided.status == 200, decided.body
        wait_until(lambda: len(fake.texts(room)) == 2, PATIENCE, lambda: f"it was never told:\n{bots.log()}")
        assert "hello there" in fake.texts(room)[1].partition(" -> ")[2]
    finally:
        bots.stop()
        worker.stop()
