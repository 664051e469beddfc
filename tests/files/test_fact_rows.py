"""Labelled rows of one's own as a table, a fact a row: through tuning, checks and scores; errors name lines."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from command import Command
from small import small_edition, small_relation

import lmkbc
from lmkbc import KindScorer
from lmkbc.files.splits import read_examples

ROWS = """subject,relation,object
Lang 1,designer,Ada
"Lang 2, the other",designer,Bob
Lang 1,designer,Grace
Lang 3,designer,
Lang 1,born,1953-03
"""


@pytest.fixture
def own(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    command.done("init", "languages", "--relation", "designer:entity", "--relation", "born:date")
    monkeypatch.chdir(tmp_path / "languages")
    Path("data").mkdir()
    asked = [
        ("Lang 1", "designer", "Ada; Grace"),
        ("Lang 2, the other", "designer", "Bob"),
        ("Lang 1", "born", "March 1953"),
    ]
    asked.append(("Lang 3", "designer", "None"))
    rows = [
        {"SubjectEntity": name, "Relation": relation, "model": "m", "completions": [text] * 5}
        for name, relation, text in asked
    ]
    Path("own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return command


def test_without_labelled_rows_tuning_says_what_to_write_and_where_its_form_is(own: Command) -> None:
    told = own.fails("tune", "--split", "val", "--from", "own.jsonl")
    assert "write val.csv, with columns subject, relation and object (docs/your-own.md)" in told


@pytest.mark.whole(but=["val.csv-,"])
@pytest.mark.parametrize(("name", "sign"), [("val.csv", ","), ("val.csv", ";"), ("val.tsv", "\t")])
def test_a_table_is_checked_tuned_on_scored_and_shown(own: Command, name: str, sign: str) -> None:
    with Path("data", name).open("w") as file:
        csv.writer(file, delimiter=sign).writerows(csv.reader(ROWS.splitlines()))
    shown = json.loads(own.done("data", "check", "languages", "--json")[0])
    assert [(row["rows"], row["state"]) for row in shown if row["split"] == "val"] == [(4, "ok")]
    own.done("tune", "--split", "val", "--from", "own.jsonl")
    own.done("predict", "--split", "val", "--from", "own.jsonl", "--out", "run")
    assert "*** Average ***  1.000  1.000  1.000" in own.done("evaluate", "run")[0]
    own.done("report", "run")


def test_a_query_is_named_by_its_first_line_and_ids_name_one_object(own: Command) -> None:
    text = (
        "subject,relation,object,subject_id,object_id\nA,designer,Ada,Q1,Q7\nA,designer,Ada L.,Q1,Q7\nB,designer,,,\n"
    )
    Path("data/val.csv").write_text(text)
    Path("lmkbc.toml").write_text('name = "languages"\nanswers = "ids"\n')
    shown = json.loads(own.done("data", "check", "languages", "--json")[0])
    assert [(row["rows"], row["state"]) for row in shown if row["split"] == "val"] == [(2, "ok")]
    Path("data/val.csv").write_text(text + "C,designer,Bob,,\n")
    assert "val.csv, line 5, column object_id: nothing there for the object 'Bob'; write its QID" in own.fails(
        "tune", "--from", "own.jsonl"
    )
    for rows, told in (
        ("C,designer,unbekannt,,\n", "line 5, column object_id: nothing there for the object 'unbekannt'"),
        ("C,designer,Ada,,Q7\nC,designer,Bob,,\n", "line 6, column object_id: nothing there for the object 'Bob'"),
        ("C,born,unknown,,\n", "line 5, column object: 'unknown' names no object"),
    ):
        Path("data/val.csv").write_text(text + rows)
        assert told in own.fails("data", "check", "languages")
    Path("data/val.csv").write_text(text + "C,born,1875,,\nD,designer,,,Q8\n")
    space = lmkbc.Workspace(trust=True)
    *_, year, bare = space.examples(space.edition("languages"), "val")
    assert [(one.names, one.id) for one in (*year.objects, *bare.objects)] == [(("1875",), "1875"), ((), "Q8")]
    Path("data/val.csv").write_text("Subjekt;Relation;Objekt;Objekt_ID\nA;designer;Ada;Q7\n")
    told = own.fails("data", "check", "languages")
    assert "no column 'subject', but 'Subjekt', 'Relation', 'Objekt', 'Objekt_ID': the first line must name it" in told
    assert told.endswith("as in subject,relation,object,object_id\n")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("subject,relation,object\nA,designer,B\n\nA,desinger,C\n", "val.csv, line 4, column relation: 'desinger'"),
        ("subject,relation,object\nA,designer,B\nA,designer,\n", "field object: blank"),
        ("subject,relation,object\nA,designer,\nA,designer,B\n", "field object: blank"),
        ("subject,relation,object\n,designer,B\n", "val.csv, line 2, column subject: empty"),
        (
            "subject,relation\nA,designer\n",
            "val.csv, line 2: no column object, or nothing in it beside",
        ),
        ("name,relation,object\nA,designer,B\n", "val.csv has no column 'subject', but 'name', 'relation', 'object'"),
        ("subject,relation,object\nA,designer,B,C\n", "val.csv, line 2: 4 values where the header names 3 columns"),
        ("subject,relation,object\n", "val.csv is empty"),
    ],
    ids=range(8),
)
def test_a_wrong_row_is_named_by_file_and_line(own: Command, content: str, told: str) -> None:
    Path("data/val.csv").write_text(content)
    assert told in own.fails("tune", "--split", "val", "--from", "own.jsonl")


@pytest.mark.parametrize("name", ["p.csv", "p.jsonl"])
def test_predictions_with_scores_and_with_a_relation_that_the_split_lacks(own: Command, name: str) -> None:
    Path("data/val.csv").write_text(ROWS)
    rows = [
        "subject,relation,object,confidence",
        "Lang 1,desinger,A,0.9",
        "Lang 3,designer,B,0.4",
        "Lang 3,desinger,C,1",
    ]
    if name == "p.jsonl":
        cells = [row.split(",") for row in rows[1:]]
        fields = (
            {"SubjectEntity": one, "Relation": of, "ObjectEntities": [to], "Score": at} for one, of, to, at in cells
        )
        rows = [*map(json.dumps, fields)]
    Path(name).write_text("\n".join(rows) + "\n")
    said = own.done("evaluate", name, "--split", "val")[1]
    where = "line 2, column relation" if name == "p.csv" else "line 1, field Relation"
    assert f"p{name[1:]}, {where}: 'desinger' is no relation of " in said
    assert "did you mean 'designer'? 2 rows of such relations are not scored" in said
    assert f"{name}: {'confidence' if name == 'p.csv' else 'Score'} is not read, since all objects count alike" in said
    Path(name).write_text("\n".join([*rows[: 2 if name == "p.csv" else 1], ""]))
    assert f"{where}: 'desinger' is no relation of " in own.fails("evaluate", name, "--split", "val")


def test_a_row_of_a_table_that_repeats_another_counts_once(own: Command) -> None:
    Path("data/val.csv").write_text(ROWS)
    once = ROWS.replace("relation", "Relation")
    for rows, said in (
        (once, ""),
        (once + once.splitlines()[1] + "\n", "p.csv: 1 row repeats another, and counts once"),
    ):
        Path("p.csv").write_text(rows)
        shown, told = own.done("evaluate", "p.csv", "--split", "val")
        assert "*** Average ***  1.000  1.000  1.000" in shown
        assert said in told if said else "repeats" not in told


def test_two_files_of_a_split_are_refused(own: Command) -> None:
    Path("data/val.csv").write_text(ROWS)
    Path("data/val.jsonl").write_text("{}")
    assert "val.jsonl and val.csv are both there: keep one" in own.fails(
        "tune", "--split", "val", "--from", "own.jsonl"
    )


@pytest.mark.parametrize("word", ["none", "Keine", "ninguno", "无", "aucun", "нет"])
def test_a_word_for_none_in_a_table_is_no_name(own: Command, word: str) -> None:
    Path("data/val.csv").write_text(ROWS.replace("Lang 3,designer,", f"Lang 3,designer,{word}"))
    own.done("predict", "--split", "val", "--from", "own.jsonl", "--out", "run", "--untuned")
    shown = json.loads(own.done("evaluate", "run", "--json", "--rows")[0])
    assert [row["f1"] for row in shown["rows"] if row["SubjectEntity"] == "Lang 3"] == [1.0]
    rows = f"subject,relation,object,object_id\nA,designer,{word},Q220821\nB,designer,{word},\n"
    Path("data/val.csv").write_text(rows)
    golds = [example.objects for example in read_examples(Path("data/val.csv"), small_edition(["designer"]))]
    assert [[one.names for one in gold] for gold in golds] == [[(word,)], []]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("val.csv", "Lang 3,designer,unbekannt"),
        ("val.csv", "Lang 3,designer,-"),
        ("val.jsonl", '{"SubjectEntity": "Lang 3", "Relation": "designer", "ObjectEntities": ["keine"]}'),
    ],
)
def test_a_word_that_names_no_object_is_refused_wherever_rows_are_read(own: Command, name: str, row: str) -> None:
    Path("data", name).write_text(f"subject,relation,object\n{row}\n" if name == "val.csv" else row)
    for words in (("data", "check", "languages"), ("tune", "--split", "val", "--from", "own.jsonl")):
        assert "names no object; where there is none, leave" in own.fails(*words)


@pytest.mark.parametrize(
    ("language", "value", "reply", "f1"),
    [
        ("de", "1.250", "1250", 1.0),
        ("de", "1.250", "1.250", 1.0),
        ("de", "1.250", "1,25", 0.0),
        ("de", '"1.250,5"', "1250,5", 1.0),
        ("de", '"2,5"', "2,5", 1.0),
        ("en", "1.250", "1.25", 1.0),
        ("en", "1.250", "1250", 0.0),
        ("en", '"1,250"', "1250", 1.0),
    ],
)
def test_a_number_of_a_row_is_read_as_replies_in_its_language_are(
    own: Command, language: str, value: str, reply: str, f1: float
) -> None:
    own.done("relations", "new", "size:number")
    module = Path("relations/size.py")
    module.write_text(module.read_text().replace('kind="number",', f'kind="number", language="{language}",'))
    Path("data/val.csv").write_text(f"subject,relation,object\nA,size,{value}\nB,size,7\n")
    rows = [{"SubjectEntity": n, "Relation": "size", "completions": [text]} for n, text in (("A", reply), ("B", "7"))]
    Path("own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    own.done("data", "check", "languages", "--trust")
    own.done("predict", "--split", "val", "--from", "own.jsonl", "--out", "run", "--untuned", "--trust")
    shown = json.loads(own.done("evaluate", "run", "--json", "--rows")[0])
    assert [row["f1"] for row in shown["rows"]] == [f1, 1.0]


def test_digits_that_mean_two_numbers_are_refused_in_a_table(own: Command) -> None:
    own.done("relations", "new", "size:number")
    module = Path("relations/size.py")
    module.write_text(module.read_text().replace('kind="number",', 'kind="number", language="de",'))
    Path("data/val.csv").write_text("subject,relation,object\nA,size,1.255\n")
    told = own.fails("data", "check", "languages", "--trust")
    assert "line 2, column object: '1.255' may mean 1.255 or 1255: write 1255, or 1,255" in told


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        (
            "number",
            "mind. 3 Mio",
            "column object: 'mind. 3 Mio' is no number that an answer can match; write it as digits",
        ),
        ("number", "several", "line 3, column object: 'several' is no number"),
        ("date", "sometime in May", "line 3, column object: 'sometime in May' is no date"),
        ("date", "before 1900", "line 3, column object: 'before 1900' is no date"),
    ],
)
def test_a_value_that_no_answer_can_match_is_refused_by_data_check(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, value: str, told: str
) -> None:
    command.done("init", "languages", "--relation", f"size:{kind}", "--relation", "designer:entity")
    monkeypatch.chdir(tmp_path / "languages")
    Path("data").mkdir()
    rows = f"subject,relation,object\nA,designer,several\nA,size,{value}\nB,size,\nC,size,1999\n"
    Path("data/val.csv").write_text(rows)
    assert told in command.fails("data", "check", "languages")
    Path("data/val.csv").write_text(rows.replace(value, "1998"))
    command.done("data", "check", "languages")


OTHER = "Date of birth"


@pytest.fixture
def twice_named(own: Command) -> Command:
    module = Path("relations/born.py")
    module.write_text(module.read_text().replace('names=("born",)', f'names=("born", "{OTHER}")'))
    own.done("trust", ".")
    Path("data/val.csv").write_text(ROWS.replace("born", "date of  Birth"))
    answers = Path("own.jsonl")
    answers.write_text(answers.read_text().replace('"born"', f'"{OTHER}"'))
    return own


def test_a_relation_is_known_by_any_of_its_names_in_every_file(twice_named: Command) -> None:
    twice_named.done("data", "check", "languages")
    twice_named.done("tune", "--split", "val", "--from", "own.jsonl")
    twice_named.done("predict", "--split", "val", "--from", "own.jsonl", "--out", "run")
    predictions = Path("run/predictions.jsonl").read_text()
    assert '"Relation": "born"' in predictions
    Path("other.jsonl").write_text(predictions.replace('"born"', f'"{OTHER}"'))
    for path in ("run", "other.jsonl"):
        shown = twice_named.done("evaluate", path, "--split", "val", "--json")[0]
        assert {name: one["f1"] for name, one in json.loads(shown)["relations"].items()} == {"born": 1, "designer": 1}
    twice_named.done("submit", "other.jsonl", "--split", "val", "--out", "p.zip")
    Path("script.csv").write_text(f"subject,relation,answers\nLang 1,{OTHER},1953-03\n")
    shown = twice_named.done("evaluate", "run", "--split", "val", "--relation", OTHER)[0]
    assert "born" in shown
    told = twice_named.fails("predict", "--split", "val", "--from", "script.csv", "--untuned", status=1)
    assert "3 of 4 queries failed" in told


def test_a_query_is_repeated_under_two_names_of_its_relation(twice_named: Command) -> None:
    Path("data/val.csv").unlink()
    rows = [{"SubjectEntity": "Lang 1", "Relation": name, "ObjectEntities": ["1953"]} for name in ("born", OTHER)]
    Path("data/val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = twice_named.fails("data", "check", "languages")
    assert "val.jsonl, line 2, field SubjectEntity" in told
    assert "repeats line 1" in told


def test_a_base_knows_its_relations_by_any_of_their_names(twice_named: Command) -> None:
    Path("s.csv").write_text("name\nLang 1\n")
    twice_named.done("build", "--subjects", "s.csv", "--from", "own.jsonl", "--relation", OTHER, "--out", "kb")
    Path("decided.csv").write_text(f"relation,subject,object,label\n{OTHER},Lang 1,1953-03,right\n")
    assert "1 decision, 1 of them new" in twice_named.done("review", "kb", "decided.csv")[1]
    twice_named.done("export", "kb", "--format", "csv", "--relation", OTHER, "--reviewed", "--out", "kb.csv")
    assert len(Path("kb.csv").read_text().splitlines()) == 2
    Path("decided.csv").write_text("relation,subject,object,label\nbirn,Lang 1,1953-03,right\n")
    told = twice_named.fails("review", "kb", "decided.csv")
    assert "line 2, field relation: 'birn' is no relation of this base: did you mean 'born'?" in told


def test_numbers_of_rows_are_known_to_bases_and_audits_as_facts_have_them(own: Command) -> None:
    own.done("relations", "new", "price:number")
    module = Path("relations/price.py")
    module.write_text(module.read_text().replace('kind="number",', 'kind="number", language="de", unit="EUR",'))
    for name in ("train", "val"):
        Path(f"data/{name}.csv").write_text("subject;relation;object\nA;price;450.000 €\nB;price;1.299,50 €\n")
    rows = [
        {"SubjectEntity": n, "Relation": "price", "completions": [t]} for n, t in (("A", "450000"), ("B", "1299.5"))
    ]
    Path("own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("subjects.csv").write_text("name\nA\nB\n")
    asked = ("--subjects", "subjects.csv", "--relation", "price", "--system", "recorded", "--from", "own.jsonl")
    told = own.done("build", *asked, "--least", "0", "--out", "kb", "--trust")[1]
    assert "facts that labelled rows state: 2 of 2" in told
    table = own.done("audit", "kb", "--known", "val", "--trust")[0]
    assert re.search(r"\*\*\* All \*\*\*  all +2 +2 +0 +0 ", table)


@pytest.mark.parametrize(
    ("text", "number"),
    [("ca. 39 m", "39"), ("rund 39 Meter", "39"), ("um 1.255", "1255"), ("≈ 3 km", "3000"), ("ca. 38-40 m", None)],
)
def test_an_approximate_number_is_gold_as_an_approximate_date_is(text: str, number: str | None) -> None:
    metres = replace(small_relation(kind="number"), unit="m", language="de")
    scorer = KindScorer(relations={"length": metres})
    assert scorer.score([number or "38"], [[text]], "length")[0] == (number is not None)
