import bz2
import gzip
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command import Command
from stand_in import item

from lmkbc import InputError, LmkbcError
from lmkbc.link.index import AliasIndex
from lmkbc.link.index_sources import build_index
from lmkbc.testing import Example, GoldObject, Query


def write_dump(path: Path, entities: list[dict[str, Any]], broken: str = "") -> Path:
    lines = [json.dumps(entity) for entity in entities]
    if broken:
        lines.insert(1, broken)
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    return path


def entity(qid: str, label: str, alias: str = "", **more: Any) -> dict[str, Any]:
    aliases = {"en": [{"language": "en", "value": alias}]} if alias else []
    return {**item(qid, label, links=3), "aliases": aliases, **more}


def test_dump_entities_with_all_that_is_known(tmp_path: Path) -> None:
    river = {**entity("Q1", "Inn", "En"), "claims": item("Q1", "", ["Q4022"])["claims"]}
    german = {
        **entity("Q2", "x"),
        "labels": {"de": {"language": "de", "value": "Donau"}},
        "claims": [],
        "sitelinks": [],
    }
    any_language = {**entity("Q3", "x"), "labels": {"mul": {"language": "mul", "value": "Isar"}}, "descriptions": []}
    prop = {**entity("P31", "instance of"), "type": "property"}
    dump = write_dump(tmp_path / "d.json", [river, german, any_language, prop], broken='{"id": "Q9", "labels"')
    built = build_index(tmp_path / "i", dump=dump)
    index = AliasIndex(tmp_path / "i")
    assert (built.entities, built.names) == (2, 3)
    assert [(line, "JSON" in reason or "truncated" in reason) for _, line, reason in built.broken] == [(3, True)]
    (hit,) = index.exact("EN")
    assert (hit.label, hit.description, hit.classes, hit.popularity) == ("Inn", "about Inn", ("Q4022",), 3)
    assert index.exact("isar")[0].id == "Q3"
    build_index(tmp_path / "i", dump=dump, languages=("de",))
    assert [hit.id for hit in AliasIndex(tmp_path / "i").exact("donau")] == ["Q2"]


def test_only_entities_of_chosen_classes_and_what_lies_below(tmp_path: Path) -> None:
    kinds = {"Q1": "Q4022", "Q2": "Q47521", "Q3": "Q5"}
    entities = [
        {**entity(qid, qid + " name"), "claims": item(qid, "", [kind])["claims"]} for qid, kind in kinds.items()
    ]
    build_index(tmp_path / "i", dump=write_dump(tmp_path / "d.json", entities), classes=("Q4022",))
    assert set(AliasIndex(tmp_path / "i").labels(kinds)) == {"Q1", "Q2"}


def test_unknown_values_and_deprecated_classes_do_not_count(tmp_path: Path) -> None:
    claims = item("Q1", "", ["Q5", "Q6"])["claims"]
    claims["P31"][0]["rank"] = "deprecated"
    claims["P31"].append({"mainsnak": {"snaktype": "somevalue", "property": "P31"}, "rank": "normal"})
    build_index(tmp_path / "i", dump=write_dump(tmp_path / "d.json", [entity("Q1", "a", claims=claims)]))
    assert AliasIndex(tmp_path / "i").exact("a")[0].classes == ("Q6",)


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".zst", None)])
def test_compressed_dumps_give_the_same_index(
    tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes] | None
) -> None:
    pack = pack or pytest.importorskip("zstandard").compress
    dump = write_dump(tmp_path / "d.json", [entity(f"Q{i}", f"name {i}") for i in range(1, 50)])
    packed = tmp_path / f"d.json{suffix}"
    content = dump.read_bytes()
    packed.write_bytes(pack(content[:100]) + pack(content[100:]))  # several parts, as programs on many cores write
    plain = build_index(tmp_path / "plain", dump=dump)
    assert build_index(tmp_path / "packed", dump=packed) == plain
    assert (plain.entities, plain.names) == (49, 49)


BUILD = """
import sys, time
from pathlib import Path
from lmkbc.link import index_sources
from lmkbc.link.index_sources import build_index
index_sources.LINES_PER_SAVE = 50
def slowly(lines):
    print(lines, flush=True)
    time.sleep(0.05)
build_index(Path(sys.argv[1]), dump=Path(sys.argv[2]), report=slowly)
"""


