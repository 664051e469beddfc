"""Soft prompts: asked as they were trained, and a fact that only the prompt holds is predicted with it alone."""

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from command import Command
from opened import recipe_file
from tiny_masked import save

from lmkbc import InputError
from lmkbc.masked.backbone import Clozes, load
from lmkbc.masked.forward import Forward
from lmkbc.masked.soft_prompts import with_prompts
from lmkbc.masked.vocabulary import Words
from lmkbc.train import prompt_vectors

RELATION = """
from lmkbc import EntityType, Relation
RELATION = Relation(
    name="home", names=("PersonHome",), property="P551", subject_type=EntityType("person", "Q5"),
    object_type=EntityType("city", "Q515"), kind="entity", may_be_empty=False, definition="d",
    clozes=("{subject} lives in {mask}.",), question="Where does {subject} live?", triple="lives in",
    statement="{subject} lives in {object}.", cardinality={"toy": (1, 1)},
)
"""
EDITION = """
from lmkbc import AliasScorer, Edition, Metric
EDITION = Edition(
    name="toy", folder="toy", relations=("PersonHome",), splits={"train": None, "val": None, "test": None},
    column="ObjectEntities", target="string", metric=Metric(AliasScorer(), average="relation"),
)
"""
TOP = {"rule": "top-k", "k": 1}
NAMES = [f"{first}{second}" for first in "abcdefgh" for second in "klmn"]


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "albert", "distilbert"])
def test_a_prompt_is_asked_as_it_was_trained(save_model: Callable[..., Path], family: str) -> None:
    backbone = load(save_model(family), offline=True)
    prompts = {
        "manual": prompt_vectors.manual_prompt(backbone, "the home of {subject} is {mask}."),
        "random": prompt_vectors.random_prompt(backbone, 3),
    }
    wide, layouts = with_prompts(backbone, prompts)
    clozes, columns = Clozes(wide, layouts), torch.arange(10, 20)
    subjects = ["Paris", "Rome and Lima", "[MASK] x <mask>"]
    for name, prompt in prompts.items():
        with torch.inference_mode():
            wanted = torch.cat(
                [prompt_vectors.mask_logits(backbone, prompt, [subject], columns) for subject in subjects]
            )
        for indices, logits in Forward(wide).logits(clozes.fill(name, subjects), columns):
            torch.testing.assert_close(logits[:, 0], wanted[indices], rtol=1e-4, atol=1e-4)
    assert len(backbone.model.get_input_embeddings().weight) == len(wide.model.get_output_embeddings().weight)
    assert Words(wide.tokenizer).plain == Words(backbone.tokenizer).plain


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "albert", "distilbert"])
@pytest.mark.parametrize(
    "cloze", ["the home of {subject} is {mask}.", "{subject} is in {mask} of it.", "{mask}, the city of {subject}."]
)
def test_a_manual_prompt_begins_as_its_cloze(save_model: Callable[..., Path], family: str, cloze: str) -> None:
    backbone = load(save_model(family), offline=True)
    wide, layouts = with_prompts(backbone, {"home": prompt_vectors.manual_prompt(backbone, cloze)})
    clozes = Clozes(wide, layouts)
    for subject in ("Paris", "Rome and Zürich"):
        ((_, soft),) = Forward(wide).logits(clozes.fill("home", [subject]), torch.arange(10, 20))
        ((_, plain),) = Forward(backbone).logits(clozes.fill(cloze, [subject]), torch.arange(10, 20))
        torch.testing.assert_close(soft, plain, rtol=1e-4, atol=1e-4)


def test_prompts_of_another_model_are_refused(save_model: Callable[..., Path], tmp_path: Path) -> None:
    backbone = load(save_model(), offline=True)
    fitting = prompt_vectors.random_prompt(backbone, 2)
    wrong = [
        replace(fitting, vectors=torch.zeros(2, 5)),
        replace(fitting, vectors=torch.zeros(3, 16)),
        replace(fitting, layout=(*fitting.layout, 10**6)),
    ]
    for prompt in wrong:
        with pytest.raises(InputError, match="the soft prompt of home is not for"):
            with_prompts(backbone, {"home": prompt})


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A workspace in which nearly everybody lives in Oslo, which no model could know."""
    folder = tmp_path / "space"
    for place, text in (("relations/home.py", RELATION), ("eval/toy.py", EDITION)):
        (folder / place).parent.mkdir(parents=True)
        (folder / place).write_text(text)
    (folder / "thresholds").mkdir()
    (folder / "eval" / "toy").mkdir()
    for split, names in (("train", NAMES), ("val", ["op", "qr"]), ("test", ["st", "uv", "wx"])):
        others = dict(zip(names, ("Rome", "Lima", "Paris"), strict=False)) if split == "train" else {}
        rows = [
            {"SubjectEntity": name, "Relation": "PersonHome", "ObjectEntities": [[others.get(name, "Oslo")]]}
            for name in names
        ]
        (folder / "eval" / "toy" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "vectors.txt").write_text("4 2\nOslo 1 0\nRome 0 1\nlives 1 1\nin -1 1\n")
    save(folder / "tiny", ["Oslo", "Rome", "Lima", "Paris", "lives", "in", "none"])
    return folder


def best(command: Command, folder: Path, system: str, model: Path) -> list[str]:
    """The best candidate of each test query, as the command predicts it."""
    arguments = ["predict", "--system", system, "--model", model, "--workspace", folder, "--edition", "toy"]
    shutil.rmtree(folder / "run", ignore_errors=True)
    arguments += ["--offline", "--out", folder / "run"]
    if system == "gesis23":  # which reads vectors
        arguments += ["--from", folder / "vectors.txt"]
    command.done(*arguments)
    with gzip.open(folder / "run" / "candidates.jsonl.gz", "rt") as file:
        return [json.loads(line)["candidates"][0]["object"] for line in file]


def test_what_only_the_prompt_holds_is_predicted(command: Command, toy: Path) -> None:
    trained = toy / "trained"
    arguments = ["train", "soft-prompt", "--backbone", toy / "tiny", "--out", trained, "--edition", "toy"]
    arguments += ["--workspace", toy, "--offline", "--epochs", "12", "--rate", "0.1"]
    command.done(*arguments)
    probe = {"vocabulary": ["Oslo", "Rome", "Lima", "Paris"]}
    recipe = str(recipe_file(toy / "recipe.toml", {"component": "masked", "probe": probe}, select=TOP))
    assert best(command, toy, recipe, trained) == ["Oslo"] * 3
    assert best(command, toy, recipe, toy / "tiny") != ["Oslo"] * 3
    assert best(command, toy, "gesis23", trained) == ["Oslo"] * 3
    shutil.rmtree(toy / "run")
    damaged = shutil.copytree(trained, toy / "damaged") / "soft_prompts.safetensors"
    (damaged.parent / "training.json").unlink()  # a model that says nothing of how it was made is taken as it is
    damaged.write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    words = ("--workspace", toy, "--edition", "toy", "--offline")
    assert "holds no soft prompts" in command.fails("predict", "--system", recipe, "--model", damaged.parent, *words)
    arguments = ["predict", "--system", "gesis23", "--model", toy / "tiny", "--workspace", toy, "--edition", "toy"]
    assert "train soft-prompt" in command.fails(*arguments, "--offline", "--from", toy / "vectors.txt")
