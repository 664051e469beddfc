"""Answers of a user's own script: read by the names that scripts give to columns, or by a mapping that is typed."""

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Command

import lmkbc

SUBJECT, RELATION = "Bosnia and Herzegovina", "CountryBordersCountry"
PAIR: dict[str, Any] = {"subject": SUBJECT, "relation": RELATION}
BOTH = {"Croatia", "Serbia"}


def jsonl(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


FORMS: dict[str, tuple[str, str]] = {
    "list": ("a.jsonl", jsonl(PAIR | {"answers": ["Croatia", "Serbia"]})),
    "text": ("a.jsonl", jsonl(PAIR | {"relation": "country-borders", "prediction": "Croatia, Serbia"})),
    "draws": ("a.jsonl", jsonl(PAIR | {"objects": [["Croatia", "Serbia"], ["Serbia", "Croatia"]]})),
    "texts": (
        "a.jsonl",
        jsonl({"Subject Entity": SUBJECT, "predicate": "P47", "id": 7, "responses": ["Croatia, Serbia"]}),
    ),
    "array": ("a.json", json.dumps([PAIR | {"output": "Croatia and Serbia", "prompt": "?"}], indent=1)),
    "ours": ("a.jsonl", jsonl({"SubjectEntity": SUBJECT, "Relation": RELATION, "answers": ["Croatia", "Serbia"]})),
    "one reply": ("a.jsonl", jsonl(PAIR | {"output": '["Croatia", "Serbia"]'})),
    "both": ("a.jsonl", jsonl(PAIR | {"answers": ["Croatia", "Serbia"], "response": "Well, Peru.", "model": "m"})),
    "csv": ("a.csv", f'subject,relation,answers\n{SUBJECT},{RELATION},"[""Croatia"", ""Serbia""]"\n'),
    "python": ("a.csv", f"Subject;Relation;Objects\n{SUBJECT};{RELATION};\"['Croatia', 'Serbia']\"\n"),
    "rows": ("a.csv", f"subject,relation,object\n{SUBJECT},{RELATION},Croatia\n{SUBJECT},{RELATION},Serbia\n"),
    "head": ("a.tsv", f"head\trel\ttail\n{SUBJECT}\t{RELATION}\tCroatia\n{SUBJECT}\t{RELATION}\tSerbia\n"),
}


@pytest.fixture
def kept(command: Command, tmp_path: Path) -> Callable[..., tuple[set[str], str]]:
    def run(name: str, content: str | bytes, mapping: str = "") -> tuple[set[str], str]:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        asked = ("--edition", "mini", "--split", "val", "--relation", RELATION, "--failed-as-empty", "--no-report")
        done = command.done("predict", *asked, "--from", f"{tmp_path / name}{mapping}", "--out", tmp_path / "run")
        rows = map(json.loads, gzip.decompress((tmp_path / "run" / "candidates.jsonl.gz").read_bytes()).splitlines())
        made = [candidate for row in rows if row["SubjectEntity"] == SUBJECT for candidate in row["candidates"]]
        return {candidate["object"] for candidate in made if candidate["object"]}, done[1]

    return run


@pytest.mark.parametrize("form", FORMS)
def test_what_scripts_write_is_read_and_the_mapping_is_printed(
    kept: Callable[..., tuple[set[str], str]], form: str
) -> None:
    found, said = kept(*FORMS[form])
    assert found == BOTH
    assert f"{FORMS[form][0]} is read as --from " in said
    assert "are left out" not in said


@pytest.mark.parametrize(
    ("rows", "mapping", "read", "scores"),
    [
        (("Croatia", "Serbia"), "", "object=answer", {1.0}),  # an object a row, since none is there twice
        (("Croatia", "Croatia", "Serbia"), "", "answers=answer", {0.667, 0.333}),  # draws
        (("Croatia; Serbia", "Serbia; Croatia"), "", "answers=answer", {1.0}),
        (("Croatia", "Croatia"), ":subject=entity,relation=predicate,object=answer", "object=answer", {1.0}),
    ],
)
def test_rows_of_a_query_are_its_draws_or_name_one_object_each(
    kept: Callable[..., tuple[set[str], str]],
    tmp_path: Path,
    rows: tuple[str, ...],
    mapping: str,
    read: str,
    scores: set[float],
) -> None:
    lines = "".join(f"{SUBJECT},{RELATION},{one}\n" for one in rows)
    _, said = kept("a.csv", f"entity,predicate,answer\n{lines}", mapping)
    assert f":subject=entity,relation=predicate,{read} " in said
    made = map(json.loads, gzip.decompress((tmp_path / "run" / "candidates.jsonl.gz").read_bytes()).splitlines())
    assert {
        round(one["score"], 3) for row in made if row["SubjectEntity"] == SUBJECT for one in row["candidates"]
    } == scores


def test_another_mapping_is_typed_behind_the_file(kept: Callable[..., tuple[set[str], str]]) -> None:
    content = jsonl({"q": SUBJECT, "r": RELATION, "a": ["Croatia", "Serbia"], "text": "Peru"})
    assert kept("own.jsonl", content, ":subject=q,relation=r,answers=a")[0] == BOTH


@pytest.mark.parametrize(
    ("content", "mapping", "said"),
    [
        (
            jsonl({"q": SUBJECT, "r": RELATION, "a": "Croatia"}),
            "",
            r"has the columns q, r, a, and none of them is known as subject or relation or answers: name it, as in "
            r"--from .*:subject=COLUMN,relation=COLUMN,answers=COLUMN \(docs/files.md, 'Answers of a script'",
        ),
        ("x,y\n1,2\n", "", "has the columns x, y, and none"),
        (
            json.dumps({SUBJECT: ["Croatia"], "Croatia": ["Serbia"]}),
            "",
            "maps subjects of CountryBordersCountry to answers, and names no relation: add --relation CountryBordersC",
        ),
        (jsonl(PAIR | {"a": "Croatia"}), ":answers=b", "has no column 'b', but subject, relation, a"),
        (jsonl(PAIR | {"a": "Croatia"}), ":reply=a", "'reply' is none of subject, id, relation, answers, completions"),
        (jsonl(PAIR | {"relation": "Borders", "text": "x"}), "", "line 1: 'Borders' is no relation of edition mini; "),
        (jsonl(PAIR | {"subject": "", "text": "x"}), "", "line 1: it names no subject"),
    ],
)
def test_an_unknown_form_is_answered_with_the_columns_that_were_found(
    command: Command, tmp_path: Path, content: str, mapping: str, said: str
) -> None:
    place = tmp_path / "own.jsonl"
    place.write_text(content, encoding="utf-8")
    error = command.fails("predict", "--edition", "mini", "--split", "val", "--from", f"{place}{mapping}")
    assert re.search(said, error)


@pytest.mark.parametrize(
    ("reply", "score"),
    [('["Croatia", "Serbia"]', 1.0), ("['Croatia', 'Serbia']", 1.0), ("Croatia, Serbia", 1.0)],
)
def test_a_list_in_one_reply_is_no_list_of_draws(
    kept: Callable[..., tuple[set[str], str]], tmp_path: Path, reply: str, score: float
) -> None:
    assert kept("a.jsonl", jsonl(PAIR | {"output": reply}))[0] == BOTH
    rows = map(json.loads, gzip.decompress((tmp_path / "run" / "candidates.jsonl.gz").read_bytes()).splitlines())
    (made,) = [row["candidates"] for row in rows if row["SubjectEntity"] == SUBJECT]
    assert {candidate["score"] for candidate in made} == {score}


@pytest.mark.parametrize(
    ("name", "content", "mapping", "found"),
    [
        (
            "a.jsonl",
            jsonl(PAIR | {"answers": ["Formerly Serbia", "It Was Peru"]}),
            "",
            {"Formerly Serbia", "It Was Peru"},
        ),
        ("a.jsonl", jsonl(PAIR | {"answers": ["Serbia", None, "none", "keine"]}), "", {"Serbia"}),
        ("a.jsonl", jsonl(PAIR | {"answers": [["Serbia"], [], ["I Was Peru"]]}), "", {"Serbia", "I Was Peru"}),
        ("a.jsonl", jsonl(PAIR | {"answers": ["It borders Serbia and Croatia."]}), "", BOTH),  # one text
        ("a.csv", f"subject,relation,object\n{SUBJECT},{RELATION},Formerly Serbia\n", "", {"Formerly Serbia"}),
        ("a.csv", f"subject,relation,object\n{SUBJECT},{RELATION},Croatia; Serbia\n", "", BOTH),
        ("a.csv", f"subject,relation,object\n{SUBJECT},{RELATION},Es sind Croatia und Serbia.\n", "", BOTH),
        ("a.csv", f"subject,relation,x\n{SUBJECT},{RELATION},I Was Peru\n", ":object=x", {"I Was Peru"}),
        ("a.jsonl", jsonl(PAIR | {"output": "Formerly Serbia"}), "", {"Serbia"}),  # a reply
    ],
)
def test_objects_of_their_own_are_kept_as_written_and_other_texts_are_read(
    kept: Callable[..., tuple[set[str], str]], name: str, content: str, mapping: str, found: set[str]
) -> None:
    assert kept(name, content, mapping)[0] == found


BARS = ("Al Jr.", "Croatia", "Serbia")
NUMPY = f"subject,relation,prediction\n{SUBJECT},{RELATION},['Croatia' 'Serbia']\n"
SCORED = [{"object": "Croatia", "score": 0.9}, {"object": "Serbia", "score": 0.25}]
SCORES = f"subject,relation,object,score\n{SUBJECT},{RELATION},Croatia,0.9\n{SUBJECT},{RELATION},Serbia,0.25\n"
OWN, DRAWN = {"Croatia": 0.9, "Serbia": 0.25}, {"Croatia": 0.7, "Serbia": 0.25}
DRAWS = "".join(
    f"{SUBJECT},{RELATION},{draw},{name}\n" for draw, name in ((1, "Croatia"), (2, "Croatia"), (2, "Serbia"))
)


@pytest.mark.parametrize(
    ("name", "content", "scores"),
    [
        ("a.csv", NUMPY, {"Croatia": 1.0, "Serbia": 1.0}),
        ("a.jsonl", jsonl(PAIR | {"answers": SCORED}), {"Croatia": 0.9, "Serbia": 0.25}),
        ("a.jsonl", jsonl(PAIR | {"answers": {"Croatia": 0.9, "Serbia": 0.25}}), {"Croatia": 0.9, "Serbia": 0.25}),
        ("a.csv", SCORES, {"Croatia": 0.9, "Serbia": 0.25}),
        ("a.jsonl", jsonl(PAIR | {"answers": ["Croatia", "Serbia"], "score": 0.8}), {"Croatia": 0.8, "Serbia": 0.8}),
        ("a.jsonl", jsonl(PAIR | {"answer": "Croatia, Serbia", "confidence": 0.8}), {"Croatia": 0.8, "Serbia": 0.8}),
        ("a.jsonl", jsonl(PAIR | {"answers": [], "confidence": 0.8}), {"": 0.8}),
        ("a.jsonl", jsonl(PAIR | {"answer": "none", "confidence": 0.8}), {"": 0.8}),
        ("a.jsonl", jsonl(PAIR | {"answers": ["Croatia", "Serbia"], "scores": [0.9, 0.25]}), OWN),
        ("a.csv", f"subject,relation,answers,scores\n{SUBJECT},{RELATION},Croatia; Serbia,90%; 25 %\n", OWN),
        (
            "a.csv",
            f"subject;relation;answer;score\n{SUBJECT};{RELATION};Croatia|Serbia;0,5\n",
            dict.fromkeys(BOTH, 0.5),
        ),
        ("a.jsonl", jsonl(PAIR | {"answers": [["Croatia", 0.9], ["Serbia", 0.25]]}), OWN),
        ("a.jsonl", jsonl(PAIR | {"outputs": [[0.9, "Croatia"], ["0.25", "Serbia"]]}), OWN),
        ("a.csv", f"subject,relation,answers\n{SUBJECT},{RELATION},\"[('Croatia', 0.9), ('Serbia', 0.25)]\"\n", OWN),
        (
            "a.csv",
            f"subject,relation,answers\n{SUBJECT},{RELATION},\"{{'Serbia', 'Croatia'}}\"\n",
            dict.fromkeys(BOTH, 1.0),
        ),
        ("a.jsonl", jsonl(PAIR | {"output": '{"Croatia": 0.9, "Serbia": 0.25}'}), OWN),
        ("a.jsonl", jsonl(PAIR | {"answers": [{"Croatia": 0.9}, {"Serbia": 0.25}]}), OWN),
        (
            "a.jsonl",
            jsonl(PAIR | {"answers": [{"country": "Croatia", "p": "0.9"}, {"text": "Serbia", "prob": 0.25}]}),
            OWN,
        ),
        ("a.jsonl", jsonl(PAIR | {"answers": "Croatia (0.9), Serbia: 0.25"}), OWN),
        ("a.jsonl", jsonl(PAIR | {"answers": ["Croatia", "Serbia"], "scores": {"Croatia": 0.9, "Serbia": 0.25}}), OWN),
        ("a.jsonl", jsonl(PAIR | {"answers": [[["Croatia", 0.8]], [["Croatia", 0.6], ["Serbia", 0.5]]]}), DRAWN),
        ("a.jsonl", jsonl(PAIR | {"outputs": ["Croatia", "Croatia, Serbia"], "scores": [0.9, 0.5]}), DRAWN),
        (
            "a.jsonl",
            jsonl(PAIR | {"answers": ["Croatia"], "score": 0.9}, PAIR | {"answers": sorted(BOTH), "score": 0.5}),
            DRAWN,
        ),
        ("a.csv", SCORES.replace("0.9", "-7"), {"Croatia": 1.0, "Serbia": 1.0}),  # on another scale
        ("a.csv", f"subject,relation,draw,object\n{DRAWS}", {"Croatia": 1.0, "Serbia": 0.5}),
        ("a.jsonl", jsonl(PAIR | {"answers": ["Médecins Sans Frontières"]}), {"Médecins Sans Frontières": 1.0}),
        ("a.csv", SCORES.replace("0.9", "NaN"), {"Croatia": 1.0, "Serbia": 0.25}),
        (
            "a.csv",
            f"subject,relation,draw,object\n{DRAWS}{SUBJECT},{RELATION},3,none\n{SUBJECT},{RELATION},4,none\n",
            {"Croatia": 0.5, "Serbia": 0.25, "": 0.5},
        ),
        ("a.csv", f"subject,relation,answers\n{SUBJECT},{RELATION},Al Jr.|Croatia|Serbia\n", dict.fromkeys(BARS, 1.0)),
    ],
)
def test_scores_and_draws_of_objects_are_kept(
    kept: Callable[..., tuple[set[str], str]], tmp_path: Path, name: str, content: str, scores: dict[str, float]
) -> None:
    _, said = kept(name, content)
    made = map(json.loads, gzip.decompress((tmp_path / "run" / "candidates.jsonl.gz").read_bytes()).splitlines())
    rows = [one for row in made if row["SubjectEntity"] == SUBJECT for one in row["candidates"]]
    assert {one["object"]: one["score"] for one in rows} == pytest.approx(scores)
    assert said.count("line 2: '-7' is no number from 0 to 1: the scores of the file are not read") == ("-7" in content)


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"answers": [["Croatia", 9], ["Serbia", 3]]}, "9 is no number from 0 to 1"),
        ({"answers": ["Croatia", "Serbia"], "scores": [0.7]}, "1 score for 2 objects"),
        ({"answers": ["Croatia", "Serbia"], "score": "high"}, "'high' is no number from 0 to 1"),
    ],
)
def test_scores_that_cannot_be_read_are_named_with_their_row_and_the_objects_stay(
    kept: Callable[..., tuple[set[str], str]], answers: dict[str, Any], reason: str
) -> None:
    found, said = kept(
        "a.jsonl", jsonl({"subject": "Croatia", "relation": RELATION, "answers": ["Peru"]}, PAIR | answers)
    )
    assert found == BOTH
    assert f"a.jsonl, line 2: {reason}: the scores of the file are not read, and each object has the score 1" in said


