#!/usr/bin/env bash
# Says which of our C++ sources clang-format would write otherwise. `format.sh --fix` writes them.
set -euo pipefail
cd "$(dirname "$0")/../.."
tool=$(command -v clang-format-19) || { echo "clang-format-19 is missing: apt-get install clang-format-19"; exit 77; }
mode=(--dry-run -Werror)
[ "${1:-}" = --fix ] && mode=(-i)
find $(ls -d lib cmd test plugins 2>/dev/null) \( -name build -o -name .venv \) -prune -o \( -name '*.h' -o -name '*.cc' -o -name '*.inc' \) -print0 \
  | xargs -0 -r "$tool" --style=file "${mode[@]}"
