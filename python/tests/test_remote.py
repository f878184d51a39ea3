"""``flowcast sweep --executor`` on the workers of a real Dask cluster."""

import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LU = "examples/lu.S.4.dim.gz"
GRID = ["--grid", "latency=1us..100us:12", "--grid", "bandwidth=10MB/s..1GB/s:8:log"]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster of two processes."""
    distributed: Any = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
    with distributed.LocalCluster(processes=True, **options) as cluster:
        yield str(cluster.scheduler_address)


@pytest.fixture(autouse=True)
def own_python_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command runs the Python of these tests."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "python3"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def sweep(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in the root of the repository."""
    words = [command, "sweep", *arguments]
    return subprocess.run(words, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "arguments",
    [
        [LU, "--network", "gige-tcp", *GRID],
        [LU, "--network", "gige-tcp", *GRID, "--json", "--shard", "2/3"],
        [LU, "--network", "gige-*", "--mapping", "fill", "--mapping", "examples/columns.map", "--level", "0.9"],
        ["examples/is.S.4.dim.gz", "--network", "gige-tcp", "--collectives", "openmpi", "--grid", "overhead=0us..9us:4"],
    ],
)
def test_an_executor_does_not_change_the_bytes(command: str, address: str, arguments: list[str]) -> None:
    alone = sweep(command, *arguments)
    assert alone.returncode == 0, alone.stderr
    together = sweep(command, *arguments, "--executor", f"dask:{address}")
    assert together.returncode == 0, together.stderr
    assert together.stdout == alone.stdout
    assert len(alone.stdout.splitlines()) > 4


def test_an_interrupted_run_continues_on_workers(command: str, address: str, tmp_path: Path) -> None:
    whole, file = tmp_path / "whole.csv", tmp_path / "file.csv"
    arguments = [LU, "--network", "gige-tcp", *GRID, "--grid", "overhead=1us..9us:4"]
    assert sweep(command, *arguments, "-o", str(whole)).returncode == 0
    words = [command, "sweep", *arguments, "-o", str(file), "--threads", "1"]
    begun = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    partial = Path(f"{file}.partial")
    try:
        while begun.poll() is None and not (partial.exists() and partial.read_bytes().count(b"\n") > 60):
            time.sleep(0.005)
    finally:
        begun.kill()
        begun.wait()
    resumed = sweep(command, *arguments, "-o", str(file), "--resume", "--executor", f"dask:{address}")
    counts = re.search(r"sets: (\d+) replayed, (\d+) resumed, 384 in", resumed.stderr)
    assert counts, resumed.stderr
    replayed, kept = int(counts[1]), int(counts[2])
    assert replayed > 0
    assert kept > 0
    assert replayed + kept == 384
    assert file.read_bytes() == whole.read_bytes()


def test_a_wrong_value_is_reported_once_and_nothing_is_written(command: str, address: str, tmp_path: Path) -> None:
    file = tmp_path / "ring.csv"
    arguments = ["examples/deadlock.dim", "--network", "gige-tcp", "--grid", "latency=1us,2us", "-o", str(file)]
    found = sweep(command, *arguments, "--executor", f"dask:{address}")
    assert found.returncode == 2
    assert "wait" in found.stderr
    assert "Traceback" not in found.stderr
    assert not file.exists()


def test_a_missing_scheduler_is_a_missing_requirement(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "1s")
    found = sweep(command, LU, "--network", "gige-tcp", *GRID, "--executor", "dask:tcp://127.0.0.1:9")
    assert found.returncode == 3
    assert "no Dask scheduler" in found.stderr
    assert "Traceback" not in found.stderr


def test_the_error_without_the_package_explains_its_installation(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    found = sweep(command, LU, "--network", "gige-tcp", *GRID, "--executor", "dask:tcp://127.0.0.1:8786")
    assert found.returncode == 2
    assert "pip install" in found.stderr


def test_the_child_ends_with_the_command(command: str, address: str) -> None:
    many = ["--grid", "latency=1us..100us:200", "--grid", "bandwidth=10MB/s..1GB/s:200:log", "--model", "fair"]
    words = [command, "sweep", LU, "--network", "gige-tcp", *many, "--executor", f"dask:{address}"]
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        child = first_child(running.pid, "flowcast_hpc._remote")
        assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        running.wait(10)
        deadline = time.monotonic() + 10
        while is_alive(child) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not is_alive(child)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def first_child(parent: int, word: str) -> int:
    """Waits for a child whose command line contains the word."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            if word in Path(f"/proc/{child}/cmdline").read_text():
                return int(child)
        time.sleep(0.02)
    raise AssertionError("there is no child")


def is_alive(process: int) -> bool:
    """Returns True if the process runs, and False if it has ended or is a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
