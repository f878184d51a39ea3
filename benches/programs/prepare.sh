#!/bin/bash
# prepare.sh FOLDER: compiles the programs and makes the inputs and the laboratories' files there.
#
# Needs Open MPI 4.1 with its compilers, LAMMPS, GROMACS, mpi4py and NumPy, and in $HPCC and $NPB HPC Challenge 1.5.0 and
# NPB 3.4-MPI, built. HPC Challenge runs all of its parts: its src/io.c, function HPCC_InputFileInit, has to set that part alone
# which the environment variable HPCC_PART names (RunPTRANS, RunMPIFFT).
set -euo pipefail
here=$(dirname "$(realpath "$0")")
mkdir -p "$1" && cd "$1"
for program in halo farm transpose; do mpicc.openmpi -O2 "$here/$program.c" -o $program; done
cp "$here/kmeans.py" "$here/in.melt" .
sed 's/^1000 .*/1600 Ns/' "$HPCC/_hpccinf.txt" > hpccinf.txt
printf '#include "oplsaa.ff/forcefield.itp"\n#include "oplsaa.ff/spc.itp"\n[ system ]\nWater\n[ molecules ]\n' > topol.top
gmx -quiet solvate -cs spc216 -box 3 3 3 -o conf.gro -p topol.top
gmx -quiet grompp -f "$here/md.mdp" -c conf.gro -p topol.top -o water.tpr -maxwarn 3
. "$here/programs.sh"
for laboratory in $laboratories; do
    flowcast lab profiles $laboratory --set cluster.nodes=4 --set cluster.ranks_per_node=1 |
        sed 's/^bandwidth = "150Mbit\/s"/bandwidth = "75Mbit\/s"/' > $laboratory.toml
done
