"""The same messages under each MPI library, from Python. Rank 0 says that each rank got the right values."""

import sys
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
after, before = (rank + 1) % size, (rank - 1) % size
wrong = 0
for step in range(10):
    got = bytearray(1000)
    request = world.Irecv(got, source=MPI.ANY_SOURCE, tag=step)
    world.Send(bytes([rank]) * 1000, dest=after, tag=step)
    request.Wait()
    wrong += got[0] != before
if rank:
    world.Send(bytearray(17), dest=0)
else:
    for other in range(1, size):
        world.Recv(bytearray(17), source=other)
total = bytearray(8)
world.Allreduce(bytes([1] * 8), total, op=MPI.BOR)
world.Bcast(total, root=0)
world.Barrier()
if rank == 0:
    print(size, "ranks,", wrong, "wrong, MPI_Send_c" if wrong else "wrong")
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
