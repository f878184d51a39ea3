#!/usr/bin/env python3
"""Compares Flowcast's packets over small fabrics with those of ns-3's point-to-point links.

    python3 benches/ns3_fabrics.py [--sets 20] [--flowcast target/release/flowcast] [--seed 1] [--json RESULT.json]

Needs g++ and Debian's libns3-dev (3.37); without them it reports that, compares nothing and ends with code 77.

Each set is a random number of messages between random nodes of a fabric. Both programs agree on:
- Frames: up to 1448 bytes of payload and 90 bytes of headers (IP, TCP, Ethernet, preamble, gap); rates count all of them. Each switch
  stores a whole frame before it forwards it; first come, first served; queues lose nothing.
- Messages: all frames are written to the interface at the message's start (a fixed window from the first packet on, larger than
  any message). Every second frame, and the last of a message, is answered by a frame of 90 bytes, which takes the route of a
  message in that direction.
- Delays: each cable has its delay. Flowcast adds the delay of the interfaces after the last link; ns-3 has half of it on each node's
  link.
- Routes: computed here by the rules of docs/reference/network-file.md, given to ns-3, and found by Flowcast.
Compared are the time from the start of each message to the arrival of its last frame, and the number of frames that crossed links.
In half of the sets all messages start at the same time, so frames from different links often reach a switch at the same instant, and
each program has its own order; in the other half they start at random times within 20 us.

benches/ns3_fabrics.cpp describes the use of ns-3. Seconds are those of the simulation alone, the first time in its own process:
processor seconds of ns-3, and wall seconds of `flowcast bench packet --unfold --repetitions 1`, which creates the links as well.
"""

import argparse, dataclasses, json, os, pathlib, platform, random, shutil, statistics, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
# Fractions of the duration: the tolerance, for any order of two frames at the same instant, and the limit of equality.
TOLERANCE = 0.02
EQUAL = 1e-9
SKIPPED = 77
NIC = {"rate": 100, "delay": 1_000_000}


@dataclasses.dataclass
class Fabric:
    """Links by the names of their ends, forward, with Gbit/s and picoseconds; `way` returns the names from node to node."""

    name: str
    section: str
    nodes: int
    links: dict
    way: object


def class_of_cables(rate, delay):
    return f"wire_rate = \"{rate}Gbit/s\", latency = \"{delay // 1000}ns\""


