"""A container image from nothing: the program, the authorities that sign certificates, and a user that is not root.

One file that `docker load`, `podman load` and `skopeo` take: an OCI layout, with the list that older versions of Docker look for. The
manifest is Docker's kind, since OCI's has no health check.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path

from make.notices import FILE, notices
from make.program import ROOT, CannotPackage, Program
from make.tars import Entry, packed, write_tar

USER = 65_532
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
KIND = "application/vnd.docker"
SECOND = 1_000_000_000


def make(program: Program, out: Path, time: int, level: int) -> list[Path]:
    """Writes the image."""
    layer = write_tar(root(program), time)
    small = packed(layer, level)
    moment = datetime.fromtimestamp(time, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = as_json(
        {
            "architecture": program.debian_machine,
            "os": "linux",
            "created": moment,
            "config": settings(program),
            "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
            "history": [{"created": moment, "created_by": "scripts/package image"}],
        }
    )
    manifest = as_json(
        {
            "schemaVersion": 2,
            "mediaType": f"{KIND}.distribution.manifest.v2+json",
            "config": described(f"{KIND}.container.image.v1+json", config),
            "layers": [described(f"{KIND}.image.rootfs.diff.tar.gzip", small)],
        }
    )
    name = f"confidant:{program.version}"
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [
            {
                **described(f"{KIND}.distribution.manifest.v2+json", manifest),
                "annotations": {"io.containerd.image.name": f"docker.io/library/{name}", "org.opencontainers.image.ref.name": program.version},
            }
        ],
    }
    older = [{"Config": blob(config), "RepoTags": [name], "Layers": [blob(small)]}]
    entries = [Entry(blob(content), content) for content in (config, manifest, small)]
    entries.append(Entry("index.json", as_json(index)))
    entries.append(Entry("manifest.json", as_json(older)))
    entries.append(Entry("oci-layout", as_json({"imageLayoutVersion": "1.0.0"})))
    path = out / f"confidant-{program.version}-{program.machine}-image.tar"
    path.write_bytes(write_tar(entries, time))
    return [path]


def settings(program: Program) -> dict[str, object]:
    """How a container starts, and how its runtime sees whether it is well."""
    labels = {"title": "Confidant", "description": "Private memory for AI agents", "licenses": "MIT OR Apache-2.0", "version": program.version}
    return {
        "User": f"{USER}:{USER}",
        "Env": ["PATH=/usr/bin", "HOME=/data", "CONFIDANT_SERVER__DATA_DIR=/data", "CONFIDANT_SERVER__LISTEN=0.0.0.0:7367"],
        "Entrypoint": ["/usr/bin/confidant"],
        "Cmd": ["serve"],
        "WorkingDir": "/data",
        "ExposedPorts": {"7367/tcp": {}},
        "Volumes": {"/data": {}},
        "StopSignal": "SIGTERM",
        "Healthcheck": {
            "Test": ["CMD", "/usr/bin/confidant", "doctor", "--ready"],
            "Interval": 30 * SECOND,
            "Timeout": 15 * SECOND,
            "StartPeriod": 60 * SECOND,
            "Retries": 3,
        },
        "Labels": {f"org.opencontainers.image.{key}": value for key, value in labels.items()},
    }


def root(program: Program) -> list[Entry]:
    """The whole file system, folders before what is in them."""
    if not AUTHORITIES.is_file():
        raise CannotPackage(f"{AUTHORITIES} is not there, so the image could not check certificates\nhint: apt-get install ca-certificates")
    files = [
        Entry("etc/group", f"root:x:0:\nconfidant:x:{USER}:\n".encode()),
        Entry("etc/nsswitch.conf", b"hosts: files dns\n"),
        Entry("etc/passwd", f"root:x:0:0:root:/:/none\nconfidant:x:{USER}:{USER}:Confidant:/data:/none\n".encode()),
        Entry(str(AUTHORITIES).lstrip("/"), AUTHORITIES.read_bytes()),
        Entry("usr/bin/confidant", program.path.read_bytes(), 0o755),
        Entry(f"usr/share/doc/confidant/{FILE}", notices()),
        *(Entry(f"usr/share/doc/confidant/{name}", (ROOT / name).read_bytes()) for name in ("LICENSE-APACHE", "LICENSE-MIT")),
        *(Entry(str(path).lstrip("/"), path.read_bytes(), 0o755) for path in libraries(program)),
    ]
    own = [Entry("data", None, 0o700, USER), Entry("tmp", None, 0o1777)]
    parents = {str(parent) for entry in files for parent in Path(entry.name).parents} - {"."}
    return sorted([*files, *own, *(Entry(name, None, 0o755) for name in parents)], key=lambda entry: entry.name)


def libraries(program: Program) -> list[Path]:
    """What a program that is not static is started with here: the same goes along."""
    if program.glibc is None:
        return []
    said = subprocess.run(["ldd", program.path], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\t(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", said, re.MULTILINE)
    if len(found) < len(program.libraries):
        raise CannotPackage(f"not every library of the program is on this machine:\n{said}")
    return [Path(name) for name in sorted(found)]


def described(kind: str, content: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": digest(content), "size": len(content)}


def blob(content: bytes) -> str:
    return f"blobs/{digest(content).replace(':', '/')}"


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def as_json(value: object) -> bytes:
    return f"{json.dumps(value, indent=1)}\n".encode()
