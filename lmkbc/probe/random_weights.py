"""The random-model control: a recipe whose local models have the same shape and weights drawn anew.

After Zhong, Friedman and Chen, Factual Probing Is [MASK], NAACL 2021, section 4: what such a model answers comes from
the recipe and from tuning, never from what a model read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from lmkbc.generate.spec import GeneratorSpec
from lmkbc.recipe import Recipe
from lmkbc.run import Run

LOCAL = ("causal", "entity-masked", "masked")
"""Components that read a model's weights on this machine."""


@contextmanager
def with_random_weights(run: Run, recipe: Recipe, seed: int = 0) -> Iterator[tuple[Run, Recipe] | None]:
    """The same recipe on random weights, and the run to open it in; None where no step reads a local model.

    The models lie in a temporary directory until the block ends. Voices of one model share its random twin.
    """
    with tempfile.TemporaryDirectory() as folder:
        twins: dict[tuple[str, str, str], str] = {}
        drawn: list[GeneratorSpec] = []
        for spec in recipe.generate:
            own: dict[str, Any] = {field.name: getattr(spec, field.name) for field in fields(spec)}
            name = run.model or own.get("model")
            if "model" not in own or not name:
                drawn.append(spec)
            elif spec.component in LOCAL:
                key = spec.component, str(name), str(own.get("revision"))
                if key not in twins:
                    twins[key] = str(
                        _drawn(own | {"model": str(name)}, Path(folder) / str(len(twins)), run.offline, seed)
                    )
                twin: dict[str, Any] = {"model": twins[key]} | ({"revision": None} if "revision" in own else {})
                drawn.append(replace(spec, **twin))
            else:
                named: dict[str, Any] = {"model": str(name)}
                drawn.append(replace(spec, **named))
        changed = replace(run, model=None, models={}), replace(recipe, generate=tuple(drawn))
        yield changed if twins else None


def _drawn(table: Mapping[str, Any], out: Path, offline: bool, seed: int) -> Path:
    """Save a model of the same shape, with its tokenizer and what lies beside it: objects, soft prompts."""
    from lmkbc.models.masked import entities, soft_prompts
    from lmkbc.models.masked.backbone import quiet
    from lmkbc.train.controls import randomised

    model: Any
    name, code = table["model"], bool(table.get("trust_remote_code"))
    if table.get("component") == "causal":
        from lmkbc.models.causal.checkpoint import load as load_causal

        model, tokenizer = load_causal(name, revision=table.get("revision"), offline=offline, trust_remote_code=code)
    else:
        from lmkbc.models.masked.backbone import load as load_masked

        backbone = load_masked(name, revision=table.get("revision"), offline=offline, trust_remote_code=code)
        model, tokenizer = backbone.model, backbone.tokenizer
    fresh = randomised(model, seed=seed)
    if model.can_generate():
        fresh.generation_config = model.generation_config
    with quiet():
        fresh.save_pretrained(out)
        tokenizer.save_pretrained(out)
    if (prompts := Path(name) / soft_prompts.FILE).is_file():
        (out / soft_prompts.FILE).write_bytes(prompts.read_bytes())
    if (Path(name) / entities.FILE).is_file():
        known = replace(entities.Entities.read(Path(name)), folds={})  # random weights have seen no subject
        (out / entities.FILE).write_bytes(known.to_json())
    return out
