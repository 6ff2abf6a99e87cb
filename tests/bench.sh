#!/usr/bin/env bash
# Prints every speed figure as a ratio against a peer that is measured in the same run: one JSON row a line on stdout
#   {"name", "peer", "ratio", "ci95", "n", "unit", "ours", "theirs"}
# ratio is the median over interleaved rounds of ours / theirs, ci95 its order-statistic interval, n the rounds; ours and theirs are
# the medians. Everything else goes to stderr.
#
#   ./tests/bench.sh [engine|controller|analysis] [--json FILE] [--rounds N] [--duration-ms N] [--seed N]
#
# Builds build/release (optimized) and the peers first. Nothing else should run on the machine meanwhile.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/packages.sh

build=build/release
if [[ ! -e $build/CMakeCache.txt ]]; then
  install_missing "${packages_to_build[@]}" python3
  say "configuring $build"
  cmake --preset release -DPIPEYARD_BUILD_TESTS=OFF >&2
fi
cmake --build "$build" --target pipeyard-worker >&2
peer=$build/tests/pipe_peer
mkdir -p "$build/tests"
if [[ tests/bench/pipe_peer.c -nt $peer ]]; then
  cc -O2 -std=gnu11 -Wall -Wextra -Werror -pthread tests/bench/pipe_peer.c -o "$peer"
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 tests/bench/bench.py --worker "$build/bin/pipeyard-worker" --peer "$peer" --protos proto "$@"