def test_a_parquet_file_of_a_script_is_read(kept: Callable[..., tuple[set[str], str]], tmp_path: Path) -> None:
    import polars as pl

    pl.DataFrame([PAIR | {"answers": ["Croatia", "Serbia"]}]).write_parquet(tmp_path / "own.parquet")
    content = (tmp_path / "own.parquet").read_bytes()
    assert kept("own.parquet", content)[0] == BOTH


@pytest.mark.parametrize(("answers", "states"), [(["none"], "1 abstained"), (["I cannot answer that."], "1 unparsed")])
def test_a_lone_object_that_names_none_is_read_as_a_reply(
    kept: Callable[..., tuple[set[str], str]], answers: list[str], states: str
) -> None:
    other = {"subject": "Croatia", "relation": RELATION, "answers": ["Serbia"]}
    assert states in kept("a.jsonl", jsonl(other, PAIR | {"answers": answers}))[1]


@pytest.mark.parametrize(
    ("answers", "objects"),
    [
        ([[74.36, 0.75], [75, 0.25]], {"74.36": 0.75, "75": 0.25}),
        ({"74.36 km²": 0.75, "75 km²": 0.25}, {"74.36": 0.75, "75": 0.25}),
        ([{"value": 74.36, "unit": "km2", "score": 0.75}], {"74.36": 0.75}),
        ([{"value": 74.36, "unit": "km2"}], {"74.36": 1.0}),
        ([74.36, 0.5], {"74.36": 1.0, "0.5": 1.0}),  # two numbers
        ([[74.36], [0.5]], {"74.36": 0.5, "0.5": 0.5}),
    ],
)
def test_a_number_beside_a_share_is_an_object_with_its_score(
    command: Command, data_dir: Path, tmp_path: Path, answers: Any, objects: dict[str, float]
) -> None:
    row = {"subject": "Lošinj", "relation": "hasArea", "answers": answers}
    (tmp_path / "a.jsonl").write_text(jsonl(row), encoding="utf-8")
    asked = ("--edition", "2025", "--split", "val", "--relation", "hasArea", "--failed-as-empty", "--no-report")
    command.done("predict", *asked, "--data", data_dir, "--from", tmp_path / "a.jsonl", "--out", tmp_path / "run")
    rows = map(json.loads, gzip.decompress((tmp_path / "run" / "candidates.jsonl.gz").read_bytes()).splitlines())
    assert {one["object"]: one["score"] for row in rows for one in row["candidates"]} == objects


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize(
    ("cell", "plain", "none"), [(None, "missing", "missing"), ("NaN", "missing", "missing"), ("", "empty", "abstained")]
)
def test_a_cell_without_an_answer_means_the_same_in_each_format(
    command: Command, tmp_path: Path, ending: str, cell: str | None, plain: str, none: str
) -> None:
    import polars as pl

    place = tmp_path / f"a.{ending}"
    frame = pl.DataFrame([PAIR | {"answer": cell}, PAIR | {"subject": "Croatia", "answer": "Serbia"}])
    if ending == "csv" and cell is None:
        pytest.skip("CSV has no null")
    ways: dict[str, Callable[..., Any]] = {"jsonl": frame.write_ndjson, "csv": frame.write_csv}
    ways["parquet"] = frame.write_parquet
    ways[ending](place)
    asked = (
        "predict",
        "--edition",
        "mini",
        "--split",
        "val",
        "--relation",
        RELATION,
        "--failed-as-empty",
        "--no-report",
    )
    for empty, state in (("unread", plain), ("none", none)):
        _, said = command.done(*asked, "--from", place, "--empty", empty, "--out", tmp_path / empty)
        count = 19 if state == "missing" else 1  # the others are lacking
        assert f"{count} {state}" in said


