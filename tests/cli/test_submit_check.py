"""What a competitor types before a submission: a check that writes nothing."""

import gzip
import json
import re
import shutil
from pathlib import Path

import pytest
from command import Command


def test_check_reads_a_file_or_a_zip_and_writes_nothing(command: Command, tmp_path: Path) -> None:
    words = ("--edition", "mini", "--split", "val")
    command.done("predict", *words, "--system", "bl22-empty", "--out", tmp_path / "run", "--no-report")
    place = tmp_path / "alone"
    place.mkdir()
    for name in ("predictions.jsonl", "predictions.zip"):
        shutil.copy(tmp_path / "run" / name, place / name)
        told = command.done("submit", place / name, *words, "--check")[1]
        assert f"{name} can be submitted: 160 rows of mini val; nothing was written" in told
        assert [path.name for path in place.iterdir()] == [name]
        (place / name).unlink()
    zipped = (tmp_path / "run" / "predictions.zip").read_bytes()
    command.done("submit", tmp_path / "run", *words)  # of a finished run, which has its zip
    command.done("submit", tmp_path / "run" / "predictions.jsonl", *words, "--out", place / "same.zip")
    assert (tmp_path / "run" / "predictions.zip").read_bytes() == (place / "same.zip").read_bytes() == zipped
    (place / "own.jsonl").write_text('{"subject": "Chad", "relation": "CountryBordersCountry", "answers": []}\n')
    told = command.fails("submit", place / "own.jsonl", *words)
    assert "own.jsonl has no field SubjectEntity and Relation: if it is of a script of yours, 'lmkbc predict" in told
    lines = (tmp_path / "run" / "predictions.jsonl").read_text().splitlines(keepends=True)
    (place / "less.jsonl").write_text("".join(lines[1:]))
    assert "lacks 1 of 160 queries" in command.fails("submit", place / "less.jsonl", *words, "--check")
    assert "is of val, not of test: make a run with 'lmkbc predict --split test', or add --split val to check" in (
        command.fails("submit", tmp_path / "run", "--check")
    )
    assert "can be submitted" in command.done("submit", tmp_path / "run", "--split", "dev", "--check")[1]


@pytest.mark.parametrize(
    ("name", "columns", "way"),
    [
        ("own.parquet", ("subject", "relation", "answers"), "own.parquet'"),
        ("own.csv", ("head", "rel", "tail"), "own.csv'"),
        ("own.csv", ("SubjectEntity", "Relation", "ObjectEntitiesID"), "own.csv:answers=ObjectEntitiesID'"),
        ("own.parquet", ("SubjectEntity", "Relation", "ObjectEntitiesID"), "own.parquet:answers=ObjectEntitiesID'"),
    ],
)
@pytest.mark.parametrize("verb", ["evaluate", "submit", "report"])
def test_a_table_of_a_script_is_sent_to_predict(
    command: Command, tmp_path: Path, verb: str, name: str, columns: tuple[str, ...], way: str
) -> None:
    import polars as pl

    frame = pl.DataFrame([dict(zip(columns, ("Chile", "CountryBordersCountry", "Peru"), strict=True))])
    frame.write_csv(tmp_path / name) if name.endswith("csv") else frame.write_parquet(tmp_path / name)
    told = command.fails(verb, tmp_path / name, "--edition", "mini", "--split", "val")
    assert f"is a table with the columns {', '.join(columns)}, where lines of JSON with SubjectEntity, " in told
    assert f"'lmkbc predict --from {tmp_path / way} makes predictions of it" in told


def test_an_unfinished_run_says_how_it_ends(command: Command, tmp_path: Path) -> None:
    answers, words = (
        tmp_path / "own.csv",
        ("--edition", "mini", "--split", "val", "--relation", "CountryBordersCountry"),
    )
    answers.write_text("subject,relation,answers\nBosnia and Herzegovina,CountryBordersCountry,Croatia\n")
    made = ("predict", *words, "--from", answers, "--no-report", "--out", tmp_path / "run")
    assert command(*made)[0] == 1
    for verb in (("report", tmp_path / "run", "--from", answers), ("submit", tmp_path / "run", "--check")):
        assert "the run is not finished, since queries failed, which missing.jsonl lists" in command.fails(*verb)
    command.done(*made, "--failed-as-empty")
    assert "files that the run read" not in command.done("report", tmp_path / "run", "--from", answers)[1]
    row = {"SubjectEntity": "Bosnia and Herzegovina", "Relation": "CountryBordersCountry", "completions": ["Croatia"]}
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(row).encode()))
    command.done(*made[:-4], packed, "--no-report", "--failed-as-empty", "--out", tmp_path / "of-packed")
    assert "files that the run read" not in command.done("report", tmp_path / "of-packed", "--from", packed)[1]
    (tmp_path / "other.csv").write_text(answers.read_text() + "Nowhere,CountryBordersCountry,Peru\n")
    said = command.done("report", tmp_path / "run", "--from", tmp_path / "other.csv")[1]
    assert f"{tmp_path / 'other.csv'} is not among the files that the run read, so its replies may be of other" in said


