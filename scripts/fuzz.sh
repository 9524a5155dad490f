#!/bin/sh
# Fuzz what reads the files of others, two targets at a time: sh scripts/fuzz.sh [FACTOR]
# Each target has 3 to 15 s; FACTOR makes that longer. What loads into the kernel is not here.
cd "$(dirname "$0")/.." || exit 1
factor=${1:-1}
python=.venv/bin/python
mkdir -p build

# what follows coverage
for target in "object 15" "btf 15" "perf_data 10" "filter 10" "cfi 10" "side_band 5"; do
    "$python" tests/fuzz/fuzz.py "${target% *}" --seconds $((${target#* } * factor)) >build/fuzz.log 2>&1 || {
        cat build/fuzz.log
        exit 1
    }
done &
fuzzer=$!
# files changed at random, all the way through
for target in json folded perf_data elf names perf_map jitdump inspect sections recording; do
    "$python" tests/fuzz/mutate.py $target --seconds $((4 * factor)) || exit
done
for target in pprof speedscope perf_script calls proc python php ruby java node dns probes dwarf lines window agent_config; do
    "$python" tests/fuzz/mutate.py $target --seconds $((3 * factor)) || exit
done
wait $fuzzer
