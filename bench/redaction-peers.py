#!/usr/bin/env python3
"""Ours beside Presidio, detect-secrets, CredSweeper and Kingfisher, over the same labelled file, in one run.

    python3 bench/redaction-peers.py LABELLED.jsonl [--venv FOLDER]

Installs presidio-analyzer, detect-secrets, credsweeper and kingfisher-bin into a virtual environment (default:
target/redaction-peers), builds the example `score` and runs all five. A labelled place is found when half of it is
covered, or, where no place is labelled, when anything is found; the three scanners of files are asked for lines, so any
find in the text counts for them.
Speed is bytes of all texts by the seconds of one process on one thread, start-up aside. Kingfisher reads a folder with a
file for each text, which is what it is made for; its start-up is that of a run over an empty folder.

Presidio's usual English model is not on the package index. Without it a blank spaCy pipeline stands in: its pattern
recognisers work as always, its names do not, and it is FASTER than it would be with the model.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAMILIES = ["critical", "secrets", "clean", "clean, near misses aside", "EMAIL", "PHONE", "CREDIT_CARD", "IBAN"]


def load(path):
    return [json.loads(line) for line in open(path, encoding="utf8")]


def families(case):
    if case.get("scope") != "core":
        return []
    if case["tier"] == "clean":
        kind = case.get("neg_kind") or ""
        if kind.startswith("invalid"):
            return []
        return ["clean"] + (["clean, near misses aside"] if kind != "near_miss" else [])
    if case["tier"] == "critical":
        return ["critical"]
    if case["expect"] == "secret":
        return ["secrets"]
    return [case["entity"]] if case["entity"] in FAMILIES else []


def covered(case, found):
    """`found`: places in code points, or None for "somewhere"."""
    spans = case.get("spans") or ([case["span"]] if case.get("span") else [])
    if not spans or None in found:
        return bool(found)
    inside = lambda s, e: sum(max(0, min(e, b) - max(s, a)) for a, b in found)
    return all(2 * inside(s, e) >= e - s for s, e in spans)


def score(name, cases, results, seconds):
    size = sum(len(case["text"].encode()) for case in cases)
    tally = {family: [0, 0] for family in FAMILIES}
    for case, found in zip(cases, results):
        for family in families(case):
            tally[family][1] += 1
            tally[family][0] += bool(found) if family.startswith("clean") else covered(case, found)
    return [name, f"{size / 1e6 / seconds:.2f}"] + [f"{100 * a / max(b, 1):.2f}" for a, b in tally.values()]


def detect_secrets(cases):
    from detect_secrets import SecretsCollection
    from detect_secrets.settings import default_settings

    results = []
    with tempfile.TemporaryDirectory() as folder, default_settings():
        path = pathlib.Path(folder) / "text.txt"
        started = time.perf_counter()
        for case in cases:
            path.write_text(case["text"], encoding="utf8")
            secrets = SecretsCollection()
            secrets.scan_file(str(path))
            results.append([None] if list(secrets) else [])
        return results, time.perf_counter() - started


def credsweeper(cases):
    from credsweeper.app import CredSweeper
    from credsweeper.file_handler.string_content_provider import StringContentProvider

    sweeper, results = CredSweeper(), []
    scan = lambda text: sweeper.file_scan(StringContentProvider(text.split("\n"), file_path="text.txt", file_type=".txt"))
    scan("start = 1")
    started = time.perf_counter()
    for case in cases:
        sweeper.credential_manager.set_credentials(scan(case["text"]))
        sweeper.post_processing(lambda *_, **__: None)  # its model judges what its rules found
        results.append([None] if sweeper.credential_manager.get_credentials() else [])
    return results, time.perf_counter() - started


def kingfisher(cases):
    def scan(folder):
        program = pathlib.Path(sys.prefix) / "bin" / "kingfisher"
        options = ["--no-validate", "--no-dedup", "--no-update-check", "--format", "json", "--jobs", "1"]
        started = time.perf_counter()
        done = subprocess.run([program, "scan", folder, *options], capture_output=True, text=True)
        seconds = time.perf_counter() - started
        if done.returncode not in (0, 200):  # 200: something was found
            sys.exit(f"Kingfisher ended with {done.returncode}: {done.stderr[-500:]}")
        reports = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        lists = [report["findings"] for report in reports if isinstance(report.get("findings"), list)]
        return seconds, {int(pathlib.Path(one["finding"]["path"]).stem) for found in lists for one in found}

    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(cases):
            (pathlib.Path(folder) / f"{number}.txt").write_text(case["text"], encoding="utf8")
        scan(empty)  # its rules are compiled once and kept
        start, _ = scan(empty)
        seconds, touched = scan(folder)
    return [[None] if number in touched else [] for number in range(len(cases))], seconds - start


def presidio(cases):
    import logging

    import spacy

    logging.getLogger("tldextract").setLevel(logging.CRITICAL + 1)  # it looks for a list on the network and can do without
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    class Blank(SpacyNlpEngine):
        def load(self):
            self.nlp = {"en": spacy.blank("en")}

    if spacy.util.is_package("en_core_web_sm"):
        engine = SpacyNlpEngine(models=[{"lang_code": "en", "model_name": "en_core_web_sm"}])
    else:
        print("Presidio: no language model at hand; pattern recognisers on a blank pipeline", file=sys.stderr)
        engine = Blank()
    engine.load()
    analyzer = AnalyzerEngine(nlp_engine=engine, supported_languages=["en"])
    # What we leave alone on purpose is no fault of Presidio's either.
    entities = [e for e in analyzer.get_supported_entities("en") if e not in ("URL", "DATE_TIME", "NRP", "LOCATION")]
    analyzer.analyze("start@example.org", "en", entities=entities)
    started = time.perf_counter()
    results = [[(r.start, r.end) for r in analyzer.analyze(case["text"], "en", entities=entities)] for case in cases]
    return results, time.perf_counter() - started


def ours(path, count):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "found.jsonl"
        command = ["cargo", "run", "--release", "--quiet", "-p", "confidant-redact", "--example", "score", "--"]
        printed = subprocess.run(command + [str(path), "--dump-only", str(out)], cwd=ROOT, check=True, capture_output=True, text=True)
        seconds = float(printed.stdout.split()[-1])
        results = [[(f["start"], f["end"]) for f in json.loads(line)["findings"]] for line in open(out, encoding="utf8")]
    assert len(results) == count
    return results, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("labelled")
    parser.add_argument("--venv", default=str(ROOT / "target" / "redaction-peers"))
    arguments = parser.parse_args()
    python = pathlib.Path(arguments.venv) / "bin" / "python"
    if pathlib.Path(sys.prefix).resolve() != pathlib.Path(arguments.venv).resolve():
        if not python.exists():
            venv.create(arguments.venv, with_pip=True)
            packages = ["presidio-analyzer==2.2.366", "detect-secrets==1.5.0", "credsweeper==1.19.5", "kingfisher-bin==2.14.0"]
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
        sys.exit(subprocess.run([str(python), __file__, arguments.labelled, "--venv", arguments.venv]).returncode)
    path = pathlib.Path(arguments.labelled).resolve()
    cases = load(path)
    rows = [["", "MB/s", *FAMILIES]]
    rows.append(score("confidant", cases, *ours(path, len(cases))))
    rows.append(score("detect-secrets", cases, *detect_secrets(cases)))
    rows.append(score("credsweeper", cases, *credsweeper(cases)))
    rows.append(score("kingfisher", cases, *kingfisher(cases)))
    rows.append(score("presidio (patterns)", cases, *presidio(cases)))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths))))
    print("\nper cent of texts: found (critical: found, and by ours also blocked, see bench/redaction.sh), and touched for the clean")


if __name__ == "__main__":
    main()
