"""Validation: measured times of recorded runs, compared with predictions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Literal

from flowcast_hpc import _native
from flowcast_hpc._engines import in_order
from flowcast_hpc._errors import InputError
from flowcast_hpc._inputs import MappingLike, NetworkLike, Value, network_of, sendable
from flowcast_hpc._native import Table
from flowcast_hpc._worker import predicted_times


def validate_app(
    recordings: Sequence[str | os.PathLike[str]],
    network: NetworkLike,
    models: Sequence[str] = ("limits", "fair", "closed-loop"),
    collectives: Sequence[str] = ("formula", "openmpi"),
    executor: Executor | None = None,
    *,
    mapping: MappingLike | None = None,
    rendezvous_from: str | int | None = None,
    compute: Literal["cpu", "wall"] = "cpu",
    set: Mapping[str, Value] | None = None,
) -> Table:
    """Compares measured times of recorded runs of a program with the predictions of each model.

    The network should be fitted to other runs. Otherwise the comparison shows the fit and not the prediction.

    Parameters
    ----------
    recordings : sequence of path-like
        The folders of one or more recorded runs of the same program. Workers open them by their path.
    network : str, path-like, Network or NetworkFile
        Name or file of the network.
    models : sequence of str, optional
        Contention models.
    collectives : sequence of str, optional
        Rules for collectives, each combined with each model.
    executor : concurrent.futures.Executor, optional
        Executor for the predictions, as for :func:`sweep`; threads of this process if None.
    mapping, rendezvous_from, set
        As for :func:`predict`; ranks run on the hosts of the recording if `mapping` is None.
    compute : {"cpu", "wall"}, optional
        Duration of computations: thread CPU time or wall time.

    Returns
    -------
    Table
        A row for each quantity and prediction: ``quantity``, ``name``, ``measured_s`` (the median of the runs),
        ``low_s`` and ``high_s`` (its 95 % interval), ``prediction`` (``MODEL/COLLECTIVES``), ``predicted_s``, ``error``
        (predicted / measured - 1); NaN if unknown.

    Raises
    ------
    InputError
        A recording, the network or an option is wrong, or the recordings belong to different programs.

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> table = flowcast.validate_app(["examples/heat.rec"], "gige-tcp", models=["fair"], collectives=["formula"])
    >>> table["quantity"][0], table["prediction"][0]
    ('total', 'fair/formula')
    """
    if not recordings:
        raise InputError("recordings: found none, expected at least one")
    if compute not in ("cpu", "wall"):
        raise InputError(f'compute: found {compute}, expected "cpu" or "wall"')
    paths = [os.path.abspath(path) for path in recordings]
    toml = network_of(network, set).to_toml()
    predictions = [(model, how) for model in models for how in collectives]
    tasks = [
        (path, toml, (model, sendable(mapping), rendezvous_from, how), compute == "wall")
        for model, how in predictions
        for path in paths
    ]
    measured = [_native.recorded_times(path) for path in paths]
    if executor is None:
        with ThreadPoolExecutor() as pool:
            times = list(in_order(pool, predicted_times, tasks, b""))
    else:
        times = list(in_order(executor, predicted_times, tasks, b""))
    predicted = [times[start : start + len(paths)] for start in range(0, len(times), len(paths))]
    return _native.validation_table([f"{model}/{how}" for model, how in predictions], measured, predicted)
