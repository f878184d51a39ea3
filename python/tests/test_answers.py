"""Answers about predictions, and their equality with the command's."""

import math
import subprocess
from pathlib import Path
from typing import Any

import pytest

import flowcast_hpc as flowcast

LU = "examples/lu.S.4.dim.gz"
ALONE = ["--network", "gige-tcp", "--model", "independent"]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["explain", "path", LU, *ALONE], lambda: flowcast.explain_path(LU, model="independent")),
        (["explain", "gradient", LU, *ALONE], lambda: flowcast.explain_gradient(LU, model="independent")),
        (["explain", "slack", LU, *ALONE], lambda: flowcast.explain_slack(LU, model="independent")),
        (
            ["explain", "gradient", "examples/is.S.4.dim.gz", *ALONE, "--collectives", "openmpi"],
            lambda: flowcast.explain_gradient("examples/is.S.4.dim.gz", model="independent", collectives="openmpi"),
        ),
        (
            ["sensitivity", LU, *ALONE, "--parameter", "latency", "--range", "0us..1ms"],
            lambda: flowcast.sensitivity(LU, model="independent", parameter="latency", range=(0.0, 1e-3)),
        ),
        (
            ["sensitivity", LU, *ALONE, "--parameter", "nic.bandwidth", "--range", "10MB/s..10GB/s"],
            lambda: flowcast.sensitivity(LU, model="independent", parameter="nic.bandwidth", range=(1e7, 1e10)),
        ),
        (
            ["sensitivity", LU, *ALONE, "--parameter", "compute[rank=2]", "--range", "0.5..2"],
            lambda: flowcast.sensitivity(LU, model="independent", parameter="compute[rank=2]", range=(0.5, 2)),
        ),
        (
            ["sensitivity", LU, *ALONE, "--parameter", "latency[size>=1KiB]", "--range", "1us..1ms"],
            lambda: flowcast.sensitivity(LU, model="independent", parameter="latency[size>=1KiB]", range=(1e-6, 1e-3)),
        ),
        (
            ["predict", LU, *ALONE, "--scenarios", "examples/scenarios.toml", "--seed", "7"],
            lambda: flowcast.predict_scenarios(LU, "examples/scenarios.toml", "gige-tcp", "independent", seed=7),
        ),
    ],
)
def test_an_answer_equals_that_of_the_command(command: str, json_of: Any, words: list[str], answer: Any) -> None:
    found = answer()
    assert found.document == json_of(command, *words)
    printed = subprocess.run([command, *words], check=True, capture_output=True, text=True).stdout
    assert [line for line in printed.splitlines() if line in found.lines] == found.lines
    assert str(found) == "\n".join(found.lines)


def test_noise_equals_that_of_the_command(command: str, json_of: Any) -> None:
    words = ["predict", LU, *ALONE, "--noise", "exponential:5us", "--replicates", "50", "--seed", "7", "--level", "0.8"]
    theirs: Any = json_of(command, *words)["noise"]
    prediction = flowcast.predict(
        LU, model="independent", noise="exponential:5us", replicates=50, seed=7, level=0.8
    )
    ours = prediction.noise
    assert ours is not None
    assert (ours.median_s, list(ours.interval_s), ours.level) == (theirs["median_s"], theirs["interval_s"], 0.8)
    assert ours.runs["makespan_s"].to_list() == theirs["makespans_s"]
    assert ours.ranks["later_s"].to_list() == theirs["later_s"]
    assert ours.exact is theirs["exact"]
    assert "50 runs" in ours.text
    assert flowcast.predict(LU, model="independent").noise is None
    with pytest.raises(flowcast.InputError, match="--noise"):
        flowcast.predict(LU, noise="gaussian:1us")


