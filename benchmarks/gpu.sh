#!/usr/bin/env bash
# Bandwidth of the verbs between the devices of this machine, by the formulas of nccl-tests, beside NCCL's own collectives on the same buffers:
# benchmarks/gpu/verbs.cpp. Says so and ends well where nothing can be measured. gpu.sh [PROGRAM [OPTION...]]
set -euo pipefail
program=${1:-$(dirname "$0")/../build/bench/benchmarks/gpu/verbs}
if [[ ! -x $program ]]; then
  echo "gpu: not measured: no CUDA toolkit with NCCL" >&2
  exit 0
fi
exec "$program" "${@:2}"
