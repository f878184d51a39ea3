"""Builds anew what was pickled."""

from __future__ import annotations

from flowcast._native import Network, Table, Trace


def trace(name: str, content: bytes) -> Trace:
    """A trace of its compiled form."""
    return Trace.from_bytes(name, content)


def network(text: str) -> Network:
    """A network of its file."""
    return Network.from_toml(text)


def table(text: str) -> Table:
    """A table of its CSV."""
    return Table.from_csv(text)
