"""Work on any ``concurrent.futures.Executor``: results arrive in order, and the tasks of a lost worker are repeated."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, TypeVar

from flowcast_hpc._errors import FlowcastWarning, InputError, MissingError
from flowcast_hpc._native import Trace
from flowcast_hpc._worker import Shipment, TraceMissing

T = TypeVar("T")

#: Number of failures of a task, or of a pool, after which the error is raised.
ATTEMPTS = 3


class Shipping:
    """Compiled trace for workers: a file for workers that can read it, and its bytes for other workers.

    Parameters
    ----------
    trace : Trace
    folder : str or None
        A folder that workers can read; a temporary folder of this machine if None.
    """

    def __init__(self, trace: Trace, folder: str | os.PathLike[str] | None = None) -> None:
        self.content = trace.compiled()
        self._folder = tempfile.mkdtemp(prefix="flowcast-", dir=folder)
        digest = hashlib.sha256(self.content).hexdigest()
        path = Path(self._folder) / f"{digest[:16]}.fct"
        path.write_bytes(self.content)
        self.shipment = Shipment(str(path.absolute()), digest, trace.file_name)

    def __enter__(self) -> Shipping:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def in_order(
    executor: Executor,
    call: Callable[..., T],
    tasks: Sequence[tuple[Any, ...]],
    content: bytes,
) -> Iterator[T]:
    """Yields the results of ``call(None, *task)`` in the order of the tasks, each as soon as all earlier results exist.

    A worker that lacks the trace gets ``call(content, *task)``. A task that fails is repeated, on a new pool if a killed
    worker has broken the old one. An input error is raised immediately.

    Parameters
    ----------
    executor : concurrent.futures.Executor
    call : callable
        A function that workers can import.
    tasks : sequence of tuple
    content : bytes
        The compiled trace.
    """
    run = _Run(executor, call, tasks, content)
    try:
        yield from run.results()
    finally:
        run.end()


class _Run:
    """One run of tasks, with those in progress."""

    def __init__(
        self, executor: Executor, call: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], content: bytes
    ) -> None:
        self.executor, self.call, self.tasks, self.content = executor, call, tasks, content
        self.own: Executor | None = None
        self.replaced = 0
        self.failed = [0] * len(tasks)
        self.needs_content = [False] * len(tasks)
        self.todo = deque(range(len(tasks)))
        self.waiting: dict[Future[Any], int] = {}
        self.done: dict[int, Any] = {}
        # In order of completion, so that no task requires a scan of all others.
        self.finished: SimpleQueue[Future[Any]] = SimpleQueue()

    def results(self) -> Iterator[Any]:
        for index in range(len(self.tasks)):
            while index not in self.done:
                self.submit()
                future = self.finished.get()
                # Results of a replaced pool have been collected already.
                if future in self.waiting and self.collect(future):
                    self.replace()
            yield self.done.pop(index)

    def submit(self) -> None:
        while self.todo:
            index = self.todo[0]
            content = self.content if self.needs_content[index] else None
            try:
                future = self.executor.submit(self.call, content, *self.tasks[index])
            except BrokenExecutor:
                self.replace()
                continue
            self.todo.popleft()
            self.waiting[future] = index
            future.add_done_callback(self.finished.put)

    def collect(self, future: Future[Any]) -> bool:
        """Collects the result of a task. Returns True if the executor is broken."""
        index = self.waiting.pop(future)
        try:
            self.done[index] = future.result()
            return False
        except (InputError, MissingError):
            raise
        except TraceMissing:
            if self.needs_content[index]:
                raise
            self.needs_content[index] = True
            self.todo.append(index)
            return False
        except Exception as error:
            self.todo.append(index)
            if isinstance(error, BrokenExecutor):
                return True
            self.failed[index] += 1
            if self.failed[index] >= ATTEMPTS:
                raise
            return False

    def replace(self) -> None:
        """Continues on a new pool of the same kind, or in this process if that is impossible."""
        self.replaced += 1
        for future in list(self.waiting):
            if future.done():
                self.collect(future)
            else:
                future.cancel()
                self.todo.append(self.waiting.pop(future))
        if isinstance(self.executor, ProcessPoolExecutor):
            # A process that started while the pool broke never ends, and the pool's owner would wait for it (Python 3.11).
            for process in list((self.executor._processes or {}).values()):
                process.kill()
        if self.own is not None:
            self.own.shutdown(wait=False, cancel_futures=True)
        workers = max_workers(self.executor)
        is_pool = isinstance(self.executor, ProcessPoolExecutor) and self.replaced < ATTEMPTS
        context = getattr(self.executor, "_mp_context", None)
        self.own = ProcessPoolExecutor(workers, mp_context=context) if is_pool else ThreadPoolExecutor(1)
        where = "on new processes" if is_pool else "in this process"
        message = f"a worker was lost; {len(self.todo)} parts are repeated or continued {where}"
        warnings.warn(message, FlowcastWarning, stacklevel=6)
        self.executor = self.own

    def end(self) -> None:
        for future in self.waiting:
            # Parsl's tasks cannot be cancelled.
            with contextlib.suppress(NotImplementedError):
                future.cancel()
        if self.own is not None:
            self.own.shutdown(wait=False, cancel_futures=True)


def max_workers(executor: Executor) -> int:
    """Number of tasks that an executor runs at the same time, or that of processors if it does not report it."""
    client = getattr(executor, "_client", None)
    if client is not None and hasattr(client, "nthreads"):
        # Dask's executor, whose client knows the cluster.
        return max(1, int(sum(client.nthreads().values())))
    count = getattr(executor, "_max_workers", None)
    return count if isinstance(count, int) and count > 0 else os.cpu_count() or 1


def shares(count: int, executor: Executor, unit: int = 1) -> list[tuple[int, int]]:
    """Splits ``count`` pieces of work into ranges of whole units, four for each worker; ends are exclusive."""
    length = -(-count // (4 * max_workers(executor) * unit)) * unit
    return [(start, min(start + length, count)) for start in range(0, count, length)] if count else []
