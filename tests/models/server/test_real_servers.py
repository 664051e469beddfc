"""Real servers, started here on loopback with a tiny model made on the spot: what they say means nothing, how they say
it is what counts."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import llama_server
import numpy as np
import pytest
import tiny_causal
import tiny_gguf
from opened import asks, part
from postgres import free_port
from space import MINI, RELATIONS, TRAIN

from lmkbc import LmkbcError
from lmkbc.ask.builder import PromptBuilder
from lmkbc.generate.language_model import AnswerGenerator
from lmkbc.models.answers import Store
from lmkbc.models.plain_questions import word_log_probabilities
from lmkbc.models.server.address import Server
from lmkbc.models.server.server_model import ServerModel
from lmkbc.testing import CandidateSet, Query, State

pytestmark = pytest.mark.server
BORDERS = "CountryBordersCountry"
QUERIES = [Query(f"Utopia {place} {{x}}", BORDERS) for place in range(6)]


Chat = Callable[..., AnswerGenerator]


def model() -> Any:
    """A tiny model, whose tokens are bytes, of a context that takes many examples."""
    made = tiny_causal.model("llama", seed=1)
    made.config.max_position_embeddings = 8192
    return made


@contextmanager
def process(command: list[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    own = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    with log.open("w") as errors:
        started = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=own | {"OMP_NUM_THREADS": "1"} | environment
        )
        with started:
            try:
                yield started
            finally:
                started.kill()


@pytest.fixture(scope="module")
def llama_cpp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed: install lmkbc[llamacpp]")
    folder = tmp_path_factory.mktemp("llama.cpp")
    tiny_gguf.write(folder / "tiny.gguf", model())
    with llama_server.serving(folder / "log.txt", folder / "tiny.gguf") as url:
        yield Server(url, "tiny")


@pytest.fixture(scope="module")
def transformers_serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    for name in ("fastapi", "uvicorn"):
        pytest.importorskip(name, reason="the transformers server needs transformers[serving]")
    folder = tmp_path_factory.mktemp("transformers")
    sampled, tokenizer = model(), tiny_causal.tokenizer()
    sampled.generation_config.do_sample = True  # the server samples only where the model's own settings say so
    tokenizer.chat_template = tiny_gguf.TEMPLATE
    for made in (sampled, tokenizer):
        made.save_pretrained(folder / "tiny")
    port = free_port()
    command = [sys.executable, "-c", "from transformers.cli.transformers import main; main()", "serve"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    with process(command, folder / "log.txt", HF_HUB_OFFLINE="1", HF_HOME=str(folder)) as server:
        _wait(f"http://127.0.0.1:{port}/health", server, folder / "log.txt")
        yield Server(f"http://127.0.0.1:{port}/v1", str(folder / "tiny"), any_model=True)


def _wait(url: str, server: subprocess.Popen[str], log: Path) -> None:
    for _ in range(600):
        assert server.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"the server did not come up: {log.read_text()}")


@pytest.fixture(params=["llama_cpp", pytest.param("transformers_serve", marks=pytest.mark.whole)])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def ask(server: Server, chat: Chat) -> Callable[..., tuple[AnswerGenerator, dict[str, CandidateSet]]]:
    def ask(concurrency: int = 2, **tables: Any) -> tuple[AnswerGenerator, dict[str, CandidateSet]]:
        limits = part("limits", concurrency=concurrency, total_wait=3.0, timeout=60.0)
        generator = chat(server, limits=limits, **{"shots": {"k": 2}, **tables})
        found = {one.query.subject: one for one in generator.generate(QUERIES)}
        assert found.keys() == {query.subject for query in QUERIES}
        assert not any(State.MISSING in one.draws for one in found.values()), generator.notes.remarks
        return generator, found

    return ask


Ask = Callable[..., tuple[AnswerGenerator, dict[str, CandidateSet]]]


def test_answers_come_and_are_kept(ask: Ask) -> None:
    tables: dict[str, Any] = {"sampling": {"temperature": 0.0, "max_tokens": 8}}
    generator, found = ask(**tables)
    assert generator.notes.usage["requests"] == len(QUERIES)
    assert generator.notes.usage["completion_tokens"] == sum(8 for _ in QUERIES)
    again, same = ask(**tables)
    assert again.notes.usage["requests"] == 0
    assert same == found


def test_draws_are_as_many_as_asked_for_whether_the_server_knows_n_or_not(ask: Ask) -> None:
    generator, found = ask(sampling={"temperature": 1.0, "max_tokens": 8, "samples": 3})
    assert all(len(one.draws) == 3 for one in found.values())
    assert generator.notes.usage["completion_tokens"] > 0


def test_seeds_tell_draws_apart_and_give_them_again(ask: Ask, tmp_path: Path) -> None:
    def texts() -> dict[str, str]:
        sampling = {"temperature": 1.0, "max_tokens": 8, "samples": 2, "seed": 5}
        ask(concurrency=1, sampling=sampling)  # at once, requests to transformers share one random state
        store = Store(tmp_path / "store.sqlite")
        lines = [json.loads(line) for line in store.export()]
        store.prune()
        return {line["key"]: line["answer"]["text"] for line in lines}

    first = texts()
    assert len(set(first.values())) > 1
    assert texts() == first


def test_json_and_log_probabilities_are_heeded_or_done_without(ask: Ask) -> None:
    schema = {"type": "object", "properties": {"objects": {"type": "array", "items": {"type": "string"}}}}
    extra = {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}
    generator, _ = ask(sampling={"temperature": 0.0, "max_tokens": 40, "logprobs": True, "extra": extra})
    assert generator.notes.remarks


def test_completion(ask: Ask) -> None:
    ask(
        prompt={"form": "completion", "block": "{{ subject }}, {{ phrase }}:"},
        sampling={"temperature": 0.0, "max_tokens": 8},
    )


@pytest.mark.parametrize("completion", [False, True])
def test_verification_asks_for_probabilities(server: Server, tmp_path: Path, completion: bool) -> None:
    limits = part("limits", total_wait=3.0, timeout=60.0)
    scorer = ServerModel(server, Store(tmp_path / "s.sqlite"), limits, completion=completion)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"  # a token each, so that some are among the likeliest of a random model
    found = np.exp(word_log_probabilities(scorer, ["Is it so?", "Or so?"], [*letters]))
    if scorer.notes.remarks:
        assert "returns no log-probabilities" in scorer.notes.remarks[0]
        assert set(found.ravel()) <= {0.0, 1.0}
    else:
        assert (found >= 0).all()
        assert (found < 0.999).all()
        assert completion or found.sum() > 0  # of five alternatives none may be a letter
    assert scorer.notes.usage["requests"] == 2


@pytest.mark.whole
def test_a_model_that_is_not_there(transformers_serve: Server, chat: Chat, tmp_path: Path) -> None:
    other = Server(transformers_serve.base_url, str(tmp_path / "absent"), any_model=True)
    limits = part("limits", concurrency=1, total_wait=3.0)
    generator = chat(other, limits=limits, shots={"k": 0}, sampling={"max_tokens": 4})
    found = list(generator.generate(QUERIES))
    assert all(one.draws == (State.MISSING,) for one in found)


def test_llama_cpp_tells_its_context_and_prompts_are_fitted_to_it(llama_cpp: Server, chat: Chat) -> None:
    tables: dict[str, Any] = {"shots": {"k": 60, "fit": True, "relations": "all"}, "sampling": {"max_tokens": 8}}
    asking = PromptBuilder(MINI, RELATIONS, TRAIN, asks(tables))
    assert len(asking.prompt(QUERIES[0]).text) > 4096  # its tokens are bytes, and two share its context of 8192
    limits = part("limits", concurrency=2, total_wait=3.0, timeout=300.0)
    generator = chat(llama_cpp, limits=limits, **tables)
    found = list(generator.generate(QUERIES[:2]))
    assert not any(State.MISSING in one.draws for one in found), generator.notes.remarks
    assert any("2 prompts were shown fewer examples" in remark for remark in generator.notes.remarks)
    assert 2 <= generator.notes.usage["requests"] <= 6  # its own count of tokens leaves little to be refused


def test_llama_cpp_says_what_it_calls_its_model(llama_cpp: Server, chat: Chat) -> None:
    other = Server(llama_cpp.base_url, "gpt-4")
    generator = chat(other, limits=part("limits", concurrency=1), shots={"k": 0}, sampling={"max_tokens": 4})
    with pytest.raises(LmkbcError, match=r"asked for model 'gpt-4', .* answers as 'tiny.gguf': say --model tiny.gguf"):
        list(generator.generate(QUERIES))
