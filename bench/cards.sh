#!/bin/sh
# Cards of our own sessions, scored, beside those that were saved before:
#   bench/cards.sh --save FILE (on the older commit)    bench/cards.sh --beside FILE
set -eu
cd "$(dirname "$0")/.."
exec cargo run --release --quiet -p confidant-memory --example cards -- "$@"
