#!/usr/bin/env python3
"""Measures the cost of sweeps on the engines of the Python package, and writes docs/evidence/python-engines.md.

    python3 benches/python_engines.py [--rounds N] [--sets N] [-o docs/evidence/python-engines.md]

Run it with a Python in which the package (`pip install ./python`), `distributed` and `mpi4py` are installed, with `mpirun` of
Open MPI, where labs are allowed, and with `flowcast` on PATH or its path in FLOWCAST_COMMAND. Each row is measured once in each
round, so that other load on the machine affects all rows equally. A row shows the median, minimum and maximum of its rounds.
"""

import argparse, datetime, hashlib, importlib.metadata, json, multiprocessing, os, pathlib, platform, shlex, shutil, statistics
import subprocess, sys, tempfile, time
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
#: Launchers of this script under `mpi4py.futures`, with the number of workers. A process more distributes the tasks.
LAUNCHERS = {
    "mpi4py, 2 workers": ("mpirun --oversubscribe -np 3", 2),
    "mpi4py, 4 nodes of a lab": (
        "{command} lab run fair --set cluster.nodes=5 --set cluster.ranks_per_node=1 --set nic.bandwidth=200Mbit/s "
        "--no-self-test -- mpirun -np 5",
        4,
    ),
}
ALONE = "one thread, no engine"
WORKERS = {ALONE: 1} | {name: workers for name, (_, workers) in (ENGINES | LAUNCHERS).items()}


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


def measured(executor, workers, trace, sets, tasks):
    """Seconds of the large sweep and its digest, and seconds for each task and for each task that does nothing."""
    each, empty = overhead(executor, workers, tasks)
    # Workers have started and have loaded the package.
    sweep = lambda: flowcast.sweep(trace, "gige-tcp", grid_of(sets), executor, model="independent")
    seconds, table = timed(sweep)
    return seconds, hashlib.sha256(rows_of(table).encode()).hexdigest(), each, empty


def bare_tasks(tasks):
    """The study of the small tasks, and their time on one thread without an engine."""
    trace, network = flowcast.Trace.open(SMALL), flowcast.Network.load("gige-tcp")
    grid = (("latency", f"1us..100us:{tasks}"),)
    study = _worker.study_of(trace, [network], grid, [("independent",)])
    bare, _ = timed(lambda: [study.lines(task, task + 1, 1) for task in range(tasks)])
    return trace, network, grid, bare


def overhead(executor, workers, tasks):
    """Tasks of one set each, of a trace with three messages, so the engine takes nearly all of the time."""
    trace, network, grid, bare = bare_tasks(tasks)
    with _engines.Shipping(trace) as shipping:
        job = _worker.Grid(shipping.shipment, (network.to_toml(),), grid, (("independent",),))
        whole = lambda count: list(
            _engines.in_order(executor, _worker.lines, [(job, at, at + 1) for at in range(count)], shipping.content)
        )
        whole(4 * workers)
        seconds, _ = timed(lambda: whole(tasks))
        empty, _ = timed(lambda: [one.result() for one in [executor.submit(nothing, at, tasks) for at in range(tasks)]])
    return (seconds - bare / workers) / tasks, empty / tasks


def under_mpi(args):
    """Measures on the workers of this launch, and prints the result for the script that has launched it."""
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor() as executor:
        trace = flowcast.Trace.open(args.under_mpi)
        print(json.dumps(measured(executor, executor.num_workers, trace, args.sets, args.tasks)))


def launched(words, file, args, command):
    words = [*shlex.split(words.format(command=shlex.quote(command))), sys.executable, "-m", "mpi4py.futures", __file__]
    words += ["--under-mpi", str(file), "--sets", str(args.sets), "--tasks", str(args.tasks)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure_round(file, args, command, big, small, digests):
    trace = flowcast.Trace.open(file)
    seconds, lines = timed(lambda: alone(trace, grid_of(args.sets)))
    big.setdefault(ALONE, []).append(seconds)
    digests.add(hashlib.sha256(lines.encode()).hexdigest())
    small.setdefault(ALONE, []).append(bare_tasks(args.tasks)[3] / args.tasks)
    for name, (engine, workers) in (ENGINES | LAUNCHERS).items():
        if name in LAUNCHERS:
            found = launched(engine, file, args, command)
        else:
            with engine(workers) as executor:
                found = measured(executor, workers, trace, args.sets, args.tasks)
        seconds, digest, each, empty = found
        big.setdefault(name, []).append(seconds)
        digests.add(digest)
        small.setdefault(name, []).append(each)
        small.setdefault(f"{name}: its own part, a task that does nothing", []).append(empty)
        print(f"  {name}: {seconds:.1f} s, {each * 1e3:.2f} ms for each task", file=sys.stderr)


def nothing(number, tasks):
    """Returns different arguments, so that no engine merges two tasks."""


def spread(values, scale, unit):
    values = sorted(value * scale for value in values)
    return f"{statistics.median(values):.3g} {unit} | {values[0]:.3g} .. {values[-1]:.3g} {unit}"


def table(head, times, scale, unit):
    rows = [f"| {name} | {spread(values, scale, unit)} |" for name, values in times.items()]
    return "\n".join([f"| engine | {head} | least .. greatest |", "|---|---|---|", *rows])


def table_of_sets(times, sets):
    """Wall clock of the sweep, and the time of a worker for each set."""
    each = {name: statistics.median(values) * WORKERS[name] / sets * 1e3 for name, values in times.items()}
    rows = [f"| {name} | {spread(values, 1, 's')} | {each[name]:.3g} ms |" for name, values in times.items()]
    return "\n".join(["| engine | wall clock | least .. greatest | a worker's time for each set |", "|---|---|---|---|", *rows])


def verdict(small):
    over = [name for name in ENGINES | LAUNCHERS if statistics.median(small[name]) > BOUND_S]
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
Machine: {processor()}, {os.cpu_count()} processors, Python {platform.python_version()}, distributed {distributed.__version__},
mpi4py {importlib.metadata.version("mpi4py")}. The lab has five nodes at 200 Mbit/s; all of them compute on this machine.
Load when it began: {before:.1f}.{disturbed}

## {args.sets:,} what-ifs of {messages:,} messages

A halo exchange of 1,024 ranks, `--model independent`, parts of at most 256 sets ({part} tasks), workers started before.
{"All rows gave the same bytes." if equal else "ROWS GAVE DIFFERENT BYTES."}

{table_of_sets(big, args.sets)}

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
    parser.add_argument("--under-mpi", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.under_mpi:
        return under_mpi(args)
    command = os.environ.get("FLOWCAST_COMMAND") or shutil.which("flowcast") or sys.exit("flowcast is not on PATH")
    before = os.getloadavg()[0]
    big, small, digests = {}, {}, set()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "halo.fct")
        subprocess.run([command, "generate", *HALO, "--format", "fct", "-o", file], check=True)
        for number in range(args.rounds):
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
            measure_round(file, args, command, big, small, digests)
        text = page(args, flowcast.Trace.open(file).messages, big, small, before, len(digests) == 1)
    if args.output:
        args.output.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
