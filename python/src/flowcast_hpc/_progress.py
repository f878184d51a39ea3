"""Progress bars with tqdm, if it is installed."""

from __future__ import annotations

from types import TracebackType
from typing import Any


class Progress:
    """Progress of a piece of work.

    Parameters
    ----------
    total : int
    unit : str
    wanted : bool or None
        Whether to show a bar; if None, shown on a terminal or in a notebook with tqdm after more than a second.
    """

    def __init__(self, total: int, unit: str, wanted: bool | None) -> None:
        self._bar: Any = None
        if wanted is False:
            return
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return
        self._bar = tqdm(total=total, unit=f" {unit}", disable=None if wanted is None else False, delay=1, leave=False)

    def add(self, count: int) -> None:
        """Adds finished items."""
        if self._bar is not None:
            self._bar.update(count)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
