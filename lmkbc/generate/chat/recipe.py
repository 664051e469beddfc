"""From a recipe's table and the command line to a generator over a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmkbc.asking import Asking, needs_encoder
from lmkbc.context import ContextSettings, located, provider
from lmkbc.errors import InputError
from lmkbc.generate.chat.client import Server
from lmkbc.generate.chat.generator import ChatGenerator, Executor
from lmkbc.generate.chat.limits import Budget, Limits
from lmkbc.generate.chat.scorer import ChatScorer
from lmkbc.generate.chat.session import Session
from lmkbc.prompts import PromptStyle
from lmkbc.store import Store, default_store
from lmkbc.types import Generator, Query
from lmkbc.verify import Check, verifying

if TYPE_CHECKING:
    from lmkbc.components import Context

Table = Mapping[str, Any]


def build(
    run: Context, *, name: str, model: str | None, base_url: str | None, revision: str, any_model: bool, schema: bool,
    executor: Executor, closed_book: bool, prompt: Table, shots: Table, sampling: Table, limits: Table, context: Table,
    prices: Sequence[float], relations: Mapping[str, Table], verify: Table,
) -> Generator:  # fmt: skip
    """The generator. What the command line gives (--model, --base-url, ...) comes before the recipe's."""
    tables = {"prompt": prompt, "shots": shots, "sampling": sampling}
    encoder = None
    if needs_encoder(tables, relations):
        from lmkbc.generate.embedded.encoder import find_encoder

        encoder = find_encoder()
    asking = Asking(run.edition, run.relations, run.train, tables, relations, run.workspace.relations, encoder)
    check = Check.of(verify, run.workspace.relations) if verify else None
    knows = located(ContextSettings.of(context, closed_book=closed_book), run.files)
    if executor == "batch" and any(asking.plan(Query("", relation)).style.again for relation in run.relations):
        raise InputError("the generator 'chat': a batch is answered once: use executor 'calls' where prompt has again")
    given = run.options
    server = Server.of(
        given.get("base_url") or base_url,
        run.model or model,
        revision=revision,
        any_model=any_model,
        offline=run.offline,
    )
    allowed = Limits.of(limits)
    if concurrency := given.get("concurrency"):
        allowed = replace(allowed, concurrency=concurrency)
    price = given.get("prices") or tuple(prices) or None
    budget = Budget(given.get("max_cost"), given.get("max_tokens"), price)
    store = Store(Path(given.get("store") or default_store()))
    style = PromptStyle.of(prompt)

    def open_session() -> Session:
        return Session(server, store, allowed, budget, offline=run.offline)

    scorer = ChatScorer(
        server,
        open_session,
        completion=style.form == "completion",
        draws=check.draws if check else 1,
        temperature=(check.temperature if check else None) or 0.0,
    )
    generator = ChatGenerator(
        asking,
        run.relations,
        server,
        store,
        limits=allowed,
        budget=budget,
        name=name,
        schema=schema,
        executor=executor,
        offline=run.offline,
        context=provider(knows, run.relations, scorer.paragraphs, run.cache),
    )
    return verifying(generator, scorer, check, run.relations, run.train) if check else generator
