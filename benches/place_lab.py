"""Compares the predicted and the measured order of mappings of ten programs in a lab of two racks.

    python3 benches/place_lab.py FOLDER --npb BIN [--flowcast PATH] [--repetitions COUNT] [--search COUNT] [--seed SEED]
        [--programs NAMES]

FOLDER keeps all results, and an interrupted bench continues from them. BIN has the NAS parallel benchmarks 3.3 or 3.4, built for eight
processes by Open MPI (cg.S, ft.S, is.W, lu.W, mg.W, with or without the `.8` of 3.3; files inputft.data and inputlu.data shorten
two of them). Needs Open MPI 4.1 with its compiler and user namespaces.

1. The lab is measured by `flowcast measure conflicts`, and `flowcast fit` makes its network. The programs are not part of the fit.
2. Each program is recorded once over shared memory, outside the lab.
3. Five mappings of its eight ranks to four nodes are compared: fill, round-robin, two random ones, and of COUNT random ones the one
   that is predicted fastest, or slowest if another of the five is as fast. The chosen mapping is the one predicted fastest.
4. Every program runs in the lab under each mapping, COUNT rounds of all mappings in turn. Its time is measured from the end of
   MPI_Init to the start of MPI_Finalize.
5. Two mappings of a program differ measurably if the Mann-Whitney test is significant at 5 %. Kendall's tau counts only these pairs:
   pairs that are predicted in the measured order, minus the other pairs, divided by all.
"""

import argparse
import itertools
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess

HERE = pathlib.Path(__file__).parent
NODES, SLOTS = 4, 2
RANKS = NODES * SLOTS
LAB = {"cluster.nodes": NODES, "cluster.ranks_per_node": SLOTS, "nic.bandwidth": "30Mbit/s", "backbone.bandwidth": "30Mbit/s",
       "tcp.window": "32KiB"}
PROGRAMS = {
    "cg": "cg.S", "ft": "ft.S", "is": "is.W", "lu": "lu.W", "mg": "mg.W",
    "halo": "halo 1500 60", "farm": "farm 15", "transpose": "transpose 30000 3",
    "ring": "patterns ring 15 200000", "rows": "patterns rows 8 100000",
}
# The formats of NPB: iterations before the rest of the class S of FT and class W of LU.
INPUTS = {
    "inputft.data": "3\n2\n2 4\n",
    "inputlu.data": "".join(f"-\n-\n{values}\n" for values in ["1 20", "20", "0.0015", "1.2", "1e-8 " * 5, "33 33 33"]),
}
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
# Shared memory inside a node, because long messages stall over loopback with the lab's windows. Set on the command line, which
# overrides the lab's variables.
MPIRUN = ["mpirun.openmpi", "-np", RANKS, "--mca", "btl", "tcp,self,vader", "--mca", "btl_vader_single_copy_mechanism", "none"]
# Largest U that is significant at 5 %, by number of runs; fewer runs are never significant.
LARGEST_U = {4: 0, 5: 2, 6: 5, 7: 8, 8: 13}


def run(options, *words, environment=None, seconds=600):
    """Returns the output of a command, which must succeed."""
    command = [str(word) for word in words]
    if command[0] == "flowcast":
        command[0] = str(options.flowcast)
    done = subprocess.run(command, cwd=options.folder, capture_output=True, text=True, timeout=seconds,
                          env={**os.environ, **(environment or {})})
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr[-2000:]}{done.stdout[-2000:]}")
    return done.stdout


def prepare(options):
    """Programs, their inputs, the lab and its network."""
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in ["halo", "farm", "transpose", "patterns"]:
        run(options, "mpicc.openmpi", "-O2", HERE.resolve() / f"programs/{name}.c", "-o", name)
    for program in PROGRAMS.values():
        if "." in program:
            built = next(path for path in [options.npb / f"{program}.{RANKS}", options.npb / f"{program}.x"] if path.exists())
            shutil.copy(built, options.folder / program)
    for name, text in INPUTS.items():
        (options.folder / name).write_text(text)
    fields = itertools.chain.from_iterable(["--set", f"{key}={value}"] for key, value in LAB.items())
    (options.folder / "lab.toml").write_text(run(options, "flowcast", "lab", "profiles", "two-racks", *fields))
    if not (options.folder / "net.toml").exists():
        run(options, "flowcast", "measure", "conflicts", "--lab", "lab.toml", "--size", "1MB", "-o", "conflicts.csv")
        run(options, "flowcast", "fit", "conflicts.csv", "-o", "net.toml")


