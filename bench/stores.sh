#!/usr/bin/env bash
# Measures Confidant on Redis and PostgreSQL beside its peers and writes bench/results/STORES.md; some five minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=$(scripts/services bench-venv | tail -n 1)
cargo build --profile dist --locked -p confidant-bench -p confidant
target=${CARGO_TARGET_DIR:-target}/dist
exec "$venv/bin/python" bench/stores.py --bench "$target/confidant-bench" --confidant "$target/confidant"
