"""The command as a user runs it: real files, screens and exit statuses."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from command import Command

import lmkbc
from lmkbc import Workspace

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which the prior has predicted mini's val split, in a process of its own."""
    path = tmp_path_factory.mktemp("run")
    # Warnings are errors in the tests' own process; here a user's own settings hold.
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("LMKBC_", "HF_"))}
    done = subprocess.run(
        [sys.executable, "-m", "lmkbc", "predict", "--split", "val", "--system", "prior"],
        cwd=path,
        env=clean | {"XDG_CACHE_HOME": str(path / "cache"), "PYTHONPATH": str(ROOT), "LMKBC_REPORT": "0"},
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    assert "No data of edition 2026 here: using the small bundled edition 'mini'" in done.stderr
    assert "lmkbc data fetch 2026" in done.stderr
    return path


@pytest.fixture
def here(command: Command, run: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command in that directory."""
    monkeypatch.chdir(run)
    monkeypatch.setenv("COLUMNS", "200")
    return command


def test_predict_ends_with_a_checked_submission(run: Path) -> None:
    folder = run / "submissions" / "mini-val-prior"
    names = ["candidates.jsonl.gz", "manifest.json", "predictions.jsonl", "predictions.zip"]
    assert sorted(path.name for path in folder.iterdir()) == [*names, "timing.json"]
    queries = [json.loads(line) for line in (ROOT / "eval" / "mini" / "val.jsonl").read_text().splitlines()]
    rows = [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]
    assert [(row["SubjectEntity"], row["Relation"]) for row in rows] == [
        (query["SubjectEntity"], query["Relation"]) for query in queries
    ]
    with zipfile.ZipFile(folder / "predictions.zip") as opened:
        assert opened.namelist() == ["predictions.jsonl"]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["edition"], manifest["split"], manifest["system"]) == ("mini", "val", "prior")
    assert str(run) not in (folder / "manifest.json").read_text()


def test_the_same_inputs_give_the_same_bytes(run: Path, here: Command) -> None:
    here.done("predict", "--split", "val", "--edition", "mini", "--system", "prior", "--out", "again")
    folder = run / "submissions" / "mini-val-prior"
    for name in ("candidates.jsonl.gz", "manifest.json", "predictions.jsonl", "predictions.zip"):
        assert (run / "again" / name).read_bytes() == (folder / name).read_bytes(), name


@pytest.mark.whole
def test_statistics_of_train_beat_their_own_prior_and_the_empty_file(run: Path, here: Command) -> None:
    scores = {}
    for system in ("embedded", "prior", "bl22-empty"):
        here.done("predict", "-s", "val", "-e", "mini", "--system", system, "--out", system)
        out, _ = here.done("evaluate", f"{system}/predictions.jsonl", "--edition", "mini", "--json")
        scores[system] = json.loads(out)["macro_f1"]
    assert scores["embedded"] > max(scores["prior"], scores["bl22-empty"])


def test_evaluate_prints_the_official_table(run: Path, here: Command) -> None:
    path = "submissions/mini-val-prior/predictions.jsonl"
    out, _ = here.done("evaluate", path, "--edition", "mini", "--split", "dev")
    assert re.search(r"CountryBordersCountry +0\.\d{3} +0\.\d{3} +0\.\d{3}", out)
    assert "*** Average ***" in out
    out, _ = here.done("evaluate", path, "--edition", "mini", "--json", "--rows")
    shown = json.loads(out)
    assert set(shown) >= {"edition", "macro_f1", "macro_p", "macro_r", "relations", "rows"}
    assert len(shown["rows"]) == 160


def test_candidates_of_a_run_are_read_back_and_submitted(run: Path, here: Command) -> None:
    candidates = "submissions/mini-val-prior/candidates.jsonl.gz"
    here.done("predict", "-s", "val", "-e", "mini", "--from", candidates, "--out", "replayed")
    _, told = here.done("submit", "replayed/predictions.jsonl", "-e", "mini", "-s", "val", "--out", "it.zip")
    assert "it.zip: 160 rows of mini val, in order" in told


def test_tuning_writes_thresholds_that_predict_uses(run: Path, here: Command) -> None:
    space = run / "space"
    for name in ("relations", "eval", "thresholds"):
        shutil.copytree(ROOT / name, space / name)
    rows = [json.loads(line) for line in (space / "eval" / "mini" / "val.jsonl").read_text().splitlines()]
    right = [", ".join(row.pop("ObjectEntities")) or "none" for row in rows]
    said = [{"completions": [right[at], right[at - at % 2]], "model": "m"} | row for at, row in enumerate(rows)]
    (run / "said.jsonl").write_text("\n".join(map(json.dumps, said)))  # each other query has one wrong draw of two
    common = ("-e", "mini", "--workspace", "space", "--from", "said.jsonl")
    out, _ = here.done("tune", "-s", "val", "--trials", "1", "--json", *common)
    shown = json.loads(out)
    assert 0 < shown["cv_macro_f1"] <= shown["insample_macro_f1"] + 0.05
    here.done("predict", "-s", "val", "--out", "untuned", "--untuned", *common)
    own = json.loads(here.done("evaluate", "untuned", "--json", "--workspace", "space")[0])
    assert shown["untuned_macro_f1"] == pytest.approx(own["macro_f1"])
    (tuned,) = (space / "thresholds" / "mini").iterdir()
    _, told = here.done("predict", "-s", "val", "--out", "tuned", *common)
    assert f"selected by thresholds/mini/{tuned.name}; " in told
    assert 0 <= shown["confidence"]["recall_at_precision_90"] <= 1
    assert len({sum(bar[0] for bar in shown["confidence"][kind]["bins"]) for kind in ("raw", "calibrated")}) == 1
    _, told = here.done("predict", "-s", "val", "--out", "sure", "--precision", "0.8", *common)
    assert re.search(r"at precision 0\.8, promised by \d of 8 relations", told)
    _, told = here.done("predict", "-s", "val", "--precision", "0.8", "--promise", "average", *common)
    on_average = re.search(r"(\d+) objects, .*at precision 0\.8 on average, promised by (\d) of 8 relations", told)
    sure = re.search(r"promised by (\d) of 8", (run / "sure" / "manifest.json").read_text())
    assert on_average
    assert sure
    assert int(on_average[2]) >= int(sure[1])
    assert f"precision-0.8-average{os.sep}predictions" in told
    assert json.loads((run / "sure" / "manifest.json").read_text())["selection"]["promise"] == "sure"
    _, told = here.done("predict", "-s", "val", "--precision", "0.8", "--promise", "overall", *common)
    overall = re.search(r"(\d+) objects, .*at precision 0\.8 overall, promised by all relations together", told)
    assert overall
    assert int(overall[1]) >= int(on_average[1])
    told = here.fails("predict", "-s", "val", "--promise", "average", *common)
    assert told == "error: --promise says what a precision promises: give --precision too, as in 0.9\n"
    told = here.fails("predict", "-s", "val", "--precision", "0.8", "--promise", "averge", *common)
    assert told == "error: --promise is 'averge': did you mean 'average'?\n"
    rows = [json.loads(line) for line in (run / "sure" / "predictions.jsonl").read_text().splitlines()]
    empty = {(row["SubjectEntity"], row["Relation"]) for row in rows if not row["ObjectEntitiesID"]}
    listed = [json.loads(line) for line in (run / "sure" / "withheld.jsonl").read_text().splitlines()]
    assert len(rows) == 160
    assert empty
    assert {(row["SubjectEntity"], row["Relation"]) for row in listed} <= empty
    counts = json.loads((run / "sure" / "manifest.json").read_text())["counts"]
    assert (counts["withheld"], counts["failed"]) == (len(listed), 0)
    out, _ = here.done("evaluate", "sure/predictions.jsonl", "--edition", "mini", "--json")
    assert json.loads(out)["macro_p"] > 0.8
    told = here.fails("predict", "-e", "mini", "--system", "prior", "--precision", "90")
    assert told == "error: --precision is 90: give a share between 0 and 1, as in 0.9, or best:0.1\n"
    told = here.fails("predict", "-e", "mini", "--system", "prior", "--precision", "0.8")
    assert told.startswith("error: --precision needs thresholds of edition mini and system prior, tuned with confid")
    assert told.count("\n") == 1
    val = space / "eval" / "mini" / "val.jsonl"
    val.write_text("\n".join(val.read_text().splitlines()[:-1]))
    told = here.fails("predict", "-s", "val", "--out", "tuned", *common)
    assert "tuned on other data" in told


def test_a_predictions_file_is_linked_and_a_link_explained(run: Path, here: Command) -> None:
    row = {
        "SubjectEntity": "Elbe",
        "Relation": "RiverBasinsCountry",
        "ObjectEntities": ["Germany", "Czechia", "Atlantis"],
    }
    (run / "strings.jsonl").write_text(json.dumps(row))
    (run / "search.json").write_text('{"czechia": "Q213", "atlantis": ""}')
    common = ("--edition", "mini", "--search-table", "search.json")
    out, told = here.done("link", "strings.jsonl", *common)
    assert json.loads((run / "linked.jsonl").read_text())["ObjectEntitiesID"] == ["Q183", "Q213"]
    assert "1 text stays unlinked" in told
    assert re.search(r"RiverBasinsCountry +2 +1 +0", out)
    out, told = here.done("link", "--explain", "Germany", "--relation", "RiverBasinsCountry", *common)
    assert "Q183" in out
    assert "'Germany' -> Q183 (relation: most rows)" in told
    _, told = here.done("link", "build", "aliases.sqlite", "--edition", "mini")
    assert "0 broken lines" in told
    out, _ = here.done("link", "labels", "Q183", "--index", "aliases.sqlite")
    assert re.search(r"Q183 +Germany", out)


def test_relations_are_those_of_the_workspace(command: Command, tmp_path: Path) -> None:
    space = Workspace()
    relations = {relation.name for relation in space.relations.values()}
    out, _ = command.done("relations", "list")
    assert {line.split()[0] for line in out.splitlines()[1:]} == relations
    _, told = command.done("relations", "check")
    assert (
        f"{len(relations)} relations, {len(space.editions)} editions and {len(space.classes)} classes are sound" in told
    )


def test_relations_systems_and_data_are_listed_and_shown(command: Command, tmp_path: Path) -> None:
    out, _ = command.done("relations", "show", "CompoundHasParts", "--json")
    assert json.loads(out)["property"] == "P527"
    out, _ = command.done("systems", "list", "--json")
    systems = {system["name"]: system for system in json.loads(out)}
    assert systems["prop22"]["year"] == 2022
    out, _ = command.done("systems", "list")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    counts = [str(len(systems["prop22"][kind])) for kind in ("differs", "shortcuts", "reworded")]
    assert rows["prop22"] == [*systems["prop22"]["summary"].split(), "2022", "0.676", *counts]
    assert rows.keys() - {"system"} == systems.keys()
    assert max(map(len, out.splitlines())) <= 80
    as_theirs = command.done("systems", "show", "prop22")[0].replace('wording = "own"', 'wording = "authors"')
    (tmp_path / "systems" / "theirs").mkdir(parents=True)
    (tmp_path / "lmkbc.toml").touch()
    (tmp_path / "systems" / "theirs" / "recipe.toml").write_text(as_theirs)
    (theirs,) = (one for one in json.loads(command.done("systems", "list", "--json")[0]) if one["name"] == "theirs")
    assert (theirs["differs"], theirs["reworded"]) == (systems["prop22"]["differs"], [])
    (tmp_path / "my.toml").write_text(command.done("systems", "show", "li22")[0])
    mine, theirs = (command.done("systems", "show", name, "--json")[0] for name in ("my.toml", "li22"))
    assert json.loads(mine) | {"name": "li22"} == json.loads(theirs)
    out, _ = command.done("data", "check", "mini", "--json")
    assert [(row["state"], row["rows"]) for row in json.loads(out)] == [("ok", 320), ("ok", 160), ("ok", 160)]


def test_data_check_names_a_split_that_differs(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "lmkbc2024"
    folder.mkdir()
    row = {"SubjectEntity": "x", "Relation": "awardWonBy", "ObjectEntitiesID": []}
    (folder / "val.jsonl").write_text(json.dumps(row))
    _, out, error = command("data", "check", "2024", "--data", tmp_path)
    assert "differs" in out
    assert "lmkbc data fetch EDITION" in error


RELATION = "CountryBordersCountry"


def completions(folder: Path, *texts: str) -> Path:
    path = folder / "said.jsonl"
    row = {"SubjectEntity": "Atlantis", "Relation": RELATION, "model": "some-model", "completions": list(texts)}
    path.write_text(json.dumps(row) + "\n")
    return path


def test_the_answer_its_links_and_what_the_model_wrote(command: Command, tmp_path: Path) -> None:
    said = completions(tmp_path, "Chile, Peru", "Chile")
    shown, told = command.done(
        "ask", "Atlantis", "country-borders", "--edition", "mini", "--from", said, "--offline", "--untuned"
    )
    chile = next(line.split() for line in shown.splitlines() if "Chile" in line)
    assert chile[:3] == ["*", "Chile", "Q298"]
    assert "train, as an object of the relation" in shown
    assert f"Atlantis, {RELATION}: Chile" in told
    assert "the model wrote" not in told  # these answers were given, not asked for


def test_a_question_is_answered_as_in_a_run(tmp_path: Path) -> None:
    run = lmkbc.predict(edition="mini", split="val", system="prior", out=tmp_path / "run", relation=RELATION, limit=1)
    subject, _, objects = run.predictions.row(0)
    answer = lmkbc.ask(subject, "country-borders", edition="mini", system="prior")
    assert [one.id for one in answer.kept] == objects
    assert (answer.relation, answer.edition, answer.system) == (RELATION, "mini", "prior")
    assert [one.kept for one in answer.objects] == sorted((one.kept for one in answer.objects), reverse=True)
    assert len(answer) == len(list(answer))
    assert subject in answer._repr_html_()


def test_an_empty_answer_is_an_answer_and_a_missing_one_is_a_failure(command: Command, tmp_path: Path) -> None:
    options = ("--edition", "mini", "--offline", "--untuned", "--from")
    shown, told = command.done("ask", "Atlantis", RELATION, *options, completions(tmp_path, "None"))
    assert f"Atlantis, {RELATION}: nothing" in told
    assert shown == ""
    told = command.fails("ask", "Atlantis", RELATION, *options, completions(tmp_path, "-"), status=1)
    assert "gave no usable answer about 'Atlantis' (unparsed)" in told


@pytest.mark.parametrize("given", ["Q419", "https://www.wikidata.org/wiki/Q419"])
def test_a_subject_s_id_is_a_qid(command: Command, given: str) -> None:
    command.done("ask", "Peru", "country-borders", "-e", "mini", "--system", "prior", "--subject-id", given)
