"""The vectors of client-sealed chats hold in an implementation that shares no code with the program."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_a_second_implementation_agrees_with_the_vectors() -> None:
    script = ROOT / "crates/chat-format/tests/chats_vectors.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("checks hold\n")
