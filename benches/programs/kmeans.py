"""k-means over rows that are distributed over the ranks. Centres are broadcast, sums reduced, and labels gathered as pickled lists."""
import sys
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rows, width, groups, steps = 800, 64, 128, int(sys.argv[1]) if len(sys.argv) > 1 else 60
points = np.random.default_rng(world.rank).normal(size=(rows // world.size, width))
centres = points[:groups].copy()
world.Bcast(centres, root=0)
for step in range(steps):
    labels = np.argmax(points @ centres.T, axis=1)
    sums = np.zeros((groups, width))
    np.add.at(sums, labels, points)
    total, counts = np.empty_like(sums), np.empty(groups)
    world.Allreduce(sums, total)
    world.Allreduce(np.bincount(labels, minlength=groups).astype(float), counts)
    centres = total / np.maximum(counts, 1)[:, None]
    if step % 5 == 0:
        world.gather(labels.tolist(), root=0)
