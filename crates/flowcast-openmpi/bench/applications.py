#!/usr/bin/env python3
"""Real applications over two rails of the lab inside Open MPI.

    applications.py FOLDER --npb BIN [--rails 100,100 --rails 100,25] [--nodes 4 --nodes 8] [--rounds COUNT]
        [--programs NAMES] [--without CONTENDER ...] [--component NAME=FOLDER ...] [--flowcast PATH]
    applications.py FOLDER --summary                    # of what FOLDER has, without a run
    applications.py FOLDER --npb BIN --verify           # every kernel of class S and W, with and without shared memory

FOLDER keeps results.csv, and the bench goes on where it ended. BIN has the NAS parallel benchmarks 3.3 or 3.4 built by Open MPI
(cg.W.4, or cg.W.x of 3.4); a program is a kernel with its class, as cg.W, or hpcc, or lammps (packages of Debian). Needs
`flowcast`, Open MPI 4.1, the installed component (cargo xtask install-openmpi; COMPONENT=FOLDER names another place), no root.

Each round runs every contender once, one program after the other, one rank a node; who begins changes from round to round. A
time is what the program says of itself. A run whose own verification fails has no time.

| contender | |
|---|---|
| stock | `r2` with both rails, which the lab tells their bandwidths |
| fast-alone, slow-alone | `r2` with one rail |
| flowcast | the component of COMPONENT as it is by default, without stored measurements; or those of --component |
| one-rail | `r2`, the rails replaced by one of their sum: what two rails can be worth at most |
| unlimited | `r2` with one rail of 10 Gbit/s: what the processors of this machine need, communication by TCP included |

The share of the network is 1 - unlimited / fast-alone. On a quiet machine: real-time priority would keep the kernel from its part of
the work.
"""

import argparse
import csv
import dataclasses
import math
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys

FIELDS = ["rails", "ranks", "round", "program", "contender", "seconds", "sent"]
STOCK = ["stock", "fast-alone", "slow-alone"]
BOUNDS = ["one-rail", "unlimited"]
UNLIMITED = 10_000
MPIRUN = ["mpirun.openmpi", "--map-by", "node", "--mca", "mpi_yield_when_idle", "1"]
OURS = ["--mca", "bml", "flowcast", "--mca", "bml_flowcast_store", "none", "--mca", "bml_flowcast_verbose", "1"]
SECONDS = 900

# A Lennard-Jones melt of 16,384 atoms: each rank sends the positions of its border and gets forces back in every step.
MELT = """\
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 16 0 16 0 16
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 50
run 100
"""
# Lines of the component's own test that are replaced: the size of Linpack, and one matrix of PTRANS more.
HPCC_SIZES = {" Ns": 600, "Number of additional problem sizes for PTRANS": 1, "values of N": 1200}
HPCC_INPUT = pathlib.Path(__file__).resolve().parent.parent / "tests/programs/hpccinf.txt"


@dataclasses.dataclass(frozen=True)
class Run:
    """One start of a program."""

    rails: tuple
    ranks: int
    round: int
    program: str
    contender: str


class Nas:
    """A kernel of the NAS parallel benchmarks."""

    def __init__(self, options, name):
        self.options, self.name = options, name

    def ranks(self, nodes):
        """BT and SP want a square."""
        return math.ceil(math.sqrt(nodes)) ** 2 if self.name[:2] in ["bt", "sp"] else nodes

    def command(self, ranks):
        built = [self.options.npb / f"{self.name}.{ranks}", self.options.npb / f"{self.name}.x"]
        found = next((path for path in built if path.exists()), None)
        return [found or sys.exit(f"found none of {', '.join(map(str, built))}")]

    def times(self, said, _ranks):
        """Seconds by section; nothing if the program did not verify its result."""
        if not re.search(r"Verification\s*=\s*SUCCESSFUL", said):
            return {}
        return {self.name: float(re.search(r"Time in seconds\s*=\s*(\S+)", said)[1])}