def test_the_tables_of_an_answer_match_its_document() -> None:
    answer = flowcast.explain_slack(LU, model="independent")
    assert answer.table_names == ["histogram", "links", "ranks"]
    for name in answer.table_names:
        rows = answer.document[name]
        table = answer[name]
        assert sorted(table.column_names) == sorted(rows[0])
        for column in table.column_names:
            expected = [row[column] for row in rows]
            for value, known in zip(table[column].to_list(), expected, strict=True):
                assert value == known or (known is None and math.isnan(value))
    assert answer.ranks["rank"].to_list() == answer["ranks"]["rank"].to_list() == [0, 1, 2, 3]
    with pytest.raises(AttributeError, match="nonesuch"):
        answer.nonesuch
    with pytest.raises(KeyError, match="histogram, links, ranks"):
        answer["rank"]


def test_scenarios_in_python_equal_scenarios_in_a_file() -> None:
    described: list[dict[str, object]] = [
        {"name": "as it is"},
        {"name": "slow node", "slow_nodes": {"1": 2.0}},
        {"name": "noisy", "noise": "exponential:5us"},
    ]
    answer = flowcast.predict_scenarios(LU, described, "gige-tcp", "independent", level=0.8)
    table = answer["scenarios"]
    assert table["name"].to_list() == ["as it is", "slow node", "noisy"]
    assert table["makespan_s"][0] == flowcast.predict(LU, model="independent").makespan_s
    assert table["ratio"][1] > 1
    noisy = answer.document["scenarios"][2]["noise"]
    assert [table[f"noise.interval_s.{end}"][2] for end in ("low", "high")] == noisy["interval_s"]
    assert math.isnan(table["noise.median_s"][0])
    with pytest.raises(flowcast.InputError, match="nodes"):
        flowcast.predict_scenarios(LU, [{"name": "x", "nodes": 3}], "gige-tcp")
    with pytest.raises(flowcast.InputError, match="no network"):
        flowcast.predict_scenarios(LU, [{"name": "x"}])


@pytest.mark.parametrize(
    ("parameter", "span", "message"),
    [
        ("latency", "1ms", "FROM..TO"),
        ("latency", (1e-3, 1e-6), "FROM below TO"),
        ("latency", ("1us", "1MB"), "same kind"),
        ("nic.none", (0.0, 1.0), "none"),
        ("speed[rank=1]", (0.5, 2), "speed"),
    ],
)
def test_an_error_for_a_range_names_the_expected_form(parameter: str, span: Any, message: str) -> None:
    with pytest.raises(flowcast.InputError, match=message):
        flowcast.sensitivity(LU, model="independent", parameter=parameter, range=span)


def test_notebooks_show_answers(tmp_path: Path) -> None:
    answer = flowcast.sensitivity(LU, model="independent", parameter="latency", range="0us..1ms")
    html = answer._repr_html_()
    assert answer.lines[0] in html
    assert "<td>" in html
    assert answer.to_html().startswith("<!")
    assert repr(answer).startswith("<Answer predicted time over nic.latency")
    page = flowcast.explain_path(LU).to_html()
    assert "latency" in page
    assert "</html>" in page


def test_answers_are_plotted(monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    answer = flowcast.sensitivity(LU, model="independent", parameter="latency", range="0us..1ms")
    drawn = answer.plot()
    x, y = drawn.lines[0].get_data()
    assert (x[0], x[-1]) == (0.0, 1e-3)
    at_end = flowcast.predict(LU, model="independent", set={"latency": 1e-3}).makespan_s
    assert y[-1] == pytest.approx(at_end, rel=1e-9)
    for other in [flowcast.explain_path(LU), flowcast.explain_gradient(LU), flowcast.explain_slack(LU)]:
        _, axes = pyplot.subplots()
        assert other.plot(axes) is axes
        assert len(axes.patches) > 0
    noise = flowcast.predict(LU, noise="exponential:5us", replicates=20).noise
    assert noise is not None
    assert sum(patch.get_height() for patch in noise.plot().patches) == 20
    pyplot.close("all")
