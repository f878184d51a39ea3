"""Programs described in Python by the computations and messages of each rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flowcast_hpc._errors import whole
from flowcast_hpc._native import Trace

# Maximum number of ranks of a trace.
_MOST_RANKS = 1 << 24

_COLLECTIVES = {
    "barrier": 0,
    "bcast": 1,
    "gather": 2,
    "scatter": 4,
    "allgather": 6,
    "alltoall": 8,
    "reduce": 10,
    "allreduce": 11,
}


class Program:
    """A message-passing program, rank by rank.

    Parameters
    ----------
    ranks : int
        Number of ranks, at least 1.
    name : str, optional
        Name of the program in results.

    Examples
    --------
    Each of eight ranks computes, and exchanges 64 KiB with both neighbours:

    >>> import flowcast_hpc as flowcast
    >>> program = flowcast.Program(8, name="ring")
    >>> for step in range(10):
    ...     for rank in range(8):
    ...         r = program.rank(rank)
    ...         left, right = (rank - 1) % 8, (rank + 1) % 8
    ...         r.compute(1e-3).irecv(left, 65536).send(right, 65536).wait(left, 65536)
    <Rank 0...
    >>> flowcast.predict(program, network="gige-tcp").messages
    80
    """

    def __init__(self, ranks: int, name: str = "program") -> None:
        if not 1 <= ranks <= _MOST_RANKS:
            raise ValueError(f"ranks: found {ranks}, expected 1 to {_MOST_RANKS}")
        self.name = name
        self._ranks = [Rank(number, ranks) for number in range(ranks)]

    def __len__(self) -> int:
        return len(self._ranks)

    def rank(self, number: int) -> Rank:
        """Returns the program of one rank, to which calls can be added.

        Parameters
        ----------
        number : int
            Rank number, from 0.
        """
        if not 0 <= number < len(self._ranks):
            raise IndexError(f"found rank {number}, expected one of {len(self._ranks)}")
        return self._ranks[number]

    def __iter__(self) -> Iterator[Rank]:
        return iter(self._ranks)

    def collective(self, operation: str, size: int = 0, root: int = 0) -> Program:
        """Adds a collective operation of all ranks.

        Parameters
        ----------
        operation : str
            barrier, bcast, gather, scatter, allgather, alltoall, reduce or allreduce.
        size : int, optional
            Bytes that a rank sends to the root, or to each other rank.
        root : int, optional
            Root of bcast, gather, scatter and reduce.
        """
        if operation not in _COLLECTIVES:
            raise ValueError(f"operation: found {operation!r}, expected one of {', '.join(_COLLECTIVES)}")
        number, root = _COLLECTIVES[operation], self.rank(root).number
        if size < 0:
            raise ValueError(f"size: found {size}, expected at least 0 bytes")
        for rank in self._ranks:
            is_root = 1 if rank.number == root else 0
            rank._add(f"10:{rank.number}:0:{number}:1:{is_root}:0:{whole(size)}:{whole(size)}")
        return self

    def to_dim(self) -> str:
        """Returns the program as a Dimemas trace."""
        count = len(self._ranks)
        ones = ",".join("1" * count)
        members = ":".join(str(rank) for rank in range(count))
        head = f'#DIMEMAS:"{self.name}":0:{count}({ones}),1\nd:1:1:{count}:{members}\n'
        return head + "".join("".join(rank._lines) for rank in self._ranks)

    def trace(self) -> Trace:
        """Returns the program as a trace for the functions of this package."""
        return Trace.from_bytes(f"{self.name}.dim", self.to_dim().encode())

    @classmethod
    def from_messages(
        cls,
        ranks: int,
        src: Iterable[int],
        dst: Iterable[int],
        size: Iterable[int],
        *,
        compute_s: float = 0.0,
        name: str = "messages",
    ) -> Program:
        """Creates a program of messages that are sent one after the other. The arrays may be NumPy arrays.

        Each receiver posts its receives in the order of the messages, before it sends.

        Parameters
        ----------
        ranks : int
            Number of ranks.
        src, dst : array_like of int
            Sender and receiver of each message.
        size : array_like of int
            Bytes of each message.
        compute_s : float, optional
            Computation of each rank before its messages, in seconds.

        Examples
        --------
        >>> import flowcast_hpc as flowcast
        >>> program = flowcast.Program.from_messages(3, [0, 1], [1, 2], [1000, 2000])
        >>> flowcast.predict(program).bytes
        3000
        """
        program = cls(ranks, name)
        triples = [(whole(a), whole(b), whole(c)) for a, b, c in zip(src, dst, size, strict=True)]
        for rank in program._ranks:
            rank.compute(compute_s)
        for tag, (_, to, length) in enumerate(triples):
            program.rank(to).irecv(triples[tag][0], length, tag)
        for tag, (origin, to, length) in enumerate(triples):
            program.rank(origin).isend(to, length, tag)
        for tag, (origin, to, length) in enumerate(triples):
            program.rank(to).wait(origin, length, tag)
        return program


class Rank:
    """Calls of one rank of a :class:`Program`. Each method adds a call and returns the rank."""

    def __init__(self, number: int, ranks: int) -> None:
        self.number = number
        self._count = ranks
        # A rank must begin with a computation.
        self._lines = [f"1:{number}:0:0.000000000\n"]

    def compute(self, seconds: float) -> Rank:
        """Computes for ``seconds``."""
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"seconds: found {seconds}, expected a finite number of at least 0")
        return self._add(f"1:{self.number}:0:{seconds:.9f}")

    def send(self, to: int, size: int, tag: int = 0, *, rendezvous: bool = False) -> Rank:
        """Sends ``size`` bytes. With ``rendezvous`` it waits until they are received."""
        return self._message(2, to, size, tag, 1 if rendezvous else 0)

    def isend(self, to: int, size: int, tag: int = 0, *, rendezvous: bool = False) -> Rank:
        """Starts a send without waiting for it."""
        return self._message(2, to, size, tag, 3 if rendezvous else 2)

    def recv(self, source: int, size: int, tag: int = 0) -> Rank:
        """Waits for a message."""
        return self._message(3, source, size, tag, 0)

    def irecv(self, source: int, size: int, tag: int = 0) -> Rank:
        """Posts a receive; :meth:`wait` waits for its message."""
        return self._message(3, source, size, tag, 1)

    def wait(self, source: int, size: int, tag: int = 0) -> Rank:
        """Waits for the message of an earlier :meth:`irecv`."""
        return self._message(3, source, size, tag, 2)

    def _message(self, kind: int, peer: int, size: int, tag: int, how: int) -> Rank:
        if not 0 <= peer < self._count:
            raise ValueError(f"found rank {peer}, expected one of {self._count}")
        if size < 0:
            raise ValueError(f"size: found {size}, expected at least 0 bytes")
        return self._add(f"{kind}:{self.number}:0:{peer}:-1:{whole(size)}:{whole(tag)}:1:{how}")

    def _add(self, line: str) -> Rank:
        self._lines.append(line + "\n")
        return self

    def __repr__(self) -> str:
        return f"<Rank {self.number}: {len(self._lines) - 1} calls>"
