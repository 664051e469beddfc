"""Recorded answers of a user's own script, whatever their columns are called: written as a file of completions.

The names of columns are data (`COLUMNS`); `--from FILE:subject=name,answers=found` says others. A list is an answer
that names its items, and a list of lists holds one answer a draw. Rows of a query are draws, or they name one object
each: by the column's name, by `object=COLUMN`, or since no query has a name twice. Objects in a list or in cells of
their own are kept as written; other texts are read as replies are.
"""

from __future__ import annotations

import ast
import json
import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lmkbc.answer.abstain import is_abstention, is_refusal
from lmkbc.answer.clean import is_abbreviation
from lmkbc.edition import Edition
from lmkbc.errors import UNDECODABLE, InputError, counted, did_you_mean
from lmkbc.files.atomic import write_bytes
from lmkbc.files.checksum import sha256
from lmkbc.files.fact_rows import names_nothing
from lmkbc.files.jsonl import numbered
from lmkbc.files.places import cache_dir
from lmkbc.files.tables import InputTable
from lmkbc.names import as_qid
from lmkbc.relation import Relation
from lmkbc.types import grouped
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
    "score": "score confidence probability prob",
    "draw": "draw sample sampleid drawid run iteration trial",
    "object_id": "objectid objectentityid objectqid",
}
"""Content of a column -> its usual names, the likeliest first, in lower case and without blanks and signs."""

ANSWERS = ("answers", "completions")
_NAMES = ("object", "name", "label", "answer", "value", "text", "entity")
"""Keys of an object's name in a list of objects with scores."""
A_ROW_EACH = ("object", "obj", "tail", "objectname", "objectlabel")
"""Names of columns with one object: the rows of a query name its objects together."""

LACKING = ("nan", "NaN", "<NA>")
"""Cells with which tables of pandas say that there is no answer."""

_LISTS = re.compile(r"[;\[\n]")
"""Signs of several objects in a cell."""

_QIDS, _ONLY_QIDS = re.compile(r"Q[1-9]\d*"), re.compile(r"Q[1-9]\d*(?:[;,|\s]+Q[1-9]\d*)*")
_AN_ARRAY = re.compile(r"""((?<=[\[\s])(?:'[^'\n]*'|"[^"\n]*"))\s+(?=['"])""")
"""A text and the blank behind it, in an array as NumPy shows one: ['France' 'Spain']."""

_MAPPING = re.compile(r"(.+?):((?:\w+=[^,=]+)(?:,\w+=[^,=]+)*)")

SOURCE = "source"
"""File beside answers in the cache, with the path of the user's file that they were made from."""

log = logging.getLogger(__name__)


def given_as(path: Path) -> Path:
    """Return the user's own file that a recorded file was made from; else the file itself."""
    source = path.parent / SOURCE
    return Path(source.read_text("utf-8")) if source.is_relative_to(cache_dir()) and source.is_file() else path


def as_recorded(given: Sequence[Path | str], space: Workspace, edition: Edition) -> tuple[Path, ...]:
    """Return the recorded files, those of scripts as completions in the user's cache.

    Raise InputError for a file whose columns are unknown, with those that it has.
    """
    return tuple(_as_recorded(Path(path), space, edition) for path in given)


