"""Plots of results with matplotlib, if it is installed."""

from __future__ import annotations

from typing import Any

from flowcast_hpc._errors import MissingError
from flowcast_hpc._native import Answer, Noise

#: By kind: the table, the column of the names, the column of the bar lengths, and the label of the axis.
_BARS = {
    "critical-path": ("shares", "limit", "time_s", "time on the critical path (s)"),
    "gradient": ("changes", "field", "makespan_s", "predicted time with the change (s)"),
    "slack": ("ranks", "rank", "least_slack_s", "least slack (s)"),
    "scenarios": ("scenarios", "name", "makespan_s", "predicted time (s)"),
}


def plot_answer(answer: Answer, ax: Any = None) -> Any:
    """Plots the curve of a sensitivity, or a bar for each row of the first table of other answers.

    Parameters
    ----------
    answer : Answer
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; new axes if None.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = _axes(ax)
    ax.set_title(answer.title)
    if answer.kind == "sensitivity":
        return _curve(answer, ax)
    table, name, length, label = _BARS[answer.kind]
    names = [str(one) for one in answer[table][name].to_list()] if len(answer[table]) else []
    ax.barh(names, answer[table][length].to_list() if names else [])
    ax.invert_yaxis()
    ax.set_xlabel(label)
    return ax


def plot_noise(noise: Noise, ax: Any = None) -> Any:
    """Plots a histogram of the runs.

    Parameters
    ----------
    noise : Noise
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; new axes if None.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = _axes(ax)
    ax.hist(noise.runs["makespan_s"].to_list(), bins=30)
    ax.set_title(f"with noise {noise.distribution}")
    ax.set_xlabel("predicted time (s)")
    ax.set_ylabel("runs")
    return ax


def _curve(answer: Answer, ax: Any) -> Any:
    pieces = answer["pieces"].to_dict()
    starts, ends, times, slopes = (pieces[name] for name in ("from", "to", "makespan_s_at_from", "slope"))
    x = [at for piece in zip(starts, ends, strict=True) for at in piece]
    y = []
    for start, end, time, slope in zip(starts, ends, times, slopes, strict=True):
        y += [time, time + slope * (end - start)]
    ax.plot(x, y)
    document = answer.document
    if document["base"] is not None:
        ax.plot([document["base"]], [document["base_makespan_s"]], "o")
    unit = f" ({document['unit']})" if document["unit"] else ""
    ax.set_xlabel(f"{document['parameter']}{unit}")
    ax.set_ylabel("predicted time (s)")
    return ax


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingError("found no matplotlib, expected it for plot(): pip install matplotlib") from None
    return pyplot.subplots()[1]
