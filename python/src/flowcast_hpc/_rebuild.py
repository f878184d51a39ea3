"""Rebuilds pickled objects."""

from __future__ import annotations

from typing import Any

from flowcast_hpc import _native
from flowcast_hpc._native import Network, Options, Prediction, Trace


def trace(name: str, content: bytes) -> Trace:
    """Rebuilds a trace from its compiled form."""
    return Trace.from_bytes(name, content)


def network(text: str) -> Network:
    """Rebuilds a network from the text of its file."""
    return Network.from_toml(text)


def options(*given: Any) -> Options:
    """Rebuilds options from their arguments."""
    return Options(*given)


def prediction(*given: Any) -> Prediction:
    """Repeats a prediction: equal arguments give equal results."""
    return _native.predict(*given)
