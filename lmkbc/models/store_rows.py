"""What a back end of the store does: it keeps rows, and knows neither what they say nor whether it is so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol


class Row(NamedTuple):
    """An answer as it lies in a table. prompt: the digest of one. checksum: what seals all fields before it."""

    key: str
    model: str
    call: str
    prompt: str
    answer: str
    date: str
    checksum: str


class Rows(Protocol):
    """The rows of answers, prompts and notes. What was written is durable when a method returns.

    LmkbcError where the back end fails, which is never as if a row were not there.
    """

    def insert(self, prompts: Mapping[str, str], rows: Sequence[Row]) -> set[str]:
        """Commit prompts, by digest, and rows, whose keys are distinct; a row of a known key stays as it was.

        Returns those keys, of rows that others may have committed while this was waiting.
        """

    def answer(self, key: str) -> tuple[bytes, ...] | None:
        """What a key's row holds behind the key, None for no row; empty bytes for what is no text."""

    def delete(self, key: str) -> None:
        """Forget a row."""

    def note(self, key: str) -> tuple[bytes, ...] | None:
        """A note and its checksum, None for none."""

    def set_note(self, key: str, note: tuple[str, str] | None) -> None:
        """Replace a note and its checksum; None forgets it."""

    def heal(self) -> Counter[str]:
        """Drop the rows whose seal is broken. Returns how many, by model, or by table where they have none."""

    def summary(self) -> list[tuple[Any, ...]]:
        """By model, sorted: name, answers, distinct prompts, prompt and answer tokens, first and last date."""

    def lines(self, model: str | None) -> Iterator[tuple[str, str, str | None, str, str]]:
        """Key, call, prompt, answer and date of each row in the order of keys; None for a prompt that is lost."""

    def prune(self, model: str | None, before: str | None) -> int:
        """Drop answers of a model, or from before a date, and the prompts of none. Returns how many answers."""

    def close(self) -> None:
        """Release what is held."""