def test_scores_above_one_are_explained(command: Command, data_dir: Path, tmp_path: Path) -> None:
    lines = (data_dir / "lmkbc2025" / "val.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["Relation"] == "hasArea"]
    words = ("--edition", "2025", "--split", "val", "--data", data_dir, "--relation", "hasArea")
    for more, is_said in ((2, False), (1.01, True)):
        made = [
            row | {"ObjectEntities": [one, str(float(one) * more)]} for row in rows for one in row["ObjectEntities"][:1]
        ]
        (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")
        shown, said = command.done("evaluate", tmp_path / "p.jsonl", *words)
        assert (
            "above 1 in hasArea: the official script counts each number near a true one as right" in said
        ) == is_said
        command.done("report", tmp_path / "p.jsonl", *words, "--out", tmp_path / "p.html")
        assert ("above 1 in hasArea: the official script" in (tmp_path / "p.html").read_text("utf-8")) == is_said
        assert (float(re.findall(r"hasArea +[.0-9]+ +([.0-9]+)", shown)[0]) > 1) == is_said


def test_a_query_that_stands_twice_is_counted_in_one_way(command: Command, data_dir: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (data_dir / "lmkbc2025" / "test.jsonl").read_text("utf-8").splitlines()]
    pairs = [(row["SubjectEntity"], row["Relation"]) for row in rows]
    assert len(pairs) == len(set(pairs)) + 1
    given, words = tmp_path / "given.jsonl", ("--edition", "2025", "--split", "test", "--data", data_dir)
    given.write_text("".join(json.dumps(row) + "\n" for row in rows[:8]), "utf-8")
    left = sum(pair not in pairs[:8] for pair in pairs)
    assert f"lacks {left} of {len(rows)} queries" in command.fails("submit", given, *words)
    answers = ({**row, "candidates": []} for row in rows[:8])
    given.write_text("".join(json.dumps(row) + "\n" for row in answers), "utf-8")
    made = ("predict", *words, "--system", "recorded", "--from", given, "--no-report", "--out", tmp_path / "run")
    told = command.fails(*made, status=1)
    assert f"{left} of {len(rows)} queries failed" in told
    assert "1 query stands more than once in the split: each is asked and scored once" in told


def test_a_zip_is_not_zipped_again(command: Command, tmp_path: Path) -> None:
    words = ("--edition", "mini", "--split", "val")
    command.done("predict", *words, "--system", "prior", "--no-report", "--out", tmp_path / "run")
    zipped = tmp_path / "run" / "predictions.zip"
    assert "is a zip already: add --check" in command.fails("submit", zipped, *words)
    assert not zipped.with_name("predictions.zip.zip").exists()
    command.done("submit", zipped, *words, "--check")


def test_a_lone_none_is_warned_of_and_relations_are_known_by_any_spelling(
    command: Command, data_dir: Path, tmp_path: Path
) -> None:
    asked = ("--edition", "2025", "--split", "val", "--data", data_dir)
    gold = (data_dir / "lmkbc2025" / "val.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [{name: json.loads(line)[name] for name in ("SubjectEntity", "Relation")} for line in gold]
    place = tmp_path / "p.jsonl"

    def write(borders: str, nothing: list[str]) -> None:
        named = ({**row, "ObjectEntities": []} for row in rows)
        made = [{**row, "ObjectEntities": nothing if "Borders" in row["Relation"] else []} for row in named]
        lines = (json.dumps(row).replace('"countryLandBordersCountry"', f'"{borders}"') + "\n" for row in made)
        place.write_text("".join(lines), encoding="utf-8")

    for borders in ("country land borders country", "country_land_borders_country", "Country borders"):
        write(borders, [])
        assert "can be submitted" in command.done("submit", place, *asked, "--check")[1]
        assert "missing" not in command.done("evaluate", place, *asked)[1]
    write("borders by land", [])
    told = command.fails("submit", place, *asked, "--check")
    assert "first ('" in told
    assert "'borders by land' is no relation of edition 2025; " in told
    write("countryLandBordersCountry", ["None"])
    for words in (("submit", place, *asked, "--check"), ("evaluate", place, *asked)):
        told = command.done(*words)[1]
        assert re.search(r"\d+ rows name a word such as 'None' alone, which is scored as a name: write \[\]", told)


def test_evaluate_sends_predictions_of_names_to_link_and_so_does_predict(command: Command, tmp_path: Path) -> None:
    place = tmp_path / "names.jsonl"
    place.write_text('{"SubjectEntity": "Chad", "Relation": "CountryBordersCountry", "ObjectEntities": ["Niger"]}\n')
    asked = ("--edition", "mini", "--split", "val")
    for words in (("evaluate", place), ("predict", "--from", place)):
        assert f"'lmkbc link {place}' finds" in command.fails(*words, *asked)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "a.csv",
            "subject,relation,response\nChad,CountryBordersCountry,Niger\n",
            "has no column object",
        ),
        ("a.jsonl", '{"subject": "Chad", "relation": "P47", "answers": ["Niger"]}\n', "has no field SubjectEntity and"),
        ("a.jsonl", '{"SubjectEntity": "Chad", "Relation": "P47", "completions": ["Niger"]}\n', "holds completions"),
    ],
)
def test_link_sends_answers_of_a_script_to_predict(
    command: Command, tmp_path: Path, name: str, content: str, said: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    told = command.fails("link", tmp_path / name, "--edition", "mini", "--offline", "--out", tmp_path / "out")
    assert said in told
    assert f"'lmkbc predict --from {tmp_path / name}' makes predictions of" in told
