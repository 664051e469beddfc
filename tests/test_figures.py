"""Figures that documents show: they are those of the file that the benchmark commands write, and of no other place."""

import tomllib
from pathlib import Path

import pytest

from eval.bench import figures

PAGE = """Before.

<!-- figures: one two-* -->

| row | F1 | seconds |
|---|---|---|
| a, b | 0.100 | - |
| `c` | | 3 |

<!-- end -->

| a, b | 9 | 9 |
"""
ROWS = {"a, b": {"F1": "0.500"}, "`c`": {"F1": "0.270", "seconds": "1,234", "not shown": "1"}}


def test_documents_show_the_figures_of_the_file() -> None:
    assert figures.differing() == [], f"to mend it: {figures.MENDED}"


def test_the_file_is_as_a_command_writes_it_and_every_entry_is_shown() -> None:
    assert figures.FIGURES.read_text(encoding="utf-8") == figures.written(figures.read())
    pages = {page: page.read_text(encoding="utf-8") for page in figures.pages()}
    for name, entry in figures.read().items():
        less = {one: other for one, other in figures.read().items() if one != name}
        with pytest.raises(ValueError, match="figures"):  # a table lacks its rows, columns or name
            [figures.filled(text, less) for text in pages.values()]
        assert set(entry) == {"command", "date", "machine", "rows"}


def test_a_recorded_table_is_put_where_it_is_named(tmp_path: Path) -> None:
    file = tmp_path / "figures.toml"
    figures.record(file, "one", {"a, b": {"F1": "0.500"}}, "python one.py --name 'a \"b\"'")
    figures.record(file, "two-x", {"`c`": ROWS["`c`"]}, "python two.py", "two cores")
    read = tomllib.loads(file.read_text(encoding="utf-8"))
    assert read["one"]["command"] == "python one.py --name 'a \"b\"'"
    assert "core" in read["one"]["machine"]
    filled = figures.filled(PAGE, read)
    assert "\n| a, b | 0.500 | - |\n| `c` | 0.270 | 1,234 |\n" in filled
    assert filled.endswith("\n| a, b | 9 | 9 |\n")
    figures.record(file, "one", {"a, b": {"F1": "0.600"}}, "python one.py")
    assert figures.filled(PAGE, figures.read(file)) == filled.replace("0.500", "0.600")
    figures.record(None, "one", ROWS)


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (PAGE.replace("two-*", "three"), "'three'"),
        (PAGE.replace("`c`", "`d`"), "no row '`d`'"),
        (PAGE.replace("0.100 | -", "0.100 | 2"), "no 'seconds' of 'a, b'"),
    ],
)
def test_a_cell_that_no_command_gives_is_refused(page: str, told: str) -> None:
    known = {"one": {"rows": ROWS}, "two-x": {"rows": {}}}
    with pytest.raises(ValueError, match=told):
        figures.filled(page, known)


def test_a_column_that_no_command_gives_is_the_document_s_own() -> None:
    page = (
        PAGE.replace("| F1 | seconds |", "| F1 | why |").replace("0.100 | -", "0.100 | as 1.0").replace("| 3 |", "| |")
    )
    known = {"one": {"rows": ROWS}, "two-x": {"rows": {}}}
    assert "| a, b | 0.500 | as 1.0 |" in figures.filled(page, known)


def test_the_command_is_kept_as_typed_less_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["python -m eval.bench replay", "--seed", "1", "--figures", "f.toml", "GPT-3"]
    monkeypatch.setattr("sys.argv", words)
    assert figures.typed() == "python -m eval.bench replay --seed 1 GPT-3"
