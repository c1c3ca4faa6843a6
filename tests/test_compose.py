"""packaging/compose: what its files say holds together, and the gateway and worker that it describes work with a real PostgreSQL and Redis.

No container runtime is needed: containers only give each process its settings, files and names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import postgres_servers
import pytest
import redis_servers
import yaml
from conftest import FOREIGN, free_port
from test_packages import ask_whether_ready, first_answer, served

ROOT = Path(__file__).parent.parent
COMPOSE = ROOT / "packaging/compose"
BINARY = Path(os.environ["CONFIDANT_BIN"]).resolve()
FILLED_IN = {
    "DOMAIN": "confidant.example.org",
    "CHECKPOINT_ENCRYPTION_KEY": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    "POSTGRES_PASSWORD": "fromtheenvfile",
}


def composed() -> dict:
    """The file with what its environment file has, filled in as a person would."""
    lines = [line for line in (COMPOSE / "example.env").read_text().splitlines() if not line.startswith("#")]
    values = dict(line.split("=", 1) for line in lines) | FILLED_IN

    def value(found: re.Match[str]) -> str:
        name, kind, default = found[1], found[2], found[3]
        assert name in values or kind == "-", f"example.env has no {name}"
        given = values.get(name, "")
        assert given or kind != "?", f"{name} may not be empty: {default}"
        return given or (default if kind == "-" else "")

    return yaml.safe_load(re.sub(r"\$\{(\w+)(?::([?-])([^}]*))?\}", value, (COMPOSE / "compose.yaml").read_text()))


def ours(file: dict) -> dict[str, dict]:
    """Its services that are Confidant."""
    return {name: service for name, service in file["services"].items() if service["image"].startswith("confidant:")}


def settings(service: dict, image: dict[str, str]) -> dict[str, str]:
    """What a process of this service has in its environment."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return clean | image | {name: str(value) for name, value in service["environment"].items()}


def image_settings() -> dict[str, str]:
    """Those that the image has."""
    code = (
        "import json, sys; sys.dont_write_bytecode = True; sys.path.insert(0, 'packaging'); from make.image import settings; "
        "from types import SimpleNamespace; print(json.dumps(settings(SimpleNamespace(version='1'))['Env']))"
    )
    said = subprocess.run(["python3", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name: value for name, value in (line.split("=", 1) for line in json.loads(said)) if name.startswith("CONFIDANT_")}


def test_every_name_in_the_compose_file_leads_somewhere() -> None:
    file = composed()
    services = file["services"]
    assert set(ours(file)) == {"gateway", "worker"}
    for name, service in services.items():
        assert set(service["networks"]) <= set(file["networks"]), name
        assert set(service.get("depends_on", {})) <= set(services), name
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in file["volumes"] or (COMPOSE / source).is_file(), f"{name}: {source}"
        for other, wish in service.get("depends_on", {}).items():
            healthy = "healthcheck" in services[other] or other in ours(file)
            assert wish == {"condition": "service_healthy"} and healthy, f"{name}: {other}"
    # The world reaches the proxy, and nothing but ours reaches the stores.
    assert [name for name, service in services.items() if "ports" in service] == ["tls"]
    assert {name for name, service in services.items() if service["networks"] == ["inside"]} == {"postgres", "redis"}
    assert file["networks"]["inside"] == {"internal": True}
    upstream = re.search(r"reverse_proxy (\w+):(\d+)", (COMPOSE / "Caddyfile").read_text())
    assert upstream and upstream[1] in services and image_settings()["CONFIDANT_SERVER__LISTEN"] == f"0.0.0.0:{upstream[2]}"


@pytest.mark.parametrize("name", ["gateway", "worker"])
def test_every_setting_in_the_compose_file_is_one(name: str, tmp_path: Path) -> None:
    service = ours(composed())[name]
    env = settings(service, image_settings())
    done = subprocess.run([BINARY, "config", "--effective", "--json"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sources = {one["source"] for one in json.loads(done.stdout)["settings"]}
    given = {variable for variable in env if variable.startswith("CONFIDANT_") and env[variable]}
    assert given <= sources, "named in the file and used by nothing"
    # Whatever is wrong with an argument is found before the help is printed.
    done = subprocess.run([BINARY, *service["command"], "--help"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0 and "Usage: confidant serve" in done.stdout, done.stderr


def test_its_gateway_and_worker_answer_on_its_database(tmp_path: Path) -> None:
    program = shutil.which("redis-server")
    assert program, "redis-server is not installed\nhint: scripts/services apt"
    services = ours(composed())
    with postgres_servers.server() as (postgres, folder), redis_servers.server(program) as redis:
        make_database(folder, postgres)
        here = {"@postgres/": f"@127.0.0.1:{postgres}/", "//redis:6379": f"//127.0.0.1:{redis}"}

        def env(name: str) -> dict[str, str]:
            found = settings(services[name], image_settings() | {"CONFIDANT_SERVER__DATA_DIR": str(tmp_path / "data")})
            for away, near in here.items():
                found = {key: value.replace(away, near) for key, value in found.items()}
            return found

        (tmp_path / "data").mkdir(mode=0o700)
        front, back = free_port(), free_port()
        asked = env("gateway") | {"CONFIDANT_SERVER__LISTEN": f"127.0.0.1:{front}"}
        gone = ask_whether_ready(BINARY, env=asked, folder=tmp_path)
        assert gone.returncode == 2 and f"no server answers on 127.0.0.1:{front}" in gone.stderr, gone.stderr
        arguments = [argument.replace("0.0.0.0:7367", f"127.0.0.1:{back}") for argument in services["worker"]["command"]]
        with served(BINARY, env=env("worker"), folder=tmp_path, arguments=tuple(arguments), port=back):
            with served(BINARY, env=env("gateway"), folder=tmp_path, arguments=tuple(services["gateway"]["command"]), port=front):
                first_answer(front, tmp_path / "data")
        # What a health check says of a gateway whose workers are gone.
        process = subprocess.Popen([BINARY, *services["gateway"]["command"]], cwd=tmp_path, env=asked, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            assert process.stderr is not None
            assert any(b"listening on" in line for line in process.stderr)
            alone = ask_whether_ready(BINARY, env=asked, folder=tmp_path)
            assert alone.returncode == 2 and "is not ready: " in alone.stderr and "--role worker" in alone.stderr, alone.stderr
        finally:
            process.kill()
            process.communicate()


def make_database(folder: Path, port: int) -> None:
    """With the script that the database's container runs at its first start, on an empty server."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    programs = Path(postgres_servers.program("psql")).parent
    env |= {"PATH": f"{programs}:{env['PATH']}", "PGHOST": str(folder), "PGPORT": str(port), "CONFIDANT_PASSWORD": FILLED_IN["POSTGRES_PASSWORD"]}
    empty = ["psql", "-q", "-U", "postgres", "-c", "DROP DATABASE confidant", "-c", "DROP ROLE confidant"]
    subprocess.run(empty, env=env, check=True)
    subprocess.run(["sh", COMPOSE / "postgres.sh"], env=env, check=True, capture_output=True)
    asked = ["psql", "-qtA", "-U", "postgres", "-c", "SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = 'confidant'"]
    assert subprocess.run(asked, env=env, check=True, capture_output=True, text=True).stdout == "f|f\n"


def test_the_release_makes_every_package_and_does_nothing_else() -> None:
    release = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    (job,) = release["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[0] == "scripts/package" and len(commands) == 2 and commands[1].startswith("gh release create ")
    assert "--draft" in commands[1] and release["permissions"] == {"contents": "write"}
