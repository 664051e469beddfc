"""Pages of a workspace without Wikidata: own columns of subjects, and no word of QIDs that nothing has."""

import json
from pathlib import Path
from typing import Any

import pytest
from browsing import View, needs_browser
from command import Command

pytestmark = needs_browser


@pytest.fixture
def base(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    command.done("init", "shop", "--relation", "supplier:entity", "--relation", "founded:date")
    monkeypatch.chdir(tmp_path / "shop")
    Path("s.csv").write_text("name;id;Werk\nBosch;B-1;<b>Ulm</b>\nKuka;B-2;\nKuka;B-3;Hagen\n")
    rows = [
        {"SubjectEntity": name, "Relation": relation, "model": "m", "completions": [text] * 5}
        for name in ("Bosch", "Kuka")
        for relation, text in (("supplier", "Bolt; Nut"), ("founded", "1886"))
    ]
    Path("own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command.done("build", "--from", "own.jsonl", "--subjects", "s.csv", "--out", "kb")
    command.done("report", "kb")
    return Path("kb/report/index.html").absolute()


def test_an_entity_has_its_own_columns_and_nothing_lacks_a_qid(browser: Any, base: Path) -> None:
    opened = View(browser, base)
    assert "no QID" not in opened.page.inner_text("body")
    assert "linked, of those" not in opened.page.inner_text("body")
    opened.page.click("a:text-is('Bosch') >> nth=0")
    opened.page.wait_for_selector("#given")
    rows = opened.page.locator("section:has(> #given) tbody tr").all_inner_texts()
    assert rows == ["own_id\tB-1", "Werk\t<b>Ulm</b>"]
    assert opened.page.locator("section:has(> #out) tbody tr").all_inner_texts()[0].startswith("founded\t1886")
    assert "no QID" not in opened.page.inner_text("body")
    opened.page.fill("#search", "Kuka")
    opened.page.wait_for_selector("#results li")
    assert opened.page.locator("#results li").all_inner_texts() == ["Kuka 3 facts", "Kuka 3 facts"]
    opened.check_access()
    opened.context.close()
