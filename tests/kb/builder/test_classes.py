"""Subjects of a file, each once, with what is wrong by its line; their classes, and what is asked of each."""

import csv
import io
import json
import unicodedata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import polars as pl
import pytest
from command import Command
from hypothesis import given
from hypothesis import strategies as st
from small import small_relation
from space import MINI, SPACE

import lmkbc
from lmkbc import EntityType, InputError, Workspace
from lmkbc.kb.builder.subjects import Classes

RELATIONS = {one.name: one for one in SPACE.relations.values()}
CLASSES = Classes(RELATIONS, table=SPACE.classes)
NAMED = Classes(RELATIONS, table=SPACE.classes, named=True)
PERSON = {name for name, one in RELATIONS.items() if one.subject_type.qid == "Q5"}
PLAYERS = {"instrument"}
COUNTRY = {"country-borders", "country-languages", "country-states", "area"}


COMPANY = {"company-parent", "stock-exchange"}


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        (["Q5", "human", "Human ", "person", "http://www.wikidata.org/entity/Q5", "politician"], PERSON - PLAYERS),
        (["Q937857", "football player", "soccer player"], PERSON - PLAYERS | {"footballer-position"}),
        (["Q639669", "musician", "singer", "composer"], PERSON),
        (["Q6256", "country", "sovereign state", "Q3624078", "Q112099", "republic", "federal republic"], COUNTRY),
        (["Q4022", "river", "main river"], {"river-countries"}),
        (["Q515", "city", "Q1549591", "big city", "Q486972", "town", "village"], {"city-rivers", "area"}),
        (["municipality", "commune of France", "Q747074"], {"city-rivers", "area", "state-borders"}),
        (["U.S. state", "Q35657", "province", "department of France"], {"state-borders", "area"}),
        (["Q215380", "band", "musical group", "rock band", "musical ensemble"], {"band-members"}),
        (["television series", "TV series", "Q63952888", "sitcom", "miniseries"], {"episodes"}),
        (
            ["business", "company", "enterprise", "Q6881511", "public company", "airline"],
            {"company-parent", "stock-exchange"},
        ),
        (["chemical compound", "Q11173", "organic compound"], {"compound-elements"}),
        (["award", "literary award", "class of award"], {"award-winners"}),
        (["stadium", "Q483110", "sports venue"], {"capacity"}),
        (["island", "lake", "Q23442"], {"area"}),
        (
            ["film", "written work", "taxon", "Q28640", "organization", "profession", "wizard", "", "Q99999999999"],
            set(),
        ),
    ],
)
def test_a_class_is_asked_what_fits_it_and_nothing_else(names: list[str], asked: set[str]) -> None:
    for named in names:
        assert {*CLASSES.relations(named)} == asked, named


@pytest.mark.parametrize(
    ("named", "asked"),
    [
        ("human", PERSON | {"footballer-position"}),
        ("organization", COMPANY),
        ("film", set()),
        ("river", {"river-countries"}),
        ("", set(RELATIONS)),
        ("wizard", set(RELATIONS)),
        ("Q99999999999", set(RELATIONS)),
    ],
)
def test_relations_that_are_named_are_asked_wherever_they_may_fit(named: str, asked: set[str]) -> None:
    assert {*NAMED.relations(named)} == asked


@pytest.mark.parametrize("name", RELATIONS)
def test_every_relation_is_asked_of_its_own_subjects(name: str) -> None:
    kind = RELATIONS[name].subject_class or RELATIONS[name].subject_type
    for named in (kind.noun, kind.qid, *kind.classes):
        assert name in CLASSES.relations(named)


def test_a_relation_is_asked_of_several_classes_of_ones_own() -> None:
    stage = EntityType("stage", classes=("Theatre", "orchestra"))
    types = {"runs": stage, "flows": EntityType("river")}
    made = {name: small_relation(name, subject_type=kind) for name, kind in types.items()}
    classes = Classes(made, table={})
    assert all(classes.relations(named) == ["runs"] for named in ("stage", "theatre", "Orchestra"))
    assert classes.relations("cinema") == []


