"""Tables of changes: what is wrong with them is counted, and never used."""

from __future__ import annotations

import io
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.core.trace import Trace
from unstale.errors import InputError
from unstale.traces.problems import Problems
from unstale.traces.read import read
from unstale.traces.times import moment
from unstale.traces.weights import weigh
from unstale.traces.write import write

NOW = 1_800_000_000.0
MAY = 1_714_557_600  # 2024-05-01 10:00 UTC, by date -u -d @1714557600


def sets(trace: Trace) -> dict[str, list[float]]:
    return {name: trace.changes(i).tolist() for i, name in enumerate(trace.names)}


def csv(tmp_path: Path, text: str) -> str:
    file = tmp_path / "t.csv"
    file.write_text(text, "utf-8")
    return str(file)


def parquet(tmp_path: Path, **columns: object) -> str:
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    return str(tmp_path / "t.parquet")


def test_everything_wrong_is_counted_once(tmp_path: Path) -> None:
    text = f"""source,t
a,{MAY}
a,{MAY - 60}
a,{MAY}
a,soon
,{MAY}
a,
b,{MAY},extra
b,2030-01-01T00:00:00Z
b,2024-05-01 10:00
b,2024-05-01T12:00:01+02:00
"""
    trace, problems = read(csv(tmp_path, text), now=NOW)
    assert sets(trace) == {"a": [MAY - 60, MAY], "b": [MAY, MAY + 1]}
    assert problems.counts() == {
        "malformed": 2,
        "missing_source": 1,
        "missing_time": 1,
        "future": 1,
        "duplicate": 1,
        "unsorted": 1,
        "zoneless": 1,
    }
    assert problems.rows == 10
    assert problems.rows == len(trace.times) + 2 + 1 + 1 + 1 + 1
    assert str(problems).splitlines() == [
        "2 rows cannot be read and were left out (first: 3 values instead of 2 in 'b,1714557600,extra')",
        "1 row names no source and was left out",
        "1 row has no time and was left out",
        "1 time is in the future and was left out (first: 2030-01-01 00:00:00+00:00 in row 7)",
        "1 row repeats another and was counted once",
        "1 time is earlier than the one before it of the same source: sorted",
        "1 time has no zone and was read as UTC",
    ]


def test_a_clean_table_has_nothing_to_say(tmp_path: Path) -> None:
    # sorted by time alone is sorted for each source
    _, problems = read(csv(tmp_path, "source,t\nb,1\na,2\nb,3\na,3\n"), now=NOW)
    assert problems == Problems(rows=4, columns=("source", "t"))
    assert problems.lines() == []


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["", "a", "b", "007"]),
        st.one_of(st.integers(-100, 100).map(str), st.sampled_from(["", "x", "nan", "inf", "1e400", "9e9", "-9e15"])),
    ),
    min_size=1,
)


@given(ROWS)
def test_no_row_is_lost_or_used_twice(rows: list[tuple[str, str]]) -> None:
    import tempfile

    good = {(s, float(t)) for s, t in rows if s and t.lstrip("-").isdigit()}
    bad = sum(not (s and t.lstrip("-").isdigit()) for s, t in rows)
    with tempfile.TemporaryDirectory() as folder:
        path = csv(Path(folder), "source,t\n" + "".join(f"{s},{t}\n" for s, t in rows))
        if not good:
            with pytest.raises(InputError, match="has no change that can be used"):
                read(path, now=NOW)
            return
        trace, problems = read(path, now=NOW)
    assert {(name, t) for name, times in sets(trace).items() for t in times} == good
    left_out = problems.malformed + problems.missing_source + problems.missing_time + problems.future
    assert left_out == bad
    assert problems.rows == len(rows) == len(good) + bad + problems.duplicate


@pytest.mark.parametrize(
    ("text", "seconds", "zoneless"),
    [
        ("2024-05-01T10:00:00Z", MAY, False),
        ("2024-05-01T12:00:00+02:00", MAY, False),
        ("2024-05-01 10:00:00.5+00:00", MAY + 0.5, False),
        ("2024-05-01 10:00:00 UTC", MAY, False),
        ("20240501T100000Z", MAY, False),
        ("Wed, 01 May 2024 10:00:00 GMT", MAY, False),
        ("Wed, 1 May 2024 06:00 EDT", MAY, False),
        ("2024-05-01T10:00", MAY, True),
        ("2024-05-01", MAY - 36_000, True),
        ("1969-12-31T23:59:59Z", -1, False),
    ],
)
def test_moments(text: str, seconds: float, zoneless: bool) -> None:
    assert moment(text) == (seconds, zoneless)


