#!/usr/bin/env bash
# Builds the simulation and runs many seeds of every kind of world, or of those named.
#   ./scripts/simulate.sh                       300 seeds of each: before a merge
#   ./scripts/simulate.sh 4000                  4,000 of each
#   ./scripts/simulate.sh 4000 SmallRings       only kinds with this in their name
# CONDUCTOR_SEED=N begins there instead of at 1; JOBS=N kinds at once. A kind ends at its first seed
# that fails, which is printed with the command that runs it alone. Ends with 1 when one failed.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  -h | --help) sed -n '2,7p' "$0"; exit 0 ;;
esac
seeds=${1:-300}
[ $# -gt 0 ] && shift
case "$seeds" in
  '' | 0 | *[!0-9]*) echo "simulate.sh: expected a number of seeds, got '$seeds'" >&2; exit 2 ;;
esac
first=${CONDUCTOR_SEED:-1}
program=build/tests/simulation/conductor_simulation_tests

./scripts/bootstrap.sh
cmake --preset release >/dev/null
cmake --build --preset release -j "${BUILD_JOBS:-$(nproc)}" --target conductor_simulation_tests \
  >/dev/null
kinds=$("$program" --gtest_list_tests --gtest_filter='SimulationTest.*' | sed -n 's/^  //p')
if [ $# -gt 0 ]; then
  kinds=$(grep -F "$(printf '%s\n' "$@")" <<<"$kinds") ||
    { echo "simulate.sh: no kind is named like that" >&2; exit 2; }
fi

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
run() {
  local kind=$1 log=$logs/$1
  if CONDUCTOR_SEED=$first CONDUCTOR_SEEDS=$seeds "$program" \
    --gtest_filter="SimulationTest.$kind" >"$log" 2>&1; then
    printf '%-45s %s seeds from %s: %s\n' "$kind" "$seeds" "$first" "$(grep '^frames' "$log")"
    return 0
  fi
  # It says which one it begins; a failed check of the program itself says nothing more.
  local seed
  seed=$(sed -n 's/^runs CONDUCTOR_SEED=//p' "$log" | tail -1)
  printf '%-45s FAILED at seed %s:\n' "$kind" "$seed"
  grep -av '^runs ' "$log" | tail -n 30
  printf "again: CONDUCTOR_TRACE=1 CONDUCTOR_SEED=%s %s --gtest_filter='*%s'\n" "$seed" "$program" \
    "$kind"
  return 1
}
export -f run
export program seeds first logs
printf '%s\n' "$kinds" | xargs -P "${JOBS:-1}" -I{} bash -c 'run {}'
