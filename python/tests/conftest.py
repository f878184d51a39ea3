"""Fixtures: tests run in the root of the repository, and some of them need the command."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs tests in the root of the repository, so that file names are the same as in the documentation."""
    monkeypatch.chdir(ROOT)


def found_command() -> str | None:
    """Returns the command that the suite has built."""
    return os.environ.get("FLOWCAST_COMMAND") or shutil.which("flowcast")


@pytest.fixture(scope="session")
def command() -> str:
    """The command; a test without it is skipped."""
    found = found_command()
    if found is None:
        raise pytest.skip.Exception("the command flowcast is not here (FLOWCAST_COMMAND names it)")
    return found


@pytest.fixture(scope="session")
def json_of() -> Callable[..., dict[str, object]]:
    """Returns the document that the command prints with --json."""

    def document(command: str, *arguments: str) -> dict[str, object]:
        done = subprocess.run([command, *arguments, "--json"], check=True, capture_output=True, text=True)
        found: dict[str, object] = json.loads(done.stdout)
        return found

    return document


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples that run the command need it. Measuring warns on a busy machine."""
    for item in items:
        if item.name.startswith("flowcast_hpc._command."):
            item.add_marker(pytest.mark.filterwarnings("ignore::flowcast_hpc.FlowcastWarning"))
            item.add_marker(pytest.mark.skipif(found_command() is None, reason="the command flowcast is not here"))


os.chdir(ROOT)
