"""The random-model control: a recipe whose local models have the same shape and weights drawn anew.

After Zhong, Friedman and Chen, Factual Probing Is [MASK], NAACL 2021, section 4: what such a model answers comes from
the recipe and from tuning, never from what a model read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

from lmkbc.generate.components import GENERATORS, Context, voices
from lmkbc.recipe import System

LOCAL = ("causal", "entity-masked", "masked")
"""Components that read a model's weights on this machine."""


@contextmanager
def with_random_weights(context: Context, system: System, seed: int = 0) -> Iterator[tuple[Context, System] | None]:
    """The same recipe on random weights, and the context to run it in; None where no step reads a local model.

    The models lie in a temporary directory until the block ends. Voices of one model share its random twin.
    """
    with tempfile.TemporaryDirectory() as folder:
        tables = [dict(voice) for table in system.generate for voice in voices(table)]
        twins: dict[tuple[str, str, str], str] = {}
        for table in tables:
            component, name = str(table.get("component")), context.model or table.get("model")
            if component not in GENERATORS or not name or "model" not in signature(GENERATORS[component]).parameters:
                continue
            table["model"] = str(name)
            if component in LOCAL:
                key = component, str(name), str(table.get("revision"))
                if key not in twins:
                    twins[key] = str(_drawn(table, Path(folder) / str(len(twins)), context.offline, seed))
                table["model"] = twins[key]
                table.pop("revision", None)
        changed = replace(context, model=None, loaded={}), replace(system, generate=tuple(tables))
        yield changed if twins else None


def _drawn(table: Mapping[str, Any], out: Path, offline: bool, seed: int) -> Path:
    """Save a model of the same shape, with its tokenizer and what lies beside it: objects, soft prompts."""
    from lmkbc.models.masked import soft_prompts
    from lmkbc.models.masked.backbone import quiet
    from lmkbc.train import entities
    from lmkbc.train.controls import randomised

    model: Any
    name = table["model"]
    if table.get("component") == "causal":
        from lmkbc.models.causal.checkpoint import load as load_causal

        code = bool(table.get("remote_code"))
        model, tokenizer = load_causal(name, revision=table.get("revision"), offline=offline, remote_code=code)
    else:
        from lmkbc.models.masked.backbone import load as load_masked

        code = bool(table.get("trust_remote_code"))
        found = load_masked(name, revision=table.get("revision"), offline=offline, trust_remote_code=code)
        model, tokenizer = found.model, found.tokenizer
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
