#!/usr/bin/env python3
"""LangGraph's SqliteSaver with its EncryptedSerializer, used the way its users use it.

A compiled graph with one node that returns a fixed answer, so that what is measured is loading and saving. Variants:

* default: `MessagesState`, AES-EAX, durability "async", SQLite as the saver opens it (WAL, synchronous FULL).
* best: the same state with every setting in its favour: AES-GCM, durability "exit" (one checkpoint a turn, a crash loses
  the turn), synchronous NORMAL.
* delta: "best", with the beta `DeltaChannel` in place of `add_messages`, which stores what was added and a snapshot
  every 100 updates.

Warm keeps one saver. Cold opens a connection and a saver for each turn, not counting the import and compilation that a
new process would pay for, nor the closing; earlier connections stay open, as other workers' would, so that no turn pays
for folding the log because it was the last to close.

A conversation of n messages is seeded with one `update_state`. That understates `stored_bytes` (it saves one checkpoint
where turns would have saved hundreds), and for "delta" the CPU time and the bytes written as well (one write to replay
instead of many, and no snapshot among the turns); `grown` has totals of conversations that grew turn by turn.
"""

from __future__ import annotations

import os

os.environ["LANGSMITH_TRACING"] = "false"

import argparse
import json
import platform
import sqlite3
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, TypedDict

from Crypto.Cipher import AES
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer

from common import LENGTHS, PLAN, calibrate, measure, stored_bytes, text, wchar

KEY = bytes(range(32))
ANSWER = text()


class DeltaState(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]


def answer(_state) -> dict:
    return {"messages": [AIMessage(ANSWER)]}


@dataclass(frozen=True)
class Variant:
    name: str
    state: type
    cipher: dict
    durability: str
    synchronous: str
    grow_to: tuple[int, ...]

    def graph(self):
        builder = StateGraph(self.state)
        builder.add_node("answer", answer)
        builder.add_edge(START, "answer")
        builder.add_edge("answer", END)
        return builder.compile()

    def saver(self, database: Path) -> SqliteSaver:
        connection = sqlite3.connect(database, check_same_thread=False)
        if self.synchronous != "FULL":
            connection.execute(f"PRAGMA synchronous={self.synchronous}")
        serde = EncryptedSerializer.from_pycryptodome_aes(key=KEY, **self.cipher)
        return SqliteSaver(connection, serde=serde)


GCM = {"mode": AES.MODE_GCM}
VARIANTS = (
    Variant("default", MessagesState, {}, "async", "FULL", (20, 100, 500)),
    Variant("best", MessagesState, GCM, "exit", "NORMAL", (20, 100, 500)),
    Variant("delta", DeltaState, GCM, "exit", "NORMAL", (20, 100, 500, 1000)),
)


class Run:
    """One variant on one database."""

    def __init__(self, variant: Variant, database: Path) -> None:
        self.variant, self.database = variant, database
        self.graph = variant.graph()
        self.graph.checkpointer = variant.saver(database)
        self.others: list[SqliteSaver] = []

    def config(self, thread: str) -> dict:
        return {"configurable": {"thread_id": thread}}

    def seed(self, thread: str, length: int) -> None:
        messages = [(AIMessage if i % 2 else HumanMessage)(text()) for i in range(length)]
        self.graph.update_state(self.config(thread), {"messages": messages}, as_node="answer")

    def turn(self, thread: str) -> None:
        message = {"messages": [HumanMessage(text())]}
        self.graph.invoke(message, self.config(thread), durability=self.variant.durability)

    def cold_turn(self, thread: str) -> None:
        self.others.append(self.graph.checkpointer)
        self.graph.checkpointer = self.variant.saver(self.database)
        self.turn(thread)

    def length(self, thread: str) -> int:
        return len(self.graph.get_state(self.config(thread)).values["messages"])

    def close(self) -> None:
        for saver in (*self.others, self.graph.checkpointer):
            saver.conn.close()


def point(variant: Variant, length: int, folder: Path) -> dict:
    conversations, turns = PLAN[length]
    single = Run(variant, folder / f"{variant.name}-{length}-one.db")
    single.seed("one", length)
    single.close()
    result: dict = {"messages": length}
    for heat in ("warm", "cold"):
        run = Run(variant, folder / f"{variant.name}-{length}-{heat}.db")
        run.turn("warm-up")
        for i in range(conversations):
            run.seed(f"t{i}", length)
        one = run.turn if heat == "warm" else run.cold_turn
        result[heat] = measure(lambda i=i: one(f"t{i}") for i in range(conversations) for _ in range(turns))
        found = run.length("t0")
        assert found == length + 2 * turns, f"{variant.name}: {found} messages after {turns} turns at {length}"
        run.close()
    result["stored_bytes"] = stored_bytes(single.database)
    return result


def grow(variant: Variant, folder: Path) -> list[dict]:
    """One conversation turn by turn; what it takes at each length, with the log folded in."""
    run = Run(variant, folder / f"{variant.name}-grown.db")
    points, length = [], 0
    cpu_before, bytes_before = time.process_time(), wchar()
    for target in variant.grow_to:
        while length < target:
            run.turn("grown")
            length += 2
        cpu, written = time.process_time() - cpu_before, wchar() - bytes_before
        run.graph.checkpointer.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        points.append(
            {
                "variant": variant.name,
                "messages": length,
                "stored_bytes": stored_bytes(run.database),
                "wchar_total": written,
                "cpu_ms_total": round(cpu * 1e3, 1),
            }
        )
        # The fold is the measurement's, not the turn's.
        cpu_before, bytes_before = time.process_time() - cpu, wchar() - written
    assert run.length("grown") == length
    run.close()
    return points


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--dir", help="folder for the databases (default: a temporary one)")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as temporary:
        folder = Path(temporary)
        variants, grown, calibration = [], [], [calibrate()]
        for variant in VARIANTS:
            print(f"langgraph-sqlite: {variant.name}", file=sys.stderr, flush=True)
            variants.append({"name": variant.name, "points": [point(variant, n, folder) for n in LENGTHS]})
            grown += grow(variant, folder)
            calibration.append(calibrate())
    packages = ("langgraph", "langgraph-checkpoint", "langgraph-checkpoint-sqlite", "langchain-core", "pycryptodome")
    versions = {name: version(name) for name in packages}
    versions |= {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    report = {
        "peer": "LangGraph SqliteSaver + EncryptedSerializer",
        "versions": versions,
        "calibration_cpu_ms": calibration,
        "variants": variants,
        "grown": grown,
    }
    json.dump(report, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
