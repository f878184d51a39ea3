"""Analyses of a predicted time: sensitivity, critical path, gradient, slack, and scenarios."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from flowcast_hpc import _native
from flowcast_hpc._former import former
from flowcast_hpc._inputs import (
    MappingLike,
    NetworkLike,
    TraceLike,
    Value,
    network_of,
    probability,
    replay_of,
    trace_of,
    with_seed,
)
from flowcast_hpc._native import Answer, Network, Trace

#: Fields of the network by the quantity of a condition, such as ``latency[pair=0-3]``.
_FIELDS = ("latency", "bandwidth", "overhead", "gap", "gap_per_byte")


def sensitivity(
    path: TraceLike,
    network: NetworkLike = "gige-tcp",
    model: str | None = None,
    *,
    parameter: str,
    range: str | tuple[Value, Value],
    most_walks: int = 10_000,
    mapping: MappingLike | None = None,
    set: Mapping[str, Value] | None = None,
    rendezvous_from: str | int | None = None,
    collectives: str | None = None,
) -> Answer:
    """Predicts the time as a function of a network field, or of some of the costs, over a range of values.

    Parameters
    ----------
    path : path-like, Trace or Program
        The trace.
    network : str, path-like, Network or NetworkFile, optional
    model : str, optional
        As for :func:`predict`; with ``"independent"`` the curve is exact.
    parameter : str
        The field to vary, as in `set`, or ``latency``, ``bandwidth``, ``overhead``, ``gap``. Conditions in brackets restrict
        it to some costs, such as ``"compute[rank=2]"`` or ``"latency[pair=0-3,size>=1KiB]"``.
    range : str or pair
        First and last value: a text such as ``"0us..1ms"``, or two texts with units or two numbers in
        base units (seconds, bytes per second, seconds per byte, bytes, factors).
    most_walks : int, optional
        Maximum number of walks over the program in the search for pieces.
    mapping, set, rendezvous_from, collectives
        As for :func:`predict`.

    Returns
    -------
    Answer
        The table ``pieces`` of the curve has ``from`` and ``to`` in base units, ``makespan_s_at_from`` and ``slope``
        (seconds per unit of the parameter, or of its inverse for a rate or speed). ``document`` has ``tolerance`` and
        ``improvement``, the values at which the program takes 1 to 10 % more or less time.

    Raises
    ------
    InputError
        The trace, the network, the parameter or its range is wrong.

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> answer = flowcast.sensitivity(
    ...     "examples/ring.dim", model="independent", parameter="latency", range=(0.0, 1e-3)
    ... )
    >>> answer.document["exact"]
    True
    >>> answer["pieces"]["from"][0]
    0.0
    """
    found = network_of(network, set)
    request = {
        "parameter": parameter,
        "range": _range(found, parameter, range),
        "most_walks": most_walks,
        "replay": replay_of(model, mapping, rendezvous_from, collectives),
    }
    return _ask("sensitivity", request, trace_of(path), found)


def explain_path(
    path: TraceLike,
    network: NetworkLike = "gige-tcp",
    model: str | None = None,
    *,
    mapping: MappingLike | None = None,
    set: Mapping[str, Value] | None = None,
    rendezvous_from: str | int | None = None,
    collectives: str | None = None,
) -> Answer:
    """Divides the predicted time by cause along the critical path, and ranks the changes that would shorten it most.

    Parameters
    ----------
    path, network, model, mapping, set, rendezvous_from, collectives
        As for :func:`predict`.

    Returns
    -------
    Answer
        With the tables ``shares``, ``ranks`` and ``changes``.

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> answer = flowcast.explain_path("examples/lu.S.4.dim.gz", model="independent")
    >>> answer["shares"]["limit"][0]
    'latency'
    >>> answer["changes"]["field"][0]
    'nic.latency'
    """
    return _explain("path", path, network, set, (model, mapping, rendezvous_from, collectives))


def explain_gradient(
    path: TraceLike,
    network: NetworkLike = "gige-tcp",
    model: str | None = None,
    *,
    mapping: MappingLike | None = None,
    set: Mapping[str, Value] | None = None,
    rendezvous_from: str | int | None = None,
    collectives: str | None = None,
) -> Answer:
    """Computes the slope of the predicted time for every cost, and ranks the changes that would shorten it most.

    Parameters
    ----------
    path, network, model, mapping, set, rendezvous_from, collectives
        As for :func:`predict`.

    Returns
    -------
    Answer
        With the tables ``changes`` (up to ten promising changes, each replayed) and ``slopes`` (in seconds per ``unit``: a
        second, a second per byte, a factor larger by 1).

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> slopes = flowcast.explain_gradient("examples/lu.S.4.dim.gz", model="independent")["slopes"]
    >>> slopes.column_names
    ['cost', 'of', 'unit', 'slope', 'now_s']
    """
    return _explain("gradient", path, network, set, (model, mapping, rendezvous_from, collectives))


def explain_slack(
    path: TraceLike,
    network: NetworkLike = "gige-tcp",
    model: str | None = None,
    *,
    mapping: MappingLike | None = None,
    set: Mapping[str, Value] | None = None,
    rendezvous_from: str | int | None = None,
    collectives: str | None = None,
) -> Answer:
    """Computes how late each rank, message and computation may be without delaying the end.

    Parameters
    ----------
    path, network, model, mapping, set, rendezvous_from, collectives
        As for :func:`predict`.

    Returns
    -------
    Answer
        With the tables ``ranks`` (``slower`` is the fraction by which a rank may compute slower, NaN if unlimited),
        ``links`` and ``histogram``.

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> flowcast.explain_slack("examples/lu.S.4.dim.gz", model="independent")["ranks"]["rank"].to_list()
    [0, 1, 2, 3]
    """
    return _explain("slack", path, network, set, (model, mapping, rendezvous_from, collectives))


@former(noise_runs="replicates")
def predict_scenarios(
    path: TraceLike,
    scenarios: str | os.PathLike[str] | Sequence[Mapping[str, object]],
    network: NetworkLike | None = None,
    model: str | None = None,
    *,
    mapping: MappingLike | None = None,
    set: Mapping[str, Value] | None = None,
    rendezvous_from: str | int | None = None,
    collectives: str | None = None,
    level: float = 0.90,
    replicates: int = 200,
    seed: int | None = None,
    incomplete: bool = False,
) -> Answer:
    """Predicts named scenarios of a program: networks, slow nodes and links, noise, mappings, algorithms of collectives.

    Parameters
    ----------
    path : path-like, Trace or Program
        The trace.
    scenarios : path-like, or sequence of mappings
        A TOML file as for ``flowcast predict --scenarios``, or the fields of each scenario.
    network : str, path-like, Network or NetworkFile, optional
        Network of scenarios without one.
    model, mapping, set, rendezvous_from, collectives, level, incomplete
        As for :func:`predict`; a scenario can override them.
    replicates : int, optional
        Number of runs of a scenario with noise.
    seed : int, optional
        Seed of the random numbers.

    Returns
    -------
    Answer
        The table ``scenarios`` has ``name``, ``network``, ``model``, ``makespan_s``, ``ratio`` to the first, and
        ``communication_share``; with noise ``noise.median_s`` and the interval's ends.

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> what_if = [{"name": "as it is"}, {"name": "half the latency", "set": {"nic.latency": "32.7us"}}]
    >>> table = flowcast.predict_scenarios("examples/ring.dim", what_if, "gige-tcp")["scenarios"]
    >>> table["name"].to_list(), table["ratio"][1] < 1
    (['as it is', 'half the latency'], True)
    """
    values = with_seed(set, seed)
    if isinstance(scenarios, (str, os.PathLike)):
        name, text = os.fspath(scenarios), _native.file_text(scenarios)
    else:
        name, text = "scenarios", _native.toml_of("scenarios", json.dumps({"scenario": [dict(one) for one in scenarios]}))
    found = None if network is None else network_of(network, values)
    request = {
        "name": name,
        "text": text,
        "overrides": [(key, _text(found, key, value)) for key, value in (values or {}).items()],
        "interval": {"level": probability(level)},
        "level": level,
        "replicates": replicates,
        "seed": 1 if seed is None else seed,
        "replay": replay_of(model, mapping, rendezvous_from, collectives),
    }
    return _ask("scenarios", request, trace_of(path, incomplete=incomplete), found)


def _explain(
    question: str,
    path: TraceLike,
    network: NetworkLike,
    values: Mapping[str, Value] | None,
    options: tuple[str | None, MappingLike | None, str | int | None, str | None],
) -> Answer:
    return _ask(question, replay_of(*options), trace_of(path), network_of(network, values))


def _ask(question: str, request: Mapping[str, object], trace: Trace, network: Network | None) -> Answer:
    return _native.ask(json.dumps({question: request}), trace, network)


def _text(network: Network | None, key: str, value: Value) -> str:
    """Returns a value as text. With a network, a number gets the base unit of its field."""
    if isinstance(value, str) or network is None:
        return str(value)
    return network.texts_of(key, [float(value)])[0]


def _range(network: Network, parameter: str, given: str | tuple[Value, Value]) -> str:
    if isinstance(given, str):
        return given
    low, high = given
    quantity = parameter.split("[")[0].strip().removeprefix("nic.")
    field = quantity if quantity in _FIELDS else parameter
    return "..".join(network.texts_of(field, [value if isinstance(value, str) else float(value) for value in (low, high)]))
