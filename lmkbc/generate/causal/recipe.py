"""From a recipe's table to a generator over a local model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from lmkbc.asking import Asking, needs_encoder
from lmkbc.context import ContextSettings, Provider, located, provider
from lmkbc.errors import InputError
from lmkbc.generate.causal.checkpoint import Quantise, identity, load
from lmkbc.generate.causal.decode import Decoding
from lmkbc.generate.causal.generator import CausalGenerator
from lmkbc.generate.causal.model import CausalModel
from lmkbc.generate.causal.scorer import CausalScorer
from lmkbc.prompts import PromptStyle
from lmkbc.store import Store, default_store
from lmkbc.types import Generator
from lmkbc.verify import Check, verifying

if TYPE_CHECKING:
    from lmkbc.components import Context

Table = Mapping[str, Any]
RECALL = Decoding(max_tokens=128, stops=("\n\n",))
"""How a model is asked what it knows: greedily, for about a paragraph."""


def build(
    run: Context, *, name: str, model: str | None, revision: str | None, dtype: str, device: str | None,
    remote_code: bool, quantise: Quantise, closed_book: bool, prompt: Table, shots: Table, sampling: Table,
    context: Table, verify: Table, relations: Mapping[str, Table],
) -> Generator:  # fmt: skip
    """The generator. Settings are checked before the model is loaded; --model comes before the recipe's model.

    Generators of one run that ask the same model share it.
    """
    if quantise not in get_args(Quantise):
        raise InputError(f"the generator 'causal': quantise is {quantise!r}: use 'none' or '4bit'")
    tables = {"prompt": prompt, "shots": shots, "sampling": sampling}
    encoder = None
    if needs_encoder(tables, relations):
        from lmkbc.generate.embedded.encoder import find_encoder

        encoder = find_encoder()
    asking = Asking(run.edition, run.relations, run.train, tables, relations, run.workspace.relations, encoder)
    check = Check.of(verify, run.workspace.relations) if verify else None
    located(ContextSettings.of(context, closed_book=closed_book), run.files)
    source = run.model or model
    if not source:
        raise InputError("the generator 'causal' names no model: give one with --model, of the hub or a directory")
    kind = {"revision": revision, "dtype": dtype, "device": device, "remote_code": remote_code, "quantise": quantise}
    if (key := (source, *kind.values())) not in run.loaded:
        loaded = load(source, offline=run.offline, **kind)  # type: ignore[arg-type]
        run.loaded[key] = CausalModel(*loaded), identity(source, loaded[0])
    asked, weights = run.loaded[key]
    known_as = Path(source).name if Path(source).is_dir() else source
    store = Store(Path(run.options.get("store") or default_store()))
    generator = CausalGenerator(
        asked,
        asking,
        run.relations,
        known_as,
        context=context_provider(run, context, asked, closed_book=closed_book),
        store=store,
        identity=weights,
        voice=name,
    )
    if check is None:
        return generator
    how = Decoding(draws=check.draws, temperature=check.temperature or 0.0, seed=check.seed)
    chat = PromptStyle.of(prompt).form != "completion"
    scorer = CausalScorer(asked, how, chat=chat, store=store, name=known_as, identity=weights)
    return verifying(generator, scorer, check, run.relations, run.train)


def context_provider(run: Context, table: Table, model: CausalModel, *, closed_book: bool) -> Provider | None:
    """What finds the context that a recipe tells. Recall asks the model itself, as a chat where it has a template."""
    settings = located(ContextSettings.of(table, closed_book=closed_book), run.files)

    def recall(questions: Sequence[str]) -> list[str]:
        chats = bool(model.tokenizer.chat_template)
        texts = [model.chat([{"role": "user", "content": one}]) if chats else one for one in questions]
        found = dict(model.complete(texts, RECALL))
        return [found[place][0].text or "" for place in range(len(texts))]

    return provider(settings, run.relations, recall, run.cache)
