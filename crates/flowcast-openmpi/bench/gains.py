#!/usr/bin/env python3
"""What a second rail gains for real applications: predicted from recordings over one rail, and measured.

    gains.py FOLDER --npb BIN [--rails 100,100 --rails 100,25] [--nodes 4] [--rounds 5] [--programs NAMES] ...
    gains.py FOLDER --summary

The options are those of applications.py. Each round records every program over the first rail alone, over both by Open MPI's own
`r2` (stock) and over both by the component: a time is that of the whole program, from MPI_Init to MPI_Finalize. From each recording
over one rail `flowcast predict` says how long the program takes over either network, as the lab's file describes them: nothing is
fitted. FOLDER keeps results.csv and those recordings, and the bench goes on where it ended.
"""

import json
import shutil
import signal
import statistics
import subprocess
import sys

import applications as bench

FIELDS = ["rails", "ranks", "round", "program", "contender", "measured", "predicted"]
ALONE = "fast-alone"


def flowcast(options, *words):
    done = subprocess.run([str(word) for word in [options.flowcast, *words]], capture_output=True, text=True, check=True)
    return done.stdout


def predicted(options, recording, files, contender):
    """Seconds over the networks that the contender has, from a recording over one rail."""
    rails = [word for file in files for word in ["--rail", file]] if contender != ALONE else ["--network", files[0]]
    scheduler = ["--scheduler", "stock"] if contender == "stock" else []
    return json.loads(flowcast(options, "predict", recording, *rails, *scheduler, "--json"))["makespan_s"]


def recorded(options, labs, program, run, recording):
    """Seconds of the whole program, of which a recording is made; none if its own verification fails."""
    shutil.rmtree(recording, ignore_errors=True)
    words, component = bench.words_of(options, run.contender)
    command = [options.flowcast, "record", "-o", recording, "--", *bench.MPIRUN, "-np", run.ranks, *words, *program.command(run.ranks)]
    said = labs.run(run.ranks, run.rails, command, 1, component)
    if not program.times(said, run.ranks):
        print(f"did not verify: {run}\n{said}", file=sys.stderr)
        return None
    return json.loads(flowcast(options, "record", "--show", recording, "--json"))["run_s"]


def measure(options, programs):
    done = {(row["rails"], int(row["ranks"]), int(row["round"]), row["program"]) for row in bench.kept(options)}
    with bench.Labs(options.flowcast) as labs:
        for number in range(options.rounds):
            for nodes in options.nodes:
                for rails in options.rails:
                    files = [network_file(options, nodes, rate) for rate in rails]
                    for name, program in programs.items():
                        ranks = program.ranks(nodes)
                        if (bench.rails_name(rails), ranks, number + 1, name) not in done:
                            rows = measure_program(options, labs, program, bench.Run(rails, ranks, number + 1, name, ALONE), files)
                            bench.append(options, FIELDS, rows)


def measure_program(options, labs, program, alone, files):
    """A row for each contender of a round, or none."""
    case = [bench.rails_name(alone.rails), alone.ranks, alone.round, alone.program]
    kept = options.folder / ("-".join(map(str, case)) + ".rec")
    rows = []
    for contender in [ALONE, "stock", *options.components]:
        recording = kept if contender == ALONE else options.folder / "other.rec"
        seconds = recorded(options, labs, program, bench.dataclasses.replace(alone, contender=contender), recording)
        if seconds is None:
            return []
        rows.append([*case, contender, seconds, predicted(options, kept, files, contender)])
    return rows


def network_file(options, nodes, rate):
    file = options.folder / f"{rate}.toml"
    settings = [f"cluster.nodes={nodes}", f"nic.bandwidth={rate}Mbit/s"]
    file.write_text(flowcast(options, "lab", "network", "rails", *(word for field in settings for word in ["--set", field])))
    return file


def summary(options):
    cases = {}
    for row in bench.kept(options):
        rounds = cases.setdefault((row["rails"], row["ranks"], row["program"]), {}).setdefault(row["contender"], {})
        rounds[row["round"]] = (float(row["measured"]), float(row["predicted"]))
    ours = [who for who in dict.fromkeys(who for case in cases.values() for who in case) if who != ALONE]
    head = ["rails", "ranks", "program", "rounds", "alone: measured", "predicted"]
    for who in ours:
        head += [f"gain by {who}: measured", "predicted", "predicted / measured"]
    table, errors = [], {who: [] for who in ours}
    for case, rounds in sorted(cases.items()):
        alone = rounds[ALONE]
        row = [*case, str(len(alone)), *(bench.with_interval([times[which] for times in alone.values()]) for which in [0, 1])]
        for who in ours:
            measured = [alone[number][0] / times[0] for number, times in rounds[who].items()]
            predicted = [alone[number][1] / times[1] for number, times in rounds[who].items()]
            ratio = statistics.median(predicted) / statistics.median(measured)
            errors[who].append(abs(ratio - 1))
            row += [bench.with_interval(measured), bench.with_interval(predicted), f"{ratio:.2f}"]
        table.append(row)
    bench.table(head, table)
    for who, off in errors.items():
        within = [sum(error <= limit for error in off) for limit in [0.05, 0.1]]
        print(f"\n{who}: of {len(off)} gains {within[0]} within 5 %, {within[1]} within 10 %")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    options = bench.parsed_options(__doc__)
    options.folder.mkdir(parents=True, exist_ok=True)
    if not options.summary:
        measure(options, bench.programs(options))
    summary(options)


if __name__ == "__main__":
    main()
