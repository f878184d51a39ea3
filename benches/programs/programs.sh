# Sourced: the command line of each program, by name. NPB and HPCC name the folders where these were built (README.md).
declare -A programs=(
    [ptrans]="env HPCC_PART=ptrans $HPCC/hpcc"
    [fft]="env HPCC_PART=fft $HPCC/hpcc"
    [lammps]="lmp -in in.melt -log none -screen none"
    [gromacs]="gmx_mpi mdrun -s water.tpr -ntomp 1 -npme 0 -dlb no -notunepme -nsteps 60 -g out.log -c out.gro -e out.edr -o out.trr -cpo out.cpt"
    [cg]="$NPB/bin/cg.S.x"
    [mg]="$NPB/bin/mg.W.x"
    [kmeans]="/usr/bin/python3 kmeans.py 60"
    [halo]="./halo 1500 200"
    [farm]="./farm 150"
    [transpose]="./transpose 60000 8"
)
laboratories="fair asymmetric bus two-racks"
names="ptrans fft lammps gromacs cg mg kmeans halo farm transpose"
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
