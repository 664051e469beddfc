"""Two providers in one recipe, each with a key of its own: each key reaches its own host, and nothing else."""

from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback
from opened import recipe_file

import lmkbc
from lmkbc import LmkbcError

KEYS = "LMKBC_KEYS"


ONE, TWO, PLAIN = "canary-one-51d0", "canary-two-77ab", "canary-plain-09fe"


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    for name, key in {"ONE_KEY": ONE, "TWO_KEY": TWO, "OPENAI_API_KEY": PLAIN}.items():
        monkeypatch.setenv(name, key)
    monkeypatch.setenv(KEYS, "localhost=ONE_KEY, 127.0.0.1=TWO_KEY")
    return {"edition": "mini", "limit": 2, "store": tmp_path / "store.sqlite", "out": tmp_path / "run"}


def recipe(folder: Path, one: Loopback, two: Loopback) -> str:
    """A recipe that asks both, one as localhost and the other by its number."""
    limits = {"total_wait": 0.5}
    tables = [
        {
            "component": "chat",
            "model": "a",
            "base_url": one.url.replace("127.0.0.1", "localhost"),
            "key_env": "ONE_KEY",
        },
        {"component": "chat", "model": "b", "base_url": two.url, "key_env": "TWO_KEY"},
    ]
    return str(recipe_file(folder / "two.toml", *({"limits": limits} | table for table in tables)))


def written(folder: Path) -> bytes:
    """Everything that a run left in files, those of its store included."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_each_host_gets_its_own_key_and_no_file_or_message_any(
    given: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Loopback() as one, Loopback() as two:
        run = lmkbc.predict("val", system=recipe(tmp_path, one, two), page=True, **given)
    assert set(run.manifest["models"]) == {"a", "b"}
    for server, own in ((one, ONE), (two, TWO)):
        assert server.headers
        assert all(
            [key in head for key in (ONE, TWO, PLAIN)] == [key == own for key in (ONE, TWO, PLAIN)]
            for head in server.headers
        )
    assert b"canary" not in written(tmp_path) + caplog.text.encode()


def test_a_provider_that_refuses_its_key_is_named_with_its_own_variable(given: dict[str, Any], tmp_path: Path) -> None:
    refused = (401, f"{TWO} is wrong, and so is {TWO}")
    with (
        Loopback() as one,
        Loopback(change=lambda _, __: refused) as two,
        pytest.raises(LmkbcError, match=r"refuses the key in TWO_KEY \(401: \[key\] is wrong") as error,
    ):
        lmkbc.predict("val", system=recipe(tmp_path, one, two), **given)
    assert "canary" not in str(error.value)
    assert b"canary" not in written(tmp_path)


def test_a_key_that_is_not_named_for_its_host_goes_nowhere(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEYS, "localhost=ONE_KEY")
    with Loopback() as one, Loopback() as two:
        lmkbc.predict("val", system=recipe(tmp_path, one, two), **given)
    assert all(ONE in head for head in one.headers)
    assert not any("canary" in head for head in two.headers)
