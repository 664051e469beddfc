"""From a recipe's table and the command line to a generator over a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmkbc.asking import Asking, needs_encoder
from lmkbc.context import ContextSettings, provider
from lmkbc.generate.chat.client import Server
from lmkbc.generate.chat.generator import ChatGenerator, Executor
from lmkbc.generate.chat.limits import Budget, Limits
from lmkbc.generate.chat.session import Session
from lmkbc.store import Call, Store, default_store

if TYPE_CHECKING:
    from lmkbc.components import Context

Table = Mapping[str, Any]
RECALL = {"temperature": 0.0, "max_tokens": 256}
"""How a model is asked what it knows: greedily, for about a paragraph."""


def build(
    run: Context, *, name: str, model: str | None, base_url: str | None, revision: str, any_model: bool, schema: bool,
    executor: Executor, closed_book: bool, prompt: Table, shots: Table, sampling: Table, limits: Table, context: Table,
    prices: Sequence[float], relations: Mapping[str, Table],
) -> ChatGenerator:  # fmt: skip
    """The generator. What the command line gives (--model, --base-url, ...) comes before the recipe's."""
    tables = {"prompt": prompt, "shots": shots, "sampling": sampling}
    encoder = None
    if needs_encoder(tables, relations):
        from lmkbc.generate.embedded.encoder import find_encoder

        encoder = find_encoder()
    asking = Asking(run.edition, run.relations, run.train, tables, relations, run.workspace.relations, encoder)
    knows = ContextSettings.of(context, closed_book=closed_book)
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
    recall = _recall(lambda: Session(server, store, allowed, budget, offline=run.offline), server)
    return ChatGenerator(
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
        context=provider(knows, run.relations, recall, run.cache),
    )


def _recall(open_session: Callable[[], Session], server: Server) -> Callable[[Sequence[str]], list[str]]:
    """What asks the server for plain texts; a text that cannot be had is empty, and its query is asked without it."""

    def recall(questions: Sequence[str]) -> list[str]:
        return asyncio.run(asked(questions))

    async def asked(questions: Sequence[str]) -> list[str]:
        session, texts = open_session(), [""] * len(questions)
        todo = iter(enumerate(questions))

        async def work() -> None:
            for place, question in todo:
                turns = [{"role": "user", "content": question}]
                call = Call(
                    model=server.model,
                    revision=server.revision,
                    base_url=server.base_url,
                    prompt=turns,
                    sampling=RECALL,
                )
                (reply,) = await session.draws([call])
                texts[place] = reply.text if reply else ""

        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(session.limits.concurrency):
                    workers.create_task(work())
        finally:
            await session.close()
        return texts

    return recall
