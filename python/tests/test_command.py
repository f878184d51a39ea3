"""Measuring and recording through the command."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import flowcast_hpc as flowcast

pytestmark = pytest.mark.filterwarnings("ignore::flowcast_hpc.FlowcastWarning")

SIZES = ["1B", "1KiB", "4KiB"]


def test_loopback_is_measured_and_fitted(command: str, tmp_path: Path) -> None:
    file = tmp_path / "samples.csv"
    measured = flowcast.measure(file, time_limit=1.0, sizes=SIZES, seed=3)
    assert file.read_text() == measured.csv
    assert sorted(set(measured.samples["size_B"].to_list())) == [1, 1024, 4096]
    assert len(measured.samples) == measured.document["samples"]
    assert "# seed: 3" in measured.csv
    fitted = flowcast.fit(measured, name="loopback")
    assert fitted.parameters == flowcast.fit(file, name="loopback").parameters
    assert min(measured.samples["time_us"].to_list()) > 0
    assert flowcast.fit(measured.samples).parameters == fitted.parameters


def test_a_budget_chooses_the_round_trips(command: str) -> None:
    measured = flowcast.measure(adaptive=True, time_limit="1s", precision=0.5, limit=500)
    assert 0 < measured.document["messages"] <= 500
    assert len(measured.samples) == measured.document["round_trips"]
    # On a busy machine the fit may still be missing.
    assert {one["symbol"] for one in measured.document["parameters"]} <= {"L", "o", "g", "G"}


def test_two_ends_measure_over_tcp(command: str) -> None:
    words = [command, "measure", "p2p", "--listen", "127.0.0.1:0"]
    other = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert other.stdout is not None
        line = other.stdout.readline()
        address = next(word for word in line.replace(",", " ").split() if word.startswith("127.0.0.1:"))
        measured = flowcast.measure(connect=address, time_limit="0.5s", sizes=SIZES)
        assert f"# path: tcp to {address}" in measured.csv
        assert other.wait(10) == 0
    finally:
        other.kill()
        other.wait()


def test_a_wrong_argument_raises_the_error_of_the_command(command: str) -> None:
    with pytest.raises(flowcast.InputError, match="--sizes and --adaptive exclude each other"):
        flowcast.measure(adaptive=True, sizes=SIZES)
    with pytest.raises(flowcast.InputError, match="found"):
        flowcast.measure(time_limit="soon")
    with pytest.raises(flowcast.MissingError):
        flowcast.measure(connect="127.0.0.1:9", time_limit="1s")


def test_former_names_of_arguments_work_with_a_warning(command: str) -> None:
    with pytest.warns(flowcast.FlowcastWarning, match="budget is now time_limit"):
        measured = flowcast.measure(budget="1s", precision=0.5, limit=500)  # type: ignore[call-arg]
    assert "busy_us" in measured.samples.column_names
    with pytest.raises(TypeError, match="found both slots and ranks_per_node"):
        flowcast.place("examples/broadcast.steps", "gige-lam", 4, slots=2, ranks_per_node=2)  # type: ignore[call-arg]


def test_the_error_without_the_command_explains_its_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLOWCAST_COMMAND", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(flowcast.MissingError, match="cargo install"):
        flowcast.measure()
    monkeypatch.setenv("FLOWCAST_COMMAND", "/nonexistent/flowcast")
    with pytest.raises(flowcast.MissingError, match="cannot run"):
        flowcast.record("true", "/tmp/never")


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two ranks of the example program, compiled."""
    mpirun, mpicc = (shutil.which(name, path="/usr/bin:" + os.environ["PATH"]) for name in ("mpirun", "mpicc"))
    if mpirun is None or mpicc is None:
        raise pytest.skip.Exception("mpirun and mpicc are not installed")
    program = tmp_path_factory.mktemp("heat") / "heat"
    subprocess.run([mpicc, "-O1", "-o", str(program), "examples/heat.c", "-lm"], check=True, timeout=60)
    return [mpirun, "--allow-run-as-root", "--oversubscribe", "-np", "2", str(program)]


def test_a_program_is_recorded_and_predicted(command: str, launcher: list[str], tmp_path: Path) -> None:
    recording = flowcast.record([*launcher, "64", "50"], tmp_path / "heat.rec", max_file_size="20MB")
    assert recording.document["ranks"] == 2
    assert sum(recording.functions["calls"].to_list()) == recording.document["calls"]
    assert "{" not in recording.stdout
    trace = recording.trace()
    assert trace.ranks == 2
    assert flowcast.predict(trace, network="gige-tcp").messages > 0
    with pytest.raises(flowcast.InputError, match="expected a new or empty folder"):
        flowcast.record([*launcher, "64", "50"], tmp_path / "heat.rec")


def test_a_failed_program_is_reported(command: str, launcher: list[str], tmp_path: Path) -> None:
    with pytest.raises(flowcast.FindingError, match="nothing was recorded"):
        flowcast.record([*launcher[:-1], "false"], tmp_path / "false.rec")
    source, program = tmp_path / "fails.c", tmp_path / "fails"
    source.write_text("#include <mpi.h>\nint main(int n, char **v) { MPI_Init(&n, &v); MPI_Finalize(); return 3; }\n")
    subprocess.run(["mpicc", "-o", str(program), str(source)], check=True, timeout=60)
    with pytest.raises(flowcast.FindingError, match="the program ended with"):
        flowcast.record([*launcher[:-1], str(program)], tmp_path / "fails.rec")
    with pytest.raises(flowcast.InputError, match="the recording of a program that failed"):
        flowcast.Trace.open(tmp_path / "fails.rec")
    assert flowcast.Trace.open(tmp_path / "fails.rec", incomplete=True).ranks == 2


def test_an_interrupt_ends_the_program(command: str, launcher: list[str], tmp_path: Path) -> None:
    script = tmp_path / "record.py"
    words = [*launcher, "2000", "100000000"]
    script.write_text(f"import flowcast_hpc as flowcast\nflowcast.record({words!r}, {str(tmp_path / 'long.rec')!r})\n")
    # A shell starts jobs in the background with interrupts ignored.
    words = ["env", "--default-signal", sys.executable, str(script)]
    own = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        ranks = wait_for(lambda: running(launcher[-1], "100000000"), 60, 2)
        start = time.monotonic()
        own.send_signal(signal.SIGINT)
        _, stderr = own.communicate(timeout=30)
        assert "KeyboardInterrupt" in stderr
        assert time.monotonic() - start < 10
        assert wait_for(lambda: [True] * (not running(launcher[-1], "100000000")), 30)
    finally:
        own.kill()
        own.wait()


def wait_for(found: Callable[[], Iterable[object]], seconds: float, count: int = 1) -> list[object]:
    """Waits until `found` returns enough entries, and returns them."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        result = list(found())
        if len(result) >= count:
            return result
        time.sleep(0.1)
    raise AssertionError("nothing was found in time")


def running(program: str, argument: str) -> list[int]:
    """Returns the processes of this program with this argument, without zombies. Launchers have the argument, too."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if words[0] == program and argument in words:
            processes.append(int(folder.name))
    return processes
