"""What README and docs/QUICKSTART.md show is what happens: their sessions and examples, run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from conftest import FOREIGN, Confidant

ROOT = Path(__file__).parent.parent
PAGES = [(ROOT / name).read_text() for name in ("README.md", "docs/QUICKSTART.md")]


def blocks(language: str) -> list[str]:
    """The blocks of both pages, in order."""
    return [block for page in PAGES for block in re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)]


def without_times(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", text)


def shown_sessions() -> list[tuple[str, str]]:
    """Blocks of commands that are followed by what they print."""
    shown = r"```sh\n([^`]*?)```\n\n```text\n(.*?)```"
    return [session for page in PAGES for session in re.findall(shown, page, re.DOTALL)]


def test_every_block_of_commands_can_be_pasted() -> None:
    fences = {fence for page in PAGES for fence in re.findall(r"^ *```.*$", page, re.MULTILINE)}
    assert fences <= {"```", "```sh", "```text", "```toml", "```python"}, f"blocks that no test looks at: {fences}"
    for block in blocks("sh"):
        for line in block.splitlines():
            assert not line.startswith("$ ") and "…" not in line, line
        subprocess.run(["bash", "-n"], input=block, text=True, check=True)


def test_the_sessions_are_real_in_one_folder(tmp_path: Path) -> None:
    """Pasted as they stand, one after the other, into a shell in one folder."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "confidant").symlink_to(Path(os.environ["CONFIDANT_BIN"]).resolve())
    environment = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    environment["HOME"] = str(tmp_path / "home")
    environment.pop("XDG_DATA_HOME", None)
    folder = tmp_path / "folder"
    folder.mkdir()
    sessions = shown_sessions()
    assert [len(commands.splitlines()) for commands, _ in sessions] == [8, 6]
    for commands, expected in sessions:
        play(commands, expected, folder, environment)
    # An agent is started elsewhere than the server: the memory is at home then, and all else is the same.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    play(*sessions[1], elsewhere, environment)
    assert (tmp_path / "home/.local/share/confidant").is_dir() and not (elsewhere / "confidant-data").exists()


def play(commands: str, expected: str, folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash"], input=commands, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    # The first command of all also says that it made a key.
    quiet = ("master key", "back it up", "nothing was stored; --expect-sha256", "artifact_only, ", "stored ")
    said = [line for line in done.stderr.splitlines() if not any(word in line for word in quiet)]
    shown = "".join(f"{line}\n" for line in said) + done.stdout
    listed = {without_times(line) for line in expected.splitlines() if line}
    assert {without_times(line) for line in shown.splitlines()} == listed, done.stderr


def test_the_python_example_is_real(server: Confidant) -> None:
    (example,) = blocks("python")
    example = example.replace("http://127.0.0.1:7367", server.url).replace(
        "confidant-data/admin.token", str(server.data_dir / "admin.token")
    )
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0 and "Alice" in done.stdout, done.stderr


def test_the_curl_example_is_real(server: Confidant) -> None:
    (example,) = (block for block in blocks("sh") if "curl" in block)
    example = example.replace("http://127.0.0.1:7367", server.url).replace(
        "confidant-data/admin.token", str(server.data_dir / "admin.token")
    )
    done = subprocess.run(["bash", "-c", example], capture_output=True, text=True, timeout=180)
    assert '"final_response"' in done.stdout and "PostgreSQL" in done.stdout, done.stdout + done.stderr
