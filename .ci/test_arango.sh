#!/usr/bin/env bash
# The contract suite on a real ArangoDB.
#   .ci/test_arango.sh [server] [cluster]     both unless named
# HADES_TEST_ARANGO_URL names a server of your own, and then only that one is tested; its data may be lost.
# Otherwise the scripts `start` and `start-cluster` of the folder HADES_ARANGOD (default: ../shared/tools/arangod)
# start a server and a cluster of three DB servers on loopback, and stop them afterwards.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

suite() {
  .venv/bin/python -m pytest -q -rs -p no:randomly tests/contract
}

if [ -n "${HADES_TEST_ARANGO_URL:-}" ]; then
  suite
  exit
fi

tools=${HADES_ARANGOD:-../shared/tools/arangod}
if [ ! -x "$tools/start" ]; then
  echo "no ArangoDB to test: HADES_TEST_ARANGO_URL names none and $tools/start is not there" >&2
  echo "deployments/compose.test-arango.yaml starts one where there is Docker" >&2
  exit 3
fi
if [ "$(uname -m)" != x86_64 ]; then
  echo "no ArangoDB to test: the server of $tools runs on x86-64, this machine is $(uname -m)" >&2
  exit 3
fi

folder=$(mktemp -d)
stop_all() {
  "$tools/stop" "$folder/server" >/dev/null 2>&1 || true
  "$tools/stop-cluster" "$folder/cluster" >/dev/null 2>&1 || true
  rm -rf "$folder"
}
trap stop_all EXIT

engines=("$@")
[ $# -gt 0 ] || engines=(server cluster)
for engine in "${engines[@]}"; do
  case $engine in
    server) started=$("$tools/start" "$folder/server") ;;
    cluster) started=$("$tools/start-cluster" "$folder/cluster" 3) ;;
    *) echo "$engine is neither server nor cluster" >&2; exit 2 ;;
  esac
  echo "== contract suite on a real ArangoDB: $engine"
  (eval "$started"; suite)
done
