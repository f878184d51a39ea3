"""Compares the bytes times links of mappings from `flowcast place`, Scotch and mt-KaHyPar.

    python3 benches/place.py [--flowcast PATH] [--seconds 10] [--only TEXT] [--kept FILE.json] [--sizes] [--times]
        [--qaplib FILE:SIDES:OPTIMUM] [--json]

Fifty communication matrices, drawn by seed, are placed on trees, fat trees, Dragonflies, tori and meshes by Flowcast and by the
installed peers: Scotch (`apt install scotch`: `scotch_gmap`, its quality strategy, with several seeds as long as the time allows)
and mt-KaHyPar (`pip install mtkahypar`: its quality preset on two threads, likewise). This program computes the distances and the
value of every mapping. A mapping of a peer with too many ranks on a node is repaired by the cheapest moves. `--kept` stores the
results of the peers for a later run. `--sizes` also places halos of 64 to 16,384 ranks, only by Flowcast. `--times` instead compares
the predicted times of all messages sent at the same time, with the fastest mappings and with Scotch's. `--qaplib` solves instances of
QAPLIB on a mesh, such as nug30.dat:6x5:6124.
"""

import argparse
import collections
import functools
import json
import math
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

Case = collections.namedtuple("Case", "name messages ranks target nodes slots")


# Communication: {(one, other): bytes} with one < other.


def grid(sides, is_torus=True, sizes=None):
    """Halos of a grid, with bytes for each dimension."""
    bytes_by_pair = collections.Counter()
    strides = [math.prod(sides[:at]) for at in range(len(sides))]
    for rank in range(math.prod(sides)):
        for at, (side, stride) in enumerate(zip(sides, strides)):
            here = rank // stride % side
            if side > 1 and (is_torus and side > 2 or here + 1 < side):
                other = rank + stride * ((here + 1) % side - here)
                bytes_by_pair[min(rank, other), max(rank, other)] += sizes[at] if sizes else 1000
    return bytes_by_pair


def geometric(ranks, degree, seed):
    """Points of the unit square that are near each other; the nearer, the more bytes."""
    draw = random.Random(seed)
    radius = math.sqrt(degree / (math.pi * ranks))
    points = [(draw.random(), draw.random()) for _ in range(ranks)]
    cells = collections.defaultdict(list)
    for rank, (x, y) in enumerate(points):
        cells[int(x / radius), int(y / radius)].append(rank)
    bytes_by_pair = collections.Counter()
    for rank, (x, y) in enumerate(points):
        column, row = int(x / radius), int(y / radius)
        for other in (r for dx in (-1, 0, 1) for dy in (-1, 0, 1) for r in cells[column + dx, row + dy] if r > rank):
            apart = math.dist(points[rank], points[other])
            if apart < radius:
                bytes_by_pair[rank, other] += int(1000 * (2 - apart / radius))
    return bytes_by_pair


def power_law(ranks, edges, seed):
    """Each new rank prefers partners with many partners (Barabasi and Albert, 1999)."""
    draw = random.Random(seed)
    ends = list(range(edges))
    bytes_by_pair = collections.Counter()
    for rank in range(edges, ranks):
        for other in sorted({draw.choice(ends) for _ in range(edges)}):
            bytes_by_pair[other, rank] += draw.choice((100, 1000, 5000))
            ends += [other, rank]
    return bytes_by_pair


def conjugate_gradient(rows):
    """NAS CG: sums over rows by halves, and an exchange with the transposed place."""
    bytes_by_pair = collections.Counter()
    for rank in range(rows * rows):
        row, column = divmod(rank, rows)
        step = 1
        while step < rows:
            other = row * rows + (column ^ step)
            bytes_by_pair[min(rank, other), max(rank, other)] += 500
            step *= 2
        other = column * rows + row
        if other != rank:
            bytes_by_pair[min(rank, other), max(rank, other)] += 2000
    return bytes_by_pair


def multigrid(sides):
    """NAS MG: halos of a torus at strides that double."""
    bytes_by_pair = collections.Counter()
    strides = [math.prod(sides[:at]) for at in range(len(sides))]
    for rank in range(math.prod(sides)):
        for side, stride in zip(sides, strides):
            here, step, size = rank // stride % side, 1, 4096
            while step < side:
                other = rank + stride * ((here + step) % side - here)
                bytes_by_pair[min(rank, other), max(rank, other)] += size
                step, size = 2 * step, size // 4
    return bytes_by_pair


