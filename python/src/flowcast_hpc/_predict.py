"""Predictions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import cast

from flowcast_hpc import _native
from flowcast_hpc._engines import Shipping, in_order, shares
from flowcast_hpc._errors import InputError, NoSuchFileError
from flowcast_hpc._former import former
from flowcast_hpc._inputs import (
    MappingLike,
    NetworkLike,
    TraceLike,
    Value,
    network_of,
    networks_of,
    options_of,
    sendable,
    probability,
    trace_of,
    with_seed,
)
from flowcast_hpc._native import PatternPrediction, Prediction, Table
from flowcast_hpc._worker import Ensemble, ends_of_runs, row, row_of

#: Number of runs of an ensemble that share a pass over the events.
_RUNS_TOGETHER = 8


@former(noise_runs="replicates")
def predict(
    path: TraceLike,
    network: NetworkLike | None = "gige-tcp",
    model: str | None = None,
    *,
    mapping: MappingLike | None = None,
    set: Mapping[str, Value] | None = None,
    rendezvous_from: str | int | None = None,
    collectives: str | None = None,
    goal_params: Sequence[float] | None = None,
    rails: Sequence[NetworkLike] = (),
    scheduler: str | None = None,
    noise: str | None = None,
    replicates: int = 200,
    seed: int | None = None,
    level: float = 0.90,
    no_interval: bool = False,
    holdout: str | None = None,
    incomplete: bool = False,
    executor: Executor | None = None,
) -> Prediction:
    """Predicts the time of a program on a network.

    Parameters
    ----------
    path : path-like, Trace or Program
        A trace of any format that the command reads, a folder with one, or a program described in Python. A pattern
        file works as well: the result is that of :func:`predict_pattern`.
    network : str, path-like, Network or NetworkFile, optional
        A built-in network (:func:`networks`), a network file, or a Dimemas configuration; None beside `goal_params`.
    model : str, optional
        Contention model, as for ``flowcast predict --model``; the network decides if None.
    mapping : str, path-like or sequence of int, optional
        Mapping of ranks to nodes: ``fill``, ``round-robin``, ``N-per-node``, a file, or the node of each rank.
    set : mapping, optional
        Values of fields of the network: texts with units, or numbers in base units.
    rendezvous_from : str or int, optional
        Messages of at least this size wait for their receiver, such as ``"64KiB"``.
    collectives : str, optional
        ``formula``, ``openmpi``, ``mpich``, ``algorithm`` or ``algorithm:FILE``.
    goal_params : sequence of five float, optional
        For GOAL schedules: LogGOPSim's L, o, g, G (nanoseconds) and S (bytes).
    rails : sequence of networks, optional
        Further networks, used together with `network`. `set` applies only to `network`; the interval is unknown.
    scheduler : str, optional
        Scheduler of messages on several rails, as for ``flowcast predict --scheduler``: ``earliest-delivery`` if None, or
        ``stock``, the default of Open MPI.
    noise : str, optional
        Random delays of computations: ``exponential:MEAN``, ``pareto:LEAST,EXPONENT``, ``once:DELAY,RANK``, ``empirical`` or
        ``empirical:RECORDING``. The result's ``noise`` is the distribution of the time under these delays.
    replicates : int, optional
        Number of runs with random delays.
    seed : int, optional
        Seed of the random numbers of `noise`, and of a network with random variation.
    level : float, optional
        Probability that the interval contains the measured time.
    no_interval : bool, optional
        Omit the interval, which requires many replays.
    holdout : str, optional
        Ignore the errors of this validation case in the interval.
    incomplete : bool, optional
        Accept a recording with missing parts.
    executor : concurrent.futures.Executor, optional
        Executor for the runs of `noise`, as for :func:`sweep`; threads of this process if None.

    Returns
    -------
    Prediction

    Raises
    ------
    InputError
        The trace, the network or an option is wrong.

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> prediction = flowcast.predict("examples/ring.dim", network="gige-tcp")
    >>> prediction.messages, prediction.model
    (3, 'fair')
    >>> flowcast.predict("examples/ring.dim", set={"latency": 0.0}).makespan_s < prediction.makespan_s
    True
    >>> both = flowcast.predict("examples/ring.dim", "myrinet-gm", rails=["gige-tcp"])
    >>> both.scheduler, both.rails["name"].to_list()
    ('earliest-delivery', ['myrinet-gm', 'gige-tcp'])
    >>> noisy = flowcast.predict("examples/ring.dim", model="independent", noise="exponential:5us", seed=7).noise
    >>> noisy.interval_s[0] <= noisy.median_s <= noisy.interval_s[1]
    True
    """
    set = with_seed(set, seed)
    if isinstance(path, (str, os.PathLike)) and os.path.isfile(path) and _native.is_pattern(path):
        pattern = predict_pattern(path, network or "gige-tcp", model, set=set, level=level, no_interval=no_interval)
        return cast(Prediction, pattern)
    trace = trace_of(path, incomplete=incomplete)
    found = None if network is None else network_of(network, set)
    options = (model, sendable(mapping), rendezvous_from, collectives, goal_params)
    further = [network_of(rail) for rail in rails]
    if scheduler is not None and not further:
        raise InputError("scheduler: found no further networks, expected at least one rail")
    drawn = None
    if noise is not None:
        if further:
            raise InputError("noise: found several rails, expected one network")
        other = noise.removeprefix("empirical:")
        recorded = None if other == noise else trace_of(other)
        seed = 1 if seed is None else seed
        ends = None
        if executor is not None:
            with Shipping(trace) as shipping:
                toml = None if found is None else found.to_toml()
                content = None if recorded is None else recorded.compiled()
                ensemble = Ensemble(shipping.shipment, toml, options, noise, content, replicates, seed)
                tasks = [(ensemble, start, end) for start, end in shares(replicates, executor, _RUNS_TOGETHER)]
                ends = [run for part in in_order(executor, ends_of_runs, tasks, shipping.content) for run in part]
        drawn = (noise, recorded, replicates, seed, ends)
    asked = options_of(*options, rails=further, scheduler=scheduler)
    return _native.predict(trace, found, asked, probability(level), holdout, list(set or ()), drawn, no_interval)


def predict_pattern(
    path: str | os.PathLike[str],
    network: NetworkLike = "gige-lam",
    model: str | None = None,
    *,
    set: Mapping[str, Value] | None = None,
    level: float = 0.90,
    no_interval: bool = False,
) -> PatternPrediction:
    """Predicts the end of each flow of a pattern of concurrent communications.

    Parameters
    ----------
    path : path-like or str
        A pattern file, or the text of a pattern if it has more than one line or an arrow.
    network, model, set, level, no_interval
        As for :func:`predict`.

    Returns
    -------
    PatternPrediction

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> flowcast.predict_pattern("0 -> 1 4MB").flows["slowdown"].to_list()
    [1.0]
    """
    if isinstance(path, str) and ("->" in path or "<-" in path or "\n" in path):
        name, content = "pattern", path.encode()
    else:
        name, content = os.fspath(path), read(path)
    found, options = network_of(network, set), options_of(model)
    return _native.predict_pattern(name, content, found, options, probability(level), no_interval)


def compare(
    paths: TraceLike | Sequence[TraceLike],
    networks: NetworkLike | Sequence[NetworkLike],
    models: Sequence[str | None] = (None,),
    mappings: Sequence[MappingLike | None] = (None,),
    executor: Executor | None = None,
    *,
    set: Mapping[str, Value] | None = None,
    rendezvous_from: str | int | None = None,
    collectives: str | None = None,
    level: float = 0.90,
    no_interval: bool = False,
) -> Table:
    """Predicts traces for all combinations of several networks, models and mappings.

    Parameters
    ----------
    paths : path-like, Trace or Program, or a sequence of them
    networks : str, path-like, Network or NetworkFile, or a sequence of them
    models, mappings : sequence, optional
        The last one varies fastest.
    executor : concurrent.futures.Executor, optional
        Executor for the predictions, as for :func:`sweep`.
    set, rendezvous_from, collectives, level, no_interval
        As for :func:`predict`.

    Returns
    -------
    Table
        ``trace``, ``network``, ``model``, ``mapping``, ``makespan_s``, the ends ``low_s`` and ``high_s`` of the interval
        (NaN if unknown), and the ``ratio`` to the first row.

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> table = flowcast.compare("examples/ring.dim", ["gige-tcp", "infiniband-2006"])
    >>> table["network"].to_list()
    ['gige-tcp', 'infiniband-2006']
    >>> table["ratio"][0]
    1.0
    """
    many = [paths] if isinstance(paths, (str, os.PathLike)) or not isinstance(paths, Sequence) else list(paths)
    found = networks_of(networks, set)
    choices = [(network, model, mapping) for network in found for model in models for mapping in mappings]
    rows: list[tuple[str, float, float, float]] = []
    names: list[str] = []
    for path in many:
        trace = trace_of(path)
        names += [trace.file_name] * len(choices)
        settings = [(model, sendable(mapping), rendezvous_from, collectives) for _, model, mapping in choices]
        if executor is None:
            for (network, _, _), options in zip(choices, settings, strict=True):
                chosen, asked = options_of(*options), list(set or ())
                made = _native.predict(trace, network, chosen, probability(level), None, asked, None, no_interval)
                rows.append(row_of(made))
            continue
        with Shipping(trace) as shipping:
            tasks = [
                (shipping.shipment, network.to_toml(), options, probability(level), no_interval)
                for (network, _, _), options in zip(choices, settings, strict=True)
            ]
            rows += in_order(executor, row, tasks, shipping.content)
    times = [row[1] for row in rows]
    return Table(
        {
            "trace": names,
            "network": [network.name for network, _, _ in choices] * len(many),
            "model": [row[0] for row in rows],
            "mapping": [_name_of(mapping) for _, _, mapping in choices] * len(many),
            "makespan_s": times,
            "low_s": [row[2] for row in rows],
            "high_s": [row[3] for row in rows],
            "ratio": [time / times[0] if times[0] > 0 else 1.0 for time in times],
        }
    )


def read(path: str | os.PathLike[str]) -> bytes:
    """Reads the bytes of a file.

    Raises
    ------
    InputError
        It cannot be read; a `NoSuchFileError` if it does not exist.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        kind = NoSuchFileError if isinstance(error, FileNotFoundError) else InputError
        raise kind(f"cannot read {os.fspath(path)}: {error.strerror}") from error


def _name_of(mapping: MappingLike | None) -> str:
    if mapping is None or isinstance(mapping, str):
        return mapping or "-"
    return os.fspath(mapping) if isinstance(mapping, os.PathLike) else " ".join(str(node) for node in mapping)
