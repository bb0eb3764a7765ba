#!/usr/bin/env bash
# Builds the benchmarks and runs them.
#   TRACE=FILE bench/run.sh --large [--dir DIR]
#                        every row, and writes the results part of docs/benchmarks.md anew
#   bench/run.sh         prints every row in the usual sizes, of the small trace
#   bench/run.sh WORDS   prints; WORDS go to conductor-bench, single groups too: bench/run.sh query
# Only the first writes the page: a page of anything less would lack rows. --print never writes.
# JOBS=N sets the number of parallel build jobs. Close other programs first: the rows are timed.
set -euo pipefail
cd "$(dirname "$0")/.."

print=no
case "${1:-}" in
  --print) print=yes; shift ;;
  -h | --help) sed -n '2,8p' "$0"; exit 0 ;;
esac
# Whether the page would be whole: all groups, the large sizes, a trace that was chosen.
whole=no
[ -n "${TRACE:-}" ] && [ "${1:-}" = --large ] && whole=yes
case "$#:${2:-}" in 1: | 3:--dir) ;; *) whole=no ;; esac
if [ "$print" = no ] && [ "$whole" = no ]; then
  print=yes
  echo "run.sh: prints only; docs/benchmarks.md is written by TRACE=FILE bench/run.sh --large" >&2
fi
trace=${TRACE:-examples/trace_small.jsonl}
groups=all
case "${1:-}" in [a-z]*) groups= ;; esac  # named groups come first

cmake --preset release >/dev/null
cmake --build --preset release -j "${JOBS:-$(nproc)}" --target conductor_bench conductor_python >&2
bench=build/bench/conductor-bench
words=(--trace "$trace" --python build/python "$@")
if [ "$print" = yes ]; then
  exec "$bench" ${groups:+"$groups"} "${words[@]}"
fi

page=docs/benchmarks.md
marker='<!-- bench/run.sh writes what follows. -->'
grep -qxF "$marker" "$page" || { echo "run.sh: $page: the line '$marker' is missing" >&2; exit 1; }
output=$(mktemp)
trap 'rm -f "$output" "$output.page"' EXIT
# A process for each group: none finds what another left of the memory. Snapshots of tens of millions
# of blocks besides: who waits for one, and how long a start takes.
{
  for group in $("$bench" groups); do "$bench" "$group" "${words[@]}"; done
  "$bench" snapshot --blocks 20000000
} | tee "$output"

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
