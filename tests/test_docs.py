"""The pages that are made of the code, and the site: all that can be set, called, scored or reproduced is there."""

import importlib.util
import re
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest
import typer

import lmkbc
from eval.bench._shape import used_settings
from lmkbc import Workspace, registry
from lmkbc.cli import build
from lmkbc.recipe import read_file

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def _loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    return _loaded("reference")


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    pytest.importorskip("mkdocs", reason="the site needs mkdocs-material: install lmkbc[docs]")
    return _loaded("pages")


@pytest.fixture(scope="module")
def prose() -> ModuleType:
    return _loaded("prose")


def test_documents_are_plain_english(prose: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert prose.main([str(page) for page in prose.pages()]) == 0, capsys.readouterr().out


def test_docstrings_are_plain_english(prose: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert prose.main([str(module) for module in prose.modules()]) == 0, capsys.readouterr().out


def test_the_linter_of_prose_finds_what_it_looks_for(prose: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    long = " ".join(["word"] * 31)
    page.write_text(f"# {long}\n\n| {long} |\n\n```\n{long}\n```\n\nShort. {long.capitalize()}.\n\n- It tells so.\n")
    assert [one.wrong.split(":")[0] for one in prose.offences(page)] == ["31 words; 30 are the most", "'tells'"]
    module = tmp_path / "module.py"
    module.write_text(
        f'"""Short."""\nSIZE = "It tells"\n"""{long}."""\ndef f():\n    """It tells so."""\n    # tells\n'
    )
    found = [(one.where, one.wrong.split(":")[0]) for one in prose.offences(module)]
    assert found == [("module.py:3", "31 words; 30 are the most"), ("module.py:5", "'tells'")]


def test_the_reference_is_as_the_code_is(reference: ModuleType) -> None:
    old = reference.differing()
    assert old == [], f"the code says something else than docs/: run '{reference.WRITTEN}', and commit what it writes"


def test_every_command_option_and_setting_is_in_the_reference(reference: ModuleType) -> None:
    page = reference.commands()
    assert [name for name in registry.COMMANDS if f"## `lmkbc {name}`" not in page] == []
    assert [name for name in registry.COMMANDS if f"[`lmkbc {name}`](#lmkbc-{name})" not in page] == []
    predict = typer.main.get_command(build()).get_command(None, "predict")  # type: ignore[attr-defined]
    options = [option for parameter in predict.params for option in parameter.opts]
    assert [option for option in options if option not in page] == []
    page = reference.recipes()
    for name in registry.GENERATORS:
        head = next(line for line in page.split("\n") if line.startswith("## `[[gen") and f'"{name}"' in line)
        section = page.split(f"{head}\n", 1)[1].split("\n## ", 1)[0]
        spec = registry.GENERATORS.get(name)
        assert [field.name for field in fields(spec) if f"| `{field.name}` |" not in section] == [], name
    for name in registry.RULES:
        section = page.split(f"### `{name}`\n", 1)[1].split("\n### ", 1)[0]
        shared = ("min", "max") if "`min` and `max` too" in section else ()
        own = [field.name for field in fields(registry.RULES.get(name)) if field.name not in shared]
        learned = section.partition("`lmkbc tune` learns ")[2]
        assert [one for one in own if f"| `{one}` |" not in section and f"`{one}`" not in learned] == [], name


def test_a_setting_of_few_recipes_is_one_that_a_guide_recommends() -> None:
    recommended = tomllib.loads((DOCS / "recommended.toml").read_text(encoding="utf-8"))
    used = used_settings()
    assert len(recommended) <= 15
    assert [name for name in recommended if len(used[name]) > 1] == [], "these need no recommendation"
    for name, (page, words) in recommended.items():
        assert words in (DOCS / page).read_text(encoding="utf-8"), name


def test_every_public_name_edition_and_published_system_is_in_the_reference(reference: ModuleType) -> None:
    space = Workspace()
    page = reference.python()
    assert [name for name in lmkbc.__all__ if f"## `{name}`" not in page] == []
    assert " at 0x" not in page
    page = reference.scores(space)
    assert [name for name in space.editions if f"\n## {name}\n" not in page] == []
    made = reference.systems.pages(space)
    for name in space.system_names():
        published = read_file(space.recipe_path(name)).published
        page = made.get(f"reference/systems/{name}.md", "")
        assert (f"](systems/{name}.md)" in made["reference/systems.md"]) == bool(page) == bool(published)
        assert [place for place in published if f"| {place} |" not in page] == []


def test_the_site_s_configuration_is_valid(pages: ModuleType) -> None:
    from mkdocs.config import load_config

    config = load_config(str(ROOT / "mkdocs.yml"))
    assert config.strict
    assert config.nav


@pytest.mark.parametrize("dark", [False, True])
def test_the_diagram_can_be_read(dark: bool) -> None:
    style = (ROOT / "docs" / "steps.svg").read_text().partition("</style>")[0]
    light, _, own = style.partition("(prefers-color-scheme: dark)")
    fills = dict(re.findall(r"([.\w]+) \{[^}]*?fill: (#[0-9a-f]+)", light + own if dark else light))
    pairs = [("text", "rect"), (".name", "rect"), ("text", ".page"), ("polygon", ".page")]
    contrasts = {pair: _contrast(fills[pair[0]], fills[pair[1]]) for pair in pairs}
    assert {pair: found for pair, found in contrasts.items() if found < 4.5} == {}


def _contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG 2."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_the_site_leads_to_every_page(pages: ModuleType) -> None:
    nav = (ROOT / "mkdocs.yml").read_text()
    written = [path.name for path in (ROOT / "docs").glob("*.md")]
    assert [name for name in (*written, *pages.TOP.values()) if f": {name}\n" not in nav] == []
    shown = "[a](docs/build.md), [b](../CONTRIBUTING.md), [c](README.md#x)"
    assert pages.on_page_markdown(shown) == "[a](build.md), [b](contributing.md), [c](index.md#x)"


def test_what_a_site_loads_from_elsewhere_is_found(pages: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text('<a href="https://a.example">a</a><img src="b.png"><link rel="canonical" href="https://c.example">')
    script = tmp_path / "theme.js"
    script.write_text('load("https://unpkg.com/mermaid@11/dist/mermaid.min.js")')
    assert list(pages.hosts.loaded(tmp_path)) == []
    page.write_text('<pre class="mermaid"></pre><img src="//d.example/e.png"><script>f("https://g.example")</script>')
    (tmp_path / "font.css").write_text("@import 'https://h.example/i.css'; b { src: url(https://j.example/k) }")
    assert list(pages.hosts.loaded(tmp_path)) == [
        "font.css loads https://h.example/i.css",
        "font.css loads https://j.example/k",
        "index.html loads //d.example/e.png",
        "index.html loads https://g.example",
        "theme.js loads https://unpkg.com/mermaid@11/dist/mermaid.min.js",
    ]


def test_a_table_s_cell_holds_no_markup(reference: ModuleType) -> None:
    assert reference.cell("a | <b>\n c") == "a \\| &lt;b> c"
