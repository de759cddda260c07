#!/usr/bin/env bash
# Repairs a divergent stream: plan, apply, prove. Exit codes and jq only. Usage: repair-divergent-stream.sh CONTEXT
# Exits 0: nothing diverges. 1: a person must decide between two blocks. Anything else: the exit code of seq.
set -euo pipefail
context=${1:?usage: repair-divergent-stream.sh CONTEXT}
ask() { "${SEQ:-seq}" "$@" -c "$context" --no-input -o json; }

for attempt in 1 2 3; do
  plan=$(ask repair plan) || exit $?
  if [ "$(jq '.data.undecidable | length' <<<"$plan")" -gt 0 ]; then
    jq -r '.data.undecidable[] | "\(.height): \(.why)"' <<<"$plan" >&2
    exit 1
  fi
  if [ "$(jq '.data.steps | length' <<<"$plan")" -eq 0 ]; then break; fi
  status=0
  ask repair apply --confirm "$(jq -r .data.digest <<<"$plan")" --reason "repair-divergent-stream, attempt $attempt" || status=$?
  case $status in
    0 | 75 | 76 | 79 | 80) ;; # 75: again. 76: the nodes have moved. 79: done in part. 80: a leader did not answer. Plan again.
    *) exit "$status" ;;
  esac
done
ask repair verify
