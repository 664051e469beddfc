"""Recorded answers of a user's own script, whatever their columns are called: written as a file of completions.

The names of columns are data (`COLUMNS`); `--from FILE:subject=name,answers=found` says others. A list is an answer
that names its items, and a list of lists holds one answer a draw. Rows of a query are draws, or they name one object
each. `_Form` decides this once, from the mapping that was typed, the names of columns and all cells. Objects
in a list or in cells of their own are kept as written; other texts are read as replies are. `script_scores` reads
lists, and their scores.
"""

from __future__ import annotations

import json
import logging
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from lmkbc.answer.abstain import is_abstention, is_refusal
from lmkbc.answer.clean import is_abbreviation
from lmkbc.edition import Edition
from lmkbc.errors import UNDECODABLE, InputError, counted
from lmkbc.files.atomic import write_bytes
from lmkbc.files.checksum import sha256
from lmkbc.files.jsonl import numbered
from lmkbc.files.places import SOURCE, cache_dir
from lmkbc.files.tables import SCORES, InputTable, TableRow, as_text, folded
from lmkbc.generate.script_scores import ScoredPairs, ScoredText, Scoring, score_of, value_of
from lmkbc.names import as_qid, subject_key
from lmkbc.relation import Relation
from lmkbc.types import grouped
from lmkbc.words import names_nothing
from lmkbc.workspace import Workspace

COLUMNS: Mapping[str, str] = {
    "subject": "subject subjectentity subjectname subjectlabel subj sub entity entityname head topic name "
    "item itemlabel",
    "id": "id subjectid subjectentityid subjectqid entityid headid subid qid wikidataid",
    "relation": "relation relationname relationtype relationid predicate property propertyid prop rel attribute",
    "answers": "answers answer objects object predictions prediction predictedobjects predicted preds pred results "
    "result objectname objectlabel objectlabels obj tail entities values value labels parsed extracted",
    "completions": "completions completion outputs output responses response generations generation generatedtext "
    "replies reply texts text samples content message raw rawoutput rawresponse modeloutput modelresponse llmoutput",
    "model": "model modelname modelid engine",
    "score": SCORES,
    "draw": "draw sample sampleid drawid run iteration trial seed attempt",
    "object_id": "objectid objectentityid objectqid",
}
"""Content of a column -> its usual names, the likeliest first, in lower case and without blanks and signs."""

ANSWERS = ("answers", "completions")
A_ROW_EACH = ("object", "obj", "tail", "objectname", "objectlabel")
"""Names of columns with one object: the rows of a query name its objects together."""

_JOINT = re.compile(r"(\|+|::|\t|;|->|@@|##)")
"""Signs between subject and relation in a key."""
_LISTS = re.compile(r"[;\[\n]")
"""Signs of several objects in a cell."""
_ENDINGS = re.compile(r"(?<=.)(?:\.[A-Za-z]\w*)+$")
_MAPPING = re.compile(r"(.+?):((?:\w+=[^,=]+)(?:,\w+=[^,=]+)*)")

log = logging.getLogger(__name__)


def as_recorded(
    given: Sequence[Path | str], space: Workspace, edition: Edition, asked: Collection[str] = ()
) -> tuple[Path, ...]:
    """Return the recorded files, those of scripts as completions in the user's cache.

    asked: the relations that are asked; none for all. Raise InputError for a file whose columns are unknown, with those
    that it has.
    """
    return tuple(_as_recorded(Path(path), space, edition, [*(asked or edition.relations)]) for path in given)


