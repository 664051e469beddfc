"""A model that is not on this machine, and a hub that is out of reach: one sentence, at once."""

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command import Command

from lmkbc import InputError
from lmkbc.local.checkpoint import load as causal
from lmkbc.masked.backbone import load as masked
from lmkbc.models import located as hub
from lmkbc.probe.model_kinds import model_kind

LOADS = [causal, masked, model_kind]


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Attempts to open a socket, none of which leads anywhere."""
    found: list[object] = []

    def no_network(host: object, *_: object, **__: object) -> None:
        found.append(host)
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    hub.reachable.cache_clear()
    yield found
    hub.reachable.cache_clear()


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("name", ["owner/model", "model", "no such model"])
def test_without_a_network_one_look_is_enough(
    load: Callable[..., object], name: str, tried: list[object], capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        with pytest.raises(InputError, match=rf"{name} cannot be loaded: .* the model hub .* cannot be reached"):
            load(name, offline=False)
    assert len(tried) == 1
    assert "".join(capfd.readouterr()) == ""


@pytest.mark.parametrize("load", LOADS)
def test_offline_there_is_no_look_at_all(load: Callable[..., object], tried: list[object]) -> None:
    with pytest.raises(InputError, match="not on this machine; run once without --offline"):
        load("owner/model", offline=True)
    assert tried == []


@pytest.mark.parametrize("answer", [b"200 OK", b"403 Forbidden", b"503 Busy", b""])
def test_a_hub_is_asked_if_it_answers(monkeypatch: pytest.MonkeyPatch, answer: bytes) -> None:
    from huggingface_hub import constants

    def serve(listening: socket.socket) -> None:
        line, _ = listening.accept()
        with line:
            line.recv(4096)
            line.sendall(b"HTTP/1.1 " + answer + b"\r\nContent-Length: 0\r\n\r\n")

    monkeypatch.setattr(hub, "SOON", 5.0 if answer else 0.2)
    hub.reachable.cache_clear()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        if answer:
            threading.Thread(target=serve, args=(listening,), daemon=True).start()
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{listening.getsockname()[1]}")
        assert hub.reachable() == bool(answer)
    hub.reachable.cache_clear()


@pytest.mark.parametrize("offline", [[], ["--offline"]])
def test_a_recipe_with_a_model_of_the_hub_ends_in_one_sentence(
    command: Command, offline: list[str], tried: list[object], tmp_path: Path
) -> None:
    (tmp_path / "texts.jsonl").write_text('{"title": "France", "text": "France borders Spain."}\n')
    asked = ["predict", "--edition", "mini", "--split", "val", "--system", "llm2kb23", "--from", "texts.jsonl"]
    assert "meta-llama/Llama-2-13b-chat-hf cannot be loaded: it is not on this machine" in command.fails(
        *asked, *offline, "--store", "s"
    )
    assert len(tried) == (not offline)