def test_a_row_may_lack_the_field_of_its_answer_and_nan_is_null(kept: Callable[..., tuple[set[str], str]]) -> None:
    rows = [PAIR | {"subject": "Chile"}, PAIR | {"subject": "Croatia", "answers": float("nan")}]
    found, said = kept("a.jsonl", jsonl(*rows, PAIR | {"answers": ["Croatia", "Serbia"]}))
    assert found == BOTH
    assert "2 of 3 answers cannot be read; 2 missing" in said


@pytest.mark.parametrize(("cell", "is_read"), [("nan", False), ("<NA>", False), ("[]", True), ("None", True)])
def test_a_missing_cell_is_no_answer(
    kept: Callable[..., tuple[set[str], str]], tmp_path: Path, cell: str, is_read: bool
) -> None:
    other = {"subject": "Croatia", "relation": RELATION, "output": "Serbia"}
    _, said = kept("a.jsonl", jsonl(other, PAIR | {"output": cell}))
    assert "1 abstained" in said if is_read else "abstained" not in said


def test_answers_about_subjects_that_the_split_lacks_are_counted_and_named_with_the_users_own_file(
    kept: Callable[..., tuple[set[str], str]], tmp_path: Path
) -> None:
    rows = [PAIR | {"subject": name, "answers": ["Peru"]} for name in ("Shire", "Gondor", "Rohan", "Bree")]
    found, said = kept("own.jsonl", jsonl(PAIR | {"answers": ["Croatia", "Serbia"]}, *rows))
    assert found == BOTH
    own = tmp_path / "own.jsonl"
    assert f"{own}: 4 of 5 answered queries are not in val of edition mini, and are left out: 'Bree', 'Gondor'," in said
    assert f"{own} lacks 19 of 20 queries" in said


