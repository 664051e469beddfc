"""`lmkbc build --add` after a change: what changed is decided anew, the rest stays, and refusals have a way out."""

import json
import shlex
from pathlib import Path

import polars as pl
import pytest
from command import Command
from opened import recipe_file

RELATION = '''"""What it is."""
from lmkbc import EntityType, Relation
RELATION = Relation(
    name="{name}", names=("has_{name}",), property="{number}", subject_type=EntityType("micronation", "Q188443"),
    object_type=EntityType("thing", "Q35120"), kind="{kind}", may_be_empty=True, definition="The {name}.",
    clozes=("{{subject}} has {{mask}}.",), question="What is the {name} of {{subject}}?", triple="has",
    statement="{{subject}} has {{object}}.",
)
'''
EDITION = '''"""What it is."""
from lmkbc import Edition
EDITION = Edition(
    name="mine", folder="mine", relations=({names}), splits=dict.fromkeys(("train", "val", "test")),
    column="ObjectEntities", target="string",
)
'''
LANDS = [f"Land {n}" for n in range(24)]
KINDS = {"code": "identifier", "head": "entity", "motto": "string"}


def relation(name: str) -> None:
    number = f"P{101 + [*KINDS].index(name)}"
    Path("relations", f"{name}.py").write_text(RELATION.format(name=name, kind=KINDS[name], number=number))


def edition(*names: str) -> None:
    Path("eval/mine.py").write_text(EDITION.replace("{names}", "".join(f'"has_{name}", ' for name in names)))


def split(name: str, **wrong: str) -> None:
    """Write labelled rows. wrong: the code of a land."""
    rows = [
        {"SubjectEntity": land, "Relation": f"has_{one}", "ObjectEntities": [[wrong.get(land, f"{one} of {land}")]]}
        for land in LANDS
        for one in ("code", "head")
    ]
    Path("eval/mine", f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def run(command: Command) -> Command:
    for folder in ("relations", "eval/mine"):
        Path(folder).mkdir(parents=True)
    relation("code")
    relation("head")
    edition("code", "head")
    for name in ("train", "val", "test"):
        split(name, **({"Land 20": "of train"} if name == "train" else {}))
    told = [
        {"SubjectEntity": land, "Relation": f"has_{one}", "model": "m", "completions": [f"{one} of {land}"]}
        for land in LANDS
        for one in ("code", "head")
    ]
    Path("told.jsonl").write_text("".join(json.dumps(one) + "\n" for one in told))
    recipe_file(Path("mine.toml"), {"component": "recorded"}, select={"rule": "cutoff", "threshold": 0.1})
    for name, some in (("few", LANDS[:4]), ("more", LANDS[4:6])):
        Path(f"{name}.csv").write_text("name,class\n" + "".join(f"{land},Q188443\n" for land in some))
    return command


ASKED = ("--workspace", ".", "--edition", "mine", "--system", "mine.toml", "--from", "told.jsonl", "--offline")
BUILD = ("build", *ASKED, "--least", "0", "--out", "kb", "--subjects")


def runs() -> dict[tuple[str, str], str]:
    """Return (subject, relation) -> id of the build that made the fact."""
    facts = pl.read_parquet("kb/facts/*/*.parquet", hive_partitioning=True)
    return {(one, name): run for one, name, run in facts.select("subject", "relation", "run").iter_rows()}


def test_after_a_new_relation_the_rest_is_kept(run: Command) -> None:
    build = (*BUILD[: BUILD.index("--system")], "--system", "prior", "--offline", "--least", "0", "--out", "kb")
    run.done(*build, "--subjects", "few.csv")
    before = Path("kb/manifest.json").read_bytes()
    relation("motto")
    edition("code", "head", "motto")
    _, told = run.done(*build, "--subjects", "few.csv", "--add")
    assert "kb: 0 new subjects, 1 new relation\n" in told
    made = [json.loads(content) for content in (before, Path("kb/manifest.json").read_bytes())]
    assert made[1]["counts"]["queries"] - made[0]["counts"]["queries"] == 4
    asked = pl.read_parquet("kb/nothing/*.parquet").filter(relation="motto")
    assert {*asked["run"]} == {made[1]["run"]}
    assert {*pl.read_parquet("kb/nothing/*.parquet").filter(pl.col("relation") != "motto")["run"]} <= {made[0]["run"]}


def test_after_a_change_of_a_relation_it_alone_is_asked_anew(run: Command) -> None:
    run.done(*BUILD, "few.csv")
    before = runs()
    path = Path("relations/code.py")
    path.write_text(path.read_text().replace("The code.", "The code of a land."))
    _, told = run.done(*BUILD, "more.csv", "--add")
    assert (
        "kb: 2 new subjects, 0 new relations; decided anew, since rules, modules or labelled rows changed: code" in told
    )
    after = runs()
    assert {key: after[key] == before[key] for key in before} == {key: key[1] == "head" for key in before}
    assert len(after) == 12


def test_after_a_correction_of_labelled_rows_all_is_decided_anew(run: Command) -> None:
    run.done(*BUILD, "few.csv")
    labels = "relation,subject,object,label\nhead,Land 0,head of Land 0,right\n"
    Path("labels.csv").write_text(labels)
    run.done("review", "kb", "labels.csv")
    decided = Path("kb/reviews.jsonl").read_bytes()
    split("train", **{"Land 1": "another"})
    assert "differ in files" in run.fails(*BUILD, "few.csv")
    shown = run.done(*BUILD, "more.csv", "--add", "--dry-run")
    assert "12 queries" in "".join(shown), shown
    _, told = run.done(*BUILD, "more.csv", "--add")
    assert "labelled rows changed: code, head" in told
    facts = pl.read_parquet("kb/facts/*/*.parquet", hive_partitioning=True).filter(subject="Land 1")
    assert facts["stated_by"].to_list() == [None, None]  # both rows of the land were corrected
    assert Path("kb/reviews.jsonl").read_bytes() == decided
    once = Path("kb/manifest.json").read_bytes()
    run.done(*BUILD, "more.csv", "--add")
    assert Path("kb/manifest.json").read_bytes() == once


def test_after_tuning_the_commands_that_errors_name_end(run: Command) -> None:
    tune = ("tune", *ASKED, "--split", "val", "--trials", "2", "--folds", "2")
    run.done(*BUILD, "few.csv")
    run.done(*tune)
    _, told = run.done(*BUILD, "more.csv", "--add")
    assert "decided anew, since rules" in told
    split("val", **{"Land 3": "another"})
    refused = run.fails(*BUILD, "more.csv", "--add")
    assert "was tuned on other data" in refused
    assert "run 'lmkbc tune --overwrite'" in refused
    assert "give --overwrite to replace it" in run.fails(*tune)
    run.done(*BUILD, "more.csv", "--add", "--any-thresholds")
    run.done(*tune, "--overwrite")
    run.done(*BUILD, "more.csv", "--add")
    run.done(*BUILD, "more.csv", "--add")
    refused = run.fails(*(word if word != "0" else "0.2" for word in BUILD), "more.csv", "--add")
    (more,) = (part.split(";")[0] for part in refused.split(" with ")[1:] if part.startswith("--reviews"))
    elsewhere = [word if word != "kb" else "other" for word in BUILD]
    run.done(*elsewhere, "more.csv", *shlex.split(more))
