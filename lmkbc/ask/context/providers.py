"""From settings to what finds passages."""

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
    """Return the settings with the file that --from names, where path is "from". InputError unless it names one."""
    if settings.path != "from":
        return settings
    if len(files) != 1:
        raise InputError("this system tells text about each subject: name one JSONL file of title and text with --from")
    return replace(settings, path=str(files[0]))


def provider(
    settings: ContextSettings,
    relations: Mapping[str, Relation],
    model: Callable[[], LanguageModel],
    cache: Path | None = None,
) -> Provider | None:
    """Return the provider that the settings name; None for "none". model: opens what recall asks.

    cache: where an index of passages may be kept.
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
