#!/usr/bin/env python3
"""Measures client-sealed chats on SQLite and on a private PostgreSQL, and writes bench/results/CHATS.md.

`bench/chats.sh` builds what this needs and calls it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]

import postgres_servers
from stores import table, verdict

CORES = os.cpu_count()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--bench", required=True, help="the program chats-bench")
    arguments.add_argument("--confidant", required=True, help="the program confidant")
    arguments.add_argument("--out", default=str(ROOT / "bench/results"))
    arguments.add_argument("--quick", action="store_true", help="a little of everything, printed: shows that it works")
    given = arguments.parse_args()
    command = [given.bench, "--confidant-bin", given.confidant, *(["--quick"] if given.quick else [])]
    with postgres_servers.server() as (port, _):
        url = f"postgres://{postgres_servers.ROLE}:{postgres_servers.PASSWORD}@127.0.0.1:{port}/{postgres_servers.DATABASE}"
        done = subprocess.run([*command, "--postgres", url], stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    if given.quick:
        print(report(found))
        return
    out = Path(given.out)
    (out / "chats.json").write_text(json.dumps(found, indent=1) + "\n")
    (out / "CHATS.md").write_text(report(found))


def goals(found: dict) -> list[list[str]]:
    rows = []
    for name, shown in STORES:
        sync = found["sync"][name]
        p50 = sync["whole"]["p50_ms"]
        rows.append([f"{shown}: a new device takes in everything", "< 1,000 ms", f"{p50:.0f} ms", verdict(p50 < 1000)])
        floor = sync["whole_per_floor"]
        rows.append([f"{shown}: the same ÷ reading and opening the same rows, and nothing else", "none set", f"{floor:.1f}×", "for comparison"])
    wire = max(found["sync"][name]["wire_per_ciphertext"] for name, _ in STORES)
    rows.append(["bytes on the wire ÷ bytes of ciphertext", "≤ 1.25×", f"{wire:.2f}×", verdict(wire <= 1.25)])
    sockets = found["sockets"]
    each = sockets["bytes_each"]
    rows.append([f"memory of the server for each of {sockets['count']:,} idle sockets", "≤ 32 KiB", f"{each / 1024:.1f} KiB", verdict(each <= 32 * 1024)])
    streams, cold = found["streams"], found["cold"]
    late = streams["delay"]["p99_ms"]
    rows.append([f"{streams['count']} answers at once: p99 from the model's word to the device's frame", "≤ 100 ms", f"{late:.0f} ms", verdict(late <= 100)])
    took = cold["cold"]["p50_ms"]
    rows.append([f"first word of an answer for which {cold['messages']} messages are sent again", "≤ 500 ms", f"{took:.0f} ms", verdict(took <= 500)])
    logins = found["logins"]
    for what, shown in (("healthz", "`/healthz`"), ("write", "a small write to a chat")):
        crowd = logins["beside_requests"][what]["p99_ms"]
        for beside, others in (("beside_logins", "logins"), ("beside_registrations", "registrations")):
            ratio = logins[beside][what]["p99_ms"] / crowd
            rows.append([f"p99 of {shown} beside {others} ÷ beside as many other requests", "≤ 3×", f"{ratio:.2f}×", verdict(ratio <= 3)])
    return rows


def report(found: dict) -> str:
    one = found["sync"]["sqlite"]
    sync = [
        [
            shown,
            *(f"{part[which][p]:.0f}" for which in ("whole", "first_chat", "again") for p in ("p50_ms",)),
            f"{part['client_cpu_ms']:.0f}",
            f"{part['server_cpu_ms']:.0f}",
            f"{part['floor_ms']:.0f}",
        ]
        for name, shown in STORES
        for part in [found["sync"][name]]
    ]
    wire = [
        ["ciphertext", f"{one['ciphertext_bytes']:,}", "1"],
        ["frames, as JSON", f"{one['json_bytes']:,}", f"{one['json_bytes'] / one['ciphertext_bytes']:.2f}"],
        ["what the server sent", f"{one['wire_bytes']:,}", f"{one['wire_per_ciphertext']:.2f}"],
    ]
    sockets, logins = found["sockets"], found["logins"]
    beside = [
        [shown, *(f"{logins[name][what][p]:.2f}" for what in ("healthz", "write") for p in ("p50_ms", "p99_ms")), f"{logins[name]['others_a_second']:,.0f}"]
        for name, shown in (
            ("alone", "nobody else"),
            ("beside_requests", "4 connections that ask for `/healthz`"),
            ("beside_logins", "4 connections that log in"),
            ("beside_registrations", "4 connections that register"),
        )
    ]
    streams, cold = found["streams"], found["cold"]
    turns = [
        [shown, *(f"{cold[name][p]:.0f}" for p in ("p50_ms", "p99_ms")), f"{cold[of + 'server_cpu_ms']:.1f}", f"{cold[of + 'client_cpu_ms']:.1f}"]
        for name, of, shown in (("cold", "", f"cold: {cold['messages']} messages are sent again"), ("warm", "warm_", "warm: the server has them"))
    ]
    return f"""# What client-sealed chats cost

