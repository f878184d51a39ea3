"""Builds anew what was pickled."""

from __future__ import annotations

from flowcast._native import Network, Trace


def trace(name: str, content: bytes) -> Trace:
    """A trace of its compiled form."""
    return Trace.from_bytes(name, content)


def network(text: str) -> Network:
    """A network of its file."""
    return Network.from_toml(text)
