#!/usr/bin/env python3
"""Measures all figures of docs/evidence/performance.md and writes the page.

    python3 benches/performance.py [--rounds N] [--command target/release/flowcast] [--loggopsim FOLDER]
        [-o docs/evidence/performance.md]

Every row is measured once in each round, so that other load on the machine affects all rows equally. A row shows the median,
minimum and maximum of its rounds. Peers are measured if they are installed (Debian's simgrid and libsimgrid-dev, an own build of
LogGOPSim), and otherwise listed as skipped. The plot needs matplotlib.
"""

import argparse, datetime, json, os, pathlib, platform, resource, shutil, statistics, subprocess, sys, tempfile
import textwrap, time

STREAMS = "Thousands of flows in flight?"
LOGGOPS = "2000,500,700,1,65536"
# Iterations for about a million messages, or for 100,000 if a million would take more than a second.
ITERATIONS = {
    "halo": {64: 3907, 1024: 245, 16384: 16},
    "chain": {64: 15625, 1024: 977, 16384: 62},
    "dissemination": {64: 2605, 1024: 98, 16384: 5},
    "alltoall": {64: 248, 1024: 1},
}
LINKS = """schema = "flowcast/network/2"
name = "links"
[point_to_point]
rule = "dimemas"
[nic]
latency = "4us"
bandwidth = "100MB/s"
[[machine.nodes]]
count = {ranks}
in_links = 1
out_links = 1
"""
FLOWS = {
    "16 flows between pairs of nodes of their own": [(2 * i, 2 * i + 1) for i in range(16)],
    "16 flows into one node": [(i, 0) for i in range(1, 17)],
    "30 flows in a chain": [(i, i + 1) for i in range(30)],
    "16 flows in a ring": [(i, (i + 1) % 16) for i in range(16)],
    "30 flows, each of six nodes to each other": [(i, j) for i in range(6) for j in range(6) if i != j],
}