@pytest.mark.parametrize(
    ("first", "second", "model"),
    [
        ("gpt-4.1-val.csv", "gpt-4.1.csv", ""),  # one name, but for the split
        ("one.csv", "two.csv", "mine"),
        ("one.csv", "mine.csv", "mine"),  # the second has no column of the model
    ],
)
def test_a_second_file_of_one_model_adds_to_the_first(
    command: Command, tmp_path: Path, first: str, second: str, model: str
) -> None:
    rows = [f"{SUBJECT},{RELATION},Croatia,0.9", f"{SUBJECT},{RELATION},Serbia,0.4", f"Croatia,{RELATION},Serbia,0.9"]
    (tmp_path / first).write_text(
        "subject,relation,object,score,model\n" + "".join(f"{row},{model}\n" for row in rows[:2]), encoding="utf-8"
    )
    own = model if second != "mine.csv" else ""
    (tmp_path / second).write_text(f"subject,relation,object,score,model\n{rows[2]},{own}\n", encoding="utf-8")
    asked = ("--edition", "mini", "--split", "val", "--relation", RELATION, "--failed-as-empty", "--no-report")
    made = []
    for name, files in (("alone", [first]), ("both", [first, second])):
        given = [option for file in files for option in ("--from", tmp_path / file)]
        said = command.done("predict", *asked, "--untuned", *given, "--out", tmp_path / name)[1]
        lines = map(json.loads, gzip.decompress((tmp_path / name / "candidates.jsonl.gz").read_bytes()).splitlines())
        made.append({row["SubjectEntity"]: row["candidates"] for row in lines})
        assert "'agreement'" not in said
    assert made[0][SUBJECT] == made[1][SUBJECT]
    assert [one["object"] for one in made[1]["Croatia"]] == ["Serbia"]


