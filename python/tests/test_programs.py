"""Programs and networks that are described in Python."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import flowcast_hpc as flowcast
from flowcast_hpc import NetworkFile, Nic

LU = "examples/lu.S.4.dim.gz"


def test_one_message_takes_the_time_of_the_formula() -> None:
    program = flowcast.Program(2)
    program.rank(0).compute(1e-3).send(1, 1_000_000)
    program.rank(1).recv(0, 1_000_000)
    network = NetworkFile("plain", nic=Nic(latency="10us", bandwidth="100MB/s"))
    prediction = flowcast.predict(program, network=network, model="independent")
    assert prediction.makespan_s == pytest.approx(1e-3 + 10e-6 + 0.01, rel=1e-12)


def test_arrays_become_messages() -> None:
    numpy = pytest.importorskip("numpy")
    ranks = 8
    src = numpy.arange(ranks)
    program = flowcast.Program.from_messages(ranks, src, (src + 1) % ranks, numpy.full(ranks, 4096))
    table = flowcast.predict(program).message_table()
    assert table["dst"].to_list() == list((src + 1) % ranks)


def test_collectives_include_all_ranks() -> None:
    program = flowcast.Program(4).collective("allreduce", 8)
    assert program.trace().collectives > 0
    with pytest.raises(ValueError, match="expected one of barrier"):
        program.collective("allgossip")


@pytest.mark.parametrize("name", flowcast.networks())
def test_every_network_survives_its_dataclass(name: str) -> None:
    network = flowcast.Network.load(name)
    file = NetworkFile.of(network)
    assert file.network() == network
    assert NetworkFile.from_toml(file.to_toml()) == file


def test_the_metadata_of_a_fit_survives_the_dataclass() -> None:
    text = NetworkFile("mine", nic=Nic(latency="5us", bandwidth="1GB/s")).to_toml()
    network = flowcast.Network.from_toml(f'{text}\n[fit]\nmisfit = 0.05\nwarnings = ["L is held at 0"]\n')
    file = NetworkFile.of(network)
    assert file.fit == {"misfit": 0.05, "warnings": ["L is held at 0"]}
    assert file.network() == network


def test_wrong_networks_and_programs_are_refused() -> None:
    with pytest.raises(flowcast.InputError, match="latency"):
        NetworkFile("mine", nic=Nic(latency="5", bandwidth="1GB/s")).network()
    with pytest.raises(ValueError, match="found rank 2, expected one of 2"):
        flowcast.Program(2).rank(0).send(2, 1)
    with pytest.raises(IndexError):
        flowcast.Program(2).rank(2)


def test_a_program_is_placed_with_the_shortest_replay() -> None:
    found = flowcast.place(LU, "gige-tcp", nodes=2, ranks_per_node=2)
    mappings = [(0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 1, 0)]
    times = {nodes: flowcast.predict(LU, mapping=nodes).makespan_s for nodes in mappings}
    assert (found.mappings, tuple(found.best[0])) == (3, min(times, key=lambda nodes: times[nodes]))
    assert found.times["time_s"].to_list() == sorted(times.values())
    with ThreadPoolExecutor(2) as pool:
        assert flowcast.place(flowcast.Trace.open(LU), "gige-tcp", nodes=2, ranks_per_node=2, executor=pool).best == found.best
    with pytest.raises(flowcast.InputError, match="found a trace, expected steps"):
        flowcast.place(LU, "gige-tcp", nodes=2, ranks_per_node=2, inside="1us")


def test_a_matrix_is_placed_with_few_links_between_ranks(tmp_path: Path) -> None:
    matrix = tmp_path / "pairs.csv"
    matrix.write_text("from,to,bytes\n0,2,1000\n1,3,1000\n3,1,1000\n")
    found = flowcast.place(matrix, "gige-tcp", nodes=2, ranks_per_node=[2, 3], objective="hops", moves=10_000)
    assert (found.verdict, found.value, found.baselines) == ("gain", 0, {"fill": 6000, "round-robin": 0})
    assert found.node_of_rank[0] == found.node_of_rank[2] != found.node_of_rank[1]
    assert len(found.times) == 0
    timed = flowcast.place(matrix, "gige-tcp", nodes=2, ranks_per_node=[2, 3], moves=40)
    assert timed.best == [timed.node_of_rank] and timed.value < timed.baselines["fill"]
    with pytest.raises(flowcast.InputError, match="expected time or hops"):
        flowcast.place(matrix, "gige-tcp", nodes=2, ranks_per_node=2, objective="bytes")
    with pytest.raises(flowcast.InputError, match="found 4 ranks, expected at most 2"):
        flowcast.place(matrix, "gige-tcp", nodes=2, ranks_per_node=1)

