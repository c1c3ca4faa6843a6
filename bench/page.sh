#!/usr/bin/env bash
# Measures the page in Chromium (first load, unlocking, a chat of 2,000 messages, streaming, scrolling) against the program and writes
# bench/results/PAGE.md; some four minutes on an otherwise idle machine.
#
#   CONFIDANT_BIN   the program; without it, it is built with the profile "dist"
#   CHROMIUM        the browser; without it, /usr/bin/chromium
#   MESSAGES        messages of the long chat, 2000 without it
#   CONDITIONS      a sentence for the page of results: what else ran
#   OUT             another file for the page of results
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
(cd web && { [[ -d node_modules ]] || npm ci --ignore-scripts; } && node build.mjs)
if [[ -z ${CONFIDANT_BIN:-} ]]; then
  cargo build --profile dist --locked -p confidant
  CONFIDANT_BIN=$(realpath "${CARGO_TARGET_DIR:-target}/dist/confidant")
fi
export CONFIDANT_BIN
exec node bench/page/run.mjs