@pytest.mark.kill
@pytest.mark.parametrize("packed", [False, pytest.param(True, marks=pytest.mark.whole)])
def test_a_killed_build_goes_on_and_ends_with_the_same_bytes(tmp_path: Path, packed: bool) -> None:
    dump = write_dump(
        tmp_path / "d.json", [entity(f"Q{i}", f"name {i}", f"alias {i}") for i in range(1, 1500)], broken="{"
    )
    if packed:
        (tmp_path / "d.json.gz").write_bytes(gzip.compress(dump.read_bytes()))
        dump = tmp_path / "d.json.gz"
    command = [sys.executable, "-c", BUILD, str(tmp_path / "killed"), str(dump)]
    for _ in range(2):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(3):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.stdout.close()
        assert process.wait() == -signal.SIGKILL
    resumed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(resumed.stdout.split()[0]) > 50, "the build started over"
    assert build_index(tmp_path / "whole", dump=dump).broken[0][1] == 3
    assert (tmp_path / "killed").read_bytes() == (tmp_path / "whole").read_bytes()
    assert not list(tmp_path.glob("*.partial"))


def test_a_build_of_other_inputs_starts_over(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,id\nInn,Q1\n")
    (tmp_path / "b.csv").write_text("text,id\nIsar,nonsense\n")
    with pytest.raises(InputError):
        build_index(tmp_path / "i", tables=[tmp_path / "a.csv", tmp_path / "b.csv"])
    (tmp_path / "b.csv").write_text("text,id\nIsar,Q2\n")
    build_index(tmp_path / "i", tables=[tmp_path / "b.csv"])
    assert AliasIndex(tmp_path / "i").exact("Inn") == ()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", 'text,id,popularity\n"Inn, river",Q1,4\nEn,Q1,\n'),
        ("t.tsv", "text\tid\tpopularity\nInn, river\tQ1\t4\nEn\tQ1\t\n"),
        ("t.json", '[{"text": "Inn, river", "id": "Q1", "popularity": 4}, {"text": "En", "id": "Q1"}]'),
        ("t.jsonl", '{"text": "Inn, river", "id": "Q1", "popularity": 4}\n{"text": "En", "id": "Q1"}\n'),
        ("quotes.tsv", 'text\tid\tpopularity\n"Inn", river\tQ1\t4\nEn\tQ1\t\n'),
    ],
)
def test_tables_of_every_format(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    built = build_index(tmp_path / "i", tables=[tmp_path / name])
    assert (built.entities, built.names) == (1, 2)
    (hit,) = AliasIndex(tmp_path / "i").exact("en")
    assert (hit.label, hit.popularity) == ('"Inn", river' if "quotes" in name else "Inn, river", 4)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "text,qid\nInn,Q1\n", "column qid: unknown; did you mean 'id'"),
        ("t.csv", "text\nInn\n", "lacks the column 'id'"),
        ("t.csv", "text,id\nInn,Q1\nEn,river\n", "row 2, column id: 'river' (for 'En') is no QID"),
        (
            "t.csv",
            "text,id\nInn,Q99999999999999999999\n",
            "row 1, column id: 'Q99999999999999999999' (for 'Inn') is no QID",
        ),
        ("t.csv", "text,id\nInn,Q1\u0663\n", "row 1, column id: 'Q1\u0663' (for 'Inn') is no QID"),
        (
            "t.csv",
            "text,id,classes\nInn,Q1,Q5 river\n",
            "row 1, column classes: 'Q5 river' (for 'Inn') is no list of QIDs",
        ),
        (
            "t.csv",
            "text,id,popularity\nInn,Q1,many\n",
            "row 1, column popularity: 'many' (for 'Inn') is no whole number",
        ),
        ("t.json", '[{"text": "Inn", "id": ["Q1"]}]', "column id: holds lists or objects"),
        ("t.json", '[{"text": "Inn", "id": null}]', "row 1, column id: '' (for 'Inn') is no QID"),
        ("t.json", "nonsense", "cannot be read as a table"),
        ("t.json", "[" * 100_000, "cannot be read as a table"),
        ("t.jsonl", "5", "cannot be read as a table"),
        ("t.csv", "", "cannot be read as a table"),
        ("t.xlsx", "", "no table"),
    ],
)
def test_wrong_tables_say_where(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError) as error:
        build_index(tmp_path / "i", tables=[tmp_path / name])
    assert message in str(error.value)


def test_labelled_rows_make_an_index(tmp_path: Path, examples, relations) -> None:
    build_index(tmp_path / "i", splits={"2023": examples}, relations=relations)
    index = AliasIndex(tmp_path / "i")
    assert [hit.id for hit in index.exact("inn")] == ["Q14369"]
    assert index.exact("Passau")[0].classes == ("Q515",)
    assert index.exact("5") == ()


