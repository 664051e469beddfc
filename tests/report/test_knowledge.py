"""The report of a knowledge base: its pieces hold every fact, names are found, and contradictions are listed."""

import base64
import gzip
import json
import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from zlib import crc32

import hostile
import polars as pl
import pytest
from bases import Base, answered, fact, tree, written
from command import Command
from hypothesis import given
from hypothesis import strategies as st

import lmkbc
from lmkbc.kb.pages import entity_pieces
from lmkbc.kb.pages.entity_pieces import ROWS, RowGroups, keys

IN = 1
MISSING = 3
NOTHING = 2
OUT = 0


NAMES = st.text(st.sampled_from("ab ß. É日\U0001f600"), min_size=1, max_size=6).filter(str.strip)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return hostile.base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def shown(made: Any) -> Path:
    page = lmkbc.report(made.out)
    assert (page.path, page.folder) == (made.out / "report" / "index.html", True)
    return page.path.parent


def content(path: Path) -> dict[str, Any]:
    """Return what a piece holds."""
    packed = re.fullmatch(r'piece\("(\w+/[0-9]+)","([A-Za-z0-9+/=]+)"\);\n', path.read_text("ascii"))
    assert packed
    assert path.match(f"{packed[1]}.js")
    unpacked: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed[2])))
    return unpacked


def entity(folder: Path, key: str) -> list[tuple[Any, ...]]:
    """Return the rows of an entity, found as the page finds them."""
    piece = content(folder / "facts" / f"{crc32(key.encode()) % len([*folder.glob('facts/*')])}.js")
    place = piece["key"].index(key)
    start, rows = sum(piece["len"][:place]), piece["rows"]
    columns = ("kind", "relation", "other", "text", "confidence")
    return [tuple(rows[column][at] for column in columns) for at in range(start, start + piece["len"][place])]


def test_an_entity_has_its_facts_and_those_that_name_it_and_what_was_asked_in_vain(shown: Path) -> None:
    assert entity(shown, "Q1016") == [
        (OUT, 1, None, "5", 700),
        (IN, 0, "Q657", "Chad", 900),
        (IN, 0, "Q1032", "Niger", 550),
        (NOTHING, 0, None, "abstained", None),
    ]
    assert (MISSING, 1) in [row[:2] for row in entity(shown, "Q1032")]
    assert len(entity(shown, "Q9")) == hostile.MANY


def test_every_fact_has_a_place(made: Any, shown: Path) -> None:
    facts = pl.read_parquet(made.out / "facts/*/*.parquet", hive_partitioning=True)
    held = Counter[int]()
    for path in shown.glob("facts/*"):
        held.update(content(path)["rows"]["kind"])
    counts = json.loads((made.out / "manifest.json").read_text())["counts"]
    assert held[OUT] == len(facts) == counts["facts"]
    assert held[IN] == len(facts.filter(pl.col("relation") == "country-borders"))
    assert (held[NOTHING], held[MISSING]) == (counts["nothing"], counts["failed"])


def test_subjects_that_share_a_key_have_an_entry_each_and_objects_their_label(tmp_path: Path) -> None:
    bare = {"subject_id": None, "object_id": "Q55", "object_label": "Netherlands"}
    facts = [
        fact(at, "country-borders", "Holland", 0.9, subject=name, subject_entity=at, **bare)
        for at, name in enumerate(("Yahoo", "Yahoo!", "Yahoo+"))
    ]
    shown = lmkbc.report(written(tmp_path / "kb", facts)).path.parent
    for key in (":yahoo", ":yahoo~1", ":yahoo+"):
        assert entity(shown, key) == [(OUT, 0, "Q55", "Holland (Netherlands)", 900)]


@given(st.lists(st.tuples(NAMES, st.sampled_from([OUT, IN])), min_size=1, max_size=40))
def test_rows_are_found_by_the_hash_of_their_key_and_names_by_their_beginning(some: list[tuple[str, int]]) -> None:
    made = keys([None] * len(some), [name for name, _ in some])
    columns = {"key": made, "name": [name for name, _ in some], "kind": [kind for _, kind in some]}
    rest = {"relation": 0, "other": None, "text": "x", "confidence": 0.5, "source": "", "known": False}
    rows = pl.DataFrame(columns).with_columns(**{name: pl.lit(value) for name, value in rest.items()}).cast(ROWS)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        for name, value in (("GROUP", 8), ("PIECE", 2), ("PAGE", 3)):
            patch.setattr(entity_pieces, name, value)
        groups = RowGroups(Path(folder), len(rows))
        for part in rows.iter_slices(5):
            groups.add(part)
        seen, names = list[int](), list[pl.DataFrame]()
        for numbers, group in groups.sorted():
            seen += numbers
            assert all(crc32(key.encode()) % groups.pieces == piece for key, piece in group[["key", "piece"]].rows())
            assert [name for name, _ in entity_pieces.pieces(numbers, group, entity_pieces.named(group))] == [
                f"facts/{number}.js" for number in numbers
            ]
            names.append(entity_pieces.named(group))
        assert sorted(seen) == [*range(groups.pieces)]
        whole = pl.concat(names)
        assert sorted(whole["key"].unique()) == sorted({*made})
        ordered = entity_pieces.in_order(whole)
        begins = entity_pieces.starts(ordered)
        for fold, key in ordered[["fold", "key"]].rows():
            first = max((at for at, start in enumerate(begins) if start < fold), default=0)
            last = max((at for at, start in enumerate(begins) if start.startswith(fold)), default=first)
            own = ordered[first * 3 : (max(first, last) + 1) * 3]
            assert key in own.filter(pl.col("fold") == fold)["key"]


