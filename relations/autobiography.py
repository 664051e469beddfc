"""Books in which people tell their own life. Tricky: titles hold commas and "and"; novels and biographies creep in."""

from lmkbc import EntityType, Relation, Shape

RELATION = Relation(
    name="autobiography",
    names=("PersonHasAutobiography",),
    property="P800",
    subject_type=EntityType("person", "Q5"),
    object_type=EntityType("autobiography", "Q4184"),
    kind="entity",
    may_be_empty=False,
    definition="Every autobiography, memoir or published diary that the person wrote, alone or with a co-author, by "
    "its full title. Biographies by others and works of fiction do not count.",
    clozes=(
        "{subject} is the author of the autobiography {mask}.",
        "The memoir of {subject} is called {mask}.",
        "The title of the autobiography of {subject} is {mask}.",
    ),
    question="What is the title of the autobiography of {subject}?",
    triple="has the autobiography",
    statement="{object} is an autobiography or memoir by {subject}.",
    distinct_values=True,  # of books with one subject; Wikidata has no such constraint on all notable works
    cardinality={"2023": (1, 2)},
    shape=Shape(
        separators=(";", "\n"),
        conjunction=False,
        stop=frozenset("autobiography memoir memoirs diary biography book novel title author yes true".split())
        | {"no known autobiography", "the autobiography", "the book"},
    ),
)
