"""Accuracy of predictions of High Performance Linpack for runs that no constant was fitted to.

    python3 benches/linpack.py MEASURED_DIR [--fitted NET.toml] [--windows COUNT] [--members COUNT] [--flowcast PATH] [--json]
        [--picture FILE.svg]

MEASURED_DIR has cases.csv, dgemm_by_cpu.csv and calls.csv of 1,024 ranks of the Dahu cluster. The network is fitted to the calls,
the constants to the sizes of October 2018 up to 200,000 (or `--fitted` has both). All other runs are predicted except those of
March 2019, when four nodes were warm. The program prints the error of each run, next to that of the simulation that was published
with the runs, then means, the largest errors, the number of runs inside their intervals (90 %), and the median half-width of the
intervals. The picture shows predicted / measured time, with the intervals.
"""

import argparse
import csv
import json
import math
import pathlib
import statistics
import subprocess
import tempfile

BROADCASTS = ["1rg", "1rM", "2rg", "2rM", "lng", "lnM"]
SWAPS = ["binary", "long", "mix"]
FITTED, LARGEST_FITTED = "size-2018-10", 200_000
WARM = "size-2019-03"


def is_fitted(row):
    return row["experiment"] == FITTED and int(row["N"]) <= LARGEST_FITTED


def write(path, names, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def predicted(options, folder):
    """Predicts rows with a network whose constants were fitted to the other rows."""
    measured = pathlib.Path(options.measured)
    with open(measured / "cases.csv", newline="") as file:
        reader = csv.DictReader(file)
        rows, names = list(reader), reader.fieldnames
    known = [row for row in rows if is_fitted(row)]
    asked = [row for row in rows if not is_fitted(row) and row["experiment"] != WARM]
    write(folder / "known.csv", names, known)
    write(folder / "asked.csv", names, asked)
    compute = ["--compute", measured / "dgemm_by_cpu.csv"]
    fitted = options.fitted
    if not fitted:
        cluster, fitted = folder / "cluster.toml", folder / "fitted.toml"
        run(options, "fit", measured / "calls.csv", "-o", cluster)
        run(options, "hpl", "fit", folder / "known.csv", "--network", cluster, *compute, "-o", fitted)
    extent = ["--limit", options.windows] if options.windows else []
    members = ["--replicates", options.members] if options.members else []
    predict = ["hpl", "predict", folder / "asked.csv", "--network", fitted, *compute, *extent, *members]
    run(options, *predict, "-o", folder / "predicted.csv")
    with open(folder / "predicted.csv", newline="") as file:
        return list(csv.DictReader(file))


def run(options, *arguments):
    subprocess.run([options.flowcast, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def judged(row):
    """Returns the settings and the error of a run, whether its interval contains it, and the error of the published simulation."""
    measured, told, low, high = (float(row[name]) for name in ("time_s", "predicted_s", "low_s", "high_s"))
    published = row["published_sim_s"]
    return {
        "experiment": row["experiment"],
        "order": int(row["N"]),
        "depth": int(row["depth"]),
        "broadcast": BROADCASTS[int(row["bcast"])],
        "swap": SWAPS[int(row["swap"])],
        "measured_s": measured,
        "predicted_s": told,
        "low_s": low,
        "high_s": high,
        "error": told / measured - 1,
        "inside": low <= measured <= high,
        "half_width": (high - low) / 2 / told,
        "published_error": float(published) / measured - 1 if published else None,
    }


def summary(runs):
    errors = [abs(run["error"]) for run in runs]
    # The published simulation has no interval, and not all runs.
    published = [abs(run["published_error"]) for run in runs if run["published_error"] is not None]
    return {
        "runs": len(runs),
        "mean_error": statistics.mean(errors),
        "worst_error": max(errors),
        "coverage": sum(run["inside"] for run in runs) / len(runs),
        "median_half_width": statistics.median(run["half_width"] for run in runs),
        "published_runs": len(published),
        "published_mean_error": statistics.mean(published) if published else None,
        "published_worst_error": max(published) if published else None,
    }


def print_tables(runs, summaries):
    share = lambda value, form: "" if value is None else format(value, form).replace("%", " %")
    print("| N | depth | broadcast | swap | measured | predicted | 90 % | error | published |")
    print("|---|---|---|---|---|---|---|---|---|")
    for run in runs:
        print(
            f"| {run['order']:,} | {run['depth']} | {run['broadcast']} | {run['swap']} | {run['measured_s']:.1f} s "
            f"| {run['predicted_s']:.1f} s | {run['low_s']:.1f} to {run['high_s']:.1f} s{'' if run['inside'] else ', outside'} "
            f"| {share(run['error'], '+.1%')} | {share(run['published_error'], '+.1%')} |"
        )
    print()
    print("| runs | number | error, mean | worst | covered | half-width, median | published, mean | worst |")
    print("|---|---|---|---|---|---|---|---|")
    for name, found in summaries.items():
        print(
            f"| {name} | {found['runs']} | {share(found['mean_error'], '.1%')} | {share(found['worst_error'], '.1%')} "
            f"| {share(found['coverage'], '.0%')} | {share(found['median_half_width'], '.1%')} "
            f"| {share(found['published_mean_error'], '.1%')} | {share(found['published_worst_error'], '.1%')} |"
        )


def draw(runs, path):
    """Plots predicted / measured time of each run, with the intervals; rings are the published simulation."""
    width, height, left, bottom, top = 900, 380, 60, 70, 20
    ratios = [run[name] / run["measured_s"] for run in runs for name in ("low_s", "high_s")]
    ratios += [1 + run["published_error"] for run in runs if run["published_error"] is not None]
    low, high = math.floor(20 * min(ratios)) / 20, math.ceil(20 * max(ratios)) / 20
    across = lambda place: left + (place + 0.5) * (width - left - 20) / len(runs)
    up = lambda ratio: height - bottom - (ratio - low) / (high - low) * (height - bottom - top)
    colours = {"sizes": "#0072b2", "settings": "#e69f00"}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{left}" y="{height - 8}">dots with intervals (90 %): predicted / measured; rings: the published simulation</text>',
    ]
    for step in range(round(low * 20), round(high * 20) + 1):
        y, line = up(step / 20), "#555555" if step == 20 else "#dddddd"
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{width - 20}" y2="{y:.1f}" stroke="{line}"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{step / 20:.2f}</text>')
    for place, run in enumerate(runs):
        x, measured = across(place), run["measured_s"]
        colour = colours[kind(run)]
        ends = [up(run[name] / measured) for name in ("low_s", "high_s")]
        parts.append(f'<line x1="{x:.1f}" y1="{ends[0]:.1f}" x2="{x:.1f}" y2="{ends[1]:.1f}" stroke="{colour}" stroke-width="3" opacity="0.35"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{up(1 + run["error"]):.1f}" r="3.5" fill="{colour}"/>')
        if run["published_error"] is not None:
            parts.append(f'<circle cx="{x:.1f}" cy="{up(1 + run["published_error"]):.1f}" r="3.5" fill="none" stroke="#009e73"/>')
        is_size = kind(run) == "sizes"
        label = f"{run['order'] // 1000}k" if is_size else f"{run['depth']} {run['broadcast']} {run['swap'][0]}"
        turned = f'transform="rotate(-60 {x:.1f} {height - bottom + 12})"'
        parts.append(f'<text x="{x:.1f}" y="{height - bottom + 12}" text-anchor="end" font-size="9" {turned}>{label}</text>')
    pathlib.Path(path).write_text("\n".join(parts + ["</svg>", ""]))


def kind(run):
    return "sizes" if run["experiment"] == FITTED else "settings"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", metavar="MEASURED_DIR")
    parser.add_argument("--fitted", metavar="NET.toml", help="a network with [linpack], instead of the fits")
    parser.add_argument("--windows", type=int, help="number of simulated windows of each run; all if absent")
    parser.add_argument("--members", type=int, help="number of simulations of each run")
    parser.add_argument("--flowcast", default="target/release/flowcast")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--picture", metavar="FILE.svg")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = [judged(row) for row in predicted(options, pathlib.Path(folder))]
    groups = {"all": runs}
    for one in runs:
        groups.setdefault(kind(one), []).append(one)
    summaries = {name: summary(part) for name, part in groups.items()}
    if options.picture:
        draw(runs, options.picture)
    if options.json:
        print(json.dumps({"runs": runs, "summaries": summaries}, indent=2))
    else:
        print_tables(runs, summaries)


if __name__ == "__main__":
    main()
