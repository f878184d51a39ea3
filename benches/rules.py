"""Measures whether the rules of `flowcast collectives choose` make Open MPI faster.

    python3 benches/rules.py FOLDER [--operation NAME] [--sizes BYTES,..] [--nodes COUNT] [--set KEY=VALUE]... [--rounds COUNT]
        [--iterations COUNT] [--launcher PATH] [--compiler PATH] [--flowcast PATH]

FOLDER keeps all results, and an interrupted bench continues from them. Needs Open MPI 4.1 or 5.0 with its compiler and user
namespaces. The lab is the profile `fair` with one rank on each node; `--set` changes it, for example to `slow_motion=10`.

1. Each algorithm of the operation, forced by `coll_tuned_OPERATION_algorithm`, and the library's own decision are measured in the lab:
   measured.csv and nodes.csv, in the form of examples/broadcasts.csv and examples/broadcast-nodes.csv.
2. `flowcast fit --collectives` fits them, and `flowcast collectives choose` writes the rules for the library's version.
3. The library runs without and with the rules, COUNT rounds in turn.

The table has, for each size, the choice, the gain that `choose` predicts, the median times without and with the rules, and the number
of rounds in which the rules were faster.
"""

import argparse
import csv
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess

ALGORITHMS = {
    "bcast": ["basic_linear", "chain", "pipeline", "split_binary_tree", "binary_tree", "binomial", "knomial", "scatter_allgather",
              "scatter_allgather_ring"],
    "allreduce": ["basic_linear", "nonoverlapping", "recursive_doubling", "ring", "segmented_ring", "rabenseifner"],
    "allgather": ["linear", "bruck", "recursive_doubling", "ring", "neighbor"],
    "alltoall": ["linear", "pairwise", "modified_bruck", "linear_sync"],
}
COLUMNS = ["system", "run", "nodes", "ranks_per_node", "collective", "library", "version", "algorithm", "bytes", "median_ns"]
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
LAB = "rules-lab"


def run(options, *words):
    """Returns the output of a command, which must succeed."""
    command = [str(word) for word in words]
    done = subprocess.run(command, cwd=options.folder, capture_output=True, text=True, timeout=1800, env={**os.environ, **ENVIRONMENT})
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr[-2000:]}{done.stdout[-2000:]}")
    return done.stdout


def times(options, *settings):
    """Median times by size, under these parameters of Open MPI."""
    parameters = [word for name, value in settings for word in ["--mca", name, value]]
    printed = run(options, options.flowcast, "lab", "run", LAB, "--", options.launcher, "-np", options.nodes, "--mca",
                  "mpi_yield_when_idle", 1, *parameters, "./rules", options.operation, options.iterations, *options.sizes)
    rows = [line.split(",") for line in printed.splitlines() if re.fullmatch(r"\d+,\d+", line)]
    return {int(size): int(nanos) for size, nanos in rows}


def measure_algorithms(options, version):
    """Writes measured.csv and nodes.csv."""
    measured = options.folder / "measured.csv"
    done = set()
    if measured.exists():
        with open(measured, newline="") as file:
            done = {row["algorithm"] for row in csv.DictReader(file)}
    else:
        measured.write_text(",".join(COLUMNS) + "\n")
    job = ["lab", "1", options.nodes]
    for name in ["default", *ALGORITHMS[options.operation]]:
        if name in done:
            continue
        settings = [] if name == "default" else [("coll_tuned_use_dynamic_rules", 1), (f"coll_tuned_{options.operation}_algorithm", name)]
        found = times(options, *settings)
        with open(measured, "a", newline="") as file:
            csv.writer(file).writerows([*job, 1, options.operation, "OMPI", version, name, size, nanos] for size, nanos in found.items())
    nodes = ["system,run,nodes,rank,node,group,switch"] + [f"lab,1,{options.nodes},{node},{node},0,0" for node in range(options.nodes)]
    (options.folder / "nodes.csv").write_text("\n".join(nodes) + "\n")


def choose(options, version):
    """Writes the rules and returns the choices."""
    run(options, options.flowcast, "fit", "--collectives", "measured.csv", "--allocations", "nodes.csv", "--system", "lab", "-o", "lab-net.toml")
    form = "openmpi-" + ".".join(version.split(".")[:2])
    printed = run(options, options.flowcast, "collectives", "choose", "--network", "lab-net.toml", "--collective", options.operation,
                  "--ranks", options.nodes, "--sizes", ",".join(f"{size}B" for size in options.sizes), "--write", f"{form}=rules.conf", "--json")
    return json.loads(printed)["choices"]


def compare(options):
    """Times of all rounds, without and with the rules."""
    log = options.folder / "rounds.jsonl"
    done = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    rules = [("coll_tuned_use_dynamic_rules", 1), ("coll_tuned_dynamic_rules_filename", options.folder / "rules.conf")]
    for number in range(len(done), options.rounds):
        contenders = {"without": [], "with": rules}
        order = list(contenders) if number % 2 == 0 else list(reversed(contenders))
        result = {name: times(options, *contenders[name]) for name in order}
        with open(log, "a") as file:
            file.write(json.dumps(result) + "\n")
    return [json.loads(line) for line in log.read_text().splitlines()]


def table(choices, rounds):
    lines = ["| size, B | choice | predicted gain | without, us | with, us | ratio | rounds faster |", "|---|---|---|---|---|---|---|"]
    for choice in choices:
        size = str(choice["bytes"])
        without, ruled = ([result[name][size] for result in rounds] for name in ["without", "with"])
        medians = [statistics.median(values) / 1e3 for values in (without, ruled)]
        faster = sum(one > other for one, other in zip(without, ruled))
        lines.append(f"| {size} | {choice['best']} | {choice['gain']:.0%} | {medians[0]:.1f} | {medians[1]:.1f} | "
                     f"{medians[0] / medians[1]:.2f} | {faster} of {len(rounds)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--operation", choices=ALGORITHMS, default="bcast")
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], default=[4096, 65536, 524288])
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--iterations", type=int, default=15)
    parser.add_argument("--launcher", default="mpirun.openmpi")
    parser.add_argument("--compiler", default="mpicc.openmpi")
    parser.add_argument("--flowcast", type=lambda text: pathlib.Path(text).resolve(), default=shutil.which("flowcast"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    run(options, options.compiler, "-O2", "-o", "rules", pathlib.Path(__file__).resolve().with_name("rules.c"))
    version = re.search(r"\) (\d+\.\d+\.\d+)", run(options, options.launcher, "--version"))[1]
    fields = [word for field in [f"cluster.nodes={options.nodes}", "cluster.ranks_per_node=1", *options.set] for word in ["--set", field]]
    (options.folder / "lab.toml").write_text(run(options, options.flowcast, "lab", "profiles", "fair", *fields))
    run(options, options.flowcast, "lab", "up", "lab.toml", "--name", LAB)
    try:
        measure_algorithms(options, version)
        choices = choose(options, version)
        print(table(choices, compare(options)))
    finally:
        run(options, options.flowcast, "lab", "down", LAB)


if __name__ == "__main__":
    main()