def test_draws_of_one_model_in_two_files_add_up_and_other_models_stay_apart(command: Command, tmp_path: Path) -> None:
    asked = ("--edition", "mini", "--split", "val", "--relation", RELATION, "--failed-as-empty", "--no-report")
    for model, names in (("one", ["mine", "mine"]), ("two", ["mine", "other"])):
        files: list[Any] = []
        for name, found in zip("ab", (["Croatia", "Serbia"], ["Serbia"]), strict=True):
            place = tmp_path / f"{model}-{name}.jsonl"
            place.write_text(jsonl(PAIR | {"answers": found, "model": names["ab".index(name)]}), encoding="utf-8")
            files += ["--from", place]
        said = command.done("predict", *asked, *files, "--untuned", "--out", tmp_path / model)[1]
        assert ("are one source, of one model: mine" in said) == (model == "one")
    rows = map(json.loads, gzip.decompress((tmp_path / "one" / "candidates.jsonl.gz").read_bytes()).splitlines())
    (row,) = [row for row in rows if row["SubjectEntity"] == SUBJECT]
    assert {one["object"]: one["score"] for one in row["candidates"]} == {"Serbia": 1.0, "Croatia": 0.5}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", jsonl(PAIR | {"answers": ["Croatia (0.9)", "Serbia (20%)"]})),
        ("a.jsonl", jsonl(PAIR | {"answers": "Croatia (90%), Serbia (20 %)"})),
        ("a.jsonl", jsonl(PAIR | {"answers": ["Croatia: 90%", "Serbia (20% sure)"]})),
        ("a.csv", f'subject,relation,prediction\n{SUBJECT},{RELATION},"Croatia (90%), Serbia (20%)"\n'),
    ],
)
def test_a_share_beside_an_object_is_its_score_and_the_rule_says_what_it_left_out(
    kept: Callable[..., tuple[set[str], str]], tmp_path: Path, name: str, content: str
) -> None:
    assert kept(name, content)[0] == BOTH
    lines = map(json.loads, gzip.decompress((tmp_path / "run" / "candidates.jsonl.gz").read_bytes()).splitlines())
    (row,) = [row for row in lines if row["SubjectEntity"] == SUBJECT]
    assert {one["object"]: one["score"] for one in row["candidates"]} == {"Croatia": 0.9, "Serbia": 0.2}
    lower = content.replace("0.9", "0.4").replace("90%", "40%")
    with pytest.raises(AssertionError, match=f"holds another run, which is not replaced: other inputs.{name};"):
        kept(name, lower)  # the user's own file is named
    shutil.rmtree(tmp_path / "run")
    _, said = kept(name, lower)
    assert "the rule left out 2 of 2 objects, and kept none for 1 query that had some (selected by the " in said
    assert "'cutoff' (threshold 0.5)" in said


@pytest.mark.parametrize(
    ("answer", "confidence"),
    [
        ({"object": "Croatia", "confidence": "91%"}, 0.91),
        ({"answers": [["Croatia", 0.91]]}, 0.91),
        ({"answers": ["Croatia"]}, 2 / 3),  # a share: one answer of one
        ({"response": "Croatia"}, 2 / 3),
    ],
)
def test_a_base_keeps_a_stated_confidence_and_shrinks_a_share(
    tmp_path: Path, answer: dict[str, Any], confidence: float
) -> None:
    (tmp_path / "a.jsonl").write_text(jsonl(PAIR | answer), encoding="utf-8")
    (tmp_path / "s.csv").write_text(f"name\n{SUBJECT}\n", encoding="utf-8")
    base = lmkbc.build(
        *(tmp_path / "s.csv", tmp_path / "kb"),
        edition="mini",
        relation=RELATION,
        files=[tmp_path / "a.jsonl"],
        offline=True,
        least=0,
    )
    assert base.facts.collect().get_column("confidence").to_list() == [pytest.approx(confidence)]


