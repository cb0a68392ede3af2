#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes verification.md, numerics_table.md, performance_launch.md, performance_bf16.md, performance_few_rows.md and performance_epilogues.md from what this GPU shows;
# docs/ holds them.
# usage: tests/gpu/record.sh BIN_DIRECTORY OUT_DIRECTORY COMMIT
# BIN_DIRECTORY holds gpu_matrix, gpu_extremes, gpu_graph, gpu_overlap, gpu_layer_bench, gpu_cases, gpu_numerics, gpu_epilogues and
# gpu_epilogue_bench.
set -uo pipefail
bin=$1 out=$2 commit=$3
here=$(dirname "${BASH_SOURCE[0]}")
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
epilogues=(--epilogues "$here/epilogues.cu")
common=(--reference "$here/reference.cu" --cache-dir "$cache" --commit "$commit")

# Runs a program under a limit; its table goes on, its exit status is told when it is not 0.
table() {
    local name=$1 seconds=$2 status=0
    shift 2
    timeout -k 5 "$seconds" "$@" 2>"$out/$name.log" || status=$?
    [ "$status" -eq 0 ] || printf '\n**FAILED** with status %s\n' "$status"
    echo
}

# One line of Markdown for a run of compute-sanitizer: its own summary and exit status. Further arguments are the
# program's.
sanitize() {
    local tool=$1 set=$2 every=$3 log=$out/$1-$2.log status=0 program=gpu_matrix
    shift 3
    [ "$set" != exact ] || program=gpu_epilogues
    timeout -k 5 120 compute-sanitizer --tool "$tool" --error-exitcode 9 "$bin/$program" "${common[@]}" "$@" --small \
        --set "$set" --every "$every" --repeats 2 >"$log" 2>&1 || status=$?
    printf '| %s | %s | %s | %s | %s |\n' "$tool" "$set" "$(grep -oE '^[0-9]+ kernels' "$log" | head -1)" \
        "$(grep -E '=+ .*SUMMARY' "$log" | head -1 | sed 's/^=* //')" "$status"
}

{
    echo '# Verification'
    echo
    echo 'Written by `tests/gpu/record.sh`, the last section by `tools/fuzz`; what each program does stands at the top of its source.'
    echo
    echo '## Keys, exact'
    echo
    echo '`gpu_matrix`: small-integer operands, so that D is exactly known; all memory around D poisoned and compared too.'
    echo '`basic`: every accepted 16-bit key with k-major operands, n-major D and clusters of at most two, on the product of'
    echo 'M in 1, 7, 64, 129, 1000, 4096, N in 8, 72, 768, 2112, 1, 57, 1001 and K in 8, 40, 64, 200, 4096 besides the fixed'
    echo 'shapes. `covering`: keys in which every triple of values of all fields that can occur together does (seed 1).'
    echo '`product`: every accepted key of tile, cluster, schedule, tile scheduler and the types and majors of A and B.'
    echo
    table basic 160 "$bin/gpu_matrix" "${common[@]}" --set basic --dense-shapes --repeats 1000 --jobs 15
    table covering 200 "$bin/gpu_matrix" "${common[@]}" --set covering --repeats 20 --jobs 15
    echo '`single`: `sched=single`, every triple of values of all its fields that can occur together, and every config of bf16'
    echo 'and e4m3.'
    echo
    table single 300 "$bin/gpu_matrix" "${common[@]}" --set single --repeats 20 --jobs 15
} >"$out/verification.md"
{
    echo '## Extents past 2^31 elements, exact'
    echo
    echo '`gpu_extremes`: everything in D compared, and what lies between its rows.'
    echo
    table extremes 100 "$bin/gpu_extremes" "${common[@]}"
    echo '## Replays of a graph, exact'
    echo
    echo '`gpu_graph`: launches captured once; alpha and beta change in device memory between replays.'
    echo
    table graph 60 "$bin/gpu_graph" "${common[@]}"
    echo '## Launches that overlap, bit for bit'
    echo
    echo '`gpu_overlap`: chains in which each launch reads what the one in front of it wrote, against the same chain without flags.'
    echo
    table overlap 60 "$bin/gpu_overlap" "${common[@]}"
} >>"$out/verification.md"
if [ -x "$bin/gpu_cases" ]; then
    {
        echo '## Cases of quack 0.2.0, random data'
        echo
        echo '`gpu_cases`: max |out - reference| < 2 max |bf16 emulation - reference| + eps.'
        echo
        table cases 60 "$bin/gpu_cases" "${common[@]}"
    } >>"$out/verification.md"
