"""Executes notebooks from the root of the repository; an error in a cell is an error of this program."""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent

for name in sys.argv[1:]:
    notebook = nbformat.read(name, as_version=4)
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(ROOT)}}).execute()
