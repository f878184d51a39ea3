#!/usr/bin/env python3
"""plot.py RESULTS.csv... : medians over the rounds as a Markdown table on standard output, as bars in bars.svg."""
import csv
import statistics
import sys
from collections import defaultdict

WHO = ["stock", "ucx", "slow-alone", "fast-alone", "round-robin", "flowcast"]
COLOURS = ["#999999", "#c7c7c7", "#d8c9a8", "#8fb4d9", "#e8a15b", "#2b7a3d"]


def read(files):
    times = defaultdict(list)
    for file in files:
        for row in csv.reader(open(file)):
            if len(row) == 7:
                rails, _, who, count, size, micros, rate = row
                times[rails, int(size), int(count), who].append((float(micros), float(rate)))
    return {key: tuple(statistics.median(column) for column in zip(*rounds)) for key, rounds in times.items()}


def table(data):
    print("| rails Mbit/s | N x bytes | " + " | ".join(WHO) + " | over stock | over fast alone |")
    print("|---|---|" + "---|" * (len(WHO) + 2))
    for rails, size, count in sorted({key[:3] for key in data}, key=lambda key: (order(key[0]), key[1:])):
        value = {who: data.get((rails, size, count, who)) for who in WHO}
        unit, what = (0, "{:.2f} us") if size == 1 else (1, "{:.0f}")
        cells = [what.format(value[who][unit]) if value[who] else "-" for who in WHO]
        ratios = [f"{value['stock'][0] / value['flowcast'][0]:.2f}", f"{value['fast-alone'][0] / value['flowcast'][0]:.2f}"]
        print(f"| {rails} | {count} x {size} | " + " | ".join(cells + ratios) + " |")


def order(rails):
    fast, slow = map(int, rails.split("+"))
    return (fast, -slow)


def bars(data):
    panels = sorted({key[0] for key in data}, key=order)
    cases = sorted({key[1:3] for key in data if key[1] > 1})
    left, top, height, bar, gap = 60, 60, 130, 9, 14
    group = bar * len(WHO) + gap
    width = left + group * len(cases) + 20
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top + (height + 60) * len(panels)}" '
           f'width="{width}" font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="#fff"/>',
           '<text x="12" y="20" font-size="15">Many messages over two rails: Mbit/s</text>']
    for at, (who, colour) in enumerate(zip(WHO, COLOURS)):
        out.append(f'<rect x="{left + 100 * at}" y="30" width="10" height="10" fill="{colour}"/>'
                   f'<text x="{left + 14 + 100 * at}" y="39">{who}</text>')
    for panel, rails in enumerate(panels):
        base = top + (height + 60) * panel + height
        most = max(rate for key, (_, rate) in data.items() if key[0] == rails and key[1] > 1)
        out.append(f'<text x="12" y="{base - height - 4}" font-size="13">{rails} Mbit/s</text>')
        for part in (0, 0.5, 1):
            y = base - height * part * 0.9
            out.append(f'<line x1="{left - 4}" x2="{width - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
                       f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{most * part:.0f}</text>')
        for place, (size, count) in enumerate(cases):
            x = left + group * place
            for at, who in enumerate(WHO):
                if (rails, size, count, who) in data:
                    tall = height * 0.9 * data[rails, size, count, who][1] / most
                    out.append(f'<rect x="{x + bar * at}" y="{base - tall:.1f}" width="{bar - 1}" height="{tall:.1f}" '
                               f'fill="{COLOURS[at]}"/>')
            out.append(f'<text x="{x + bar * len(WHO) / 2}" y="{base + 14}" text-anchor="middle">'
                       f'{count} x {size // 1024}K</text>')
    open("bars.svg", "w").write("\n".join(out + ["</svg>"]) + "\n")


if __name__ == "__main__":
    results = read(sys.argv[1:])
    table(results)
    bars(results)
