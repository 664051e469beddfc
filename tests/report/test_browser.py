"""The page in a real browser, opened from disk: filters, sorts, opens rows, in both schemes and widths, by keyboard."""

import csv
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hostile
import pytest
from browsing import View, needs_browser
from typer.testing import CliRunner

import lmkbc
from lmkbc.cli import build

pytestmark = needs_browser
VIEWS = [("light", 400), ("dark", 1400)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    run, gold, replies = hostile.run(folder)
    other = folder / "other.jsonl"
    other.write_text((run / "predictions.jsonl").read_text().replace("Q1", "Q2"))
    made = {"report": run / "report.html", "compare": folder / "compare.html"}
    for words in (
        ("report", run, "--gold", gold, "--from", replies, "--index", hostile.index(folder)),
        ("compare", run, other, "--gold", gold, "--html", made["compare"]),
    ):
        done = CliRunner().invoke(build(), list(map(str, words)))
        assert done.exit_code == 0, done.output
    return made


@pytest.fixture(scope="module")
def knowledge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lmkbc.report(hostile.base(tmp_path_factory.mktemp("base")).out).path


class ReportView(View):
    @property
    def subjects(self) -> list[str]:
        return list(self.page.locator("#body .open").all_inner_texts())

    def status(self, text: str) -> None:
        self.page.wait_for_function("text => document.getElementById('status').textContent.startsWith(text)", arg=text)


@pytest.fixture
def view(browser: Any, files: dict[str, Path]) -> Iterator[ReportView]:
    opened = ReportView(browser, files["report"])
    yield opened
    opened.context.close()
    assert opened.complaints == []


@pytest.mark.parametrize(
    ("name", "scheme", "width"),
    [
        pytest.param(name, *view, marks=() if (name == "report") == (view == VIEWS[-1]) else pytest.mark.whole)
        for name in ("report", "compare")
        for view in VIEWS
    ],
)
def test_it_is_accessible_in_every_view(
    browser: Any, files: dict[str, Path], name: str, scheme: str, width: int
) -> None:
    opened = ReportView(browser, files[name], scheme, width)
    if name == "report":
        opened.page.locator("#body .open").nth(3).click()
    opened.check_access()
    opened.context.close()


def test_a_phone_shows_f1_without_scrolling(browser: Any, files: dict[str, Path]) -> None:
    opened = ReportView(browser, files["report"], width=390)
    heads = opened.page.locator("h2#relations + .wide thead th")
    box = heads.filter(has_text="F1").first.bounding_box()
    assert box["x"] + box["width"] <= 390
    opened.context.close()


@pytest.mark.parametrize("name", ["report", "compare", "knowledge"])
def test_no_column_hides_without_a_sign(browser: Any, files: dict[str, Path], knowledge: Path, name: str) -> None:
    for width in (390, 1400):
        opened = ReportView(browser, (files | {"knowledge": knowledge})[name], width=width)
        hidden, wider, framed = opened.page.evaluate(
            """() => [
              [...document.querySelectorAll("th")].filter((head) => getComputedStyle(head).display === "none").length,
              [...document.querySelectorAll(".wide")].filter((frame) => frame.scrollWidth > frame.clientWidth + 1)
                .map((frame) => getComputedStyle(frame).backgroundImage.split("linear-gradient").length - 1),
              [...document.querySelectorAll("table")].filter((table) => !table.closest(".wide"))
                .every((table) => table.getBoundingClientRect().right <= innerWidth),
            ]"""
        )
        assert hidden == 0
        assert framed
        assert wider == [] if width == 1400 else wider and {*wider} == {4}  # a shadow at an edge beyond which is more
        opened.context.close()


def test_rows_are_filtered_by_relation_error_and_text(view: ReportView) -> None:
    view.status("120 of 120")
    view.page.select_option("#relation", hostile.RELATIONS[0])
    view.status("60 of 120")
    view.page.select_option("#error", label="answered, where gold is empty")
    view.status("6 of 120")
    view.page.fill("#search", "SUBJECT 013")
    view.status("1 of 120")
    assert view.subjects == ["subject 013"]
    view.page.click("text=Show all")
    view.status("120 of 120")


def test_a_count_of_dropped_objects_is_a_link_to_their_rows(view: ReportView) -> None:
    view.page.locator("tr", has_text="outside of the relation's list").locator("a").press("Enter")
    view.status("80 of 120")
    assert view.page.locator("#error option:checked").inner_text() == "outside of the relation's list"
    view.page.locator("#body .open").first.click()
    lost = view.page.locator("tr.detail table", has_text="Left out before linking").locator("tbody tr").first
    assert "<script>" in lost.inner_text()
    assert "outside of the relation's list" in lost.inner_text()
    view.page.select_option("#error", label="without a QID")
    view.status("120 of 120")


def test_every_link_of_the_contents_leads_to_a_part(view: ReportView) -> None:
    links = view.page.eval_on_selector_all(".contents a", "all => all.map(one => one.hash)")
    assert len(links) > 5
    assert all(view.page.locator(f"h2{link}").count() == 1 for link in links)


def test_replies_are_searched_too(view: ReportView) -> None:
    view.page.fill("#search", "7 * 7 }}</script>\u2028xxxxxxxxx")
    view.status("120 of 120")


def test_rows_are_sorted_both_ways(view: ReportView) -> None:
    button = view.page.locator("[data-sort=subject]")
    button.click()
    first = view.subjects
    assert first[2:] == sorted(first[2:])
    button.click()
    assert view.subjects[:2] == ["subject 059"] * 2
    assert button.locator("..").get_attribute("aria-sort") == "descending"


def test_a_row_opens_and_closes_by_keyboard(view: ReportView) -> None:
    row = view.page.locator("#body .open", has_text="subject 001").first
    row.focus()
    view.page.keyboard.press("Enter")
    assert row.get_attribute("aria-expanded") == "true"
    detail = view.page.locator("tr.detail").inner_text()
    assert "Gold" in detail
    assert "object 1" in detail
    assert "1,000,0" in detail  # the reply of a megabyte is cut, and says so
    view.page.keyboard.press("Space")
    assert view.page.locator("tr.detail").count() == 0


def test_an_open_row_tells_why_each_name_has_its_link(view: ReportView) -> None:
    view.page.fill("#search", "subject 002")
    view.status("2 of 120")
    view.page.locator("#body .open").first.click()
    kept = view.page.locator("tr.detail table", has_text="Kept").locator("tbody tr").first
    assert "Q502" in kept.inner_text()
    assert "the index: " in kept.inner_text()
    assert "wrong link\ngold has Q3" in kept.inner_text()
    others = kept.locator("details")
    assert "Q3 <script>" not in others.inner_text()
    others.locator("summary").click()
    assert "Q3 <script>" in others.inner_text()


def test_what_is_shown_stands_in_the_address_and_a_link_shows_it_again(
    browser: Any, files: dict[str, Path], view: ReportView
) -> None:
    view.page.locator('a[href="#error=5"]').first.press("Enter")
    view.status("12 of 120")
    view.page.locator("#body .open").nth(3).click()
    subject = view.subjects[3]
    assert view.page.evaluate("history.length") == 2  # the link is a step back, an opened row is none
    again = ReportView(browser, files["report"])
    again.page.goto(view.page.url)
    again.page.reload()
    again.status("12 of 120")
    again.page.wait_for_selector("tr.detail")
    assert again.page.locator("#body .open[aria-expanded=true]").inner_text() == subject
    again.context.close()


def test_pages_are_turned(view: ReportView) -> None:
    before = view.subjects
    view.page.click("#after")
    assert view.page.inner_text("#page") == "Page 2 of 3"
    assert view.subjects != before
    view.page.click("#before")
    assert view.subjects == before


def test_no_text_of_a_model_runs(view: ReportView) -> None:
    view.page.fill("#search", "onerror")
    for row in range(view.page.locator("#body .open").count())[:4]:
        view.page.locator("#body .open").nth(row).click()
    assert view.page.evaluate("window.broken") is None
    assert view.page.locator("#main img").count() == 0


@pytest.fixture
def base(browser: Any, knowledge: Path) -> Iterator[ReportView]:
    opened = ReportView(browser, knowledge)
    yield opened
    opened.context.close()
    assert opened.complaints == []


@pytest.mark.parametrize(
    ("scheme", "width", "views"),
    [
        ("light", 390, ("#Q9",)),
        ("dark", 1400, ("",)),
        pytest.param("light", 390, ("", "#facts", "#class=person"), marks=pytest.mark.whole),
        pytest.param("dark", 1400, ("#facts", "#Q1032", "#class=person"), marks=pytest.mark.whole),
    ],
)
def test_a_base_is_accessible(browser: Any, knowledge: Path, scheme: str, width: int, views: tuple[str, ...]) -> None:
    opened = ReportView(browser, knowledge, scheme, width)
    for fragment in views:
        opened.page.evaluate("fragment => { location.hash = fragment }", fragment)
        opened.page.wait_for_function("text => document.body.dataset.shown === text", arg=fragment[1:])
        opened.check_access()
    opened.context.close()


def test_a_base_s_page_holds_no_script_style_or_address_of_data(knowledge: Path) -> None:
    page = knowledge.read_text(encoding="utf-8")
    assert re.findall(r"<script[^>]*>(.*?)</script>", page, flags=re.DOTALL) == [""]
    tags = re.findall(r"<[^>]*>", page)
    assert not re.search(r"""<style|\sstyle=|\son[a-z]+=|["'(]data:|javascript:""", "".join(tags))
    script = (knowledge.parent / "page.js").read_text(encoding="utf-8")
    assert not re.search(r"\beval\(|new Function|innerHTML|document\.write", script)


def test_a_name_is_found_and_its_entity_shown_and_the_way_back_leads_to_the_overview(base: ReportView) -> None:
    base.page.fill("#search", "jamahir")
    base.page.locator("#results a", has_text="Libyan Jamahiriya").wait_for()
    base.page.keyboard.press("Enter")
    base.page.locator("#entity h2", has_text="Libya").wait_for()
    assert base.page.url.endswith("#Q1016")
    shown = base.page.inner_text("#entity")
    assert "Also called: Libyan Jamahiriya" in shown
    assert "Answered with nothing: 1" in shown
    base.page.click("#entity a:text-is('Niger')")
    base.page.locator("#entity h2", has_text="Niger").wait_for()
    assert "[the call failed]" not in base.page.inner_text("#entity")
    assert "Without an answer: 1" in base.page.inner_text("#entity")
    base.page.go_back()
    base.page.locator("#entity h2", has_text="Libya").wait_for()
    base.page.go_back()
    base.page.locator("#overview").wait_for()
    assert base.page.locator("#entity").is_hidden()


def heading(view: ReportView, text: str) -> None:
    view.page.locator("#entity h3#all", has_text=re.compile(f"^{re.escape(text)}$")).wait_for()


def test_all_facts_are_filtered_sorted_and_saved(base: ReportView) -> None:
    base.page.click(".contents a[href='#facts']")
    whole = base.page.locator("#overview .tiles strong").first.text_content()
    heading(base, f"Facts: {whole}")
    relation, confidence = (base.page.locator("#entity .filters select").nth(at) for at in (0, 2))
    relation.select_option(index=2)  # country-borders, behind children
    confidence.select_option(index=3)  # at least 0.7
    some = base.page.locator("#all").inner_text()
    assert some.endswith(f" of {whole}")
    number = int(some.split()[1])
    base.page.click("#entity thead button:text-is('subject')")
    rows = base.page.locator("#entity tbody tr")
    subjects = [rows.nth(at).locator("td").nth(1).inner_text() for at in range(min(number, 50))]
    assert subjects == sorted(subjects, key=str.casefold)
    with base.page.expect_download() as saved:
        base.page.click("text=Download CSV")
    with saved.value.path().open(newline="", encoding="utf-8") as file:
        held = list(csv.DictReader(file))
    assert len(held) == number
    assert {row["relation"] for row in held} == {"country-borders"}
    assert {float(row["confidence"]) >= 0.7 for row in held} == {True}


def test_a_relation_and_a_class_have_pages(base: ReportView) -> None:
    base.page.click("#of-relations a[href='#relation=children']")
    base.page.locator("#entity h2", has_text="children").wait_for()
    assert base.page.locator("#entity [data-relation]").count() == 1
    kinds = base.page.locator("#entity tbody tr td:nth-child(3)").all_inner_texts()
    assert kinds  # numbers
    base.page.click("#entity p a[href^='#class=']")
    base.page.locator("#entity h3", has_text="As subjects").wait_for()
    assert base.page.locator("#entity h2").inner_text() == "person"
    base.page.go_back()
    base.page.locator("#entity h2", has_text="children").wait_for()


def test_an_entity_of_many_facts_is_shown_in_pages(browser: Any, knowledge: Path) -> None:
    opened = ReportView(browser, knowledge)
    opened.page.goto(f"{knowledge.as_uri()}#Q9")
    rows = opened.page.locator("#in + * tbody tr")
    rows.first.wait_for()
    assert rows.count() == 50
    opened.page.click("text=Next")
    assert rows.count() == hostile.MANY - 50
    opened.context.close()


def test_no_name_of_a_base_runs_or_is_shown_whole_where_it_is_long(base: ReportView) -> None:
    base.page.fill("#search", hostile.ATTACK)
    base.page.locator("#results a").wait_for()
    base.page.keyboard.press("Enter")
    base.page.locator("#entity h2", has_text="<script>").wait_for()
    long = base.page.locator("#entity td a", has_text="Long x")
    assert "cut: 10005 characters in all" in long.inner_text()
    long.click()
    base.page.locator("#entity h2", has_text="Long x").wait_for()
    assert len(base.page.inner_text("#entity h2")) < 300
    assert base.page.evaluate("window.broken") is None
    assert base.page.locator("#main img").count() == 0


def test_what_is_not_there_is_named(browser: Any, knowledge: Path, tmp_path: Path) -> None:
    shutil.copytree(knowledge.parent, tmp_path / "copy")
    opened = ReportView(browser, tmp_path / "copy" / "index.html")
    opened.page.evaluate("location.hash = 'Q4711'")
    opened.page.locator("#entity", has_text="The base holds nothing of it").wait_for()
    (tmp_path / "copy" / "names" / "1.js").write_text('piece("names/1","damaged")')
    opened.page.fill("#search", "chad")
    opened.status("The file names/1.js beside this page is missing or damaged.")
    opened.context.close()