TWO = [("X", "Croatia", 0.9), ("X", "Serbia", 0.8), ("Y", "Croatia", 0.7)]
"""Objects of two models, with their scores."""


@pytest.mark.parametrize(
    ("rows", "scores"),
    [
        (
            [
                {"model": "X", "prediction": [{"object": "Croatia", "confidence": 0.9}, ["Serbia", 0.8]]},
                {"model": "Y", "prediction": [{"object": "Croatia", "confidence": 0.7}]},
            ],
            {"Croatia": 0.8, "Serbia": 0.4},
        ),
        (
            [{"model": model, "object": name, "score": score} for model, name, score in TWO],
            {"Croatia": 0.8, "Serbia": 0.4},
        ),
        ([{"model": model, "object": name} for model, name, _ in TWO], {"Croatia": 1.0, "Serbia": 0.5}),
        (
            [
                {
                    "model": asked,
                    "candidates": [{"object": name, "score": score} for m, name, score in TWO if m == asked],
                }
                for asked in "XY"
            ],
            {"Croatia": 0.8, "Serbia": 0.4},
        ),
        (
            [  # a model counts alike, whatever its number of draws
                {"model": "X", "completions": ["Croatia", "Croatia, Serbia"]},
                {"model": "Y", "completions": ["Croatia"]},
            ],
            {"Croatia": 1.0, "Serbia": 0.25},
        ),
        ([{"completions": ["Croatia"]}, {"model": "Y", "completions": ["Serbia"]}], {"Croatia": 0.5, "Serbia": 0.5}),
    ],
)
@pytest.mark.parametrize("files", ["one", "one each"])
def test_rows_of_two_models_are_two_sources_in_a_file_as_in_two(
    command: Command, tmp_path: Path, rows: list[dict[str, Any]], scores: dict[str, float], files: str
) -> None:
    own = "completions" in rows[0] or "candidates" in rows[0]
    pair = {"SubjectEntity": SUBJECT, "Relation": RELATION} if own else PAIR
    held: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        held.setdefault("all" if files == "one" else row.get("model", "none"), []).append(pair | row)
    given: list[Any] = []
    for name, its in held.items():
        (tmp_path / f"{name}.jsonl").write_text(jsonl(*its), encoding="utf-8")
        given += ["--from", tmp_path / f"{name}.jsonl"]
    asked = ("--edition", "mini", "--split", "val", "--relation", RELATION, "--failed-as-empty", "--no-report")
    said = command.done("predict", *asked, *given, "--untuned", "--out", tmp_path / "run")[1]
    assert "selected by the recipe's rule 'agreement'" in said
    lines = map(json.loads, gzip.decompress((tmp_path / "run" / "candidates.jsonl.gz").read_bytes()).splitlines())
    (row,) = [row for row in lines if row["SubjectEntity"] == SUBJECT]
    assert {one["object"]: round(one["score"], 3) for one in row["candidates"]} == scores
    models = {source.partition("#")[0] for one in row["candidates"] for source in one["source"].split("; ")}
    assert len(models) == 2
    assert {model for row in rows if (model := row.get("model"))} <= models


@pytest.mark.parametrize("files", ["one", "two"])
def test_one_of_several_models_is_read_alone(command: Command, tmp_path: Path, files: str) -> None:
    rows = [PAIR | {"model": model, "response": name} for model, name in (("a", "Chile"), ("b", "Mali"))]
    given: list[Any] = []
    for place, its in enumerate([rows] if files == "one" else [rows[:1], rows[1:]]):
        (tmp_path / f"{place}.jsonl").write_text(jsonl(*its), encoding="utf-8")
        given += ["--from", tmp_path / f"{place}.jsonl"]
    asked = ("--edition", "mini", "--split", "val", "--relation", RELATION, "--failed-as-empty", "--no-report")
    run = ("predict", *asked, *given, "--untuned", "--out", tmp_path / "run", "--model")
    said = command.fails(*run, "c")
    assert "--model c: the answers of --from are of a, b" in said
    said = command.done(*run, "b")[1]
    assert "rule 'cutoff'" in said  # one source has none to agree with
    lines = map(json.loads, gzip.decompress((tmp_path / "run" / "candidates.jsonl.gz").read_bytes()).splitlines())
    (row,) = [row for row in lines if row["SubjectEntity"] == SUBJECT]
    assert [one["object"] for one in row["candidates"]] == ["Mali"]
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["models"] == ["b"]


