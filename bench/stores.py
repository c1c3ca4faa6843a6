#!/usr/bin/env python3
"""Measures Confidant on Redis and PostgreSQL beside its peers, in one run, and writes bench/results/STORES.md.

`bench/stores.sh` builds what this needs and calls it. Servers are private ones on loopback, made for the run.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench/peers")]

import postgres_servers
import redis
import redis_servers
from common import at_once

TICKS = os.sysconf("SC_CLK_TCK")
KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and of the children that it has or had."""
    total = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(entry.name) == pid:
            total += sum(map(int, fields[11:15]))
        elif int(fields[1]) == pid:
            total += sum(map(int, fields[11:13]))
    return total / TICKS


class Roles:
    """A gateway and some workers on one Redis, with the built-in answerer."""

    def __init__(self, binary: Path, folder: Path, url: str, workers: int) -> None:
        folder.mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        common = {
            "PATH": os.environ["PATH"],
            "REDIS_URL": url,
            "CHECKPOINT_ENCRYPTION_KEY": KEY,
            "CONFIDANT_SERVER__REQUESTS_PER_MINUTE": "0",
            "CONFIDANT_SERVER__LISTEN": f"127.0.0.1:{self.port}",
        }
        self.processes = {}
        for name, role in [("gateway", "gateway"), *((f"worker {i + 1}", "worker") for i in range(workers))]:
            data = folder / name.replace(" ", "-")
            with (folder / f"{data.name}.log").open("ab") as log:
                command = [binary, "serve", "--role", role]
                environment = common | {"CONFIDANT_SERVER__DATA_DIR": str(data), "HOME": str(folder)}
                self.processes[name] = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        self.token_file = folder / "gateway/admin.token"
        self.local = threading.local()
        deadline = time.monotonic() + 30
        while not self._answers():
            if time.monotonic() > deadline:
                raise SystemExit("the roles did not start:\n" + "".join(p.read_text() for p in folder.glob("*.log")))
            time.sleep(0.1)

    def _answers(self) -> bool:
        try:
            self.turn(0)
        except (OSError, RuntimeError, http.client.HTTPException):
            self.local = threading.local()
            return False
        return True

    def turn(self, session: int) -> None:
        connection = getattr(self.local, "connection", None)
        if connection is None:
            self.token = self.token_file.read_text().strip()
            connection = self.local.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        body = json.dumps({"query": f"My favourite number is {time.monotonic_ns()}. What did I say?"})
        path = f"/api/v1/session/{quote(f'http:room{session}:main:user{session}', safe='')}/turns"
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise RuntimeError(answer.decode(errors="replace")[:300])

    def stop(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(30)


def scaling(binary: Path, folder: Path, server: Path | str, turns: int) -> list[dict]:
    found = []
    for workers in (1, 2, 3, 4):
        with redis_servers.server(str(server)) as port:
            roles = Roles(binary, folder / f"roles-{workers}", f"redis://127.0.0.1:{port}", workers)
            try:
                at_once(roles.turn, 64, 2)
                pid = redis.Redis(port=port).info("server")["process_id"]
                watched = {"Redis": pid} | {name: process.pid for name, process in roles.processes.items()}
                before = {name: cpu_of(pid) for name, pid in watched.items()}
                busy = at_once(roles.turn, 64, turns)
                after = {name: cpu_of(pid) for name, pid in watched.items()}
            finally:
                roles.stop()
        each = {name: (after[name] - before[name]) / busy["turns"] * 1e3 for name in watched}
        busy["cpu"] = {
            "workers": sum(ms for name, ms in each.items() if name.startswith("worker")),
            "gateway": each["gateway"],
            "Redis": each["Redis"],
            "the client": busy["cpu_ms"],
        }
        found.append({"workers": workers} | busy)
        print(f"roles: {workers} workers", file=sys.stderr, flush=True)
    return found


def run(*command: object) -> dict:
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--bench", required=True, help="the program confidant-bench")
    arguments.add_argument("--confidant", required=True, help="the program confidant")
    arguments.add_argument("--out", default=str(ROOT / "bench/results"))
    given = arguments.parse_args()
    peers = ROOT / "bench/peers"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="confidant-bench-")))
        program = redis_servers.shutil.which("redis-server")
        port = stack.enter_context(redis_servers.server(program))
        url = f"redis://127.0.0.1:{port}"
        postgres_port, _ = stack.enter_context(postgres_servers.server())
        database = f"postgres://{postgres_servers.ROLE}:{postgres_servers.PASSWORD}@127.0.0.1:{postgres_port}/{postgres_servers.DATABASE}"
        results = {
            "ours": run(given.bench, "--redis", url, "--postgres", database),
            "langgraph": run(sys.executable, peers / "langgraph_servers.py", "--postgres", database, "--redis", url),
            "seed": run(sys.executable, peers / "seed_redis.py", "--redis", url),
            "roles": scaling(Path(given.confidant).resolve(), folder, program, 40),
        }
    out = Path(given.out)
    (out / "stores.json").write_text(json.dumps(results, indent=1) + "\n")
    (out / "STORES.md").write_text(report(results))