class Hpcc:
    """HPC Challenge, by sections."""

    def __init__(self, options, _name):
        self.folder = options.folder / "hpcc"
        self.folder.mkdir(exist_ok=True)

    def ranks(self, nodes):
        return nodes

    def command(self, ranks):
        """Writes its input; a value before the others of a line is the one that it reads."""
        (self.folder / "hpccoutf.txt").unlink(missing_ok=True)
        lines = []
        for line in HPCC_INPUT.read_text().splitlines():
            value = next((value for what, value in {**HPCC_SIZES, " Qs": ranks // 2}.items() if line.endswith(what)), "")
            lines.append(f"{value} {line}" if value else line)
        (self.folder / "hpccinf.txt").write_text("\n".join(lines) + "\n")
        return ["env", "--chdir", self.folder, "hpcc"]

    def transpositions(self, text):
        """Seconds of those of the larger matrix; PTRANS' own summary is of the fastest in bytes a second, which may be of either."""
        size = HPCC_SIZES["values of N"]
        return [float(time) for time in re.findall(rf"^WALL +{size}(?: +\S+){{5}} +(\S+) PASSED", text, flags=re.MULTILINE)]

    def times(self, _said, _ranks):
        results = self.folder / "hpccoutf.txt"
        text = results.read_text() if results.exists() else ""
        failed = re.search(r"[1-9]\d* tests completed and failed residual checks", text)
        if failed or "Success=1" not in text or "End of HPC Challenge tests" not in text:
            return {}
        values = dict(re.findall(r"^(\w+)=(\S+)$", text, flags=re.MULTILINE))
        ring_bytes = 2_000_000
        return {
            "hpcc:hpl": float(values["HPL_time"]),
            "hpcc:ptrans": statistics.median(self.transpositions(text)),
            "hpcc:fft": sum(float(values[f"MPIFFT_time{step}"]) for step in range(7)),
            "hpcc:random-access": float(values["MPIRandomAccess_time"]),
            "hpcc:ring-2MB": ring_bytes / (float(values["RandomlyOrderedRingBandwidth_GBytes"]) * 1e9),
            "hpcc:ring-8B": float(values["RandomlyOrderedRingLatency_usec"]) * 1e-6,
        }


class Lammps:
    """A melt, whose total energy has to be that of a run over shared memory."""

    def __init__(self, options, _name):
        self.input, self.energies = options.folder / "melt.in", {}
        self.input.write_text(MELT)

    def ranks(self, nodes):
        return nodes

    def command(self, _ranks):
        return ["lmp", "-in", self.input, "-log", "none"]

    def energy(self, said):
        steps = re.findall(r"^ *100 +\S+ +\S+ +\S+ +(\S+) +\S+", said, flags=re.MULTILINE)
        return steps[-1] if steps else None

    def times(self, said, ranks):
        if ranks not in self.energies:
            words = [*MPIRUN, "--allow-run-as-root", "--oversubscribe", "-np", ranks, "--mca", "btl", "vader,self"]
            self.energies[ranks] = self.energy(output([*words, *self.command(ranks)])) or sys.exit("LAMMPS does not run")
        if self.energy(said) != self.energies[ranks]:
            return {}
        return {"lammps": float(re.search(r"Loop time of (\S+)", said)[1])}


def programs(options):
    kinds = {"hpcc": Hpcc, "lammps": Lammps}
    return {name: kinds.get(name, Nas)(options, name) for name in options.programs.split(",")}


def output(words, component=None):
    """What a command prints, also if it fails or takes too long."""
    command = ["timeout", "-k", "5", SECONDS, *words]
    environment = dict(os.environ)
    if component:
        environment["OMPI_MCA_mca_base_component_path"] = f"{component}:{system_components()}"
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=environment, check=False)
    return done.stdout.decode(errors="replace")


def system_components():
    said = subprocess.run(["ompi_info", "--path", "pkglibdir", "--parsable"], capture_output=True, text=True, check=True)
    return said.stdout.strip().split(":")[-1]


class Labs:
    """Labs that are up, one for each number of nodes and rates; ended together."""

    def __init__(self, flowcast):
        self.flowcast, self.names = flowcast, {}

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        for name in self.names.values():
            subprocess.run([self.flowcast, "lab", "down", name], stdout=subprocess.DEVNULL, check=False)

    def run(self, nodes, rates, words, slots=1, component=None):
        key = (nodes, rates, slots)
        if key not in self.names:
            name = "-".join(map(str, ["applications", os.getpid(), nodes, slots, *rates]))
            fields = [f"cluster.nodes={nodes}", f"cluster.ranks_per_node={slots}",
                      "nic.bandwidth=" + ",".join(f"{rate}Mbit/s" for rate in rates)]
            settings = [word for field in fields for word in ["--set", field]]
            subprocess.run([self.flowcast, "lab", "up", "rails", *settings, "--no-self-test", "--name", name],
                           stdout=subprocess.DEVNULL, check=True)
            self.names[key] = name
        return output([self.flowcast, "lab", "run", self.names[key], "--", *words], component)


def words_of(options, contender):
    """Options of mpirun for a contender, and the folder of its component."""
    alone = {"fast-alone": "eth0", "slow-alone": "eth1"}.get(contender)
    if contender in options.components:
        return OURS, options.components[contender]
    return ["--mca", "bml", "r2", *(["--mca", "btl_tcp_if_include", alone] if alone else [])], None


def started(options, labs, program, run):
    """What a run prints."""
    rails = {"one-rail": (sum(run.rails),), "unlimited": (UNLIMITED,)}.get(run.contender, run.rails)
    words, component = words_of(options, run.contender)
    return labs.run(run.ranks, rails, [*MPIRUN, "-np", run.ranks, *words, *program.command(run.ranks)], component=component)


def shares(said):
    """The last column of the component's table: what rank 0 sent over each rail."""
    return "/".join(re.findall(r"^ +eth\d .*?([\d.]+) %$", said, flags=re.MULTILINE))


def kept(options):
    file = options.folder / "results.csv"
    if not file.exists():
        return []
    with open(file, newline="") as lines:
        return list(csv.DictReader(lines))


def append(options, fields, rows):
    """Adds rows to results.csv, which begins with the names of the fields."""
    file = options.folder / "results.csv"
    head = [] if file.exists() else [fields]
    with open(file, "a", newline="") as lines:
        csv.writer(lines, lineterminator="\n").writerows([*head, *rows])


def keep(options, run, times, said):
    """Appends what a run took; a line without seconds if it did not verify, and what it printed in a file of its own."""
    case = [rails_name(run.rails), run.ranks, run.round]
    sections = times or {run.program: ""}
    append(options, FIELDS, [[*case, section, run.contender, seconds, shares(said)] for section, seconds in sections.items()])
    if not times:
        name = f"wrong-{rails_name(run.rails)}-{run.ranks}-{run.round}-{run.program}-{run.contender}.txt"
        (options.folder / name).write_text(said)
        print(f"did not verify: see {name}", file=sys.stderr)


def rails_name(rails):
    return "+".join(map(str, rails))


def measure(options, programs):
    done = {(row["rails"], int(row["ranks"]), int(row["round"]), row["program"].split(":")[0], row["contender"])
            for row in kept(options)}
    contenders = [who for who in [*STOCK, *options.components, *BOUNDS] if who not in options.without]
    with Labs(options.flowcast) as labs:
        for number in range(options.rounds):
            first = number % len(contenders)
            for nodes in options.nodes:
                for rails in options.rails:
                    for name, program in programs.items():
                        for contender in contenders[first:] + contenders[:first]:
                            run = Run(rails, program.ranks(nodes), number + 1, name, contender)
                            if (rails_name(rails), *dataclasses.astuple(run)[1:]) not in done:
                                said = started(options, labs, program, run)
                                keep(options, run, program.times(said, run.ranks), said)


def interval(values):
    """Two order statistics between which the median is with 90 % at least; with fewer than five values the range."""
    values, count = sorted(values), len(values)
    outside, below = 0, 0
    while outside + 2 * math.comb(count, below) / 2**count <= 0.1:
        outside += 2 * math.comb(count, below) / 2**count
        below += 1
    below = max(below - 1, 0)
    return values[below], values[-1 - below]


def with_interval(values):
    low, high = interval(values)
    return f"{statistics.median(values):.3g} ({low:.3g} to {high:.3g})"


def table(head, rows):
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def over(samples, one, other):
    """How often the time of the other goes into that of the one, of the rounds that both have."""
    first, second = samples.get(one, {}), samples.get(other, {})
    both = [first[number] / second[number] for number in first if number in second]
    return with_interval(both) if both else "-"


def gains(samples, ours):
    """Cells: the share of the network, what a rail of the sum gains, and ours over the best of the others and over the best rail."""
    medians = {who: statistics.median(rounds.values()) for who, rounds in samples.items()}
    both = {"unlimited", "fast-alone"} <= set(medians)
    share = f"{1 - medians['unlimited'] / medians['fast-alone']:.0%}" if both else "-"
    cells = [share, over(samples, "fast-alone", "one-rail")]
    for who in ours:
        for others in [STOCK, STOCK[1:]]:
            best = min(others, key=lambda other: medians.get(other, math.inf))
            cells.append(over(samples, best, who))
    return cells


def summary(options):
    cases, failed = {}, 0
    for row in kept(options):
        if row["seconds"]:
            samples = cases.setdefault((row["rails"], row["ranks"], row["program"]), {})
            samples.setdefault(row["contender"], {})[row["round"]] = float(row["seconds"])
        else:
            failed += 1
    cases = dict(sorted(cases.items(), key=lambda item: (item[0][0], int(item[0][1]), item[0][2])))
    named = dict.fromkeys(who for samples in cases.values() for who in samples)
    ours = [who for who in named if who not in STOCK + BOUNDS]
    everybody = [*STOCK, *ours, *BOUNDS]
    print("Medians in seconds with 90 % intervals (with fewer than five rounds the range).\n")
    table(["rails", "ranks", "program", "rounds", *everybody],
          [[*case, str(max(map(len, samples.values()))),
            *(with_interval(samples[who].values()) if who in samples else "-" for who in everybody)]
           for case, samples in cases.items()])
    print("\nHow many times as fast.\n")
    table(["rails", "ranks", "program", "network", "one-rail over fast-alone",
           *(f"{who} over the best {what}" for who in ours for what in ["other", "single rail"])],
          [[*case, *gains(samples, ours)] for case, samples in cases.items()])
    print(f"\n{failed} runs did not verify")
    return failed == 0


def verify(options):
    """Every kernel of class S and W with every number of ranks on two nodes; one line for each run."""
    runs = verified = 0
    component = next(iter(options.components.values()))
    with Labs(options.flowcast) as labs:
        for _round in range(options.rounds):
            for kernel in sorted({path.name[:4] for path in options.npb.glob("??.[SW].*")}):
                program = Nas(options, kernel)
                for ranks in [4, 9] if kernel[:2] in ["bt", "sp"] else [2, 4, 8]:
                    for networks in ["tcp,self", "tcp,self,vader"]:
                        words = [*MPIRUN, "-np", ranks, "--mca", "btl", networks, *OURS, *program.command(ranks)]
                        said = labs.run(2, (1000, 100), words, slots=5, component=component)
                        good = bool(program.times(said, ranks))
                        runs, verified = runs + 1, verified + good
                        if not good:
                            print(said, file=sys.stderr)
                        print(kernel, ranks, "ranks", networks, "verified" if good else "WRONG", shares(said), flush=True)
    print(f"{verified} of {runs} verified")
    return 0 < runs == verified


def named_folder(text):
    name, _, folder = text.partition("=")
    return name, pathlib.Path(folder).resolve(strict=True)


def parsed_options(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--npb", type=lambda text: pathlib.Path(text).resolve(strict=True), default=pathlib.Path.cwd())
    parser.add_argument("--rails", type=lambda text: tuple(map(int, text.split(","))), action="append", metavar="FAST,SLOW")
    parser.add_argument("--nodes", type=int, action="append")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--programs", default="cg.W,ft.W,is.W,lu.W,mg.W,bt.W,hpcc,lammps")
    parser.add_argument("--without", action="append", default=[], metavar="CONTENDER")
    parser.add_argument("--component", type=named_folder, action="append", metavar="NAME=FOLDER")
    parser.add_argument("--flowcast", default=shutil.which("flowcast"))
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--verify", action="store_true")
    options = parser.parse_args()
    options.rails, options.nodes = options.rails or [(100, 100), (100, 25)], options.nodes or [4, 8]
    usual = os.environ.get("COMPONENT", pathlib.Path.home() / ".openmpi/components")
    options.components = dict(options.component or [named_folder(f"flowcast={usual}")])
    return options


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    options = parsed_options(__doc__)
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.verify:
        sys.exit(not verify(options))
    if not options.summary:
        measure(options, programs(options))
    sys.exit(not summary(options))


if __name__ == "__main__":
    main()
