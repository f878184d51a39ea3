#!/usr/bin/env python3
"""Measures the cost of sweeps on the engines of the Python package, and writes docs/evidence/python-engines.md.

    python3 benches/python_engines.py [--rounds N] [--sets N] [-o docs/evidence/python-engines.md]

Run it with a Python in which the package (`pip install ./python`) and `distributed` are installed, and with `flowcast` on PATH
or its path in FLOWCAST_COMMAND. Each row is measured once in each round, so that other load on the machine affects all rows
equally. A row shows the median, minimum and maximum of its rounds.
"""

import argparse, datetime, hashlib, multiprocessing, os, pathlib, platform, shutil, statistics, subprocess, sys, tempfile, time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

import distributed
import flowcast_hpc as flowcast
from flowcast_hpc import _engines, _worker

HALO = ["halo", "--ranks", "1024", "--iterations", "245", "--size", "1KiB", "--compute", "10us"]
SMALL = "examples/ring.dim"
#: Maximum overhead of a task, in seconds.
BOUND_S = 5e-3


@contextmanager
def processes(workers):
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@contextmanager
def dask(workers):
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
    with distributed.LocalCluster(processes=True, **options) as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(workers)
        yield client.get_executor()


ENGINES = {
    "processes, 1 worker": (processes, 1),
    "processes, 2 workers": (processes, 2),
    "Dask, 1 worker": (dask, 1),
    "Dask, 2 workers": (dask, 2),
}


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def grid_of(sets):
    """Returns a grid of latency and bandwidth with this number of sets and a hundred latencies."""
    return {"latency": "1us..100us:100", "bandwidth": f"10MB/s..10GB/s:{sets // 100}:log"}


def alone(trace, grid):
    """Runs on one thread of this process, in the parts that workers get."""
    study = _worker.study_of(trace, [flowcast.Network.load("gige-tcp")], tuple(grid.items()), [("independent",)])
    part = 256
    return "".join(study.lines(start, start + part, 1) for start in range(0, study.sets, part))


def rows_of(table):
    return "".join(line + "\n" for line in table.to_csv().splitlines()[2:])


def measure_big(trace, grid, times, digests):
    seconds, lines = timed(lambda: alone(trace, grid))
    times.setdefault("one thread, no engine", []).append(seconds)
    digests.add(hashlib.sha256(lines.encode()).hexdigest())
    for name, (engine, workers) in ENGINES.items():
        with engine(workers) as executor:
            # Workers have started and have loaded the package.
            list(flowcast.sweep_parts(SMALL, grid={"latency": ["1us", "2us", "3us", "4us"]}, executor=executor))
            sweep = lambda: flowcast.sweep(trace, "gige-tcp", grid, executor, model="independent")
            seconds, table = timed(sweep)
        times.setdefault(name, []).append(seconds)
        digests.add(hashlib.sha256(rows_of(table).encode()).hexdigest())
        print(f"  {name}: {seconds:.1f} s", file=sys.stderr)


def measure_overhead(tasks, times):
    """Tasks of one set each, of a trace with three messages, so the engine takes nearly all of the time."""
    trace, network = flowcast.Trace.open(SMALL), flowcast.Network.load("gige-tcp")
    grid = (("latency", f"1us..100us:{tasks}"),)
    study = _worker.study_of(trace, [network], grid, [("independent",)])
    bare, _ = timed(lambda: [study.lines(task, task + 1, 1) for task in range(tasks)])
    times.setdefault("one thread, no engine", []).append(bare / tasks)
    for name, (engine, workers) in ENGINES.items():
        with engine(workers) as executor, _engines.Shipping(trace) as shipping:
            job = _worker.Grid(shipping.shipment, (network.to_toml(),), grid, (("independent",),))
            whole = lambda count: list(
                _engines.in_order(executor, _worker.lines, [(job, at, at + 1) for at in range(count)], shipping.content)
            )
            whole(4 * workers)
            seconds, _ = timed(lambda: whole(tasks))
            empty, _ = timed(lambda: [one.result() for one in [executor.submit(nothing, at, tasks) for at in range(tasks)]])
        times.setdefault(name, []).append((seconds - bare / workers) / tasks)
        times.setdefault(f"{name}: its own part, a task that does nothing", []).append(empty / tasks)
        print(f"  {name}: {times[name][-1] * 1e3:.2f} ms for each task", file=sys.stderr)


def nothing(number, tasks):
    """Returns different arguments, so that no engine merges two tasks."""


def spread(values, scale, unit):
    values = sorted(value * scale for value in values)
    return f"{statistics.median(values):.3g} {unit} | {values[0]:.3g} .. {values[-1]:.3g} {unit}"


def table(head, times, scale, unit):
    rows = [f"| {name} | {spread(values, scale, unit)} |" for name, values in times.items()]
    return "\n".join([f"| engine | {head} | least .. greatest |", "|---|---|---|", *rows])


def verdict(small):
    over = [name for name in ENGINES if statistics.median(small[name]) > BOUND_S]
    return f"at this load it was missed by {', '.join(over)}, and held by the others" if over else "all held it"


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def page(args, messages, big, small, before, equal):
    part = -(-args.sets // 256)
    disturbed = "" if before < 0.5 else (
        " Other programs ran besides, so that the times are upper limits, and what a second\nworker gains cannot be told from them.")
    return f"""# Sweeps on the engines of the Python package

`python3 benches/python_engines.py --rounds {args.rounds} --sets {args.sets}` wrote this page on {datetime.date.today()}.
Machine: {processor()}, {os.cpu_count()} processors, Python {platform.python_version()}, distributed {distributed.__version__}.
Load when it began: {before:.1f}.{disturbed}

## {args.sets:,} what-ifs of {messages:,} messages

A halo exchange of 1,024 ranks, `--model independent`, parts of at most 256 sets ({part} tasks), workers started before.
{"All rows gave the same bytes." if equal else "ROWS GAVE DIFFERENT BYTES."}

{table("wall clock", big, 1, "s")}

## What a task costs beside its work

{args.tasks} tasks of one set of a trace of three messages: the wall clock for each task, less the work. The bound that was set
is {BOUND_S * 1e3:.0f} ms; {verdict(small)}. What an engine needs for a task that does nothing stands below it.

{table("for each task", small, 1e3, "ms")}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sets", type=int, default=10_000)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    args = parser.parse_args()
    command = os.environ.get("FLOWCAST_COMMAND") or shutil.which("flowcast") or sys.exit("flowcast is not on PATH")
    before = os.getloadavg()[0]
    big, small, digests = {}, {}, set()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "halo.fct")
        subprocess.run([command, "generate", *HALO, "--format", "fct", "-o", file], check=True)
        trace = flowcast.Trace.open(file)
        for number in range(args.rounds):
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
            measure_overhead(args.tasks, small)
            measure_big(trace, grid_of(args.sets), big, digests)
        text = page(args, trace.messages, big, small, before, len(digests) == 1)
    if args.output:
        args.output.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
