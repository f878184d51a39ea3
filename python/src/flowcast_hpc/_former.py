"""Former names of keyword arguments, which are accepted for one more version."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from flowcast_hpc._errors import FlowcastWarning

_Function = TypeVar("_Function", bound=Callable[..., Any])


def former(**names: str) -> Callable[[_Function], _Function]:
    """Accepts former names of keyword arguments, with a warning.

    Parameters
    ----------
    **names : str
        Current name of each former name. Words before the name, separated by blanks, are flags that become True.
    """

    def accepting(function: _Function) -> _Function:
        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            for was in names.keys() & keywords.keys():
                *flags, name = names[was].split()
                if name in keywords:
                    raise TypeError(f"found both {was} and {name}, which are one argument")
                warnings.warn(f"{was} is now {name}", FlowcastWarning, stacklevel=2)
                value = keywords.pop(was)
                if value is not None:
                    keywords.update({name: value}, **dict.fromkeys(flags, True))
            return function(*arguments, **keywords)

        return call  # type: ignore[return-value]

    return accepting
