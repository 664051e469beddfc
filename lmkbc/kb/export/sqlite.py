"""Facts as a database of SQLite, as Datasette shows it: facts, entities, evidence and reviews, with full-text search.

`facts.key` names a statement as its node in RDF does. Searches: `SELECT * FROM entities_fts WHERE entities_fts MATCH
'georgia'`; `rowid` is that of the table whose name stands before `_fts`.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from lmkbc.files.atomic import writing
from lmkbc.files.writable import check_new
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.export.exporter import Exporter, ExportSettings
from lmkbc.kb.export.left_out import ExportTally
from lmkbc.kb.export.ntriples import fact_key
from lmkbc.kb.export.typed_facts import typed

SCHEMA = """
CREATE TABLE relations (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, property TEXT NOT NULL, kind TEXT NOT NULL, definition TEXT
);
CREATE TABLE entities (id INTEGER PRIMARY KEY, node TEXT NOT NULL UNIQUE, qid TEXT, name TEXT NOT NULL);
CREATE TABLE facts (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL, subject_row INTEGER NOT NULL,
  subject_id INTEGER NOT NULL REFERENCES entities(id),
  relation_id INTEGER NOT NULL REFERENCES relations(id), object_id INTEGER REFERENCES entities(id),
  subject TEXT NOT NULL, object TEXT NOT NULL, value TEXT, datatype TEXT, language TEXT, unit TEXT, unit_id TEXT,
  precision TEXT, approximate INTEGER, confidence REAL NOT NULL
);
CREATE TABLE evidence (
  id INTEGER PRIMARY KEY, fact_id INTEGER NOT NULL REFERENCES facts(id), kind TEXT NOT NULL, text TEXT NOT NULL
);
CREATE TABLE own_columns (
  id INTEGER PRIMARY KEY, subject_row INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL
);
CREATE TABLE reviews (
  id INTEGER PRIMARY KEY, fact_id INTEGER NOT NULL REFERENCES facts(id), fact_key TEXT NOT NULL, verdict TEXT NOT NULL,
  value TEXT, source_address TEXT, quote TEXT, reviewer TEXT, date TEXT
);
"""
"""Tables.

evidence.kind: "model", "draw" of a model, "stated_by" a split whose rows state the fact, or "reply" of a model about
the question. "quote" and "source" are what supports the fact, and its address, item or file. reviews: the decisions
that facts are right; wrong ones are no facts. own_columns: of the user's file of subjects; see `facts.subject_row`.
"""
INDEXED = "CREATE INDEX facts_question ON facts(subject_row, relation_id)"
INDEXES = """
CREATE INDEX entities_name ON entities(name);
CREATE INDEX facts_key ON facts(key);
CREATE INDEX facts_subject ON facts(subject_id);
CREATE INDEX facts_object ON facts(object_id);
CREATE INDEX facts_relation ON facts(relation_id, confidence);
CREATE INDEX evidence_fact ON evidence(fact_id);
CREATE INDEX reviews_fact ON reviews(fact_id);
CREATE INDEX own_columns_subject ON own_columns(subject_row);
CREATE VIRTUAL TABLE entities_fts USING fts5(name, content='entities', content_rowid='id');
CREATE VIRTUAL TABLE facts_fts USING fts5(subject, object, value, content='facts', content_rowid='id');
CREATE VIRTUAL TABLE evidence_fts USING fts5(text, content='evidence', content_rowid='id');
INSERT INTO entities_fts(entities_fts) VALUES ('rebuild');
INSERT INTO facts_fts(facts_fts) VALUES ('rebuild');
INSERT INTO evidence_fts(evidence_fts) VALUES ('rebuild');
"""


ENTITY = "INSERT INTO entities (node, qid, name) VALUES (?, ?, ?) ON CONFLICT (node) DO NOTHING"
FACT = """
INSERT INTO facts VALUES (
  NULL, ?, ?, (SELECT id FROM entities WHERE node = ?), (SELECT id FROM relations WHERE name = ?),
  (SELECT id FROM entities WHERE node = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
)
"""
REVIEW = "INSERT INTO reviews VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)"
OWN = "INSERT INTO own_columns VALUES (NULL, ?, ?, ?)"
REPLY = """
INSERT INTO evidence (fact_id, kind, text) SELECT id, 'reply', ? FROM facts
WHERE subject_row = ? AND relation_id = (SELECT id FROM relations WHERE name = ?)
"""


class SqliteExporter(Exporter):
    """A format of one database."""

    def write(self, base: Knowledge, out: Path, tally: ExportTally, settings: ExportSettings) -> int:  # noqa: ARG002
        """Write the facts of a base, and return their number. InputError if the file is there."""
        check_new(out)
        with writing(out, new=True) as file, closing(sqlite3.connect(file.name)) as db:
            try:
                _fill(db, base, tally)
            except sqlite3.Error as error:
                raise OSError(str(error)) from error
        return tally.facts


def _fill(db: sqlite3.Connection, base: Knowledge, tally: ExportTally) -> None:
    """Write all tables. Only the pages that SQLite caches are in memory."""
    db.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {SCHEMA}")
    about = [(name, one.property, one.kind, one.definition) for name, one in base.relations.items()]
    db.executemany("INSERT INTO relations (name, property, kind, definition) VALUES (?, ?, ?, ?)", about)
    for fact, row, key in tally.written(base.facts(), lambda fact: (fact, typed(fact), fact_key(fact))):
        things = [fact.subject_node] if row.object_node is None else [fact.subject_node, fact.object_node]
        db.executemany(ENTITY, [(thing.node, thing.id, thing.name) for thing in things])
        ends = row.subject_node, row.relation, row.object_node, row.subject, row.object
        values = row.value, row.datatype, row.language, row.unit, row.unit_id, row.precision, row.approximate
        number = db.execute(FACT, (key, fact.subject_row, *ends, *values, row.confidence)).lastrowid
        evidence = [("model", model) for model in row.model.split("; ")] + [("draw", one) for one in fact.sources]
        evidence += [("stated_by", split) for split in fact.stated_by or ()]
        evidence += [("quote", fact.quote or ""), ("source", fact.source or fact.quote_file or "")]
        rows = ((number, kind, text) for kind, text in evidence if text)
        db.executemany("INSERT INTO evidence (fact_id, kind, text) VALUES (?, ?, ?)", rows)
        if fact.reviewed_by:
            decided = number, key, "right", row.value, fact.source, fact.quote, fact.reviewed_by, fact.reviewed_on
            db.execute(REVIEW, decided)
    for own in base.own_columns():
        db.executemany(OWN, own.select("subject_row", "column", "value").iter_rows())
    db.execute(INDEXED)
    for part in base.reply_parts():
        for subject_row, relation, _, texts in part.iter_rows():
            db.executemany(REPLY, [(text, subject_row, relation) for text in texts if text])
    db.commit()
    db.executescript(INDEXES)


SQLITE = SqliteExporter(counted="")
