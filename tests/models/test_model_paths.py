"""A model that is named by its path: no file that travels, and no key of the store, tells a user's directories."""

import gzip
import hashlib
import json
from pathlib import Path

import pytest
from command import Command
from hypothesis import given
from hypothesis import strategies as st
from loopback import Body, Loopback
from opened import recipe_file, recipe_of
from space import MINI, SPACE

from lmkbc.models.answers import Store
from lmkbc.models.identity import file_digest, model_identity
from lmkbc.plan import Plan
from lmkbc.testing import Run


def named(model: str) -> str:
    """Return the name by which a run's records know a model."""
    plan = Plan.of(Run(workspace=SPACE, edition=MINI, model=model), CHAT)
    return plan.origin.models[0]


CHAT = recipe_of({"component": "chat"})


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("gpt-4", "gpt-4"),
        ("owner/model", "owner/model"),
        ("accounts/maker/models/llama-v3", "accounts/maker/models/llama-v3"),
        ("model:7b@rev", "model:7b@rev"),
        ("/home/me/models/tiny.gguf", "tiny.gguf"),
        ("~/models/tiny/", "tiny"),
        ("./tiny", "tiny"),
        ("../../tiny", "tiny"),
        ("models/sub/tiny.gguf", "tiny.gguf"),
        ("C:\\Users\\me\\tiny.gguf", "tiny.gguf"),
        ("C:/Users/me/tiny", "tiny"),
    ],
)
def test_a_path_gives_way_to_its_last_part(given_name: str, name: str) -> None:
    assert named(given_name) == name
    assert named(name) == name
    assert (model_identity(given_name) == "") == (name == given_name)


@given(st.text(min_size=1, max_size=50))
def test_any_text_has_a_name(text: str) -> None:
    assert named(text) == named(named(text)) or "/" in named(text)
    model_identity(text)


def test_what_is_here_is_known_by_its_bytes_and_other_places_by_where_they_are(tmp_path: Path) -> None:
    here = tmp_path / "a" / "tiny.gguf"
    here.parent.mkdir()
    here.write_bytes(b"weights")
    assert model_identity(str(here)) == hashlib.sha256(b"weights").hexdigest()
    here.write_bytes(b"other weights")
    assert model_identity(str(here)) == hashlib.sha256(b"other weights").hexdigest()
    assert model_identity("/elsewhere/tiny.gguf") != model_identity("/nowhere/tiny.gguf")
    first = file_digest(str(here.parent))
    (here.parent / "config.json").write_text("{}")
    assert file_digest(str(here.parent)) != first


def test_a_run_by_path_writes_name_and_hash_and_no_way(command: Command, tmp_path: Path) -> None:
    model = tmp_path / "someones-home" / "tiny.gguf"
    model.parent.mkdir()
    model.write_bytes(b"weights")
    store = tmp_path / "store.sqlite"
    recipe = recipe_file(tmp_path / "mine.toml", {"component": "chat", "model": str(model)})

    def by_path(body: Body, answer: Body) -> None:
        assert body["model"] == str(model)
        answer["model"] = str(model)

    with Loopback(change=by_path) as server:
        asked = ["predict", "--edition", "mini", "--split", "val", "--base-url", server.url, "--store", store]
        asked += ["--limit", "16", "--failed-as-empty"]  # numbers that are none
        for named in (["--system", recipe], ["--system", "bl24", "--model", model]):
            out = tmp_path / f"out{len(named)}"
            command.done(*asked, *named, "--out", out)
            manifest = json.loads((out / "manifest.json").read_text())
            assert manifest["recipe"]["generate"][0]["model"] in ("tiny.gguf", "meta-llama/Meta-Llama-3-8B-Instruct")
            assert manifest["inputs"]["tiny.gguf"] == hashlib.sha256(b"weights").hexdigest()
            written = b"".join(path.read_bytes() for path in out.iterdir())
            written += gzip.decompress((out / "candidates.jsonl.gz").read_bytes())
            assert b"tiny.gguf#0" in written
            assert b"someones-home" not in written
    kept = Store(store)
    assert {row["model"] for row in kept.stats()} == {"tiny.gguf"}
    assert b"someones-home" not in b"".join(kept.export())
    assert b"someones-home" not in b"".join(path.read_bytes() for path in tmp_path.glob("store.sqlite*"))
