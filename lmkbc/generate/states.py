"""Hidden states of a local model after a question: one vector per query, as features for other models.

A linear probe on hidden states finds facts that a small model does not write (Alain and Bengio 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lmkbc.ask.builder import PromptBuilder, PromptSettings
from lmkbc.errors import refuse
from lmkbc.files.arrays import Arrays, ArrayStore, key
from lmkbc.generate.access import local_model
from lmkbc.models.reference import ModelReference
from lmkbc.notes import Notes
from lmkbc.progress import Report
from lmkbc.select.ranking import Floats
from lmkbc.session.run import Run
from lmkbc.types import Query

PORTION = 256
"""Queries that are read and stored at a time; a killed run loses at most these."""


@dataclass(frozen=True, kw_only=True)
class States(ModelReference, PromptSettings):
    """Settings of hidden states. depth: share of the layers after which they are read; 1 for all layers."""

    depth: float = 0.87

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value."""
        ModelReference.__post_init__(self)
        PromptSettings.__post_init__(self)
        refuse(
            (
                self.backend == "server" or self.base_url,
                "states are read of a model of this machine: name no server",
            ),
            (not 0 < self.depth <= 1, f"depth is {self.depth}: give a share of the layers, above 0 and up to 1"),
            (self.chained, "prompt.steps are asked of a model that writes: states are read, and have none"),
        )

    def open(self, run: Run, notes: Notes, kept: ArrayStore) -> StateReader:
        """Return the reader of states. kept: store of states."""
        asking = PromptBuilder(run.edition, run.relations, run.train, self, run.workspace.relations)
        return StateReader(local_model(self, run, notes), asking, self.depth, kept, run.report, notes)


class StateReader:
    """Reads the hidden state after the prompt of each query.

    Meanwhile the model records states during other requests, which may have the same prompts.
    """

    def __init__(
        self, local: Any, asking: PromptBuilder, depth: float, kept: ArrayStore, report: Report, notes: Notes
    ) -> None:
        self._local, self._asking, self._depth, self._kept = local, asking, depth, kept
        self._report, self._notes = report, notes
        self._digest = key(local.identity, depth)  # identifies these states
        local.model.watch(depth)

    def read(self, *groups: Sequence[Query]) -> Floats:
        """Return the vectors of queries, (n, d). It is fastest after the model scored options of the same prompts.

        groups: read one after the other, as in `OtherSources.ask`.
        """
        model = self._local.model
        texts = [[model.text(self._asking.prompt(query)) for query in group] for group in groups]
        portions = [group[start : start + PORTION] for group in texts for start in range(0, len(group), PORTION)]

        def read(portion: Sequence[str]) -> Arrays:
            with model.usage.added(self._notes.usage):
                return {"states": model.states(portion, self._depth)}

        blocks: list[Arrays] = []
        done, total = 0, sum(map(len, texts))
        self._report("states (queries)", done, total)
        for portion in portions:
            blocks.append(self._kept.get("states", key(self._digest, portion), partial(read, portion)))
            self._report("states (queries)", done := done + len(portion), total)
        model.watch(self._depth)
        return np.concatenate([block["states"] for block in blocks]).astype(np.float64)
