#!/usr/bin/env bash
# Builds the fuzzers with libFuzzer (clang) and runs each for a while.
#   ./scripts/fuzz.sh                     every target, 60 seconds each
#   ./scripts/fuzz.sh 600                 every target, ten minutes each
#   ./scripts/fuzz.sh 300 config snapshot only these
# Prints executions and coverage of each. What is found is kept in fuzz/findings/TARGET (one file
# per input; `build/fuzz/fuzz_TARGET FILE` runs it again in the normal build), what was learnt in
# fuzz/corpus/TARGET; neither is committed: a finding becomes a named test. JOBS=N targets at once.
# CONDUCTOR_SEED=N is libFuzzer's seed. Ends with 1 when anything was found.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  -h | --help) sed -n '2,9p' "$0"; exit 0 ;;
esac
seconds=${1:-60}
[ $# -gt 0 ] && shift
case "$seconds" in
  '' | *[!0-9]*) echo "fuzz.sh: expected seconds, got '$seconds'" >&2; exit 2 ;;
esac
all="engine_payload store_payload object_key replay_reply snapshot http_body http_framing"
all+=" http2_session log_record snapshot_file config operations"
targets=${*:-$all}
jobs=${JOBS:-1}
seed=${CONDUCTOR_SEED:-$RANDOM}
for target in $targets; do
  case " $all " in
    *" $target "*) ;;
    *) echo "fuzz.sh: unknown target '$target': expected one of $all" >&2; exit 2 ;;
  esac
done

cmake --preset fuzz >/dev/null
# shellcheck disable=SC2046,SC2086
cmake --build --preset fuzz -j "${BUILD_JOBS:-$(nproc)}" --target $(printf 'fuzz_%s ' $targets) \
  >build-fuzz/log || { tail -n 40 build-fuzz/log >&2; exit 1; }

run() {
  local target=$1 program=build-fuzz/fuzz/fuzz_$1
  local corpus=fuzz/corpus/$1 findings=fuzz/findings/$1
  mkdir -p "$corpus" "$findings"
  CONDUCTOR_FUZZ_SEEDS=$corpus "$program"
  local status=0
  # -timeout: one input must not take long; -rss_limit_mb: nor much memory.
  "$program" -seed="$seed" -max_total_time="$seconds" -max_len=4096 -timeout=25 \
    -rss_limit_mb=3072 -print_final_stats=1 -artifact_prefix="$findings/" "$corpus" \
    >"$findings/log" 2>&1 || status=$?
  local executions coverage
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$findings/log")
  coverage=$(grep -o 'cov: [0-9]* ft: [0-9]*' "$findings/log" | tail -1 || true)
  if [ "$status" -eq 0 ]; then
    printf '%-15s %10s executions  %s\n' "$target" "$executions" "$coverage"
    return 0
  fi
  printf '%-15s %10s executions  %s  FOUND something (seed %s):\n' \
    "$target" "$executions" "$coverage" "$seed"
  grep -aE -A 3 'property broken|ERROR: |runtime error|CHECK failed|Test unit written' \
    "$findings/log" | cut -c 1-400 | head -40
  return 1
}
export -f run
export seed seconds
# A small quarantine: states are large, and touching fresh memory for each costs more than the work.
export ASAN_OPTIONS=quarantine_size_mb=32
export UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS="suppressions=$PWD/tests/lsan-suppressions.txt"

echo "CONDUCTOR_SEED=$seed"
# shellcheck disable=SC2086
printf '%s\n' $targets | xargs -P "$jobs" -I{} bash -c 'run {}'