def test_the_page_tells_what_does_not_agree(shown: Path) -> None:
    page = (shown / "index.html").read_text()
    rows = {row[0]: row[1] for row in re.findall(r'<tr><th scope="row">([^<]*)</th>\n<td class="n">([^<]*)</td>', page)}
    assert rows["country-borders: stated from one side only, though both sides were asked"] == "4"
    assert "children: several objects, where a subject has one" not in rows  # the build settles them
    assert rows["one QID, several names"] == "1"  # Libya
    assert rows["one name, several entities"] == "1"  # Chad, with a QID and without
    assert re.search(r'<a href="#Q657">Chad</a> → <a href="#Q1016">Libya</a>', page)


def test_no_name_is_markup_and_long_names_are_cut(shown: Path) -> None:
    page = (shown / "index.html").read_text()
    assert page.count("<script") == 1
    assert "onerror=" not in re.sub(r"&lt;.*?&gt;", "", page.partition('<div id="data"')[0])
    assert "x" * 300 not in page
    assert "cut: 10005 characters in all" in str([content(path) for path in shown.glob("*/*.js")])
    assert "default-src 'none'" in page
    loaded = re.findall(r"<(?:link|script|img|iframe)[^>]*(?:src|href)=\"([^\"]*)", page)
    assert loaded == ["icon.svg", "style.css", "page.js"]


def test_the_same_base_gives_the_same_bytes(made: Any, shown: Path, tmp_path: Path) -> None:
    lmkbc.report(made.out, tmp_path / "again")
    assert tree(tmp_path / "again") == tree(shown)


def test_the_base_is_not_disturbed_and_its_report_is_replaced(made: Any, tmp_path: Path) -> None:
    base = tmp_path / "kb"
    shutil.copytree(made.out, base)
    made.out, own = base, made.out
    try:
        lmkbc.report(base)
        (base / "report" / "mine.txt").write_text("mine")
        before = tree(base)
        hostile.again(made)
        lmkbc.report(base)
        assert tree(base) == before
    finally:
        made.out = own


def test_a_part_of_a_base(made: Any, tmp_path: Path) -> None:
    lmkbc.report(made.out, tmp_path / "part", relation="CountryBordersCountry", limit=1)
    page = (tmp_path / "part" / "index.html").read_text()
    assert "a part of the base" in page
    assert "<strong>2</strong> facts" in page
    assert len([*(tmp_path / "part").glob("facts/*")]) == 1


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("--gold", "gold.jsonl"), "--gold is of a run, and kb is a knowledge base: leave it out"),
        (("--from", "said.jsonl"), "--from is of a run"),
        (("--split", "val"), "--split is of a run"),
        (("--out", "kb"), "holds files that are not of a knowledge base's report"),
        (("--out", "file"), "file is a file: name a directory"),
        (("--relation", "spouse"), "kb has no facts of 'spouse'"),
    ],
)
def test_what_cannot_be_written_is_refused(made: Any, command: Command, words: tuple[str, str], wrong: str) -> None:
    shutil.copytree(made.out, "kb")
    Path("file").write_text("mine")
    before = tree(Path())
    assert wrong in command.fails("report", "kb", *words)
    assert tree(Path()) == before


def test_a_base_without_facts_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = Base(tmp_path, ["Chad", "Mali"])
    base.build(monkeypatch, answered, ["country-borders"])
    assert "Chad" in lmkbc.report(base.out).path.read_text()


def test_classes_of_a_manifest_without_nouns_are_those_of_the_workspace(made: Any, tmp_path: Path) -> None:
    shutil.copytree(made.out, tmp_path / "kb")
    whole = lmkbc.report(tmp_path / "kb", out=tmp_path / "whole").path
    about = json.loads((tmp_path / "kb" / "manifest.json").read_bytes())
    for one in about["relations"].values():
        one |= {"subject": "", "object": "", "definition": ""}
    del about["sha256"]
    (tmp_path / "kb" / "manifest.json").write_text(json.dumps(about))
    bare = lmkbc.report(tmp_path / "kb", out=tmp_path / "bare").path
    assert "unknown class" not in bare.read_text()
    assert bare.read_text() == whole.read_text()


def test_models_that_agree_on_a_fact_are_named_one_by_one(tmp_path: Path) -> None:
    facts = [fact(row, "children", "2", 0.9, literal="2", model=model) for row, model in enumerate(("a", "a; b"))]
    page = lmkbc.report(written(tmp_path / "kb", facts)).path.read_text("utf-8")
    assert re.search(r"models\W[^;]*\ba, b\b", page)
