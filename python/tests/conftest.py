"""The folder of the examples, and everything from the root of the repository."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are named as in the documentation."""
    monkeypatch.chdir(ROOT)


os.chdir(ROOT)
