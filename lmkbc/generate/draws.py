"""Draws: requests for several draws of a prompt, and their plans."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from lmkbc.models.base import (
    Dialogue,
    PlannedRequest,
    Prompt,
    Request,
    Response,
    Sampling,
)
from lmkbc.models.server.limits import GUESSED_ANSWER


def answer_tokens(sampling: Sampling) -> int:
    """Return the most tokens of an answer; a guess if the sampling does not limit it."""
    return sampling.max_tokens or GUESSED_ANSWER


def asking(requests: list[Request]) -> Dialogue[list[Response]]:
    """Return the answers to requests; [] without a call if there are no requests.

    A first draw with its own temperature becomes a separate request.
    """
    each = [_parted(request) for request in requests]
    answered = iter((yield [part for parts in each for part in parts]) if requests else [])
    answers = [[next(answered) for _ in parts] for parts in each]
    return [Response(its[0].prompt, tuple(reply for one in its for reply in one.replies)) for its in answers]


def _parted(request: Request) -> list[Request]:
    """Return the parts of a request: its first draw separately if it has its own temperature."""
    sampling, (first, *others) = request.sampling, request.draws
    if sampling.first_temperature is None:
        return [request]
    rest = replace(sampling, first_temperature=None)
    if first != 0:
        return [replace(request, sampling=rest)]
    alone = replace(request, draws=(0,), sampling=replace(rest, temperature=sampling.first_temperature))
    return [alone, *([replace(request, draws=tuple(others), sampling=rest)] if others else [])]


def planned(
    name: str, request: Request, times: int, sizes: Mapping[str, int], *, apart: bool
) -> Iterator[PlannedRequest]:
    """Yield a request for some draws, each of them alone if their prompts differ."""
    for part in _parted(request):
        alone, often = (replace(part, draws=part.draws[:1]), times * len(part.draws)) if apart else (part, times)
        yield PlannedRequest.filled(name, alone, often, sizes)


def together(wanted: Iterable[tuple[Prompt, int]]) -> dict[Prompt, list[int]]:
    """Return prompt -> its draws, each once, in order."""
    draws: defaultdict[Prompt, dict[int, None]] = defaultdict(dict)
    for prompt, draw in wanted:
        draws[prompt][draw] = None
    return {prompt: list(its) for prompt, its in draws.items()}
