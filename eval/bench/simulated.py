"""Simulated sources of known quality, in place of models. Each knows a share of the gold, and proposes wrong objects.

`eval/bench/pools.py` pools them. This module has no command.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmkbc.types import Candidate, CandidateSet, Example, GoldObject, Nil, Source, State

DRAWS = 5
"""Draws of a simulated source."""


@dataclass(frozen=True)
class Simulation:
    """A simulated source. known: share of the gold objects that it knows. wrong: mean number of wrong objects.

    like: source whose knowledge and errors it shares; "" for its own.
    """

    known: float
    wrong: float
    like: str = ""


SIMULATED = {
    "good": Simulation(0.5, 2.0),
    "fair": Simulation(0.45, 2.5),
    "useless": Simulation(0.0, 3.0),
    "correlated": Simulation(0.45, 2.5, like="good"),
    "better": Simulation(0.6, 1.5),
}


def simulated(
    name: str, train: Sequence[Example], examples: Sequence[Example], *, seed: int = 0
) -> Sequence[CandidateSet]:
    """Return the draws of a simulated source. An object has a difficulty that all sources of a seed share."""
    how = SIMULATED[name]
    objects: dict[str, list[GoldObject]] = {}
    for example in train:
        objects.setdefault(example.query.relation, []).extend(example.objects)
    made = []
    for example in examples:
        query = example.query
        common = random.Random(f"{seed}, {query.subject}, {query.relation}")
        own = random.Random(f"{seed}, {query.subject}, {query.relation}, {how.like or name}")
        draw = random.Random(f"{seed}, {query.subject}, {query.relation}, {name}")
        shares: dict[tuple[str, str | None], float] = {}
        for gold in example.objects:
            hard, luck = common.random(), own.random()
            knows = (hard + luck) / 2 < how.known
            if how.known:
                shares[gold.name or gold.id or "", gold.id] = own.betavariate(5, 2) if knows else own.betavariate(1, 12)
        for _ in range(round(own.expovariate(1 / how.wrong))):
            wrong = own.choice(objects[query.relation]) if objects.get(query.relation) else None
            if wrong:
                shares.setdefault((wrong.name or wrong.id or "", wrong.id), own.betavariate(1, 3))
        made.append(drawn(query, name, shares, draw))
    return made


def drawn(query: Any, model: str, shares: Mapping[tuple[str, str | None], float], draw: random.Random) -> CandidateSet:
    """Return draws that name each object with the probability of its share."""
    candidates, states, nothing = [], [], []
    for number in map(str, range(DRAWS)):
        source = (Source(model, number),)
        named = [Candidate(text, 1.0, source, id_) for (text, id_), share in shares.items() if draw.random() < share]
        candidates += named
        states.append(State.ANSWERED if named else State.ABSTAINED)
        nothing += [] if named else [Nil(1.0, source)]
    return CandidateSet(query, tuple(candidates), tuple(states), nothing=tuple(nothing))
