#!/usr/bin/env bash
# Installs what the tests need, builds the project in each kind of build, and runs every test.
#
#     test/run.sh                     release and python
#     test/run.sh --only asan,tsan    the same tests under AddressSanitizer with UBSan, ThreadSanitizer
#     test/run.sh --lint              clang-tidy, and every header compiled alone, too
#     test/run.sh --quick             release without the slow tests, the linter and python
#     test/run.sh --filter REGEX      only the tests whose names match (as ctest -R, pytest -k)
#     test/run.sh --no-install        no apt-get
#     test/run.sh --torch             the PyTorch example too (downloads PyTorch, some GB)
#
# Exit status: 0 if all passed, 1 if a test or a build failed, 4 for a wrong option. Python packages
# and the linter's memory go to $FL_TEST_CACHE (~/.cache/fl-test), compiled objects to ccache's
# folder; the source tree gets nothing but build/.
set -uo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; }

only=release,python
lint=false
quick=false
install=true
torch=false
filter=
while [ $# -gt 0 ]; do
  case "$1" in
    --only) only=${2:?--only needs a list}; shift ;;
    --filter) filter=${2:?--filter needs a regular expression}; shift ;;
    --quick) quick=true; only=release ;;
    --no-install) install=false ;;
    --torch) torch=true ;;
    --lint) lint=true ;;
    -h | --help) usage; exit 0 ;;
    *) echo "test/run.sh: unknown option $1" >&2; usage >&2; exit 4 ;;
  esac
  shift
done
for part in ${only//,/ }; do
  case "$part" in
    release | asan | tsan | python) ;;
    *) echo "test/run.sh: --only $part: use release, asan, tsan, python" >&2; exit 4 ;;
  esac
done

export FL_TEST_CACHE=${FL_TEST_CACHE:-$HOME/.cache/fl-test}
jobs=${FL_TEST_JOBS:-$(nproc)}
export CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-20G}
export CTEST_PARALLEL_LEVEL=$jobs CMAKE_BUILD_PARALLEL_LEVEL=$jobs
# A finding ends the program, so that the test fails whatever it expected.
export ASAN_OPTIONS=halt_on_error=1:detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1

summary=()
failures=0
# step NAME COMMAND…: runs it, says how long it took, remembers how it ended.
step() {
  local name=$1 begin=$SECONDS outcome
  shift
  printf '\n==== %s\n' "$name"
  if "$@" </dev/null; then outcome=passed; else outcome="FAILED"; failures=$((failures + 1)); fi
  summary+=("$(printf '%-24s %-7s %5d s' "$name" "$outcome" $((SECONDS - begin)))")
  printf '==== %s: %s after %d s\n' "$name" "$outcome" $((SECONDS - begin))
  [ "$outcome" = passed ]
}

finish() {
  printf '\n==== Summary of test/run.sh\n'
  printf '%s\n' "${summary[@]}"
  printf '%-24s %-7s %5d s\n' all "$([ "$failures" -eq 0 ] && echo passed || echo FAILED)" "$SECONDS"
  exit $((failures > 0))
}

# Python packages for the SDK's tests and for tests of trainers, in an environment of their own.
prepare_python() {
  local venv=$FL_TEST_CACHE/venv extra=()
  $torch && extra=(torch)
  export FL_TEST_PYTHON=$venv/bin/python
  [ -x "$FL_TEST_PYTHON" ] || python3 -m venv "$venv" || return 1
  # From a copy, since a build of it leaves files beside its sources.
  local copy pip=("$FL_TEST_PYTHON" -m pip install --quiet --disable-pip-version-check)
  copy=$(mktemp -d) || return 1
  cp -r plugins/python/. "$copy" && "${pip[@]}" "$copy[test]" "${extra[@]}" &&
    "${pip[@]}" --force-reinstall --no-deps "$copy"
  local outcome=$?
  rm -rf "$copy"
  return $outcome
}

run_pytest() {
  "$FL_TEST_PYTHON" -m pytest -p no:cacheprovider -q ${filter:+-k "$filter"} plugins/python
  local outcome=$?
  # With a filter, none of these may match.
  [ -n "$filter" ] && [ "$outcome" -eq 5 ] && return 0
  return $outcome
}

configure_and_build() {
  cmake --preset "$1" -DBUILD_TESTING=ON >/dev/null && cmake --build --preset "$1"
}

run_ctest() {
  local preset=$1 options=(--timeout 300 --no-tests=error) prefix=()
  # ThreadSanitizer of g++ 12 cannot place its memory where the kernel randomises much.
  if [ "$preset" = tsan ] && setarch -R true 2>/dev/null; then prefix=(setarch -R); fi
  # What takes minutes in an ordinary build would take an hour in these.
  case "$preset" in asan | tsan) options+=(-LE slow) ;; esac
  $quick && options+=(-LE slow)
  $lint || options+=(-E '^check/(tidy|headers)$')
  [ -n "$filter" ] && options+=(-R "$filter")
  "${prefix[@]}" ctest --preset "$preset" "${options[@]}"
}

if $install; then
  step "install packages" packaging/dependencies.sh build test || finish
fi
if [ -f plugins/python/pyproject.toml ] && ! $quick; then
  step "install for python" prepare_python || finish
fi
for part in ${only//,/ }; do
  case "$part" in
    python) if [ -f plugins/python/pyproject.toml ]; then step "python: test" run_pytest; fi ;;
    *) step "$part: build" configure_and_build "$part" && step "$part: test" run_ctest "$part" ;;
  esac
done
finish
