"""The back end of models on this machine: opens the model that a recipe and the command line name."""

from __future__ import annotations

from lmkbc.local.checkpoint import identity, load
from lmkbc.local.local_model import LocalModel
from lmkbc.local.model import CausalModel
from lmkbc.models.identity import model_name
from lmkbc.models.reference import ModelReference
from lmkbc.models.server.limits import GUESSED_ANSWER
from lmkbc.notes import Notes
from lmkbc.session.run import ModelRun


def opened(
    model: ModelReference, place: str, run: ModelRun, notes: Notes, *, completion: bool | None = None
) -> LocalModel:
    """Return a model of this machine. All steps of a run share it.

    place: its name or path. completion: whether plain questions are completed as text; None for a chat if the model
    supports it.
    """

    def read() -> tuple[CausalModel, str]:
        loaded = load(
            place,
            revision=model.revision or None,
            dtype=model.dtype,
            device=model.device,
            offline=run.offline,
            quantise=model.quantise,
            weights=run.dry is None,
            report=run.report,
        )
        return CausalModel(*loaded), identity(place, loaded[0], model.quantise)

    settings = place, model.revision, model.dtype, model.device, model.quantise
    opened, digest = run.loaded(settings, read)
    run.computed[model_name(place)] = opened.computes()
    return LocalModel(
        opened,
        model_name(place),
        digest,
        store=run.store(),
        chats=bool(opened.tokenizer.chat_template) if completion is None else not completion,
        longest=None if model.component == "causal" else GUESSED_ANSWER,
        notes=notes,
    )
