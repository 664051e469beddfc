"""Training that is killed at random moments, and goes on: the weights are those of a run that was left alone."""

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from forge import Forge
from places import CAUSAL, Places, tree

Start = Callable[[Places, Path], Sequence[object]]
Disturb = Callable[..., Any]


def head(places: Places, out: Path) -> Sequence[object]:
    return [
        "train",
        "mlm",
        "--backbone",
        places.masked,
        "--epochs",
        2,
        "--batch",
        8,
        "--device",
        "cpu",
        *_on(places, out),
    ]


def all_weights(places: Places, out: Path) -> Sequence[object]:
    return [*head(places, out), "--all-weights", "--expand"]


def soft_prompt(places: Places, out: Path) -> Sequence[object]:
    return ["train", "soft-prompt", "--backbone", places.masked, "--epochs", 12, "--batch", 4, *_on(places, out)]


def finetune(places: Places, out: Path) -> Sequence[object]:
    return ["train", "finetune", "--backbone", places.masked, "--epochs", 8, *_on(places, out)]


def lora(places: Places, out: Path) -> Sequence[object]:
    recipe = places.recipe("causal", CAUSAL)
    return ["train", "lora", "--model", places.causal, "--system", recipe, "--epochs", 2, *_on(places, out)]


def _on(places: Places, out: Path) -> Sequence[object]:
    return ["--out", out, "--data", places.data, "--edition", "mini"]


WAYS = {"head": head, "all weights": all_weights, "soft-prompt": soft_prompt, "finetune": finetune, "lora": lora}
_undisturbed: dict[str, tuple[float, dict[str, bytes]]] = {}


def undisturbed(name: str, forge: Forge, places: Places) -> tuple[float, dict[str, bytes]]:
    """How long a training takes, and what it writes."""
    if name not in _undisturbed:
        folder = places.root / f"undisturbed {name}"
        folder.mkdir()
        ended = forge.run(WAYS[name](places, folder / "out"), places.environment(folder))
        assert ended.code == 0, ended.err
        assert [path.name for path in folder.iterdir() if path.name != "cache"] == ["out"]
        _undisturbed[name] = ended.seconds, tree(folder / "out")
    return _undisturbed[name]


@pytest.mark.whole
@pytest.mark.parametrize(
    "name",
    [
        *("head", "all weights", "soft-prompt", "finetune"),
        pytest.param(
            "lora",
            marks=pytest.mark.skipif(
                importlib.util.find_spec("peft") is None, reason="peft is not installed: install lmkbc[lora]"
            ),
        ),
    ],
)
def test_a_training_that_is_killed(name: str, forge: Forge, places: Places, disturbed: Disturb, seed: int) -> None:
    seconds, whole = undisturbed(name, forge, places)
    left_by = disturbed(lambda folder: WAYS[name](places, folder / "out"), seconds, seed)
    assert tree(left_by.folder / "out") == whole
    left = [path.name for path in left_by.folder.iterdir() if path.name not in ("out", "cache")]
    assert not left, f"left behind: {left}"
