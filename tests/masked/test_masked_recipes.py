"""Every masked recipe, as a user runs it: one command, a tiny model, a checked submission."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from command import Command
from space import SPACE, bundled
from tiny_masked import save

from lmkbc.link.index_sources import build_index
from lmkbc.masked.backbone import load
from lmkbc.train import prompt_vectors

WORDS = "state province department city region dead alive yes no Yes No died Germany France Spain Oslo Rome".split()
MASKED = [name for name in SPACE.system_names() if any(spec.component == "masked" for spec in bundled(name).generate)]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Sequence[str]:
    """A model with soft prompts and an index, which each recipe takes if it reads it, and entity vectors."""
    folder = tmp_path_factory.mktemp("given")
    model = save(folder / "model", WORDS)
    backbone, names = load(model, offline=True), {relation.name for relation in SPACE.relations.values()}
    cloze = "the capital of {subject} is {mask}."
    prompts = {name: prompt_vectors.manual_prompt(backbone, cloze) for name in names - {"profession"}}
    (model / "soft_prompts.safetensors").write_bytes(prompt_vectors.to_bytes(prompts, "model"))
    (folder / "vectors.txt").write_text("3 2\nOslo 1 0\nRome 0 1\nENTITY/New_York 1 1\n")
    table = folder / "table.csv"
    table.write_text("text,id,classes\nOslo,Q585,Q515\nRome,Q220,Q515\n")
    build_index(folder / "index.sqlite", tables=[table])
    paths = {"--model": "model", "--index": "index.sqlite", "--from": "vectors.txt"}
    return [word for option, name in paths.items() for word in (option, str(folder / name))]


def predicted(command: Command, given: Sequence[str], system: str, *options: str) -> int:
    """Run the command, and count the rows of the submission that it wrote."""
    reads = any(spec.reads_files for spec in bundled(system).generate)  # else they would be answers
    arguments = ["predict", "--system", system, *(given if reads else given[:-2]), "--out", "run", *options]
    command.done(*arguments)
    with zipfile.ZipFile("run/predictions.zip") as submission:
        return len(submission.read("predictions.jsonl").splitlines())


@pytest.mark.parametrize("system", MASKED[::6])
def test_a_masked_recipe_makes_one_of_the_bundled_edition(command: Command, system: str, given: Sequence[str]) -> None:
    queries = SPACE.queries(SPACE.edition("mini"), "test")
    assert predicted(command, given, system, "--edition", "mini") == len(queries)


@pytest.mark.whole(but=["bl22", "dalal22", "fang22-paper", "gesis23-paper", "ning22"])
@pytest.mark.parametrize("system", MASKED)
def test_every_masked_recipe_makes_one_of_the_edition_it_was_made_for(
    command: Command, system: str, given: Sequence[str], tmp_path: Path, data_dir: Path
) -> None:
    """Two subjects of each relation, so that every table that names one is read."""
    edition = SPACE.edition(next(iter(bundled(system).published)).partition("/")[0])
    data = tmp_path / "data" / edition.folder
    data.mkdir(parents=True)
    for name in ("train", "test"):
        rows: dict[str, list[str]] = {}
        for line in (data_dir / edition.folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            relation = next(relation for relation in edition.relations if f'"{relation}"' in line)
            rows.setdefault(relation, []).append(line)
        few = [line for lines in rows.values() for line in lines[: 2 if name == "test" else 20]]
        (data / f"{name}.jsonl").write_text("\n".join(few) + "\n", encoding="utf-8")
    found = predicted(command, given, system, "--edition", edition.name, "--data", "data")
    assert found == 2 * len(edition.relations)
