#!/usr/bin/env python3
"""LangGraph's savers on servers: PostgresSaver with its EncryptedSerializer, and RedisSaver where the server lets it run.

The same graph and the same task as `langgraph_sqlite.py`, with 64 conversations of 100 messages, at once and one turn after
another. Variants as there: "default" (AES-EAX, durability "async") and "best" (AES-GCM, durability "exit": one
checkpoint a turn). Cold opens a connection and a saver for each turn.

RedisSaver keeps its data in RedisJSON and RediSearch. A Redis without those modules refuses its first command; what it
said is then the result.
"""

from __future__ import annotations

import os

os.environ["LANGSMITH_TRACING"] = "false"

import argparse
import json
import sys
from importlib.metadata import version

from Crypto.Cipher import AES
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.redis import RedisSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from psycopg import Connection
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from common import at_once, calibrate, measure, text

KEY = bytes(range(32))
ANSWER = text()
AS_SAVED = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
VARIANTS = {"default": ({}, "async"), "best": ({"mode": AES.MODE_GCM}, "exit")}


def answer(_state) -> dict:
    return {"messages": [AIMessage(ANSWER)]}


def graph(saver):
    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=saver)


def config(name: str, session: int) -> dict:
    return {"configurable": {"thread_id": f"{name}-{session}"}}


def turn(compiled, name: str, session: int, durability: str) -> None:
    compiled.invoke({"messages": [HumanMessage(text())]}, config(name, session), durability=durability)


def seed(compiled, name: str, sessions: int, messages: int) -> None:
    for session in range(sessions):
        said = [(AIMessage if i % 2 else HumanMessage)(text()) for i in range(messages)]
        compiled.update_state(config(name, session), {"messages": said}, as_node="answer")


def on_postgres(url: str, sessions: int, messages: int, turns: int) -> list[dict]:
    variants = []
    for name, (cipher, durability) in VARIANTS.items():
        print(f"langgraph-postgres: {name}", file=sys.stderr, flush=True)
        serde = EncryptedSerializer.from_pycryptodome_aes(key=KEY, **cipher)
        with ConnectionPool(url, min_size=16, max_size=16, kwargs=AS_SAVED) as pool:
            saver = PostgresSaver(pool, serde=serde)
            saver.setup()
            compiled = graph(saver)
            seed(compiled, name, sessions, messages)
            alone = measure(lambda s=s: turn(compiled, name, s, durability) for s in range(sessions))
            busy = at_once(lambda s: turn(compiled, name, s, durability), sessions, turns)
            found = len(compiled.get_state(config(name, 0)).values["messages"])
            assert found == messages + 2 * (turns + 1), f"{name}: {found} messages"

        def cold(session: int) -> None:
            with Connection.connect(url, **AS_SAVED) as connection:
                turn(graph(PostgresSaver(connection, serde=serde)), name, session, durability)

        variants.append({"name": name, "at_once": busy, "alone": alone, "cold": measure(lambda s=s: cold(s) for s in range(16))})
    return variants


def on_redis(url: str, sessions: int, messages: int, turns: int) -> dict:
    print("langgraph-redis", file=sys.stderr, flush=True)
    try:
        with RedisSaver.from_conn_string(url) as saver:
            saver.setup()
            compiled = graph(saver)
            seed(compiled, "redis", sessions, messages)
            alone = measure(lambda s=s: turn(compiled, "redis", s, "async") for s in range(sessions))
            return {"name": "default, not encrypted", "alone": alone, "at_once": at_once(lambda s: turn(compiled, "redis", s, "async"), sessions, turns)}
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the result
        return {"cannot_run": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--postgres", required=True)
    arguments.add_argument("--redis", required=True)
    arguments.add_argument("--sessions", type=int, default=64)
    arguments.add_argument("--messages", type=int, default=100)
    arguments.add_argument("--turns", type=int, default=4)
    given = arguments.parse_args()
    calibration = calibrate()
    size = (given.sessions, given.messages, given.turns)
    report = {
        "calibration_cpu_ms": calibration,
        "postgres": on_postgres(given.postgres, *size),
        "redis": on_redis(given.redis, *size),
        "versions": {name: version(name) for name in ("langgraph", "langgraph-checkpoint-postgres", "langgraph-checkpoint-redis", "psycopg")},
    }
    json.dump(report, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
