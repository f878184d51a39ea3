#!/bin/bash
# The test of Lichei, section 5.8.1, on the lab: rails.sh FAST SLOW ROUNDS RESULTS.csv
#
# Rates in Mbit/s. In each round every contender runs once. A round is appended when it is complete, as lines of
# `rails,round,who,N,bytes,us,Mbit/s`; one that the file has is not repeated, so that a run may be continued. The rails'
# parameters are measured first, into RESULTS.csv.eth0.toml and .eth1.toml, unless those are there. Needs `flowcast`, the
# installed component (cargo xtask install-openmpi; COMPONENT=FOLDER names another place), mpicc of Open MPI, and no root.
# MTU is the lab's (1500B).
set -eu
fast=$1 slow=$2 rounds=$3 results=$(realpath "$4")
here=$(cd "$(dirname "$0")" && pwd)
if [ "${ON_THE_LAB:-}" != 1 ]; then
    exec env ON_THE_LAB=1 flowcast lab run rails --set "nic.bandwidth=${fast}Mbit/s,${slow}Mbit/s" \
        --set "nic.mtu=${MTU:-1500B}" --no-self-test -- "$here/rails.sh" "$@"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpicc.openmpi -O2 -o "$work/program" "$here/messages.c"
# Each rank has a processor of its own, if there are two: else the system moves both to one at times.
printf '#!/bin/sh\nexec taskset -c $((OMPI_COMM_WORLD_RANK %% %d)) %s\n' "$(nproc)" "$work/program" >"$work/messages"
# UCX looks for interfaces in /sys, where a node of the lab shows those of the machine.
printf '#!/bin/sh\nexec unshare -m sh -c "mount -t sysfs sysfs /sys && exec %s"\n' "$work/messages" >"$work/with-sys"
chmod +x "$work/messages" "$work/with-sys"
system=$(ompi_info --path pkglibdir --parsable | sed 's/.*://')
export OMPI_MCA_mca_base_component_path=${COMPONENT:-$HOME/.openmpi/components}:$system
export OMPI_MCA_bml_flowcast_store=none

measure() { # RAIL
    local address=10.$((77 + $1)).0.2:7070 file=$results.eth$1.toml
    [ -f "$file" ] && return
    "$OMPI_MCA_plm_rsh_agent" node1 "$(command -v flowcast) measure p2p --listen $address" >&2 &
    sleep 0.5
    flowcast measure p2p --connect "$address" --time-limit 5s --sizes 1B,8KiB,16KiB,32KiB -o "$work/eth$1.csv" >&2
    wait
    flowcast fit "$work/eth$1.csv" -o "$file" >&2
}
measure 0
measure 1

run() { timeout -k 5 200 mpirun.openmpi -np 2 "$@" </dev/null; }
stock() { run --mca bml r2 --mca btl_tcp_if_include "$1" "$work/messages"; }
ours() { run --mca bml flowcast "$@" "$work/messages"; }
contender() {
    case $1 in
    stock) stock eth0,eth1 ;;
    fast-alone) stock eth0 ;;
    slow-alone) stock eth1 ;;
    flowcast) ours --mca bml_flowcast_network "eth0=$results.eth0.toml,eth1=$results.eth1.toml" ;;
    start-up) ours ;;
    round-robin) ours --mca bml_flowcast_scheduler round-robin ;;
    ucx) run --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=tcp,self "$work/with-sys" ;;
    esac
}
for round in $(seq "$rounds"); do
    grep -q "^$fast+$slow,$round," "$results" 2>/dev/null && continue
    for who in stock fast-alone slow-alone flowcast start-up round-robin ucx; do
        contender "$who" | sed "s/^/$fast+$slow,$round,$who,/"
    done >"$work/round"
    cat "$work/round" >>"$results"
done