fi
{
    echo '## Fused epilogues, exact'
    echo
    echo '`gpu_epilogues`: keys in which, for each operation, every pair of values of all other fields that can occur'
    echo 'together does; small integers and powers of two, functions none, relu, relu_sq and reglu; D, PostAct, all memory'
    echo 'around them and amax compared.'
    echo
    table epilogues_exact 300 "$bin/gpu_epilogues" "${common[@]}" "${epilogues[@]}" --set exact --jobs 15
    echo '## Activations, error'
    echo
    echo '`gpu_epilogues`: each function and its derivative against f64; then the act, dact, gated and dgated cases of'
    echo 'quack by its rule, max |out - reference| < 2 max |bf16 emulation - reference| + eps.'
    echo
    table epilogues_error 160 "$bin/gpu_epilogues" "${common[@]}" "${epilogues[@]}" --set error --jobs 15
} >>"$out/verification.md"
table numerics 60 "$bin/gpu_numerics" "${common[@]}" >"$out/numerics_table.md"
{
    echo '## compute-sanitizer'
    echo
    echo 'Over every n-th key of a set, three shapes, launches back to back.'
    echo
    echo '| tool | set | keys | its summary | exit status |'
    echo '|---|---|---|---|---|'
    sanitize memcheck covering 61
    sanitize racecheck covering 97
    sanitize synccheck product 241
    sanitize initcheck covering 197
    sanitize memcheck single 97
    sanitize racecheck single 97
    sanitize synccheck single 97
    sanitize memcheck exact 61 "${epilogues[@]}"
    sanitize racecheck exact 97 "${epilogues[@]}"
    sanitize synccheck exact 97 "${epilogues[@]}"
    sanitize initcheck exact 197 "${epilogues[@]}"
} >"$out/sanitizer.md"
table launch_cost 30 "$bin/../bench/launch_cost" --cache-dir "$cache" >"$out/performance_launch.md"
gemmjit=$bin/../../tools/gemmjit shapes=$here/../bench
table bench 160 "$gemmjit" bench --shapes "$shapes/shapes.json" --vs cublas --candidates 2 --seconds 1 --train 2 \
    --cache-dir "$cache" >"$out/performance_bf16.md"
table decode 80 "$gemmjit" bench --shapes "$shapes/decode.json" --vs cublas --seconds 1 --train 1 --cache-dir "$cache" \
    >"$out/performance_few_rows.md"
table decode_overlap 80 "$gemmjit" bench --shapes "$shapes/decode.json" --vs cublas --seconds 1 --train 1 --overlap \
    --b-constant --cache-dir "$cache" >>"$out/performance_few_rows.md"
for dtype in bf16 e4m3; do
    table "layer_$dtype" 30 "$bin/gpu_layer_bench" "${common[@]}" --dtype "$dtype" >>"$out/performance_few_rows.md"
done
if [ -x "$bin/gpu_epilogue_bench" ]; then
    table epilogue_bench 300 "$bin/gpu_epilogue_bench" "${common[@]}" "${epilogues[@]}" --jobs 15 \
        >"$out/performance_epilogues.md"
fi
table product 280 "$bin/gpu_matrix" "${common[@]}" --set product --repeats 20 --jobs 15 >"$out/product.md"
{
    echo
    cat "$out/product.md" "$out/sanitizer.md"
} >>"$out/verification.md"
cat "$out/verification.md" "$out/numerics_table.md" "$out"/performance_*.md
