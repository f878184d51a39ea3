#!/usr/bin/env python3
"""plot.py FOLDER RESULTS.csv... : medians over the rounds as Markdown tables on standard output, and for each pair of
rails a plot, FOLDER/openmpi-FAST-SLOW.svg."""
import csv
import statistics
import sys
from collections import defaultdict

WHO = {
    "stock": "#777777", "ucx": "#9a5fc0", "slow-alone": "#d0b070", "fast-alone": "#4a90d9", "round-robin": "#e8873b",
    "start-up": "#8cc63f", "flowcast": "#1d7a35",
}
PANEL, HEIGHT, LEFT, TOP = 230, 190, 46, 64


def read(files):
    times = defaultdict(list)
    for file in files:
        for rails, _, who, count, size, micros, _ in csv.reader(open(file)):
            times[rails, int(size), int(count), who].append(float(micros))
    return {key: statistics.median(rounds) for key, rounds in times.items()}, max(map(len, times.values()))


def rate(size, count, micros):
    return 8 * size * count / micros


def table(data, rails):
    print(f"\n| {rails} Mbit/s | " + " | ".join(WHO) + " | over stock | over fast alone |")
    print("|---|" + "---|" * (len(WHO) + 2))
    for size, count in sorted({key[1:3] for key in data if key[0] == rails}):
        value = {who: data[rails, size, count, who] for who in WHO if (rails, size, count, who) in data}
        cell = (lambda micros: f"{micros:.1f} us") if size == 1 else (lambda micros: f"{rate(size, count, micros):.1f}")
        cells = [cell(value[who]) if who in value else "-" for who in WHO]
        cells += [f"{value[other] / value['flowcast']:.2f}" for other in ("stock", "fast-alone")]
        print(f"| {count} x {size} B | " + " | ".join(cells) + " |")


def panel(data, rails, count, left, sizes):
    most = 1.05 * max(rate(key[1], key[2], value) for key, value in data.items() if key[0] == rails and key[1] >= sizes[0])
    across = lambda size: left + (PANEL - LEFT - 14) * sizes.index(size) / (len(sizes) - 1)
    up = lambda value: TOP + HEIGHT * (1 - value / most)
    yield f'<text x="{left}" y="{TOP - 8}" font-size="12">N = {count}</text>'
    for part in range(5):
        y, value = up(most * part / 4), most * part / 4
        yield f'<line x1="{left}" x2="{left + PANEL - LEFT - 14}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{left - 4}" y="{y + 4:.1f}" text-anchor="end">{value:.0f}</text>'
    for size in sizes:
        label = f"{size // 1024}K" if size % 1024 == 0 else str(size)
        turn = f'transform="rotate(-45 {across(size):.1f} {TOP + HEIGHT + 14})"'
        yield f'<text x="{across(size):.1f}" y="{TOP + HEIGHT + 14}" text-anchor="end" {turn}>{label}</text>'
    for who, colour in WHO.items():
        points = [(across(size), up(rate(size, count, data[rails, size, count, who])))
                  for size in sizes if (rails, size, count, who) in data]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        width = 2.5 if who == "flowcast" else 1.5
        yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def plot(data, rails, folder):
    counts = sorted({key[2] for key in data if key[0] == rails})
    sizes = sorted({key[1] for key in data if key[0] == rails and key[1] >= 1024})
    width, height = PANEL * len(counts) + 10, TOP + HEIGHT + 50
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
           'font-family="sans-serif" font-size="10">', '<rect width="100%" height="100%" fill="#fff"/>',
           f'<text x="10" y="18" font-size="14">N messages over rails of {rails} Mbit/s: Mbit/s by size in bytes</text>']
    for at, (who, colour) in enumerate(WHO.items()):
        x = 12 + 105 * at
        out.append(f'<line x1="{x}" x2="{x + 16}" y1="36" y2="36" stroke="{colour}" stroke-width="3"/>'
                   f'<text x="{x + 20}" y="40" font-size="11">{who}</text>')
    for at, count in enumerate(counts):
        out += panel(data, rails, count, LEFT + PANEL * at, sizes)
    open(f"{folder}/openmpi-{rails.replace('+', '-')}.svg", "w").write("\n".join(out + ["</svg>"]) + "\n")


if __name__ == "__main__":
    results, rounds = read(sys.argv[2:])
    print(f"{rounds} rounds", file=sys.stderr)
    for rails in sorted({key[0] for key in results}, key=lambda rails: [int(part) for part in rails.split("+")][::-1]):
        table(results, rails)
        plot(results, rails, sys.argv[1])
