"""Sweeps: predictions of one trace for all combinations of the values of some fields."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from flowcast_hpc._engines import Shipping, in_order, max_workers
from flowcast_hpc._errors import InputError
from flowcast_hpc._inputs import MappingLike, NetworkLike, TraceLike, Value, networks_of, sendable, trace_of
from flowcast_hpc._native import Network, Study, Table, Trace
from flowcast_hpc._progress import Progress
from flowcast_hpc._worker import Grid, lines, study_of

_MOST_IN_A_PART = 256


def sweep(
    path: TraceLike,
    network: NetworkLike | Sequence[NetworkLike] = "gige-tcp",
    grid: Mapping[str, str | Sequence[Value]] | None = None,
    executor: Executor | None = None,
    *,
    model: str | None = None,
    mapping: MappingLike | None = None,
    rendezvous_from: str | int | None = None,
    collectives: str | None = None,
    set: Mapping[str, Value] | None = None,
    progress: bool | None = None,
) -> Table:
    """Replays a trace on all combinations of the values of some fields of a network.

    Parameters
    ----------
    path : path-like, Trace or Program
        The trace.
    network : str, path-like, Network or NetworkFile, or a sequence of them, optional
        The network whose fields are varied. Several networks form another axis, which varies slowest.
    grid : mapping
        The values of each field: a list of texts with units or of numbers in base units (seconds, bytes per second,
        bytes), or a text in the command's syntax, such as ``"1us..100us:20"`` or ``"10MB/s..1GB/s:8:log"``. The last
        field varies fastest.
    executor : concurrent.futures.Executor, optional
        Executor that computes the parts, such as a ``ProcessPoolExecutor``, ``dask.distributed.Client.get_executor()`` or
        ``mpi4py.futures.MPIPoolExecutor``; threads of this process if None. The result is the same in every byte.
    model, mapping, rendezvous_from, collectives, set
        As for :func:`predict`.
    progress : bool, optional
        Whether tqdm shows the progress; if None, on a terminal or in a notebook with tqdm.

    Returns
    -------
    Table
        The columns of the command's CSV: ``set``, ``network`` if there are several, each field with its unit,
        ``makespan_s``, ``communication_share``.

    Raises
    ------
    InputError
        The trace, the network, a field or a value is wrong.

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> table = flowcast.sweep("examples/ring.dim", grid={"nic.latency": ["5us", "50us"]})
    >>> table.column_names
    ['set', 'nic.latency_s', 'makespan_s', 'communication_share']
    >>> table["nic.latency_s"].to_list()
    [5e-06, 5e-05]
    >>> [row["network"] for row in flowcast.sweep("examples/ring.dim", network=["gige-tcp", "gige-lam"])]
    ['gige-tcp', 'gige-lam']
    """
    options = (model, mapping, rendezvous_from, collectives)
    parts = Sweep(trace_of(path), networks_of(network, set), (grid or {}).items(), [options])
    with Progress(parts.sets, "sets", progress) as shown:
        all_lines = []
        for part in parts.lines(executor):
            all_lines.append(part)
            shown.add(part.count("\n"))
    return parts.table("".join(all_lines))


def sweep_parts(
    path: TraceLike,
    network: NetworkLike | Sequence[NetworkLike] = "gige-tcp",
    grid: Mapping[str, str | Sequence[Value]] | None = None,
    executor: Executor | None = None,
    *,
    model: str | None = None,
    mapping: MappingLike | None = None,
    rendezvous_from: str | int | None = None,
    collectives: str | None = None,
    set: Mapping[str, Value] | None = None,
) -> Iterator[Table]:
    """Yields the rows of :func:`sweep` in order, in tables that arrive as soon as they are computed.

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> parts = flowcast.sweep_parts("examples/ring.dim", grid={"nic.latency": "1us..9us:9"})
    >>> sum(len(part) for part in parts)
    9
    """
    options = (model, mapping, rendezvous_from, collectives)
    parts = Sweep(trace_of(path), networks_of(network, set), (grid or {}).items(), [options])
    return (parts.table(part) for part in parts.lines(executor))


class Sweep:
    """A prepared sweep, which runs in parts.

    Parameters
    ----------
    trace : Trace
    networks : sequence of Network
    grid : iterable of pairs
        Fields and their values.
    options : sequence of tuple
        The arguments of `options_of`, one tuple for each mapping.
    level : float, optional
        Probability of the intervals; no intervals if None.
    json : bool, optional
        Whether rows are lines of JSON.
    """

    def __init__(
        self,
        trace: Trace,
        networks: Sequence[Network],
        grid: Iterable[tuple[str, str | Sequence[Value]]],
        options: Sequence[tuple[Any, ...]],
        level: float | None = None,
        json: bool = False,
    ) -> None:
        self._trace, self._networks, self._level, self._json = trace, networks, level, json
        self._grid = tuple((key, values if isinstance(values, str) else _plain(values)) for key, values in grid)
        self._options = tuple(tuple(sendable(option) for option in one) for one in options)
        self._study: Study = study_of(trace, networks, self._grid, self._options, level)

    @property
    def sets(self) -> int:
        """Number of combinations."""
        return self._study.sets

    def table(self, text: str) -> Table:
        """Converts rows to a table."""
        return self._study.table(text)

    def lines(self, executor: Executor | None) -> Iterator[str]:
        """Yields the rows of one part after the other."""
        if executor is None:
            # A small step, so that an interrupt does not wait for much work.
            step = _MOST_IN_A_PART * (os.cpu_count() or 1)
            for start in range(0, self.sets, step):
                yield self._study.lines(start, start + step, None, self._json)
            return
        yield from self.lines_of([(0, self.sets)], executor)

    def lines_of(self, ranges: Sequence[tuple[int, int]], executor: Executor) -> Iterator[str]:
        """Yields the rows of the sets of each range, one part after the other; ends of ranges are exclusive."""
        share = -(-sum(end - start for start, end in ranges) // (4 * max_workers(executor)))
        step = max(1, min(share, _MOST_IN_A_PART))
        with Shipping(self._trace) as shipping:
            networks = tuple(network.to_toml() for network in self._networks)
            grid = Grid(shipping.shipment, networks, self._grid, self._options, self._level, self._json)
            parts = [(start, min(start + step, end)) for begin, end in ranges for start in range(begin, end, step)]
            yield from in_order(executor, lines, [(grid, *part) for part in parts], shipping.content)


def _plain(values: Sequence[Value]) -> tuple[Value, ...]:
    """Converts numbers of other libraries to Python's."""
    if isinstance(values, bytes):
        raise InputError(f"grid: found {values!r}, expected text or values")
    return tuple(value if isinstance(value, str) else float(value) for value in values)
