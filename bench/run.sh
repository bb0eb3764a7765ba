#!/usr/bin/env bash
# Builds the benchmarks, runs every row and writes the results part of docs/benchmarks.md anew.
#   bench/run.sh                      all rows, the small trace
#   bench/run.sh --print [WORDS]      prints instead, also single groups: bench/run.sh --print query
#   TRACE=FILE bench/run.sh --large   another trace; further words go to conductor-bench
# JOBS=N sets the number of parallel build jobs. Close other programs first: the rows are timed.
set -euo pipefail
cd "$(dirname "$0")/.."

print=no
case "${1:-}" in
  --print) print=yes; shift ;;
  -h | --help) sed -n '2,6p' "$0"; exit 0 ;;
esac
trace=${TRACE:-examples/trace_small.jsonl}
groups=all
case "${1:-}" in [a-z]*) groups= ;; esac  # named groups come first

cmake --preset release >/dev/null
cmake --build --preset release -j "${JOBS:-$(nproc)}" --target conductor_bench conductor_python >&2
command=(build/bench/conductor-bench ${groups:+"$groups"} --trace "$trace" --python build/python "$@")
if [ "$print" = yes ]; then
  exec "${command[@]}"
fi

page=docs/benchmarks.md
marker='<!-- bench/run.sh writes what follows. -->'
grep -qxF "$marker" "$page" || { echo "run.sh: $page: the line '$marker' is missing" >&2; exit 1; }
output=$(mktemp)
trap 'rm -f "$output" "$output.page"' EXIT
"${command[@]}" | tee "$output"

changes=
git diff --quiet HEAD || changes=' with uncommitted changes'
machine=$(sed -n 's/^machine: //p' "$output" | head -n 1)
{
  awk -v marker="$marker" '{ print } $0 == marker { exit }' "$page"
  printf '\nTrace: `%s`. Words: `%s`. %s.\n\nMachine: %s%s.\n' \
    "$(basename "$trace")" "${*:-none}" "$(date -u +%Y-%m-%d)" "$machine" "$changes"
  commit=${machine##*, }
  awk -v commit="$commit" '
    /^machine: / || /^$/ { next }
    /^[a-z]+ +CAL / {
      if (open) print "```"
      group = $1
      sub(/^[a-z]+ +/, "")
      printf "\n### %s\n\n%s, %s\n\n```text\n", group, $0, commit
      open = 1
      next
    }
    { print }
    END { if (open) print "```" }' "$output"
} >"$output.page"
cp "$output.page" "$page"
