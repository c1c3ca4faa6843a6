#!/usr/bin/env bash
# Measures the graph of concepts and writes bench/results/CONCEPTS.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo build --release --quiet -p confidant-concepts --example concepts
target=${CARGO_TARGET_DIR:-target}
"$target/release/examples/concepts" | tee bench/results/CONCEPTS.md
