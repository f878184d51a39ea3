"""``python3 -m flowcast_hpc._remote``: replays the sets of a sweep on a Dask cluster, for ``flowcast sweep --executor``.

Standard input has the job in one line of JSON, then the compiled trace, and stays open as long as the caller waits for the
result. Standard output gets a line for each set in the order of the sets; a line ``!CODE MESSAGE`` reports an error.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Any, BinaryIO

from flowcast_hpc._errors import InputError, MissingError
from flowcast_hpc._native import VERSION, Network, Trace
from flowcast_hpc._sweep import Sweep

#: Time that a scheduler has to answer, in seconds.
_PATIENCE = 30


def rows(job: dict[str, Any], trace: Trace, executor: Executor) -> Iterator[str]:
    """Yields the rows of a job's sets, one part after the other.

    Parameters
    ----------
    job : dict
        ``networks`` (texts of files), ``grid`` (``KEY=VALUES`` each), ``model``, ``mappings`` (pairs of a name and a rule or
        nodes), ``rendezvous_from``, ``collectives``, ``level``, ``json``, ``ranges`` (first set
        and exclusive end of each).
    trace : Trace
    executor : concurrent.futures.Executor
    """
    networks = [Network.from_toml(text) for text in job["networks"]]
    grid = [(key, values) for key, _, values in (text.partition("=") for text in job["grid"])]
    how = (job["rendezvous_from"], job["collectives"], None)
    options = [(job["model"], _mapping(rule), *how, name) for name, rule in job["mappings"]]
    sweep = Sweep(trace, networks, grid, options, job["level"], job["json"])
    return sweep.lines_of([(start, end) for start, end in job["ranges"]], executor)


def main() -> None:
    """Runs the job from standard input."""
    job = json.loads(sys.stdin.buffer.readline())
    content = sys.stdin.buffer.read(job["trace_bytes"])
    threading.Thread(target=_end_with, args=(sys.stdin.buffer,), daemon=True).start()
    try:
        if job["flowcast"] != VERSION:
            raise InputError(f"found flowcast {VERSION} in {sys.executable}, expected {job['flowcast']} like the command")
        _on_dask(job, Trace.from_bytes(job["trace"], content))
    except InputError as error:
        _fail(2, error)
    except MissingError as error:
        _fail(3, error)
    except Exception as error:
        _fail(3, f"the workers failed: {type(error).__name__}: {error}")


def _on_dask(job: dict[str, Any], trace: Trace) -> None:
    import distributed

    # Errors are reported once, at the end.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    address = job["address"]
    connect: Any = distributed.Client
    try:
        client = connect(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise MissingError(f"found no Dask scheduler at {address}: {error}") from error
    with client:
        if not client.nthreads():
            raise MissingError(f"found no worker at {address}, expected at least one (dask worker {address})")
        for part in rows(job, trace, client.get_executor()):
            sys.stdout.write(part)
            sys.stdout.flush()


def _mapping(rule: Any) -> str | tuple[int, ...] | None:
    if isinstance(rule, dict):
        return tuple(rule["list"]) if "list" in rule else f"{rule['per-node']}-per-node"
    return rule if rule is None else str(rule)


def _end_with(stream: BinaryIO) -> None:
    """Ends the process when the caller closes the stream."""
    stream.read()
    os._exit(3)


def _fail(code: int, message: object) -> None:
    print(f"!{code} {' '.join(str(message).split())}", flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
