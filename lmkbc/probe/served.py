"""A probe's prompts answered by an OpenAI-compatible server, many at a time, within limits, resumed from the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lmkbc.errors import LmkbcError, counted
from lmkbc.models.base import WITHHELD, Answered, Prompt, Reply, Request, Sampling, Talk
from lmkbc.models.server.language_model import ServerModel


class Served:
    """Asks a server's model each prompt once. remarks: what a person should know of a run, once it is over."""

    def __init__(self, model: ServerModel, sampling: Sampling) -> None:
        self.remarks: list[str] = []
        self._model, self._sampling = model, sampling

    def answers(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, str | None]]:
        """Yield (place, text) as answers come; what a model refuses to answer is answered with "".

        LmkbcError at the end where answers are missing: they are failures, no wrong answers.
        """
        unanswered = withheld = blank = 0
        talks = {place: self._talk(prompt) for place, prompt in enumerate(prompts)}
        for place, reply in self._model.converse(talks):
            if reply is None or reply.failed:
                unanswered += 1
                yield place, None
            else:
                withheld += reply.finish in WITHHELD
                blank += not reply.is_answer
                yield place, "" if reply.finish in WITHHELD else reply.text
        self.remarks = list(self._model.remarks())
        if withheld:
            self.remarks.append(f"{counted(withheld, 'prompt was', 'prompts were')} refused: counted as wrong")
        if blank:
            self.remarks.append(
                f"{counted(blank, 'prompt was', 'prompts were')} answered with nothing: counted as wrong, and as "
                "nothing is not kept, the next run asks again"
            )
        self.remarks = [f"{self._model.name}: {remark}" for remark in self.remarks]
        if unanswered:
            raise LmkbcError(
                f"{unanswered} of {len(prompts)} prompts have no answer ({self._model.lost or 'no answer'}): "
                f"run the same command again to go on from {self._model.place}"
            )

    def _talk(self, prompt: Prompt) -> Talk[Reply | None]:
        answered: list[Answered] = yield [Request(prompt, (0,), self._sampling)]
        return answered[0].replies[0]
