"""Predictions, and their equality with the command's."""

import _thread
import errno
import pickle
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import flowcast_hpc as flowcast

JsonOf = Callable[..., dict[str, object]]

LU = "examples/lu.S.4.dim.gz"


@pytest.mark.parametrize("network", ["gige-tcp", "infiniband-2006", "examples/links64.toml"])
@pytest.mark.parametrize("model", [None, "independent", "fair"])
def test_a_prediction_equals_that_of_the_command(command: str, json_of: JsonOf, network: str, model: str | None) -> None:
    arguments = ["predict", LU, "--network", network, *(["--model", model] if model else [])]
    theirs = json_of(command, *arguments)
    ours = flowcast.predict(LU, network=network, model=model)
    assert ours.makespan_s == theirs["makespan_s"]
    assert ours.model == theirs["model"]
    assert ours.messages == theirs["messages"]
    assert ours.bytes == theirs["bytes"]
    ranks = theirs["ranks"]
    assert isinstance(ranks, list)
    for column in ["end_s", "compute_s", "blocked_s", "overhead_s"]:
        assert ours.ranks[column].to_list() == [rank[column] for rank in ranks]
    interval = theirs["interval_s"]
    assert (list(ours.interval_s) if ours.interval_s else None) == interval


@pytest.mark.parametrize("path", [LU, "examples/two-in-one-out.pattern"])
@pytest.mark.parametrize("options", [[], ["--no-interval"]])
def test_statements_equal_those_of_the_command(command: str, json_of: JsonOf, path: str, options: list[str]) -> None:
    theirs = json_of(command, "predict", path, "--network", "ethernet-25g-tcp", *options)
    ours = flowcast.predict(path, "ethernet-25g-tcp", no_interval=bool(options))
    assert (ours.margin, ours.notes) == (theirs["margin"], theirs["notes"])
    assert (list(ours.interval_s) if ours.interval_s else None) == theirs["interval_s"]
    assert (ours.interval_s is None) == bool(options)


@pytest.mark.parametrize("scheduler", [None, "stock"])
def test_a_prediction_over_rails_equals_that_of_the_command(command: str, json_of: JsonOf, scheduler: str | None) -> None:
    arguments = ["predict", LU, "--rail", "myrinet-gm", "--rail", "gige-tcp", *(["--scheduler", scheduler] if scheduler else [])]
    theirs = json_of(command, *arguments)
    ours = flowcast.predict(LU, "myrinet-gm", rails=["gige-tcp"], scheduler=scheduler)
    again = pickle.loads(pickle.dumps(ours))
    assert ours.makespan_s == again.makespan_s == theirs["makespan_s"]
    assert (ours.scheduler, ours.interval_s) == (theirs["scheduler"], theirs["interval_s"])
    rails = theirs["rails"]
    assert isinstance(rails, list) and ours.rails
    for column in ["name", "model", "messages", "bytes"]:
        assert ours.rails[column].to_list() == [rail[column] for rail in rails]
    assert sum(ours.rails["share"].to_list()) == pytest.approx(1)


def test_several_rails_are_refused_for_other_questions() -> None:
    with pytest.raises(flowcast.InputError, match="several rails"):
        flowcast.predict(LU, rails=["gige-tcp"], noise="exponential:5us")
    with pytest.raises(flowcast.InputError, match="several rails"):
        flowcast.predict(LU, rails=["gige-tcp"]).to_html()
    with pytest.raises(flowcast.InputError, match="no further networks"):
        flowcast.predict(LU, scheduler="stock")
    with pytest.raises(flowcast.InputError, match="--scheduler fastest"):
        flowcast.predict(LU, rails=["gige-tcp"], scheduler="fastest")


def test_a_pattern_prediction_equals_that_of_the_command(command: str, json_of: JsonOf) -> None:
    theirs = json_of(command, "predict", "examples/figure5.pattern", "--network", "gige-lam")
    ours = flowcast.predict_pattern("examples/figure5.pattern", "gige-lam")
    flows = theirs["flows"]
    assert isinstance(flows, list)
    assert ours.makespan_s == theirs["makespan_s"] == flowcast.predict("examples/figure5.pattern", "gige-lam").makespan_s
    assert ours.flows["end_s"].to_list() == [flow["end_s"] for flow in flows]
    assert ours.flows["slowdown"].to_list() == [flow["slowdown"] for flow in flows]


