#!/usr/bin/env bash
# Prints how many lines of each target the tests reached, from the profile of `make coverage`.
set -euo pipefail
bin=$("${SWIFT:-swift}" build --show-bin-path --scratch-path .build-coverage)
# The toolchain's own llvm-cov: the system's older one cannot read Swift's profiles.
cov=$(dirname "$(realpath "$(command -v "${SWIFT:-swift}")")")/llvm-cov
"$cov" report "$bin"/*.xctest -instr-profile "$bin/codecov/default.profdata" \
  -ignore-filename-regex '\.build|Tests/' |
  awk '/^Filename|^-/ {next} /TOTAL/ {print "all", $10; next} {split($1, path, "/"); lines[path[1] "/" path[2]] += $8; missed[path[1] "/" path[2]] += $9}
       END {for (target in lines) if (lines[target]) printf "%s %.1f%%\n", target, 100 - 100 * missed[target] / lines[target]}' |
  sort