The program `confidant serve`, in a process of its own, and its clients on the same {CORES} cores, in one run. `bench/chats.sh` makes this page again. Ratios carry over to other machines, milliseconds do not.

## Goals

{table(["", "goal", "measured", ""], goals(found))}
## Sync

A new device of an account with {one["chats"]} chats of {one["messages"]} messages of {one["body_bytes"]} bytes: the real client over HTTP and WebSocket, right after it logged in, while the server reads ahead. It checks every ring, head and list, opens every envelope and keeps all of it, sealed, in files that it syncs to its disk. The floor reads as many envelopes of the same sizes from one table and opens them; it checks, sends and keeps nothing.

{table(["ms, median", "everything", "the last opened chat", "again, nothing new", "client's CPU", "server's CPU", "floor"], sync)}
{table(["bytes of a whole sync", "", "÷ ciphertext"], wire)}
Beside {one["envelopes"]:,} envelopes in {one["frames"]} frames there are ids, hashes, keys and the list of chats. Large frames are packed (DEFLATE), which takes back what base64url adds.

## Idle sockets

{sockets["count"]:,} sockets that nobody speaks on: {sockets["bytes_each"] / 1024:.1f} KiB of the server's memory each ({sockets["resident_before_mb"]:.0f} MB before, {sockets["resident_mb"]:.0f} MB with all of them), {sockets["idle_cpu_percent"]:.2f} % of one core for all, pings included; `/healthz` beside them: p50 {sockets["healthz"]["p50_ms"]:.2f} ms, p99 {sockets["healthz"]["p99_ms"]:.2f} ms. What the kernel has for a connection is not in it.

## Answers

{streams["count"]} people, each with a socket and a question, and a model that says a word to each of them {streams["words_a_second"] / streams["count"]:.0f} times a second: {streams["words_a_second"]:,.0f} words a second. Words that come within 40 ms go in one frame on purpose, which is most of the time below. Model, devices and server share the machine; the model and the devices are one process, so one clock has both ends of a word.

{table(["", "p50 ms", "p99 ms"], [["from the model's word to the device's frame", f"{streams['delay']['p50_ms']:.0f}", f"{streams['delay']['p99_ms']:.0f}"], ["the same, first words only", f"{streams['first']['p50_ms']:.0f}", f"{streams['first']['p99_ms']:.0f}"]])}
{table(["what it costs", "a word", "a frame"], [["server's CPU, µs", f"{streams['server_cpu_us_a_word']:.0f}", f"{streams['server_cpu_us_a_frame']:.0f}"], [f"bytes to the device (a word has {streams['word_bytes']})", f"{streams['bytes_a_word']:.0f}", f"{streams['bytes_a_frame']:.0f}"]])}
A frame has {streams["words_a_frame"]:.1f} words. The server takes {streams["server_cpu_percent"]:.0f} % of one core for all of it, and {streams["resident_mb"]:.0f} MB.

A question in a chat of {cold["messages"] // 2} questions of {cold["body_bytes"]} bytes and as many short answers, each with its proof, asked by the real client, until the first word of a model that answers at once:

{table(["", "p50 ms", "p99 ms", "server's CPU, ms", "client's CPU, ms"], turns)}
## Beside logins

Somebody asks and writes now and then. Others do something as fast as they can, each from ever new networks, so that no limit stops them. Stretching a password is the client's work and is not in it.

{table(["beside", "`/healthz` p50 ms", "p99 ms", "write p50 ms", "p99 ms", "they, a second"], beside)}"""


STORES = (("sqlite", "SQLite"), ("postgres", "PostgreSQL"))

if __name__ == "__main__":
    main()
