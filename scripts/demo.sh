#!/usr/bin/env bash
# The main job, on real processes: simulated vLLM engines serve a request trace, a router asks
# Conductor where each prompt should go, and the daemon is killed with -9 on the way.
#   ./scripts/demo.sh                   the bundled trace, some seconds after the build
#   ./scripts/demo.sh --fleet mixed     two vLLM ranks, a vLLM, an SGLang engine and a store
#   ./scripts/demo.sh --trace FILE      another Mooncake-format trace (JSON lines)
#   ./scripts/demo.sh --keep            leave everything running and say how to look at it
#   ./scripts/demo.sh --help            all options
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/bootstrap.sh
cmake --preset release >/dev/null
cmake --build --preset release -j "$(nproc)" --target \
  mooncake_conductor conductorctl conductor_enginesim_main conductor_python >&2
PYTHONPATH=build/python exec /usr/bin/python3 scripts/demo.py "$@"