def _as_recorded(given: Path, space: Workspace, edition: Edition) -> Path:
    named = None if given.exists() else _MAPPING.fullmatch(str(given))
    path = Path(named[1]) if named else given
    mapping = dict(pair.split("=") for pair in named[2].split(",")) if named else {}
    together = "object" in mapping
    mapping = {"answers" if what == "object" else what: column for what, column in mapping.items()}
    if unknown := mapping.keys() - COLUMNS.keys():
        raise InputError(f"--from {given}: {min(unknown)!r} is none of {', '.join(COLUMNS)}, object")
    if not path.is_file() or not (mapping or _is_foreign(path)):
        return path
    rows = [*InputTable(path, (), 0, keeps_more=True).rows()]
    columns = _columns(path, [*rows[0].more] if rows else [], mapping, alone=len(edition.relations) == 1)
    kind, made = ANSWERS["answers" not in columns], defaultdict[tuple[str | None, ...], list[_Cell]](list)
    for row in rows:
        text = {"relation": edition.relations[0]} | {what: row.more.get(name) for what, name in columns.items()}
        relation = edition.spelt(called := text["relation"] or "")
        if not (relation and text["subject"]):
            hint = f"{called!r} is no relation of edition {edition.name}; {did_you_mean(called, edition.relations)}"
            raise InputError(f"{row.place}: {'it names no subject' if relation else hint}")
        made[text["subject"], as_qid(text.get("id") or ""), relation, text.get("model")].append(
            _Cell(text[kind], text.get("score") or "", text.get("draw"), as_qid(text.get("object_id") or ""))
        )
    names = ("SubjectEntity", "SubjectEntityID", "Relation", "model")
    column = _folded(columns[kind])
    together = kind == "answers" and (together or column in A_ROW_EACH or _name_one_each(made.values()))
    many = kind == "completions" and column[-1:] == "s"
    if "score" in columns and not (together and all(cell.is_scored for cells in made.values() for cell in cells)):
        why = "it holds more than numbers from 0 to 1" if together else "a row holds more than one object"
        log.warning("%s: the column %s is not read, since %s", path, columns.pop("score"), why)
        for key, cells in made.items():
            made[key] = [cell._replace(score="") for cell in cells]
    content = b"".join(
        msgspec.json.encode({name: value for name, value in zip(names, key, strict=True) if value} | answer) + b"\n"
        for key, cells in made.items()
        for answer in _answers(
            _draws(cells, together=together, many=many), space.relation(str(key[2])), as_written=kind == "answers"
        )
    )
    target = cache_dir() / "answers" / sha256(content)[:16] / f"{path.name.partition('.')[0]}.jsonl"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, content)
    write_bytes(target.parent / SOURCE, str(path).encode())
    read = ",".join(f"{'object' if together and what == kind else what}={name}" for what, name in columns.items())
    log.info("%s is read as --from %s:%s (%s)", path, path, read, counted(len(made), "query", "queries"))
    return target


def _is_foreign(path: Path) -> bool:
    """Return whether a file is not of the project's own formats."""
    try:
        first = msgspec.json.decode(next((line for _, line in numbered(path)), b"{}"), type=dict[str, Any])
    except (InputError, *UNDECODABLE):
        return True
    own = {"SubjectEntity", "Relation"} <= first.keys()
    return not own or bool(not {"completions", "candidates"} & first.keys() and _found([*first], ANSWERS))


class _Object(NamedTuple):
    """An object that is kept as written, with its score and its QID."""

    name: str
    score: float = 1.0
    id: str | None = None


class _Cell(NamedTuple):
    """The answer in a row: its text, its score and QID as an object, and its draw; blank or None where not given."""

    text: str | None
    score: str
    draw: str | None
    id: str | None

    @property
    def is_scored(self) -> bool:
        """Return whether the score is a number from 0 to 1, or missing."""
        return self.score in ("", *LACKING) or _is_share(self.score)

    @property
    def scored(self) -> _Object:
        """Return the object with its score."""
        return _Object(self.text or "", 1.0 if self.score in ("", *LACKING) else float(self.score), self.id)


def _name_one_each(queries: Iterable[Sequence[_Cell]]) -> bool:
    """Return whether rows of a query name one object each: draws would repeat a name, or hold lists."""
    several = [cells for cells in queries if len(cells) > 1]
    return bool(several) and all(
        len({(cell.text, cell.draw) for cell in cells}) == len(cells)
        and not any(cell.text and _LISTS.search(cell.text) for cell in cells)
        for cells in several
    )


def _is_share(text: str) -> bool:
    with suppress(ValueError):
        return 0 <= float(text) <= 1
    return False


def _folded(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _found(names: Sequence[str], wanted: Sequence[str]) -> dict[str, str]:
    """Return what is wanted and there -> the likeliest of the columns for it."""
    here = {_folded(name): name for name in reversed(names)}
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
            f"{path} has the columns {', '.join(names)[:500] or 'none'}, and none of them is known as "
            f"{' or '.join(wanted)}: name it, as in --from {path}:{','.join(f'{what}=COLUMN' for what in wanted)} "
            "(docs/files.md, 'Answers of a script', lists the known names)"
        )
    return found