def _as_recorded(given: Path, space: Workspace, edition: Edition, asked: Sequence[str]) -> Path:
    named = None if given.exists() else _MAPPING.fullmatch(str(given))
    path = Path(named[1]) if named else given
    mapping = dict(pair.split("=") for pair in named[2].split(",")) if named else {}
    typed = next((what for what in ("object", *ANSWERS) if what in mapping), "")
    mapping = {"answers" if what == "object" else what: column for what, column in mapping.items()}
    if unknown := mapping.keys() - COLUMNS.keys():
        raise InputError(f"--from {given}: {min(unknown)!r} is none of {', '.join(COLUMNS)}, object")
    first = _first_object(path) if path.is_file() else {}
    if not path.is_file() or not (mapping or first is None or _is_foreign(first)):
        return path
    rows = [*InputTable(path, (), 0, keeps_more=True).rows()]
    made_of = [] if mapping or first is None else [*_of_mappings(rows, space, edition, asked)]
    rows = made_of or rows
    named_there = dict.fromkeys(name for row in rows for name in row.more)
    if not named_there:
        raise InputError(f"{path} holds no row: give one for each query (docs/files.md, 'Answers of a script')")
    if len(rows) == 1 < len(asked) and not mapping and (relation := _relation_of(named_there, space, edition, asked)):
        raise InputError(
            f"{path} maps subjects of {relation} to answers, and names no relation: add --relation {relation}"
        )
    columns = _columns(path, [*named_there], mapping, alone=len(asked) == 1)
    kind, made = ANSWERS["answers" not in columns], defaultdict[tuple[str | None, ...], list[_Cell]](list)
    subjects = dict[str, str]()
    for row in rows:
        text = {"relation": asked[0]} | {what: row.more.get(name) for what, name in columns.items()}
        relation = edition.spelt(called := text["relation"] or "")
        if not (relation and text["subject"]):
            raise InputError(f"{row.place}: {'it names no subject' if relation else edition.lacks(called)}")
        subject = subjects.setdefault(subject_key(text["subject"]), text["subject"])
        made[subject, as_qid(text.get("id") or ""), relation, text.get("model")].append(
            _Cell(
                row.place,
                text[kind],
                value_of(text[kind]),
                text.get("score"),
                text.get("draw"),
                as_qid(text.get("object_id") or ""),
            )
        )
    form = _Form.of(typed or kind, columns, [*made.values()], is_typed=bool(typed))
    try:
        content = _rows(made, form, space)
    except ValueError as error:
        log.warning("%s: the scores of the file are not read, and each object has the score 1", error)
        columns.pop("score", None)
        content = _rows(made, replace(form, scores=False), space)
    target = cache_dir() / "answers" / sha256(content)[:16] / f"{_ENDINGS.sub('', path.name)}.jsonl"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, content)
    write_bytes(target.parent / SOURCE, str(path).encode())
    read = ",".join(f"{'object' if form.together and what == kind else what}={name}" for what, name in columns.items())
    unread = ", ".join(name for name in named_there if name not in columns.values())
    queries = {(subject, relation) for subject, _, relation, _ in made}
    log.info(
        "%s is read as %s (%s)%s",
        path,
        "one that maps names to answers" if made_of else f"--from {path}:{read}",
        counted(len(queries), "query", "queries"),
        f"; not read: {unread}" if unread else "",
    )
    again = [(key, cells) for key, cells in made.items() if len({cell.draw for cell in cells}) < len(cells)]
    for key, (cell, other, *_) in () if form.together else again[:1]:
        log.warning(
            "%s: %s several rows, read as draws, first (%r, %r) in lines %s and %s; if they are none, leave one row of "
            "each, or, if each names one object, give --from %s:object=%s",
            path,
            counted(len(again), "query has", "queries have"),
            key[0],
            key[2],
            cell.place.rpartition(" ")[2],
            other.place.rpartition(" ")[2],
            path,
            columns[kind],
        )
    return target


def _first_object(path: Path) -> dict[str, Any] | None:
    """Return the first object of a file of JSON; None for another file."""
    try:
        return msgspec.json.decode(next((line for _, line in numbered(path)), b"{}"), type=dict[str, Any])
    except (InputError, *UNDECODABLE):
        return None


