#!/usr/bin/env bash
# Builds and runs every test.
#   ./scripts/test.sh              release build (build/)
#   ./scripts/test.sh asan         AddressSanitizer + UndefinedBehaviorSanitizer (build-asan/)
#   ./scripts/test.sh tsan         ThreadSanitizer (build-tsan/); dev: a debug build (build-dev/)
#   ./scripts/test.sh release -R storage    further words go to ctest
# Output of failing tests is shown; JOBS=N sets the number of parallel jobs.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-release}
[ $# -gt 0 ] && shift
case "$preset" in
  release) build=build ;;
  dev | asan | tsan) build=build-$preset ;;
  -h | --help) sed -n '2,7p' "$0"; exit 0 ;;
  *) echo "test.sh: unknown preset '$preset': expected release, dev, asan or tsan" >&2; exit 2 ;;
esac
jobs=${JOBS:-$(nproc)}

./scripts/bootstrap.sh
cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset" -j "$jobs"
export UBSAN_OPTIONS=print_stacktrace=1
# Calls that uninstrumented libraries make are not looked at; the list has what is left of them. To
# look up a report's names, only to drop it, takes seconds.
export TSAN_OPTIONS="suppressions=$PWD/tests/tsan-suppressions.txt ignore_noninstrumented_modules=1"
export LSAN_OPTIONS="suppressions=$PWD/tests/lsan-suppressions.txt"
ctest --test-dir "$build" --output-on-failure -j "$jobs" "$@"