def _draws(cells: Sequence[_Cell], *, together: bool, many: bool) -> list[Any]:
    """Return the draws in the cells of a query: of JSON or of Python, where they are lists.

    together: whether each cell is an object, of the draw that its row names. A lone cell with a list in it is none.
    many: whether the column's name is a plural, such as "outputs", so that a list holds draws. Else it is one reply.
    """
    if together and not (len(cells) == 1 and _LISTS.search(cells[0].text or "")):
        return [_draw(own) for own in grouped((cell.draw, cell) for cell in cells).values()]
    draws: list[Any] = []
    for text in (cell.text for cell in cells):
        value: Any = None if text in LACKING else _QIDS.findall(text) if text and _ONLY_QIDS.fullmatch(text) else text
        for read in (json.loads, ast.literal_eval) if text and text.lstrip()[:1] in ("[", "{") else ():
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                value = read(_AN_ARRAY.sub(r"\1, ", text or ""))
                break
        several = isinstance(value, list) and (many or any(isinstance(one, list) for one in value))
        draws += value if several else [value]
    return draws


def _draw(cells: Sequence[_Cell]) -> list[_Object] | str | None:
    """Return the objects of a draw; without any, a blank text, or None for a failed call."""
    if names := [cell.scored for cell in cells if cell.text and cell.text not in LACKING]:
        return names
    return next((cell.text for cell in cells if cell.text not in (None, *LACKING)), None)


def _answers(draws: Sequence[Any], relation: Relation, *, as_written: bool) -> Iterator[dict[str, Any]]:
    """Yield the draws of a query as fields of rows: lists of objects as candidates, if they are as written.

    Other draws are texts, and so is a lone object that says of itself that it is none.
    """
    read = [(draw, _objects(draw, relation) if as_written else None) for draw in draws]
    if texts := [draw for draw, objects in read if objects is None]:
        lone = (_scored(one[0]) if isinstance(one, list) and len(one) == 1 else None for one in texts)
        bare = (alone[0] if alone else one for alone, one in zip(lone, texts, strict=True))
        replies = (one if one is None or isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in bare)
        yield {"completions": [*replies]}
    for place, objects in enumerate((objects for _, objects in read if objects is not None), len(texts)):
        found = [one for one in objects if not _is_none(one.name, relation)] or [_Object("")]
        rows = ({"object": one.name, "score": one.score, "id": one.id or as_qid(one.name)} for one in found)
        yield {"candidates": [row | {"source": str(place)} for row in rows]}


def _objects(draw: Any, relation: Relation) -> list[_Object] | None:
    """Return the objects of a draw that is a list of them, with their scores; None for a text and the like."""
    items = [{"object": name, "score": score} for name, score in draw.items()] if isinstance(draw, dict) else draw
    if not isinstance(items, list):
        return None
    given = [item for item in items if item is not None]
    objects = [one for one in map(_scored, given) if one]
    if len(objects) < len(given):
        return None
    alone = objects[0].name if len(objects) == 1 else ""
    is_sentence = " " in alone and alone.endswith(".") and not is_abbreviation(alone)
    is_text = _is_none(alone, relation) or is_refusal(alone) or is_sentence
    return None if alone and is_text else objects


def _scored(item: Any) -> _Object | None:
    """Return the object of a text, of a number, or of a name with a score; None for other items."""
    if isinstance(item, _Object):
        return item
    if not isinstance(item, dict):
        return None if isinstance(item, list | bool) else _Object(str(item))
    score = next((item[key] for key in COLUMNS["score"].split() if key in item), None)
    name = next((item[key] for key in _NAMES if key in item), None)
    if not (isinstance(name, str) and isinstance(score, int | float) and 0 <= score <= 1):
        return None
    return _Object(name, score, as_qid(str(item.get("id") or item.get("qid") or "")))


def _is_none(name: str, relation: Relation) -> bool:
    return is_abstention(name, relation) or names_nothing(name)
