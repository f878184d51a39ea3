#!/usr/bin/env python3
"""Compares flows through fat trees, tori and Dragonflies with SimGrid's zones of the same names.

    python3 benches/simgrid_zones.py [--sets 200] [--rounds 3] [--flowcast target/release/flowcast] [--seed 1]
        [--large 1000 3000] [--json RESULT.json]

Needs g++ and Debian's libsimgrid-dev (3.32); without them it reports that, compares nothing and ends with code 77.

Each set is a random zone with random flows that all start at the same time. SimGrid builds the zone, routes and shares by max-min
fairness (benches/simgrid_zones.cpp contains the settings). Flowcast gets the same shape as a network file and predicts with
`--model fair`. The end of every flow is compared. If two ends differ by more than 1e-9 of the end, and in the first small sets of
each zone, a third answer is computed here in exact fractions over the links that SimGrid's zone names.

The sets exclude cases that cannot be compared:
- On the way down, SimGrid takes the parallel cable with the number `source mod cables`, and Flowcast the one that belongs to the
  destination, as in D-mod-k's tables (Zahavi, 2012). Trees have parallel cables only at the top, and then only flows for which both
  are the same cable.
- A zone of SimGrid has nodes with several switches (`up` of its first level) and tori without links of nodes. Flowcast's nodes have
  one switch, and their links are never a limit in these tori.
- SimGrid's Dragonfly needs as many routers in a chassis as groups; groups of several chassis are rows and columns of routers.

Seconds include only routing and stepping: `flowcast bench flows`, which creates the links as well, and SimGrid's engine, whose zone
exists before. Each process repeats its set and reports its fastest run. Processes of both take turns, and the result is the median
of these runs. With many flows, SimGrid runs once in a process. SimGrid's times are processor seconds and Flowcast's are wall seconds,
so other work on the machine can only make Flowcast slower.
"""

import argparse, collections, dataclasses, fractions, json, math, os, pathlib, platform, random, shutil, statistics, subprocess
import sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
TOLERANCE = 1e-9
SKIPPED = 77
KINDS = ("fat-tree", "torus", "dragonfly")
# Repetitions of a set in a process.
RUNS = 5
# Exact fractions are slow.
MOST_EXACT_FLOWS = 40


@dataclasses.dataclass
class Zone:
    """A shape as SimGrid's topo_parameters and as Flowcast's section; `agree` returns True for flows whose routes must be equal."""

    kind: str
    parameters: str
    section: str
    nodes: int
    node_rate: int
    agree: object = None


def listed(numbers):
    return ",".join(map(str, numbers))


def fat_tree(rate, down, up, cables):
    """Nodes have one cable; `up` and `cables` describe all levels of switches except the top."""
    zone = f"{len(down)};{listed(down)};{listed([1, *up])};{listed([1, *cables])}"
    levels = [f"{{ down = {d}, up = {u}, cables = {c}, bandwidth = \"{rate}B/s\" }}" for d, u, c in zip(down, up, cables)]
    levels.append(f"{{ down = {down[-1]}, up = 0 }}")

    def agree(src, dst):
        switches, below = 1, 1
        for d, u, c in zip(down, up, cables):
            below *= d
            if src // below == dst // below:
                return True
            if dst // switches % (u * c) // u != src % c:
                return False
            switches *= u
        return True

    return Zone("fat-tree", zone, f"levels = [{', '.join(levels)}]", math.prod(down), rate, agree)


def torus(rate, sides):
    section = f"torus = [{listed(sides)}]\nbandwidth = \"{rate}B/s\""
    return Zone("torus", listed(sides), section, math.prod(sides), 1000 * rate)


def dragonfly(rate, groups, routers, nodes, blue, green):
    section = (f"[topology.dragonfly]\ngroups = {groups}\nswitches = {routers}\nnodes = {nodes}\nglobal = 1\nper_pair = 1\n"
               f"local_cables = {{ bandwidth = \"{green * rate}B/s\" }}\nglobal_cables = {{ bandwidth = \"{blue * rate}B/s\" }}")
    return Zone("dragonfly", f"{groups},{blue};1,1;{routers},{green};{nodes}", section, groups * routers * nodes, rate)


