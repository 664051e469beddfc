"""Everything that a command reads from the disk and a person may find damaged there, each with what reads it."""

import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from damage import DAMAGE
from forge import Forge
from places import CAUSAL, EMBEDDED, ENTITIES, PROMPTS, Places
from test_kill_train import WAYS

Argv = Sequence[object]
CHECKPOINT = ".*.checkpoints/*.safetensors"
"""Checkpoints of a training, in a directory beside that of its model."""


@dataclass(frozen=True)
class Artefact:
    """make: fills a folder. files: globs of what is damaged there. read: the command that reads it, and writes out/."""

    make: Callable[[Forge, Places, Path], None]
    files: tuple[str, ...]
    read: Callable[[Places, Path], Argv]


def predict(places: Places, folder: Path, name: str, text: str, *more: object) -> Argv:
    out = ["--out", folder / "out", "--store", folder / "answers.sqlite", "--split", "test", "--edition", "mini"]
    return ["predict", "--system", places.recipe(name, text), "--data", places.data, "--failed-as-empty", *out, *more]


def embedded(places: Places, folder: Path, *more: object) -> Argv:
    return predict(places, folder, "embedded-strings", EMBEDDED, *more)


def done(forge: Forge, places: Places, folder: Path, argv: Argv) -> None:
    ended = forge.run(argv, places.environment(folder))
    assert ended.code == 0, ended.err
    shutil.rmtree(folder / "out", ignore_errors=True)


def trained(way: str) -> Callable[[Forge, Places, Path], None]:
    return lambda forge, places, folder: done(forge, places, folder, WAYS[way](places, folder / "model"))


def begun(way: str) -> Callable[[Forge, Places, Path], None]:
    """A training that was killed once it had a checkpoint."""

    def make(forge: Forge, places: Places, folder: Path) -> None:
        seconds, kept = 1.0, folder / "kept"
        for _ in range(40):
            forge.run(WAYS[way](places, folder / "out"), places.environment(folder), kill_after=seconds)
            if (folder / "out").exists():
                shutil.rmtree(folder / "out")
                seconds *= 0.7
            elif any(folder.glob(CHECKPOINT)):
                return
            else:
                seconds *= 1.3
        raise AssertionError(f"no kill left a checkpoint in {kept}")

    return make


def tuned(forge: Forge, places: Places, folder: Path) -> None:
    done(forge, places, folder, tune(places, folder))


def tune(places: Places, folder: Path) -> Argv:
    return [
        "tune",
        "--system",
        places.recipe("embedded-strings", EMBEDDED),
        "--edition",
        "mini",
        "--split",
        "val",
        "--data",
        places.data,
        "--workspace",
        places.workspace(folder),
        "--folds",
        2,
        "--trials",
        3,
        "--overwrite",
    ]


def fitted(forge: Forge, places: Places, folder: Path) -> None:
    done(forge, places, folder, embedded(places, folder))


def ran(forge: Forge, places: Places, folder: Path) -> None:
    done(forge, places, folder, embedded(places, folder, "--out", folder / "run"))


def asked(places: Places, folder: Path, url: str) -> Argv:
    return predict(places, folder, "chat", places.chat().read_text(), "--base-url", url)


def read_by(name: str, text: str, where: str) -> Callable[[Places, Path], Argv]:
    """Predicting with a recipe that reads the model of a folder."""
    return lambda places, folder: predict(places, folder, name, text, "--model", folder / where)


def going_on(way: str) -> Callable[[Places, Path], Argv]:
    return lambda places, folder: WAYS[way](places, folder / "out")


def with_thresholds(places: Places, folder: Path) -> Argv:
    return embedded(places, folder, "--workspace", folder / "workspace", "--any-thresholds")


def from_run(places: Places, folder: Path) -> Argv:
    return predict(places, folder, "recorded", RECORDED, "--from", folder / "run" / "candidates.jsonl.gz")


def build(places: Places, folder: Path) -> Argv:
    """A base of three parts and more."""
    of = ["--edition", "mini", "--system", "prior", "--data", places.data, "--offline"]
    return ["build", "--subjects", folder / "subjects.csv", *of, "--out", folder / "out"]


def subjects(folder: Path) -> None:
    rows = [f"Land {n},country" for n in range(3500)] + [f"Person {n},human" for n in range(100)]
    (folder / "subjects.csv").write_text("name,class\n" + "\n".join(rows) + "\n")


def built(forge: Forge, places: Places, folder: Path) -> None:
    subjects(folder)
    ended = forge.run(build(places, folder), places.environment(folder))
    assert ended.code == 0, ended.err


def exportable(forge: Forge, places: Places, folder: Path) -> None:
    built(forge, places, folder)
    (folder / "out").rename(folder / "kb")


def building(forge: Forge, places: Places, folder: Path) -> None:
    """A build that was killed once it had written a shard."""
    subjects(folder)
    seconds = 2.0
    for _ in range(40):
        forge.run(build(places, folder), places.environment(folder), kill_after=seconds)
        if any((folder / "out" / "unfinished").glob("*.shard")):
            return
        seconds *= 0.8 if (folder / "out" / "manifest.json").exists() else 1.3
        shutil.rmtree(folder / "out", ignore_errors=True)
    raise AssertionError("no kill left an unfinished build with a shard")


def exported(places: Places, folder: Path) -> Argv:
    (folder / "out").mkdir(exist_ok=True)
    return ["export", folder / "kb", "--format", "ntriples", "--out", folder / "out" / "kb.nt"]


RECORDED = 'description = "r"\n[[generate]]\ncomponent = "recorded"\n[select]\nrule = "cutoff"\nthreshold = 0.5\n'
MODEL = ("model/*",)
ARTEFACTS: dict[str, Artefact] = {
    "thresholds": Artefact(tuned, ("workspace/thresholds/mini/*",), with_thresholds),
    "fitted cache": Artefact(fitted, ("cache/lmkbc/embedded/*",), embedded),
    "taught model": Artefact(trained("head"), MODEL, read_by("taught", ENTITIES, "model")),
    "soft prompts": Artefact(trained("soft-prompt"), MODEL, read_by("soft", PROMPTS, "model")),
    "fine-tuned model": Artefact(trained("finetune"), MODEL, read_by("masked", PROMPTS, "model")),
    "LoRA adapter": Artefact(trained("lora"), MODEL, read_by("causal", CAUSAL, "model")),
    **{f"checkpoint of train {way}": Artefact(begun(way), (CHECKPOINT,), going_on(way)) for way in WAYS},
    "candidates of a run": Artefact(ran, ("run/candidates.jsonl.gz",), from_run),
    "finished base": Artefact(built, ("out/**/*",), build),
    "unfinished base": Artefact(building, ("out/unfinished/**/*",), build),
    "base that is exported": Artefact(exportable, ("kb/facts/**/*", "kb/manifest.json"), exported),
}


def damage(folder: Path, globs: Sequence[str], draw: random.Random) -> str:
    """Damage one file, and say how."""
    files = sorted({path for glob in globs for path in folder.glob(glob) if path.is_file()})
    assert files, globs
    path, kind = draw.choice(files), draw.choice((*DAMAGE, "a flipped bit", "another file's bytes", "gone"))
    if kind == "gone":
        path.unlink()
    elif kind in DAMAGE:
        path.write_bytes(DAMAGE[kind](path.read_bytes(), draw))
    else:
        path.write_bytes(draw.choice(files).read_bytes())
    return f"{path.relative_to(folder)}: {kind}"
