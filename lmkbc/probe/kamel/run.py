"""Asking a model all of KAMEL: every answer is kept as soon as it is there, so that a killed run goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from lmkbc.models.base import Prompt, Sampling
from lmkbc.models.causal.decode import Decoding
from lmkbc.probe.kamel.dataset import Fact, Kamel
from lmkbc.probe.kamel.prompts import PromptForm, Shots, prompts
from lmkbc.probe.kamel.score import END
from lmkbc.probe.local import Local
from lmkbc.progress import Report, silent

if TYPE_CHECKING:
    from lmkbc.probe.served import Served

GREEDY = Decoding(max_tokens=100, stops=(END,))
"""The paper's decoding: the likeliest token, until `%` or for 100 tokens."""


def sampling(form: PromptForm) -> Sampling:
    """Return the same for a server; a chat model ends its answers by itself."""
    stop = (END,) if form == "completion" else None
    return Sampling(temperature=0.0, max_tokens=GREEDY.max_tokens, stop=stop)


def questions_of(
    benchmark: Kamel,
    wording: Mapping[str, str],
    shots: Shots,
    *,
    properties: Iterable[str],
    split: str = "test",
    limit: int | None = None,
    form: PromptForm = "completion",
) -> Iterator[tuple[Fact, Prompt]]:
    """The facts of some properties, at most `limit` of each, with their prompts."""
    for name in properties:
        facts = list(islice(benchmark.of(name, split), limit))
        yield from prompts(facts, benchmark.of(name, "train"), wording, shots, form)


def ask(
    model: Local | Served, requests: Iterable[tuple[Fact, Prompt]], report: Report = silent
) -> list[tuple[Fact, str | None]]:
    """Each fact with its completion, stripped at both ends, in the order given; None where it could not be asked."""
    pairs = list(requests)
    texts: list[str | None] = [None] * len(pairs)
    for done, (place, text) in enumerate(model.answers([prompt for _, prompt in pairs]), start=1):
        texts[place] = None if text is None else text.strip()
        report("queries", done, len(pairs))
    return [(fact, text) for (fact, _), text in zip(pairs, texts, strict=True)]
