"""Labels of linked items, for readers of facts that show only the model's word for an object."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lmkbc.link.index import AliasIndex
from lmkbc.link.search import Wikidata
from lmkbc.link.wikidata import API_URL, CONTACT
from lmkbc.session.run import Run


def labels_of(ids: Sequence[str], run: Run, index: AliasIndex | None) -> dict[str, str]:
    """Return the labels of items that the index has, or else the answers of Wikidata that linking kept.

    Nothing is asked.
    """
    labels = index.labels(ids) if index is not None else {}
    if ids and run.search_table is None and (run.offline or os.environ.get(CONTACT)):
        labels |= Wikidata(None, partial=True, api_url=run.api_url or API_URL).labels(
            qid for qid in ids if qid not in labels
        )
    return labels
