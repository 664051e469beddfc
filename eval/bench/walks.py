"""Two walks from a list of subjects to what goes out, each command a process: refusals, and what should not be there.

`editor` builds a base of 30 items whose model is sometimes wrong, compares it with a stand-in of Wikidata, has a person
review a sample, and exports QuickStatements. `domain` makes a workspace with five kinds of objects, builds, corrects,
adds subjects and a relation, tunes, builds with a second model, and writes every export.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from loopback import Body, Loopback
from wikidata_server import Amount, NoValue, WikidataServer, item

from eval.bench import parsed, parser_of
from eval.bench.figures import Table
from lmkbc.registry import EXPORTS
from lmkbc.workspace import Workspace

PROPERTIES = {
    "CountryBordersCountry": "P47",
    "PersonHasPlaceOfDeath": "P20",
    "PersonHasNumberOfChildren": "P1971",
}
ENVIRONMENT = {"LMKBC_CONTACT": "Ann, ann@example.org"}
Row = tuple[str, ...]
MORE = ("colour", "string")
"""The relation that the own domain adds, and the kind of its objects."""


class Walk:
    """A folder in which commands are typed. refused: commands that ended with status 2, and their errors."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.commands, self.refused = folder, 0, list[str]()

    def types(self, *words: object) -> None:
        """Run a command. RuntimeError if it fails, but for a refusal."""
        self.commands += 1
        command = [sys.executable, "-m", "lmkbc", *map(str, words)]
        done = subprocess.run(
            command, cwd=self.folder, env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=False
        )
        if done.returncode == 2:
            self.refused.append(f"{' '.join(map(str, words))}: {done.stderr.strip().splitlines()[-1]}")
            print(self.refused[-1], flush=True)
        elif done.returncode:
            raise RuntimeError(f"{words}: {done.stderr}")

    def writes(self, name: str, columns: str, rows: Iterable[Row]) -> None:
        """Write a table that a user would have."""
        (self.folder / name).parent.mkdir(exist_ok=True)
        with (self.folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([columns.split(","), *rows])

    def reads(self, name: str) -> list[dict[str, str]]:
        """Return the rows of a CSV file."""
        with (self.folder / name).open(encoding="utf-8", newline="") as file:
            return [*csv.DictReader(file)]

    def judges(self, sample: str, is_right: Callable[[Mapping[str, Any]], bool]) -> set[tuple[str, str, str]]:
        """Give each fact of a sample the label of a person who knows, and return what is wrong."""
        path = self.folder / sample / "labels.jsonl"
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for row in rows:
            row["label"] = "right" if is_right(row) else "wrong"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return {(row["subject"], row["relation"], row["object"]) for row in rows if row["label"] == "wrong"}


def answering(answers: Mapping[tuple[str, str], str]) -> Callable[[Body], str]:
    """Return a model that finds a subject and a word of the relation in the last turn."""

    def answer(body: Body) -> str:
        text = body["messages"][-1]["content"].rpartition("\n\n")[2].lower()
        asked = (
            key
            for key in answers
            if key[0].lower() in text and re.search(rf"\b{key[1]}", text.replace(key[0].lower(), ""))
        )
        return answers.get(next(asked, ("", "")), "None")

    return answer


def editor(walk: Walk, per_relation: int) -> Sequence[object]:
    """Return the figures of the walk of an editor of Wikidata."""
    space = Workspace()
    words = dict(zip(PROPERTIES, ("border", "die", "children"), strict=True))
    rows = [row for row in space.examples(space.edition("mini"), "val") if row.query.relation in PROPERTIES]
    own = [row for name in PROPERTIES for row in [x for x in rows if x.query.relation == name][:per_relation]]
    answers, claims, labels = {}, dict[str, dict[str, list[Any]]](), dict[str, str]()
    truth = dict[tuple[str, str], set[str]]()
    for at, row in enumerate(own):
        query, ids = row.query, [gold.id or gold.name for gold in row.objects]
        qid, name = query.subject_id or "", PROPERTIES[query.relation]
        other = next(x for x in own[at + 1 :] + own if x.query.relation == query.relation and x.names != row.names)
        said = row.names if at % 3 else other.names
        answers[query.subject, words[query.relation]] = ", ".join(said) or "None"
        truth[qid, name] = {*ids}
        labels |= {qid: query.subject} | {
            g.id: g.name for g in (*row.objects, *other.objects) if g.id and g.id[0] == "Q"
        }
        known = ids if at % 2 else []  # of every second one, Wikidata knows nothing
        values: list[Any] = [Amount(f"+{one}") if name == "P1971" else one for one in known] or [NoValue] * (at % 2)
        claims.setdefault(qid, {})[name] = values
    walk.writes("subjects.csv", "name,id,class", ((r.query.subject, r.query.subject_id or "", _class(r)) for r in own))
    items = [item(qid, label, {p: v for p, v in claims.get(qid, {}).items() if v}) for qid, label in labels.items()]
    with Loopback(answering(answers), keep=False) as model, WikidataServer(items) as world:
        where = ("--edition", "mini", "--system", "few-shot", "--base-url", model.url, "--api-url", world.api)
        relations = [word for name in PROPERTIES for word in ("--relation", name)]
        build = ("build", "--subjects", "subjects.csv", "--least", "0", "--untuned", "--model", "m")
        walk.types(*build, "--out", "kb", *where, *relations, "--concurrency", "4")
        walk.types("audit", "kb", "--sample", "30", "--out", "sample")
        wrong = walk.judges("sample", lambda row: _value(row) in truth[row["subject_id"], _property(row, space)])
        walk.types("review", "kb", "sample/labels.jsonl", "--reviewer", "Ann")
        asked = ("--known", "wikidata", "--api-url", world.api)
        walk.types("audit", "kb", *asked, "--out", "new.csv")
        walk.types("export", "kb", "--format", "quickstatements", "--known", "new.csv", "--least", "0", "--out", "out")
        walk.types("export", "kb", "--format", "worklist", "--known", "new.csv", "--least", "0", "--out", "work.csv")
    lines = [line.split("\t") for path in (walk.folder / "out").glob("review-*.txt") for line in path.open()]
    sent = [(cells[0], cells[1], cells[2].split(" /*")[0], "reviewed by Ann" in cells[-1]) for cells in lines]
    unreviewed = sum(not decided for *_, decided in sent)
    against = sum(_known(claims, *one[:3]) or one[2] not in truth[one[0], one[1]] for one in sent)
    return len(own), walk.commands, len(walk.refused), len(wrong), len(sent), unreviewed, against


def _known(claims: Mapping[str, Mapping[str, Sequence[Any]]], subject: str, name: str, value: str) -> bool:
    """Return whether Wikidata has the statement, or another value where there is one at most, or says "no value"."""
    known = claims[subject][name]
    return value in known or NoValue in known or (name != "P47" and bool(known))


def _class(row: Any) -> str:
    return "country" if row.query.relation.startswith("Country") else "person"


def _value(row: Mapping[str, Any]) -> str:
    return str(row["object_id"] or row["literal"] or row["object"])


def _property(row: Mapping[str, Any], space: Workspace) -> str:
    return space.relations[row["relation"]].property


KINDS = {"supplier": "entity", "founded": "date", "output": "number", "motto": "text", "website": "url"}


def domain(walk: Walk, subjects: int, more: int) -> Sequence[object]:
    """Return the figures of the walk of a company with subjects of its own."""
    names = [f"Plant {chr(65 + at)}{at}x" for at in range(subjects + more)]
    forms: dict[str, Callable[[int], str]] = {
        "supplier": lambda at: f"Bolt{at} Ltd, Nut{at} Inc",
        "founded": lambda at: f"{1900 + at}",
        "output": lambda at: f"{1000 + at}",
        "motto": lambda at: f"Onward {at}",
        "website": lambda at: f"https://plant{at}.example.org/",
        "colour": lambda at: ("red", "blue")[at % 2],
    }
    first = {(name, word): form(at + at % 2) for at, name in enumerate(names) for word, form in forms.items()}
    second = {(name, word): form(at + at % 3) for at, name in enumerate(names) for word, form in forms.items()}
    walk.types("init", "factory", *(word for pair in KINDS.items() for word in ("--relation", ":".join(pair))))
    walk.folder /= "factory"
    walk.writes("subjects.csv", "name,region", ((name, f"R{at}") for at, name in enumerate(names[:subjects])))
    walk.writes("more.csv", "name,region", ((name, f"R{at}") for at, name in enumerate(names[subjects:], subjects)))
    walk.writes("data/val.csv", "subject,relation,object", [(f"Works {n}", "founded", f"{1950 + n}") for n in range(6)])
    (walk.folder / "papers").mkdir()
    (walk.folder / "papers" / "history.txt").write_text(f"{names[1]} was founded in {first[names[1], 'founded']}.\n")
    with Loopback(answering(first), keep=False) as model, Loopback(answering(second), keep=False) as other:
        build = ("build", "--out", "kb", "--base-url", model.url, "--model", "first", "--documents", "papers")
        walk.types(*build, "--subjects", "subjects.csv")
        walk.types("audit", "kb", "--sample", "20", "--out", "sample")
        wrong = walk.judges("sample", lambda row: row["object"] in forms[row["relation"]](names.index(row["subject"])))
        walk.types("review", "kb", "sample/labels.jsonl", "--reviewer", "Ann")
        walk.types(*build, "--subjects", "more.csv", "--add")
        walk.types("relations", "new", ":".join(MORE))
        walk.types(*build, "--subjects", "subjects.csv", "--add")
        asked = ("--base-url", model.url, "--model", "first", "--documents", "papers")
        walk.types("tune", "--split", "val", "--trials", "0", *asked)
        walk.types(*build, "--subjects", "more.csv", "--add")
        again = ["build", "--out", "kb2", "--base-url", other.url, "--model", "second", "--documents", "papers"]
        walk.types(*again, "--subjects", "subjects.csv", "--reviews", "kb", "--untuned")
    for base in ("kb", "kb2"):
        for form in EXPORTS:
            known = ("--known", "kb2") if form in ("worklist", "quickstatements", "quickstatements-csv") else ()
            walk.types("export", base, "--format", form, "--least", "0", "--out", f"{base}-{form}", *known)
    tables = [row for base in ("kb", "kb2") for row in walk.reads(f"{base}-csv")]
    back = sum((row["subject"], row["relation"], row["object"]) in wrong for row in tables)
    quoted = sum(bool(row["quote"]) for row in tables)
    return subjects + more, walk.commands, len(walk.refused), len(wrong), len(tables), quoted, back


def main(argv: Sequence[str]) -> None:
    given = parsed(parser_of(__doc__, "editor", "domain", data=False), argv, rows=("editor",))
    for name in given.rows:
        with tempfile.TemporaryDirectory() as folder:
            walk = Walk(Path(folder))
            if name == "editor":
                columns = "subjects", "commands", "refusals", "wrong", "statements", "unreviewed", "contradicting"
                figures = editor(walk, 2 if given.small else 10)
            else:
                columns = "subjects", "commands", "refusals", "wrong", "facts", "quoted", "wrong ones that came back"
                figures = domain(walk, *((3, 1) if given.small else (15, 10)))
            Table("walks", "walk").add(name, dict(zip(columns, map(str, figures), strict=True)))


if __name__ == "__main__":
    main(sys.argv[1:])
