#!/usr/bin/env bash
# Installs what is missing, builds Pipeyard, and runs `pipeyard demo`: a controller and agents on this machine, a real sweep, and its
# before/after table.
#
#   ./deploy/demo.sh [--setup-only] [--quick] [--hosts N]
#
# --setup-only stops after the build; the programs are then in build/release/bin/. Everything else is handed to `pipeyard demo`.
# Works on a bare Debian 12 as root, or as a user with sudo. Quick when nothing has changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/packages.sh
[[ ${1-} == --help || ${1-} == -h ]] && { print_header "$0"; exit 0; }

setup_only=
if [[ ${1-} == --setup-only ]]; then setup_only=1; shift; fi

install_missing "${packages_to_build[@]}"

# Not the cache, which a configuration that failed leaves behind as well.
if [[ ! -e build/release/build.ninja ]]; then
  say "configuring build/release"
  # Tests need more packages: tests/run.sh turns them on.
  cmake --preset release -DPIPEYARD_BUILD_TESTS=OFF >build-release.log 2>&1 || { tail -n 30 build-release.log >&2; exit 1; }
  rm -f build-release.log
fi
say "building the programs into build/release/bin (some minutes the first time)"
cmake --build build/release --parallel "$(build_jobs)" --target pipeyard pipeyard-controller pipeyard-agent pipeyard-worker | sed -u -n '/^\[[0-9]*0\//p;/error/p;/FAILED/p' >&2

[[ $setup_only ]] && { say "done: build/release/bin/pipeyard --help"; exit 0; }
[[ " $* " == *" --quick "* ]] || install_missing "${packages_to_demo[@]}"  # its one sweep runs no command
say "running: build/release/bin/pipeyard demo $*"
exec build/release/bin/pipeyard demo "$@"
