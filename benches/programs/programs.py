#!/usr/bin/env python3
"""Programs in laboratories: recorded elsewhere, predicted, and measured. README.md has the list and the method.

    programs.py prepare FOLDER      compiles programs, makes inputs and the files of the laboratories
    programs.py record FOLDER       records each program over shared memory
    programs.py networks FOLDER     measures the conflicts of each laboratory and fits a network to them
    programs.py measure FOLDER      runs each program in each laboratory
    programs.py keep FOLDER         copies networks and measured times into measured/, from where `prepare` takes them again
    programs.py judge FOLDER        compares predictions with measured times
    programs.py accuracy FOLDER FILE  writes the errors of all models as an accuracy record

What FOLDER holds already is not made again, so an interrupted step goes on. `--only WORD` keeps to names that contain a word, such
as `fair-4.` or `bus-8-shared.cg`. `--shared` judges, or writes the record of, laboratories at normal speed.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
MEASURED = HERE / "measured"
RANKS = (4, 8)
# Fields of laboratories whose ranks hardly delay each other, and of laboratories at normal speed, by the ending of their names.
SPEEDS = {"": {"slow_motion": 20, "nic.delay": "100us"}, "-shared": {}}
# Laboratory: its profile, its ranks, and the fields that differ from the profile.
LABORATORIES = {
    f"{profile}-{ranks}{ending}": (
        profile,
        ranks,
        fields | ({"backbone.bandwidth": "75Mbit/s"} if (profile, ranks) == ("two-racks", 4) else {}),
    )
    for ending, fields in SPEEDS.items()
    for profile in ("fair", "asymmetric", "bus", "two-racks")
    for ranks in RANKS
}
GROMACS = "-ntomp 1 -npme 0 -dlb no -notunepme -g out.log -c out.gro -e out.edr -o out.trr -cpo out.cpt"
PETSC = "-m 100 -n 100 -ksp_type richardson -ksp_richardson_scale 0.9 -pc_type jacobi -ksp_rtol 1e-30 -ksp_max_it 700"
PROGRAMS = {
    "ptrans": "env HPCC_PART=ptrans {HPCC}/hpcc",
    "fft": "env HPCC_PART=fft {HPCC}/hpcc",
    "lammps": "lmp -in in.melt -log none -screen none",
    "gromacs": f"gmx_mpi mdrun -s water.tpr {GROMACS} -nsteps 60",
    "cg": "{NPB}/bin/cg.S.{ranks}",
    "mg": "{NPB}/bin/mg.S.{ranks}",
    "kmeans": "/usr/bin/python3 kmeans.py 30",
    "halo": "./halo 1500 80",
    "farm": "./farm 50",
    "transpose": "./transpose 40000 4",
    "scalapack": "/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests/xdlu",
    "cp2k": "cp2k.psmp -i water.inp -o water.out",
    "foam": "icoFoam -parallel -case foam",
    "petsc": f"./ex2 {PETSC}",
    "fourier": "/usr/bin/python3 fourier.py 48 16",
}
RELEASE = platform.release().split("-")[0]
MODELS = "packet closed-loop alpha-fair asymmetric degree-fair fair flow-cuts limits independent".split()
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def call(folder, *words, check=True, seconds=900, output=None):
    """Runs a command in a folder and returns its output, which may go to a file besides."""
    done = subprocess.run([str(word) for word in words], cwd=folder, text=True, capture_output=True, timeout=seconds,
                          env={**os.environ, **ENVIRONMENT}, check=False)
    if output:
        (folder / output).write_text(done.stdout + done.stderr)
    if check and done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: exit status {done.returncode}\n{done.stdout[-500:]}{done.stderr[-1500:]}")
    return done.stdout if done.returncode == 0 else None


def command(program, ranks):
    return PROGRAMS[program].format(ranks=ranks, **os.environ).split()


def cases(options):
    """Yields the folder, the laboratory and the program of each case."""
    for laboratory, (_, ranks, _) in LABORATORIES.items():
        for program in PROGRAMS:
            if options.only in f"{laboratory}.{program}":
                yield options.folder / str(ranks), laboratory, program


def judged(options):
    """Yields the cases at the speed that the options name."""
    return (case for case in cases(options) if case[1].endswith("-shared") == options.shared)


def prepare(options):
    for ranks in RANKS:
        folder = options.folder / str(ranks)
        folder.mkdir(parents=True, exist_ok=True)
        for name in "in.melt kmeans.py fourier.py water.inp md.mdp".split():
            shutil.copy(HERE / name, folder)
        for name in "halo farm transpose".split():
            call(folder, "mpicc.openmpi", "-O2", HERE / f"{name}.c", "-o", name)
        call(folder, "sh", "-c", "mpicc.openmpi -O2 -w $PETSC_EX2 $PETSC_FLAGS -o ex2")
        shutil.rmtree(folder / "foam", ignore_errors=True)
        shutil.copytree(pathlib.Path(os.environ["FOAM_EXAMPLES"], "incompressible/icoFoam/cavity/cavity"), folder / "foam")
        system = folder / "foam/system"
        text = (system / "controlDict").read_text().replace("writeInterval   20", "writeInterval   100000")
        (system / "controlDict").write_text(text.replace("endTime         0.5", "endTime         0.02"))
        (system / "decomposeParDict").write_text(
            "FoamFile { version 2.0; format ascii; class dictionary; object decomposeParDict; }\n"
            f"numberOfSubdomains {ranks};\nmethod simple;\nsimpleCoeffs {{ n ({ranks // 2} 2 1); delta 0.001; }}\n")
        for tool in ("blockMesh", "decomposePar"):
            call(folder, tool, "-case", "foam")
        sizes = f"600\n600\n1\n40\n1\n1\n1\n1\n1\n2\n{ranks // 2}"
        (folder / "LU.dat").write_text(f"'LU factorization'\n'MPI'\n'LU.out'\n6\n1\n{sizes}\n1.0\nF\n")
        text = pathlib.Path(os.environ["HPCC"], "_hpccinf.txt").read_text()
        lines = ["1100 Ns" if line.startswith("1000 ") else line for line in text.splitlines()]
        lines = [f"{ranks // 2} Qs" if line.endswith(" Qs") else line for line in lines]
        (folder / "hpccinf.txt").write_text("\n".join(lines) + "\n")
        (folder / "topol.top").write_text('#include "oplsaa.ff/forcefield.itp"\n#include "oplsaa.ff/spc.itp"\n'
                                          "[ system ]\nWater\n[ molecules ]\n")
        call(folder, "gmx_mpi", "-quiet", "solvate", "-cs", "spc216", "-box", 3, 3, 3, "-o", "conf.gro", "-p", "topol.top")
        call(folder, "gmx_mpi", "-quiet", "grompp", "-f", "md.mdp", "-c", "conf.gro", "-p", "topol.top", "-o", "water.tpr",
             "-maxwarn", 3)
    for laboratory, (profile, ranks, fields) in LABORATORIES.items():
        fields = {"cluster.nodes": ranks, "cluster.ranks_per_node": 1, **fields}
        fields = [word for key, value in fields.items() for word in ("--set", f"{key}={value}")]
        text = call(options.folder, "flowcast", "lab", "profiles", profile, *fields)
        (options.folder / f"{laboratory}.toml").write_text(text.replace(f'name = "{profile}"', f'name = "{laboratory}"'))
    for network in MEASURED.glob("*.net.toml"):
        shutil.copy(network, options.folder)
    documents = kept()
    for folder, laboratory, program in cases(options):
        document = documents.get(f"{laboratory}.{program}")
        if document:
            (folder / f"{laboratory}.{program}.json").write_text(json.dumps(document))


def record(options):
    for ranks in RANKS:
        folder = options.folder / str(ranks)
        for program in PROGRAMS:
            if options.only in program and not (folder / f"{program}.rec").exists():
                call(folder, "flowcast", "record", "-o", f"{program}.rec", "--", "mpirun.openmpi", "--oversubscribe", "-np", ranks,
                     *command(program, ranks), output=f"{program}.out")
                print(f"recorded {program} on {ranks} ranks", flush=True)


def networks(options):
    for laboratory in LABORATORIES:
        folder = options.folder
        if options.only in f"{laboratory}." and not (folder / f"{laboratory}.net.toml").exists():
            call(folder, "flowcast", "measure", "conflicts", "--lab", f"{laboratory}.toml", "--no-self-test", "--size", "1MB",
                 "--flows", 3, "--holdout", 2, "--repetitions", 3, 3, "-o", f"{laboratory}.csv", seconds=3600)
            call(folder, "flowcast", "fit", f"{laboratory}.csv", "-o", f"{laboratory}.net.toml", output=f"{laboratory}.fit")
            print(f"fitted {laboratory}", flush=True)


def measure(options):
    for folder, laboratory, program in cases(options):
        name = f"{laboratory}.{program}"
        if (folder / f"{name}.json").exists():
            continue
        for old in folder.glob(f"{name}.*"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        ranks = LABORATORIES[laboratory][1]
        done = call(folder, "flowcast", "validate", "app", "--lab", f"../{laboratory}.toml", "--no-self-test", "--repetitions", 3,
                    "--model", "independent", "--report", f"{name}.html", "--", "mpirun", "-np", ranks, *command(program, ranks),
                    check=False, output=f"{name}.out")
        print(name, "failed" if done is None else "measured", flush=True)


def kept():
    """Returns the documents that `keep` has written, by laboratory and program."""
    file = MEASURED / "runs.json"
    return json.loads(file.read_text()) if file.exists() else {}


def keep(options):
    documents = kept()
    MEASURED.mkdir(exist_ok=True)
    for network in options.folder.glob("*.net.toml"):
        (MEASURED / network.name).write_text(network.read_text().replace(platform.release(), RELEASE))
    for folder, laboratory, program in cases(options):
        document = measured(folder, f"{laboratory}.{program}")
        if document:
            fields = ("date", "flowcast", "kernel", "mpi", "disturbed_by")
            documents[f"{laboratory}.{program}"] = {
                "runs": [{"total_s": run["total_s"]} for run in document["runs"]],
                "recording_cost": document["recording_cost"],
                "processor_share": document["processor_share"],
                "provenance": {key: value for key, value in document["provenance"].items() if key in fields},
            }
    lines = (f"{json.dumps(name)}: {json.dumps(document)}" for name, document in sorted(documents.items()))
    (MEASURED / "runs.json").write_text(("{\n" + ",\n".join(lines) + "\n}\n").replace(platform.release(), RELEASE))


def measured(folder, name):
    """Returns the document of the measured runs, or None if they failed."""
    file = folder / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


def computes(document):
    """Tells whether the ranks delay each other on the processors that they share."""
    return document["processor_share"] >= 0.05


def predicted(options, folder, laboratory, program, *further):
    """Returns the document of `flowcast predict`, or None if the model refuses the program."""
    done = call(folder, "flowcast", "predict", f"{program}.rec", "--network", options.folder / f"{laboratory}.net.toml", "--json",
                *further, check=False)
    return done and json.loads(done)


def judge(options):
    table, results, costs = {}, [], []
    for folder, laboratory, program in judged(options):
        profile, ranks, _ = LABORATORIES[laboratory]
        row = table.setdefault((program, ranks), {})
        document = measured(folder, f"{laboratory}.{program}")
        found = document and predicted(options, folder, laboratory, program, "--holdout", program)
        if not found:
            row[profile] = "-" if not document else "not predicted"
            continue
        truth, makespan = statistics.median(run["total_s"] for run in document["runs"]), found["makespan_s"]
        low, high = found["interval_s"] or (math.nan, math.nan)
        error, is_inside = makespan / truth - 1, low <= truth <= high
        costs.append(document["recording_cost"])
        is_counted = options.shared or not computes(document)
        if is_counted:
            results.append((error, (high - low) / 2 / makespan, is_inside))
        mark = ", not counted" if not is_counted else "" if is_inside else ", outside"
        row[profile] = f"{truth:.3g} ({100 * error:+.1f}{mark})"
    profiles = list(dict.fromkeys(profile for profile, _, _ in LABORATORIES.values()))
    print("| program | ranks |", " | ".join(f"`{profile}`" for profile in profiles), "|")
    print("|---" * (2 + len(profiles)) + "|")
    for (program, ranks), row in sorted(table.items(), key=lambda item: (list(PROGRAMS).index(item[0][0]), item[0][1])):
        print(f"| `{program}` | {ranks} |", " | ".join(row.get(profile, "-") for profile in profiles), "|")
    errors, widths, inside = zip(*results)
    print(f"\ninside {sum(inside)} of {len(inside)} ({sum(inside) / len(inside):.0%}); median half-width "
          f"{statistics.median(widths):.1%}; mean absolute error {statistics.mean(map(abs, errors)):.1%}; "
          f"recording costs {statistics.median(costs):+.1%} (median), {max(costs):+.1%} (most)")


def accuracy(options):
    lines = [
        "# Errors of predictions of whole programs, (predicted - measured) / measured, by PROGRAM.RANKS/LABORATORY.",
        "# Written by benches/programs/programs.py; docs/evidence/programs.md describes the runs.",
    ]
    for model in MODELS:
        errors = {}
        for folder, laboratory, program in judged(options):
            document = measured(folder, f"{laboratory}.{program}")
            if not document or computes(document) and not options.shared:
                continue
            found = predicted(options, folder, laboratory, program, "--model", model, "--no-interval")
            if found:
                truth = statistics.median(run["total_s"] for run in document["runs"])
                profile, ranks, _ = LABORATORIES[laboratory]
                errors[f"{program}.{ranks}/{profile}"] = found["makespan_s"] / truth - 1
        lines += [
            "",
            "[[accuracy]]",
            f'model = "{model}/openmpi"',
            f'validated_on = "{len(PROGRAMS)} programs in four laboratories{" on shared processors" * options.shared}"',
            'judged = "programs"',
            f"cases = {len(errors)}",
            f"mean = {statistics.mean(map(abs, errors.values())):.4f}",
            f'machine = "a virtual machine of two processors, {platform.system()} {RELEASE}"',
            f'date = "{datetime.date.today()}"',
            "",
            "[accuracy.errors]",
            *(f'"{name}" = [{error:.4f}]' for name, error in errors.items()),
        ]
    options.file.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = {step.__name__: step for step in (prepare, record, networks, measure, keep, judge, accuracy)}
    parser.add_argument("step", choices=steps)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("file", type=pathlib.Path, nargs="?")
    parser.add_argument("--only", default="")
    parser.add_argument("--shared", action="store_true")
    options = parser.parse_args()
    options.folder = options.folder.absolute()
    steps[options.step](options)
