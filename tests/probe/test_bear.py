"""BEAR: answers of whole sentences against one forward pass each, its averages, its floors and its files."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_causal
import tiny_families
import torch
from command import Command
from rows import jsonl
from transformers import AutoModelForMaskedLM, AutoTokenizer

TEMPLATES = ["the capital of [X] is [Y].", "[Y] is the capital of [X].", "[X] has {a} city, [Y]"]
CAPITALS = {
    "templates": TEMPLATES,
    "answer_space_labels": ["paris", "rome", "new york", "Zürich", "lima", "oslo", "the city " * 30],
}
LONG = 6
"""Place of the option that is longer than a model reads."""
SUBJECTS = "france italy iceland peru germany norway papua ada bern land".split()
ITEMS = [("france", 0), ("italy", 1), ("iceland", 1), ("peru", 2)]
COUNTS = {"templates": TEMPLATES, "answer_space_labels": ["oslo", "lima"]}
CITIES = [("norway", 0), ("peru", 1)]


def bear(root: Path, items: Sequence[tuple[str, int]] = ITEMS, **changes: Any) -> Path:
    (root / "BEAR").mkdir(parents=True, exist_ok=True)
    metadata = {"P36": CAPITALS, "P1": COUNTS} | changes
    (root / "BEAR" / "metadata_relations.json").write_text(json.dumps(metadata))
    (root / "relation_info.json").write_text('{"P36": {"domains": ["Geographic", "Political"]}, "P1": {"domains": []}}')
    for name, rows in (("P36", items), ("P1", CITIES)):
        jsonl(root / "BEAR" / f"{name}.jsonl", [{"sub_label": one, "answer_idx": at} for one, at in rows])
    return root


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path, command: Command) -> None:
    asked = ("probe", "bear", "--model", "none", "--offline", tmp_path)
    for names, changes, message in (
        ("P99", {}, "no items of P99"),
        ("P1", {"P1": COUNTS | {"answer_space_labels": ["oslo"]}}, "items of P1 do not fit its options"),
        ("P1", {"P1": COUNTS | {"templates": ["[X] is.", *TEMPLATES[1:]]}}, "P1 needs [X], [Y]"),
        ("P36", {"P1": COUNTS | {"templates": TEMPLATES[:1]}}, "metadata cannot be read"),
    ):
        bear(tmp_path, **changes)
        assert message in command.fails(*asked, "--properties", names)
    (tmp_path / "empty").mkdir()
    assert "no items of any relation" in command.fails(*asked[:-1], tmp_path / "empty")


def of_causal(kind: str) -> Callable[[str], float]:
    """Return a function from a sentence to its log-likelihood: one forward pass each."""
    model, tokenizer = tiny_causal.model(kind), tiny_causal.tokenizer()

    def alone(sentence: str) -> float:
        ids = [tiny_causal.EOS, *tokenizer(sentence)["input_ids"]]
        with torch.inference_mode():
            logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        return sum(float(logs[at - 1, token]) for at, token in enumerate(ids) if at)

    return alone


def of_masked(folder: Path) -> Callable[[str], float]:
    """Return a function from a sentence to its pseudo-log-likelihood: the rest of a word is masked with its token."""
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)

    def alone(sentence: str) -> float:
        encoded = tokenizer(sentence, verbose=False)
        ids, words = encoded["input_ids"], encoded.word_ids()
        if len(ids) > tiny_families.POSITIONS:
            return -np.inf
        asked = [at for at, word in enumerate(words) if word is not None]
        hidden = [
            [
                tokenizer.mask_token_id if here >= at and words[here] == words[at] else one
                for here, one in enumerate(ids)
            ]
            for at in asked
        ]
        with torch.inference_mode():
            logs = model(input_ids=torch.tensor(hidden)).logits.log_softmax(-1)
        return sum(float(logs[row, at, ids[at]]) for row, at in enumerate(asked))

    return alone


def likeliest(score: Callable[[str], float], options: Sequence[str], subjects: Sequence[str]) -> np.ndarray:
    """Return the place of the option of the likeliest sentence, (templates, subjects)."""
    texts = [
        [[template.replace("[X]", one).replace("[Y]", option) for option in options] for one in subjects]
        for template in TEMPLATES
    ]
    return np.array([[[score(text[0].upper() + text[1:]) for text in row] for row in rows] for rows in texts]).argmax(2)


@pytest.mark.whole(but=["gpt2", "bert"])
@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert", "roberta"])
def test_an_answer_is_the_likeliest_sentence_and_averages_are_over_items_then_over_templates(
    tmp_path: Path, save_model: Callable[..., Path], command: Command, kind: str
) -> None:
    masked = kind in ("bert", "roberta")
    model = save_model(kind) if masked else tiny_causal.save(tmp_path / kind, kind)
    score, subjects = of_masked(model) if masked else of_causal(kind), SUBJECTS if kind == "bert" else SUBJECTS[:4]
    chosen = likeliest(score, CAPITALS["answer_space_labels"], subjects)
    items = [(one, int(chosen[n % 3, n])) for n, one in enumerate(subjects)]  # right in a template at least
    items[:2] = [(subjects[0], LONG), (subjects[1], LONG)]
    words = ("probe", "bear", bear(tmp_path / "data", items), "--model", model, "--offline", "--json")
    found = json.loads(command.done(*words, "--table", "overall,relation,domain,cardinality")[0])
    cities = likeliest(score, COUNTS["answer_space_labels"], [one for one, _ in CITIES])
    each = {"P36": chosen == [at for _, at in items], "P1": cities == [at for _, at in CITIES]}
    whole = np.concatenate(list(each.values()), axis=1).mean(1)
    (overall,) = found["overall"].values()
    assert overall["templates"] == pytest.approx(whole.tolist())
    assert overall["accuracy"] == pytest.approx(whole.mean())
    assert overall["error"] == pytest.approx(whole.std(ddof=1) / 3**0.5)
    assert overall["items"] == len(items) + 2
    assert overall["chance"] == pytest.approx((len(items) / 7 + 2 / 2) / (len(items) + 2))
    assert {name: row["templates"] for name, row in found["relation"].items()} == {
        name: pytest.approx(table.mean(1).tolist()) for name, table in each.items()
    }
    assert found["domain"] == dict.fromkeys(("Geographic", "Political"), found["relation"]["P36"])
    assert found["cardinality"] == {
        "one item an option": found["relation"]["P1"],
        "several items an option": found["relation"]["P36"],
    }


def test_floors_learn_from_other_items_and_a_limit_spreads_over_the_options(
    tmp_path: Path, save_model: Callable[..., Path], command: Command
) -> None:
    names = [(f"saint {n}", 0) for n in range(30)] + [(f"mount {n}", 1) for n in range(20)]
    about = {"templates": TEMPLATES, "answer_space_labels": ["rome", "oslo"]}
    words = ("probe", "bear", "--model", save_model(), "--properties", "P36", "--limit", "10", "--offline", "--json")
    ((_, found),) = json.loads(command.done(*words, bear(tmp_path, names, P36=about))[0])["overall"].items()
    assert [found[name] for name in ("chance", "class prior", "naive Bayes", "items")] == [0.5, 0.6, 1.0, 10]
    own = about | {"answer_space_labels": [*map(str, range(20))]}
    alone = [(f"saint {n}", n) for n in range(20)]
    ((_, found),) = json.loads(command.done(*words, bear(tmp_path, alone, P36=own))[0])["overall"].items()
    assert [found[name] for name in ("chance", "class prior", "naive Bayes")] == [pytest.approx(1 / 20), 0, 0]


def test_bear_as_a_user_reads_it(tmp_path: Path, save_model: Callable[..., Path], command: Command) -> None:
    source = bear(tmp_path / "data", ITEMS)
    words = ("probe", "bear", source, "--model", save_model(), "--table", "overall,domain,cardinality")
    printed, told = command.done(*words)
    assert f"{3 * (4 * 7 + 4)} sentences of 2 relations in" in told
    for shown in ("published: SmolLM2-135M", "Political", "one item an option", "naive Bayes %"):
        assert shown in printed
    assert "no table of this benchmark" in command.fails(*words[:-1], "years")