@pytest.mark.parametrize(
    ("rows", "objects"),
    [
        ([{"answers": ["396.75", "0.49"]}], {"396.75": 1.0, "0.49": 1.0}),
        ([{"answers": ["0.49", "396.75"]}, {"answers": ["about 5", "0.3"]}], {"396.75": 1.0, "0.49": 1.0}),
        ([{"answers": ["500", "0.3"], "scores": [0.9, 0.8]}], {"500": 0.9, "0.3": 0.8}),
        ([{"answers": [500, 0.3], "scores": [0.9, 0.8]}], {"500": 0.9, "0.3": 0.8}),
        ([{"answers": [["500", "0.3"], ["500", "0.4"]]}], {"500": 1.0, "0.3": 0.5, "0.4": 0.5}),  # two draws
        ([{"answers": ["1,234", "1"], "confidence": [0.9, 0.1]}], {"1234": 0.9, "1": 0.1}),
        ([{"answers": ["500", 0.3]}], {"500": 0.3}),
        ([{"answers": [["500 km2", "0.3"], ["400 km2", "0.2"]]}], {"500": 0.3, "400": 0.2}),  # all lists are pairs
        ([{"answers": ["500", "0.3"]}, {"answers": ["1", "2", "3"]}], {"500": 1.0, "0.3": 1.0}),
    ],
)
@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_two_texts_are_an_object_with_its_score_only_if_all_lists_of_the_file_are(
    command: Command, data_dir: Path, tmp_path: Path, rows: list[Any], objects: dict[str, float], ending: str
) -> None:
    import polars as pl

    places = zip(("Lošinj", "Cres", "Krk"), rows, strict=False)
    every = [{"subject": name, "relation": "hasArea"} | row for name, row in places]
    if ending == "parquet":
        mixed = any(len({*map(type, row["answers"])}) > 1 for row in rows)
        if mixed:
            pytest.skip("a list of Parquet has one type")
        pl.DataFrame(every).write_parquet(tmp_path / "a.parquet")
    elif ending == "csv":
        cells = [{name: one if isinstance(one, str) else json.dumps(one) for name, one in row.items()} for row in every]
        pl.DataFrame(cells).write_csv(tmp_path / "a.csv")
    else:
        (tmp_path / "a.jsonl").write_text(jsonl(*every), encoding="utf-8")
    asked = ("--edition", "2025", "--split", "val", "--relation", "hasArea", "--failed-as-empty", "--no-report")
    given = ("--data", data_dir, "--from", tmp_path / f"a.{ending}", "--out", tmp_path / "run")
    said = command.done("predict", *asked, *given)[1]
    lines = map(json.loads, gzip.decompress((tmp_path / "run" / "candidates.jsonl.gz").read_bytes()).splitlines())
    (made,) = [row["candidates"] for row in lines if row["SubjectEntity"] == "Lošinj"]
    assert {one["object"]: one["score"] for one in made} == objects
    assert "the scores of the file are not read" not in said


LISTS = ("Croatia, Serbia", "Serbia, Croatia", "Serbia")


