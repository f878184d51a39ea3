"""Network files as dataclasses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from flowcast_hpc._native import Network, built_in_networks

SCHEMA = "flowcast/network/2"


@dataclass
class Nic:
    """Interface of a node. Texts contain units, as in network files.

    Attributes
    ----------
    latency : str
        Latency of the network, such as ``"65.4us"``.
    overhead : str
        Processor time for each message.
    gap : str
        Shortest time between two messages of one interface.
    gap_per_byte, bandwidth, wire_rate : str or None
        Cost of each byte. At least one of the three is required, and the first two exclude each other.
    duplex : str or None
        Duplex mode; ``"full"`` if None.
    count : int or None
        Number of interfaces of a node; 1 if None.
    choice : str or None
        Rule by which a message chooses an interface; ``"pair"`` if None.
    """

    latency: str = "0us"
    overhead: str = "0us"
    gap: str = "0us"
    gap_per_byte: str | None = None
    bandwidth: str | None = None
    wire_rate: str | None = None
    duplex: str | None = None
    count: int | None = None
    choice: str | None = None


@dataclass
class Link:
    """Shared link, with its goodput, its wire rate, or both."""

    bandwidth: str | None = None
    wire_rate: str | None = None


@dataclass
class Bus:
    """Bus that nodes share."""

    nodes: int | None = None
    bandwidth: str | None = None
    wire_rate: str | None = None


@dataclass
class NetworkFile:
    """Network file: description of a network and the parameters of its models.

    Sections with many fields are dictionaries with the field names of the file (docs/reference/network-file.md).

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> from flowcast_hpc import NetworkFile, Nic
    >>> mine = NetworkFile("mine", nic=Nic(latency="5us", bandwidth="1GB/s"))
    >>> NetworkFile.from_toml(mine.to_toml()) == NetworkFile.of(mine.network())
    True
    >>> flowcast.predict("examples/ring.dim", network=mine).network
    'mine'
    """

    name: str
    title: str = ""
    source: str = ""
    point_to_point: dict[str, Any] = field(default_factory=lambda: {"rule": "hockney"})
    nic: Nic = field(default_factory=Nic)
    backbone: Link | None = None
    bus: Bus | None = None
    topology: dict[str, Any] | None = None
    overheads: dict[str, Any] | None = None
    sharing: dict[str, Any] | None = None
    machine: dict[str, Any] | None = None
    collectives: dict[str, Any] | None = None
    file_system: dict[str, Any] | None = None
    intervals: dict[str, Any] | None = None
    origins: dict[str, Any] | None = None
    accuracy: list[dict[str, Any]] | None = None
    fit: dict[str, Any] | None = None
    provenance: dict[str, str] | None = None

    @classmethod
    def of(cls, network: Network) -> NetworkFile:
        """Returns the file of a network.

        Parameters
        ----------
        network : Network
        """
        document: dict[str, Any] = json.loads(network.to_json())
        document.pop("schema", None)
        sections: dict[str, type] = {"nic": Nic, "backbone": Link, "bus": Bus}
        for name, section in sections.items():
            if document.get(name) is not None:
                document[name] = section(**document[name])
        return cls(**document)

    @classmethod
    def from_toml(cls, text: str) -> NetworkFile:
        """Reads the text of a network file.

        Raises
        ------
        InputError
            The text is not a network file.
        """
        return cls.of(Network.from_toml(text))

    def network(self) -> Network:
        """Returns the network for the functions of this package.

        Raises
        ------
        InputError
            A value is wrong or missing.
        """
        return Network.from_json(json.dumps({"schema": SCHEMA, **_without_none(asdict(self))}))

    def to_toml(self) -> str:
        """Returns the text of the file."""
        return self.network().to_toml()


def networks() -> list[str]:
    """Returns the names of the built-in networks.

    Examples
    --------
    >>> import flowcast_hpc as flowcast
    >>> "gige-tcp" in flowcast.networks()
    True
    """
    return built_in_networks()


def _without_none(document: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in document.items() if value is not None}
    return {key: _without_none(value) if isinstance(value, dict) else value for key, value in kept.items()}
