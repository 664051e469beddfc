"""A hook of mkdocs: files of the repository's top are pages, and links to them lead to these pages.

No site is built while a document's table differs from the figures that the benchmarks wrote.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "docs"), str(ROOT)]
import hosts  # noqa: E402 (beside this file)

from eval.bench import figures  # noqa: E402 (the benchmarks' own module)

TOP = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
"""Files of the repository's top that are pages, and what they are called here."""
LEADS = TOP | {"README.md": "index.md"}
"""Files of the repository's top -> the page that a link to them leads to."""


def on_pre_build(**_: Any) -> None:
    """Refuse tables that show other figures than eval/figures.toml."""
    if found := figures.differing():
        raise PluginError("\n".join([*found, f"To mend it: {figures.MENDED}"]))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files of the repository's top."""
    for name, here in TOP.items():
        files.append(File.generated(config, here, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_post_build(config: MkDocsConfig, **_: Any) -> None:
    """Refuse a site that loads anything from another host."""
    if found := list(hosts.loaded(Path(config.site_dir))):
        raise PluginError("\n".join(found))


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Have links between files of the repository lead to their pages."""
    for name, here in LEADS.items():
        markdown = re.sub(rf"\]\((?:\.\./)?{re.escape(name)}", f"]({here}", markdown)
    return markdown.replace("](docs/", "](")


def on_page_content(html: str, **_: Any) -> str:
    """Make an empty head of a table's column a plain cell, which a screen reader passes over."""
    return html.replace("<th></th>", "<td></td>")
