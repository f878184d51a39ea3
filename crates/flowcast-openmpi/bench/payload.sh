#!/bin/bash
# Random messages whose payload is checked, on the lab: payload.sh [MESSAGES [SCHEDULER...]]
#
# tests/programs/payload.c with every scheduler, or those named, and 2, 4 and 8 ranks on two nodes, eight with shared
# memory inside the nodes; MESSAGES (15000) in each run or some more, another seed for each. One line for each run; ends
# with 1 if any message was wrong or any run did not end.
set -u
messages=${1:-15000}
here=$(cd "$(dirname "$0")" && pwd)
if [ "${ON_THE_LAB:-}" != 1 ]; then
    exec env ON_THE_LAB=1 flowcast lab run rails --set nic.bandwidth=1000Mbit/s,1000Mbit/s \
        --set cluster.ranks_per_node=4 --no-self-test -- "$here/payload.sh" "$@"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpicc.openmpi -O1 -o "$work/payload" "$here/../tests/programs/payload.c" || exit 3
system=$(ompi_info --path pkglibdir --parsable | sed 's/.*://')
export OMPI_MCA_mca_base_component_path=${COMPONENT:-$HOME/.openmpi/components}:$system
if [ $# -gt 1 ]; then
    schedulers=("${@:2}")
else
    # An unknown scheduler is answered with the known ones.
    known=$(flowcast rails simulate --rail a=1,1,1,1us --messages /dev/null --scheduler '?' 2>&1 |
        sed -n 's/.*one of \(.*\), each.*/\1/p')
    mapfile -t schedulers < <(for name in ${known//,/ }; do printf '%s\n' "$name" "$name-printed"; done)
fi
seed=0 total=0 failed=0
for scheduler in "${schedulers[@]}"; do
    for ranks in 2 4 8; do
        seed=$((seed + 1)) networks=tcp,self
        [ "$ranks" = 8 ] && networks=$networks,vader
        said=$(timeout -k 5 300 mpirun.openmpi -np "$ranks" --map-by node --mca btl "$networks" --mca bml flowcast \
            --mca bml_flowcast_store none --mca bml_flowcast_scheduler "$scheduler" \
            "$work/payload" "$messages" "$seed" </dev/null 2>&1) && good=1 || good=0
        count=$(sed -n 's/^bad=0 messages=//p' <<<"$said")
        [ $good = 1 ] && [ -n "$count" ] || { failed=$((failed + 1)); echo "$said" >&2; }
        total=$((total + ${count:-0}))
        echo "$scheduler $ranks ranks: ${count:-failed}"
    done
done
echo "$seed runs, $total messages, $failed runs failed"
[ $failed = 0 ] && [ $seed -gt 0 ]
