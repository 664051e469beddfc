"""The random-model control: a recipe whose local models have random weights in the same architecture.

After Zhong, Friedman and Chen, Factual Probing Is [MASK], NAACL 2021, section 4. The answers of such a model come from
the recipe and from tuning, never from pretraining.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from lmkbc.generate.embedded.generator import Embedded
from lmkbc.generate.spec import GeneratorSpec, sources_of
from lmkbc.recipe import Recipe
from lmkbc.run.base import Run

LOCAL = ("causal", "entity-masked", "masked")
"""Components that load a model's weights on this machine."""


@contextmanager
def with_random_weights(run: Run, recipe: Recipe, seed: int = 0) -> Iterator[tuple[Run, Recipe] | None]:
    """Yield the recipe with random weights, and the run to open it in; None if no step has a local model.

    The models are in a temporary directory until the block ends. Sources with the same model share one copy.
    """
    with tempfile.TemporaryDirectory() as folder:
        copies = _RandomCopies(run, Path(folder), seed)
        drawn = tuple(copies.of(spec) for spec in recipe.generate)
        yield (replace(run, model=None, models={}), replace(recipe, generate=drawn)) if copies.made else None


class _RandomCopies:
    """Copies with random weights of a run's models, in a folder."""

    def __init__(self, run: Run, folder: Path, seed: int) -> None:
        self._run, self._folder, self._seed = run, folder, seed
        self.made: dict[tuple[str, str, str], str] = {}

    def of(self, spec: GeneratorSpec) -> GeneratorSpec:
        """Return a generator's table with other local models, also in its signals."""
        if isinstance(spec, Embedded):
            signals = tuple(self._redrawn(source) for table in spec.features for source in sources_of(table))
            states = spec.hidden_states and self._redrawn(spec.hidden_states, "causal")
            return replace(spec, features=signals, hidden_states=states)
        own = {field.name: getattr(spec, field.name) for field in fields(spec)}
        changed = {name: value for name, value in self._redrawn(own).items() if value is not own[name]}
        return replace(spec, **changed)

    def _redrawn(self, table: Mapping[str, Any], component: str = "") -> dict[str, Any]:
        """Return a table with another model, if it names a model. component: the generator, if the table names none."""
        component = component or table["component"]
        name = self._run.model or table.get("model")
        if not name or not ("model" in table or component in LOCAL):
            return {**table}
        if component not in LOCAL:
            return {**table, "model": str(name)}
        key = component, str(name), str(table.get("revision"))
        if key not in self.made:
            named = {**table, "component": component, "model": str(name)}
            out = self._folder / str(len(self.made))
            self.made[key] = str(_drawn(named, out, self._run.offline, self._seed))
        return {**table, "model": self.made[key]} | ({"revision": None} if "revision" in table else {})


def _drawn(table: Mapping[str, Any], out: Path, offline: bool, seed: int) -> Path:
    """Save a model of the same architecture, with its tokenizer, objects and soft prompts."""
    from lmkbc.models.loading import quiet
    from lmkbc.models.masked import entities, soft_prompts
    from lmkbc.train.controls import randomised

    model: Any
    name, code = table["model"], bool(table.get("trust_remote_code"))
    if table.get("component") == "causal":
        from lmkbc.models.local.checkpoint import load as load_causal

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
        known = replace(entities.Entities.read(Path(name)), folds={})  # random weights were trained on no subject
        (out / entities.FILE).write_bytes(known.to_json())
    return out