def _is_foreign(first: Mapping[str, Any]) -> bool:
    """Return whether a file whose first object this is has none of the project's own formats."""
    own = {"SubjectEntity", "Relation"} <= first.keys()
    return not own or bool(not {"completions", "candidates"} & first.keys() and _found([*first], ANSWERS))


class _Cell(NamedTuple):
    """The answer in a row: its text and value, the score beside it, its draw, and its QID as an object, if given."""

    place: str
    text: str | None
    value: Any
    score: str | None
    draw: str | None
    id: str | None


def _of_mappings(
    rows: Sequence[TableRow], space: Workspace, edition: Edition, asked: Sequence[str]
) -> Iterator[TableRow]:
    """Yield a row a query of a file that maps relations, subjects or both to answers; nothing for another file.

    asked: the relations that are asked. Where it is one, subjects may be mapped to its answers.
    """
    given = [(row.place, key, value_of(text)) for row in rows for key, text in row.more.items()]
    nested = bool(given) and all(isinstance(value, dict) for _, _, value in given)
    outer = nested and all(edition.spelt(key) for _, key, _ in given)
    pairs = {key: _pair(key, edition) for key in dict.fromkeys(key for _, key, _ in given)}
    if nested and (outer or all(edition.spelt(key) for *_, value in given for key in value)):
        each = [
            (place, *((inner, key) if outer else (key, inner)), one)
            for place, key, v in given
            for inner, one in v.items()
        ]
    elif any(subject and edition.spelt(relation) for subject, relation in pairs.values()):
        each = [(place, *pairs[key], value) for place, key, value in given]
    else:
        is_one = len(asked) == 1 and len(pairs) == len(given) and _are_subjects([*pairs], space, edition, asked[0])
        each = [(place, key, asked[0], value) for place, key, value in given if is_one]
    for place, subject, relation, answers in each:
        yield TableRow(place, (), {"subject": subject, "relation": relation, "answers": as_text(answers)})


def _pair(key: str, edition: Edition) -> tuple[str, str]:
    """Return subject and relation of a key that names both, as "Peru|hasArea" and '["Peru", "hasArea"]' do.

    The relation may stand first. A key that names none of the edition has "" as its subject if it has no joint.
    """
    value = value_of(f"[{key[1:-1]}]") if key[:1] + key[-1:] in ("[]", "()") else None
    parts = [str(value[0]), "", str(value[1])] if isinstance(value, list) and len(value) == 2 else _JOINT.split(key)
    if edition.spelt(parts[0].strip()) and not edition.spelt(parts[-1].strip()):
        parts = [*parts[2:], "", parts[0]]
    return "".join(parts[:-2]).strip(), parts[-1].strip()


def _are_subjects(names: Sequence[str], space: Workspace, edition: Edition, relation: str) -> bool:
    """Return whether the keys of an object are subjects: those of a split, or none that could be names of columns."""
    could_be = _found(names, [*COLUMNS]) or all(name.islower() and name.isidentifier() for name in names)
    return not could_be or space.split_of({(name, relation) for name in names}, edition) is not None


def _relation_of(subjects: Collection[str], space: Workspace, edition: Edition, asked: Sequence[str]) -> str:
    """Return the relation of which a split asks most of some subjects; "" if none does."""
    return next((one for one in asked if space.split_of({(name, one) for name in subjects}, edition)), "")


def _found(names: Sequence[str], wanted: Sequence[str]) -> dict[str, str]:
    """Return what is wanted and there -> the likeliest of the columns for it."""
    here = {folded(name): name for name in reversed(names)}
    known = {what: [here[name] for name in COLUMNS[what].split() if name in here] for what in wanted}
    return {what: found[0] for what, found in known.items() if found}