def test_a_sweep_equals_the_file_of_the_command(command: str, tmp_path: Path) -> None:
    file = tmp_path / "lu.csv"
    grid = ["latency=1us..100us:5", "bandwidth=10MB/s..1GB/s:4:log"]
    arguments = [command, "sweep", LU, "--network", "gige-tcp", "-o", str(file)]
    arguments += [word for field in grid for word in ("--grid", field)]
    subprocess.run(arguments, check=True, capture_output=True)
    table = flowcast.sweep(LU, grid=dict(field.split("=") for field in grid))
    assert table.to_csv() == file.read_text()


def test_messages_have_the_columns_of_the_command(command: str, tmp_path: Path) -> None:
    file = tmp_path / "messages.csv"
    subprocess.run(
        [command, "predict", LU, "--network", "gige-tcp", "--write", f"messages={file}"], check=True, capture_output=True
    )
    theirs = flowcast.Table.from_csv(file.read_text())
    ours = flowcast.predict(LU).message_table()
    assert ours.column_names == theirs.column_names
    assert ours.to_dict() == theirs.to_dict()
    assert len(ours) == flowcast.predict(LU).messages


def test_numbers_are_in_base_units() -> None:
    as_text = flowcast.predict(LU, set={"nic.latency": "5us", "bandwidth": "1GB/s"}).makespan_s
    assert flowcast.predict(LU, set={"nic.latency": 5e-6, "bandwidth": 1e9}).makespan_s == as_text


@pytest.mark.parametrize(
    ("call", "where", "found", "expected"),
    [
        (lambda: flowcast.predict(LU, set={"nic.latency": "5"}), "nic.latency", "5", "unit"),
        (lambda: flowcast.sweep(LU, grid={"latency": "1us..5us:1"}), "latency", "count `1`", "whole number"),
        (lambda: flowcast.predict("examples/README.md"), "README.md", None, None),
        (lambda: flowcast.predict(LU, network="gige"), None, None, None),
        (lambda: flowcast.predict(LU, level=90), "--level", "90", "0.9 for 90 %"),
        (lambda: flowcast.predict(LU, model="fare"), "fare", None, None),
        (lambda: flowcast.predict("examples/no-such.dim"), "no-such.dim", None, None),
        (lambda: flowcast.convert(LU, "/tmp/never", "csv"), None, "csv", "goal"),
        (lambda: flowcast.predict(LU, set="latency=9us"), "set", "'latency=9us'", "{'latency': '9us'}"),  # type: ignore[arg-type]
        (lambda: flowcast.predict(LU, set="latency=9us", seed=1), "set", "'latency=9us'", "{'latency': '9us'}"),  # type: ignore[arg-type]
        (lambda: flowcast.sweep(LU, network=[], grid={"latency": ["1us"]}), "network", "no network", "one or several"),
    ],
)
def test_input_errors_have_the_place_the_found_and_the_expected_value(
    call: object, where: str | None, found: str | None, expected: str | None
) -> None:
    assert callable(call)
    with pytest.raises(flowcast.InputError) as raised:
        call()
    error = raised.value
    assert where is None or where in str(error)
    assert found is None or (error.found is not None and found in error.found)
    assert expected is None or (error.expected is not None and expected in error.expected)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    "call",
    [
        lambda: flowcast.predict("absent.dim"),
        lambda: flowcast.predict(LU, network="absent.toml"),
        lambda: flowcast.predict(LU, mapping="absent/mapping"),
        lambda: flowcast.predict_pattern("absent.pattern"),
    ],
)
def test_a_missing_file_raises_file_not_found(call: Callable[[], object]) -> None:
    with pytest.raises(FileNotFoundError, match=r"cannot read .*absent.*: [Nn]o such file") as raised:
        call()
    assert raised.value.errno == errno.ENOENT
    assert isinstance(raised.value, flowcast.InputError)
    assert isinstance(pickle.loads(pickle.dumps(raised.value)), flowcast.NoSuchFileError)


def test_ranks_that_wait_for_each_other_are_named() -> None:
    with pytest.raises(flowcast.InputError, match="wait"):
        flowcast.predict("examples/deadlock.dim")