@pytest.mark.parametrize(
    ("votes", "class_"),
    [
        ({"Q5": 1.0}, "Q5"),
        ({"Q5": 1.0, "Q6256": 1.5}, "Q6256"),
        ({"Q5": 1.0, "Q937857": 0.5, "Q6256": 1.2}, "Q937857"),
        ({"Q7": 1.0, "Q8": 1.0}, "Q7"),
    ],
)
def test_a_vote_for_a_class_is_for_those_below_it_too(votes: dict[str, float], class_: str) -> None:
    assert CLASSES.voted(votes) == class_


def test_every_class_is_found_by_each_of_its_names() -> None:
    for qid, one in SPACE.classes.items():
        assert {CLASSES.qid(name) for name in one.names} == {qid}
        assert all(CLASSES.qid(above) for above in one.below)


NOTHING = {"name": "nothing", "generate": [{"component": "nothing"}], "select": {"rule": "cutoff", "threshold": 0.5}}


class Listed(NamedTuple):
    """What a build takes from a file of subjects: row, name, QID and class each, and counts."""

    subjects: list[tuple[int, str, str | None, str]]
    counts: dict[str, int]


def listed(path: Path, **options: Any) -> Listed:
    """Build a base of the subjects of a file, about which nothing is answered."""
    how: Any = {"edition": "mini", "relation": "country-borders", "system": NOTHING, "untuned": True, **options}
    with TemporaryDirectory() as folder:
        counts = dict(lmkbc.build(path, folder, offline=True, **how).manifest["inputs"]["subjects"])
        del counts["sha256"]
        rows = pl.read_parquet(f"{folder}/subjects").select("subject_row", "name", "id", "class").rows()
    return Listed(rows, counts)


def remarks(tmp_path: Path, command: Command, *words: str) -> str:
    (tmp_path / "s.csv").write_text("name,class\na,river\nb,film\nc,persn\nd,\n")
    asked = ("--edition", "mini", "--system", "bl22-empty", "--untuned", "--out", f"kb{len(words)}")
    return command.done("build", "--subjects", "s.csv", *asked, *words)[1]


def test_what_is_asked_nothing_is_told(tmp_path: Path, command: Command) -> None:
    told = remarks(tmp_path, command)
    assert "since no relation is of their class: 1 of 4 subjects, first 'film'\n" in told
    unknown = "1 of 4 subjects, first 'persn' (did you mean 'person'?); give a class"
    assert f"asked nothing, since nothing is known of their class: {unknown}" in told
    assert "asked nothing, since they have no class: 1 of 4 subjects; give a class" in told
    idle = [name for name in MINI.relations if "river" not in SPACE.relation(name).subject_type.noun]
    count, noun = f"{len(idle)} of {len(MINI.relations)} relations", SPACE.relation(idle[0]).subject_type.noun
    about = f"since none is of their class: {count}, first {idle[0]!r}, which is about {noun!r}"
    assert f"asked of no subject, {about}" in told
    told = remarks(tmp_path, command, "--relation", "river-countries")
    assert "asked all relations that are named, since nothing is known of their class: 1 of 4 subjects" in told
    assert "they have no class" not in told
    assert "asked of no subject" not in told


def test_a_workspace_has_classes_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "relations"
    folder.mkdir()
    assert Workspace(tmp_path).classes == SPACE.classes
    (folder / "classes.toml").write_text('Q42 = { names = ["wizard"], below = ["Q5"] }\n')
    own = Classes(RELATIONS, table=Workspace(tmp_path).classes)
    assert {*own.relations("Wizard")} == PERSON - PLAYERS
    for wrong, said in (
        ('wizard = { names = ["wizard"] }', "classes.toml: "),
        ('Q42 = { names = "wizard" }', "Expected `array`"),
        ('Q42 = { names = ["wizard"] }\nQ43 = { names = ["Wizard"] }', "Q43: Q42 is called 'wizard' too"),
    ):
        (folder / "classes.toml").write_text(wrong)
        with pytest.raises(InputError, match=said):
            _ = Workspace(tmp_path).classes


ROWS = [("AT&T", "Q35476", "company"), ('A "quoted"\nname, with comma', "", ""), ("Rhône", "Q602", "Q4022")]
SUBJECTS = [
    (0, "AT&T", "Q35476", "company"),
    (1, 'A "quoted"\nname, with comma', None, ""),
    (2, "Rhône", "Q602", "Q4022"),
]


