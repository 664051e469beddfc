"""The page in a real browser, opened from disk: labelled by keys alone, kept, saved, and read again."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bases import ATTACK, Base, mixed, neighbours, written
from browsing import View, needs_browser

import lmkbc

pytestmark = needs_browser
FACTS = 403
PAGE = "sample/audit.html"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit")
    lmkbc.audit(written(folder / "kb", mixed()), sample=FACTS, out=folder / "sample")
    return folder


class AuditView(View):
    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    @property
    def status(self) -> str:
        return str(self.page.inner_text("#status"))

    @property
    def place(self) -> str:
        return str(self.page.inner_text("#place"))


@pytest.fixture
def opened(browser: Any, made: Path) -> Iterator[AuditView]:
    one = AuditView(browser, made / PAGE)
    yield one
    one.context.close()
    assert one.complaints == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1400)])
def test_it_is_accessible_in_every_view(browser: Any, made: Path, scheme: str, width: int) -> None:
    one = AuditView(browser, made / PAGE, scheme, width)
    one.press("y", "ArrowLeft")
    one.check_access()
    one.context.close()


def test_labels_by_keys_are_kept_saved_and_read(opened: AuditView, made: Path, tmp_path: Path) -> None:
    opened.press("y", "n", "u", "y", "ArrowLeft", "x", "ArrowLeft", " ")
    assert opened.status == f"3 of {FACTS} labelled: 1 right, 1 wrong, 1 unknown"
    assert opened.place == f"Fact 4 of {FACTS}"
    opened.page.reload()
    opened.page.wait_for_selector("body[data-ready]")
    assert (opened.status[0], opened.place) == ("3", f"Fact 4 of {FACTS}")
    opened.press("ArrowLeft")
    assert opened.place == f"Fact 3 of {FACTS}: unknown"
    with opened.page.expect_download() as coming:
        opened.press("s")
    coming.value.save_as(tmp_path / "labels.jsonl")
    assert coming.value.suggested_filename == "labels.jsonl"
    saved, empty = (
        [json.loads(line) for line in (folder / "labels.jsonl").read_bytes().splitlines()]
        for folder in (tmp_path, made / "sample")
    )
    assert [row["label"] for row in saved[:4]] == ["y", "n", "u", None]
    assert [{**row, "label": None} for row in saved] == empty
    whole = lmkbc.audit(made / "kb", labels=tmp_path / "labels.jsonl").precision[-1]
    assert (whole.right, whole.labelled, whole.unknown) == (1, 2, 1)


def test_a_right_value_and_its_source_are_kept_saved_and_decided(opened: AuditView, made: Path, tmp_path: Path) -> None:
    given = {"value": f"yes {ATTACK}", "value_id": "Q5", "source": "https://example.org/?a=1&b='2'", "quote": "n\nx"}
    opened.page.click("#more summary")
    for name, text in ({"value": "y"} | given | {"date": "2026-11-02", "reviewer": "Ann <b>"}).items():
        opened.page.fill(f"#{name}", text)
    assert opened.place.endswith(": wrong")  # a right value stands in place of a wrong one
    opened.page.focus("#quote")
    opened.press("y", "ArrowLeft")  # in a field, keys write
    assert opened.status.startswith(f"1 of {FACTS} labelled: 0 right, 1 wrong")
    opened.page.fill("#quote", given["quote"])
    opened.page.reload()
    opened.page.wait_for_selector("body[data-ready]")
    opened.press("ArrowLeft")
    assert opened.page.input_value("#value") == given["value"]
    opened.page.click("#more summary")
    opened.page.fill("#source", "javascript:alert(1)")
    assert "source: an address" in opened.page.inner_text("#invalid")
    opened.page.fill("#source", given["source"])
    assert opened.page.inner_text("#invalid") == ""
    opened.check_access()
    opened.page.focus("#after")
    opened.press("ArrowRight", "y")
    with opened.page.expect_download() as coming:
        opened.press("s")
    coming.value.save_as(tmp_path / "labels.jsonl")
    first, second, third, *_ = (json.loads(line) for line in (tmp_path / "labels.jsonl").read_bytes().splitlines())
    assert first.items() >= ({"label": "n", "date": "2026-11-02", "reviewer": "Ann <b>"} | given).items()
    assert (second["label"], second["value"], second["reviewer"], third["reviewer"]) == ("y", None, "Ann <b>", None)
    shutil.copytree(made / "kb", tmp_path / "kb")
    lmkbc.review(tmp_path / "kb", tmp_path / "labels.jsonl")
    decided = [json.loads(line) for line in (tmp_path / "kb" / "reviews.jsonl").read_bytes().splitlines()]
    assert [(one["verdict"], one["reviewed_by"]) for one in decided] == [
        ("wrong", "Ann <b>"),
        ("right", "Ann <b>"),
        ("right", "Ann <b>"),
    ]
    assert (decided[1]["source"], decided[1]["quote"]) == (given["source"], given["quote"])


def test_a_button_does_what_its_key_does(opened: AuditView) -> None:
    opened.page.click("[data-label=n]")
    opened.page.click("#before")
    assert opened.page.get_attribute("[data-label=n]", "aria-pressed") == "true"
    opened.page.focus("#clear")
    opened.press(" ")  # on a button, the key is the button's
    assert opened.status.startswith(f"0 of {FACTS}")


def test_the_replies_about_a_fact_are_shown_as_text(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = Base(tmp_path, [f"Land {n}" for n in range(10)])
    base.writes = lambda query: f"{query.subject}, {query.relation}: {ATTACK} {'x' * 5000}"
    base.build(monkeypatch, neighbours, ("country-borders", "children"))
    lmkbc.audit(base.out, sample=10, out=tmp_path / "sample")
    one = AuditView(browser, tmp_path / PAGE)
    for _ in range(10):
        fact = one.page.inner_text(".claim")
        relation = "CountryBordersCountry" if "country-borders" in fact else "PersonHasNumberOfChildren"
        texts = one.page.locator("#fact pre").evaluate_all("all => all.map((one) => one.textContent)")
        assert texts[0].startswith(f"{fact.split(' country')[0].split(' children')[0]}, {relation}: {ATTACK}")
        assert "cut: 5," in texts[0]
        assert texts[1] == "[the call failed]"
        one.press("ArrowRight")
    assert one.page.evaluate("window.broken") is None
    assert one.page.locator("#main img").count() == 0
    one.page.click("summary")
    one.check_access()
    one.context.close()


def test_no_text_of_a_model_runs(opened: AuditView) -> None:
    for _ in range(FACTS):
        opened.press("ArrowRight")
        if "onerror" in opened.page.inner_text(".claim"):
            break
    assert "onerror" in opened.page.inner_text(".claim")
    assert "cut: 10,000 characters" in opened.page.inner_text(".claim")
    assert opened.page.evaluate("window.broken") is None
    assert opened.page.locator("#main img").count() == 0
    links = opened.page.locator("#fact a").evaluate_all("all => all.map((one) => one.href)")
    assert all(link.startswith(("https://www.wikidata.org/wiki/", "https://duckduckgo.com/?q=")) for link in links)
