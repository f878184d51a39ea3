"""Types that functions accept for a trace, a network and options."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from flowcast_hpc._errors import FlowcastWarning, InputError, whole
from flowcast_hpc._native import Network, Options, Trace

if TYPE_CHECKING:
    from flowcast_hpc.network_file import NetworkFile
    from flowcast_hpc.programs import Program

TraceLike: TypeAlias = "str | os.PathLike[str] | Trace | Program"
NetworkLike: TypeAlias = "str | os.PathLike[str] | Network | NetworkFile"
Value: TypeAlias = "str | float | int"
MappingLike: TypeAlias = "str | os.PathLike[str] | Sequence[int]"


def trace_of(given: TraceLike, *, incomplete: bool = False) -> Trace:
    """Returns the trace of a path or a program, and warns of items that are not modelled."""
    from flowcast_hpc.programs import Program

    if isinstance(given, Trace):
        return given
    if isinstance(given, Program):
        return given.trace()
    trace = Trace.open(given, incomplete)
    for kind, count in trace.ignored:
        _warn(f"{count} {kind}" if ";" in kind else f"{count} {kind} left out of the replay")
    return trace


def network_of(given: NetworkLike, values: Mapping[str, Value] | None = None) -> Network:
    """Returns the network of a name, a path or a description, with some fields replaced."""
    from flowcast_hpc.network_file import NetworkFile

    if isinstance(given, Network):
        network = given
    elif isinstance(given, NetworkFile):
        network = given.network()
    else:
        network = Network.load(os.fspath(given))
        for warning in network.warnings:
            _warn(warning)
    return network.replaced(list(fields_of(values).items())) if values else network


def networks_of(given: NetworkLike | Sequence[NetworkLike], values: Mapping[str, Value] | None = None) -> list[Network]:
    """Returns one network or several, with some fields replaced."""
    many = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    if not many:
        raise InputError("network: found no network, expected one or several")
    return [network_of(network, values) for network in many]


def fields_of(values: Mapping[str, Value]) -> Mapping[str, Value]:
    """Returns the values of fields. Refuses the command's syntax ``KEY=VALUE``."""
    if isinstance(values, Mapping):
        return values
    key, _, value = str(values).partition("=")
    raise InputError(f"set: found {values!r}, expected a mapping, such as {{{key!r}: {value or '5us'!r}}}")


def replay_of(
    model: str | None = None,
    mapping: MappingLike | None = None,
    rendezvous_from: str | int | None = None,
    collectives: str | None = None,
    goal_params: Sequence[float] | None = None,
) -> dict[str, Any]:
    """Returns the request for a replay. A size without a unit is in bytes."""
    return {
        "model": model,
        "mapping": list(nodes) if isinstance(nodes := sendable(mapping), tuple) else nodes,
        "rendezvous_from": f"{rendezvous_from}B" if isinstance(rendezvous_from, int) else rendezvous_from,
        "collectives": collectives,
        "goal_params": None if goal_params is None else [float(number) for number in goal_params],
    }


def options_of(
    model: str | None = None,
    mapping: MappingLike | None = None,
    rendezvous_from: str | int | None = None,
    collectives: str | None = None,
    goal_params: Sequence[float] | None = None,
    mapping_name: str | None = None,
    rails: Sequence[Network] = (),
    scheduler: str | None = None,
) -> Options:
    """Returns the options of a replay. Results show the mapping under `mapping_name`."""
    request = replay_of(model, mapping, rendezvous_from, collectives, goal_params)
    return Options(json.dumps(request), mapping_name, list(rails), scheduler)


def sendable(option: Any) -> Any:
    """Returns an option as plain values, which can be compared and sent."""
    if option is None or isinstance(option, (str, int)):
        return option
    return os.fspath(option) if isinstance(option, os.PathLike) else tuple(whole(node) for node in option)


def with_seed(values: Mapping[str, Value] | None, seed: int | None) -> Mapping[str, Value] | None:
    """Returns the values with the seed of the network's random variation added."""
    return values if seed is None else {**fields_of(values or {}), "machine.random.seed": str(seed)}


def probability(level: float) -> float:
    """Returns the level. Refuses numbers that are not probabilities, such as percentages."""
    if not 0 < level < 1:
        spelling = f"{level / 100:g} for {level:g} %" if 1 <= level < 100 else "above 0 and below 1, such as 0.90"
        raise InputError(f"--level: found {level}, expected a probability: {spelling}")
    return level


def _warn(text: str) -> None:
    warnings.warn(text, FlowcastWarning, stacklevel=4)