def written(path: Path, rows: list[tuple[str, str, str]], form: str) -> Path:
    """The rows as a file of a form."""
    if form == "csv":
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file).writerows([("id", "extra", "class", "name"), *((b, "x", c, a) for a, b, c in rows)])
    elif form == "jsonl":
        lines = [{"name": name, "more": [1], **({"id": qid} if qid else {}), "class": kind} for name, qid, kind in rows]
        path.write_text("\n".join(map(json.dumps, lines)) + "\n\n", encoding="utf-8")
    else:
        columns = zip(*rows, strict=True)
        pl.DataFrame(dict(zip(("name", "id", "class"), columns, strict=True))).write_parquet(path)
    return path


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_every_form_holds_the_same_subjects(tmp_path: Path, form: str, caplog: pytest.LogCaptureFixture) -> None:
    assert listed(written(tmp_path / "any", ROWS, form)).subjects == SUBJECTS
    assert [one for one in caplog.messages if not one.startswith("asked nothing")] == []


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(
                lambda name: any(map(str.isalnum, name))
            ),
            st.sampled_from(["", "Q1", "Q22", "Q333"]),
            st.just(""),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_any_names_in_any_csv_are_read_each_subject_once(tmp_path_factory, rows) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("csv") / "s.csv"
    found = listed(written(path, rows, "csv")).subjects
    ids = [qid for _, _, qid, _ in found if qid]
    assert len(set(ids)) == len(ids)
    assert set(ids) == {qid for _, qid, _ in rows if qid}
    assert {name for _, name, *_ in found} <= {name.strip() for name, _, _ in rows}

    def spelling(name: str) -> str:
        return unicodedata.normalize("NFC", " ".join(name.split()).casefold())

    bare = [spelling(name) for _, name, qid, _ in found if qid is None]
    assert len(set(bare)) == len(bare)
    assert set(bare) == {spelling(name) for name, qid, _ in rows if not qid}
    assert [row for row, *_ in found] == [*range(len(found))]


def test_what_repeats_is_merged_and_what_only_looks_alike_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [("Paris", "", ""), ("Paris", "Q90", ""), ("Paris", "Q830149", ""), ("Paname", "Q90", ""), ("Lyon", "", "")]
    caplog.set_level("INFO")
    found = listed(written(tmp_path / "s.csv", [*rows, ("Lyon", "", "city"), ("Paris", "Q90", "")], "csv"))
    paris = [("Paris", None, ""), ("Paris", "Q90", ""), ("Paris", "Q830149", "")]
    assert [one[1:] for one in found.subjects] == [*paris, ("Lyon", None, "city")]
    assert found.counts == {"rows": 7, "subjects": 4, "repeated": 2, "other_names": 1, "namesakes": 1}
    told = " ".join(caplog.messages)
    for part in ("2 rows repeat a subject", "Q90 at", "line 5", "'Paris' at", "line 4", "subjects of their own"):
        assert part in told
    assert "1 names have a row with a QID and one without, first 'Paris' at" in told
    assert [name for _, name, *_ in listed(tmp_path / "s.csv", limit=2).subjects] == ["Paris", "Paris"]


@pytest.mark.parametrize(
    ("rows", "subjects"),
    [
        ([("Evolut PRO", "", ""), ("Evolut PRO+", "", ""), ("Evolut PRO +", "", "")], 3),
        ([("C cell", "", "part"), ("c  CELL", "", "Part"), ("C+ cell", "", "part")], 2),
        ([("Yahoo!", "", ""), ("Yahoo", "", ""), ("\uff39ahoo", "", "")], 3),
        ([("Caf\u00e9", "", ""), ("CAFE\u0301", "", ""), ("Cafe", "", "")], 2),
        ([("U.S.A.", "", ""), ("USA", "", ""), ("usa ", "", "")], 2),
        ([("Mercury", "", "planet"), ("Mercury", "", "element"), ("Mercury", "", "")], 2),
        ([("Mercury", "", ""), ("Mercury", "Q308", "planet"), ("mercury", "Q308", "")], 2),
        ([("+/-", "", ""), ("-/+", "", ""), ("!!!", "", "")], 3),
    ],
)
def test_rows_of_a_list_are_one_subject_only_if_they_are_equal(
    tmp_path: Path, rows: list[tuple[str, str, str]], subjects: int
) -> None:
    assert len(listed(written(tmp_path / "s.csv", rows, "csv")).subjects) == subjects


