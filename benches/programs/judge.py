#!/usr/bin/env python3
"""judge.py FOLDER [RECORD.toml]: predicted and measured times of the ten programs in the four laboratories.

Reads FOLDER/PROGRAM.rec, FOLDER/LAB.net.toml and FOLDER/LAB.PROGRAM.json (record.sh, flowcast fit, measure.sh). Prints for each the
measured median, the default prediction with its interval, from which the program's own errors are left out, and the sums. With a
second argument, writes the errors of every model as a record of accuracy.
"""

import datetime
import json
import pathlib
import platform
import statistics
import subprocess
import sys

LABORATORIES = "fair asymmetric bus two-racks".split()
PROGRAMS = "ptrans fft lammps gromacs cg mg kmeans halo farm transpose".split()
MODELS = "packet closed-loop alpha-fair asymmetric degree-fair fair flow-cuts limits independent".split()


def predicted(folder, laboratory, program, *options):
    """Returns the document of `flowcast predict`, or None if the model refuses the program."""
    words = ["flowcast", "predict", f"{folder}/{program}.rec", "--network", f"{folder}/{laboratory}.net.toml", "--json", *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def measured(folder, laboratory, program):
    """Returns the median of the runs, in seconds."""
    runs = json.loads((folder / f"{laboratory}.{program}.json").read_text())["runs"]
    return statistics.median(run["total_s"] for run in runs)


def judge(folder):
    errors, widths, inside = [], [], 0
    for laboratory in LABORATORIES:
        for program in PROGRAMS:
            truth = measured(folder, laboratory, program)
            found = predicted(folder, laboratory, program, "--holdout", program)
            makespan, (low, high) = found["makespan_s"], found["interval_s"] or (float("nan"), float("nan"))
            errors.append(makespan / truth - 1)
            widths.append((high - low) / 2 / makespan)
            inside += low <= truth <= high
            mark = "" if low <= truth <= high else " outside"
            print(f"| {laboratory} | `{program}` | {truth:.3f} s | {makespan:.3f} s ({low:.3f} to {high:.3f}) | {errors[-1]:+.1%} | {found['model']}{mark} |")
    mean = statistics.mean(map(abs, errors))
    print(f"\ninside {inside} of {len(errors)}; median half-width {statistics.median(widths):.1%}; mean absolute error {mean:.1%}")


def write_record(folder, path):
    lines = [
        "# Errors of predictions of whole programs, (predicted - measured) / measured, by PROGRAM/LABORATORY.",
        "# Written by benches/programs/judge.py; docs/evidence/programs.md describes the runs.",
    ]
    for model in MODELS:
        errors = {}
        for program in PROGRAMS:
            for laboratory in LABORATORIES:
                found = predicted(folder, laboratory, program, "--model", model)
                if found:
                    errors[f"{program}/{laboratory}"] = found["makespan_s"] / measured(folder, laboratory, program) - 1
        absolute = sorted(map(abs, errors.values()))
        lines += [
            "",
            "[[accuracy]]",
            f'model = "{model}/openmpi"',
            'validated_on = "ten programs in four laboratories"',
            'judged = "programs"',
            f"cases = {len(errors)}",
            f"mean = {statistics.mean(absolute):.4f}",
            f'machine = "a virtual machine of two processors, {platform.system()} {platform.release().split("-")[0]}"',
            f'date = "{datetime.date.today()}"',
            "",
            "[accuracy.errors]",
            *(f'"{name}" = [{error:.4f}]' for name, error in errors.items()),
        ]
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    write_record(folder, pathlib.Path(sys.argv[2])) if len(sys.argv) > 2 else judge(folder)
