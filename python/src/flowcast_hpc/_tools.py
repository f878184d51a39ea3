"""Fits, placements, rails, and traces in the formats of other tools."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from flowcast_hpc import _native
from flowcast_hpc._command import Measurement
from flowcast_hpc._engines import in_order, shares
from flowcast_hpc._errors import FlowcastWarning, InputError, whole
from flowcast_hpc._former import former
from flowcast_hpc._inputs import NetworkLike, TraceLike, network_of, trace_of
from flowcast_hpc._native import Network, Placing, Table
from flowcast_hpc._predict import read
from flowcast_hpc._worker import Communication, mapping_times


@dataclass(frozen=True)
class Parameter:
    """A fitted parameter.

    Attributes
    ----------
    value : float
        In microseconds, or microseconds per byte.
    interval : tuple of float, or None
        Ends of the bootstrap interval.
    """

    value: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Fit:
    """LogGP parameters fitted to measured round trips.

    Attributes
    ----------
    parameters : dict
        ``g_us``, ``G_us_per_B``, ``o_us`` and ``L_us``.
    network : Network
        Network for predictions; :meth:`Network.to_toml` returns its file.
    warnings : list of str
        Parts of the samples that the parameters do not explain.
    """

    parameters: dict[str, Parameter]
    network: Network
    warnings: list[str]


def fit(
    samples: str | os.PathLike[str] | Measurement | Table,
    *,
    name: str = "measured",
    level: float = 0.95,
    seed: int = 1,
    replicates: int | None = None,
) -> Fit:
    """Fits LogGP to measured round trips.

    Parameters
    ----------
    samples : path-like, Measurement or Table
        Result of :func:`measure`, a file of ``flowcast measure p2p``, or columns ``n,d_us,size_B,prtt_us``.
    name : str, optional
        Name of the network.
    level : float, optional
        Probability of the bootstrap intervals.
    seed : int, optional
        Seed of the bootstrap.
    replicates : int, optional
        Number of bootstrap replicates.

    Returns
    -------
    Fit

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> found = flowcast.fit("examples/gige-samples.csv", name="mine")
    >>> round(found.parameters["L_us"].value, 1)
    65.4
    >>> flowcast.predict("examples/ring.dim", network=found.network).network
    'mine'
    """
    parameters, network, told = _native.fit_round_trips(_samples(samples), name, level, seed, replicates)
    return Fit({symbol: Parameter(value, ends) for symbol, value, ends in parameters}, network, told)


@dataclass(frozen=True)
class Placement:
    """Best mapping of ranks to nodes, compared with simple mappings.

    Attributes
    ----------
    objective : str
        Minimized quantity: ``time`` in seconds, or ``hops``, bytes times links.
    verdict : str
        ``gain`` if the best mapping is worth using instead of ``fill``, else ``no gain``.
    baselines : dict
        Time or hops of the mappings ``fill`` and ``round-robin``.
    value : float
        Time or hops of the best mapping.
    node_of_rank : list of int
        The best mapping: the node of each rank.
    gain : float
        Fraction of the time or hops of ``fill`` that the best mapping saves.
    interval : tuple of float, or None
        Range of the gain on networks drawn from the intervals of the network's parameters, if it has intervals.
    moves : int
        Number of mappings tried; for ``hops``, number of changes of a mapping tried.
    best : list of list of int
        All best mappings if all mappings were tried, else the best one found.
    times : Table
        If all mappings were tried: ``time_s``, and the number of ``mappings`` with that time; else without rows.
    """

    objective: str
    verdict: str
    baselines: dict[str, float]
    value: float
    node_of_rank: list[int]
    gain: float
    interval: tuple[float, float] | None
    moves: int
    best: list[list[int]]
    times: Table

    @property
    def mappings(self) -> int:
        """Number of all mappings if all were tried, else number of mappings tried."""
        return sum(int(count) for count in self.times["mappings"].to_list()) or self.moves

    @property
    def best_time_s(self) -> float:
        """Time of the best mapping, in seconds."""
        return self.value


@former(slots="ranks_per_node")
def place(
    steps: TraceLike,
    network: NetworkLike,
    nodes: int,
    ranks_per_node: int | Sequence[int],
    *,
    objective: str = "time",
    model: str | None = None,
    inside: str | None = None,
    moves: int | None = None,
    seed: int = 1,
    level: float = 0.9,
    executor: Executor | None = None,
) -> Placement:
    """Finds a fast mapping of ranks to nodes and its gain over ``fill``; the fastest if all mappings can be tried.

    Parameters
    ----------
    steps : path-like, Trace or Program
        Flows between ranks, in steps separated by lines ``step``; a trace, which is replayed with each mapping; or a matrix
        of bytes between ranks, as CSV (``from,to,bytes``) or as a graph in METIS format.
    network : str, path-like, Network or NetworkFile
    nodes : int
        Number of nodes.
    ranks_per_node : int, or sequence of int
        Number of ranks that fit on each node; a list has one number for each node.
    objective : str, optional
        ``time``, for a matrix with all messages sent at the same time; or ``hops``, bytes times links between the nodes.
    model : str, optional
        Sharing model of flows; for a trace as for :func:`predict`.
    inside : str, optional
        Time of a message of steps inside a node, such as ``"18.7ms"``.
    moves : int, optional
        Maximum number of mappings to try; if None, it depends on the size of the input.
    seed : int, optional
        Seed of the search.
    level : float, optional
        Probability of the interval of the gain.
    executor : concurrent.futures.Executor, optional
        Executor for the predictions, as for :func:`sweep`; one thread of this process if None.

    Returns
    -------
    Placement

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> flowcast.place("examples/broadcast.steps", "gige-lam", nodes=4, ranks_per_node=2, inside="18.7ms").best[0]
    [0, 0, 1, 1, 2, 2, 3, 3]
    """
    if objective not in ("time", "hops"):
        raise InputError(f"objective: found {objective!r}, expected time or hops")
    toml = network_of(network).to_toml()
    if isinstance(steps, (str, os.PathLike)) and os.path.isfile(steps) and (
        _native.is_pattern(steps) or _native.is_matrix(steps)
    ):
        name, content = os.fspath(steps), read(steps)
    else:
        trace = trace_of(steps)
        name, content = trace.file_name, trace.compiled()
    of_nodes = (ranks_per_node,) * nodes if isinstance(ranks_per_node, int) else tuple(ranks_per_node)
    if len(of_nodes) != nodes:
        raise InputError(f"ranks_per_node: found {len(of_nodes)}, expected one for each of {nodes} nodes")
    request = {"model": model, "inside": inside, "moves": moves, "seed": seed, "level": level}
    communication = Communication(name, content, toml, of_nodes, json.dumps(request))
    placing = communication.placing()
    text, tried = placing.least_hops() if objective == "hops" else _search(communication, placing, executor)
    told = json.loads(text)
    gain, best = told["gain"], told["best"]
    interval = None if gain["interval"] is None else (gain["interval"][0], gain["interval"][1])
    mappings, times = ([best["node_of_rank"]], []) if tried is None else tried
    table = Table({"time_s": [time for time, _ in times], "mappings": [count for _, count in times]})
    return Placement(
        told["objective"],
        told["verdict"],
        told["baselines"],
        best["value"],
        best["node_of_rank"],
        gain["share"],
        interval,
        told["moves"],
        mappings,
        table,
    )


def _search(
    communication: Communication, placing: Placing, executor: Executor | None
) -> tuple[str, tuple[list[list[int]], list[tuple[float, int]]] | None]:
    search = placing.search()
    while (batch := search.batch()) and (search.moves() == 0 or search.moves() < search.most_moves):
        if executor is None:
            times = placing.times(batch)
        else:
            tasks = [(communication, batch[start:end]) for start, end in shares(len(batch), executor)]
            times = [time for part in in_order(executor, mapping_times, tasks, b"") for time in part]
        search.learn(times)
    return search.found()


@dataclass(frozen=True)
class Schedule:
    """Choices of a rail scheduler.

    Attributes
    ----------
    messages : Table
        ``rail``, ``delivered_us`` and ``vft_us`` (the virtual finish time of its rail) of each message.
    makespan_us : float
        Time at which the last message is delivered, in microseconds.
    """

    messages: Table
    makespan_us: float


def rails(
    rails: Sequence[str],
    messages: str | os.PathLike[str] | Sequence[tuple[float, int]],
    scheduler: str = "earliest-delivery",
    *,
    shares: Sequence[int] | None = None,
) -> Schedule:
    """Runs a scheduler, which chooses a rail for each message.

    Parameters
    ----------
    rails : sequence of str
        ``NAME=g,G,o,Lus`` each, as for ``flowcast rails simulate``.
    messages : path-like, or sequence of (float, int)
        CSV with the columns ``arrival_us,size_B``, or pairs of these.
    scheduler : str, optional
        As for the command, such as ``wfq`` or ``latency``.
    shares : sequence of int, optional
        Shares of the rails for schedulers that take turns; proportional to bandwidth if None.

    Returns
    -------
    Schedule

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> two = ["fast=1,0.001,1,5us", "slow=1,0.01,1,5us"]
    >>> flowcast.rails(two, [(0.0, 1000), (0.0, 1000)]).messages["rail"].to_list()
    [0, 0]
    """
    given = _native.file_text(messages) if isinstance(messages, (str, os.PathLike)) else [(float(a), whole(b)) for a, b in messages]
    own_shares = None if shares is None else list(shares)
    choices, delivered, virtual, makespan = _native.simulate_rails(list(rails), given, scheduler, own_shares)
    table = Table({"rail": [int(rail) for rail in choices], "delivered_us": delivered, "vft_us": virtual})
    return Schedule(table, makespan)


def compile(path: TraceLike, output: str | os.PathLike[str]) -> None:
    """Writes a trace in Flowcast's compiled form.

    Parameters
    ----------
    path : path-like, Trace or Program
    output : path-like
        The file to write. It is written completely or not at all.

    Examples
    --------
    >>> import flowcast_hpc as flowcast, os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "ring.fct")
    >>> flowcast.compile("examples/ring.dim", file)
    >>> flowcast.predict(file).messages
    3
    """
    _write(path, output, trace_of(path).compiled())


def convert(
    path: TraceLike,
    output: str | os.PathLike[str],
    to: str,
    *,
    collectives: str | None = None,
    strict: bool = False,
) -> dict[str, int]:
    """Writes a trace in the format of another tool.

    Parameters
    ----------
    path : path-like, Trace or Program
    output : path-like
    to : {"dim", "goal", "goal-bin"}
        Dimemas' text format, LogGOPSim's text or binary format. The command writes other formats as well.
    collectives : str, optional
        How collectives become messages, as for :func:`predict`.
    strict : bool, optional
        Write only records that Dimemas defines.

    Returns
    -------
    dict
        Kinds of items that the format cannot express, with their counts.

    Examples
    --------
    >>> import flowcast_hpc as flowcast, os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "ring.goal")
    >>> flowcast.convert("examples/ring.dim", file, "goal")
    {}
    >>> flowcast.predict(file).messages
    3
    """
    content, losses = trace_of(path).converted(to, collectives, strict)
    for kind, count in losses:
        left_out = "" if ";" in kind else " left out"
        warnings.warn(f"{count} {kind}{left_out}", FlowcastWarning, stacklevel=2)
    _write(path, output, content)
    return dict(losses)


def _samples(given: str | os.PathLike[str] | Measurement | Table) -> str:
    if isinstance(given, Measurement):
        return given.csv
    return given.to_csv() if isinstance(given, Table) else _native.file_text(given)


def _write(path: object, output: str | os.PathLike[str], content: bytes) -> None:
    """Writes a file completely or not at all, and never over the input."""
    place = Path(output)
    if isinstance(path, (str, os.PathLike)) and place.exists() and os.path.samefile(path, place):
        raise InputError(f"output: found {place}, which is the input, expected another file")
    if not place.parent.is_dir():
        raise InputError(f"output: found no folder {place.parent}, expected one")
    descriptor, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, place)
    except BaseException:
        os.unlink(temporary)
        raise
