"""From a recipe's table and the command line to a generator over a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lmkbc.ask.context.settings import ContextSettings, located, provider
from lmkbc.ask.prompts import PromptStyle
from lmkbc.errors import InputError
from lmkbc.generate.chat import ChatGenerator, Executor
from lmkbc.generate.from_run import Table, asking_for, kept_answers
from lmkbc.generate.verify import Check, verifying
from lmkbc.models.base import Sampling
from lmkbc.models.budget import Budget, checked_prices
from lmkbc.models.server.client import Server
from lmkbc.models.server.limits import Limits
from lmkbc.models.server.scorer import ChatScorer
from lmkbc.models.server.session import Session
from lmkbc.models.store import Store
from lmkbc.types import Generator, Query

if TYPE_CHECKING:
    from lmkbc.generate.components import Context


@dataclass(frozen=True, slots=True)
class Access:
    """A server, and how this run may ask it. The budget is the run's: what all that ask spend counts together."""

    server: Server
    store: Store
    limits: Limits
    budget: Budget
    offline: bool

    @classmethod
    def of(
        cls, run: Context, *, model: str | None, base_url: str | None, revision: str, any_model: bool, limits: Table,
        prices: Sequence[float],
    ) -> Access:  # fmt: skip
        """Access by a recipe's settings; what the command line gives (--model, --base-url, ...) comes before them."""
        given, url = run.options, run.options.get("base_url") or base_url
        lenient = any_model or bool(given.get("any_model"))
        server = Server.of(url, run.model or model, revision=revision, any_model=lenient, offline=run.offline)
        allowed = Limits.of(limits)
        if concurrency := given.get("concurrency"):
            allowed = replace(allowed, concurrency=concurrency)
        own = checked_prices(prices, f"the recipe's prices is {prices!r}") if prices != () else None
        price = given.get("prices") or own
        together = run.loaded.setdefault(Budget, [])
        budget = Budget(given.get("max_cost"), given.get("max_tokens"), price, together)
        return cls(server, kept_answers(run), allowed, budget, run.offline)

    def session(self) -> Session:
        """A session of requests."""
        return Session(self.server, self.store, self.limits, self.budget, offline=self.offline)


def build(
    run: Context, *, name: str, model: str | None, base_url: str | None, revision: str, any_model: bool, schema: bool,
    executor: Executor, closed_book: bool, prompt: Table, shots: Table, sampling: Table, limits: Table, context: Table,
    prices: Sequence[float], relations: Mapping[str, Table], verify: Table,
) -> Generator:  # fmt: skip
    """The generator. What the command line gives (--model, --base-url, ...) comes before the recipe's."""
    asking = asking_for(run, {"prompt": prompt, "shots": shots, "sampling": sampling}, relations, run.train)
    check = Check.of(verify, run.workspace.relations) if verify else None
    knows = located(ContextSettings.of(context, closed_book=closed_book), run.files)
    styles = [asking.plan(Query("", relation)).style for relation in run.relations]
    if executor == "batch" and any(style.again or style.repair for style in styles):
        raise InputError(
            "the generator 'chat': a batch is answered once: use executor 'calls' where prompt has again or repair"
        )
    access = Access.of(
        run, model=model, base_url=base_url, revision=revision, any_model=any_model, limits=limits, prices=prices
    )
    style = PromptStyle.of(prompt)
    scorer = ChatScorer(
        access.server,
        access.session,
        completion=style.form == "completion",
        draws=check.draws if check else 1,
        temperature=(check.temperature if check else None) or 0.0,
        extra=Sampling.of(sampling).extra,
    )
    generator = ChatGenerator(
        asking,
        run.relations,
        access.server,
        access.store,
        limits=access.limits,
        budget=access.budget,
        name=name,
        schema=schema,
        executor=executor,
        offline=run.offline,
        context=provider(knows, run.relations, scorer.paragraphs, run.cache),
    )
    return verifying(generator, scorer, check, run.relations, run.train) if check else generator
