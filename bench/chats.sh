#!/usr/bin/env bash
# Measures client-sealed chats (sync on SQLite and PostgreSQL, idle sockets, logins, answers) and writes bench/results/CHATS.md;
# some four minutes on an otherwise idle machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=$(scripts/services bench-venv | tail -n 1)
cargo build --profile dist --locked -p confidant-bench -p confidant
target=${CARGO_TARGET_DIR:-target}/dist
exec "$venv/bin/python" bench/chats.py --bench "$target/chats-bench" --confidant "$target/confidant"
