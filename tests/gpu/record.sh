#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes docs/verification.md and the tables of docs/performance.md from what this machine's GPU shows.
# usage: tests/gpu/record.sh BIN_DIRECTORY OUT_DIRECTORY COMMIT    (BIN_DIRECTORY holds gpu_matrix and gpu_bench)
set -uo pipefail
bin=$1 out=$2 commit=$3
here=$(dirname "${BASH_SOURCE[0]}")
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
common=(--reference "$here/reference.cu" --cache-dir "$cache" --commit "$commit")

# One line of Markdown for a run of compute-sanitizer: its own summary and exit status.
sanitize() {
    local tool=$1 every=$2 log=$out/$1.log status=0
    timeout -k 5 200 compute-sanitizer --tool "$tool" --error-exitcode 9 "$bin/gpu_matrix" "${common[@]}" --small \
        --every "$every" --repeats 2 >"$log" 2>&1 || status=$?
    printf '| %s | %s | %s | %s |\n' "$tool" "$(grep -oE '^[0-9]+ keys' "$log" | head -1)" \
        "$(grep -E '=+ .*SUMMARY' "$log" | head -1 | sed 's/^=* //')" "$status"
}

{
    echo '# Verification'
    echo
    echo 'Written by `tests/gpu/record.sh`; what each program does stands at the top of its source.'
    echo
    echo '## Every accepted key, exact'
    echo
    echo '`gpu_matrix`: small-integer operands, so that D is exactly known; all memory around D poisoned and compared too.'
    echo
    timeout -k 5 550 "$bin/gpu_matrix" "${common[@]}" 2>"$out/matrix.log" || echo "FAILED with status $?"
    echo
    echo '## compute-sanitizer'
    echo
    echo 'Over every n-th key of the list above, three shapes, launches back to back.'
    echo
    echo '| tool | keys | its summary | exit status |'
    echo '|---|---|---|---|'
    sanitize memcheck 13
    sanitize racecheck 29
    sanitize synccheck 13
    sanitize initcheck 61
} >"$out/verification.md"

timeout -k 5 200 "$bin/gpu_bench" "${common[@]}" --seconds 5 4096x4096x4096 8192x8192x8192 4096x4096x7168 \
    4096x7168x2048 >"$out/performance_bf16.md" 2>"$out/bench.log" || echo "FAILED with status $?" >>"$out/performance_bf16.md"
tail -n 30 "$out/verification.md" "$out/performance_bf16.md"
