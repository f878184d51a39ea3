"""Predicts the communication time of a message-passing program on an existing or planned network.

>>> import flowcast_hpc as flowcast
>>> flowcast.predict("examples/ring.dim", network="gige-tcp").messages
3

The functions have the names and defaults of the commands: :func:`predict`, :func:`predict_pattern`, :func:`compare`,
:func:`sweep`, :func:`sensitivity`, :func:`explain_path`, :func:`explain_gradient`, :func:`explain_slack`,
:func:`predict_scenarios`, :func:`place`, :func:`validate_app`, :func:`measure`, :func:`fit`, :func:`record`, :func:`rails`, :func:`compile`,
:func:`convert`, :func:`networks`. Times are in seconds, sizes in bytes, unless a name says otherwise.
"""

from flowcast_hpc._answers import explain_gradient, explain_path, explain_slack, predict_scenarios, sensitivity
from flowcast_hpc._command import Measurement, Recording, measure, record
from flowcast_hpc._errors import FindingError, FlowcastWarning, InputError, MissingError, NoSuchFileError
from flowcast_hpc._native import (
    VERSION as __version__,
)
from flowcast_hpc._native import (
    Answer,
    Column,
    Network,
    Noise,
    PatternPrediction,
    Prediction,
    Table,
    Trace,
)
from flowcast_hpc._predict import compare, predict, predict_pattern
from flowcast_hpc._sweep import sweep, sweep_parts
from flowcast_hpc._tools import (
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
from flowcast_hpc._validate import validate_app
from flowcast_hpc.network_file import Bus, Link, NetworkFile, Nic, networks
from flowcast_hpc.programs import Program, Rank

__all__ = [
    "Answer",
    "Bus",
    "Column",
    "FindingError",
    "Fit",
    "FlowcastWarning",
    "InputError",
    "Link",
    "Measurement",
    "MissingError",
    "Network",
    "NetworkFile",
    "Nic",
    "NoSuchFileError",
    "Noise",
    "Parameter",
    "PatternPrediction",
    "Placement",
    "Prediction",
    "Program",
    "Rank",
    "Recording",
    "Schedule",
    "Table",
    "Trace",
    "__version__",
    "compare",
    "compile",
    "convert",
    "explain_gradient",
    "explain_path",
    "explain_slack",
    "fit",
    "measure",
    "networks",
    "place",
    "predict",
    "predict_pattern",
    "predict_scenarios",
    "rails",
    "record",
    "sensitivity",
    "sweep",
    "sweep_parts",
    "validate_app",
]
