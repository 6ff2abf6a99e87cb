#!/usr/bin/env bash
# Prints every speed figure as a ratio against a peer that is measured in the same run: one JSON row a line on stdout
#   {"name", "peer", "ratio", "ci95", "n", "unit", "ours", "theirs", "reach"}
# ratio is the median over interleaved rounds of ours / theirs, ci95 its order-statistic interval, n the rounds;
# ours and theirs are the medians. Everything else goes to stderr.
#
#   ./tests/bench.sh [engine|workloads|controller|analysis] [--json FILE] [--rounds N] [--duration-ms N] [--only TEXT] [--seed N]
#
# engine: the engine beside pipe(2), hackbench and malloc. workloads: each workload on target kernel beside an independent program
# that does the same (hackbench, and plain loops in tests/bench/*_peer.c); both ought to agree.
# Installs what is missing and builds build/release (optimized) and the peers first. Nothing else should run on the machine meanwhile.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/packages.sh
[[ " $* " == *" --help "* || " $* " == *" -h "* ]] && { print_header "$0"; exit 0; }

build=build/release
install_missing "${packages_to_build[@]}" "${packages_to_bench[@]}"
# Not the cache, which a configuration that failed leaves behind as well.
if [[ ! -e $build/build.ninja ]]; then
  say "configuring $build"
  cmake --preset release -DPIPEYARD_BUILD_TESTS=OFF >&2
fi
cmake --build "$build" --target pipeyard-worker bench >&2
PYTHONDONTWRITEBYTECODE=1 exec python3 tests/bench/bench.py --worker "$build/bin/pipeyard-worker" --bench "$build/bench" --protos proto "$@"
