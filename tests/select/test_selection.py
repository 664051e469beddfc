"""Thresholds of another model: refused, taken or left aside as is asked, and never written over."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command import Command
from space import SPACE

import lmkbc
import lmkbc.workspace
from lmkbc import LmkbcError
from lmkbc.select.narrowings import Narrowing
from lmkbc.select.selector import PerRelation
from lmkbc.testing import Candidate, CandidateSet
from tests.candidates import candidate_set
from tests.rules import rule_of

ROOT = Path(__file__).parents[2]
VAL = SPACE.examples(SPACE.edition("mini"), "val")
COMMON = ("--split", "val", "--edition", "mini", "--workspace", "space", "--offline")
TUNE = ("tune", *COMMON, "--trials", "0", "--rules", "cutoff,top-k", "--folds", "2")


def answers(path: Path, model: str) -> Path:
    """Candidates of which the first is right."""
    rows = []
    for row in VAL:
        found = [{"object": one.names[0], "id": one.id, "score": 0.4} for one in row.objects]
        wrong = {"object": "Atlantis", "id": "Q999999", "score": 0.3}
        head = {"SubjectEntity": row.query.subject, "Relation": row.query.relation, "model": model}
        rows.append(head | {"candidates": [*found[:1], wrong]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Two models' answers, and a workspace whose thresholds are empty."""
    (tmp_path / "space" / "thresholds").mkdir(parents=True)
    for name in ("relations", "eval"):
        shutil.copytree(ROOT / name, tmp_path / "space" / name, ignore=shutil.ignore_patterns("bench"))
    return {model: answers(tmp_path / f"{model}.jsonl", model) for model in ("gpt-4", "gpt-3.5")}


def test_thresholds_of_another_model_are_refused_taken_or_left_aside(
    command: Command, files: dict[str, Path], tmp_path: Path
) -> None:
    first = tmp_path / "space" / "thresholds" / "mini" / "recorded--gpt-4.toml"
    assert command.done(*TUNE, "--from", files["gpt-4"])[1].endswith(f"wrote {first}\n")
    before = first.read_bytes()
    other = ("predict", *COMMON, "--from", files["gpt-3.5"])
    status, _, told = command(*other)
    why = "thresholds/mini/recorded--gpt-4.toml was tuned on answers of gpt-4, not of gpt-3.5: "
    assert (status, told.startswith(f"error: {why}run 'lmkbc tune' for these answers")) == (2, True), told
    assert not (tmp_path / "submissions").exists()
    assert (
        f"selected by {why[:-2].replace('.toml ', '.toml, which ')};"
        in command.done(*other, "--any-thresholds", "--out", "any")[1]
    )
    assert (
        "selected by the recipe's rule 'cutoff' (threshold 0.5), untuned;"
        in command.done(*other, "--untuned", "--out", "untuned")[1]
    )
    assert command.fails(*other, "--untuned", "--any-thresholds").startswith(
        "error: --untuned uses no thresholds, and any"
    )
    assert command(*TUNE, "--from", files["gpt-3.5"])[0] == 0
    assert "selected by thresholds/mini/recorded--gpt-3.5.toml;" in command.done(*other, "--out", "own")[1]
    assert first.read_bytes() == before
    manifest = json.loads((tmp_path / "own" / "manifest.json").read_text())
    assert manifest["selection"]["models"] == ["gpt-3.5"]


def test_what_was_tuned_before_is_replaced_when_that_is_asked_for(command: Command, files: dict[str, Path]) -> None:
    tune = (*TUNE, "--from", files["gpt-4"])
    assert command(*tune)[0] == 0
    status, shown, told = command(*tune)
    assert (status, shown) == (2, "")
    assert told.startswith("error: space/thresholds/mini/recorded--gpt-4.toml holds what was tuned before: give")
    assert command(*tune, "--no-write")[0] == command(*tune, "--overwrite")[0] == 0


