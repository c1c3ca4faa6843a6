#!/bin/sh
# How fast search is and how well it finds, beside plain FTS5:
#   bench/search.sh latency [--sizes N,N] [--vectors]    bench/search.sh quality [--questions FILE] [--locomo FILE]
# The encoder is built in where it is measured; it takes minutes to build.
set -eu
cd "$(dirname "$0")/.."
features=
case " $* " in
  *" quality "*|*" --vectors "*) features="--features embeddings" ;;
esac
# shellcheck disable=SC2086 # none or two words
exec cargo run --release --quiet -p confidant-memory $features --example search -- "$@"
