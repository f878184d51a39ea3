"""Tables in other libraries and in notebooks."""

import math
import pickle
import sys

import pytest

import flowcast_hpc as flowcast

LU = "examples/lu.S.4.dim.gz"


def test_columns_are_numpy_views() -> None:
    numpy = pytest.importorskip("numpy")
    table = flowcast.predict(LU).message_table()
    sizes, sent = numpy.asarray(table["bytes"]), numpy.asarray(table["sent_s"])
    assert (sizes.dtype, sent.dtype) == (numpy.int64, numpy.float64)
    assert sizes.sum() == flowcast.predict(LU).bytes
    assert numpy.shares_memory(sizes, numpy.asarray(table["bytes"]))
    assert not sizes.flags.writeable
    del table
    assert sent.min() == 0.0 or sent.min() > 0.0
    assert len(sent) == len(sizes)


def test_arrow_reads_the_same_values_without_copying() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    numpy = pytest.importorskip("numpy")
    table = flowcast.sweep(LU, grid={"latency": "1us..9us:3", "point_to_point.rule": ["hockney", "loggops"]})
    arrow = pyarrow.table(table)
    assert arrow.column_names == table.column_names
    assert arrow.to_pydict() == table.to_dict()
    view = numpy.asarray(table["makespan_s"])
    assert arrow["makespan_s"].chunk(0).buffers()[1].address == view.__array_interface__["data"][0]
    assert pyarrow.schema(table).names == table.column_names
    del table, view
    assert len(arrow["makespan_s"].to_pylist()) == 6


def test_polars_reads_tables() -> None:
    polars = pytest.importorskip("polars")
    table = flowcast.predict(LU).ranks
    assert polars.DataFrame(table).to_dict(as_series=False) == table.to_dict()
    assert polars.DataFrame(table[:0]).columns == table.to_polars()[:0].columns == table.columns


def test_pandas_reads_tables() -> None:
    pandas = pytest.importorskip("pandas")
    table = flowcast.sweep(LU, network=["gige-tcp", "gige-lam"], grid={"latency": "1us..9us:3"})
    for frame in (pandas.DataFrame(table), table.to_pandas()):
        assert frame.to_dict("list") == table.to_dict()
        assert list(frame.columns) == table.columns
    assert list(table[:0].to_pandas().columns) == table.columns


def test_a_missing_library_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    table = flowcast.Table({"a": [1]})
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(flowcast.MissingError, match=f"pip install {name}"):
            getattr(table, f"to_{name}")()


def test_rows_and_slices_of_tables() -> None:
    table = flowcast.Table({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "c": ["x", "y", "zz"]}, "# head\n")
    assert list(table) == [{"a": 1, "b": 0.5, "c": "x"}, {"a": 2, "b": 1.5, "c": "y"}, {"a": 3, "b": 2.5, "c": "zz"}]
    assert table[-1] == {"a": 3, "b": 2.5, "c": "zz"}
    assert table[1:].to_dict() == {"a": [2, 3], "b": [1.5, 2.5], "c": ["y", "zz"]}
    assert table[::-2].to_csv() == "# head\na,b,c\n3,2.5,zz\n1,0.5,x\n"
    assert table["c"][1:].to_list() == ["y", "zz"]
    assert len(table[3:]) == 0
    assert table[3:].columns == ["a", "b", "c"]
    with pytest.raises(IndexError, match="found row 3, expected one of 3"):
        table[3]


def test_an_empty_table_and_an_unread_stream_are_valid() -> None:
    table = flowcast.Table({"a": [1, 2], "b": [0.5, math.nan], "c": ["x", "<y>"]})
    table.__arrow_c_stream__()
    table.__arrow_c_schema__()
    assert len(flowcast.Table({})) == 0
    assert table["c"][-1] == "<y>"
    with pytest.raises(ValueError, match="found 1 values, expected 2"):
        flowcast.Table({"a": [1, 2], "b": [1]})
    with pytest.raises(KeyError, match="expected one of a, b, c"):
        table["d"]
    with pytest.raises(IndexError):
        table["a"][2]


def test_notebooks_show_tables_and_pages() -> None:
    prediction = flowcast.predict(LU)
    assert "<table>" in prediction._repr_html_()
    assert "gige-tcp" in prediction._repr_html_()
    assert "&lt;y&gt;" in flowcast.Table({"c": ["<y>"]})._repr_html_()
    page = prediction.to_html()
    assert page.startswith("<!")
    assert "</html>" in page


def test_the_csv_of_a_table_reads_back_equal() -> None:
    table = flowcast.sweep(LU, grid={"latency": ["1us", "0us"]})
    again = flowcast.Table.from_csv(table.to_csv())
    assert again.to_csv() == table.to_csv()
    assert again["set"].to_list() == [0, 1]
    assert again.columns == again.column_names == ["set", "nic.latency_s", "makespan_s", "communication_share"]
    assert again["nic.latency_s"].to_list() == [1e-6, 0.0]


def test_a_table_keeps_its_types_in_a_pickle_and_its_texts_in_csv() -> None:
    table = flowcast.Table({"name": ["a, b", 'c "d"'], "error": [0.0, 1.0]}, "# head\n")
    again = pickle.loads(pickle.dumps(table))
    assert again.to_dict() == table.to_dict()
    assert isinstance(again["error"][0], float)
    assert again.to_csv() == table.to_csv() == '# head\nname,error\n"a, b",0\n"c ""d""",1\n'
    assert flowcast.Table.from_csv(table.to_csv())["name"].to_list() == ["a, b", 'c "d"']
