#!/bin/sh
# Steps the same stream of flows through Flowcast and through SimGrid's max-min sharing, taking turns.
#
#   benches/simgrid/run.sh [FLOWS] [LOAD] [ROUNDS]
#
# Needs a release build, g++ and SimGrid's headers (Debian: libsimgrid-dev); without them it is skipped. Flowcast's time is
# that of the whole command, reading and printing included; SimGrid's that of the simulation alone.
set -eu
flows=${1:-10000} load=${2:-0.6} rounds=${3:-3}
cd "$(dirname "$0")/../.."
flowcast=target/release/flowcast
command -v g++ >/dev/null || { echo "skipped: simgrid-stream (no g++)"; exit 0; }
[ -e /usr/include/simgrid/s4u.hpp ] || { echo "skipped: simgrid-stream (no libsimgrid-dev)"; exit 0; }
[ -x "$flowcast" ] || { echo "skipped: simgrid-stream (no $flowcast: cargo build --release)"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
g++ -O2 -std=c++17 benches/simgrid/stream.cpp -o "$work/stream" -lsimgrid
"$flowcast" generate stream --ranks 1024 --flows "$flows" --load "$load" -o "$work/stream.pattern"
python3 - "$flowcast" "$work" "$rounds" <<'PYTHON'
import json, statistics, subprocess, sys, time
flowcast, work, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
seconds = {"simgrid max-min": [], "flowcast fair": [], "flowcast closed-loop": []}
network = ["--network", "gige-tcp", "--set", "nic.bandwidth=125MB/s", "--set", "nic.latency=0us", "--json"]
for _ in range(rounds):
    done = subprocess.run([work + "/stream", work + "/stream.pattern", "1024", "125000000"],
                          check=True, capture_output=True, text=True)
    seconds["simgrid max-min"].append(float(done.stderr.split()[-1]))
    theirs = [float(end) for end in done.stdout.split()]
    for model in "fair", "closed-loop":
        begin = time.perf_counter()
        out = subprocess.run([flowcast, "predict", work + "/stream.pattern", "--model", model, *network],
                             check=True, capture_output=True).stdout
        seconds["flowcast " + model].append(time.perf_counter() - begin)
        if model == "fair":
            ours = [flow["end_s"] for flow in json.loads(out)["flows"]]
            worst = max(abs(a - b) for a, b in zip(ours, theirs))
            if worst > 1e-6:
                sys.exit(f"the ends differ by up to {worst} s")
for name, taken in seconds.items():
    print(f"{name:<22} median {statistics.median(taken):8.3f} s ({min(taken):.3f} to {max(taken):.3f})")
PYTHON
