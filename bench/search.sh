#!/bin/sh
# How fast search is and how well it finds, beside plain FTS5: bench/search.sh latency|quality [options]
set -eu
cd "$(dirname "$0")/.."
exec cargo run --release --quiet -p confidant-memory --features embeddings --example search -- "$@"
