"""What every peer measurement shares: the task's sizes, the clocks and the shape of a point.

The task is one turn of a conversation that already has `messages` messages: load it, append two messages of 300 bytes
(one human, one ai), save it, encrypted. `cpu_ms` and `wchar` (bytes written) are means over the turns, so that amortised
work (a WAL checkpoint, a snapshot) is in them; `wall_ms` is the median, so that a busy machine is not. `cpu_p50_ms` is
there to show when a mean was carried by a few turns.
"""

from __future__ import annotations

import hashlib
import os
import random
import statistics
import string
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LENGTHS = (2, 20, 100, 500, 2000)
MESSAGE_BYTES = 300

# Conversations per length, and turns in each. A turn makes its conversation two messages longer, so short
# conversations get one turn each and long ones a few: the length stays within 2 % of the one reported.
PLAN = {2: (30, 1), 20: (30, 1), 100: (30, 1), 500: (4, 5), 2000: (2, 8)}

_letters = random.Random(20260101)


def text() -> str:
    """A new message of 300 bytes that does not compress or repeat."""
    return "".join(_letters.choices(string.ascii_letters + "     ", k=MESSAGE_BYTES))


def wchar() -> int:
    """Bytes this process has passed to write calls. Page-cache hits count, memory-mapped pages (the WAL index) do not."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("wchar:"):
            return int(line.split()[1])
    raise RuntimeError("no wchar in /proc/self/io")


def calibrate() -> float:
    """CPU milliseconds of a fixed piece of work. If it differs between two runs, the machine's speed did, not the peer's."""
    before = time.process_time()
    hashlib.pbkdf2_hmac("sha256", b"calibration", b"calibration", 100_000)
    return round((time.process_time() - before) * 1e3, 2)


def measure(turns: Iterable[Callable[[], object]]) -> dict[str, float]:
    """Runs the turns one after another and returns the cost of one."""
    cpu, wall, written = [], [], []
    for turn in turns:
        bytes_before = wchar()
        wall_before, cpu_before = time.perf_counter(), time.process_time()
        turn()
        cpu.append(time.process_time() - cpu_before)
        wall.append(time.perf_counter() - wall_before)
        written.append(wchar() - bytes_before)
    return {
        "turns": len(cpu),
        "cpu_ms": round(statistics.fmean(cpu) * 1e3, 4),
        "cpu_p50_ms": round(statistics.median(cpu) * 1e3, 4),
        "wall_ms": round(statistics.median(wall) * 1e3, 4),
        "wchar": round(statistics.fmean(written)),
    }


def at_once(turn: Callable[[int], object], sessions: int, turns: int) -> dict[str, float]:
    """`turns` turns of every session, all sessions side by side, each on a thread of its own."""
    gate = threading.Barrier(sessions + 1)
    took: list[float] = []

    def one(session: int) -> None:
        gate.wait()
        for _ in range(turns):
            began = time.perf_counter()
            turn(session)
            took.append(time.perf_counter() - began)

    with ThreadPoolExecutor(sessions) as pool:
        running = [pool.submit(one, session) for session in range(sessions)]
        gate.wait()
        wall, cpu = time.perf_counter(), time.process_time()
        for done in running:
            done.result()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    took.sort()
    return {
        "turns": len(took),
        "turns_a_second": round(len(took) / wall, 1),
        "cpu_ms": round(cpu / len(took) * 1e3, 4),
        "wall_p50_ms": round(took[len(took) // 2] * 1e3, 4),
        "wall_p99_ms": round(took[len(took) * 99 // 100] * 1e3, 4),
    }


def stored_bytes(database: Path) -> int:
    """What a closed database takes on disk, with whatever of its log is left."""
    files = (Path(f"{database}{suffix}") for suffix in ("", "-wal"))
    return sum(os.path.getsize(file) for file in files if file.exists())