def nodes_on(switch_of, nodes):
    return {(("node", node), switch_of(node)): (NIC["rate"], NIC["delay"] // 2) for node in range(nodes)}


def tree(name, down, up, rates):
    """Levels of switches. A switch is identified by its level, its group and its number in the group."""
    delays = [150_000 + 100_000 * level for level in range(len(up))]
    levels = [f"{{ down = {d}, up = {u}, {class_of_cables(rate, delay)} }}" for d, u, rate, delay in zip(down, up, rates, delays)]
    section = f"[topology]\nlevels = [{', '.join(levels)}, {{ down = {down[-1]}, up = 0 }}]"
    nodes, links = 1, {}
    for d in down:
        nodes *= d

    def climb(node, port_of):
        """Switches from the lowest upwards, by the port that each level chooses."""
        below, switches, here, way = down[0], 1, 0, [(1, node // down[0], 0)]
        for level, u in enumerate(up):
            here += port_of(switches, u) * switches
            switches *= u
            below *= down[level + 1]
            way.append((level + 2, node // below, here))
        return way

    def way(src, dst):
        def port(switches, u):
            return dst // switches % u
        rise, fall = climb(src, port), climb(dst, port)
        top = next(at for at, switch in enumerate(rise) if switch == fall[at])
        return [("node", src), *rise[:top + 1], *fall[:top][::-1], ("node", dst)]

    for src in range(nodes):
        for dst in range(nodes):
            if src != dst:
                switches = way(src, dst)[1:-1]
                for one, other in zip(switches, switches[1:]):
                    low, high = sorted((one, other))
                    links[low, high] = (rates[low[0] - 1], delays[low[0] - 1])
    links |= nodes_on(lambda node: (1, node // down[0], 0), nodes)
    return Fabric(name, section, nodes, links, way)


def torus(name, sides, rate):
    delay = 200_000
    section = f"[topology]\ntorus = {list(sides)}\nwire_rate = \"{rate}Gbit/s\"\nlatency = \"{delay // 1000}ns\""
    switches = [(x, y) for y in range(sides[1]) for x in range(sides[0])]

    def next_of(switch, dimension, step):
        place = list(switch)
        place[dimension] = (place[dimension] + step) % sides[dimension]
        return tuple(place)

    def way(src, dst):
        at, to = switches[src], switches[dst]
        names = [("node", src), at]
        for dimension, side in enumerate(sides):
            up, down = (to[dimension] - at[dimension]) % side, (at[dimension] - to[dimension]) % side
            is_up = up < down or up == down and to[dimension] != 0
            for _ in range(min(up, down)):
                at = next_of(at, dimension, 1 if is_up else -1)
                names.append(at)
        return names + [("node", dst)]

    links = {(switch, next_of(switch, dimension, 1)): (rate, delay) for switch in switches for dimension in range(2)}
    links |= nodes_on(lambda node: switches[node], len(switches))
    return Fabric(name, section, len(switches), links, way)


def dragonfly(name, groups, switches, nodes, cables, local, far):
    """One cable between each two groups; the cables of a group are distributed over its switches in order."""
    delays = 100_000, 500_000
    section = (f"[topology.dragonfly]\ngroups = {groups}\nswitches = {switches}\nnodes = {nodes}\nglobal = {cables}\nper_pair = 1\n"
               f"local_cables = {{ {class_of_cables(local, delays[0])} }}\nglobal_cables = {{ {class_of_cables(far, delays[1])} }}")
    has_room = switches * cables >= groups

    def gateway(group, other):
        return group, (other if other < group or has_room else other - 1) // cables

    def switch_of(node):
        return node // (switches * nodes), node // nodes % switches

    def way(src, dst):
        at, to = switch_of(src), switch_of(dst)
        stops = [at] if at[0] == to[0] else [at, gateway(at[0], to[0]), gateway(to[0], at[0])]
        stops.append(to)
        names = [stop for place, stop in enumerate(stops) if place == 0 or stop != stops[place - 1]]
        return [("node", src), *names, ("node", dst)]

    links = {((group, one), (group, other)): (local, delays[0])
             for group in range(groups) for other in range(switches) for one in range(other)}
    links |= {(gateway(one, other), gateway(other, one)): (far, delays[1]) for other in range(groups) for one in range(other)}
    links |= nodes_on(switch_of, groups * switches * nodes)
    return Fabric(name, section, groups * switches * nodes, links, way)


def fabrics():
    return [
        tree("leaf-spine 4x4 under 2", [4, 4], [2], [100]),
        tree("fat tree of 2x2x4", [2, 2, 4], [2, 2], [100, 100]),
        tree("tapered tree of 4x3x2", [4, 3, 2], [2, 2], [100, 50]),
        torus("torus 4x4", (4, 4), 100),
        torus("torus 3x3, slow cables", (3, 3), 40),
        dragonfly("Dragonfly 5x4x2", 5, 4, 2, 1, 100, 50),
        dragonfly("Dragonfly 9x4x1", 9, 4, 1, 2, 50, 100),
    ]


def any_messages(fabric, is_at_once, draw):
    """Starts in nanoseconds, ends and bytes."""
    return [(0 if is_at_once else draw.randrange(20_000), *draw.sample(range(fabric.nodes), 2), round(10 ** draw.uniform(3, 5.6)))
            for _ in range(draw.randint(2, 40))]


def ranks_of(fabric, messages):
    """Flowcast's link numbers: links of nodes, ascending, then cables in the order of first use, in both directions."""
    nodes = sorted({node for _, src, dst, _ in messages for node in (src, dst)})
    order = [("node", node) for node in nodes]
    links = [next(ends for ends in fabric.links if ends[0] == node) for node in order]
    for _, src, dst, _ in messages:
        for way in (fabric.way(src, dst), fabric.way(dst, src)):
            links += [ends if ends in fabric.links else ends[::-1] for ends in zip(way[1:], way[2:-1])]
    return {ends: 2 * rank for rank, ends in enumerate(dict.fromkeys(links))}


class Bench:
    def __init__(self, flowcast, folder):
        self.flowcast, self.folder, self.peer = flowcast, folder, folder / "ns3-fabrics"
        libraries = ["-lns3-point-to-point", "-lns3-network", "-lns3-core"]
        subprocess.run(["g++", "-O2", "-std=c++17", HERE / "ns3_fabrics.cpp", "-o", self.peer, *libraries], check=True)

    def run(self, *command):
        return subprocess.run([str(part) for part in command], cwd=self.folder, check=True, capture_output=True, text=True)

    def write(self, fabric, messages):
        """Writes the set for both programs; returns the network file."""
        numbers = {}
        for ends in fabric.links:
            for end in ends:
                numbers.setdefault(end, len(numbers))
        ranks = ranks_of(fabric, messages)
        lines = [f"links {len(fabric.links)}"]
        for (one, other), (rate, delay) in fabric.links.items():
            forward = ranks.get((one, other), 0)
            lines.append(f"{numbers[one]} {numbers[other]} {rate * 10**9} {delay} {forward} {forward + 1}")
        lines.append(f"messages {len(messages)}")
        for start, src, dst, size in messages:
            ways = [[numbers[name] for name in way] for way in (fabric.way(src, dst), fabric.way(dst, src))]
            lines.append(" ".join(map(str, [start * 1000, size, *(word for way in ways for word in (len(way), *way))])))
        (self.folder / "set.case").write_text("\n".join(lines) + "\n")
        (self.folder / "set.pattern").write_text(
            "".join(f"{src} -> {dst} {size}B @ {start}ns\n" for start, src, dst, size in messages))
        network = (
            "schema = \"flowcast/network/2\"\nname = \"fabric\"\npoint_to_point = { rule = \"hockney\" }\n"
            f"[nic]\nlatency = \"{NIC['delay'] // 1000}ns\"\nwire_rate = \"{NIC['rate']}Gbit/s\"\n"
            "[sharing]\nmodel = \"packet\"\n[sharing.packet]\nwindow = \"1GB\"\nfirst_window = \"1GB\"\n" + fabric.section + "\n")
        (self.folder / "set.toml").write_text(network)
        return network

    def theirs(self, *more):
        done = self.run(self.peer, "set.case", *more)
        *ends, frames = map(int, done.stdout.split())
        return [end * 1e-12 for end in ends], frames, float(done.stderr.split()[-1])

    def ours(self):
        predicted = json.loads(self.run(self.flowcast, "predict", "set.pattern", "--network", "set.toml", "--json").stdout)
        told = json.loads(self.run(self.flowcast, "bench", "packet", "set.pattern", "--network", "set.toml", "--unfold", "--repetitions", "1",
                                   "--json").stdout)
        return [flow["end_s"] for flow in predicted["flows"]], told["packet_hops"], told["packet_hops"] / told["packet_hops_per_s"]


def compared(bench, fabric, number, seed):
    is_at_once = number % 2 == 0
    messages = any_messages(fabric, is_at_once, random.Random(f"{seed} {fabric.name} {number}"))
    bench.write(fabric, messages)
    theirs, their_frames, their_seconds = bench.theirs()
    ranked, *_ = bench.theirs("--ranked")
    ours, our_frames, our_seconds = bench.ours()
    own_order, same_order = (differences(messages, ours, ends) for ends in (theirs, ranked))
    return {"fabric": fabric.name, "set": number, "starts": "at once" if is_at_once else "random", "messages": len(messages),
            "frames": our_frames, "frames_of_ns3": their_frames, "differences": own_order, "differences_in_same_order": same_order,
            "last_end": max(ours) / max(theirs) - 1, "flowcast_s": our_seconds, "ns3_s": their_seconds}


def kept_cases(bench, seed):
    """Writes small sets with random starts and the results of ns-3, for tests/data/peers."""
    cases = []
    for fabric in fabrics():
        sets = (any_messages(fabric, False, random.Random(f"{seed} {fabric.name} {number}")) for number in range(100))
        messages = next(messages for messages in sets if 8 <= len(messages) <= 12)
        network = bench.write(fabric, messages)
        ends, *_ = bench.theirs()
        cases.append({"name": fabric.name, "network": network,
                      "flows": [[src, dst, size, start] for start, src, dst, size in messages], "ends_s": ends})
    return {"origin": "ns-3 3.37 (Debian 3.37-2), benches/ns3_fabrics.py --keep: source, destination, bytes, start in ns",
            "model": "packet", "cases": cases}


def lines_of(kept):
    """Formats JSON with a line for each case."""
    head = ", ".join(f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in ("origin", "model"))
    return "{" + head + ', "cases": [\n' + ",\n".join(json.dumps(case) for case in kept["cases"]) + "\n]}\n"


def differences(messages, ours, theirs):
    """Differences of durations, as fractions of those of ns-3."""
    rows = zip(messages, ours, theirs, strict=True)
    return [(our - their) / (their - start * 1e-9) for (start, *_), our, their in rows]


def farthest(values):
    return max(map(abs, values))


def table(rows, names):
    print("\n| fabric | starts | sets | messages | equal | nine in ten | farthest | last end | beyond 2 % | farthest, ties in one "
          "order | ns-3 / Flowcast, time |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in names:
        for starts in ("at once", "random"):
            chosen = [row for row in rows if row["fabric"] == name and row["starts"] == starts]
            if not chosen:
                continue
            all_of = sorted(abs(difference) for row in chosen for difference in row["differences"])
            ranked = farthest(difference for row in chosen for difference in row["differences_in_same_order"])
            equal, beyond = (sum(test) for test in ([value <= EQUAL for value in all_of], [value > TOLERANCE for value in all_of]))
            ratio = statistics.median(row["ns3_s"] / row["flowcast_s"] for row in chosen)
            print(f"| {name} | {starts} | {len(chosen)} | {len(all_of)} | {equal} | {all_of[9 * (len(all_of) - 1) // 10]:.1e} | "
                  f"{all_of[-1]:.1e} | {farthest(row['last_end'] for row in chosen):.1e} | {beyond} | {ranked:.1e} | {ratio:.0f} |")


def missing():
    """Returns the missing requirement of the comparison, or nothing."""
    if not shutil.which("g++"):
        return "no g++"
    header = "#include <ns3/point-to-point-net-device.h>"
    include = subprocess.run(["g++", "-E", "-x", "c++", "-"], input=header, capture_output=True, text=True)
    return None if include.returncode == 0 else "no headers of ns-3 (libns3-dev)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=20, help="number of sets of each fabric")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flowcast", type=pathlib.Path, default=HERE.parent / "target/release/flowcast")
    parser.add_argument("--json", type=pathlib.Path, help="file for all sets")
    parser.add_argument("--keep", type=pathlib.Path, help="only write a few small sets with the results of ns-3, as test cases")
    given = parser.parse_args()
    if reason := missing():
        print(f"ns-3 is not installed ({reason}): nothing was compared")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(given.flowcast.resolve(), pathlib.Path(folder))
        if given.keep:
            return given.keep.write_text(lines_of(kept_cases(bench, given.seed)))
        rows = [compared(bench, fabric, number, given.seed) for fabric in fabrics() for number in range(given.sets)]
    table(rows, [fabric.name for fabric in fabrics()])
    if given.json:
        machine = {"cores": os.cpu_count(), "machine": platform.machine(), "load": os.getloadavg()[0]}
        given.json.write_text(json.dumps({"seed": given.seed, "tolerance": TOLERANCE, "host": machine, "sets": rows}, indent=1) + "\n")
    wrong = [row for row in rows if farthest(row["differences_in_same_order"]) > EQUAL or row["frames"] != row["frames_of_ns3"]]
    for row in rows:
        if row in wrong or farthest(row["differences"]) > TOLERANCE:
            print(f"{'differs' if row in wrong else 'differs by ties'}: {row['fabric']}, set {row['set']}: {farthest(row['differences']):.2e}, "
                  f"ties in one order {farthest(row['differences_in_same_order']):.2e}, {row['frames']} and {row['frames_of_ns3']} frames")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
