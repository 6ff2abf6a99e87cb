#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests: in the release build (in guests with several NUMA nodes, too), under
# AddressSanitizer and UndefinedBehaviorSanitizer (a build that clang's thread-safety analysis has passed), under ThreadSanitizer (what
# links no gRPC), and libFuzzer, for a short while from the committed inputs.
#
#   ./tests/run.sh [release|asan|tsan|fuzz ...]     only these parts
#
# The last line is the count. Exit status 0 where nothing failed. Works on a bare Debian 12 as root, or as a user with sudo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/packages.sh
[[ ${1-} == --help || ${1-} == -h ]] && { print_header "$0"; exit 0; }

# One seed for every random test: PIPEYARD_SEED=N repeats a run.
[[ ${PIPEYARD_SEED-} ]] && export RC_PARAMS="seed=$PIPEYARD_SEED"

parts=("$@")
((${#parts[@]})) || parts=(release asan tsan fuzz)
for part in "${parts[@]}"; do
  [[ $part =~ ^(release|asan|tsan|fuzz)$ ]] || { say "there is no part '$part'"; exit 2; }
done
install_missing "${packages_to_build[@]}" "${packages_to_test[@]}"
if [[ " ${parts[*]} " == *" release "* ]]; then
  for kernel in 6.1 6.12; do deploy/qemu/run --prepare --kernel $kernel || say "tests in guests will be skipped"; done
fi

failed=0
reports=()
started=$SECONDS
for part in "${parts[@]}"; do
  tests=ON
  target=all
  [[ $part == fuzz ]] && tests=OFF && target=fuzzers
  say "$part: configuring and building (at $((SECONDS - started)) s)"
  mkdir -p build
  cmake --preset "$part" -DPIPEYARD_BUILD_TESTS=$tests >"build/$part.configure.log" 2>&1 || { tail -n 30 "build/$part.configure.log" >&2; exit 1; }
  cmake --build "build/$part" --target "$target" --parallel "$(build_jobs)" >"build/$part.build.log" 2>&1 || { grep -A 20 -m 3 -E 'FAILED|error:' "build/$part.build.log" >&2; say "$part: the build failed (build/$part.build.log)"; exit 1; }
  say "$part: testing (at $((SECONDS - started)) s)"
  report=build/$part/junit.xml
  rm -f "$report"
  part_failed=0
  ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
    ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-16 TSAN_OPTIONS=external_symbolizer_path=/usr/bin/llvm-symbolizer-16 \
    ctest --test-dir "build/$part" --output-on-failure --parallel 2 --output-junit "$PWD/$report" >"build/$part.test.log" 2>&1 || part_failed=1
  if ((part_failed)); then
    failed=1
    grep -vE '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test.*Passed)' "build/$part.test.log" >&2 || true
  fi
  reports+=("$report")
done
say "took $((SECONDS - started)) s"
if ((${#reports[@]})); then python3 tests/summary.py "${reports[@]}" || failed=1; fi
exit $failed
