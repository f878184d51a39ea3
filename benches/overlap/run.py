"""Measures how much of a transfer Open MPI and MPICH overlap with computation in a lab of two nodes, and predicts it.

    python3 benches/overlap/run.py target/release/flowcast

Prints the table of docs/evidence/programs.md. The overlap is the part of the transfer's own time that the computation, which is as
long, has hidden: (alone + computation - together) / alone.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

LAB = ["fair", "--set", "cluster.nodes=2"]
LIBRARIES = {
    "Open MPI": ("mpicc.openmpi", ["mpirun.openmpi", "-np", "2", "--map-by", "node"]),
    "MPICH": ("mpicc.mpich", ["mpirun.mpich", "-np", "2", "-ppn", "1"]),
}
SETTINGS = ["in calls", "asynchronous"]
# Time limit of a run of all sizes, in seconds.
PATIENCE = "240"


def measured(flowcast, folder, library):
    """Returns, by computing side and size, the seconds without computation and with the same amount of computation."""
    compiler, launcher = LIBRARIES[library]
    program = folder / compiler
    subprocess.run([compiler, "-O2", "-w", "-o", program, Path(__file__).with_name("overlap.c")], check=True)
    command = ["timeout", PATIENCE, flowcast, "lab", "run", *LAB, "--no-self-test", "--", *launcher, program]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    # MPICH may hang in MPI_Finalize after it has printed all lines.
    lines = subprocess.run(command, stdout=subprocess.PIPE, env=environment, text=True).stdout.splitlines()
    rows = [line.split(",") for line in lines]
    return {(who, int(size)): (float(alone), float(both)) for who, size, alone, both in rows}


def trace(who, size, seconds):
    """Returns the two ranks of overlap.c as a Dimemas trace."""
    lines = ["#DIMEMAS:\"overlap\":0:2(1,1),1", "d:1:1:2:0:1"]
    for rank in (0, 1):
        sends, receives = who == "both" or rank == 0, who == "both" or rank == 1
        computes = who in ("both", ["sender", "receiver"][rank])
        message = f"{rank}:0:{1 - rank}:-1:{size}:0:1"
        lines += [f"3:{message}:1"] * receives + [f"2:{message}:2"] * sends
        lines += [f"1:{rank}:0:{seconds:.9f}"] * computes
        lines += [f"3:{message}:2"] * receives + [f"32:{rank}:0:0"] * sends
    return "\n".join(lines) + "\n"


def predicted(flowcast, folder, network, setting, case):
    """Returns the seconds until both ranks finish, without computation and with the same amount of computation."""
    times = [0.0]
    for _ in range(2):
        file = folder / "overlap.dim"
        file.write_text(trace(*case, times[-1]))
        command = [flowcast, "predict", file, "--network", network, "--set", f"point_to_point.progress={setting}", "--json"]
        times.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["makespan_s"])
    return times[1:]


def overlap(alone, both):
    return f"{max(0.0, min(1.0, (2 * alone - both) / alone)):.2f}"


def main():
    flowcast = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        network = folder / "lab.toml"
        network.write_bytes(subprocess.run([flowcast, "lab", "network", *LAB], check=True, capture_output=True).stdout)
        results = {library: measured(flowcast, folder, library) for library in LIBRARIES}
        print("| who computes | bytes |", " | ".join([*LIBRARIES, *SETTINGS]), "|")
        print("|---|" + "---|" * (1 + len(LIBRARIES) + len(SETTINGS)))
        for case in results["Open MPI"]:
            cells = [overlap(*of[case]) if case in of else "" for of in results.values()]
            cells += [overlap(*predicted(flowcast, folder, network, setting, case)) for setting in SETTINGS]
            print(f"| {case[0]} | {case[1]} |", " | ".join(cells), "|")
        load = os.getloadavg()
        print(f"\nLoad average at the end: {load[0]:.1f}, {load[1]:.1f}, {load[2]:.1f}.")


main()
