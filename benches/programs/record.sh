#!/bin/bash
# record.sh FOLDER: records each program over shared memory, to FOLDER/PROGRAM.rec.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
. "$here/programs.sh"
cd "$1"
for name in $names; do
    [ -e $name.rec ] || timeout 300 flowcast record -o $name.rec -- mpirun --oversubscribe -np 4 ${programs[$name]} > $name.out
done