def any_zone(kind, rate, draw):
    while True:
        if kind == "fat-tree":
            down = [draw.randint(2, 8) for _ in range(draw.randint(1, 4))]
            up = [draw.randint(1, 5) for _ in down[1:]]
            cables = [1] * len(up)
            if up and draw.random() < 0.3:
                cables[-1] = draw.randint(2, 3)
            zone = fat_tree(rate, down, up, cables)
        elif kind == "torus":
            zone = torus(rate, [draw.randint(2, 9) for _ in range(draw.randint(1, 4))])
        else:
            routers = draw.randint(1, 10)
            zone = dragonfly(rate, draw.randint(1, routers), routers, draw.randint(1, 4), draw.randint(1, 3), draw.randint(1, 3))
        if 2 <= zone.nodes <= 700:
            return zone


def any_pairs(nodes, count, draw):
    """Returns pairs of nodes in one of several patterns."""
    pattern = draw.choice(["pairs", "permutation", "shift", "into one", "out of one"])
    if pattern == "pairs":
        return [draw.sample(range(nodes), 2) for _ in range(count)]
    if pattern == "permutation":
        order = draw.sample(range(nodes), nodes)
        return [(order[at], order[at - 1]) for at in range(nodes)][:count]
    if pattern == "shift":
        by = draw.randrange(1, nodes)
        return [(src, (src + by) % nodes) for src in range(nodes)][:count]
    hot = draw.randrange(nodes)
    others = [draw.choice([node for node in range(nodes) if node != hot]) for _ in range(count)]
    return [(hot, other) if pattern == "out of one" else (other, hot) for other in others]


def any_size(draw):
    return round(10 ** draw.uniform(6, 8))


def any_flows(zone, draw):
    flows = []
    while not flows:
        count = round(2 ** draw.uniform(0, 8.5))
        one_size = any_size(draw) if draw.random() < 0.3 else None
        pairs = any_pairs(zone.nodes, count, draw) + (any_pairs(zone.nodes, count, draw) if draw.random() < 0.3 else [])
        flows = [(src, dst, one_size or any_size(draw)) for src, dst in pairs if zone.agree is None or zone.agree(src, dst)]
    return flows


class Bench:
    def __init__(self, flowcast, folder):
        self.flowcast, self.folder, self.peer = flowcast, folder, folder / "simgrid-zones"
        subprocess.run(["g++", "-O2", "-std=c++17", HERE / "simgrid_zones.cpp", "-o", self.peer, "-lsimgrid"], check=True)

    def write(self, name, zone, rate, flows):
        """Writes the set for both programs; returns the network file."""
        head = f"{zone.kind} {zone.parameters}\n{rate}\n{len(flows)}\n"
        (self.folder / f"{name}.case").write_text(head + "".join(f"{src} {dst} {size}\n" for src, dst, size in flows))
        (self.folder / f"{name}.pattern").write_text("".join(f"{src} -> {dst} {size}B\n" for src, dst, size in flows))
        network = (f"schema = \"flowcast/network/2\"\nname = \"zone\"\npoint_to_point = {{ rule = \"hockney\" }}\n"
                   f"[nic]\nlatency = \"0us\"\nbandwidth = \"{zone.node_rate}B/s\"\n[topology]\n{zone.section}\n")
        (self.folder / f"{name}.toml").write_text(network)
        return network

    def run(self, *command):
        return subprocess.run([str(part) for part in command], cwd=self.folder, check=True, capture_output=True, text=True)

    def theirs(self, name, *more):
        """Returns SimGrid's lines of ends and its seconds."""
        done = self.run(self.peer, f"{name}.case", *more)
        return done.stdout.splitlines(), float(done.stderr.split()[-1])

    def ours(self, name):
        done = self.run(self.flowcast, "predict", f"{name}.pattern", "--network", f"{name}.toml", "--model", "fair", "--json")
        return [flow["end_s"] for flow in json.loads(done.stdout)["flows"]]

    def our_seconds(self, name):
        done = self.run(self.flowcast, "bench", "flows", f"{name}.pattern", "--network", f"{name}.toml", "--model", "fair", "--repetitions", RUNS,
                        "--json")
        told = json.loads(done.stdout)
        return told["flows"] / told["flows_per_s_max"]

    def exact(self, name, flows):
        """Computes the ends by max-min fairness over the links that SimGrid names, in fractions."""
        lines, _ = self.theirs(name, "--routes")
        ways, capacities = [], {}
        for line in lines:
            ways.append(set())
            for word in line.split()[1:]:
                link, _, capacity = word.rpartition("/")
                capacities[link] = fractions.Fraction(float(capacity))
                ways[-1].add(link)
        return exact_ends(ways, capacities, [size for _, _, size in flows])


