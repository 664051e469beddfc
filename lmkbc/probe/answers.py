"""Answers of a language model to a probe: one text per prompt. Each is stored as soon as it arrives."""

from __future__ import annotations

from collections.abc import Sequence

from lmkbc.errors import LmkbcError, counted
from lmkbc.generate.access import open_model
from lmkbc.models.base import WITHHELD, LanguageModel, Prompt, Reply, Request, Sampling, Talk
from lmkbc.models.reference import ModelReference
from lmkbc.models.thoughts import answer_of
from lmkbc.notes import Notes
from lmkbc.probe.benchmark import Means


def opened(model: str, means: Means) -> LanguageModel:
    """Open a local causal model, or a server's model if its URL is given."""
    reference = ModelReference(model=model, backend="server" if means.servers.get("base_url") else "local")
    return open_model(reference, means, Notes())


def texts(
    model: LanguageModel, prompts: Sequence[Prompt], sampling: Sampling, means: Means, what: str = "queries"
) -> list[str]:
    """Return the answer to each prompt; "" for one that counts as wrong. Notes give the number of these, and why.

    LmkbcError if answers of a server are missing, since these are failures and not wrong answers. what: unit of the
    progress.
    """

    def asked(prompt: Prompt) -> Talk[Reply | None]:
        (answered,) = yield [Request(prompt, (0,), sampling)]
        return answered.replies[0]

    found = [""] * len(prompts)
    missing = withheld = blank = 0
    with means.progress() as report:
        talks = {place: asked(prompt) for place, prompt in enumerate(prompts)}
        for done, (place, reply) in enumerate(model.converse(talks), start=1):
            if reply is None or reply.failed:
                missing += 1
            else:
                withheld += reply.finish in WITHHELD
                blank += not reply.is_answer
                found[place] = "" if reply.finish in WITHHELD else answer_of(reply.text) or ""
            report(what, done, len(prompts))
    served = means.servers.get("base_url") is not None
    if missing and served:
        raise LmkbcError(
            f"{missing} of {len(prompts)} prompts have no answer ({model.lost or 'no answer'}): "
            f"run the same command again to go on from {model.place}"
        )
    if missing:
        means.note(f"{counted(missing, 'prompt is', 'prompts are')} longer than the model's window: counted as wrong")
    for remark in model.remarks() if served else ():
        means.note(f"{model.name}: {remark}")
    if withheld:
        means.note(f"{model.name}: {counted(withheld, 'prompt was', 'prompts were')} refused: counted as wrong")
    if blank:
        means.note(
            f"{model.name}: {counted(blank, 'prompt was', 'prompts were')} answered with nothing: counted as wrong, "
            "and as nothing is not kept, the next run asks again"
        )
    return found