def multipartition(rows):
    """NAS BT and SP: a torus with one diagonal."""
    bytes_by_pair = collections.Counter()
    for rank in range(rows * rows):
        row, column = divmod(rank, rows)
        for down, right, size in ((0, 1, 3000), (1, 0, 3000), (1, rows - 1, 1500)):
            other = (row + down) % rows * rows + (column + right) % rows
            bytes_by_pair[min(rank, other), max(rank, other)] += size
    return bytes_by_pair


def transpose(rows, columns):
    """NAS FT with two dimensions of ranks: all to all inside rows, then inside columns."""
    bytes_by_pair = collections.Counter()
    for rank in range(rows * columns):
        row, column = divmod(rank, columns)
        bytes_by_pair.update({(rank, row * columns + other): 400 for other in range(column + 1, columns)})
        bytes_by_pair.update({(rank, other * columns + column): 100 for other in range(row + 1, rows)})
    return bytes_by_pair


def shuffled(bytes_by_pair, ranks, seed):
    names = list(range(ranks))
    random.Random(seed).shuffle(names)
    return {tuple(sorted((names[one], names[other]))): size for (one, other), size in bytes_by_pair.items()}


# Targets: their form in the network file, and the number of links between two nodes.


class Tree:
    def __init__(self, *downs):
        self.downs = downs
        self.nodes = math.prod(downs)

    def section(self):
        levels = [(down, 0 if at + 1 == len(self.downs) else 1) for at, down in enumerate(self.downs)]
        return "".join(f"[[topology.levels]]\ndown = {down}\nup = {up}\n" for down, up in levels)

    def distance(self, one, other):
        links = 0
        for down in (1, *self.downs):
            one, other = one // down, other // down
            if one == other:
                return links
            links += 2

    def scotch(self):
        levels = [f"{down} {2 * (at + 1)}" for at, down in enumerate(self.downs)]
        return f"tleaf {len(levels)} " + " ".join(reversed(levels))


