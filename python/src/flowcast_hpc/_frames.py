"""Rows of tables, and tables as data frames of other libraries, which are imported on request."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from flowcast_hpc._errors import MissingError
from flowcast_hpc._native import Table


def rows(table: Table) -> Iterator[dict[str, Any]]:
    """Iterates over the rows, each a dictionary by column name."""
    return (table[row] for row in range(len(table)))


def to_pandas(table: Table) -> Any:
    """Returns a pandas.DataFrame."""
    pandas = _library("pandas")
    return pandas.DataFrame(table.to_dict(), columns=table.columns)


def to_polars(table: Table) -> Any:
    """Returns a polars.DataFrame."""
    return _library("polars").DataFrame(table)


def _library(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingError(f"found no {name}, expected it for to_{name}(): pip install {name}") from error
