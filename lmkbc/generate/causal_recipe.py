"""From a recipe's table to a generator over a local model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from lmkbc.ask.context.settings import ContextSettings, located, provider
from lmkbc.ask.prompts import PromptStyle
from lmkbc.errors import InputError
from lmkbc.generate.causal import CausalGenerator
from lmkbc.generate.from_run import Table, asking_for, kept_answers
from lmkbc.generate.verify import Check, verifying
from lmkbc.models.causal.checkpoint import Quantise, identity, load
from lmkbc.models.causal.decode import Decoding
from lmkbc.models.causal.model import CausalModel
from lmkbc.models.causal.scorer import CausalScorer
from lmkbc.models.store import Store
from lmkbc.types import Generator

if TYPE_CHECKING:
    from lmkbc.generate.components import Context


@dataclass(frozen=True, slots=True)
class Asked:
    """A local model, what tells it from others, and the store that keeps its answers."""

    model: CausalModel
    name: str
    identity: str
    store: Store

    @classmethod
    def of(
        cls, run: Context, model: str | None, *, revision: str | None, dtype: str, device: str | None,
        remote_code: bool, quantise: Quantise,
    ) -> Asked:  # fmt: skip
        """The model of a recipe's settings; --model comes before them. All of a run that ask one model share it."""
        if quantise not in get_args(Quantise):
            raise InputError(f"the component 'causal': quantise is {quantise!r}: use 'none' or '4bit'")
        source = run.model or model
        if not source:
            raise InputError("the component 'causal' names no model: give one with --model, of the hub or a directory")
        if (key := (source, revision, dtype, device, remote_code, quantise)) not in run.loaded:
            loaded = load(
                source, revision=revision, dtype=dtype, device=device, offline=run.offline, remote_code=remote_code,
                quantise=quantise,
            )  # fmt: skip
            run.loaded[key] = CausalModel(*loaded), identity(source, loaded[0])
        name = Path(source).name if Path(source).is_dir() else source
        return cls(run.loaded[key][0], name, run.loaded[key][1], kept_answers(run))

    def scorer(self, how: Decoding | None = None, *, chat: bool | None = None) -> CausalScorer:
        """What asks it short questions: as a chat where that is said, or else where it has a template."""
        chats = bool(self.model.tokenizer.chat_template) if chat is None else chat
        return CausalScorer(
            self.model, how or Decoding(), chat=chats, store=self.store, name=self.name, identity=self.identity
        )


def build(
    run: Context, *, name: str, model: str | None, revision: str | None, dtype: str, device: str | None,
    remote_code: bool, quantise: Quantise, closed_book: bool, prompt: Table, shots: Table, sampling: Table,
    context: Table, verify: Table, relations: Mapping[str, Table],
) -> Generator:  # fmt: skip
    """The generator. Settings are checked before the model is loaded."""
    asking = asking_for(run, {"prompt": prompt, "shots": shots, "sampling": sampling}, relations, run.train)
    check = Check.of(verify, run.workspace.relations) if verify else None
    knows = located(ContextSettings.of(context, closed_book=closed_book), run.files)
    asked = Asked.of(
        run, model, revision=revision, dtype=dtype, device=device, remote_code=remote_code, quantise=quantise
    )
    generator = CausalGenerator(
        asked.model,
        asking,
        run.relations,
        asked.name,
        context=provider(knows, run.relations, asked.scorer().paragraphs, run.cache),
        store=asked.store,
        identity=asked.identity,
        voice=name,
    )
    if check is None:
        return generator
    how = Decoding(draws=check.draws, temperature=check.temperature or 0.0, seed=check.seed)
    scorer = asked.scorer(how, chat=PromptStyle.of(prompt).form != "completion")
    return verifying(generator, scorer, check, run.relations, run.train)
