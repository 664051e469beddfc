import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import tiny_masked
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from lmkbc import InputError, LmkbcError
from lmkbc.masked.backbone import load
from lmkbc.names import folded_key
from lmkbc.train.cloze_training import rank_loss, verbalised
from lmkbc.train.loop import train
from lmkbc.train.random_controls import LearnedControls
from lmkbc.train.training import Masking, TrainingPlan
from lmkbc.types import Fact

IGNORED = -100


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A tiny masked model that knows these words."""
    words = "ada lives in the home of is new york paris".split()
    return load(tiny_masked.save(tmp_path_factory.mktemp("model"), words), offline=True)


@pytest.mark.parametrize(("policy", "window"), [("object", 0), ("object+1", 1), ("object+2", 2)])
def test_the_object_and_a_window_around_it_are_masked(backbone: Any, policy: str, window: int) -> None:
    fact = Fact("ada", "home", ("the home of {subject} is in {mask} lives of",), ("new york",), ("",))
    (row,) = verbalised([fact], backbone, Masking(policy=policy), 0)
    hidden = backbone.tokenizer.convert_ids_to_tokens([label for label in row.labels if label != IGNORED])
    sentence = "the home of ada is in new york lives of".split()
    assert hidden == sentence[6 - window : 8 + window]
    assert all(
        (token == backbone.mask_id) == (label != IGNORED) for token, label in zip(row.ids, row.labels, strict=True)
    )


def test_masked_apart_leaves_the_rest_of_the_object_in_sight(backbone: Any) -> None:
    fact = Fact("ada", "home", ("{subject} lives in {mask}.",), ("new york",), ("",))
    rows = list(verbalised([fact], backbone, Masking(policy="object", apart=True), 0))
    assert [row.ids.count(backbone.mask_id) for row in rows] == [1, 1]


def test_the_rate_rises_and_falls_to_zero() -> None:
    shares = [TrainingPlan(rate=1.0, epochs=1).share(step, 100) for step in range(100)]
    assert max(shares) == 1.0 == shares[9]
    assert shares[:10] == sorted(shares[:10])
    assert shares[10:] == sorted(shares[10:], reverse=True)
    assert 0 < shares[-1] < 0.02


def test_what_is_longer_than_the_model_reads_loses_its_end(backbone: Any) -> None:
    fact = Fact("ada", "home", ("the home of {subject} is {mask}" + " in" * 200,), ("a b",), ("",))
    (row,) = verbalised([fact], backbone, Masking(), 0)
    assert len(row.ids) == backbone.longest
    assert row.ids[-1] == backbone.tokenizer.sep_token_id


def test_decay_spares_biases_and_norms() -> None:
    values = nn.ParameterDict({"matrix": torch.ones(2, 2), "bias": torch.ones(2)})
    plan = TrainingPlan(rate=0.1, epochs=1, batch=1, decay=0.5, warm_up=0.0)
    train(values, lambda _: 0.0 * (values["matrix"].sum() + values["bias"].sum()), [1, 2], plan)
    assert torch.equal(values["bias"], torch.ones(2))
    assert bool((values["matrix"] < 1).all())


def test_the_ranking_loss_is_its_formula_and_falls_with_better_ranks() -> None:
    logits = torch.tensor([[1.0, 0.0, -1.0], [0.3, 0.2, 0.1]])
    golds = [[1], [0, 2]]
    wanted = 0.0
    for row, gold in zip(logits.softmax(-1).tolist(), golds, strict=True):
        rank = {place: n for n, place in enumerate(sorted(range(3), key=lambda place: -row[place]), start=1)}
        pairs = [(i, j) for i in gold for j in range(3) if j not in gold]
        costs = [abs(1 / rank[i] - 1 / rank[j]) * math.log1p(math.exp(-5 * (row[i] - row[j]))) for i, j in pairs]
        wanted += sum(costs) / len(gold) / len(golds)
    assert float(rank_loss(logits, golds)) == pytest.approx(wanted, rel=1e-5)
    assert float(rank_loss(torch.zeros(1, 2), [[0, 1]])) == 0.0
    better = logits.clone().requires_grad_()
    rank_loss(better, golds).backward()  # type: ignore[no-untyped-call]
    assert better.grad is not None
    assert float(rank_loss(logits - better.grad, golds)) < wanted


class CutError(Exception):
    """Ends a training as a kill would, were it not in this process; `tests/attack` kills for real."""


def values_of(checkpoint: Path, best: str, cut: int = -1) -> dict[str, torch.Tensor]:
    """The values after a training that is cut after so many steps, or not at all."""

    def report(step: str, done: int, total: int | None) -> None:
        if done == cut:
            raise CutError

    torch.manual_seed(1)
    values = nn.ParameterDict({"matrix": torch.randn(4, 4), "bias": torch.zeros(4)})
    inputs, wanted = torch.randn(8, 4), torch.randn(8, 4)

    def loss(rows: Sequence[int]) -> torch.Tensor:
        found = inputs[[*rows]] @ values["matrix"] + values["bias"]
        return nn.functional.dropout(found - wanted[[*rows]], 0.5, values.training).square().mean()

    if best == "at first":
        wanted[6:] = (inputs[6:] @ values["matrix"]).detach()
    plan = TrainingPlan(rate=1e-2, epochs=5, batch=3, every=2, patience=100)
    train(values, loss, range(6), plan, held_out=[6, 7], checkpoint=checkpoint, report=report)
    return {name: value.detach().clone() for name, value in values.items()}


@pytest.mark.parametrize("best", ["at first", "at last"])
@pytest.mark.parametrize("cut", [2, 5, 10])
def test_cut_short_and_resumed_ends_with_the_same_bytes(tmp_path: Path, cut: int, best: str) -> None:
    def same(checkpoint: Path) -> bool:
        return all(torch.equal(value, whole[name]) for name, value in values_of(checkpoint, best).items())

    whole, checkpoint = values_of(tmp_path / "whole", best), tmp_path / "checkpoint"
    with pytest.raises(CutError):
        values_of(checkpoint, best, cut)
    assert checkpoint.exists() == (cut > 2)
    assert same(checkpoint)
    finished = checkpoint.read_bytes()
    assert same(checkpoint)  # cut before its outcome was kept
    assert checkpoint.read_bytes() == finished


def test_a_loss_that_is_no_number_stops_the_run() -> None:
    weight = nn.Parameter(torch.ones(1))
    with pytest.raises(LmkbcError, match="lower rate"):
        train(
            nn.ParameterDict({"w": weight}),
            lambda _: (weight * float("nan")).sum(),
            [1],
            TrainingPlan(rate=1.0, epochs=1, batch=2),
        )


@pytest.mark.parametrize("change", ["examples", "start"])
def test_another_start_or_other_examples_do_not_go_on_from_a_checkpoint(tmp_path: Path, change: str) -> None:
    def run(first: float, examples: list[str]) -> None:
        weight = nn.Parameter(torch.full((2,), first))
        plan = TrainingPlan(rate=1e-2, epochs=1, batch=2)
        model = nn.ParameterDict({"w": weight})
        train(model, lambda _: weight.square().sum(), examples, plan, checkpoint=tmp_path / "c")

    run(1.0, ["a", "b"])
    run(1.0, ["a", "b"])  # the same one is taken up
    with pytest.raises(InputError, match="other settings"):
        run(*((1.0, ["a", "c"]) if change == "examples" else (2.0, ["a", "b"])))
    (tmp_path / "c").write_bytes(b"\x80\x04N.")
    with pytest.raises(InputError, match="no checkpoint"):
        run(1.0, ["a", "b"])


NAMES = st.lists(st.sampled_from(["Jan", "jan", "Wei", "x-y", "Novak"]), max_size=3).map(" ".join)
FACTS = st.lists(st.tuples(NAMES, st.sampled_from("rs"), st.sampled_from("abcd")), max_size=12)


def by_hand(facts: list[tuple[str, str, str]], subject: str, answer: str) -> Fraction:
    """P(answer) times the product of P(word | answer), add-one smoothing, with room for a word that was not seen."""
    said = [(folded_key(name).split(), one) for name, _, one in facts]
    size = len({word for words, _ in said for word in words}) + 1
    own = [word for words, one in said if one == answer for word in words]
    score = Fraction(sum(one == answer for _, one in said), len(said))
    for word in folded_key(subject).split():
        score *= Fraction(own.count(word) + 1, len(own) + size)
    return score


@given(FACTS, NAMES)
def test_naive_bayes_answers_what_is_likeliest(facts: list[tuple[str, str, str]], subject: str) -> None:
    model = LearnedControls(facts)
    for relation in "rst":
        own = [fact for fact in facts if fact[1] == relation]
        scores = {answer: by_hand(own, subject, answer) for _, _, answer in own}
        found = model.naive_bayes(subject, relation)
        assert float(scores[found]) >= float(max(scores.values())) * (1 - 1e-12) if scores else not found


@given(FACTS)
def test_majority_answers_what_is_most_frequent_and_first_by_name(facts: list[tuple[str, str, str]]) -> None:
    model = LearnedControls(facts)
    for relation in "rst":
        own = [answer for _, name, answer in facts if name == relation]
        wanted = min(own, key=lambda one: (-own.count(one), one), default="")
        assert model.majority("anyone", relation) == wanted
