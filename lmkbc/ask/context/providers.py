"""Construction of passage providers from settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lmkbc.ask.context.passages import ContextSettings, Provider, Titles, read_corpus
from lmkbc.ask.context.recall import Recall
from lmkbc.ask.context.retrieval import Retrieval
from lmkbc.errors import InputError
from lmkbc.models.base import LanguageModel
from lmkbc.relation import Relation


def located(settings: ContextSettings, files: Sequence[Path]) -> ContextSettings:
    """Return the settings with the file of --from if path is "from". Raise InputError unless --from names one file."""
    if settings.path != "from":
        return settings
    if len(files) != 1:
        raise InputError("this system shows text about each subject: name one JSONL file of title and text with --from")
    return replace(settings, path=str(files[0]))


def provider(
    settings: ContextSettings,
    relations: Mapping[str, Relation],
    model: Callable[[], LanguageModel],
    cache: Path | None = None,
) -> Provider | None:
    """Return the provider that the settings name; None for "none".

    model: returns the model for "recall". cache: directory for indexes of passages.
    """
    match settings.provider:
        case "none":
            return None
        case "recall":
            return Recall(relations, model())
        case "titles":
            return Titles(read_corpus(Path(settings.path)), settings, relations)
        case "passages":
            return Retrieval.open(read_corpus(Path(settings.path)), relations, settings, cache)
