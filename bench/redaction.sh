#!/bin/sh
# Recall, precision and speed of the redactor beside their goals: bench/redaction.sh LABELLED.jsonl [--names] [--half A|B]
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { echo "usage: bench/redaction.sh LABELLED.jsonl [--names] [--show FAMILY] [--half A|B]" >&2; exit 2; }
exec cargo run --release --quiet -p confidant-redact --example score -- "$@"
