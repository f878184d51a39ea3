"""Builds anew what was pickled."""

from __future__ import annotations

from typing import Any

from flowcast import _native
from flowcast._native import Network, Options, Prediction, Trace


def trace(name: str, content: bytes) -> Trace:
    """A trace of its compiled form."""
    return Trace.from_bytes(name, content)


def network(text: str) -> Network:
    """A network of its file."""
    return Network.from_toml(text)


def options(*given: Any) -> Options:
    """Options of what they were made of."""
    return Options(*given)


def prediction(*given: Any) -> Prediction:
    """A prediction, which is made again: equal arguments give equal results."""
    return _native.predict(*given)
