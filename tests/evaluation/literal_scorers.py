"""A second, slow and literal reading of the official scoring rules, to hold the fast one against.

Each function follows the published procedure step by step: nothing is shared with `lmkbc.scoring.table`.
"""

import json
import string
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

NUMERIC = {"hasArea", "hasCapacity"}
APOSTROPHES = "'\u2019\u2018\u02bb\u02bc\u02b9`\u00b4"


def clean_2022(text: Any) -> str | None:
    if not text:
        return None
    for mark in string.punctuation:
        text = text.replace(mark, "")
    cleaned: str = text.lower().strip()
    return cleaned


def row_2022(predicted: Any, gold: list[list[str]], relation: str) -> tuple[float, float]:
    """An answer that is empty as written and one that is empty once cleaned are two in the published script."""
    names = [[clean_2022(name) for name in aliases] for aliases in gold]
    answers = set()
    for text in predicted:
        answers.add(clean_2022(text))
    found = 0
    for aliases in names:
        hit = False
        for answer in answers:
            if answer in aliases:
                hit = True
        if hit:
            found += 1
    recall = found / len(names) if names else 1.0
    if len(answers) == 0 or (len(answers) == 1 and next(iter(answers)) in [None, "", "none", "null"]):
        return 1.0, recall
    return (min(found / len(answers), 1.0) if names else 0.0), recall


def hits_2023(predicted: Any, gold: list[str]) -> int:
    found = 0
    for answer in predicted:
        if answer in gold:
            found += 1
    return found


def row_2023(predicted: Any, gold: list[str], relation: str) -> tuple[float, float]:
    """The published script counts the hits anew for precision and for recall; a type error in either makes it 0."""
    try:
        precision = min(hits_2023(predicted, gold) / len(predicted), 1.0) if len(predicted) > 0 else 1.0
    except TypeError:
        precision = 0.0
    try:
        if len(gold) == 0 or gold == [""]:
            return precision, 1.0
        return precision, hits_2023(predicted, gold) / len(gold)
    except TypeError:
        return precision, 0.0


def row_2024(predicted: Any, gold: list[str], relation: str) -> tuple[float, float]:
    """The published script counts the hits anew for precision and for recall."""
    answers, truth = list(set(predicted)), list(set(gold))
    precision = min(hits_2023(answers, truth) / len(answers), 1.0) if answers else 1.0
    recall = min(hits_2023(answers, truth) / len(truth), 1.0) if truth else 1.0
    return precision, recall


def read_number(text: Any) -> float | None:
    try:
        return float(text.replace(",", "").strip())
    except (ValueError, AttributeError):
        return None


def row_2025(predicted: Any, gold: list[str], relation: str) -> tuple[float, float]:
    answers, truth = list(set(predicted)), list(set(gold))
    found = 0
    for answer in answers:
        if relation in NUMERIC:
            value = read_number(answer)
            for other in truth:
                target = read_number(other)
                if value is not None and target is not None and abs(value - target) / target <= 0.05:
                    found += 1
                    break
        elif answer.strip() in truth:
            found += 1
    return (found / len(answers) if answers else 1.0), (found / len(truth) if truth else 1.0)


def clean_2026(text: str) -> str:
    text = "".join(char for char in text.strip() if char not in APOSTROPHES)
    text = unicodedata.normalize("NFKD", text).casefold()
    kept = ""
    for char in text:
        if char in APOSTROPHES or unicodedata.combining(char):
            continue
        if char in "+$<=>|~^" or unicodedata.category(char).startswith("P"):
            kept += " "
        else:
            kept += char
    return " ".join(kept.split())


def row_2026(predicted: Any, gold: list[Any], relation: str) -> tuple[float, float]:
    truth = [[item] if isinstance(item, str) else item for item in gold]
    answers: list[str] = []
    seen = []
    for item in predicted:
        text = item[0] if isinstance(item, list) and item else item
        if isinstance(text, str) and clean_2026(text) not in seen:
            seen.append(clean_2026(text))
            answers.append(text)
    found = count_numbers(answers, truth) if relation in NUMERIC else count_names(seen, truth)
    return (found / len(answers) if answers else 1.0), (found / len(truth) if truth else 1.0)