class FatTree(Tree):
    def __init__(self, ports):
        super().__init__(ports // 2, ports // 2, ports)
        self.ports = ports

    def section(self):
        return f"[topology]\nfat_tree = {self.ports}\n"


class Grid:
    def __init__(self, *sides, is_torus=True):
        self.sides, self.is_torus = sides, is_torus
        self.nodes = math.prod(sides)

    def section(self):
        return f"[topology]\n{'torus' if self.is_torus else 'mesh'} = {list(self.sides)}\n"

    def distance(self, one, other):
        links = 2 if one != other else 0
        for side in self.sides:
            apart = abs(one % side - other % side)
            links += min(apart, side - apart) if self.is_torus else apart
            one, other = one // side, other // side
        return links

    def scotch(self):
        if len(self.sides) in (2, 3):
            return f"{'torus' if self.is_torus else 'mesh'}{len(self.sides)}D " + " ".join(map(str, self.sides))


class Dragonfly:
    """Groups with one cable between any two, distributed over the switches in the order of the other groups."""

    def __init__(self, groups, switches, nodes, cables):
        self.groups, self.switches, self.per_switch, self.cables = groups, switches, nodes, cables
        self.nodes = groups * switches * nodes
        assert groups - 1 <= switches * cables < 2 * (groups - 1)

    def section(self):
        return (
            f"[topology.dragonfly]\ngroups = {self.groups}\nswitches = {self.switches}\n"
            f"nodes = {self.per_switch}\nglobal = {self.cables}\n"
        )

    def gateway(self, group, other):
        has_room = self.switches * self.cables >= self.groups
        return (other if other < group or has_room else other - 1) // self.cables

    def distance(self, one, other):
        if one == other:
            return 0
        here, there = one // self.per_switch, other // self.per_switch
        if here == there:
            return 2
        group, to = here // self.switches, there // self.switches
        if group == to:
            return 3
        first = here % self.switches != self.gateway(group, to)
        return 3 + first + (there % self.switches != self.gateway(to, group))

    def scotch(self):
        return None


def cases():
    """Fifty matrices with their targets."""
    halos = [
        # Sides of the rank grid, whether it is a torus, and the target with its slots.
        ((16, 16), False, Tree(4, 4), 16),
        ((16, 16), True, Tree(8, 8), 4),
        ((8, 8, 4), True, Grid(4, 4, 4), 4),
        ((32, 32), False, Grid(8, 8, 4), 4),
        ((64, 64), False, Tree(16, 16), 16),
        ((16, 16, 16), False, Tree(16, 16), 16),
        ((16, 16, 16), True, Grid(16, 16, 16), 1),
        ((64, 64), True, Grid(64, 64), 1),
        ((32, 32), False, Grid(32, 32, is_torus=False), 1),
        ((32, 32), True, Grid(16, 8, 8), 1),
        ((8, 8, 8), False, FatTree(8), 4),
        ((8, 8, 16), False, FatTree(16), 1),
        ((16, 16, 16), False, FatTree(16), 4),
        ((8, 8, 8), True, Dragonfly(9, 4, 4, 2), 4),
        ((32, 32), False, Dragonfly(33, 8, 4, 4), 1),
        ((16, 16, 16), True, Dragonfly(33, 8, 4, 4), 4),
        ((10, 10, 10), False, Tree(10, 10), 10),
        ((30, 30), False, Grid(8, 8, 4), 4),
        ((12, 12, 12), False, Grid(12, 12, 12), 1),
        ((64, 32), False, Grid(8, 8, 8), 4),
    ]
    for at, (sides, is_torus, target, slots) in enumerate(halos):
        name = f"{'torus' if is_torus else 'mesh'} {'x'.join(map(str, sides))}"
        yield name, grid(sides, is_torus, (1000, 1000, 1000) if at % 3 else (3000, 1000, 500)), math.prod(sides), target, slots
    near = [(256, Tree(4, 4), 16), (500, FatTree(8), 4), (512, Grid(8, 8), 8), (1024, Grid(32, 32), 1), (1000, Dragonfly(33, 8, 4, 4), 1)]
    near += [(1024, Tree(8, 8), 16), (2048, Grid(8, 8, 8), 4), (4096, Tree(16, 16), 16), (4000, Dragonfly(33, 8, 4, 4), 4), (4096, Grid(16, 16, 16), 1)]
    for at, (ranks, target, slots) in enumerate(near):
        yield "geometric", geometric(ranks, 8 + 2 * (at % 3), at), ranks, target, slots
    hubs = [(256, Tree(4, 4), 16), (512, FatTree(8), 4), (1024, Grid(16, 16, 4), 1), (2000, Grid(8, 8, 8), 4)]
    hubs += [(1056, Dragonfly(33, 8, 4, 4), 1), (4096, Tree(16, 16), 16), (4096, FatTree(16), 4)]
    for at, (ranks, target, slots) in enumerate(hubs):
        yield "power law", power_law(ranks, 3 + at % 3, at), ranks, target, slots
    yield "CG", conjugate_gradient(16), 256, Tree(4, 4), 16
    yield "CG", conjugate_gradient(16), 256, Grid(16, 16), 1
    yield "CG", conjugate_gradient(32), 1024, FatTree(16), 1
    yield "CG", conjugate_gradient(64), 4096, Dragonfly(33, 8, 4, 4), 4
    yield "MG", multigrid((8, 8, 8)), 512, FatTree(8), 4
    yield "MG", multigrid((16, 8, 8)), 1024, Grid(8, 8, 4), 4
    yield "MG", multigrid((16, 16, 16)), 4096, Tree(16, 16), 16
    yield "BT", multipartition(16), 256, Tree(8, 8), 4
    yield "BT", multipartition(32), 1024, Grid(32, 32), 1
    yield "BT", multipartition(64), 4096, FatTree(16), 4
    yield "FT", transpose(16, 16), 256, Tree(4, 4), 16
    yield "FT", transpose(16, 32), 512, Grid(8, 8, 2), 4
    yield "FT", transpose(32, 32), 1024, Dragonfly(33, 8, 4, 4), 1


def named_cases():
    for number, (name, bytes_by_pair, ranks, target, slots) in enumerate(cases()):
        kind = type(target).__name__
        if kind == "Grid":
            kind = f"{'torus' if target.is_torus else 'mesh'} {'x'.join(map(str, target.sides))}"
        name = f"{number + 1}: {name}, {ranks} on {kind} {target.nodes} x {slots}"
        yield Case(name, shuffled(bytes_by_pair, ranks, number), ranks, target, target.nodes, slots)


# Evaluation.


def judged(case, node_of_rank):
    """Returns the bytes times links of a valid mapping."""
    held = collections.Counter(node_of_rank)
    assert len(node_of_rank) == case.ranks and max(held.values()) <= case.slots, f"{case.name}: too many ranks on a node"
    assert all(0 <= node < case.nodes for node in held)
    distance = functools.lru_cache(1 << 20)(case.target.distance)
    return sum(size * distance(node_of_rank[one], node_of_rank[other]) for (one, other), size in case.messages.items())


def partners(case):
    around = [[] for _ in range(case.ranks)]
    for (one, other), size in case.messages.items():
        around[one].append((other, size))
        around[other].append((one, size))
    return around


def mended(case, node_of_rank):
    """Moves excess ranks of a node to where they cost least."""
    node_of_rank, held, around = list(node_of_rank), collections.Counter(node_of_rank), partners(case)
    distance = case.target.distance
    for rank in range(case.ranks):
        if held[node_of_rank[rank]] <= case.slots:
            continue
        cost = lambda node: sum(size * distance(node, node_of_rank[other]) for other, size in around[rank])
        free = [node for node in range(case.nodes) if held[node] < case.slots]
        best = min(free, key=cost)
        held[node_of_rank[rank]] -= 1
        held[best] += 1
        node_of_rank[rank] = best
    return node_of_rank


# The programs.


def by_flowcast(case, folder, options, seconds, objective="hops"):
    network = folder / "network.toml"
    network.write_text('schema = "flowcast/network/2"\nname = "target"\n[point_to_point]\nrule = "hockney"\n[nic]\nlatency = "1us"\nbandwidth = "10GB/s"\n' + case.target.section())
    matrix = folder / "matrix.csv"
    matrix.write_text("from,to,bytes\n" + "".join(f"{one},{other},{size}\n" for (one, other), size in case.messages.items()))
    command = [*options.flowcast.split(), matrix, "--network", network, "--nodes", case.nodes, "--ranks-per-node", case.slots]
    command += ["--objective", objective, "--time-limit", f"{seconds}s", "--json"]
    done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["best"]["node_of_rank"]


def makespan(case, node_of_rank, folder, options):
    """Predicts all messages, sent at the same time, on the network that by_flowcast left in the folder."""
    pattern = folder / "messages.pattern"
    ends = lambda pair: [node_of_rank[rank] for rank in pair]
    flows = [(*ends(pair), size) for pair, size in case.messages.items()]
    pattern.write_text("".join(f"{src} -> {dst} {size}B\n" for src, dst, size in flows if src != dst))
    command = [options.flowcast.split()[0], "predict", pattern, "--network", folder / "network.toml", "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["makespan_s"]


def times(options):
    """Compares times of all messages, sent at the same time, with the fastest mappings and with Scotch's."""
    print("\n| case | seconds | Flowcast, us | Scotch, us | ratio |")
    print("|---|---|---|---|---|")
    rows = []
    for case in named_cases():
        if not any(text in case.name for text in options.only.split(";")):
            continue
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            begin = time.monotonic()
            mapping = by_flowcast(case, folder, options, options.seconds, "time")
            seconds = time.monotonic() - begin
            _, peer = mapped_by_scotch(case, folder, options.seconds)
            own, other = (1e6 * makespan(case, nodes, folder, options) for nodes in (mapping, peer))
        rows.append(own / other)
        print(f"| {case.name} | {seconds:.1f} | {own:.3f} | {other:.3f} | {own / other:.3f} |", flush=True)
    print(f"\n{sum(ratio <= 1 for ratio in rows)} of {len(rows)} at most as long as with Scotch; worst {max(rows):.3f}")


def links_of(case):
    """Returns the number of links between each two nodes."""
    nodes, distance = case.nodes, case.target.distance
    return [(one, other, distance(one, other)) for one in range(nodes) for other in range(one + 1, nodes)]


def scotch_targets(case, folder):
    """Returns the target as a grid or tree of Scotch, and by its distances."""
    text = case.target.scotch()
    if text:
        (folder / "own.tgt").write_text(text + "\n")
        yield folder / "own.tgt"
    if case.nodes <= 1100 and not (text and case.slots == 1) and not isinstance(case.target, Tree):
        around = [[] for _ in range(case.nodes)]
        for one, other, links in links_of(case):
            around[one].append((other, links))
            around[other].append((one, links))
        write_scotch(folder / "target.grf", around)
        with open(folder / "deco.tgt", "wb") as file:
            subprocess.run(["amk_grf", folder / "target.grf"], check=True, stdout=file, stderr=subprocess.DEVNULL)
        yield folder / "deco.tgt"


def write_scotch(path, around):
    edges = sum(map(len, around))
    rows = [f"{len(row)} " + " ".join(f"{size} {other}" for other, size in row) for row in around]
    path.write_text(f"0\n{len(around)} {edges}\n0 010\n" + "\n".join(rows) + "\n")


def by_scotch(case, folder, seconds):
    """Returns the bytes times links of its best mapping."""
    return mapped_by_scotch(case, folder, seconds)[0]


def mapped_by_scotch(case, folder, seconds):
    """Returns the best of several orders of the ranks, which serve as seeds; with all spare slots, and balanced."""
    end = time.monotonic() + seconds
    targets = list(scotch_targets(case, folder))
    room = case.nodes * case.slots / case.ranks - 1
    around = partners(case)
    ways = [(target, balance) for target in targets for balance in sorted({room, 0.0})]
    best = None
    for tried in range(1000):
        target, balance = ways[tried % len(ways)]
        order = list(range(case.ranks))
        random.Random(tried // len(ways)).shuffle(order)
        place = {rank: at for at, rank in enumerate(order)}
        write_scotch(folder / "matrix.grf", [[(place[other], size) for other, size in around[rank]] for rank in order])
        command = ["scotch_gmap", f"-b{balance:.4f}", "-cq", folder / "matrix.grf", target, folder / "found.map"]
        try:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=6 * seconds)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            continue
        finally:
            if time.monotonic() > end and tried >= len(ways):
                break
        node_of = dict(map(int, line.split()) for line in (folder / "found.map").read_text().splitlines()[1:])
        node_of_rank = mended(case, [node_of[place[rank]] for rank in range(case.ranks)])
        found = (judged(case, node_of_rank), node_of_rank)
        best = found if best is None else min(best, found)
    return best or (None, None)


def by_mt_kahypar(case, folder, seconds):
    """Runs in a separate process, which is killed after six times its time limit."""
    given = {"ranks": case.ranks, "nodes": case.nodes, "slots": case.slots, "seconds": seconds}
    given["messages"] = [(*pair, size) for pair, size in case.messages.items()]
    if isinstance(case.target, Grid) and case.slots == 1:
        # All messages cross the links of both nodes, so only the cables matter.
        given["links"] = [(one, other, 1) for one, other in grid(case.target.sides, case.target.is_torus)]
    elif case.nodes <= 1100:
        given["links"] = links_of(case)
    else:
        return None
    (folder / "given.json").write_text(json.dumps(given))
    command = [sys.executable, __file__, "--mt-kahypar", folder / "given.json", folder / "found.json"]
    try:
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=6 * seconds + 20)
    except subprocess.TimeoutExpired:
        pass
    found = folder / "found.json"
    lines = found.read_text().splitlines() if found.exists() else []
    return min((judged(case, mended(case, json.loads(line))) for line in lines), default=None)


def run_mt_kahypar(given_path, found_path):
    import mtkahypar

    given = json.loads(pathlib.Path(given_path).read_text())
    end = time.monotonic() + given["seconds"]
    library = mtkahypar.initialize(2)
    context = library.context_from_preset(mtkahypar.PresetType.QUALITY)
    context.logging = False
    room = given["nodes"] * given["slots"] / given["ranks"] - 1
    messages, links = given["messages"], given["links"]
    pairs = lambda rows: [(one, other) for one, other, _ in rows]
    sizes = lambda rows: [size for *_, size in rows]
    graph = library.create_graph(context, given["ranks"], len(messages), pairs(messages), [1] * given["ranks"], sizes(messages))
    target = library.create_target_graph(context, given["nodes"], len(links), pairs(links), sizes(links))
    with open(found_path, "w") as file:
        seed = 0
        while seed == 0 or time.monotonic() < end:
            mtkahypar.set_seed(seed)
            context.set_mapping_parameters(given["nodes"], room + 1e-9)
            found = graph.map_onto_graph(target, context)
            print(json.dumps(found.get_partition()), file=file, flush=True)
            seed += 1


def peers():
    known = {"Scotch": by_scotch} if shutil.which("scotch_gmap") else {}
    try:
        import mtkahypar  # noqa: F401

        known["mt-KaHyPar"] = by_mt_kahypar
    except ImportError:
        pass
    for name in ("Scotch", "mt-KaHyPar"):
        if name not in known:
            print(f"{name} is not installed: skipped", file=sys.stderr)
    return known


def ratios(options):
    """Prints a row for each case as soon as it is computed."""
    kept_path = pathlib.Path(options.kept) if options.kept else None
    kept = json.loads(kept_path.read_text()) if kept_path and kept_path.exists() else {}
    known = peers()
    print("| case | Flowcast | seconds | " + " | ".join(known) + " | ratio |")
    print("|---|---|---|" + "---|" * (len(known) + 1))
    rows = []
    for case in named_cases():
        if not any(text in case.name for text in options.only.split(";")):
            continue
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name, peer in known.items():
                if f"{case.name}, {name}" not in kept:
                    kept[f"{case.name}, {name}"] = peer(case, folder, options.seconds)
                    if kept_path:
                        kept_path.write_text(json.dumps(kept, indent=1))
            if not options.flowcast:
                continue
            begin = time.monotonic()
            found = judged(case, by_flowcast(case, folder, options, options.seconds))
            seconds = time.monotonic() - begin
        told = [kept[f"{case.name}, {name}"] for name in known]
        ratio = found / min(filter(None, told), default=math.nan)
        rows.append({"case": case.name, "flowcast": found, "seconds": seconds, "peers": dict(zip(known, told)), "ratio": ratio})
        print(f"| {case.name} | {found:,} | {seconds:.1f} | " + " | ".join(f"{hops:,}" if hops else "none" for hops in told) + f" | {ratio:.3f} |", flush=True)
    if rows:
        worst = max(row["ratio"] for row in rows)
        print(f"\n{sum(row['ratio'] <= 1.02 for row in rows)} of {len(rows)} at most 1.02 times the best peer; worst {worst:.3f}")
    return rows


def sizes(options):
    """Places halos of growing numbers of ranks, with the result, the time and the memory of each."""
    print("\n| ranks | nodes x slots | fill | found | seconds | MiB |")
    print("|---|---|---|---|---|---|")
    for sides, target, slots in (
        ((4, 4, 4), Tree(4, 4), 4),
        ((8, 8, 4), Tree(4, 4), 16),
        ((16, 8, 8), Tree(8, 8), 16),
        ((16, 16, 16), Tree(16, 16), 16),
        ((64, 16, 16), FatTree(16), 16),
        ((32, 32, 16), Grid(32, 32, 16), 1),
    ):
        ranks = math.prod(sides)
        case = Case(f"halo {sides}", shuffled(grid(sides, False), ranks, 1), ranks, target, target.nodes, slots)
        with tempfile.TemporaryDirectory() as folder:
            begin = time.monotonic()
            found = judged(case, by_flowcast(case, pathlib.Path(folder), options, options.seconds))
            seconds = time.monotonic() - begin
        # Memory of the largest child so far, which is this one because sizes grow.
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        fill = judged(case, [rank // slots for rank in range(ranks)])
        print(f"| {ranks} | {target.nodes} x {slots} | {fill:,} | {found:,} | {seconds:.1f} | {memory:.0f} |", flush=True)


def qaplib(text, options):
    """Solves an instance of QAPLIB with the distances of a mesh, given as FILE:SIDExSIDE:OPTIMUM, and prints its own sum."""
    path, sides, optimum = text.rsplit(":", 2)
    sides = tuple(map(int, sides.split("x")))
    count, *numbers = map(int, pathlib.Path(path).read_text().split())
    target = Grid(*sides, is_torus=False)
    pairs = [(one, other) for one in range(count) for other in range(count)]
    # All messages cross the links of both nodes as well.
    apart = [target.distance(one, other) - 2 if one != other else 0 for one, other in pairs]
    assert numbers[: count * count] == apart, f"{path}: other distances than of a mesh of {sides}"
    flows = dict(zip(pairs, numbers[count * count :]))
    case = Case(path, {pair: size for pair, size in flows.items() if size}, count, target, count, 1)
    with tempfile.TemporaryDirectory() as folder:
        nodes = by_flowcast(case, pathlib.Path(folder), options, options.seconds)
    found = sum(size * (target.distance(nodes[one], nodes[other]) - 2) for (one, other), size in case.messages.items())
    print(f"{pathlib.Path(path).name}: {found:,} of {int(optimum):,}, {found / int(optimum):.4f}")


def main():
    if sys.argv[1:2] == ["--mt-kahypar"]:
        return run_mt_kahypar(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flowcast", default="target/release/flowcast place", help="the command; if empty, only the peers run")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose names contain one of these texts, separated by ;")
    parser.add_argument("--kept", metavar="FILE.json")
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--qaplib", action="append", default=[], metavar="FILE:SIDES:OPTIMUM")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for instance in options.qaplib:
        qaplib(instance, options)
    if options.qaplib:
        return None
    if options.times:
        return times(options)
    rows = ratios(options)
    if options.sizes:
        sizes(options)
    if options.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
