"""What generators that ask language models take from a run: what is asked, and where answers are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmkbc.ask.plan import Asking, needs_encoder
from lmkbc.models.store import Store, default_store
from lmkbc.types import Example

if TYPE_CHECKING:
    from lmkbc.generate.components import Context

Table = Mapping[str, Any]


def asking_for(
    run: Context, tables: Mapping[str, Table], relations: Mapping[str, Table], train: Sequence[Example]
) -> Asking:
    """What is asked about the run's relations, after examples of train, some of them selected by embedding."""
    encoder = None
    if needs_encoder(tables, relations):
        from lmkbc.models.encoder import find_encoder

        encoder = find_encoder()
    return Asking(run.edition, run.relations, train, tables, relations, run.workspace.relations, encoder)


def kept_answers(run: Context) -> Store:
    """The store that the command line names, else the user's."""
    return Store(Path(run.options.get("store") or default_store()))
