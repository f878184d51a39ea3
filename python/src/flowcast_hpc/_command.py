"""Functions that run the command as a child process, because they start other programs."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from flowcast_hpc._errors import FindingError, FlowcastWarning, InputError, MissingError
from flowcast_hpc._former import former
from flowcast_hpc._native import Table, Trace

Time: TypeAlias = "str | float"
Size: TypeAlias = "str | int"

#: Time that a child has to end after an interrupt, in seconds.
_PATIENCE = 5.0


@dataclass(frozen=True)
class Measurement:
    """Measured round trips, which :func:`fit` accepts directly.

    Attributes
    ----------
    csv : str
        The samples and their provenance, in the format of the command.
    document : dict
        Document that the command prints with ``--json``.
    """

    csv: str = field(repr=False)
    document: dict[str, Any]

    @property
    def samples(self) -> Table:
        """``what``, ``n``, ``d_us``, ``size_B`` and ``time_us`` of each round trip."""
        return Table.from_csv(self.csv)

    def _repr_html_(self) -> str:
        return self.samples._repr_html_()


@former(max_time="time_limit", budget="adaptive time_limit", most_messages="limit", messages="burst")
def measure(
    output: str | os.PathLike[str] | None = None,
    *,
    connect: str | None = None,
    token: str | None = None,
    time_limit: Time | None = None,
    adaptive: bool = False,
    precision: str | float | None = None,
    limit: int | None = None,
    sizes: Sequence[Size] | None = None,
    max_size: Size | None = None,
    step: Size | None = None,
    burst: int | None = None,
    delay: Time | None = None,
    poll: bool = False,
    seed: int = 1,
) -> Measurement:
    """Measures round trips over TCP, on loopback or with ``flowcast measure p2p --listen`` on another machine.

    Runs the command ``flowcast measure p2p``, which must be installed. Arguments that are None have its defaults.

    Parameters
    ----------
    output : path-like, optional
        File to which the samples are written as well.
    connect : str, optional
        Address of the answering end, ``HOST:PORT``.
    token : str, optional
        Token that the answering end printed.
    time_limit : str or float, optional
        Stop after this time; a number is in seconds. Default: 10 s.
    adaptive : bool, optional
        Choose the next round trips that narrow the intervals of L, o, g and G most.
    precision : str or float, optional
        Stop when half the 95 % interval of every median, or with `adaptive` of every parameter, is at most this fraction.
    limit : int, optional
        With `adaptive`: maximum number of messages in both directions.
    sizes : sequence of str or int, optional
        Sizes to measure, ascending.
    max_size, step : str or int, optional
        Largest size, and step between sizes. Default: 64 KiB and 2 KiB.
    burst : int, optional
        Number of messages before an answer. Default: 16.
    delay : str or float, optional
        Computing time between two messages in the measurement of the overhead.
    poll : bool, optional
        Poll instead of sleeping while waiting.
    seed : int, optional
        Seed of the order in which points are measured.

    Returns
    -------
    Measurement

    Raises
    ------
    InputError
        An argument is wrong.
    MissingError
        The command is not installed, or the other end cannot be reached.

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> measured = flowcast.measure(time_limit="0.5s", sizes=["1B", "1KiB", "2KiB"])
    >>> measured.samples.column_names
    ['what', 'n', 'd_us', 'size_B', 'time_us']
    >>> sorted(flowcast.fit(measured).parameters)
    ['G_us_per_B', 'L_us', 'g_us', 'o_us']
    """
    words = ["measure", "p2p", "--json", "--seed", str(seed)]
    words += _given("--connect", connect)
    for option, time in (("--time-limit", time_limit), ("--delay", delay)):
        words += _given(option, time if time is None or isinstance(time, str) else f"{time!r}s")
    for option, size in (("--size", max_size), ("--step", step)):
        words += _given(option, None if size is None else _size(size))
    words += _given("--sizes", None if sizes is None else ",".join(_size(size) for size in sizes))
    for option, value in (("--precision", precision), ("--limit", limit), ("--burst", burst)):
        words += _given(option, value)
    words += ["--adaptive"] if adaptive else []
    words += ["--waiting", "poll"] if poll else []
    with tempfile.TemporaryDirectory(prefix="flowcast-") as folder:
        place = Path(folder, "samples.csv") if output is None else Path(output)
        done = run([*words, "-o", os.fspath(place)], {} if token is None else {"FLOWCAST_TOKEN": token})
        return Measurement(place.read_text(), _document(done[0])[1])


@dataclass(frozen=True)
class Recording:
    """A recorded run of a program.

    Attributes
    ----------
    path : Path
        The recording's folder.
    document : dict
        Document of ``flowcast record --json``.
    stdout, stderr : str
        Output of the program.
    """

    path: Path
    document: dict[str, Any] = field(repr=False)
    stdout: str = field(repr=False)
    stderr: str = field(repr=False)

    @property
    def functions(self) -> Table:
        """Calls, bytes and seconds of each MPI function."""
        return Table.from_json(json.dumps(self.document["functions"]))

    def trace(self) -> Trace:
        """Reads the recording as a trace for the other functions."""
        return Trace.open(self.path)

    def _repr_html_(self) -> str:
        return self.functions._repr_html_()


@former(budget="max_file_size")
def record(
    command: str | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    max_file_size: Size | None = None,
    buffer: Size | None = None,
    idle_sleep: Time | None = None,
    clocks: bool = False,
    recorder: str | os.PathLike[str] | None = None,
) -> Recording:
    """Runs an MPI program and records its communication.

    Runs the command ``flowcast record``, which must be installed. Arguments that are None have its defaults. An interrupt
    ends the program.

    Parameters
    ----------
    command : str or sequence
        Command to run: the launcher and the program, each with its options, such as ``"mpirun -np 4 ./heat 200 2000"``.
    output : path-like
        Folder to write, new or empty.
    max_file_size : str or int, optional
        Largest file of a rank, such as ``"20MB"``; a number is in bytes.
    buffer : str or int, optional
        Memory of each rank for calls that are not yet written to disk. Default: 256 KiB.
    idle_sleep : str or float, optional
        Time that waiting ranks sleep instead of yielding; a number is in seconds.
    clocks : bool, optional
        Whether every rank reads rank 0's clock, so that times of several hosts share one axis.
    recorder : path-like, optional
        The library to load into the program instead of flowcast's own.

    Returns
    -------
    Recording

    Raises
    ------
    InputError
        An argument is wrong.
    FindingError
        The program failed; the folder contains its calls up to that point.
    MissingError
        The command or one of its requirements is not installed, or the program calls no MPI library that can be recorded.
    """
    words = ["record", "--json", "-o", os.fspath(output)]
    for option, size in (("--max-file-size", max_file_size), ("--buffer", buffer)):
        words += _given(option, None if size is None else _size(size))
    words += _given("--waiting", f"{idle_sleep!r}s" if isinstance(idle_sleep, (int, float)) else idle_sleep)
    words += _given("--recorder", None if recorder is None else os.fspath(recorder))
    words += ["--clocks"] if clocks else []
    program = shlex.split(command) if isinstance(command, str) else [os.fspath(word) for word in command]
    stdout, stderr = run([*words, "--", *program], {})
    if "nothing was recorded" in stderr:
        raise MissingError(stderr.strip().splitlines()[-1])
    written, document = _document(stdout)
    return Recording(Path(output), document, written, stderr)


def run(words: Sequence[str], environment: dict[str, str]) -> tuple[str, str]:
    """Runs the command and returns its standard output and error. Its notes become warnings.

    Parameters
    ----------
    words : sequence of str
    environment : dict
        Variables that are added to the environment of this process.
    """
    program = os.environ.get("FLOWCAST_COMMAND") or shutil.which("flowcast")
    if program is None:
        expected = "expected it on PATH (cargo install --locked --path crates/flowcast-cli), or its path in FLOWCAST_COMMAND"
        raise MissingError(f"found no command flowcast, {expected}")
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as told:
        try:
            # An own process group, so that an interrupt ends the command, the launcher and the program.
            child = subprocess.Popen(
                [program, *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=told,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        except OSError as error:
            raise MissingError(f"cannot run {program}: {error.strerror}") from error
        try:
            while child.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(0.05)
        except BaseException:
            _end(child)
            raise
        out.seek(0)
        told.seek(0)
        stdout, stderr = out.read(), told.read()
    return _checked(child.returncode, stdout, stderr)


def _end(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        child.wait(_PATIENCE)
        return
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _checked(status: int, stdout: str, stderr: str) -> tuple[str, str]:
    lines = stderr.splitlines()
    notes = [line.removeprefix("flowcast: note: ") for line in lines if line.startswith("flowcast: note: ")]
    for note in notes:
        warnings.warn(note, FlowcastWarning, stacklevel=4)
    if status == 0:
        return stdout, stderr
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    message = errors[-1] if errors else stderr.strip().split("\n\n")[0]
    kinds: dict[int, type[Exception]] = {1: FindingError, 2: InputError, 3: MissingError}
    # After a recorded program fails, the command ends with the program's exit code.
    if " ended with " in message:
        raise FindingError(message)
    raise kinds.get(status, FindingError)(message or f"flowcast ended with status {status}")


def _document(stdout: str) -> tuple[str, dict[str, Any]]:
    """Splits the output into the text before the document and the document, which is the last line."""
    start = stdout.rstrip("\n").rfind("\n") + 1
    while (start := stdout.find("{", start)) >= 0:
        with suppress(json.JSONDecodeError):
            document: dict[str, Any] = json.loads(stdout[start:])
            return stdout[:start], document
        start += 1
    raise InputError(f"found {stdout[-200:]!r}, expected the summary of the command")


def _given(option: str, value: object) -> list[str]:
    return [] if value is None else [option, str(value)]


def _size(size: Size) -> str:
    return size if isinstance(size, str) else f"{size}B"