def record(options, name):
    if not (options.folder / f"{name}.rec").exists():
        run(options, "flowcast", "record", "-o", f"{name}.rec", "--", *MPIRUN, "--oversubscribe",
            *f"./{PROGRAMS[name]}".split(), environment=ENVIRONMENT)


def alike(nodes):
    """Returns a key that is equal for mappings that differ only in the names of equal nodes and racks."""
    held = [tuple(rank for rank in range(RANKS) if nodes[rank] == node) for node in range(NODES)]
    half = NODES // 2
    return tuple(sorted([tuple(sorted(held[:half])), tuple(sorted(held[half:]))]))


def predict(options, name, mappings):
    """Predicts the seconds of each mapping."""
    words = []
    for number, nodes in enumerate(mappings):
        file = options.folder / f"search/{number}.map"
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(f"{node}\n" for node in nodes))
        words += ["--mapping", file.relative_to(options.folder)]
    text = run(options, "flowcast", "predict", f"{name}.rec", "--network", options.network, *words, "--json")
    return [prediction["makespan_s"] for prediction in json.loads(text)["predictions"]]


def choose(options, name):
    """Returns the five mappings with their predicted times, stored in NAME.json."""
    kept = options.folder / f"{name}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    fill = [rank // SLOTS for rank in range(RANKS)]
    mappings = {"fill": fill, "round-robin": [rank % NODES for rank in range(RANKS)]}
    draw = random.Random(options.seed)
    drawn = [draw.sample(fill, RANKS) for _ in range(options.search)]
    mappings["random 1"], mappings["random 2"] = drawn[:2]
    distinct = {alike(nodes): nodes for nodes in [*mappings.values(), *drawn]}
    candidates = list(distinct.values())
    times = predict(options, name, candidates)
    told = dict(zip(distinct, times))
    fastest = min(times)
    known = min(told[alike(nodes)] for nodes in mappings.values())
    name_of_last, seconds = ("slowest", max(times)) if known == fastest else ("fastest", fastest)
    mappings[name_of_last] = candidates[times.index(seconds)]
    cases = {"searched": len(candidates), "mappings": {}}
    for (rule, nodes), seconds in zip(mappings.items(), predict(options, name, list(mappings.values()))):
        cases["mappings"][rule] = {"nodes": nodes, "predicted_s": seconds}
        file = f"{name}.{rule.replace(' ', '-')}.map"
        (options.folder / file).write_text("".join(f"{node}\n" for node in nodes))
    kept.write_text(json.dumps(cases))
    return cases


def measure(options, chosen):
    """Measures rounds of all programs; writes lines of measured.jsonl."""
    log = options.folder / "measured.jsonl"
    done = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    finished = {(run["program"], run["mapping"], run["round"]) for run in done}
    hosts = ",".join(f"node{node}" for node in range(NODES))
    run(options, "flowcast", "lab", "up", "lab.toml", "--name", "place-lab")
    try:
        for number, (name, cases) in itertools.product(range(options.repetitions), chosen.items()):
            rules = list(cases["mappings"])
            for rule in rules[number % len(rules):] + rules[:number % len(rules)]:
                if (name, rule, number) in finished:
                    continue
                file = f"{name}.{rule.replace(' ', '-')}"
                text = run(options, "flowcast", "mapping", f"{file}.map", "--hosts", hosts, "--format", "openmpi")
                # Each rank can use both processors of this machine.
                text = "".join(line.rsplit("=", 1)[0] + "=0-1\n" for line in text.splitlines())
                (options.folder / f"{file}.rankfile").write_text(text)
                shutil.rmtree(options.folder / "run.rec", ignore_errors=True)
                told = run(options, "flowcast", "lab", "run", "place-lab", "--", options.flowcast, "record", "-o", "run.rec", "--json",
                           "--", *MPIRUN, "--rankfile", f"{file}.rankfile",
                           *f"./{PROGRAMS[name]}".split(), environment=ENVIRONMENT, seconds=120)
                summary = json.loads(next(line for line in reversed(told.splitlines()) if line.startswith("{")))
                result = {"program": name, "mapping": rule, "round": number, "seconds": summary["run_s"]}
                done.append(result)
                with open(log, "a") as file:
                    file.write(json.dumps(result) + "\n")
    finally:
        run(options, "flowcast", "lab", "down", "place-lab")
    return done


