from lmkbc import Relation
from lmkbc.link.train_objects import TrainObjects
from lmkbc.testing import Example, GoldObject, Query


def ids(found: tuple[str, tuple]) -> tuple[str, list[str]]:
    return found[0], [hit.id for hit in found[1]]


def test_same_relation_wins_and_every_spelling_counts(examples: list[Example], relations: dict[str, Relation]) -> None:
    train = TrainObjects(examples, relations)
    assert ids(train.exact("INN", Query("Rosenheim", "Rivers"))) == ("relation", ["Q14369"])
    assert ids(train.exact("Electric Guitar", Query("Prince", "instruments"))) == ("relation", ["Q6607"])


def test_subjects_and_objects_of_fitting_type_come_second(examples, relations) -> None:
    train = TrainObjects(examples, relations)
    assert ids(train.exact("Brian May", Query("Anita Dobson", "spouses"))) == ("type", ["Q15873"])
    assert ids(train.exact("Passau", Query("Anita Dobson", "spouses"))) == ("", [])


def test_a_querys_own_row_is_never_seen(examples, relations) -> None:
    train = TrainObjects(examples, relations)
    assert ids(train.exact("Ufa", Query("Ufa", "rivers", "Q911"))) == ("", [])
    assert ids(train.exact("Ufa", Query("Bashkortostan's capital", "Rivers", "Q911"))) == ("", [])
    assert ids(train.exact("Inn", Query("Passau", "rivers", "Q4190"))) == ("relation", ["Q14369"])
    assert train.fuzzy("Danubee", Query("Passau", "rivers", "Q4190")) == ()


def test_most_rows_win_then_the_spelling(relations) -> None:
    rows = [
        Example(Query("a", "rivers"), (GoldObject(("Lez",), "Q1"),)),
        Example(Query("b", "rivers"), (GoldObject(("LEZ",), "Q2"),)),
        Example(Query("c", "rivers"), (GoldObject(("Po",), "Q3"),)),
        Example(Query("d", "rivers"), (GoldObject(("Po",), "Q4"),)),
        Example(Query("e", "rivers"), (GoldObject(("Po",), "Q4"),)),
    ]
    train = TrainObjects(rows, relations)
    assert ids(train.exact("LEZ", Query("x", "rivers")))[1] == ["Q2", "Q1"]
    assert ids(train.exact("Po", Query("x", "rivers")))[1] == ["Q4", "Q3"]


def test_fuzzy_stays_within_the_relation(examples, relations) -> None:
    train = TrainObjects(examples, relations)
    assert [hit.id for hit in train.fuzzy("Danuube", Query("Ulm", "rivers"))] == ["Q1653"]
    assert train.fuzzy("Danuube", Query("Ulm", "instruments")) == ()


def test_ids_for_names_and_literals_are_no_names(relations) -> None:
    rows = [
        Example(Query("a", "rivers"), (GoldObject(("Q5",), "Q5"), GoldObject(("lost",), None))),
        Example(Query("a", "children"), (GoldObject(("5",), "5"),)),
    ]
    train = TrainObjects(rows, relations)
    assert ids(train.exact("Q5", Query("x", "rivers"))) == ("", [])
    assert ids(train.exact("lost", Query("x", "rivers"))) == ("", [])
    assert ids(train.exact("5", Query("x", "children"))) == ("", [])
