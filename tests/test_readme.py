"""What README shows is what happens: its console session and its Python example, run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from conftest import FOREIGN, Confidant

README = (Path(__file__).parent.parent / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def without_times(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", text)


def test_the_console_session_is_real(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "confidant").symlink_to(Path(os.environ["CONFIDANT_BIN"]).resolve())
    environment = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    environment["HOME"] = str(tmp_path)
    environment.pop("XDG_DATA_HOME", None)
    (tmp_path / "agent").mkdir()
    chat, memory = blocks("console")
    # An agent is started elsewhere than the server.
    for session, folder, count in ((chat, tmp_path, 6), (memory, tmp_path / "agent", 5)):
        play(session, folder, environment, count)


def play(session: str, folder: Path, environment: dict[str, str], count: int) -> None:
    steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE)
    assert len(steps) == count
    for command, expected in steps:
        done = subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=60
        )
        # The first command of all also says that it made a key.
        quiet = ("master key", "back it up", "nothing was stored; --expect-sha256", "artifact_only, ", "stored ")
        said = [line for line in done.stderr.splitlines() if not any(word in line for word in quiet)]
        shown = "".join(f"{line}\n" for line in said) + done.stdout
        listed = {without_times(line) for line in expected.splitlines() if line}
        assert {without_times(line) for line in shown.splitlines()} == listed, command


def test_the_python_example_is_real(server: Confidant) -> None:
    (example,) = blocks("python")
    example = example.replace("http://127.0.0.1:7367", server.url).replace(
        "confidant-data/admin.token", str(server.data_dir / "admin.token")
    )
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "Alice" in done.stdout, done.stderr


def test_the_curl_example_is_real(server: Confidant) -> None:
    example = next(block for block in blocks("sh") if block.startswith("curl"))
    example = example.replace("http://127.0.0.1:7367", server.url).replace(
        "confidant-data/admin.token", str(server.data_dir / "admin.token")
    )
    done = subprocess.run(["bash", "-c", example], capture_output=True, text=True, timeout=60)
    assert '"final_response"' in done.stdout and "PostgreSQL" in done.stdout, done.stdout + done.stderr
