"""Recipes of servers that name a model of this machine: it is asked as a server would be, and no socket is opened."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
import tiny_gguf
import tiny_masked
from opened import begins_here, generated, generators, recipe_of
from space import MINI, SPACE, bundled

from lmkbc import GeneratorSpec, InputError
from lmkbc.generate.access import step_model
from lmkbc.local.local_model import LocalModel
from lmkbc.local.model import CausalModel
from lmkbc.models.answers import Store
from lmkbc.models.located import is_local_name
from lmkbc.models.plain_questions import texts
from lmkbc.models.server.server_model import ServerModel
from lmkbc.testing import Notes, Query, Run, State

RECIPES = {name: bundled(name) for name in SPACE.system_names()}


def _chats(spec: GeneratorSpec) -> bool:
    return spec.component.rpartition("/")[2] == "chat"


SERVED = {name: one for name, one in RECIPES.items() if any(_chats(spec) for spec in one.generate)}
QUERIES = [Query(f"Utopia {{{place}}}", relation) for place, relation in enumerate(MINI.relations)]
SHORT = {"temperature": 0.0, "max_tokens": 6}

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with a chat template, as a GGUF file."""
    model = tiny_causal.model("llama")
    model.config.max_position_embeddings = 8192
    return tiny_gguf.write(tmp_path_factory.mktemp("weights") / "tiny.gguf", model)


@pytest.fixture
def run(weights: Path, tmp_path: Path) -> Run:
    return over(weights, tmp_path)


def over(model: Path | str, tmp_path: Path, **servers: Any) -> Run:
    given = dict(store=tmp_path / "store.sqlite", **servers)
    return Run(workspace=SPACE, edition=MINI, model=str(model), offline=True, servers=given)


def bare(generator: Any) -> Any:
    while hasattr(generator, "_generator"):  # wrapped, as by a verifier
        generator = generator._generator
    return generator


@pytest.mark.parametrize(  # each recipe has another test over a server
    "name", [pytest.param(name, marks=pytest.mark.whole if place % 4 else ()) for place, name in enumerate(SERVED)]
)
def test_every_recipe_of_a_server_runs_here(name: str, run: Run, tmp_path: Path) -> None:
    """With few tokens and draws, since it is a random model that speaks."""
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"title": "Utopia {0}", "text": "It borders Spain."}\n')
    run = replace(run, files=(texts,))
    for spec in SERVED[name].generate:
        if not hasattr(spec, "prompt"):
            continue
        few = {"max_tokens": 4, "samples": 2, "at_first": None}
        own = {key: replace(one, sampling=one.sampling | few) for key, one in spec.relations.items()}
        short = replace(spec, sampling=replace(spec.sampling, **few), relations=own)
        for _, generator in short.opened(run, Notes()):
            assert isinstance(bare(generator)._model, LocalModel)
            found = list(generator.generate(QUERIES[::3]))
            assert {one.query for one in found} == set(QUERIES[::3])
            assert not any(State.MISSING in one.draws for one in found)


@pytest.mark.parametrize(
    "prompt",
    [
        {"form": "completion", "block": "{{ subject }}, {{ phrase }}:"},
        {"form": "single"},
        {"form": "single", "block": "Subject: {{ subject }}\nRelation: {{ phrase }}\n==>", "component": "lix23/prompt"},
        {"form": "chat", "task": "List them.", "component": "llmke23/prompt", "follow_up": "Sure? {{ question }}"},
    ],
)
def test_it_is_asked_what_the_component_causal_asks(prompt: dict[str, Any], run: Run, tmp_path: Path) -> None:
    table = {"prompt": prompt, "shots": {"k": 2}, "sampling": SHORT | {"extra": {"top_k": 5}, "logprobs": True}}
    here, notes = generated(run, recipe_of({"component": "chat"} | table), QUERIES)
    lines = list(Store(tmp_path / "store.sqlite").export())
    causal, _ = generated(run, recipe_of({"component": "causal"} | table), QUERIES)
    assert sorted(here, key=repr) == sorted(causal, key=repr)
    assert lines == list(Store(tmp_path / "store.sqlite").export())  # nothing was asked a second time
    assert not any("ignored" in remark for remark in notes.remarks)


def test_what_only_a_server_heeds_is_named_once(run: Run, tmp_path: Path) -> None:
    settings = {"enable_thinking": False}
    table = {
        "component": "chat",
        "shots": {"k": 0},
        "prices": [1.0, 2.0],
        "limits": {"concurrency": 2},
        "sampling": {"temperature": 0.0, "extra": {"chat_template_kwargs": settings, "repetition_penalty": 1.5}},
        "relations": {"country-borders": {"sampling": {"max_tokens": 5, "extra": {"min_p": 0.1, "top_k": 3}}}},
    }
    _, notes = generated(run, recipe_of(table), QUERIES)
    assert [remark for remark in notes.remarks if "ignored" in remark] == [
        "tiny.gguf runs on this machine: settings that only a server uses are ignored (limits, prices, "
        "sampling.extra.chat_template_kwargs, sampling.extra.min_p)"
    ]
    kept = [json.loads(line)["call"]["sampling"] for line in Store(tmp_path / "store.sqlite").export()]
    heeded = {(one["max_tokens"], one["repetition_penalty"], one["top_k"]) for one in kept}
    assert heeded == {(256, 1.5, 0), (5, 1.0, 3)}  # an answer that the table does not limit ends all the same


