#!/bin/bash
# The many-messages test over two rails of a lab (docs/evidence/rails.md has the results).
#
#   benches/rails/run.sh measure FOLDER RATE RATE             LogGP of each rail into FOLDER/a.toml and FOLDER/b.toml
#   benches/rails/run.sh bench   FOLDER RATE RATE [OPTION]... `flowcast rails bench` with these options
#   benches/rails/run.sh cut     FOLDER RATE RATE [OPTION]... the cable of b is cut after 4 s
#   benches/rails/run.sh tenth   FOLDER RATE RATE [OPTION]... b has a tenth of its rate from 3 s to 7 s
#
# A rate is such as 100Mbit/s. FLOWCAST is the command (target/release/flowcast), MTU the lab's (1500B).
set -eu
what=$1 folder=$2 rates=$3,$4
b_rate=$4
shift 4
flowcast=${FLOWCAST:-$(dirname "$0")/../../target/release/flowcast}
lab=bench-$$
mkdir -p "$folder"
"$flowcast" lab up rails --name $lab --set "nic.bandwidth=$rates" --set "nic.mtu=${MTU:-1500B}" --no-self-test
trap '"$flowcast" lab down $lab' EXIT

# Each node has a processor of its own, if there are two: else the system moves both ends to one at times.
node() {
    number=$1
    shift
    pin=
    [ "$(nproc)" -lt 2 ] || pin="taskset -c $number"
    $pin "$flowcast" lab exec $lab --node "$number" -- "$@"
}

measure() {
    node 1 "$flowcast" measure p2p --listen "$2:7070" 2> "$folder/$1.answer.log" &
    sleep 0.5
    node 0 "$flowcast" measure p2p --connect "$2:7070" --time-limit 8s --size 32KiB --step 4KiB -o "$folder/$1.csv"
    wait
    "$flowcast" fit "$folder/$1.csv" -o "$folder/$1.toml"
}

bench() {
    FLOWCAST_TOKEN=$(od -An -tx1 -N16 /dev/urandom | tr -d ' \n')
    export FLOWCAST_TOKEN
    node 1 "$flowcast" rails serve --listen 10.77.0.2:7400 --listen 10.78.0.2:7400 --once \
        > "$folder/serve.log" 2>&1 &
    sleep 0.5
    node 0 "$flowcast" rails bench --connect "a=10.77.0.2:7400,device=eth0,network=$folder/a.toml" \
        --connect "b=10.78.0.2:7400,device=eth1,network=$folder/b.toml" "$@"
}

# The direction of the messages.
b_becomes() { node 0 tc qdisc change dev eth1 root handle 1: tbf rate "$1" burst 3125 limit 3000000 overhead 24; }

case $what in
measure)
    measure a 10.77.0.2
    measure b 10.78.0.2
    ;;
bench) bench "$@" ;;
cut)
    (sleep 4; node 0 ip link set eth1 down) &
    bench --scheduler adaptive --count 1000000 --size 64B "$@"
    ;;
tenth)
    bits=${b_rate%Mbit/s}
    (sleep 3; b_becomes "$((bits * 100))kbit"; sleep 4; b_becomes "${bits}mbit") &
    bench --scheduler adaptive --count 24000 --size 8KiB "$@"
    ;;
*)
    echo "run.sh: found $what, expected measure, bench, cut or tenth" >&2
    exit 2
    ;;
esac