@pytest.mark.parametrize("text", ["soon", "", "01/02/2024", "2024-13-01", "12", "1 Jan 20", "0000-01-01", ",,"])
def test_what_is_no_moment(text: str) -> None:
    assert np.isnan(moment(text)[0])


@pytest.mark.parametrize(
    ("values", "zoneless"),
    [
        (pa.array([MAY], pa.int32()), 0),
        (pa.array([MAY], pa.uint64()), 0),
        (pa.array([MAY], pa.float64()), 0),
        (pa.array([MAY], pa.decimal128(12, 0)), 0),
        (pa.array([MAY], pa.timestamp("s", "UTC")), 0),
        (pa.array([MAY * 1000], pa.timestamp("ms", "Europe/Berlin")), 0),
        (pa.array([MAY * 10**9], pa.timestamp("ns")), 1),
        (pa.array([f"{MAY}"], pa.large_string()), 0),
        (pa.array(["2024-05-01T10:00:00Z"]).dictionary_encode(), 0),
        (pa.array(["2024-05-01T10:00:00Z"], pa.string_view()), 0),
    ],
    ids=lambda v: str(getattr(v, "type", v)),
)
def test_columns_of_every_kind(tmp_path: Path, values: pa.Array, zoneless: int) -> None:
    trace, problems = read(parquet(tmp_path, source=["a"], t=values), now=NOW)
    assert trace.times.tolist() == [MAY]
    assert problems.zoneless == zoneless


def test_dates_are_midnights(tmp_path: Path) -> None:
    day = datetime(2024, 5, 1, tzinfo=UTC).date()
    trace, problems = read(parquet(tmp_path, name=[5, 6], date=[day, None]), now=NOW)
    assert sets(trace) == {"5": [MAY - 36_000]}
    assert problems.counts() == {"missing_time": 1, "zoneless": 1}
    assert problems.columns == ("name", "date")


def test_dictionaries_from_elsewhere(tmp_path: Path) -> None:
    names = pa.DictionaryArray.from_arrays([0, 1, 2, None], ["a", "b", "a"])
    trace, problems = read(parquet(tmp_path, source=names, t=[3, 1, 2, 4]), now=NOW)
    assert sets(trace) == {"a": [2.0, 3.0], "b": [1.0]}
    assert problems.counts() == {"missing_source": 1, "unsorted": 1}
    coded = pa.array([7, 7, 8]).dictionary_encode()
    assert sets(read(parquet(tmp_path, source=coded, t=[1, 2, 3]), now=NOW)[0]) == {"7": [1.0, 2.0], "8": [3.0]}


def test_names_stay_as_they_are_written(tmp_path: Path) -> None:
    trace, _ = read(csv(tmp_path, 'URL,Timestamp,size\n007,1,5\n"a,\nb",2,6\nnull,3,7\nnan,4,x\n'), now=NOW)
    assert set(trace.names) == {"007", "a,\nb", "null", "nan"}


def test_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    lines = [
        '{"id": 7, "time": 5}',
        '{"id": "a", "time": "1970-01-01T00:00:09Z"}',
        "",
        "{",
        "[1]",
        '{"id": "a"}',
        '{"id": "a", "time": NaN}',
        '{"id": "a", "time": true}',
        '{"id": null, "time": 1}',
    ]
    file.write_text("\n".join(lines))
    trace, problems = read(str(file), now=NOW)
    assert sets(trace) == {"7": [5.0], "a": [9.0]}
    assert problems.counts() == {"malformed": 4, "missing_source": 1, "missing_time": 1}
    assert problems.examples["malformed"] == "no JSON object in line 4"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (b"source,t\na,1\n", b'{"source": "a", "t": 1}\n'):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        assert sets(read("-")[0]) == {"a": [1.0]}


def test_the_present_is_now_unless_told(tmp_path: Path) -> None:
    path = csv(tmp_path, f"source,t\na,{time.time() - 5}\na,{time.time() + 1000}\n")
    assert read(path)[1].counts() == {"future": 1}


