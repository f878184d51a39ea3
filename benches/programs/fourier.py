"""Forward and backward transforms of a distributed field by mpi4py-fft, in slabs."""
import sys
import mpi4py

mpi4py.rc.initialize = False
import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

MPI.Init()
size, steps = int(sys.argv[1]), int(sys.argv[2])
transform = PFFT(MPI.COMM_WORLD, [size, size, size], axes=(0, 1, 2), dtype=float, slab=True)
field = newDistArray(transform, False)
field[:] = np.random.default_rng(MPI.COMM_WORLD.rank).random(field.shape)
for _ in range(steps):
    spectrum = transform.forward(field)
    field = transform.backward(spectrum, field)
MPI.Finalize()
