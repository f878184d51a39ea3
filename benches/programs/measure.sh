#!/bin/bash
# measure.sh FOLDER [LAB [PROGRAM]]: five timed runs of each program in each laboratory, to FOLDER/LAB.PROGRAM.json; goes on where
# it was ended.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
. "$here/programs.sh"
cd "$1"
for laboratory in ${2:-$laboratories}; do
    for name in ${3:-$names}; do
        report=$laboratory.$name.html
        [ -e $laboratory.$name.json ] && continue
        rm -rf "$report"* $laboratory.$name.rec
        timeout 600 flowcast validate app --lab $laboratory.toml --no-self-test --repetitions 5 --report $report -- mpirun -np 4 ${programs[$name]} \
            > $laboratory.$name.out 2>&1 || { tail -5 $laboratory.$name.out >&2; exit 1; }
    done
done
