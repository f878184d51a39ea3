"""Accuracy of fitted collective operations on more nodes than the fit has seen.

    python3 benches/collectives.py MEASURED.csv ALLOCATIONS.csv [--network SYSTEM=NET]... [--flowcast PATH] [--json]
        [--most NODES] [--picture FILE.svg]

For each machine, runs on at most half of its largest number of nodes are fitted (with all runs of the other machines) and the
other runs are predicted. The program prints errors, coverage of the intervals (90 %), their widths, and the measured time of the
algorithm that is predicted best relative to the best measured one, in total and by operation, size, nodes and ranks per node. With
`--most`, all machines are fitted to runs on at most this number of nodes. The picture (matplotlib) shows each prediction by size.
"""

import argparse
import collections
import csv
import json
import math
import pathlib
import statistics
import subprocess
import tempfile

# Excludes operations on empty blocks, which take 28 ns.
LEAST_NS = 200


def quantile(values, share):
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def write(path, names, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def predicted(flowcast, names, known, asked, allocations, system, topology):
    """Predicts rows with a fit to the known ones; `topology` is the network with the switches of the machine, or none."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write(folder / "known.csv", names, known)
        write(folder / "asked.csv", names, asked)
        network = folder / "network.toml"
        fit = ["fit", "--collectives", folder / "known.csv", "--allocations", allocations, "--system", system]
        fit += ["--network", topology] if topology else []
        subprocess.run([flowcast, *fit, "-o", network], check=True, stdout=subprocess.DEVNULL)
        predict = ["collectives", "predict", folder / "asked.csv", "--network", network, "--allocations", allocations]
        subprocess.run([flowcast, *predict, "-o", folder / "out.csv"], check=True)
        with open(folder / "out.csv", newline="") as file:
            return list(csv.DictReader(file))


def judged(rows):
    """Computes errors, coverage, widths and the cost of choices."""
    errors, inside, widths = [], 0, []
    groups = collections.defaultdict(list)
    for row in rows:
        measured, told, low, high = (float(row[name]) for name in ("median_ns", "predicted_ns", "low_ns", "high_ns"))
        errors.append(max(told / measured, measured / told) - 1)
        inside += low <= measured <= high
        widths.append(high / low)
        groups[tuple(row[name] for name in ("run", "nodes", "ranks_per_node", "collective", "bytes"))].append((told, measured))
    costs = [min(group)[1] / min(measured for _, measured in group) for group in groups.values() if len(group) > 1]
    return {
        "cases": len(rows),
        "median_error": statistics.median(errors),
        "error_of_nine_in_ten": quantile(errors, 0.9),
        "coverage": inside / len(rows),
        "median_width": statistics.median(widths),
        "choices": len(costs),
        "median_choice": statistics.median(costs) if costs else math.nan,
        "choice_of_nine_in_ten": quantile(costs, 0.9) if costs else math.nan,
    }


def kinds(rows):
    """Groups the rows: all, and by operation, size, number of nodes and number of ranks on a node."""
    yield "all", rows
    for operation in sorted({row["collective"] for row in rows}):
        yield operation, [row for row in rows if row["collective"] == operation]
    for name, least, most in (("below 8 KiB", 0, 2**13), ("8 KiB to 1 MiB", 2**13, 2**20), ("1 MiB and more", 2**20, 2**63)):
        yield name, [row for row in rows if least <= int(row["bytes"]) < most]
    for count in sorted({int(row["nodes"]) for row in rows}):
        yield f"{count} nodes", [row for row in rows if int(row["nodes"]) == count]
    for count in sorted({int(row["ranks_per_node"]) for row in rows}):
        yield f"{count} ranks a node", [row for row in rows if int(row["ranks_per_node"]) == count]


def draw(predictions, path):
    """Plots predicted / measured time by size, with the intervals."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "flowcast"
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(predictions), figsize=(4.2 * len(predictions), 3.8), sharey=True)
    colours = {1: "#0072b2", 4: "#e69f00", 32: "#009e73", 64: "#009e73"}
    for panel, (title, rows) in zip(panels, predictions.items()):
        for count in sorted({int(row["ranks_per_node"]) for row in rows}):
            part = [row for row in rows if int(row["ranks_per_node"]) == count]
            measured = [float(row["median_ns"]) for row in part]
            over = lambda name: [float(row[name]) / time for row, time in zip(part, measured)]
            sizes = [int(row["bytes"]) for row in part]
            panel.vlines(sizes, over("low_ns"), over("high_ns"), color=colours[count], alpha=0.2)
            panel.scatter(sizes, over("predicted_ns"), s=12, color=colours[count], label=f"{count} ranks a node")
        panel.axhline(1, color="#555555", linewidth=0.8)
        panel.set(title=title, xscale="log", yscale="log", xlabel="bytes")
        panel.legend(frameon=False, fontsize=8)
    panels[0].set_ylabel("predicted / measured")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured")
    parser.add_argument("allocations")
    parser.add_argument("--network", action="append", default=[], metavar="SYSTEM=NET", help="the topology of a machine")
    parser.add_argument("--flowcast", default="target/release/flowcast")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--most", type=int, metavar="NODES", help="largest number of nodes of all fitted runs")
    parser.add_argument("--picture")
    options = parser.parse_args()
    with open(options.measured, newline="") as file:
        reader = csv.DictReader(file)
        rows = [row for row in reader if float(row["median_ns"]) >= LEAST_NS]
        names = reader.fieldnames
    topologies = dict(one.split("=", 1) for one in options.network)
    results, predictions = {}, {}
    for system in sorted({row["system"] for row in rows}):
        own = [int(row["nodes"]) for row in rows if row["system"] == system]
        fitted = options.most or max(own) // 2
        if not min(own) <= fitted < max(own):
            continue
        is_large = lambda row: int(row["nodes"]) > fitted
        asked = [row for row in rows if row["system"] == system and is_large(row)]
        known = [row for row in rows if not (is_large(row) and (options.most or row["system"] == system))]
        told = predicted(options.flowcast, names, known, asked, options.allocations, system, topologies.get(system))
        title = f"{system}, more than {fitted} nodes"
        predictions[title] = told
        for kind, part in kinds(told):
            if part:
                results[f"{title}, {kind}"] = judged(part)
    if options.picture:
        draw(predictions, options.picture)
    if options.json:
        print(json.dumps(results, indent=2))
        return
    print("| runs | cases | error, median | nine in ten | covered | high / low | choices | median | nine in ten |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, found in results.items():
        print(
            f"| {name} | {found['cases']} | {found['median_error']:.0%} | {found['error_of_nine_in_ten']:.0%} "
            f"| {found['coverage']:.0%} | {found['median_width']:.1f} | {found['choices']} "
            f"| {found['median_choice']:.3f} | {found['choice_of_nine_in_ten']:.2f} |"
        )


if __name__ == "__main__":
    main()
