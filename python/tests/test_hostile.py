"""Wrong shapes, invalid numbers and huge sizes: each raises an exception, and no result is invented."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import flowcast_hpc as flowcast
from flowcast_hpc import _native

EXAMPLES = Path("examples")
REFUSED = (flowcast.InputError, TypeError, ValueError, OverflowError, IndexError, KeyError, MemoryError)
NAN, INF, HUGE = float("nan"), float("inf"), 2**64
RAILS = ["fast=1,0.001,1,5us", "slow=1,0.01,1,5us"]


def ring() -> _native.Trace:
    return _native.Trace.open(EXAMPLES / "ring.dim")


Call = Callable[[Any], object]


def each(name: str, call: Callable[[Any, Any], object], *values: Any) -> dict[str, Call]:
    """Returns a call for each value, by the name of the value."""
    return {f"{name} {value}": partial(_called, call, value) for value in values}


def _called(call: Callable[[Any, Any], object], value: Any, trace: Any) -> object:
    return call(trace, value)


def noisy(trace: Any, **given: Any) -> object:
    return flowcast.predict(trace, noise="exponential:1us", **{"replicates": 3, **given})


MESSAGES: list[Any] = [
    [(NAN, 1)],
    [(INF, 1)],
    [(-1.0, 1)],
    [(0.0, -1)],
    [(0.0, 1.9)],
    [(0.0, HUGE)],
    [(2.0, 1), (1.0, 1)],
    [(0.0,)],
    [(0.0, 1, 2)],
    [None],
    None,
    5,
]
GOAL_PARAMS: list[Any] = [[], [1.0], [1.0] * 6, [NAN] * 5, [-1.0] * 5, [INF] * 5, "LogGP"]
MAPPINGS: list[Any] = [
    [],
    [0],
    [-1, 0, 1],
    [0, 1, HUGE],
    [0, 1, 2**32 - 1],
    [0.5, 1, 2],
    [None] * 3,
    "nowhere",
    3,
]
FIELDS: list[Any] = [
    {"nic.latency": NAN},
    {"nic.latency": "NaN"},
    {"nic.bandwidth": -1.0},
    {"nic.bandwidth": INF},
    {"nic.count": 0},
    {"nic.count": -1},
    {"machine.nodes": HUGE},
    {"": 1},
    {"no.such": 1},
    {"nic.latency": None},
    {"nic.latency": [1]},
    ["nic.latency"],
]
GRIDS: list[Any] = [
    {"nic.latency": []},
    {"nic.latency": [NAN]},
    {"nic.latency": [None]},
    {"nic.latency": ""},
    {"nic.latency": "1us..0us:3"},
    {"nic.latency": [[1]]},
    {"": ["1us"]},
    {"nic.latency": b"1us"},
]
ONE_VALUE = {"nic.latency": ["1us"]}
COLUMNS: list[Any] = [{"a": [1], "b": [1, 2]}, {"a": [None]}, {"a": [HUGE, "x"]}, [1]]
ENDS: list[Any] = [([0], [2], [1]), ([-1], [1], [1]), ([0], [1], [1, 2]), ([0.5], [1], [1])]
ONE_RUN: Any = (1.0, [1.0], [1.0], {}, {})

CALLS: dict[str, Call] = {
    **each("rails", lambda _, given: flowcast.rails(RAILS, given), *MESSAGES),
    **each("no rails", lambda _, given: flowcast.rails(given, [(0.0, 1)]), [], [1, 2], ["x"], RAILS * 9),
    **each("shares", lambda _, given: flowcast.rails(RAILS, [(0.0, 1)], "wfq", shares=given), [1, 2, 3], [-1, 1], [0, 0]),
    **each("level", lambda trace, given: noisy(trace, level=given), NAN, INF, -0.5, 0.0, 1.0, 2.0, "0.9", None),
    **each("replicates", lambda trace, given: noisy(trace, replicates=given), -1, 0, HUGE, 1.5, None),
    **each("goal_params", lambda trace, given: flowcast.predict(trace, network=None, goal_params=given), *GOAL_PARAMS),
    **each("mapping", lambda trace, given: flowcast.predict(trace, mapping=given), *MAPPINGS),
    **each("set", lambda trace, given: flowcast.predict(trace, set=given), *FIELDS),
    **each("grid", lambda trace, given: flowcast.sweep(trace, grid=given), *GRIDS),
    **each("networks", lambda trace, given: flowcast.sweep(trace, network=given, grid=ONE_VALUE), [], None, [None]),
    "study": lambda trace: _native.Study(trace, [], [("nic.latency", ["1us"])], [_native.Options("{}")]),
    "compare": lambda trace: flowcast.compare(trace, []),
    "walks": lambda trace: flowcast.sensitivity(trace, parameter="nic.latency", range="0us..1ms", most_walks=-1),
    "range": lambda trace: flowcast.sensitivity(trace, parameter="nic.latency", range="NaN..1ms"),
    **each("trace", lambda _, given: flowcast.predict(given), None, 0, "a\0b", ["a"]),
    **each("bytes", lambda _, given: _native.Trace.from_bytes("t", given), b"\xff" * 100, b"\0" * 1000, None),
    **each("columns", lambda _, given: flowcast.Table(given), *COLUMNS),
    **each("row", lambda _, given: flowcast.Table({"a": [1]})[given], HUGE, -2, 1, slice(None, None, 0), "b", None, 0.5),
    **each("ranks", lambda _, given: flowcast.Program(given), -1, 0, 10**15, 1.5, NAN, None),
    **each("root", lambda _, given: flowcast.Program(2).collective("bcast", 8, root=given), -1, 2, HUGE, None),
    **each("size", lambda _, given: flowcast.Program(2).collective("bcast", given), -1, 1.5, NAN, INF, None),
    **each("seconds", lambda _, given: flowcast.Program(2).rank(0).compute(given), -1.0, NAN, INF, None),
    **each("bytes sent", lambda _, given: flowcast.Program(2).rank(0).send(1, given), -1, 1.5, NAN, INF, None),
    **each("ends", lambda _, given: flowcast.Program.from_messages(2, *given), *ENDS),
    "rows before": lambda _: flowcast.Table({"a": [1]}).to_csv(start=-1),
    "JSON": lambda _: flowcast.Table.from_json("[" * 5000),
    "ragged CSV": lambda _: flowcast.Table.from_csv("a,b\n1\n"),
    **each("times", lambda _, given: _native.validation_table(["a", "b"], [ONE_RUN], given), [[ONE_RUN]], [[], []], []),
    "no runs": lambda _: _native.validation_table(["a"], [], [[]]),
}


@pytest.mark.parametrize("call", CALLS)
def test_invalid_values_are_refused(call: str) -> None:
    with pytest.raises(REFUSED):
        CALLS[call](ring())


SEARCH = '{"seed": 1, "level": 0.9}'


@pytest.mark.parametrize("slots", [[], [0, 0], [1], [2**32], [-1], [1.5]])
def test_slots_without_room_for_ranks_are_refused(slots: list[Any]) -> None:
    network = _native.Network.load("gige-lam")
    with pytest.raises(REFUSED):
        placing = _native.Placing("t", (EXAMPLES / "broadcast.steps").read_bytes(), network, slots, SEARCH)
        placing.search()


def test_a_search_accepts_one_time_for_each_mapping() -> None:
    network = _native.Network.load("gige-lam")
    placing = _native.Placing("t", (EXAMPLES / "broadcast.steps").read_bytes(), network, [2, 2, 2, 2], SEARCH)
    wrong: list[list[list[int]]] = [[[0]], [[]], [[9] * 8], [[2**32 - 1] * 8], [[-1] * 8]]
    for mappings in wrong:
        with pytest.raises(REFUSED):
            placing.times(mappings)
    search = placing.search()
    count = len(search.batch())
    for times in ([], [1.0] * (count + 1), [NAN] * count, [-1.0] * count, [INF] * count):
        with pytest.raises(REFUSED):
            search.learn(times)
    search.learn(placing.times(search.batch()))
    assert search.moves() == count


def test_paths_need_not_be_utf8(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff\xfe.dim"
    with open(odd, "wb") as file:
        file.write((EXAMPLES / "ring.dim").read_bytes())
    assert flowcast.predict(os.fsdecode(odd)).messages == 3
    with pytest.raises(flowcast.NoSuchFileError):
        flowcast.predict(os.fsdecode(odd) + "x")


@pytest.mark.parametrize("mark", ["\ufeff", ""])
@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_texts_are_read_in_any_encoding(tmp_path: Path, mark: str, end: str, encoding: str) -> None:
    if encoding != "utf-8" and not mark:
        pytest.skip("UTF-16 is known by its mark")
    copied = {}
    for name in ("ring.dim", "gige-samples.csv", "broadcast.steps", "columns.map"):
        copied[name] = tmp_path / name
        text = mark + (EXAMPLES / name).read_text().replace("\n", end)
        copied[name].write_bytes(text.encode(encoding))
    assert flowcast.predict(copied["ring.dim"]).messages == 3
    assert flowcast.fit(copied["gige-samples.csv"]).parameters == flowcast.fit(EXAMPLES / "gige-samples.csv").parameters
    steps = flowcast.predict_pattern(copied["broadcast.steps"])
    assert steps.makespan_s == flowcast.predict_pattern(EXAMPLES / "broadcast.steps").makespan_s
    assert flowcast.predict(EXAMPLES / "halo.dim", mapping=str(copied["columns.map"])).makespan_s > 0
