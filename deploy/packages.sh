# Sourced by deploy/demo.sh, deploy/qemu/ and tests/run.sh: the Debian 12 packages that Pipeyard needs, and how to get those that are missing.

packages_to_build=(
  g++ cmake ninja-build pkg-config mold
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev
  libsqlite3-dev libyaml-cpp-dev nlohmann-json3-dev libfmt-dev libspdlog-dev libcli11-dev
  libcpp-httplib-dev libssl-dev
)
packages_to_test=(
  python3 procps sqlite3 stress-ng rt-tests libgtest-dev libgmock-dev librapidcheck-dev
  clang-16 libclang-rt-16-dev llvm-16 clang-format-14
)
# For tests/bench.sh: the peers.
packages_to_bench=(python3 rt-tests libmimalloc2.0 util-linux)
# For deploy/qemu/run. The guests' kernels are fetched, not installed: deploy/qemu/kernel.sh.
packages_for_guests=(python3 qemu-system-x86 busybox-static)

# guest_cache: where the guests' kernels are kept.
guest_cache() {
  if [[ ${XDG_CACHE_HOME-} ]]; then
    echo "$XDG_CACHE_HOME/pipeyard/guests"
  else
    echo "$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")/build/guests"
  fi
}

# build_jobs: as many compilers as CPUs, but no more than the free memory holds at 1 GiB each (what includes gRPC needs 0.6 to 1 GB).
build_jobs() {
  local cpus gibibytes
  cpus=$(nproc)
  gibibytes=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
  echo $((gibibytes < 1 ? 1 : gibibytes < cpus ? gibibytes : cpus))
}

# print_header SCRIPT: the comment that a script begins with.
print_header() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$1"; }

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

# install_missing PACKAGE...: quick and silent where nothing is missing.
install_missing() {
  local package missing=() as_root=()
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  if ((EUID != 0)); then
    command -v sudo >/dev/null || { say "these packages are missing and neither root nor sudo is at hand: ${missing[*]}"; return 1; }
    as_root=(sudo)
  fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
         apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    say "apt-get failed; its full output is in $log"
    return 1
  fi
  rm -f "$log"
}
