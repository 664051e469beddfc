"""The objects with which a trained model can answer, each as one output vector of the model.

An object of one token uses that token's vector. With expansion, every object gets an additional row after the
vocabulary, initialised with the mean of its pieces (Yang et al. 2023, "token recode"; LM-KBC 2023). Object 0 is "no
object".
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from transformers import PreTrainedTokenizerBase

from lmkbc.errors import InputError
from lmkbc.models.masked.vocabulary import Words
from lmkbc.names import folded_key
from lmkbc.types import Fact

FILE = "entities.json"
NOTHING = "none"


@dataclass(frozen=True, slots=True, eq=False)
class Entities:
    """n objects, the first of which is "no object", spelled "".

    ids: QIDs, "" if unknown.
    rows: vocabulary rows.
    pieces: token ids of each object.
    relations: relation -> indices of its objects.
    folds: normal form of a training subject -> the fold whose head was trained without it.
    """

    names: tuple[str, ...]
    ids: tuple[str, ...]
    rows: tuple[int, ...]
    pieces: tuple[tuple[int, ...], ...]
    relations: Mapping[str, tuple[int, ...]]
    folds: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        facts: Iterable[Fact],
        tokenizer: PreTrainedTokenizerBase,
        size: int,
        *,
        expand: bool,
        always: Sequence[str] = (),
        least: int = 1,
    ) -> Entities:
        """Return the objects of facts.

        size: size of the model's vocabulary.
        always: relations of which every object is taken.
        least: least number of facts per object of other relations.
        expand: whether to include objects of several tokens.
        """
        counts, spellings, ids, answers = _gather(facts)
        chosen = {key for key, count in counts.items() if count >= least}
        chosen |= {key for name in always for key in answers.get(name, ())}
        names, rows, number = [""], [size if expand else _none(tokenizer)], {"": 0}
        pieces: list[tuple[int, ...]] = [(_none(tokenizer),)]
        ordered = sorted(chosen)
        for key, tokens in zip(ordered, Words(tokenizer).pieces([spellings[key] for key in ordered]), strict=True):
            if not tokens or tokenizer.unk_token_id in tokens or (not expand and len(tokens) > 1):
                continue
            number[key] = len(names)
            rows.append(size + len(names) if expand else tokens[0])
            names.append(spellings[key])
            pieces.append(tuple(tokens))
        relations = {
            name: (0, *sorted({number[key] for key in keys if key in number})) for name, keys in answers.items()
        }
        ids_by_name = tuple(ids.get(folded_key(name), "") for name in names)
        return cls(tuple(names), ids_by_name, tuple(rows), tuple(pieces), relations)

    def some(self) -> Entities:
        """Return self. Raise InputError if there is only "no object"."""
        if len(self.names) == 1:
            raise InputError("no object is left to train on: give more facts, or expand the vocabulary")
        return self

    @property
    def expanded(self) -> bool:
        """Return whether objects have additional rows after the vocabulary."""
        return self.rows[0] > max((piece for pieces in self.pieces for piece in pieces), default=0)

    def numbers(self, facts: Iterable[Fact]) -> list[list[int]]:
        """Return the indices of each fact's objects: [0] for a fact without objects, [] if none of them is known."""
        index = {folded_key(name): number for number, name in enumerate(self.names)}
        return [
            sorted({index[key] for key in map(folded_key, fact.objects) if key in index}) if fact.objects else [0]
            for fact in facts
        ]

    def to_json(self) -> bytes:
        """Return the content of the file beside the weights."""
        return json.dumps(
            {
                "names": self.names,
                "ids": self.ids,
                "rows": self.rows,
                "pieces": self.pieces,
                "relations": self.relations,
                "folds": self.folds,
            },
            ensure_ascii=False,
        ).encode()

    @classmethod
    def read(cls, directory: Path) -> Entities:
        """Read the objects from a trained directory. Raise InputError if the file is missing or broken."""
        path = directory / FILE
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except (OSError, msgspec.MsgspecError) as error:
            raise InputError(f"{path} is no list of objects ({error}); train the model again") from error


def _none(tokenizer: PreTrainedTokenizerBase) -> int:
    return Words(tokenizer).ids(NOTHING)[0]


def _gather(
    facts: Iterable[Fact],
) -> tuple[Counter[str], dict[str, str], dict[str, str], dict[str, set[str]]]:
    """Return the count, first spelling and QID of each object by normal form, and the objects by relation."""
    counts, spellings, ids = Counter[str](), dict[str, str](), dict[str, str]()
    answers = defaultdict[str, set[str]](set)
    for fact in facts:
        for name, identifier in zip(fact.objects, fact.ids, strict=True):
            if not (key := folded_key(name)):
                continue
            counts[key] += 1
            spellings.setdefault(key, name)
            if identifier:
                ids.setdefault(key, identifier)
            answers[fact.relation].add(key)
    return counts, spellings, ids, dict(answers)
