"""How long the communication of a message-passing program takes, on a network that you have or would like to have.

>>> import flowcast
>>> flowcast.predict("examples/ring.dim", network="gige-tcp").messages
3

The functions have the names and defaults of the commands: :func:`predict`, :func:`predict_pattern`, :func:`compare`,
:func:`sweep`, :func:`place`, :func:`fit`, :func:`rails`, :func:`compile`, :func:`convert`, :func:`networks`. Times are in
seconds, sizes in bytes, unless a name says otherwise.
"""

from flowcast._errors import FlowcastWarning, InputError, MissingError
from flowcast._native import (
    VERSION as __version__,
)
from flowcast._native import (
    Column,
    Network,
    PatternPrediction,
    Prediction,
    Table,
    Trace,
)
from flowcast._predict import compare, predict, predict_pattern
from flowcast._sweep import sweep, sweep_parts
from flowcast._tools import (
    Fit,
    Parameter,
    Placement,
    Schedule,
    compile,
    convert,
    fit,
    place,
    rails,
)
from flowcast.network_file import Bus, Link, NetworkFile, Nic, networks
from flowcast.programs import Program, Rank

__all__ = [
    "Bus",
    "Column",
    "Fit",
    "FlowcastWarning",
    "InputError",
    "Link",
    "MissingError",
    "Network",
    "NetworkFile",
    "Nic",
    "Parameter",
    "PatternPrediction",
    "Placement",
    "Prediction",
    "Program",
    "Rank",
    "Schedule",
    "Table",
    "Trace",
    "__version__",
    "compare",
    "compile",
    "convert",
    "fit",
    "networks",
    "place",
    "predict",
    "predict_pattern",
    "rails",
    "sweep",
    "sweep_parts",
]
