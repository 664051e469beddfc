"""Asking a model all of KAMEL: property by property, every answer kept as soon as it is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Protocol

from lmkbc.generate.causal.decode import Completion, Decoding
from lmkbc.predict import Report, silent
from lmkbc.probe.kamel import Fact, Kamel
from lmkbc.probe.kamel_prompts import Shots, prompts
from lmkbc.probe.kamel_score import END
from lmkbc.store import Call, Store

GREEDY = Decoding(max_tokens=100, stops=(END,))
"""The paper's decoding: the likeliest token, until `%` or for 100 tokens."""


class Completes(Protocol):
    """A local model: the completions of each prompt, by its place, in any order."""

    def complete(self, prompts: Sequence[str], how: Decoding) -> Iterator[tuple[int, list[Completion]]]:
        """Yield (place, draws)."""
        ...


def ask(
    model: Completes, name: str, given: Sequence[tuple[Fact, str]], *, store: Store | None = None, revision: str = "",
) -> Iterator[tuple[Fact, str]]:  # fmt: skip
    """Each fact with its completion, stripped at both ends, in the order given.

    Stored answers are not asked for again. A prompt longer than the model's window is answered with nothing.
    """
    texts: dict[int, str] = {}
    calls = [_call(name, prompt, revision) for _, prompt in given] if store else []
    for place, call in enumerate(calls):
        answer = store.get(call) if store else None
        if answer is not None:
            texts[place] = answer["text"]
    missing = [place for place in range(len(given)) if place not in texts]
    for index, draws in model.complete([given[place][1] for place in missing], GREEDY):
        place, text = missing[index], draws[0].text or ""
        texts[place] = text
        if store and draws[0].text is not None:
            store.put([(calls[place], {"text": text, "finished": draws[0].finished})])
    for place, (fact, _) in enumerate(given):
        yield fact, texts[place].strip()


def run(
    model: Completes, name: str, benchmark: Kamel, wording: Mapping[str, str], shots: Shots, *,
    properties: Iterable[str], split: str = "test", limit: int | None = None, store: Store | None = None,
    revision: str = "", report: Report = silent,
) -> Iterator[tuple[Fact, str]]:  # fmt: skip
    """Ask a model the properties of a split, at most `limit` queries each; a run that was killed goes on."""
    names = list(properties)
    for done, one in enumerate(names, start=1):
        facts = list(islice(benchmark.of(one, split), limit))
        asked = list(prompts(facts, benchmark.of(one, "train"), wording, shots))
        yield from ask(model, name, asked, store=store, revision=revision)
        report("properties", done, len(names))


def _call(name: str, prompt: str, revision: str) -> Call:
    sampling = {"max_tokens": GREEDY.max_tokens, "temperature": 0.0, "stops": [END]}
    return Call(model=name, prompt=prompt, revision=revision, sampling=sampling)
