#!/usr/bin/env bash
# Installs every Debian 12 package that Conductor needs to build, test and run its demo: once,
# quietly, and only what is missing. Needs root (or sudo) only when something is missing.
set -euo pipefail

packages=(
  ccache clang clang-format clang-tidy cmake curl g++ git ninja-build pkg-config
  libboost-dev libbz2-dev libcli11-dev libcpp-httplib-dev libexpected-dev
  libfmt-dev libgflags-dev libgmock-dev libgrpc++-dev libgtest-dev liblz4-dev libmsgpack-cxx-dev
  libprotobuf-dev librocksdb-dev libsimdjson-dev libsnappy-dev libspdlog-dev libssl-dev libxxhash-dev libzmq3-dev
  libzstd-dev nlohmann-json3-dev prometheus-cpp-dev protobuf-compiler protobuf-compiler-grpc
  pybind11-dev python3 python3-dev python3-msgpack python3-pytest python3-zmq zlib1g-dev
)

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "bootstrap: these packages are missing and need root: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "bootstrap: installing ${#missing[@]} packages" >&2
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
if ! { "${as_root[@]}" apt-get update -qq &&
       "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
         apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  echo "bootstrap: apt-get failed:" >&2
  tail -20 "$log" >&2
  exit 1
fi
rm -f "$log"