def exact_rates(ways, capacities, active):
    """Water-filling: the link with the smallest share for each of its flows fixes their rates."""
    left = dict(capacities)
    open_flows = collections.defaultdict(set)
    for flow in active:
        for link in ways[flow]:
            open_flows[link].add(flow)
    rates = {}
    while len(rates) < len(active):
        limit = min((link for link in open_flows if open_flows[link]), key=lambda link: left[link] / len(open_flows[link]))
        rate = left[limit] / len(open_flows[limit])
        for flow in list(open_flows[limit]):
            rates[flow] = rate
            for link in ways[flow]:
                open_flows[link].discard(flow)
                left[link] -= rate
    return rates


def exact_ends(ways, capacities, sizes):
    now, ends = fractions.Fraction(0), [None] * len(sizes)
    left = {flow: fractions.Fraction(size) for flow, size in enumerate(sizes)}
    while left:
        rates = exact_rates(ways, capacities, left)
        step = min(left[flow] / rates[flow] for flow in left)
        now += step
        for flow in list(left):
            left[flow] -= rates[flow] * step
            if left[flow] == 0:
                ends[flow] = float(now)
                del left[flow]
    return ends


def kept_cases(bench, seed):
    """Writes small sets with the results of SimGrid, for tests/data/peers."""
    cases = []
    for kind in KINDS:
        found = collections.Counter()
        for number in range(1000):
            draw = random.Random(f"{seed} {kind} {number}")
            rate = draw.randint(5 * 10**8, 2 * 10**9)
            zone = any_zone(kind, rate, draw)
            flows = any_flows(zone, draw)
            # Two of each number of levels or dimensions, with and without parallel cables.
            look = zone.parameters.count(","), zone.parameters.split(";")[-1].strip("1,") == ""
            is_small = 8 <= zone.nodes <= 64 and 10 <= len(flows) <= 24
            if not is_small or found[look] == 2 or found.total() == 6:
                continue
            found[look] += 1
            network = bench.write("kept", zone, rate, flows)
            ends = [float(line) for line in bench.theirs("kept")[0]]
            cases.append({"name": f"{kind} {zone.parameters}", "network": network,
                          "flows": [[src, dst, size, 0] for src, dst, size in flows], "ends_s": ends})
    return {"origin": "SimGrid 3.32 (Debian 3.32-2+b2), benches/simgrid_zones.py --keep: source, destination, bytes, start in ns",
            "model": "fair", "cases": cases}


def farthest(ends, others):
    """Returns the largest difference, as a fraction of the end."""
    return max(abs(end - other) / other for end, other in zip(ends, others, strict=True))


def compared(bench, kind, sets, rounds, seed):
    rows = []
    for number in range(sets):
        draw = random.Random(f"{seed} {kind} {number}")
        rate = draw.randint(5 * 10**8, 2 * 10**9)
        zone = any_zone(kind, rate, draw)
        flows = any_flows(zone, draw)
        name = f"{kind}-{number}"
        bench.write(name, zone, rate, flows)
        theirs = [float(line) for line in bench.theirs(name)[0]]
        row = {"zone": kind, "set": number, "parameters": zone.parameters, "nodes": zone.nodes, "flows": len(flows),
               "difference": farthest(bench.ours(name), theirs)}
        is_small = len(flows) <= MOST_EXACT_FLOWS and sum("exact" in row for row in rows) < 20
        if row["difference"] > TOLERANCE or is_small:
            exact = bench.exact(name, flows)
            row["exact"] = {"flowcast": farthest(bench.ours(name), exact), "simgrid": farthest(theirs, exact)}
        row |= timed(bench, name, rounds, RUNS)
        rows.append(row)
    return rows


def timed(bench, name, rounds, their_runs):
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(bench.our_seconds(name))
        theirs.append(bench.theirs(name, their_runs)[1])
    ours, theirs = statistics.median(ours), statistics.median(theirs)
    return {"flowcast_s": ours, "simgrid_s": theirs, "ratio": theirs / ours}