@pytest.mark.parametrize("place", ["option", "recipe", "environment"])
def test_a_server_that_is_named_is_asked(
    place: str, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "http://127.0.0.1:9/v1"
    if place == "environment":
        monkeypatch.setenv("OPENAI_BASE_URL", url)
    table = {"component": "chat"} | ({"base_url": url} if place == "recipe" else {})
    run = over(weights, tmp_path, **({"base_url": url} if place == "option" else {}))
    ((_, generator),) = generators(run, recipe_of(table))
    assert isinstance(bare(generator)._model, ServerModel)
    assert isinstance(step_model(table, "ask").open(run, Notes()), ServerModel)


def test_a_step_that_asks_a_server_asks_the_model_here(run: Run) -> None:
    notes = Notes()
    found = step_model({"component": "chat", "model": "gpt-4", "extra": {"top_k": 1}}, "ask").open(run, notes)
    assert isinstance(found, LocalModel)
    causal = step_model({"component": "causal"}, "ask").open(run, Notes())
    assert texts(found, ["Say yes."], 4) == texts(causal, ["Say yes."], 4)
    assert notes.remarks == ["tiny.gguf runs on this machine: settings that only a server uses are ignored (extra)"]


CHATS = [spec for one in SERVED.values() if not begins_here(one) for spec in one.generate if _chats(spec)]
MODELS = {getattr(spec, "model", "") for spec in CHATS}


@pytest.mark.parametrize("model", sorted(MODELS))
def test_models_of_the_recipes_are_servers(model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert not is_local_name(model)
    (tmp_path / model).mkdir(parents=True)
    assert is_local_name(model) == ("/" in model)  # a single word may be any folder of the user's
    (tmp_path / model / "config.json").write_text("{}")
    assert is_local_name(model)


def test_models_of_this_machine(weights: Path, tmp_path: Path) -> None:
    missing = str(tmp_path / "nothing"), "./nothing", "there-is-none.gguf"
    assert all(map(is_local_name, (str(weights), str(weights.parent), "SmolLM2-135M-Instruct", *missing)))
    assert not any(map(is_local_name, ("", "gpt-4", "owner/model", "ft:gpt-4o:owner::1")))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("./nothing", "./nothing is no model directory"),
        ("/nowhere/nothing", "/nowhere/nothing is no model directory"),
        ("nothing.gguf", "nothing.gguf is no file"),
        ("models/nothing", "no directory or GGUF file models/nothing is here, and --base-url names no server: correct"),
        (
            "nothing",
            "no directory or GGUF file nothing is here, and --base-url names no server, so OpenAI is asked: api",
        ),
    ],
)
def test_a_directory_that_is_missing_is_named(
    name: str, said: str, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    run = replace(over(weights, tmp_path), model=name, offline=False)
    with pytest.raises(InputError, match=said):
        step_model({"component": "chat"}, "ask").open(run, Notes())


def _plain(folder: Path) -> Path:
    """A model without a chat template."""
    return tiny_causal.save(folder)


def _empty(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _refusing(folder: Path) -> Path:
    template = "{% if messages[0]['role'] != 'user' %}{{ raise_exception('users\nfirst') }}{% endif %}"
    return tiny_gguf.write(folder.with_suffix(".gguf"), fields={"tokenizer.chat_template": template})


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (tiny_masked.save, "which does not continue a text: name a causal language model"),
        (_empty, "holds no config.json, so it is no model"),
        (lambda folder: folder.with_suffix(".gguf"), "is no file: name a GGUF file"),
        (_plain, "has no chat template, which a prompt of form 'chat' needs: use form = 'completion'"),
        (_refusing, r"refuses a prompt \(users first\): use form = 'single'"),
    ],
)
def test_what_cannot_work_is_one_sentence(make: Any, sentence: str, tmp_path: Path) -> None:
    model = make(tmp_path / "broken")
    with pytest.raises(InputError, match=sentence) as raised:
        generated(over(model, tmp_path), recipe_of({"component": "chat", "prompt": {"task": "List."}}), QUERIES)
    assert "\n" not in str(raised.value)


def test_prompts_are_fitted_to_the_window(weights: Path, tmp_path: Path) -> None:
    """Where the shots may be cut; else they are not asked."""
    small = tiny_gguf.write(tmp_path / "small.gguf", tiny_causal.model("llama"))  # 512 tokens, which are bytes
    table = {
        "component": "chat",
        "prompt": {"form": "completion", "block": "{{ subject }}, {{ phrase }}:"},
        "sampling": SHORT,
    }
    for fit in (True, False):
        recipe = recipe_of(table | {"shots": {"k": 40, "fit": fit, "relations": "all"}})
        found, notes = generated(over(small, tmp_path), recipe, QUERIES)
        assert [State.MISSING in one.draws for one in found] == [not fit] * len(QUERIES)
        said = "prompts were shown fewer examples" if fit else "not asked, since prompts exceed the model's window"
        assert any(f"{len(QUERIES)} {said}" in one or f"{len(QUERIES)} draws {said}" in one for one in notes.remarks)


@pytest.mark.parametrize("text", ["A\n\nB ==>", "  spaced  ", "{{ braces }} {% if %}", "<end> é"])
def test_a_turn_of_the_assistant_is_gone_on_with(text: str) -> None:
    """No second turn begins after it, as a generation prompt would have it."""
    tokenizer = tiny_causal.tokenizer()
    tokenizer.chat_template = (
        "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}<end>\n{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    model = CausalModel(tiny_causal.model("llama"), tokenizer)
    assert model.chat([{"role": "assistant", "content": text}]) == f"<assistant>{text}"
    assert model.chat([{"role": "user", "content": text}]) == f"<user>{text}<end>\n<assistant>"
