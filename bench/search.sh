#!/bin/sh
# How fast search is and how well it finds, beside plain FTS5:
#   bench/search.sh latency [--sizes N,N]    bench/search.sh quality [--questions FILE] [--among N] [--locomo FILE]
set -eu
cd "$(dirname "$0")/.."
exec cargo run --release --quiet -p confidant-memory --example search -- "$@"
