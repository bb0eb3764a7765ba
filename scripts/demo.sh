#!/usr/bin/env bash
# The main job, on real processes: simulated engines serve a request trace, a router asks Conductor
# where each prompt should go, and the daemon is killed with -9 on the way.
#   ./scripts/demo.sh                   the bundled trace, some seconds after the build
#   ./scripts/demo.sh --fleet mixed     two vLLM ranks, a vLLM, an SGLang engine and a store
#   ./scripts/demo.sh --trace FILE      another trace: a JSON object a line, of which hash_ids (ids
#                                       of 512-token blocks) and input_length are read
#   ./scripts/demo.sh --keep            leave everything running and say how to look at it
# Further options: --requests N (stop after so many), --every N (requests a table row), --engines N,
# --blocks N (KV blocks of an engine).
set -euo pipefail
for word in "$@"; do
  case "$word" in
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
  esac
done
export CONDUCTOR_DEMO_FROM=$PWD  # paths are the caller's
cd "$(dirname "$0")/.."

./scripts/bootstrap.sh
cmake --preset release >/dev/null
cmake --build --preset release -j "$(nproc)" --target \
  mooncake_conductor conductorctl conductor_enginesim_main conductor_python >&2
PYTHONPATH=build/python exec /usr/bin/python3 scripts/demo.py "$@"
