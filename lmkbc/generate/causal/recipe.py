"""From a recipe's table to a generator over a local model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmkbc.asking import Asking, Sampling, needs_encoder
from lmkbc.context import ContextSettings, Provider, provider
from lmkbc.errors import InputError
from lmkbc.examples import ExampleSelector, Shots
from lmkbc.generate.causal.checkpoint import identity, load
from lmkbc.generate.causal.decode import Decoding
from lmkbc.generate.causal.generator import CausalGenerator
from lmkbc.generate.causal.model import CausalModel
from lmkbc.generate.causal.scorer import CausalScorer
from lmkbc.prompts import PromptStyle
from lmkbc.store import Store, default_store
from lmkbc.types import Generator
from lmkbc.verify import Check, FactCheck, Verified

if TYPE_CHECKING:
    from lmkbc.components import Context

Table = Mapping[str, Any]
RECALL = Decoding(max_tokens=128, stops=("\n\n",))
"""How a model is asked what it knows: greedily, for about a paragraph."""


def build(
    run: Context, *, model: str | None, revision: str | None, dtype: str, device: str | None, remote_code: bool,
    closed_book: bool, prompt: Table, shots: Table, sampling: Table, context: Table, verify: Table,
    relations: Mapping[str, Table],
) -> Generator:  # fmt: skip
    """The generator. Settings are checked before the model is loaded; --model comes before the recipe's model."""
    tables = {"prompt": prompt, "shots": shots, "sampling": sampling}
    encoder = None
    if needs_encoder(tables, relations):
        from lmkbc.generate.embedded.encoder import find_encoder

        encoder = find_encoder()
    asking = Asking(run.edition, run.relations, run.train, tables, relations, run.workspace.relations, encoder)
    check = Check.of(verify) if verify else None
    ContextSettings.of(context, closed_book=closed_book)
    name = run.model or model
    if not name:
        raise InputError("the generator 'causal' names no model: give one with --model, of the hub or a directory")
    loaded, tokenizer = load(
        name, revision=revision, dtype=dtype, device=device, offline=run.offline, remote_code=remote_code
    )
    asked = CausalModel(loaded, tokenizer)
    generator = CausalGenerator(
        asked,
        asking,
        run.relations,
        Path(name).name if Path(name).is_dir() else name,
        context=context_provider(run, context, asked, closed_book=closed_book),
        store=Store(Path(run.options.get("store") or default_store())),
        identity=identity(name, loaded),
    )
    if check is None:
        return generator
    worked = ExampleSelector(Shots(k=check.shots, method="random", seed=check.seed), run.train)
    scorer = CausalScorer(
        asked, Decoding.of(Sampling.of(sampling), ()), chat=PromptStyle.of(prompt).form != "completion"
    )
    return Verified(generator, FactCheck(scorer, check, run.relations, worked, run.train))


def context_provider(run: Context, table: Table, model: CausalModel, *, closed_book: bool) -> Provider | None:
    """What finds the context that a recipe tells, from the file given with --from where path is "from".

    Recall asks the model itself, as a chat where it has a template.
    """
    settings = ContextSettings.of(table, closed_book=closed_book)
    if settings.path == "from":
        if len(run.files) != 1:
            raise InputError(
                "this system tells text about each subject: name one JSONL file of title and text with --from"
            )
        settings = replace(settings, path=str(run.files[0]))

    def recall(questions: Sequence[str]) -> list[str]:
        chats = bool(model.tokenizer.chat_template)
        texts = [model.chat([{"role": "user", "content": one}]) if chats else one for one in questions]
        found = dict(model.complete(texts, RECALL))
        return [found[place][0].text or "" for place in range(len(texts))]

    return provider(settings, run.relations, recall, run.cache)
