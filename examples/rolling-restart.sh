#!/usr/bin/env bash
# Restarts every node, one at a time, and only while the cluster can spare it. Exit codes and jq only.
# Usage: rolling-restart.sh CONTEXT COMMAND…   COMMAND gets the node's id: rolling-restart.sh prod ./restart-redis.sh
# Exits 0: every node was restarted and the cluster is healthy. Anything else: the exit code of what failed.
set -euo pipefail
context=${1:?usage: rolling-restart.sh CONTEXT COMMAND…}
shift
: "${1:?usage: rolling-restart.sh CONTEXT COMMAND…}"
ask() { "${SEQ:-seq}" "$@" -c "$context" --no-input -o json; }
patience=${PATIENCE:-5m}

list=$(ask node list)
for node in $(jq -r '.data.nodes[].id' <<<"$list"); do
  echo "$node: waiting until it may be restarted" >&2
  ask wait --for restart-safe --timeout "$patience" >/dev/null
  "$@" "$node"
  echo "$node: restarted; waiting until the cluster is healthy" >&2
  ask wait --for healthy --timeout "$patience" >/dev/null
done