def large(bench, counts, rounds, seed):
    rows, rate = [], 10**9
    zones = [fat_tree(rate, [8, 8, 16], [8, 8], [1, 1]), torus(rate, [8, 8, 16]), dragonfly(rate, 16, 16, 4, 2, 1)]
    for zone in zones:
        for count in counts:
            draw = random.Random(f"{seed} large {zone.kind} {count}")
            flows = [(*draw.sample(range(zone.nodes), 2), any_size(draw)) for _ in range(count)]
            name = f"large-{zone.kind}-{count}"
            bench.write(name, zone, rate, flows)
            theirs = [float(line) for line in bench.theirs(name)[0]]
            rows.append({"zone": zone.kind, "parameters": zone.parameters, "nodes": zone.nodes, "flows": count,
                         "difference": farthest(bench.ours(name), theirs)} | timed(bench, name, rounds, 1))
            print(f"{zone.kind}, {count} flows: {rows[-1]}", file=sys.stderr)
    return rows


def lines_of(kept):
    """Formats JSON with a line for each case."""
    head = ", ".join(f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in ("origin", "model"))
    return "{" + head + ', "cases": [\n' + ",\n".join(json.dumps(case) for case in kept["cases"]) + "\n]}\n"


def milliseconds(seconds):
    return f"{1e3 * seconds:.3g}"


def table(title, groups):
    print(f"\n| {title} | sets | nodes | flows | farthest | beyond 1e-9 | SimGrid, ms | Flowcast, ms | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, rows in groups:
        def span(field, shown):
            values = [row[field] for row in rows]
            if len(values) == 1:
                return shown(values[0])
            return f"{shown(statistics.median(values))} ({shown(min(values))} to {shown(max(values))})"
        beyond = sum(row["difference"] > TOLERANCE for row in rows)
        print(f"| {name} | {len(rows)} | {span('nodes', str_of)} | {span('flows', str_of)} | "
              f"{max(row['difference'] for row in rows):.1e} | {beyond} | {span('simgrid_s', milliseconds)} | "
              f"{span('flowcast_s', milliseconds)} | {span('ratio', str_of)} |")


def str_of(number):
    return f"{number:,.0f}" if number >= 10 or number == round(number) else f"{number:.1f}"


def missing():
    """Returns the missing requirement of the comparison, or nothing."""
    if not shutil.which("g++"):
        return "no g++"
    include = subprocess.run(["g++", "-E", "-x", "c++", "-"], input="#include <simgrid/s4u.hpp>", capture_output=True, text=True)
    return None if include.returncode == 0 else "no headers of SimGrid (libsimgrid-dev)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200, help="number of sets of each zone")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--large", type=int, nargs="*", default=[1000, 3000], help="numbers of flows among 1,024 nodes")
    parser.add_argument("--flowcast", type=pathlib.Path, default=HERE.parent / "target/release/flowcast")
    parser.add_argument("--json", type=pathlib.Path, help="file for all sets")
    parser.add_argument("--keep", type=pathlib.Path, help="only write a few small sets with the results of SimGrid, as test cases")
    given = parser.parse_args()
    if reason := missing():
        print(f"SimGrid is not installed ({reason}): nothing was compared")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(given.flowcast.resolve(), pathlib.Path(folder))
        if given.keep:
            return given.keep.write_text(lines_of(kept_cases(bench, given.seed)))
        rows = []
        for kind in KINDS:
            rows += compared(bench, kind, given.sets, given.rounds, given.seed)
            print(f"{kind}: {given.sets} sets", file=sys.stderr)
        many = large(bench, given.large, given.rounds, given.seed)
    table("zone", [(kind, [row for row in rows if row["zone"] == kind]) for kind in KINDS])
    sizes = [(1, 10), (10, 30), (30, 100), (100, 300), (300, 1100)]
    table("flows", [(f"{least} to {most - 1}", chosen) for least, most in sizes
                    if (chosen := [row for row in rows if least <= row["flows"] < most])])
    table("large", [(f"{row['zone']} {row['parameters']}", [row]) for row in many])
    exact = [row["exact"] for row in rows if "exact" in row]
    if exact:
        ours, theirs = (max(row[who] for row in exact) for who in ("flowcast", "simgrid"))
        print(f"\n{len(exact)} sets in exact fractions: largest error of Flowcast {ours:.1e}, of SimGrid {theirs:.1e}")
    beyond = [row for row in rows + many if row["difference"] > TOLERANCE]
    if given.json:
        machine = {"cores": os.cpu_count(), "machine": platform.machine(), "load": os.getloadavg()[0]}
        result = {"seed": given.seed, "rounds": given.rounds, "tolerance": TOLERANCE, "host": machine, "sets": rows, "large": many}
        given.json.write_text(json.dumps(result, indent=1) + "\n")
    for row in beyond:
        print(f"differs: {json.dumps(row)}")
    sys.exit(1 if beyond else 0)


if __name__ == "__main__":
    main()
