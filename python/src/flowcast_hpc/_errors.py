"""The exceptions of the package."""

from __future__ import annotations

import errno
import re
from typing import Any

_PARTS = re.compile(
    r"^(?:(?P<where>.*?):? )?(?:found|invalid (?:type|value):) (?P<found>.*?), expected (?P<expected>.*)$", re.DOTALL
)


class InputError(ValueError):
    """A trace, a network, an option or a value is wrong.

    The message is the same as that of the command: it names the place, the value found and the value expected.

    Attributes
    ----------
    where : str or None
        File with line, or the option or field; None if the message names none.
    found : str or None
        Value that was found.
    expected : str or None
        Value that was expected.

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> try:
    ...     flowcast.sweep("examples/ring.dim", grid={"latency": "5us..1us:3"})
    ... except flowcast.InputError as error:
    ...     print(error.where, "|", error.found, "|", error.expected)
    grid: --grid nic.latency=5us..1us:3 | an empty range | FROM below TO
    """

    where: str | None
    found: str | None
    expected: str | None

    def __init__(self, message: str) -> None:
        super().__init__(message)
        parts = _PARTS.match(message)
        self.where = parts["where"] if parts else None
        self.found = parts["found"] if parts else None
        self.expected = parts["expected"] if parts else None


class NoSuchFileError(InputError, FileNotFoundError):
    """A trace, a network or another file does not exist; also a ``FileNotFoundError``.

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> try:
    ...     flowcast.predict("absent.dim")
    ... except FileNotFoundError as error:
    ...     print(error)
    cannot read absent.dim: No such file or directory (os error 2)
    """

    def __new__(cls, *arguments: object) -> NoSuchFileError:
        # Unpickling without the constructor calls `__new__` of the base with the larger layout.
        return FileNotFoundError.__new__(cls, *arguments)

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.errno = errno.ENOENT


class MissingError(OSError):
    """The machine lacks a requirement, such as the library that reads OTF2 archives."""


class FindingError(RuntimeError):
    """The work is done, but its result should stop a script, such as a program that failed."""


class FlowcastWarning(UserWarning):
    """A prediction omits something, or an argument was interpreted differently than given."""


def whole(number: Any) -> int:
    """Returns a whole number of any type as int. Refuses other numbers instead of truncating them."""
    if (own := int(number)) != number:
        raise InputError(f"found {number!r}, expected a whole number")
    return own
