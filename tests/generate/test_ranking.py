"""Closed lists: what is scored, what is taken off it, and that no row is its own evidence."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from opened import asks, part
from prompt_parts import suffix
from space import MINI, RELATIONS, SPACE

from lmkbc.ask.builder import PromptBuilder
from lmkbc.generate.option_ranking import RankingGenerator
from lmkbc.models.base import Prompt
from lmkbc.testing import CandidateSet, Example, Query, State

NAME = "CountryHasOfficialLanguage"
TRAIN = [row for row in SPACE.examples(MINI, "train") if row.query.relation == NAME]
STYLE = {"form": "completion", "block": "{{ subject }}, {{ phrase }}:", "listing": "comma", "null": "none"}


class Fixed:
    """Says of each option what a table says; of what it does not know, that the window has no room for it."""

    def __init__(self, logs: Mapping[str, float], by_subject: Mapping[str, Mapping[str, float]] | None = None) -> None:
        self.logs, self.by_subject = logs, by_subject or {}
        self.asked: list[tuple[str, Sequence[str]]] = []
        self.texts: list[str] = []

    def score(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[list[float]]:
        scores = []
        for prompt, row in zip(prompts, options, strict=True):
            self.asked.append((suffix(prompt), row))
            self.texts.append(prompt.text)
            known = next((logs for subject, logs in self.by_subject.items() if subject in suffix(prompt)), self.logs)
            scores.append([known.get(option, -math.inf) for option in row])
        return scores

    def beginnings(self, _: Prompt, options: Sequence[str]) -> list[str]:
        return [*options]


def generator(scorer: Fixed, train: Sequence[Example] = TRAIN, **how: object) -> RankingGenerator:
    asking = PromptBuilder(MINI, RELATIONS, train, asks({"prompt": STYLE, "shots": {"k": 2}}))
    settings = part("ranking", **{"calibration": "nothing", **how})
    return RankingGenerator(scorer, asking, MINI, RELATIONS, train, settings, "m")  # type: ignore[arg-type]


def shares(found: CandidateSet) -> dict[str, float]:
    return {one.text: one.score for one in found.candidates} | {"": sum(one.score for one in found.nothing)}


LOGS = {"English": -1.0, "French": -2.0, "none": -3.0}


def test_shares_are_a_softmax_over_what_has_a_probability() -> None:
    (found,) = generator(Fixed(LOGS)).generate([Query("Atlantis", NAME)])
    total = sum(np.exp(list(LOGS.values())))
    assert shares(found) == pytest.approx(
        {"English": np.exp(-1) / total, "French": np.exp(-2) / total, "": np.exp(-3) / total}, abs=1e-6
    )
    assert [one.text for one in found.candidates] == ["English", "French"]


def test_what_other_subjects_make_likely_is_taken_off() -> None:
    logs = {"English": -1.0, "French": -1.0, "none": -1.0}
    usual = {row.query.subject: {"English": -1.0, "French": -4.0, "none": -4.0} for row in TRAIN}
    for off, by_subject in (("background", usual), ("neutral", {"the country": usual[TRAIN[0].query.subject]})):
        (found,) = generator(Fixed(logs, by_subject), calibration=off).generate([Query("Atlantis", NAME)])
        assert shares(found)["French"] == pytest.approx(shares(found)["English"] * np.exp(3), rel=1e-4)


def test_a_row_is_not_its_own_evidence() -> None:
    """A name of one row alone is not scored for its own subject, and its subject is no background of its own."""
    row = replace(
        TRAIN[0], objects=tuple(replace(gold, names=("Klingon",), id="Q10134") for gold in TRAIN[0].objects[:1])
    )
    scorer = Fixed(LOGS)
    list(generator(scorer, [row, *TRAIN[1:]], rows=1).generate([row.query, Query("Atlantis", NAME)]))
    (own, other) = (options for _, options in scorer.asked)
    assert "Klingon" not in own
    assert "Klingon" in other
    assert "none" in own
    assert "none" in other


def test_the_most_frequent_objects_are_scored() -> None:
    scorer = Fixed(LOGS)
    list(generator(scorer, max=3).generate([Query("Atlantis", NAME)]))
    ((_, options),) = scorer.asked
    counts = {name: sum(name in row.names for row in TRAIN) for name in {name for row in TRAIN for name in row.names}}
    assert len(options) == 4
    assert min(counts[name] for name in options[1:]) >= sorted(counts.values())[-3]


def test_names_are_scored_up_to_where_they_are_told_apart() -> None:
    class Short(Fixed):
        """Tells names apart by three letters."""

        def beginnings(self, _: Prompt, options: Sequence[str]) -> list[str]:
            return [option[:3] for option in options]

    logs = {"Eng": -1.0, "Fre": -2.0, "non": -3.0}
    for off in ("nothing", "neutral", "background"):
        (whole,) = generator(Fixed(LOGS), calibration=off).generate([Query("Atlantis", NAME)])
        (short,) = generator(Short(logs), calibration=off).generate([Query("Atlantis", NAME)])
        assert shares(short) == shares(whole)


def test_without_train_rows_there_is_no_closed_list() -> None:
    (found,) = generator(Fixed(LOGS), []).generate([Query("Atlantis", NAME)])
    assert (found.candidates, found.nothing, found.draws) == ((), (), ())


@pytest.mark.parametrize("off", ["background", "neutral"])
def test_no_prompt_shows_the_own_row_not_even_of_other_subjects(off: str) -> None:
    for row in TRAIN[:3]:  # two of them are the examples of everybody else
        scorer = Fixed(LOGS)
        list(generator(scorer, calibration=off).generate([row.query]))
        told = [text for text in scorer.texts if f"{row.query.subject}, " in text]
        assert scorer.texts
        assert all(text.count(row.query.subject) == 1 and text == told[0] for text in told), "only as what is asked"


def test_what_is_taken_off_is_asked_for_twice_at_most() -> None:
    """For those that the examples tell of once more, all together: each such prompt shares a beginning with none."""
    scorer = Fixed(LOGS)
    list(generator(scorer, calibration="neutral").generate([row.query for row in TRAIN]))
    assert len(TRAIN) > 4
    assert len(scorer.texts) == len(TRAIN) + 2


def test_a_list_without_probabilities_is_missing_and_so_are_all_where_the_others_fail() -> None:
    """Never an empty answer: a window or a server that had no room for any of it, a call that failed."""
    queries = [Query("Atlantis", NAME), Query("Utopia", NAME)]

    class Failing(Fixed):
        """Fails where a subject is asked about."""

        def __init__(self, lost: str) -> None:
            super().__init__(LOGS, {"Utopia": {}})
            self.lost = lost

        def score(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> Any:
            rows = super().score(prompts, options)
            return [None if self.lost in suffix(one) else row for one, row in zip(prompts, rows, strict=True)]

    (answered, lost) = generator(Failing("nobody")).generate(queries)
    assert (answered.draws, lost.draws) == ((State.ANSWERED,), (State.MISSING,))
    assert [one.draws for one in generator(Failing("Atlantis")).generate(queries)] == [(State.MISSING,)] * 2
    assert [one.draws for one in generator(Failing("the country"), calibration="neutral").generate(queries)] == [
        (State.MISSING,)
    ] * 2
    assert all(not one.candidates for one in generator(Failing("Atlantis")).generate(queries))
