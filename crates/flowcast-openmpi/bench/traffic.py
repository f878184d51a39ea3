#!/usr/bin/env python3
"""Random traffic of many nodes, and all-to-all, over several rails of the lab inside Open MPI (traffic.c).

    traffic.py FOLDER [--rails 25,25 --rails 40,10 --rails 20,20,10] [--nodes 8] [--slots 2] [--rounds 5] [--random 400,1000,1000000]
        [--workloads 4] [--first 6] [--alltoall 30000 --alltoall 400000] [--without fast-alone] [--component NAME=FOLDER ...]
        [--flowcast PATH]
    traffic.py FOLDER --summary

FOLDER keeps results.csv, and the bench goes on where it ended. --random has the messages of a workload and their least and largest
size; 0 workloads run none. --first runs so many workloads each in a job of its own, whose ranks have not connected before. Each round
runs stock, the first rail alone (the fastest) and the component, in turn; a time is that of the last rank. The bound is the time that
all rails together need for the most bytes that enter or leave a node, in frames of 1500 bytes (0.9415 of the rate).
"""

import argparse
import pathlib
import shutil
import statistics
import sys

import applications as bench

FIELDS = ["rails", "round", "contender", "traffic", "number", "seconds", "bytes"]
SOURCE = pathlib.Path(__file__).with_name("traffic.c")
GOODPUT = 0.9415e6 / 8


def measure(options):
    program = options.folder / "traffic"
    bench.subprocess.run(["mpicc.openmpi", "-O2", "-o", program, SOURCE, "-lm"], check=True)
    traffic = {f"alltoall-{size}": ["alltoall", size, 10] for size in options.alltoall}
    if options.workloads:
        traffic["random"] = ["random", *options.random.split(","), options.workloads, 1]
    traffic |= {f"first {seed}": ["first", *options.random.split(","), 1, seed] for seed in range(1, options.first + 1)}
    done = {(row["rails"], int(row["round"]), row["contender"], row["traffic"]) for row in bench.kept(options)}
    contenders = [who for who in ["stock", "fast-alone", *options.components] if who not in options.without]
    networks = "tcp,self" if options.slots == 1 else "tcp,self,vader"
    ranks = options.nodes * options.slots
    with bench.Labs(options.flowcast) as labs:
        for number in range(options.rounds):
            first = number % len(contenders)
            for rails in options.rails:
                for name, arguments in traffic.items():
                    for contender in contenders[first:] + contenders[:first]:
                        key = (bench.rails_name(rails), number + 1, contender, name)
                        if key in done:
                            continue
                        words, component = bench.words_of(options, contender)
                        command = [*bench.MPIRUN[:1], "--mca", "mpi_yield_when_idle", 1, "-np", ranks, "--mca", "btl", networks,
                                   *words, program, *arguments]
                        said = labs.run(options.nodes, rails, command, options.slots, component)
                        keep(options, key, said)


def keep(options, key, said):
    rows = [line.split(",") for line in said.splitlines() if line[:1].isdigit() and line.count(",") == 2]
    if not rows:
        print(f"no result of {key}\n{said}", file=sys.stderr)
    bench.append(options, FIELDS, [[*key, *row] for row in rows])


def least(values):
    values = sorted(values)
    return f"{values[0]:.3f}, {values[len(values) // 20]:.3f}"


def summary(options):
    cases = {}
    for row in bench.kept(options):
        case = cases.setdefault((row["rails"], row["traffic"].split()[0]), {})
        numbers = case.setdefault(row["contender"], {})
        rounds = numbers.setdefault((row["traffic"], row["number"]), ([], float(row["bytes"])))
        rounds[0].append(float(row["seconds"]))
    ours = [who for who in dict.fromkeys(who for case in cases.values() for who in case) if who not in ["stock", "fast-alone"]]
    print("Seconds: medians of the medians of each workload. Gains: median; least, 5 % quantile.\n")
    head = ["rails", "traffic", "workloads", "stock", "fast-alone", *ours]
    rows = []
    for who in ours:
        head += [f"{who} over the bound: median, largest", *(f"over {other}" for other in ["stock", "fast-alone"])]
    for (rails, traffic), case in sorted(cases.items()):
        medians = {who: {number: statistics.median(times) for number, (times, _) in numbers.items()}
                   for who, numbers in case.items()}
        row = [rails, traffic, str(max(map(len, medians.values())))]
        row += [f"{statistics.median(medians[who].values()):.4f}" if who in medians else "-" for who in ["stock", "fast-alone", *ours]]
        rate = sum(map(int, rails.split("+"))) * GOODPUT
        for who in ours:
            bounds = sorted(medians[who][number] * rate / case[who][number][1] for number in medians.get(who, {}))
            row.append(f"{statistics.median(bounds):.3f}, {bounds[-1]:.3f}" if bounds else "-")
            for other in ["stock", "fast-alone"]:
                gains = [medians[other][number] / medians[who][number] for number in medians.get(who, {}) if number in medians.get(other, {})]
                row.append(f"{statistics.median(gains):.3f}; {least(gains)}" if gains else "-")
        rows.append(row)
    bench.table(head, rows)


def parsed_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--rails", type=lambda text: tuple(map(int, text.split(","))), action="append", metavar="RATE,RATE")
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--random", default="400,1000,1000000", metavar="MESSAGES,LEAST,LARGEST")
    parser.add_argument("--workloads", type=int, default=4)
    parser.add_argument("--first", type=int, default=0, metavar="WORKLOADS")
    parser.add_argument("--alltoall", type=int, action="append", default=[], metavar="BYTES")
    parser.add_argument("--without", action="append", default=[], metavar="CONTENDER")
    parser.add_argument("--component", type=bench.named_folder, action="append", metavar="NAME=FOLDER")
    parser.add_argument("--flowcast", default=shutil.which("flowcast"))
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    options.rails = options.rails or [(25, 25), (40, 10), (20, 20, 10)]
    usual = bench.os.environ.get("COMPONENT", pathlib.Path.home() / ".openmpi/components")
    options.components = dict(options.component or [bench.named_folder(f"flowcast={usual}")])
    return options


def main():
    bench.signal.signal(bench.signal.SIGTERM, lambda *_: sys.exit(1))
    options = parsed_options()
    options.folder.mkdir(parents=True, exist_ok=True)
    if not options.summary:
        measure(options)
    summary(options)


if __name__ == "__main__":
    main()