def test_traces_and_networks_can_be_pickled() -> None:
    trace = flowcast.Trace.open(LU)
    again = pickle.loads(pickle.dumps(trace))
    network = pickle.loads(pickle.dumps(flowcast.Network.load("ethernet-1g-10g")))
    assert network == flowcast.Network.load("ethernet-1g-10g")
    assert flowcast.predict(again, network).makespan_s == flowcast.predict(trace, "ethernet-1g-10g").makespan_s


def test_a_prediction_can_be_unpickled() -> None:
    once = flowcast.predict(LU, "gige-lam", mapping=[0, 0, 1, 1], set={"latency": "9us"}, noise="exponential:5us", seed=3)
    again = pickle.loads(pickle.dumps(once))
    assert (again.text, again.interval_s, again.model) == (once.text, once.interval_s, once.model)
    assert again.ranks.to_dict() == once.ranks.to_dict()
    assert again.message_table().to_csv() == once.message_table().to_csv()
    assert once.noise is not None
    assert again.noise.runs.to_dict() == once.noise.runs.to_dict()


def test_several_networks_are_an_axis_of_a_sweep() -> None:
    table = flowcast.sweep(LU, network=["gige-tcp", "gige-lam"], grid={"latency": [5e-6, 9e-6]})
    assert table["network"].to_list() == ["gige-tcp", "gige-tcp", "gige-lam", "gige-lam"]
    alone = flowcast.sweep(LU, network="gige-lam", grid={"latency": [5e-6, 9e-6]})
    assert table["makespan_s"][2:].to_list() == alone["makespan_s"].to_list()
    assert flowcast.compare(LU, "gige-lam")["network"].to_list() == ["gige-lam"]


@pytest.fixture
def long_program() -> Iterator[flowcast.Program]:
    """A program that takes much longer than a test may run."""
    program = flowcast.Program(16)
    for _ in range(2500):
        for rank in range(16):
            others = [(rank + step) % 16 for step in range(1, 16, 2)]
            for other in others:
                program.rank(rank).isend(other, 1_000_000)
            for other in others:
                program.rank(rank).recv((rank - (other - rank)) % 16, 1_000_000)
    yield program


def test_an_interrupt_is_raised_immediately_and_other_threads_keep_running(long_program: flowcast.Program) -> None:
    trace = long_program.trace()
    ticks = 0
    over = threading.Event()

    def count() -> None:
        nonlocal ticks
        while not over.wait(0.01):
            ticks += 1
            if ticks == 30:
                _thread.interrupt_main()

    counter = threading.Thread(target=count)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    start = time.monotonic()
    counter.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            flowcast.predict(trace, model="packet", set={"sharing.packet.window": "64KiB"})
    finally:
        over.set()
        counter.join()
        signal.signal(signal.SIGINT, before)
    assert ticks >= 30
    assert time.monotonic() - start < 5.0


def test_a_validation_compares_recorded_and_predicted_times() -> None:
    table = flowcast.validate_app(["examples/heat.rec"], "gige-tcp", models=["limits", "fair"], collectives=["formula"])
    rows = list(zip(*table.to_dict().values(), strict=True))
    totals = [row for row in rows if row[0] == "total"]
    assert [row[5] for row in totals] == ["limits/formula", "fair/formula"]
    for _, _, measured, _, _, prediction, predicted, error in totals:
        assert error == pytest.approx(predicted / measured - 1)
        model = prediction.split("/")[0]
        whole = flowcast.predict("examples/heat.rec", model=model, collectives="formula").makespan_s
        assert 0.9 * whole < predicted <= whole
    assert sum(row[0] == "communication of rank" for row in rows) == 2 * 4


def test_a_validation_needs_recordings_of_one_program(tmp_path: Path) -> None:
    for recordings, found in [([], "found none"), ([tmp_path / "no.rec"], "cannot read")]:
        with pytest.raises(flowcast.InputError, match=found):
            flowcast.validate_app(recordings, "gige-tcp")
    with pytest.raises(flowcast.InputError, match="nonesuch"):
        flowcast.validate_app(["examples/heat.rec"], "gige-tcp", models=["nonesuch"])