def test_nothing_to_build_from(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to build an index from"):
        build_index(tmp_path / "i")
    with pytest.raises(InputError, match="does not exist"):
        build_index(tmp_path / "i", dump=tmp_path / "absent.json")
    with pytest.raises(InputError, match="class 'river' is no QID"):
        build_index(tmp_path / "i", dump=write_dump(tmp_path / "d.json", []), classes=["river"])


ODD_LINES = {
    "an id that is no QID": b'{"id": "Qx", "labels": {"en": {"value": "x"}}}',
    "an id too long": b'{"id": "Q99999999999999999999", "labels": {"en": {"value": "x"}}}',
    "a class that is a path": json.dumps({"id": "Q9", "claims": item("Q9", "", ["../x"])["claims"]}).encode(),
    "deep nesting": b'{"id": "Q9", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "no text": b'{"id": "Q9", "labels": {"en": {"value": "\xff"}}}',
    "half an emoji": b'{"id": "Q9", "labels": {"en": {"value": "\\ud83d"}}}',
    "null": b"null",
    "labels that are a text": b'{"id": "Q9", "labels": "x"}',
}


@pytest.mark.parametrize("line", ODD_LINES.values(), ids=ODD_LINES)
def test_a_line_of_another_shape_is_skipped_and_counted(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "d.json").write_bytes(b"[\n" + line + b',\n{"id": "Q1", "labels": {"en": {"value": "Inn"}}}\n]\n')
    built = build_index(tmp_path / "i", dump=tmp_path / "d.json")
    assert [number for _, number, _ in built.broken] == [2]
    assert built.entities == 1


def term(language: str, value: str) -> dict[str, Any]:
    return {language: {"language": language, "value": value}}


@pytest.mark.parametrize(
    ("labels", "name", "label"),
    [
        (term("de", "Donau") | term("en", "Danube") | term("mul", "Istros"), "donau", "Donau"),
        (term("de", "Donau") | term("en", "Danube") | term("mul", "Istros"), "istros", "Donau"),
        (term("mul", "Isar") | term("en", "Isar River"), "isar", "Isar"),
        (term("en", "Danube"), "danube", "Danube"),
        (term("fr", "Danube"), "danube", None),
    ],
)
def test_names_of_every_language_stay_and_english_is_the_last_resort(
    tmp_path: Path, labels: dict[str, Any], name: str, label: str | None
) -> None:
    dump = write_dump(tmp_path / "d.json", [{**entity("Q1", "x"), "labels": labels}])
    build_index(tmp_path / "i", dump=dump, languages=("de",))
    assert [hit.label for hit in AliasIndex(tmp_path / "i").exact(name)] == ([label] if label else [])
    assert not label or label == "Danube" or not AliasIndex(tmp_path / "i").exact("danube")


ENTITIES = [entity(f"Q{number}", f"name {number}") for number in range(1, 9)]
NO_DUMPS = {
    "indented": json.dumps(ENTITIES, indent=2),
    "indented with tabs": json.dumps(ENTITIES, indent="\t"),
    "one line": json.dumps(ENTITIES),
    "one entity": json.dumps(ENTITIES[0], indent=1),
    "EntityData": json.dumps({"entities": {"Q1": ENTITIES[0]}}),
    "EntityData indented": json.dumps({"entities": {"Q1": ENTITIES[0]}}, indent=2),
    "another JSONL": '{"SubjectEntity": "x"}\n' * 50,
    "text": "name,id\nInn,Q14369\n",
}


@pytest.mark.parametrize("content", NO_DUMPS.values(), ids=NO_DUMPS)
def test_what_is_no_dump_is_refused_after_a_few_lines(command: Command, tmp_path: Path, content: str) -> None:
    (tmp_path / "d.json").write_text(content + "\n" * 30_000)
    said = command.fails("link", "build", "i.sqlite", "--dump", "d.json")
    assert said.startswith("error: d.json, line ")
    assert "a dump holds one whole entity in each line" in said
    assert not (tmp_path / "i.sqlite").exists()


def test_a_dump_without_brackets_whose_first_line_is_broken_is_read(tmp_path: Path) -> None:
    lines = ["{", *map(json.dumps, ENTITIES[:2]), *["{"] * 9, *map(json.dumps, ENTITIES[2:])]
    (tmp_path / "d.json").write_text("\n".join(lines))
    built = build_index(tmp_path / "i", dump=tmp_path / "d.json")
    assert (built.entities, len(built.broken)) == (8, 10)


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".zst"])
def test_a_dump_that_was_cut_makes_no_index(tmp_path: Path, suffix: str) -> None:
    pack = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}.get(suffix)
    pack = pack or pytest.importorskip("zstandard").compress
    plain = write_dump(tmp_path / "d.json", [entity(f"Q{i}", f"name {i}") for i in range(1, 50)]).read_bytes()
    cut = tmp_path / f"cut.json{suffix}"
    whole = pack(plain)
    cut.write_bytes(plain.rpartition(b"]")[0] if not suffix else whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"cannot be read|ends before its closing bracket"):
        build_index(tmp_path / "i", dump=cut)
    assert not (tmp_path / "i").exists()
    cut.write_bytes(whole)
    assert build_index(tmp_path / "i", dump=cut).entities == 49


