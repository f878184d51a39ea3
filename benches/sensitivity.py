"""How long a whole curve over the latency takes, and one solution of the linear program by HiGHS: FLOWCAST FOLDER [SECONDS].

Programs of growing size are made by `flowcast generate`, each four times as large as the one before; HiGHS (highspy) gets the
linear program that `xtask/src/suite/sensitivity.py` makes of each, as long as one solution and the making of it are
expected to take less than SECONDS (600). The largest program, of ten million messages, is for the curve alone.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time

TWIN = pathlib.Path(__file__).parents[1] / "xtask/src/suite/sensitivity.py"
RANKS = 64
RANGE = "0us..1ms"


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


def generated(flowcast, folder, ranks, iterations):
    path = folder / f"halo-{ranks}-{iterations}.dim"
    command = [flowcast, "generate", "halo", "--ranks", str(ranks), "--iterations", str(iterations), "-o", str(path)]
    if not path.exists():
        subprocess.run(command, check=True, capture_output=True)
    return path


def curve(flowcast, path, settings):
    """Seconds of the command, its memory in GiB, and what it printed."""
    command = [flowcast, "sensitivity", str(path), "--network", "gige-tcp", "--model", "independent", "--json", *settings]
    command += ["--parameter", "nic.latency", "--range", RANGE]
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    text = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    assert status == 0, command
    return time.monotonic() - begin, used.ru_maxrss / 2**20, json.loads(text)


def solved(module, path, document):
    """Seconds to make the linear program and to solve it at one value, where the curve has to agree."""
    begin = time.monotonic()
    program = module.Replay(module.records(path.read_text()), "latency").run()
    made = time.monotonic()
    base = document["base"] * 1e9
    assert abs(program.makespan(base) - document["base_makespan_s"] * 1e9) <= 1.0 + 1e-6 * document["base_makespan_s"] * 1e9
    return made - begin, time.monotonic() - made


def main(flowcast, folder, seconds="600"):
    folder, left = pathlib.Path(folder), float(seconds)
    folder.mkdir(parents=True, exist_ok=True)
    module = twin()
    settings = numbers(module)
    print("messages  curve s  pieces  walks  GiB  making LP s  HiGHS s  ratio")
    iterations, expected = 4, 0.0
    while expected < left:
        path = generated(flowcast, folder, RANKS, iterations)
        takes, memory, document = curve(flowcast, path, settings)
        made, solution = solved(module, path, document)
        left -= made + solution
        expected = 16 * solution + 4 * made
        messages = 4 * RANKS * iterations
        row = [messages, f"{takes:.3f}", len(document["pieces"]), document["walks"], f"{memory:.2f}"]
        print(*row, f"{made:.1f}", f"{solution:.1f}", f"{solution / takes:.0f}", sep="  ", flush=True)
        iterations *= 4
    path = generated(flowcast, folder, 1024, 2450)
    takes, memory, document = curve(flowcast, path, settings)
    print(4 * 1024 * 2450, f"{takes:.1f}", len(document["pieces"]), document["walks"], f"{memory:.2f}", sep="  ")


main(*sys.argv[1:])
