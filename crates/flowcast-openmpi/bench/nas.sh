#!/bin/bash
# The NAS parallel benchmarks over two rails of the lab, with the component: nas.sh FOLDER [TIMES]
#
# FOLDER has the programs built with Open MPI (cg.S.x, bt.W.x, ...). Each class S and W kernel runs with every number of
# ranks that it takes, over TCP alone and with shared memory inside the nodes. One line for each run: what the program
# says of its own result, and the first fragments of rank 0 on each rail. Ends with 1 if any run did not verify.
set -u
folder=$(realpath "$1") times=${2:-1}
if [ "${ON_THE_LAB:-}" != 1 ]; then
    exec env ON_THE_LAB=1 flowcast lab run rails --set nic.bandwidth=1000Mbit/s,100Mbit/s --set cluster.ranks_per_node=5 \
        --no-self-test -- "$0" "$@"
fi
system=$(ompi_info --path pkglibdir --parsable | sed 's/.*://')
export OMPI_MCA_mca_base_component_path=${COMPONENT:-$HOME/.openmpi/components}:$system
runs=0 verified=0
for round in $(seq "$times"); do
    for program in "$folder"/*.[SW].x; do
        case $(basename "$program") in bt* | sp*) counts="4 9" ;; *) counts="2 4 8" ;; esac
        for ranks in $counts; do
            for networks in tcp,self tcp,self,vader; do
                said=$(timeout -k 5 300 mpirun.openmpi -np "$ranks" --map-by node --mca btl "$networks" \
                    --mca bml flowcast --mca bml_flowcast_store none --mca bml_flowcast_verbose 1 "$program" </dev/null 2>&1)
                runs=$((runs + 1))
                grep -q "Verification *= *SUCCESSFUL" <<<"$said" && verified=$((verified + 1)) result=verified || result=WRONG
                [ $result = WRONG ] && echo "$said" >&2
                rails=$(awk '$1 ~ /^eth[01]$/ { printf " %s %s", $1, $6 }' <<<"$said")
                echo "$(basename "$program") $ranks ranks $networks $result$rails"
            done
        done
    done
done
echo "$verified of $runs verified"
[ "$verified" = "$runs" ]