def test_scores_of_rules_that_saw_the_split_say_so(command: Command, files: dict[str, Path], tmp_path: Path) -> None:
    shown, _ = command.done(*TUNE, "--from", files["gpt-4"], "--json")
    figures = json.loads(shown)
    seen = f"the rules saw this split; F1 out of fold {figures['cv_macro_f1']:.3f}"
    predict = ("predict", *COMMON, "--from", files["gpt-4"])
    assert f"LM-KBC mini, val: {seen}\n" in command(*predict, "--out", "tuned")[1]
    shown, _ = command.done("evaluate", "tuned")
    assert shown.splitlines()[0].strip() == f"LM-KBC mini, val: {seen}"
    assert shown.splitlines()[-1].split()[-1] == f"{figures['cv_macro_f1']:.3f}"
    shown = command("evaluate", "tuned/predictions.zip", "--json")[1]
    assert json.loads(shown)["out_of_fold"]["f1"] == pytest.approx(figures["cv_macro_f1"], abs=1e-6)
    shown = command("evaluate", "tuned", "--relation", "RiverBasinsCountry")[1]
    own = figures["relations"]["RiverBasinsCountry"]["cv_f1"]
    of_one = rf"F1 out of fold {own:.3f}"
    assert re.search(rf"{of_one} *\n.*\nRiverBasinsCountry .* {own:.3f}\s*\n.* {own:.3f}\s*\n", shown)
    shown = command("evaluate", "tuned", "--relation", "RiverBasinsCountry", "--limit", "3")[1]
    assert re.search(rf"{seen} on the whole split, over \d+ relations", shown)
    names = [*figures["relations"]][:2]
    both = sum(figures["relations"][name]["cv_f1"] for name in names) / 2
    of_two = f"F1 out of fold {both:.3f}"
    shown, told = command.done(*predict, "--out", "two", "--relation", names[0], "--relation", names[1])
    assert f"{of_two}\n" in shown
    assert "kept none" in told
    assert "'lmkbc tune' learns" not in told
    assert f"two: the rules saw this split; {of_two}.\n" in command("compare", "two", "tuned", "--html", "b.html")[1]
    rows = {row["name"]: row["out_of_fold"] for row in json.loads(command.done("runs", ".", "--json")[0])}
    assert rows["two"] == pytest.approx(both, abs=1e-6)
    scores = lmkbc.read_run("tuned").evaluate()
    assert seen in repr(scores)
    assert scores.relations["out_of_fold_f1"].to_list() == [
        pytest.approx(figures["relations"][name]["cv_f1"], abs=1e-6) for name in scores.relations["relation"]
    ]
    assert command(*predict, "--out", "untuned", "--untuned")[0] == 0
    assert "saw this split" not in command("evaluate", "untuned")[1]
    assert lmkbc.read_run("untuned").evaluate().in_sample is None
    assert f"\ntuned: {seen}.\n" in command("compare", "untuned", "tuned", "--html", "both.html")[1]
    assert f"tuned: {seen}." in (tmp_path / "both.html").read_text()
    assert command("report", "tuned")[0] == 0
    page = (tmp_path / "tuned" / "report.html").read_text()
    assert f"<strong>{figures['cv_macro_f1']:.3f}</strong> macro-F1 out of fold</li>" in page
    assert "left out: the objects were selected by thresholds/mini/recorded--gpt-4.toml." in page
    assert "threshold = 0.5" not in page  # of the rule that did not run
    assert command("predict", *COMMON, "--from", files["gpt-3.5"], "--any-thresholds", "--out", "other")[0] == 0
    assert command(*predict, "--learn-from", "none", "--out", "unstated")[0] == 0
    for name in ("other", "unstated"):
        assert "the rules saw this split; F1 out of fold is not known" in command("evaluate", name)[1]


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({}, (0.5, {"r": 0.25})),
        ({"split": "train"}, None),
        ({"selection": {"how": "untuned"}}, None),
        ({"inputs": {}}, None),
        ({"system": "another"}, (None, {})),
        ({"precision": 0.9}, (None, {})),
        ({"cv_f1_by_relation": None}, (0.5, {})),
    ],
)
def test_a_manifest_tells_whether_rules_saw_the_split(changes: dict[str, Any], known: Any, tmp_path: Path) -> None:
    selection = {"system": "s", "data_sha256": "d", "cv_f1": 0.5, "cv_f1_by_relation": {"r": 0.25}}
    inputs = {"lmkbcmini/train": "t", "lmkbcmini/val": "d"}
    manifest = {"system": "s", "split": "val", "selection": selection, "inputs": inputs}
    for name, value in changes.items():
        (manifest if name in manifest else selection)[name] = value
    shutil.copy(SPACE.split_path(SPACE.edition("mini"), manifest["split"]), tmp_path / "predictions.jsonl")
    (tmp_path / "manifest.json").write_text(json.dumps({"edition": "mini", **manifest}))
    found = lmkbc.score(tmp_path).in_sample
    assert (found and (found.f1, found.relations)) == known


def test_git_ignores_what_is_tuned_and_no_file_that_comes_with_it() -> None:
    git = shutil.which("git")
    if not git or not (ROOT / ".git").exists():
        pytest.skip("no clone: git or its folder is absent")
    tuned = ["thresholds/mini/recorded--gpt-4.toml", "thresholds/2023/prior.toml"]
    bundled = [str(path.relative_to(ROOT)) for path in (ROOT / "thresholds").glob("*/smollm2--SmolLM2-*.toml")]
    words = [git, "check-ignore", "--no-index", *tuned, *bundled]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, tuned), done.stderr


