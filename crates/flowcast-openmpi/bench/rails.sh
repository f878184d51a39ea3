#!/bin/bash
# Two hosts with two rails on this machine: rails.sh FAST SLOW [ROUNDS] [SECONDS] > results.csv
#
# Rates in Mbit/s. Prints `rails,round,who,N,bytes,us,Mbit/s`, every contender once in each round. The component is the
# installed one (cargo xtask install-openmpi); COMPONENT=FOLDER names another place. Root is not needed, but UCX finds
# the rails with root only (it reads /sys) and is left out without.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ "${INSIDE:-}" != 1 ]; then
    user=-Ur
    [ "$(id -u)" = 0 ] && user=
    exec env INSIDE=1 ROOT=${user:+no} HOME="$HOME" unshare $user -nm --fork "$here/rails.sh" "$@"
fi
fast=$1 slow=$2 rounds=${3:-3} seconds=${4:-0.1}
mount --make-rprivate / && mount -t tmpfs none /run
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpicc.openmpi -O2 -o "$work/messages" "$here/messages.c"
system=$(ompi_info --path pkglibdir --parsable | sed 's/.*://')

rail() { # NUMBER RATE, 0 = unlimited: eth0 carries mpirun's own traffic
    ip -n host0 link add "eth$1" type veth peer name "eth$1" netns host1
    for host in 0 1; do
        ip -n "host$host" addr add "10.9$1.0.$((host + 1))/24" dev "eth$1"
        ip -n "host$host" link set "eth$1" up
        [ "$2" = 0 ] && continue
        # Packets as on a wire, and a bucket of 2 frames or 0.25 ms.
        ip netns exec "host$host" ethtool -K "eth$1" tso off gso off gro off >/dev/null 2>&1
        burst=$(($2 * 1000000 / 8 / 4000))
        [ "$burst" -lt 3076 ] && burst=3076
        ip netns exec "host$host" tc qdisc add dev "eth$1" root tbf rate "$2mbit" burst "$burst" limit 3000000 overhead 24
    done
}
for host in 0 1; do
    ip netns add "host$host"
    ip -n "host$host" link set lo up
    ip netns exec "host$host" sysctl -qw net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_slow_start_after_idle=0
done
rail 0 0; rail 1 "$fast"; rail 2 "$slow"

cat >"$work/agent" <<'AGENT'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$((${1##*.} - 1)); shift
exec ip netns exec "host$host" unshare --uts sh -c "hostname host$host; $*"
AGENT
chmod +x "$work/agent"
printf '10.90.0.1 slots=1\n10.90.0.2 slots=1\n' >"$work/hosts"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mca_base_component_path=${COMPONENT:-$HOME/.openmpi/components}:$system

run() {
    ip netns exec host0 unshare --uts sh -c 'hostname host0; exec "$@"' sh timeout -k 5 120 mpirun.openmpi \
        --hostfile "$work/hosts" -np 2 --map-by slot --bind-to none --mca plm_rsh_agent "$work/agent" \
        --mca plm_rsh_no_tree_spawn 1 --mca oob_tcp_if_include eth0 --mca mpi_yield_when_idle 1 "$@" \
        "$work/messages" "$seconds" </dev/null 2>>"$work/errors" || { cat "$work/errors" >&2; exit 1; }
}
tcp() { run --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include "$@"; }
ours() { tcp eth1,eth2 --mca bml flowcast --mca bml_flowcast_store "$work/store" "$@"; }
contender() {
    case $1 in
    stock) tcp eth1,eth2 --mca bml r2 ;;
    fast-alone) tcp eth1 --mca bml r2 ;;
    slow-alone) tcp eth2 --mca bml r2 ;;
    flowcast) ours ;;
    round-robin) ours --mca bml_flowcast_scheduler round-robin ;;
    ucx) run --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=tcp,self -x UCX_NET_DEVICES=eth1,eth2 ;;
    esac
}
all="stock fast-alone slow-alone flowcast round-robin"
[ "${ROOT:-}" = no ] && echo "ucx: left out without root" >&2 || all="$all ucx"
for round in $(seq "$rounds"); do
    for who in ${WHO:-$all}; do
        contender "$who" | sed "s/^/$fast+$slow,$round,$who,/"
    done
done
