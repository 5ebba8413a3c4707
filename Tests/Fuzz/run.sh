#!/usr/bin/env bash
# Builds the fuzz targets and runs each for SECONDS (120 where not given); targets may be named.
# Fails on any finding. What was learned stays in .build-fuzz/corpus, findings in .build-fuzz/findings.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
scratch=$root/.build-fuzz
seconds=${1:-120}
shift || true
[[ $seconds =~ ^[0-9]+$ ]] || { echo "usage: run.sh [SECONDS] [TARGET]..." >&2; exit 64; }
targets=("$@")
[ ${#targets[@]} -gt 0 ] || for folder in "$here"/Sources/*/; do targets+=("$(basename "$folder")"); done

# Optimised, with the checks of a debug build: a read past the end must not go unseen.
"${SWIFT:-swift}" build --package-path "$here" --scratch-path "$scratch" -c release \
  --sanitize=fuzzer --sanitize=address -Xswiftc -assert-config -Xswiftc Debug

export SWIFT_BACKTRACE=enable=no ASAN_OPTIONS=detect_leaks=0
status=0
for target in "${targets[@]}"; do
  corpus=$scratch/corpus/$target
  findings=$scratch/findings/$target
  mkdir -p "$corpus" "$findings"
  if "$scratch/release/$target" "$corpus" "$here/Seeds/$target" -max_total_time="$seconds" \
    -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$findings/" -print_final_stats=1 \
    >"$findings/log" 2>&1
  then
    runs=$(awk '/stat::number_of_executed_units/ {print $2}' "$findings/log")
    echo "fuzz: $target: $runs runs in $seconds s, nothing found"
  else
    status=1
    echo "fuzz: $target: FOUND SOMETHING, inputs in $findings:" >&2
    tail -n 30 "$findings/log" >&2
  fi
done
exit $status