def test_chosen_columns(tmp_path: Path) -> None:
    path = csv(tmp_path, "source,t,host,seen\na,1,x,2\n")
    trace, problems = read(path, source_column="host", time_column="seen", now=NOW)
    assert sets(trace) == {"x": [2.0]}
    assert problems.columns == ("host", "seen")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "has no column of sources: it has nothing; call one source"),
        ("a,b\n1,2\n", "has no column of sources: it has a, b; call one source, or import it with unstale trace csv"),
        ("source,b\n1,2\n", "has no column of times: it has source, b; call one t"),
        ("source,t,t\na,1,2\n", "column 't' appears twice: keep one of them"),
        ("source,t\n", "has no change that can be used: it has no rows"),
        ("source,t\na,1e12\n", "1 time is in the future .* milliseconds"),
        ("source,t\na,x\n", "1 row cannot be read and was left out .first: 'x' in row 1."),
    ],
)
def test_a_table_without_changes_is_refused_in_a_sentence(tmp_path: Path, text: str, match: str) -> None:
    with pytest.raises(InputError, match=match) as error:
        read(csv(tmp_path, text), now=NOW)
    assert "\n" not in str(error.value)


def test_other_refusals(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"file 'no\.csv' does not exist"):
        read("no.csv")
    (tmp_path / "t.xls").touch()
    with pytest.raises(InputError, match=r"unknown ending: use \.csv"):
        read(str(tmp_path / "t.xls"))
    with pytest.raises(InputError, match=r"column 'z' is not in .*: it has source, t"):
        read(csv(tmp_path, "source,t\na,1\n"), time_column="z")
    with pytest.raises(InputError, match="column 't' holds bool, not times"):
        read(parquet(tmp_path, source=["a"], t=[True]))
    with pytest.raises(InputError, match="column 'source' holds list"):
        read(parquet(tmp_path, source=[["a"]], t=[1]))
    (tmp_path / "t.csv").write_bytes(b"source,t\n\xff\xfe,1\n")
    with pytest.raises(InputError, match="cannot be read as csv"):
        read(str(tmp_path / "t.csv"))


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("step", [1.0, 0.1])
def test_what_is_written_is_read_again(tmp_path: Path, ending: str, step: float) -> None:
    trace = Trace.of(["b", "a", "b", "é,\n"], MAY + step * np.arange(4))
    path = str(tmp_path / f"t.{ending}")
    write(trace, path)
    again, problems = read(path, now=NOW)
    assert sets(again) == sets(trace)
    assert not problems.counts()
    if ending == "parquet":
        table = pq.read_table(path)
        assert table.schema.names == ["source", "t"]
        assert table.schema.field("t").type == (pa.int64() if step == 1.0 else pa.float64())
        assert table.column("source").to_pylist() == ["a", "b", "b", "é,\n"]


def test_half_a_million_rows_are_read_in_less_than_a_second(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    which = np.sort(rng.integers(0, 28_000, 500_000))
    path = parquet(tmp_path, source=pa.array([f"source-{i}" for i in which]), t=rng.integers(0, 10**9, 500_000))
    start = time.process_time()
    trace, problems = read(path)
    spent = time.process_time() - start
    assert len(trace.times) + problems.duplicate == 500_000
    assert problems.unsorted > 200_000
    assert spent < 1.0


def test_weights(tmp_path: Path) -> None:
    trace = Trace.of(["a", "b", "c", "c"], [1, 2, 3, 4])
    got = weigh(trace, csv(tmp_path, "source,weight\nc,5\nz,1\na,0\n"))
    assert got.trace.names == ("a", "c")
    assert got.trace.counts().tolist() == [1, 2]
    assert got.weight.tolist() == [0.0, 5.0]
    assert got.lines() == [
        "1 of 3 sources have no weight and were left out",
        "1 weights are of sources that the trace does not have",
    ]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("source,w\na,1\n", "column 'weight' is not in .*: it has source, w"),
        ("source,weight\na,-1\n", r"weight\[0\] -1.0 must be a finite number at least 0"),
        ("source,weight\na,\n", r"must be numbers|must be a finite number"),
        ("source,weight\na,x\n", "must be numbers"),
        ("source,weight\na,1\na,2\n", "weight of 'a' is in .* more than once"),
        ("source,weight\nb,1\n", "give no source of the trace a weight above 0"),
        ("source,weight\na,1,2\n", "cannot be read: 3 values instead of 2"),
    ],
)
def test_weights_that_cannot_be_used(tmp_path: Path, text: str, match: str) -> None:
    with pytest.raises(InputError, match=match):
        weigh(Trace.of(["a"], [1]), csv(tmp_path, text))
