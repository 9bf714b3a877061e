"""Compiled filters in a file."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from vestnik import Event, Filter, InvalidIndex
from vestnik.matching import CompiledFilters, compile_filters
from vestnik.matching.batch import mapped

FILTERS = {"a": Filter.parse("x > 1 AND s LIKE '%b%'"), "b": Filter.parse("ANY l = 2 OR x = 1")}
EVENTS = [Event("t", {"x": 2, "s": "abc"}), Event("t", {"l": [1, 2]}), Event("t")]


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    compile_filters(FILTERS).save(tmp_path / "index")
    loaded = CompiledFilters.load(tmp_path / "index")
    assert loaded.ids == ["a", "b"] and loaded.count_batch(EVENTS).tolist() == [1, 1, 0]
    assert [file.name for file in tmp_path.iterdir()] == ["index"]


def test_saving_again_replaces_a_file_that_is_in_use(tmp_path: Path) -> None:
    compile_filters(FILTERS).save(tmp_path / "index")
    loaded = CompiledFilters.load(tmp_path / "index")
    compile_filters({"c": Filter.all()}).save(tmp_path / "index")
    assert loaded.count_batch(EVENTS).tolist() == [1, 1, 0]
    assert CompiledFilters.load(tmp_path / "index").ids == ["c"]


@pytest.mark.parametrize("content", [b"", b"no index", mapped._MAGIC])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "index").write_bytes(content)
    with pytest.raises(InvalidIndex) as caught:
        CompiledFilters.load(tmp_path / "index")
    assert caught.value.path == str(tmp_path / "index")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.path, again.reason, str(again)) == (caught.value.path, caught.value.reason, str(caught.value))


def test_an_index_of_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as changed:
        changed.setattr(mapped, "_MAGIC", mapped._NAME + b"0001")
        compile_filters(FILTERS).save(tmp_path / "index")
    with pytest.raises(InvalidIndex, match="another release"):
        CompiledFilters.load(tmp_path / "index")


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "index"
    compile_filters(FILTERS).save(path)
    whole = path.read_bytes()
    for size in (20, 40, 100, len(whole) // 2, len(whole) - 2000):
        path.write_bytes(whole[:size])
        with pytest.raises(InvalidIndex, match="cut short"):
            CompiledFilters.load(path)


def test_something_else_in_the_file_is_refused(tmp_path: Path) -> None:
    mapped.write_mapped(tmp_path / "index", {"no": "filters"})
    with pytest.raises(InvalidIndex, match="no compiled filters"):
        CompiledFilters.load(tmp_path / "index")


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    with pytest.raises(IsADirectoryError):
        compile_filters(FILTERS).save(tmp_path / "index")
    assert [file.name for file in tmp_path.iterdir()] == ["index"]


def test_a_write_that_fails_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "nowhere" / "index", tmp_path / "file" / "index"):
        with pytest.raises(OSError) as caught:
            compile_filters(FILTERS).save(path)
        assert caught.value.filename == str(path)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(TypeError, match=r"Filter\.parse"):
        compile_filters({"a": "x > 1"})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="layout"):
        compile_filters(FILTERS, layout="wide")
    wrong: list[Any] = [[Filter.all()], Filter.all(), ["ab"], [("a", Filter.all(), 1)]]
    for filters in wrong:
        with pytest.raises(TypeError, match="mapping of ids to filters"):
            compile_filters(filters)
    with pytest.raises(TypeError, match=r"a batch is of Events, .* not of dict"):
        compile_filters(FILTERS).match_batch([EVENTS[0], {}])
    with pytest.raises(TypeError, match="a batch is a list of Events, not one Event"):
        compile_filters(FILTERS).match_batch(EVENTS[0])
