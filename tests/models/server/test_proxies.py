"""Proxies and certificates of the environment: none is between this machine and itself, and a bad one is an error."""

import os
from pathlib import Path

import pytest
from loopback import Loopback, Request, Sent, Server, response
from opened import part
from test_server_odd import Make, one, spain

from lmkbc import InputError, LmkbcError

DEAD = "http://ann:canary-word@127.0.0.1:9"
FAR, SECURE = "http://models.example.org/v1", "https://models.example.org/v1"


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy") or name.startswith("SSL_CERT")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-7f3a91c2")


class Refusing(Server):
    """A proxy that answers every request with a page of its own. code: the status."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self._code = code

    def respond(self, request: Request) -> Sent:
        return response(b"<html><title>Access Denied</title></html>", self._code, "Content-Type: text/html")


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "all_proxy"])
@pytest.mark.parametrize("proxy", [DEAD, "socks://127.0.0.1:9", "127.0.0.1:9", "http://[bad"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_this_machine_is_asked_past_any_proxy(
    chat: Make, monkeypatch: pytest.MonkeyPatch, variable: str, proxy: str, host: str
) -> None:
    monkeypatch.setenv(variable, proxy)
    with Loopback(spain) as server:
        assert not one(chat(server.url.replace("127.0.0.1", host))).failed


@pytest.mark.parametrize("proxy", ["socks://127.0.0.1:9", "socks5://127.0.0.1:9", "ftp://127.0.0.1:9"])
def test_a_proxy_of_a_kind_that_cannot_be_used_is_an_error(
    chat: Make, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(InputError, match="ALL_PROXY names a proxy that cannot be used: unset it"):
        one(chat(SECURE))


@pytest.mark.parametrize(("url", "name"), [(FAR, "HTTP_PROXY"), (SECURE, "HTTPS_PROXY"), (SECURE, "all_proxy")])
@pytest.mark.parametrize("code", [None, 403, 407])
def test_a_proxy_that_is_dead_or_refuses_is_named_at_once(
    chat: Make, monkeypatch: pytest.MonkeyPatch, url: str, name: str, code: int | None
) -> None:
    with Refusing(code or 200) as proxy:
        monkeypatch.setenv(name, f"http://ann:canary-word@127.0.0.1:{proxy.port if code else 9}")
        with pytest.raises(LmkbcError) as error:
            one(chat(url, limits=part("limits", concurrency=1, total_wait=36000.0)))
        assert proxy.served <= 2  # of the server's models, and of the question
    said = str(error.value)
    assert said.startswith(url)
    assert "by way of the proxy that the environment names" in said
    assert not code or str(code) in said
    assert "canary" not in said


def test_certificates_that_cannot_be_read_are_an_error(
    chat: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for file in ("ca.pem", "absent.pem"):
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / file))
        with pytest.raises(InputError, match=r"^SSL_CERT_FILE or SSL_CERT_DIR names certificates that cannot be read"):
            one(chat(SECURE))