def count_numbers(answers: list[str], truth: list[list[str]]) -> int:
    taken: list[int] = []
    for answer in answers:
        value = read_number(answer)
        for index, aliases in enumerate(truth):
            target = read_number(aliases[0]) if aliases else None
            if value is None or target is None or target == 0 or index in taken:
                continue
            if abs(value - target) / target <= 0.05:
                taken.append(index)
                break
    return len(taken)


def count_names(keys: list[str], truth: list[list[str]]) -> int:
    """Maximum matching by trying augmenting paths from every answer."""
    names = [{clean_2026(alias) for alias in aliases} for aliases in truth]
    owner: dict[int, int] = {}

    def place(answer: int, visited: list[int]) -> bool:
        for index in range(len(names)):
            if keys[answer] in names[index] and index not in visited:
                visited.append(index)
                if index not in owner or place(owner[index], visited):
                    owner[index] = answer
                    return True
        return False

    for answer in range(len(keys)):
        place(answer, [])
    return len(owner)


ROWS: dict[str, Callable[..., tuple[float, float]]] = {
    "2022": row_2022,
    "2023": row_2023,
    "2024": row_2024,
    "2025": row_2025,
    "2026": row_2026,
}
BY_RELATION = {"2022", "2023"}
COLUMNS = {"2023": "ObjectEntitiesID", "2024": "ObjectEntitiesID"}


def harmonic(precision: float, recall: float) -> float:
    try:
        return 2 * precision * recall / (precision + recall)
    except ZeroDivisionError:
        return 0.0


def statistics(results: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The passes that the scripts from 2024 on make for micro averages and for counts of predictions."""
    micro: dict[str, dict[str, float]] = {}
    for row in results:
        if row["r"] not in micro:
            micro[row["r"]] = {"tp": 0, "predicted": 0, "gold": 0}
        micro[row["r"]]["tp"] += row["tp"]
        micro[row["r"]]["predicted"] += row["predicted"]
        micro[row["r"]]["gold"] += row["gold"]
    counts: dict[str, dict[str, float]] = {}
    for row in results:
        if row["r"] not in counts:
            counts[row["r"]] = {"rows": 0, "predicted": 0, "empty": 0}
        counts[row["r"]]["rows"] += 1
        counts[row["r"]]["predicted"] += row["predicted"]
        if row["predicted"] == 0:
            counts[row["r"]]["empty"] += 1
    return micro | counts


def macro_f1(edition: str, predictions: Path, gold: Path) -> float:
    """The figure that the edition ranks by, from two files."""
    column = COLUMNS.get(edition, "ObjectEntities")
    tables = []
    for path in (predictions, gold):
        with path.open() as file:
            rows = [json.loads(line) for line in file]
        tables.append({(row["SubjectEntity"], row["Relation"]): row[column] for row in rows})
    results: list[dict[str, Any]] = []
    for subject, relation in tables[1]:
        precision, recall = ROWS[edition](
            tables[0].get((subject, relation), []), tables[1][subject, relation], relation
        )
        predicted, gold_objects = tables[0].get((subject, relation), []), tables[1][subject, relation]
        results.append(
            {
                "s": subject,
                "r": relation,
                "p": precision,
                "recall": recall,
                "f1": harmonic(precision, recall),
                "tp": round(recall * len(gold_objects)),
                "predicted": len(predicted),
                "gold": len(gold_objects),
            }
        )
    results.sort(key=lambda row: (row["r"], row["s"]))
    by_relation: dict[str, list[dict[str, float]]] = {}
    for row in results:
        by_relation.setdefault(row["r"], []).append({"p": row["p"], "recall": row["recall"], "f1": row["f1"]})
    if edition not in BY_RELATION:
        statistics(results)
        return float(sum(row["f1"] for row in results) / len(results))
    return sum(sum(row["f1"] for row in rows) / len(rows) for rows in by_relation.values()) / len(by_relation)