def _columns(path: Path, names: Sequence[str], mapping: Mapping[str, str], *, alone: bool) -> dict[str, str]:
    """Return what each column of a file holds. alone: whether there is one relation, so that none need be named."""
    if lacking := [name for name in mapping.values() if name not in names]:
        raise InputError(f"{path} has no column {lacking[0]!r}, but {', '.join(names)}")
    rest = [name for name in names if name not in mapping.values()]
    answer = [what for what in ANSWERS if what in mapping] or [*_found(rest, ANSWERS), "answers"][:1]
    found = {**_found(rest, [what for what in COLUMNS if what not in ANSWERS or what in answer]), **mapping}
    if wanted := [
        what for what in ("subject", "relation", *answer) if what not in found and not (alone and what == "relation")
    ]:
        raise InputError(
            f"{path} has the columns {', '.join(names)[:200] or 'none'}, and none of them is known as "
            f"{' or '.join(wanted)}: name it, as in --from {path}:{','.join(f'{what}=COLUMN' for what in wanted)} "
            "(docs/files.md, 'Answers of a script', lists the known names)"
        )
    return found


def _name_one_each(queries: Iterable[Sequence[_Cell]]) -> bool:
    """Return whether rows of a query name one object each: draws would repeat a name, hold lists, or name a draw each.

    Where rows name their draws, several rows name one.
    """
    several = [cells for cells in queries if len(cells) > 1]
    draws = [len({cell.draw for cell in cells}) < len(cells) for cells in several if cells[0].draw is not None]
    return bool(several and (any(draws) or not draws)) and all(
        len({(cell.text, cell.draw) for cell in cells}) == len(cells)
        and not any(cell.text and _LISTS.search(cell.text) for cell in cells)
        for cells in several
    )


_Draw: TypeAlias = list[ScoredText] | ScoredText | None
"""Objects that are kept as written, a text that is read as a reply, or a failed call."""


@dataclass(frozen=True)
class _Form:
    """How the cells of a file are read. scores: whether scores are.

    together: whether each cell is an object, of the draw that its row names. Unless that was typed (`is_typed`), a lone
    cell with a list in it is none.
    many: whether the column's name is a plural, such as "outputs", so that a list holds draws. Else it is one reply.
    as_written: whether lists are of objects that are kept as written. Else they are if they have scores.
    pairs: which lists of two are an object with its score; see `Scoring`.
    """

    together: bool
    is_typed: bool
    many: bool
    as_written: bool
    pairs: ScoredPairs
    scores: bool = True

    @classmethod
    def of(cls, kind: str, columns: Mapping[str, str], queries: Sequence[Sequence[_Cell]], *, is_typed: bool) -> _Form:
        """Return the form of a file. kind: what was typed, else what the column of answers is known as."""
        cells = [cell for own in queries for cell in own]
        column = folded(columns["completions" if kind == "completions" else "answers"])
        each = kind == "answers" and not is_typed and (column in A_ROW_EACH or _name_one_each(queries))
        return cls(
            together=kind == "object" or each,
            is_typed=is_typed,
            many=kind == "completions" and column[-1:] == "s",
            as_written=kind != "completions",
            pairs=ScoredPairs.of(
                (cell.value for cell in cells), any(value_of(cell.score) is not None for cell in cells)
            ),
        )

    def draws(self, cells: Sequence[_Cell], relation: Relation) -> Iterator[_Draw]:
        """Yield the draws in the cells of a query. ValueError, with the row, for a score that cannot be read."""
        if self.together and (self.is_typed or len(cells) > 1 or not _LISTS.search(cells[0].text or "")):
            for own in grouped((cell.draw, cell) for cell in cells).values():
                yield self._together(own, relation)
            return
        for cell in cells:
            value, found = cell.value, self._objects(cell, cell.value, relation)
            inner = found if isinstance(value, list) and isinstance(found, list) else []
            many = self.many and not any(isinstance(one, list | tuple) for one in value or ())
            several = inner and (many or any(isinstance(one, list) for one in inner))
            for own, objects in zip(value, inner, strict=True) if several else [(value, found)]:
                yield self._draw(own, objects, relation)

    def _objects(self, cell: _Cell, value: Any, relation: Relation) -> Any:
        """Return a value of a cell with its scores; see `Scoring`."""
        inside = self.as_written or not relation.has_values()
        scoring = Scoring(relation, inside=inside, scores=self.scores, pairs=self.pairs)
        try:
            return scoring.objects(value, score_of(cell.score) if self.scores else None)
        except ValueError as error:
            raise ValueError(f"{cell.place}: {error}") from None

    def _together(self, cells: Sequence[_Cell], relation: Relation) -> _Draw:
        """Return the objects of a draw; without any, a blank text, or None for a failed call."""
        given = [
            one._replace(id=cell.id or one.id)
            for cell in cells
            if cell.value is not None
            for one in self._objects(cell, cell.value if isinstance(cell.value, list) else [cell.text], relation)
            if isinstance(one, ScoredText)
        ]
        named = [one for one in given if one.name]
        return _unless_alone(named, relation) if named else next(iter(given), None)

    def _draw(self, value: Any, found: Any, relation: Relation) -> _Draw:
        """Return a draw: objects if it is a list of them, else a text."""
        if value is None:
            return None
        if isinstance(found, ScoredText) and (found.score is not None or not isinstance(value, dict)):
            return found
        objects = [one for one in found if one is not None] if isinstance(found, list) else [value]
        is_scored = any(isinstance(one, ScoredText) and one.score is not None for one in objects)
        if not (is_scored or self.as_written) or not all(isinstance(one, ScoredText) for one in objects):
            return ScoredText(json.dumps(value, ensure_ascii=False, default=str, skipkeys=True))
        return _unless_alone(objects, relation)


