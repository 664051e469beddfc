"""What a tokenizer's vocabulary says in plain text, whatever its sub-word scheme, and names as token ids."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PIECE, BYTES, SPACE = "##", "Ġ", "▁"
"""What WordPiece puts before a continuation, byte-level BPE before a word, and SentencePiece before a word."""

_RESERVED = re.compile(r"[\[<].*[\]>]")


class Words:
    """The whole words of a vocabulary: no continuations, no special or reserved tokens, no mere punctuation."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer, self.unknown = tokenizer, tokenizer.unk_token_id
        pieces = tokenizer.get_vocab()
        counts = {mark: sum(piece.startswith(mark) for piece in pieces) for mark in (PIECE, BYTES, SPACE)}
        self.mark = max(counts, key=lambda mark: counts[mark]) if any(counts.values()) else ""

    @cached_property
    def plain(self) -> dict[int, str]:
        """Vocabulary id -> the word that it stands for, in order of ids."""
        special = set(self._tokenizer.all_special_ids)
        added = set(self._tokenizer.get_added_vocab().values())
        ids = {}
        for piece, index in sorted(self._tokenizer.get_vocab().items(), key=lambda item: item[1]):
            word = piece if index in added else self._word(piece)
            if index not in special and any(char.isalnum() for char in word) and not _RESERVED.fullmatch(word):
                ids[index] = word
        return ids

    def ids(self, name: str) -> list[int]:
        """Return the tokens of a name as they stand within a sentence."""
        return self.pieces([name])[0]

    def pieces(self, names: Sequence[str]) -> list[list[int]]:
        """Return the tokens of names, each as it stands within a sentence."""
        texts = list(names) if self.mark == PIECE else [f" {name}" for name in names]
        return list(self._tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]) if texts else []

    def single(self, name: str) -> int | None:
        """Return the id of a name that is one known token, else None."""
        ids = self.ids(name)
        return ids[0] if len(ids) == 1 and ids[0] != self.unknown else None

    def text(self, ids: list[int]) -> str:
        """Return the plain text of tokens."""
        return self._tokenizer.convert_tokens_to_string(list(self._tokenizer.convert_ids_to_tokens(ids))).strip()

    def _word(self, piece: str) -> str:
        if self.mark == PIECE:
            return "" if piece.startswith(PIECE) else piece
        if self.mark and not piece.startswith(self.mark):
            return ""
        if self.mark == BYTES:
            return self._tokenizer.convert_tokens_to_string([piece]).strip()
        return piece.removeprefix(self.mark)
