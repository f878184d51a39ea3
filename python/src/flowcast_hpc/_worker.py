"""Functions that workers run. Workers keep their last studies, so that each of them loads a trace once."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from flowcast_hpc import _native
from flowcast_hpc._inputs import Value, options_of
from flowcast_hpc._native import Network, Placing, Prediction, Study, Trace

if TYPE_CHECKING:
    from flowcast_hpc._native import RunTimes

#: The values of each field.
GridValues: TypeAlias = "tuple[tuple[str, str | tuple[Value, ...]], ...]"

_KEPT = 4
_kept: OrderedDict[Hashable, Any] = OrderedDict()
_lock = threading.Lock()


class TraceMissing(Exception):
    """The worker cannot read the file of the trace, or reads another one, and needs the bytes."""


@dataclass(frozen=True)
class Shipment:
    """Reference to a compiled trace, for workers.

    Attributes
    ----------
    path : str
        File that workers on the same file system can read.
    digest : str
        SHA-256 of its content.
    name : str
        The trace's file name.
    """

    path: str
    digest: str
    name: str

    def trace(self, content: bytes | None) -> Trace:
        """Reads the trace from its bytes or its file, and keeps it for the next task.

        Parameters
        ----------
        content : bytes or None
            The compiled trace, if the worker cannot read the file.
        """
        known = _find(self.digest)
        if known is None:
            if content is None:
                try:
                    content = Path(self.path).read_bytes()
                except OSError:
                    raise TraceMissing(self.path) from None
            if hashlib.sha256(content).hexdigest() != self.digest:
                raise TraceMissing(self.path)
            known = _keep(self.digest, Trace.from_bytes(self.name, content))
        assert isinstance(known, Trace)
        return known


@dataclass(frozen=True)
class Grid:
    """A study in the form that is sent to workers."""

    shipment: Shipment
    networks: tuple[str, ...]
    grid: GridValues
    options: tuple[tuple[Any, ...], ...]
    level: float | None = None
    json: bool = False

    def study(self, content: bytes | None = None) -> Study:
        """Builds the study and keeps it for the next task."""
        known = _find(self)
        if known is None:
            trace = self.shipment.trace(content)
            networks = [Network.from_toml(text) for text in self.networks]
            known = _keep(self, study_of(trace, networks, self.grid, self.options, self.level))
        assert isinstance(known, Study)
        return known


def study_of(
    trace: Trace,
    networks: Sequence[Network],
    grid: GridValues,
    options: Sequence[tuple[Any, ...]],
    level: float | None = None,
) -> Study:
    """Builds a study from values that can be compared and sent, with options for each mapping."""
    lists = [(key, values if isinstance(values, str) else list(values)) for key, values in grid]
    return Study(trace, networks, lists, [options_of(*one) for one in options], level)


def lines(content: bytes | None, grid: Grid, start: int, end: int) -> str:
    """Computes the rows of the sets from ``start`` to ``end``, exclusive, on one thread."""
    return grid.study(content).lines(start, end, 1, grid.json)


@dataclass(frozen=True)
class Ensemble:
    """Runs with random delays in the form that is sent to workers."""

    shipment: Shipment
    network: str | None
    options: tuple[Any, ...]
    distribution: str
    #: The compiled recording of ``empirical:``.
    recorded: bytes | None
    runs: int
    seed: int


def ends_of_runs(content: bytes | None, ensemble: Ensemble, start: int, end: int) -> list[list[float]]:
    """Computes the end of each rank in the runs from ``start`` to ``end``, exclusive, in nanoseconds."""
    trace = ensemble.shipment.trace(content)
    network = None if ensemble.network is None else Network.from_toml(ensemble.network)
    recorded = None if ensemble.recorded is None else Trace.from_bytes("recording", ensemble.recorded)
    noise = (ensemble.distribution, recorded, ensemble.runs, ensemble.seed, None)
    return _native.noise_ends(trace, network, options_of(*ensemble.options), noise, start, end)


@dataclass(frozen=True)
class Communication:
    """A communication to be placed, in the form that is sent to workers."""

    name: str
    content: bytes
    network: str
    slots: tuple[int, ...]
    request: str

    def placing(self) -> Placing:
        """Builds the predictor of its mappings and keeps it for the next task."""
        known = _find(self)
        if known is None:
            network = Network.from_toml(self.network)
            known = _keep(
                self,
                Placing(
                    self.name,
                    self.content,
                    network,
                    self.slots,
                    self.request,
                ),
            )
        assert isinstance(known, Placing)
        return known


def mapping_times(_: bytes | None, communication: Communication, mappings: list[list[int]]) -> list[float]:
    """Predicts the times of mappings, in nanoseconds."""
    return communication.placing().times(mappings)


def predicted_times(
    _: bytes | None, recording: str, network: str, options: tuple[Any, ...], wall: bool
) -> RunTimes:
    """Predicts the times of a recorded run on a network."""
    return _native.predicted_times(recording, Network.from_toml(network), options_of(*options), wall)


def row(
    content: bytes | None, shipment: Shipment, network: str, options: tuple[Any, ...], level: float, no_interval: bool
) -> tuple[str, float, float, float]:
    """Predicts model, makespan and the ends of its interval (NaN if unknown)."""
    trace, on, chosen = shipment.trace(content), Network.from_toml(network), options_of(*options)
    return row_of(_native.predict(trace, on, chosen, level, None, [], None, no_interval))


def row_of(prediction: Prediction) -> tuple[str, float, float, float]:
    """Returns the columns of a comparison for a prediction."""
    low, high = prediction.interval_s or (float("nan"), float("nan"))
    return prediction.model, prediction.makespan_s, low, high


def _find(key: Hashable) -> Any:
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
        return _kept.get(key)


def _keep(key: Hashable, value: Any) -> Any:
    with _lock:
        value = _kept.setdefault(key, value)
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
    return value