HEAD = b"name,id,class\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (HEAD + b'a,,\n"b,,\n' + b"c,,\n" * 50_000, "line 3: field larger than field limit"),
        (HEAD + b'a,,\n"b" c,,\n', "line 3: ',' expected"),
        (HEAD + b"a,,\nParis, Texas,Q830149,\n", "line 3: 4 values where the header names 3 columns"),
        (HEAD + b"a,,\nb\n", "line 3: 1 values"),
        (HEAD + b'"two\nlines",,\n ,Q1,\n', "line 4, field name: empty"),
        (b"name,id,qid\na,,P31\n", "line 2, field qid: 'P31' is no QID; write one like Q42"),
        (b"name,id,own_id\na,B1,B2\n", "line 2, field own_id: 'B2', and id is 'B1'"),
        (b"name,Werk,Werk\na,b,c\n", "has two columns 'Werk': rename one"),
        (
            b"Name;Werk\na;Ulm;Hagen\n",
            "line 2: 3 values where the header names 2 columns; put a name that holds a semi",
        ),
        (b"Firma;Werk\na;b\n", "has no column 'name', but 'Firma', 'Werk': the first line must name it, as in name,"),
        (b"Firma\tWerk\na\tb\n", "has no column 'name', but 'Firma', 'Werk'"),
        (HEAD + b"a\xff,,\n", "line 2: not UTF-8 text"),
        (HEAD, "names no subject"),
        (b"itemLabel,item\n ,Q1\n", "line 2, field itemLabel: empty"),
        (b"", "names no subject"),
        (b"nmae,id\na,\n", "has no column 'name', but 'nmae', 'id'"),
        (b"name,name\na,b\n", "has two columns 'name'"),
        (b'{"name": "a"}\n{"name": 3}\n', "line 2, field name: Expected `str`"),
        (b'{"nam": "a"}\n', "line 1: Object missing required field `name`"),
        (b'{"name": "a"}\n{"name"\n', "line 2: not valid JSON"),
        (b"PAR1" + bytes(100), "cannot be read as Parquet"),
    ],
    ids=range(21),
)
def test_bad_input_is_one_sentence_with_its_line(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "s.any"
    path.write_bytes(content)
    with pytest.raises(InputError) as raised:
        listed(path)
    assert told in str(raised.value)
    assert "s.any" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


def parquet(**columns: list[object]) -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("header", ["item,itemLabel", "QID,Name", "id,name"])
def test_columns_may_be_called_as_the_query_service_calls_them(tmp_path: Path, header: str) -> None:
    (tmp_path / "s.csv").write_text(f"{header}\nhttp://www.wikidata.org/entity/Q42,Douglas\n")
    assert listed(tmp_path / "s.csv").subjects == [(0, "Douglas", "Q42", "")]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (parquet(title=["a"]), "has no column 'name'"),
        (parquet(name=[1]), "column 'name': holds Int64, where text is due"),
        (parquet(name=["a"], id=[1]), "column 'id': holds Int64"),
        (parquet(name=["a", None]), "row 2: name is null"),
        (parquet(name=["a", " "]), "row 2, field name: empty"),
        (parquet(name=["a"], qid=["x"]), "row 1, field qid: 'x' is no QID"),
        (parquet(name=["a"])[:-9] + bytes(9), "cannot be read as Parquet"),
    ],
    ids=range(7),
)
def test_parquet_of_another_schema_is_named(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "s.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"s\.parquet") as raised:
        listed(tmp_path / "s.parquet")
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_columns_that_are_lacking_or_null_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(parquet(name=["a", "b"], id=[None, "Q1"]))
    assert listed(tmp_path / "s").subjects == [(0, "a", None, ""), (1, "b", "Q1", "")]
    with pytest.raises(InputError, match="does not exist: check the path"):
        listed(tmp_path / "absent")
    with pytest.raises(InputError, match="is a directory: give a file of it"):
        listed(tmp_path)
