#!/usr/bin/env bash
# Fails where clang-format 14 would change a source file. Version 16 differs, so no other version serves.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v clang-format-14 >/dev/null || { echo "SKIP: clang-format-14 is not installed"; exit 77; }
mapfile -t files < <(find base proto workloads storage agent controller tests -name '*.h' -o -name '*.cc' | sort)
clang-format-14 --dry-run --Werror "${files[@]}"
echo "${#files[@]} files are formatted"