def verdict(met: bool) -> str:
    return "met" if met else "missed"


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---", *("--:" for _ in heads[1:])], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def report(results: dict) -> str:
    ours, langgraph, seed = results["ours"], results["langgraph"], results["seed"]
    redis_cpu = ours["redis"]["append"]["alone"]["cpu_ms"]
    postgres_cpu = ours["postgres"]["append"]["alone"]["cpu_ms"]
    saver = {variant["name"]: variant for variant in langgraph["postgres"]}
    literal = {variant["name"]: variant for variant in seed["redis"]}
    lang = saver["default"]["alone"]["cpu_ms"] / postgres_cpu
    best = saver["best"]["alone"]["cpu_ms"] / postgres_cpu
    whole_lang = saver["default"]["alone"]["cpu_ms"] / ours["postgres"]["whole"]["alone"]["cpu_ms"]
    against_seed = literal["literal"]["alone"]["cpu_ms"] / redis_cpu
    goals = [
        ["PostgreSQL: CPU of a turn, LangGraph's saver (default) ÷ ours", "≥ 100×", f"{lang:.0f}×", verdict(lang >= 100)],
        ["PostgreSQL: the same with LangGraph's best settings", "none set", f"{best:.0f}×", "for comparison"],
        ["PostgreSQL: the default again, against a person's whole turn of ours, with all that is done beside keeping it", "none set", f"{whole_lang:.0f}×", "for comparison"],
        ["Redis: CPU of a turn, the seed's literal design in Python ÷ ours", "≥ 300×", f"{against_seed:.0f}×", verdict(against_seed >= 300)],
    ]
    for name in ("redis", "postgres"):
        floor = ours[name]["floor"]
        shown = "Redis" if name == "redis" else "PostgreSQL"
        ratio = floor["cpu_ratio"]
        goals.append([f"{shown}: CPU of a turn, ours ÷ one bare round trip and sealing", "≤ 2.5× (aim 1.5×)", f"{ratio:.2f}×", verdict(ratio <= 2.5)])
        goals.append([f"{shown}: the same, elapsed time (medians)", "≤ 2.5× (aim 1.5×)", f"{floor['wall_ratio']:.2f}×", verdict(floor["wall_ratio"] <= 2.5)])
    trips = ours["redis"]["append"]["round_trips_a_turn"]
    goals.append(["Redis: round trips of a warm turn that is loaded, appended to and saved, counted by the server", "1", f"{trips:.2f}", verdict(trips < 1.1)])
    whole = ours["redis"]["whole"]["round_trips_a_turn"]
    goals.append(["Redis: the same of a person's whole turn: its request is in the log before the model is called, its answer after", "none set", f"{whole:.2f}", "for comparison"])

    def rows(what: str) -> list[list[str]]:
        contenders = []
        for name, shown in (("redis", "Redis"), ("postgres", "PostgreSQL")):
            contenders.append((f"Confidant, {shown}", ours[name]["append"][what]))
            contenders.append((f"Confidant, whole turn, {shown}", ours[name]["whole"][what]))
        contenders += [(f"LangGraph, {name}, PostgreSQL", variant[what]) for name, variant in saver.items()]
        contenders += [(f"seed document, {name}, Redis", variant[what]) for name, variant in literal.items()]
        if what == "at_once":
            return [[name, f"{c['turns_a_second']:.0f}", f"{c['wall_p50_ms']:.3g}", f"{c['wall_p99_ms']:.3g}", f"{c['cpu_ms']:.3g}"] for name, c in contenders]
        return [[name, f"{c['wall_ms']:.3g}", f"{c['cpu_ms']:.3g}"] for name, c in contenders]

    refused = langgraph["redis"].get("cannot_run")
    roles = [
        [str(one["workers"]), f"{one['turns_a_second']:.0f}", f"{one['wall_p50_ms']:.3g}", f"{one['wall_p99_ms']:.3g}", *(f"{one['cpu'][name]:.3g}" for name in ("workers", "gateway", "Redis", "the client"))]
        for one in results["roles"]
    ]
    return f"""# What a turn costs on Redis and PostgreSQL

{ours["sessions"]} conversations of {ours["messages"]} messages; a turn loads its conversation, appends two messages of 300 bytes and saves it, encrypted. All contenders ran one after another on one machine, on the same private servers on loopback (Redis without files, PostgreSQL as it comes: a commit waits for the disk). CPU is of the client's process. `bench/stores.sh` makes this page again. Ratios carry over to other machines, milliseconds do not.

## Goals

{table(["", "goal", "measured", ""], goals)}
Ours and the floor were measured by turns in one process, {ours["sessions"]} of one and {ours["sessions"]} of the other. The floor writes two sealed records and nothing else: no version that is compared, no chain, no audit record, no index of sessions, people and lifetimes.

## {ours["sessions"]} conversations at once

{table(["", "turns a second", "p50 ms", "p99 ms", "CPU ms a turn"], rows("at_once"))}
## One turn after another

{table(["warm", "p50 ms", "CPU ms a turn"], rows("alone"))}
{table(["cold", "p50 ms", "CPU ms a turn"], rows("cold"))}
A cold turn of ours reads, opens and checks the whole log and its key; a cold turn of a peer opens a connection.

LangGraph's saver for Redis: {"could not be run on a plain Redis; it said `" + refused + "`. It needs the modules RedisJSON and RediSearch." if refused else json.dumps(langgraph["redis"])}

## From one worker to four

One gateway, workers with the built-in answerer, {ours["sessions"]} conversations that ask over HTTP, on two cores that the client and Redis share. Where the time goes: CPU milliseconds of a turn, by process.

{table(["workers", "turns a second", "p50 ms", "p99 ms", "workers' CPU", "gateway's", "Redis's", "the client's"], roles)}
Versions: {", ".join(f"{name} {version}" for part in (langgraph, seed) for name, version in part["versions"].items())}.
"""


if __name__ == "__main__":
    main()
