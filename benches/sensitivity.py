"""Times of a prediction, of a whole curve over the latency, and of one solution by HiGHS: FLOWCAST FOLDER [SECONDS].

`flowcast generate` creates halos of growing size, each twice as large as the previous one. HiGHS (highspy) gets the linear
program that `xtask/src/suite/sensitivity.py` creates from each, as long as it solves it within SECONDS (600). Two
programs are too large for it: a halo of ten million messages, and the training of a neural network on replicas of a pipeline
whose schedule has 223 million vertices. FOLDER needs 10 GB.
"""

import concurrent.futures
import importlib.util
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import time

TWIN = pathlib.Path(__file__).parents[1] / "xtask/src/suite/sensitivity.py"
RANKS = 64
RANGE = "0us..1ms"
COLUMNS = "| program | messages | one value, s | GiB | curve, s | pieces | walks | GiB | HiGHS, s | to one value | to the curve |"


def twin():
    spec = importlib.util.spec_from_file_location("sensitivity", TWIN)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers(module):
    settings = []
    for name, value in module.NUMBERS.items():
        settings += ["--set", f"nic.{name}={value}" + ("ns/B" if name == "gap_per_byte" else "ns")]
    return settings


def generated(flowcast, folder, workload, ranks, iterations, form):
    path = folder / f"{workload}-{ranks}-{iterations}.{form}"
    command = [flowcast, "generate", workload, "--ranks", str(ranks), "--iterations", str(iterations), "--format", form]
    if not path.exists():
        subprocess.run([*command, "-o", str(path)], check=True, capture_output=True)
    return path


def timed(flowcast, command, path, settings):
    """Returns the seconds of the command, its memory in GiB, and its output."""
    command = [flowcast, *command, str(path), "--network", "gige-tcp", "--model", "independent", "--json", *settings]
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    text = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    assert status == 0, command
    return time.monotonic() - begin, used.ru_maxrss / 2**20, json.loads(text)


def solve(path, document, limit):
    """Returns the seconds of one solution, at a value where the curve must agree; infinite beyond `limit`."""
    module = twin()
    program = module.Replay(module.records(path.read_text()), "latency").run()
    program.solver.setOptionValue("time_limit", limit)
    begin = time.monotonic()
    try:
        found = program.makespan(document["base"] * 1e9) * 1e-9
    except AssertionError:
        return float("inf")
    assert abs(found - document["base_makespan_s"]) <= 1e-9 + 1e-6 * found
    return time.monotonic() - begin


def row(flowcast, name, path, settings, limit=None):
    """Prints a row of the table. Returns the seconds of HiGHS, if HiGHS has a time limit."""
    value, value_memory, prediction = timed(flowcast, ["predict"], path, settings)
    curve = ["sensitivity", "--parameter", "nic.latency", "--range", RANGE]
    takes, memory, document = timed(flowcast, curve, path, settings)
    assert abs(prediction["makespan_s"] - document["base_makespan_s"]) <= 1e-9
    cells = [name, f"{prediction['messages']:,}", f"{value:.3f}", f"{value_memory:.2f}", f"{takes:.3f}"]
    cells += [len(document["pieces"]), document["walks"], f"{memory:.2f}"]
    solution = None
    if limit is not None:
        # In a separate process, because a forked child counts the memory of its parent as its own.
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
            solution = pool.submit(solve, path, document, limit).result()
    cells += [f"{solution:.1f}", f"{solution / value:.0f}", f"{solution / takes:.0f}"] if solution else ["", "", ""]
    print("|", " | ".join(map(str, cells)), "|", flush=True)
    return solution


def main(flowcast, folder, seconds="600"):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    settings = numbers(twin())
    print(COLUMNS, "|---" * 11 + "|", sep="\n")
    iterations, solution = 256, 0.0
    while solution < float(seconds):
        path = generated(flowcast, folder, "halo", RANKS, iterations, "dim")
        solution = row(flowcast, f"halo, {RANKS} ranks", path, settings, float(seconds))
        iterations *= 2
    row(flowcast, "halo, 1,024 ranks", generated(flowcast, folder, "halo", 1024, 2450, "dim"), settings)
    row(flowcast, "training, 1,024 ranks", generated(flowcast, folder, "training", 1024, 699, "fct"), settings)


main(*sys.argv[1:])