@pytest.mark.parametrize(
    ("header", "mapping", "is_split"),
    [
        ("subject,relation,sample,answer", "", True),
        ("subject,relation,seed,prediction", "", True),
        ("subject,relation,run,response", "", True),
        ("subject,relation,sample,answer", ":answers=answer,draw=sample", True),
        ("subject,relation,sample,object", ":answers=object", True),
        ("subject,relation,sample,object", "", False),
        ("subject,relation,sample,answer", ":object=answer,draw=sample", False),
        ("subject,relation,sample,response", ":object=response", False),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_row_a_draw_is_read_as_answers_and_the_mapping_that_is_typed_counts(
    kept: Callable[..., tuple[set[str], str]], header: str, mapping: str, is_split: bool, ending: str
) -> None:
    rows = [(SUBJECT, RELATION, str(draw), text) for draw, text in enumerate(LISTS)]
    names = header.split(",")
    content = "\n".join([header, *(f'{a},{b},{c},"{d}"' for a, b, c, d in rows)])
    if ending == "jsonl":
        content = jsonl(*(dict(zip(names, row, strict=True)) for row in rows))
    found, said = kept(f"a.{ending}", content, mapping)
    assert found == (BOTH if is_split else {*LISTS})
    typed = re.search(r"(object|answers)=", mapping)
    assert f"{typed[0] if typed else ''}{names[3]}" in said


def test_rows_of_one_draw_name_its_objects(kept: Callable[..., tuple[set[str], str]], tmp_path: Path) -> None:
    found, said = kept("a.csv", f"subject,relation,seed,answer\n{DRAWS}")
    assert found == BOTH
    assert "object=answer" in said
    rows = map(json.loads, gzip.decompress((tmp_path / "run" / "candidates.jsonl.gz").read_bytes()).splitlines())
    (made,) = [row["candidates"] for row in rows if row["SubjectEntity"] == SUBJECT]
    assert {one["object"]: one["score"] for one in made} == {"Croatia": 1.0, "Serbia": 0.5}


def test_columns_that_are_not_read_are_named(kept: Callable[..., tuple[set[str], str]]) -> None:
    rows = [PAIR | {"answer": "Croatia, Serbia", "object": "Peru", "conf": 0.5, "logprob": -1.5}]
    found, said = kept("a.jsonl", jsonl(*rows))
    assert found == BOTH
    assert re.search(r"score=conf \(1 query\); not read: object, logprob", " ".join(said.split()))


OTHER = {"subject": "Croatia", "objects": ["Serbia", "Slovenia"]}


@pytest.mark.parametrize(
    "content",
    [
        {RELATION: {SUBJECT: sorted(BOTH), "Croatia": OTHER["objects"]}},
        {"country-borders": {SUBJECT: "Croatia, Serbia", "Croatia": None}},
        {SUBJECT: {RELATION: sorted(BOTH)}, "Croatia": {"P47": OTHER["objects"]}},
        {SUBJECT: {RELATION: {"Croatia": 0.9, "Serbia": 0.4}}},
        {SUBJECT: sorted(BOTH), "Croatia": OTHER["objects"], "Chile": None},
        {SUBJECT: "Croatia, Serbia", "Croatia": ""},
        {f"{SUBJECT}|{RELATION}": sorted(BOTH), f"Croatia|{RELATION}": OTHER["objects"]},
        {f"{SUBJECT} :: P47": "Croatia, Serbia", "Croatia :: P47": ""},
        {json.dumps([SUBJECT, RELATION]): sorted(BOTH), json.dumps(["Croatia", RELATION]): None},
        {str((SUBJECT, RELATION)): {"Croatia": 0.9, "Serbia": 0.4}},
        {f"country borders\t{SUBJECT}": sorted(BOTH)},
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_names_that_map_to_answers_are_read(
    kept: Callable[..., tuple[set[str], str]], content: dict[str, Any], indent: int | None
) -> None:
    found, said = kept("a.json", json.dumps(content, indent=indent))
    assert found == BOTH
    assert "a.json is read as one that maps names to answers" in said


def test_lines_that_map_a_key_each_are_read(kept: Callable[..., tuple[set[str], str]]) -> None:
    lines = [{f"{SUBJECT}|{RELATION}": sorted(BOTH)}, {f"Croatia|{RELATION}": OTHER["objects"]}]
    assert kept("a.jsonl", jsonl(*lines))[0] == BOTH


@pytest.mark.parametrize("relation", [(), ("--relation", RELATION)])
@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("a.json", '{"foo": "Croatia", "bar": "Serbia"}', "foo, bar"),
        ("a.json", '{"Foo": "Croatia", "score": 0.4}', "Foo, score"),
        ("a.csv", "Foo,Bar\nCroatia,Serbia\n", "Foo, Bar"),
        ("a.json", '{"queries": [{"subject": "Croatia", "answer": "Serbia"}]}', "queries"),
    ],
)
def test_unknown_columns_of_one_row_are_named(
    command: Command, tmp_path: Path, name: str, content: str, columns: str, relation: tuple[str, ...]
) -> None:
    (tmp_path / name).write_text(content)
    error = command.fails("predict", "--edition", "mini", "--split", "val", *relation, "--from", tmp_path / name)
    assert f"{name} has the columns {columns}, and none of them is known as subject" in error


def test_a_key_of_no_relation_is_named(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({f"{SUBJECT}|country-border": [], f"Croatia|{RELATION}": []}))
    error = command.fails("predict", "--edition", "mini", "--split", "val", "--from", tmp_path / "a.json")
    assert "a.json, line 1: 'country-border' is no relation of edition mini; did you mean " in error


def test_a_query_in_two_spellings_counts_once(kept: Callable[..., tuple[set[str], str]]) -> None:
    spellings = [(spelling, name) for spelling in (SUBJECT, f"{SUBJECT} ") for name in sorted(BOTH)]
    rows = [{"subject": spelling, "relation": RELATION, "object": name} for spelling, name in spellings]
    found, said = kept("a.jsonl", jsonl(*rows))
    assert (found, "(1 query)" in said) == (BOTH, True), said


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.jsonl", ""), ("a.jsonl", "\n\n"), ("a.csv", ""), ("a.csv", "subject,relation,object\n"), ("a.json", "[]")],
)
def test_a_file_without_a_row_is_named_as_such(command: Command, name: str, content: str) -> None:
    Path(name).write_text(content)
    error = command.fails("predict", "--edition", "mini", "--split", "val", "--from", name)
    assert error.endswith(f"{name} holds no row: give one for each query (docs/files.md, 'Answers of a script')\n")


A_ROW = PAIR | {"answers": sorted(BOTH)}


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([A_ROW, *(A_ROW | {"subject": name} for name in ("Peru", "Chile", "Peru ", "Chile"))], "2 queries have"),
        ([PAIR | {"answer": name} for name in sorted(BOTH)], ""),  # an object each
        ([PAIR | {"answer": name} for name in (*sorted(BOTH), "Serbia")], "1 query has"),
        ([A_ROW | {"sample": draw} for draw in (1, 2)], ""),
        ([A_ROW | {"sample": draw} for draw in (1, 2, 2)], "1 query has"),
        ([A_ROW | {"model": name} for name in "ab"], ""),
    ],
)
def test_rows_of_a_query_that_name_no_draws_are_told(
    kept: Callable[..., tuple[set[str], str]], tmp_path: Path, rows: list[dict[str, Any]], named: str
) -> None:
    said = kept("b.jsonl", jsonl(*rows))[1]
    assert ("several rows" in said) == bool(named)
    assert f"{tmp_path / 'b.jsonl'}: {named} several rows, read as draws, first (" in said or not named
    if len(rows) == 5:
        assert f"('Peru', '{RELATION}') in lines 2 and 4; " in said
        assert f"give --from {tmp_path / 'b.jsonl'}:object=answers\n" in said


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", f'subject,answers\n{SUBJECT},"Croatia, Serbia"\nCroatia,Serbia\n'),
        ("a.jsonl", jsonl({"subject": SUBJECT, "answers": sorted(BOTH)})),
        ("a.csv", f"subject,object\n{SUBJECT},Croatia\n{SUBJECT},Serbia\n"),
    ],
)
def test_with_one_relation_asked_none_need_be_named(
    kept: Callable[..., tuple[set[str], str]], command: Command, tmp_path: Path, name: str, content: str
) -> None:
    assert kept(name, content)[0] == BOTH
    assert "is not among the files" not in command.done("report", tmp_path / "run", "--from", tmp_path / name)[1]
    error = command.fails("predict", "--edition", "mini", "--split", "val", "--from", tmp_path / name)
    assert "none of them is known as relation" in error