def _unless_alone(objects: list[ScoredText], relation: Relation) -> _Draw:
    """Return objects; a lone one that is a sentence, or says of itself that it is none, as a text."""
    alone = objects[0].name if len(objects) == 1 else ""
    is_sentence = " " in alone and alone.endswith(".") and not is_abbreviation(alone)
    is_text = alone and (_is_none(alone, relation) or is_refusal(alone) or is_sentence)
    return objects[0] if is_text else objects


def _rows(made: Mapping[tuple[str | None, ...], Sequence[_Cell]], form: _Form, space: Workspace) -> bytes:
    """Return the lines of a file of completions and candidates. made: (subject, id, relation, model) -> cells."""
    names = ("SubjectEntity", "SubjectEntityID", "Relation", "model")
    return b"".join(
        msgspec.json.encode({name: value for name, value in zip(names, key, strict=True) if value} | answer) + b"\n"
        for key, cells in made.items()
        for relation in [space.relation(str(key[2]))]
        for answer in _answers([*form.draws(cells, relation)], relation)
    )


def _answers(draws: Sequence[_Draw], relation: Relation) -> Iterator[dict[str, Any]]:
    """Yield the draws of a query as fields of rows: texts with their scores as completions, objects as candidates."""
    if texts := [draw for draw in draws if not isinstance(draw, list)]:
        yield {"completions": [text and text.name for text in texts], "scores": [text and text.score for text in texts]}
    for place, objects in enumerate((draw for draw in draws if isinstance(draw, list)), len(texts)):
        nothing = ScoredText("", objects[0].score if objects else None)
        found = [one for one in objects if not _is_none(one.name, relation)] or [nothing]
        rows = (
            {"object": name, "score": 1.0 if score is None else score, "id": qid or as_qid(name)}
            for name, score, qid in found
        )
        is_stated = len(draws) < 2 and nothing.score is not None  # a confidence, and no share of one draw
        yield {"candidates": [row | ({} if is_stated else {"source": str(place)}) for row in rows]}


def _is_none(name: str, relation: Relation) -> bool:
    return is_abstention(name, relation) or names_nothing(name)