@pytest.mark.parametrize("held", ["relations", "eval"])
def test_tuning_writes_into_the_workspace_that_was_given(command: Command, tmp_path: Path, held: str) -> None:
    """A workspace without thresholds gets them; those of the checkout stay as they are, and are still found."""
    shutil.copytree(ROOT / held, tmp_path / "space" / held, ignore=shutil.ignore_patterns("bench"))
    before = {path: path.read_bytes() for path in (ROOT / "thresholds").rglob("*") if path.is_file()}
    said = answers(tmp_path / "said.jsonl", "gpt-4")
    told = command.done(*TUNE, "--from", said)[1]
    assert told.endswith(f"wrote {tmp_path}/space/thresholds/mini/recorded--gpt-4.toml\n")
    assert {path: path.read_bytes() for path in (ROOT / "thresholds").rglob("*") if path.is_file()} == before
    assert "selected by thresholds/mini/recorded--gpt-4.toml;" in command.done("predict", *COMMON, "--from", said)[1]
    places = lmkbc.workspace.Workspace(tmp_path / "space").folders("thresholds")
    assert places == [tmp_path / "space" / "thresholds", ROOT / "thresholds"]


def test_a_precision_is_of_the_relations_that_are_asked_and_the_advice_is_lower_and_works(
    command: Command, files: dict[str, Path]
) -> None:
    """A relation that is not asked promises more than the one that is."""
    borders, instruments = "CountryBordersCountry", "PersonPlaysInstrument"
    rows = [json.loads(line) for line in files["gpt-4"].read_text().splitlines()]
    for place, row in enumerate(rows):
        if row["Relation"] == instruments and place % 2:
            row["candidates"] = row["candidates"][1:]
    files["gpt-4"].write_text("".join(json.dumps(row) + "\n" for row in rows))
    command.done(*TUNE, "--from", files["gpt-4"])
    given = ("predict", *COMMON, "--from", files["gpt-4"], "--promise", "average", "--precision")
    _, told = command.done(*given, "0.8", "--relation", borders)
    assert "at precision 0.8 on average, promised by 1 of 1 relation;" in told
    assert "nothing is kept" not in told
    tried = "0.95"
    for _ in range(20):
        status, _, told = command(*given, tried, "--relation", instruments)
        if not status:
            break
        (advised,) = re.findall(r"; give --precision ([\d.]+)", told)
        assert borders not in told
        assert float(advised) < float(tried)
        tried = advised
    assert (status, float(tried) < 0.95) == (0, True), told


class Silence(Narrowing):
    """A run that answers nothing, whatever its rules keep."""

    def left(self, candidates: CandidateSet, objects: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        return ()


class ButFirst(Narrowing):
    """A run that leaves out the best object of each query."""

    def left(self, candidates: CandidateSet, objects: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        return objects[1:]


def test_an_answer_is_withheld_only_if_all_of_it_is_left_out() -> None:
    found = [Candidate(name, 0.9) for name in ("Chile", "Peru")]
    sets = [candidate_set(VAL[0].query, found[:count]) for count in range(3)]
    made = PerRelation(rule_of("top-k", k=2)).narrowed(ButFirst()).select_all(sets)
    assert [len(one.objects) for one in made] == [0, 0, 1]
    assert [bool(one.withheld) for one in made] == [False, True, False]


def test_what_a_run_leaves_of_its_rules_is_left_out_everywhere(
    command: Command, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmkbc.recipe._selector", lambda *_: PerRelation(rule_of("top-k", k=2)).narrowed(Silence()))
    assert command.done(*TUNE, "--from", files["gpt-4"], "--json")
    given: dict[str, Any] = {"edition": "mini", "workspace": "space", "files": [files["gpt-4"]], "offline": True}
    tuning = lmkbc.tune("val", trials=0, folds=2, write=False, **given)
    assert not any(made.objects for made in tuning.tuned.predictions)
    options: list[dict[str, Any]] = [{}, {"untuned": True}]
    for place, more in enumerate(options):
        run = lmkbc.predict("val", out=f"run{place}", **given, **more)
        assert not any(run.predictions["objects"].list.len())
    with pytest.raises(LmkbcError, match="none promises any precision"):
        lmkbc.predict("val", out="sure", **given, precision=0.1)
    assert not Path("sure").exists()
    answer = lmkbc.ask(VAL[0].query.subject, VAL[0].query.relation, **given)
    assert not any(one.kept for one in answer.objects)
