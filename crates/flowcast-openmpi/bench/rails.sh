#!/bin/bash
# The test of Lichei, section 5.8.1, on the lab: rails.sh FAST SLOW ROUNDS RESULTS.csv
#
# Rates in Mbit/s. In each round every contender runs once. A round is appended when it is complete, as lines of
# `rails,round,who,N,bytes,us,Mbit/s`; one that the file has is not repeated, so that a run may be continued. Needs
# `flowcast`, the installed component (cargo xtask install-openmpi; COMPONENT=FOLDER names another place) and no root.
set -eu
fast=$1 slow=$2 rounds=$3 results=$(realpath "$4")
here=$(cd "$(dirname "$0")" && pwd)
if [ "${ON_THE_LAB:-}" != 1 ]; then
    exec env ON_THE_LAB=1 flowcast lab run rails --set "nic.bandwidth=${fast}Mbit/s,${slow}Mbit/s" --no-self-test -- \
        "$here/rails.sh" "$@"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpicc.openmpi -O2 -o "$work/messages" "$here/messages.c"
# UCX looks for interfaces in /sys, where a node of the lab shows those of the machine.
printf '#!/bin/sh\nexec unshare -m sh -c "mount -t sysfs sysfs /sys && exec %s"\n' "$work/messages" >"$work/with-sys"
chmod +x "$work/with-sys"
system=$(ompi_info --path pkglibdir --parsable | sed 's/.*://')
export OMPI_MCA_mca_base_component_path=${COMPONENT:-$HOME/.openmpi/components}:$system
export OMPI_MCA_bml_flowcast_store=$work/store

run() { timeout -k 5 200 mpirun.openmpi -np 2 "$@" </dev/null; }
tcp() { run --mca bml r2 --mca btl_tcp_if_include "$1" "$work/messages"; }
ours() { run --mca bml flowcast --mca bml_flowcast_scheduler "$1" "$work/messages"; }
ucx() { run --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=tcp,self -x UCX_MAX_EAGER_RAILS="$1" "$work/with-sys"; }
contender() {
    case $1 in
    stock) tcp eth0,eth1 ;;
    fast-alone) tcp eth0 ;;
    slow-alone) tcp eth1 ;;
    flowcast) ours earliest-delivery ;;
    round-robin) ours round-robin ;;
    ucx) ucx 1 ;;
    ucx-2-rails) ucx 2 ;;
    esac
}
for round in $(seq "$rounds"); do
    grep -q "^$fast+$slow,$round," "$results" 2>/dev/null && continue
    for who in ${WHO:-stock fast-alone slow-alone flowcast round-robin ucx ucx-2-rails}; do
        contender "$who" | sed "s/^/$fast+$slow,$round,$who,/"
    done >"$work/round"
    cat "$work/round" >>"$results"
done
