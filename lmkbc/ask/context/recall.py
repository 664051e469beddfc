"""Self-recall: the model first writes what it knows about the subject, and the prompt then shows this text.

It is closed-book, since the text is the model's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lmkbc.ask.prompts import fill, one_line
from lmkbc.models.base import LanguageModel
from lmkbc.notes import Passage
from lmkbc.relation import Relation
from lmkbc.types import Query

PROMPT = "An encyclopedia entry about {subject} ({type}), with all that bears on this question: {question}\n\nEntry:"


class Recall:
    """Asks a model for a text about each subject."""

    def __init__(self, relations: Mapping[str, Relation], model: LanguageModel) -> None:
        self._relations, self._model = relations, model

    def find(self, queries: Sequence[Query]) -> list[tuple[Passage, ...] | None]:
        """Return a passage without a title per query; () if the model writes nothing, None if its call failed."""
        replies = self._model.paragraphs([self._prompt(query) for query in queries])
        return [None if text is None else (Passage("", text.strip()),) if text.strip() else () for text in replies]

    def _prompt(self, query: Query) -> str:
        relation, subject = self._relations[query.relation], one_line(query.subject)
        question = fill(relation.question, {"subject": subject})
        return fill(PROMPT, {"subject": subject, "type": relation.subject_type.noun, "question": question})
