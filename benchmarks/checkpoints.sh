#!/usr/bin/env bash
# Saving and loading a checkpoint of 1 GiB with two processes, beside writing and reading the same bytes by hand:
# benchmarks/checkpoints/files.cpp. checkpoints.sh [PROGRAM [MEBIBYTES [TURNS [FOLDER]]]]
set -euo pipefail
program=${1:-$(dirname "$0")/../build/bench/benchmarks/checkpoints/files}
if [[ ! -x $program ]]; then
  echo "checkpoints: not measured: no MPI" >&2
  exit 0
fi
exec mpiexec -n 2 "$program" "${@:2}"