def differ(one, other):
    """Returns True if two samples differ at 5 % in the Mann-Whitney test."""
    below = sum((first < second) + 0.5 * (first == second) for first in one for second in other)
    largest = LARGEST_U.get(min(len(one), len(other)))
    return largest is not None and min(below, len(one) * len(other) - below) <= largest


def judge(chosen, done):
    """Returns the rows of the table, one for each program."""
    rows = []
    for name, cases in chosen.items():
        samples = {}
        for result in done:
            if result["program"] == name:
                samples.setdefault(result["mapping"], []).append(result["seconds"])
        told = {rule: case["predicted_s"] for rule, case in cases["mappings"].items()}
        medians = {rule: statistics.median(values) for rule, values in samples.items()}
        pairs = [pair for pair in itertools.combinations(samples, 2) if differ(samples[pair[0]], samples[pair[1]])]
        scores = []
        for one, other in pairs:
            product = (told[one] - told[other]) * (medians[one] - medians[other])
            scores.append((product > 0) - (product < 0))
        spread = statistics.median((max(values) - min(values)) / medians[rule] for rule, values in samples.items())
        error = statistics.mean(abs(told[rule] / medians[rule] - 1) for rule in samples)
        rows.append({"program": name, "told": told, "medians": medians, "pairs": len(pairs), "score": sum(scores), "spread": spread,
                     "error": error, "chosen": medians[min(told, key=told.get)] / min(medians.values()),
                     "worst": max(medians.values()) / min(medians.values())})
    return rows


def table(rows):
    rules = ["fill", "round-robin", "random 1", "random 2"]
    lines = ["| program | " + " | ".join(rules) + " | fastest or slowest | error | spread | tau (pairs) | chosen / best | worst / best |",
             "|---" * (len(rules) + 7) + "|"]
    for row in rows:
        cells = [f"{row['medians'][rule]:.2f} ({told:.2f})" for rule, told in row["told"].items()]
        cells[-1] = f"{list(row['told'])[-1]} {cells[-1]}"
        tau = f"{row['score'] / row['pairs']:.2f} ({row['pairs']})" if row["pairs"] else "- (0)"
        lines.append(f"| `{row['program']}` | " + " | ".join(cells) + f" | {row['error']:.1%} | {row['spread']:.1%} | {tau} | "
                     f"{row['chosen']:.3f} | {row['worst']:.2f} |")
    pairs = sum(row["pairs"] for row in rows)
    chosen = [row["chosen"] for row in rows]
    lines += ["", f"Kendall's tau over the {pairs} of {10 * len(rows)} pairs that measurably differ: {sum(row['score'] for row in rows) / pairs:.2f}.",
              f"Chosen over best: mean {statistics.mean(chosen):.3f}, at most {max(chosen):.3f}."]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--npb", type=lambda text: pathlib.Path(text).resolve(), required=True)
    parser.add_argument("--flowcast", type=lambda text: pathlib.Path(text).resolve(), default=shutil.which("flowcast"))
    parser.add_argument("--network", default="net.toml", help="a file of FOLDER instead of the fitted one")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--search", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    options = parser.parse_args()
    prepare(options)
    names = options.programs.split(",")
    for name in names:
        record(options, name)
    chosen = {name: choose(options, name) for name in names}
    print(table(judge(chosen, measure(options, chosen))))


if __name__ == "__main__":
    main()