def test_only_an_index_is_replaced(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("text,id\nInn,Q1\n")
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE answers (key)")
    for path in (table, other):
        before = path.read_bytes()
        with pytest.raises(InputError, match="exists and is no index"):
            build_index(path, tables=[table])
        assert path.read_bytes() == before
    (tmp_path / "empty").touch()
    for _ in range(2):
        assert build_index(tmp_path / "empty", tables=[table]).entities == 1


def test_two_builds_of_one_index_do_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.csv").write_text("text,id\nInn,Q1\n")
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *where, **how: connect(*where, **{"timeout": 0.1, **how}))
    heard = []

    def meanwhile(_: int) -> None:
        with pytest.raises(InputError, match="is being built already"):
            build_index(tmp_path / "i", tables=[tmp_path / "t.csv"])
        heard.append(1)

    build_index(tmp_path / "i", dump=write_dump(tmp_path / "d.json", [entity("Q1", "Inn")]), report=meanwhile)
    assert heard
    assert build_index(tmp_path / "i", tables=[tmp_path / "t.csv"]).entities == 1


@pytest.mark.kill
@pytest.mark.parametrize("left", [b"", b"SQLite format 3\0" + bytes(1000)])
def test_what_a_killed_build_left_damaged_is_thrown_away(tmp_path: Path, left: bytes) -> None:
    (tmp_path / "t.csv").write_text("text,id\nInn,Q1\n")
    (tmp_path / "i.partial").write_bytes(left)
    assert build_index(tmp_path / "i", tables=[tmp_path / "t.csv"]).entities == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["i", "t.csv"]


def test_labelled_rows_whose_ids_are_none_make_no_entities(tmp_path: Path, relations) -> None:
    rows = [Example(Query("Ulm", "rivers", "nonsense"), (GoldObject(("Inn",), "Q1|Q2"), GoldObject(("Isar",), "q7")))]
    build_index(tmp_path / "i", splits={"2023": rows}, relations=relations)
    index = AliasIndex(tmp_path / "i")
    assert [index.exact(name) for name in ("Ulm", "Inn")] == [(), ()]
    assert index.exact("Isar")[0].id == "Q7"


def test_zstandard_is_asked_for_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (tmp_path / "d.json.zst").write_bytes(b"")
    with pytest.raises(LmkbcError, match="needs the zstandard package"):
        build_index(tmp_path / "i", dump=tmp_path / "d.json.zst")


@pytest.mark.parametrize("sign", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_table_of_a_spreadsheet_is_read(tmp_path: Path, sign: str, encoding: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(f"id{sign}text\r\nQ365{sign}Köln\r\n".encode(encoding))
    build_index(tmp_path / "i", tables=[path])
    assert AliasIndex(tmp_path / "i").exact("Köln")[0].id == "Q365"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"Siemens": "Q81230", "Nobody": ""}', ""),
        ('{"Siemens": "81230"}', "column id: '81230' (for 'Siemens') is no QID"),
        ('{"Siemens": ["Q81230"]}', "as a table of text and id, or as one JSON object, text -> QID"),
        ('{"Siemens": ', "as a table of text and id, or as one JSON object, text -> QID"),
    ],
)
def test_a_table_may_be_one_json_object_from_text_to_qid(
    command: Command, tmp_path: Path, content: str, said: str
) -> None:
    (tmp_path / "t.json").write_text(content, encoding="utf-8")
    asked = ("link", "build", tmp_path / "t.sqlite", "--table", tmp_path / "t.json")
    if said:
        assert said in command.fails(*asked)
    else:
        command.done(*asked)
        assert "Siemens" in command.done("link", "labels", "Q81230", "--index", tmp_path / "t.sqlite")[0]
