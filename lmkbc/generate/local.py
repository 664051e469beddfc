"""A local causal model: what a recipe says of it, what the command line says before that, and its share of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lmkbc.errors import InputError
from lmkbc.models.answers import Store
from lmkbc.models.causal.checkpoint import Quantise, identity, load
from lmkbc.models.causal.decode import Decoding
from lmkbc.models.causal.model import CausalModel
from lmkbc.models.causal.scorer import CausalScorer
from lmkbc.models.causal.unasked import Unasked
from lmkbc.models.files import model_name
from lmkbc.models.located import is_available
from lmkbc.models.precision import computes
from lmkbc.run.base import Run
from lmkbc.types import Notes


@dataclass(frozen=True, kw_only=True)
class LocalSettings:
    """What a recipe's table says of a local causal model: see `lmkbc.models.causal.checkpoint.load`."""

    model: str | None = None
    revision: str | None = None
    dtype: str = "auto"
    device: str | None = None
    trust_remote_code: bool = False
    quantise: Quantise = "none"

    def is_here(self, run: Run) -> bool:
        """Whether a model is named with --model, or the table's lies on this machine."""
        return bool(run.model or (self.model and is_available(self.model)))

    def source(self, run: Run) -> str:
        """The model's place; --model comes before the table's."""
        if source := run.model or self.model:
            return source
        raise InputError(
            "the component 'causal' names no model: give one with --model, of the hub, a directory or a GGUF file"
        )

    def local(self, run: Run) -> Local:
        """The model. All steps of a run that ask one model share it."""
        source = self.source(run)

        def read() -> tuple[CausalModel, str]:
            loaded = load(
                source,
                revision=self.revision,
                dtype=self.dtype,
                device=self.device,
                offline=run.offline,
                trust_remote_code=self.trust_remote_code,
                quantise=self.quantise,
                weights=run.dry is None,
            )
            model = CausalModel(*loaded) if run.dry is None else Unasked(*loaded, run.dry)
            return model, identity(source, loaded[0]) + ("+quantised" if run.dry and self.quantise != "none" else "")

        own = source, self.revision, self.dtype, self.device, self.trust_remote_code, self.quantise
        model, digest = run.loaded(own, read)
        run.computed[model_name(source)] = computes(model.model)
        return Local(model, model_name(source), digest, run.store)


@dataclass(frozen=True, slots=True)
class Local:
    """A local model, its name, what tells it from others, and what opens the store that keeps its answers."""

    model: CausalModel
    name: str
    identity: str
    store: Callable[[], Store]

    def scorer(
        self, how: Decoding | None = None, *, chat: bool | None = None, notes: Notes | None = None
    ) -> CausalScorer:
        """What asks it short questions: as a chat where that is said, or else where it has a template.

        notes: where that is counted, unless the one who asks counts it.
        """
        chats = bool(self.model.tokenizer.chat_template) if chat is None else chat
        return CausalScorer(
            self.model,
            how or Decoding(),
            chat=chats,
            store=self.store(),
            name=self.name,
            identity=self.identity,
            notes=notes,
        )