class Bench:
    """Files in a separate folder, and the rows to measure."""

    def __init__(self, command, folder):
        self.command, self.folder, self.questions = command, folder, []

    def make(self, *arguments):
        subprocess.run([self.command, *map(str, arguments)], check=True, cwd=self.folder, stdout=subprocess.DEVNULL)

    def program(self, kind, ranks, form, iterations=None):
        """Returns the name, without extension, of a generated program, which exists as text and compiled."""
        name = f"{kind}{ranks}-{form}-{iterations or 'all'}"
        if not (self.folder / f"{name}.fct").exists():
            count = iterations or ITERATIONS[kind][ranks]
            self.make("generate", kind, "--ranks", ranks, "--iterations", count, "--format", form, "-o", f"{name}.{form}")
            self.make("compile", f"{name}.{form}", "-o", f"{name}.fct")
        return name

    def question(self, title, text, head, rows):
        self.questions.append((title, text, head, rows))

    def rate(self, *arguments, per="messages_per_s"):
        def measure():
            out = subprocess.run([self.command, "bench", *map(str, arguments), "--repetitions", "1", "--json"],
                                 check=True, cwd=self.folder, capture_output=True, text=True).stdout
            return json.loads(out)[per] / 1e6
        return measure

    def text(self, *command):
        """Returns the output of the command."""
        return subprocess.run([str(part) for part in command], check=True, cwd=self.folder, capture_output=True, text=True).stdout

    def seconds(self, *command):
        """Returns the processor time, including that of the kernel."""
        def measure():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([str(part) for part in command], check=True, cwd=self.folder, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return measure

    def memory(self, *arguments):
        """Returns the peak resident memory, in GiB."""
        def measure():
            child = subprocess.Popen([self.command, *map(str, arguments)], cwd=self.folder,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode:
                sys.exit(f"{arguments}: exit code {child.returncode}")
            return usage.ru_maxrss / 2**20
        return measure


def replays(bench):
    def sizes(kinds, ranks, cell):
        return [(kind, [cell(kind, count) if count in ITERATIONS[kind] else None for count in ranks]) for kind in kinds]

    free = lambda kind, ranks: bench.rate("replay", bench.program(kind, ranks, "dim") + ".fct", "--network", "gige-tcp")
    bench.question("How fast is a program whose messages do not disturb each other?",
                   "`flowcast bench replay PROGRAM.fct --network gige-tcp`: million messages a second, simulation alone.",
                   ["", "64 ranks", "1,024 ranks"], sizes(["halo", "chain", "alltoall"], [64, 1024], free))
    def threads(ranks, count):
        file = f"long{ranks}.fct"
        if not (bench.folder / file).exists():
            bench.make("generate", "halo", "--ranks", ranks, "--iterations", 2_500_000 // ranks, "--format", "fct", "-o", file)
        return bench.rate("replay", file, "--network", "gige-tcp", "--model", "independent", "--threads", count)
    bench.question("On several processors?",
                   "A halo of 10 million messages, `flowcast bench replay --model independent --threads N`.",
                   ["", "64 ranks", "1,024 ranks", "16,384 ranks"],
                   [(f"{count} thread{'s' * (count > 1)}", [threads(ranks, count) for ranks in (64, 1024, 16384)])
                    for count in (1, 2)])
    text = lambda kind, ranks: bench.rate("replay", bench.program(kind, ranks, "dim") + ".dim", "--network", "gige-tcp",
                                          "--with-load")
    bench.question("And from the text of its trace?", "The same of `PROGRAM.dim` with `--with-load`.",
                   ["", "64 ranks", "1,024 ranks"], sizes(["halo", "chain", "alltoall"], [64, 1024], text))

    def limits(kind, ranks):
        file = bench.folder / f"links{ranks}.toml"
        file.write_text(LINKS.format(ranks=ranks))
        return bench.rate("replay", bench.program(kind, ranks, "dim") + ".fct", "--network", file)
    kinds, ranks = ["chain", "halo", "dissemination"], [64, 1024, 16384]
    bench.question("With one in and one out link a node, by Dimemas' rules?",
                   "`--network` with rule `dimemas` and a node with `in_links = 1` and `out_links = 1` for each rank.",
                   ["", "64 ranks", "1,024 ranks", "16,384 ranks"], sizes(kinds, ranks, limits))
    goal = lambda kind, ranks: bench.rate("replay", bench.program(kind, ranks, "goal") + ".fct", "--goal-params", LOGGOPS)
    bench.question("A GOAL schedule under LogGOPS?", f"`flowcast bench replay SCHEDULE.fct --goal-params {LOGGOPS}`.",
                   ["", "64 ranks", "1,024 ranks", "16,384 ranks"], sizes(kinds, ranks, goal))
    shared = lambda model, count, iterations: bench.rate(
        "replay", bench.program("halo", count, "dim", iterations) + ".fct", "--network", "gige-tcp", "--model", model)
    bench.question("A program whose messages share the network?",
                   "Halos of 51,200 messages on 64 ranks and 49,152 on 1,024, `--network gige-tcp --model MODEL`.",
                   ["", "64 ranks", "1,024 ranks"],
                   [(model, [shared(model, 64, 200), shared(model, 1024, 12)]) for model in ("fair", "closed-loop")])


def patterns(bench):
    rows = []
    for name, ends in FLOWS.items():
        file = name.split(",")[0].replace(" ", "-") + f"{len(rows)}.pattern"
        sizes = [400 + place * 7919 % 1200 for place in range(len(ends))]
        lines = [f"{src} -> {dst} {size}MB\n" for (src, dst), size in zip(ends, sizes)]
        (bench.folder / file).write_text("".join(lines))
        packet = ["packet", file, "--network", "gige-lam"]
        rows.append((name, [bench.rate(*packet, "--unfold", per="packet_hops_per_s"),
                            bench.rate(*packet, per="packet_hops_per_s")]))
    bench.question("Long flows packet by packet?",
                   "`flowcast bench packet PATTERN --network gige-lam`, flows of 400 to 1,600 MB: million packet-hops a "
                   "second, each packet carried (`--unfold`) and whole periods of steady states passed over.",
                   ["", "each packet", "periods passed over"], rows)


def streams(bench):
    """Random flows, most of which are in flight at the same time; SimGrid must give the same ends."""
    has_simgrid = shutil.which("g++") and os.path.exists("/usr/include/simgrid/s4u.hpp")
    if has_simgrid:
        source = pathlib.Path(__file__).parent / "simgrid_stream.cpp"
        subprocess.run(["g++", "-O2", "-std=c++17", source, "-o", bench.folder / "simgrid-stream", "-lsimgrid"], check=True)
    rows = []
    for flows in (1000, 3000, 10_000, 30_000, 100_000):
        file = f"stream{flows}.pattern"
        bench.make("generate", "stream", "--ranks", 64, "--flows", flows, "--load", 3, "-o", file)
        rows.append((f"{flows:,} flows among 64 nodes", file, 64, flows <= 10_000))
    for flows, load in ((10_000, 0.3), (10_000, 0.6)):
        file = f"stream{flows}-{load}.pattern"
        bench.make("generate", "stream", "--ranks", 1024, "--flows", flows, "--load", load, "-o", file)
        rows.append((f"{flows:,} flows among 1,024 nodes, load {load}", file, 1024, True))
    for ranks in (64, 128):
        pairs = [(i, j) for i in range(ranks) for j in range(ranks) if i != j]
        lines = [f"{i} -> {j} {1_000_000 + (i * 7919 + j * 104729) % 1_000_000}B @ 0ns\n" for i, j in pairs]
        (bench.folder / f"pairs{ranks}.pattern").write_text("".join(lines))
        rows.append((f"all {len(pairs):,} concurrent pairs of {ranks} nodes", f"pairs{ranks}.pattern", ranks, True))

    def cells(file, ranks, is_for_simgrid):
        network = ["--network", "gige-tcp", "--set", "nic.bandwidth=125MB/s", "--set", "nic.latency=0us", "--json"]
        fair, loop = ([bench.command, "predict", file, "--model", model, *network] for model in ("fair", "closed-loop"))
        bus = ["--set", "bus.bandwidth=1200MB/s", "--set", f"bus.nodes={ranks}"]
        theirs = ["./simgrid-stream", file, ranks, 125_000_000] if has_simgrid and is_for_simgrid else None
        if theirs:
            ends = zip(map(float, bench.text(*theirs).split()), json.loads(bench.text(*fair))["flows"], strict=True)
            if (worst := max(abs(their - our["end_s"]) for their, our in ends)) > 1e-6:
                sys.exit(f"{file}: the ends differ by up to {worst} s")
        return [theirs and bench.seconds(*theirs), bench.seconds(*fair), bench.seconds(*fair, *bus), bench.seconds(*loop)]
    bench.question(STREAMS,
                   "Seconds of processor time of whole commands, `flowcast predict FILE.pattern --json`. Streams among 64 nodes are "
                   "at load 3. SimGrid shares by max-min fairness (`benches/simgrid_stream.cpp`, which makes no more of it than it "
                   "needs); its ends and those of `fair` agree to 1 us.",
                   ["", "SimGrid", "`fair`", "`fair`, one bus", "`closed-loop`"], [(row[0], cells(*row[1:])) for row in rows])
    return [] if has_simgrid else ["SimGrid's flows (no g++ or libsimgrid-dev)"]


def outputs(bench):
    halo = bench.program("halo", 64, "dim")
    predict = ["predict", f"{halo}.fct", "--network", "gige-tcp", "--model", "independent"]
    files = {"no file": [], "`--write messages` as CSV": ["--write", "messages=m.csv"], "`--write paraver`": ["--write", "paraver=p.prv"],
             "`--report`": ["--report", "r.html"]}
    bench.question("A million messages with a file of them?",
                   "`flowcast predict halo.fct --network gige-tcp --model independent`: processor time, the kernel's "
                   "included, and the most memory that is resident.", ["", "seconds", "GiB"],
                   [(name, [bench.seconds(bench.command, *predict, *more), bench.memory(*predict, *more)])
                    for name, more in files.items()])


def replay_beside_simgrid(bench):
    halo = bench.program("halo", 64, "dim", 200)
    bench.make("convert", f"{halo}.dim", "--format", "ti", "-o", "halo-ti")
    (bench.folder / "hosts").write_text("".join(f"node-{rank}.simgrid.org\n" for rank in range(64)))
    (bench.folder / "platform.xml").write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        '<cluster id="c" prefix="node-" suffix=".simgrid.org" radical="0-63" speed="1Gf" bw="125MBps" lat="30us"/></platform>')
    theirs = ["smpirun", "-np", "64", "-hostfile", "hosts", "-platform", "platform.xml", "-replay", "halo-ti",
              "--log=replay.thresh:critical"]
    ours = [bench.command, "predict", f"{halo}.dim", "--network", "gige-tcp", "--model", "fair"]
    bench.question("A replay beside SimGrid's?", "Seconds of processor time for a halo of 51,200 messages on 64 ranks, from the text.",
                   ["", "seconds"], [("SimGrid `smpirun -replay`", [bench.seconds(*theirs)]),
                                     ("Flowcast, `fair`", [bench.seconds(*ours)])])


def schedules_beside_loggopsim(bench, folder):
    """Equal parameters, from the binary form of each; the last host must finish at the same nanosecond."""
    latency, overhead, gap, per_byte, limit = LOGGOPS.split(",")
    rows = []
    for kind, ranks in [("halo", 64), ("halo", 1024), ("dissemination", 1024), ("chain", 64)]:
        name = bench.program(kind, ranks, "goal")
        subprocess.run([folder / "txt2bin", "-i", f"{name}.goal", "-o", f"{name}.bin"], check=True, cwd=bench.folder,
                       stdout=subprocess.DEVNULL)
        theirs = [folder / "LogGOPSim", "-f", f"{name}.bin", "--batchmode", "-L", latency, "-o", overhead, "-g", gap, "-G",
                  per_byte, "-S", limit]
        ours = [bench.command, "predict", f"{name}.fct", "--goal-params", LOGGOPS]
        their_end = int(bench.text(*theirs).split("host")[-1].split()[1].rstrip(":"))
        our_end = json.loads(bench.text(*ours, "--json"))["makespan_s"]
        if abs(their_end * 1e-9 - our_end) > 0.5e-9:
            sys.exit(f"{name}: {their_end} ns and {our_end} s")
        rows.append((f"{kind}, {ranks:,} ranks", [bench.seconds(*theirs), bench.seconds(*ours)]))
    bench.question("GOAL schedules beside LogGOPSim?",
                   "Seconds of processor time for about a million messages, whole commands, from the binary form of each; both give "
                   "the same time to the nanosecond.", ["", "LogGOPSim", "Flowcast"], rows)


def peers(bench, loggopsim):
    """Adds the rows that can be measured here, and reports the others."""
    skipped = []
    if shutil.which("smpirun"):
        replay_beside_simgrid(bench)
    else:
        skipped.append("SimGrid's replay (no `smpirun`)")
    if loggopsim:
        schedules_beside_loggopsim(bench, loggopsim.resolve())
    else:
        skipped.append("LogGOPSim (`--loggopsim FOLDER` with `LogGOPSim` and `txt2bin`, built from their source)")
    return skipped


def measured(bench, rounds):
    """Returns the values of all rounds by question, row and column. Each round measures everything."""
    values = {}
    for turn in range(rounds):
        for question, (title, _, _, rows) in enumerate(bench.questions):
            print(f"round {turn + 1} of {rounds}: {title}", file=sys.stderr)
            for row, (_, cells) in enumerate(rows):
                for column, measure in enumerate(cells):
                    if measure:
                        values.setdefault((question, row, column), []).append(measure())
    return values


def draw_growth(bench, values, path):
    """Plots time against the number of flows, on logarithmic scales, as an SVG next to the page."""
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "flowcast"
    from matplotlib import pyplot
    number = [title for title, *_ in bench.questions].index(STREAMS)
    _, _, head, rows = bench.questions[number]
    figure, axes = pyplot.subplots(figsize=(6.4, 4))
    for column, name in enumerate(head[1:]):
        points = [(int(row.split()[0].replace(",", "")), statistics.median(values[number, place, column]))
                  for place, (row, _) in enumerate(rows) if "among 64" in row and (number, place, column) in values]
        if points:
            axes.plot(*zip(*points), marker="o", label=name.replace("`", ""))
    axes.set(xscale="log", yscale="log", xlabel="flows", ylabel="processor time [s]")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")


def digits(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def page(bench, values, skipped, setting):
    lines = ["# Performance", "", wrapped(setting), ""]
    for question, (title, text, head, rows) in enumerate(bench.questions):
        lines += [f"## {title}", "", wrapped(text), "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for row, (name, cells) in enumerate(rows):
            def cell(column):
                all_rounds = values.get((question, row, column))
                if not all_rounds:
                    return "-"
                middle, least, most = statistics.median(all_rounds), min(all_rounds), max(all_rounds)
                return f"{digits(middle)} ({digits(least)} to {digits(most)})"
            lines.append(f"| {name} | {' | '.join(cell(column) for column in range(len(cells)))} |")
        lines.append("")
        if title == STREAMS:
            lines += ["![Processor time by number of flows among 64 nodes](../images/growth.svg)", ""]
    if skipped:
        lines += [f"Skipped: {', '.join(skipped)}.", ""]
    lines += [wrapped("What a message costs in instructions, whatever the machine does: "
                      "[counts](speed.md#what-a-message-costs-counted). The packet model in detail: "
                      "[its speed](speed.md#speed-of-the-packet-model).")]
    return "\n".join(lines) + "\n"


def wrapped(text):
    return textwrap.fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)


def processor():
    names = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return f"{os.cpu_count()} cores of {names[0] if names else platform.machine()}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--command", default="target/release/flowcast")
    arguments.add_argument("--loggopsim", type=pathlib.Path, help="folder with LogGOPSim and txt2bin")
    arguments.add_argument("-o", "--output", type=pathlib.Path)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(str(pathlib.Path(given.command).resolve()), pathlib.Path(folder))
        for add in (replays, patterns, outputs):
            add(bench)
        skipped = streams(bench) + peers(bench, given.loggopsim)
        begin, loads = time.time(), [os.getloadavg()[0]]
        values = measured(bench, given.rounds)
        loads.append(os.getloadavg()[0])
    busy = "" if loads[0] < 1 else (
        f" Other work went on: the load was\n{loads[0]:.1f} at the beginning and {loads[1]:.1f} at the end, which divides "
        "speeds by about the load over the cores.")
    version = subprocess.run([given.command, "--version"], capture_output=True, text=True).stdout.strip()
    setting = (f"`python3 benches/performance.py --rounds {given.rounds} -o docs/evidence/performance.md` wrote this page on "
               f"{datetime.date.today()}, in {(time.time() - begin) / 60:.0f} min.\n{version}, release build, on {processor()}, "
               f"{platform.system()} {platform.release().split('-')[0]}.\nA cell is the median of {given.rounds} rounds over "
               f"all rows, with the least and the greatest.{busy}")
    text = page(bench, values, skipped, setting)
    if not given.output:
        return print(text)
    given.output.write_text(text)
    draw_growth(bench, values, given.output.parent.parent / "images" / "growth.svg")


if __name__ == "__main__":
    main()
