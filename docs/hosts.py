"""What a browser would load from another host when it opens the built site: nothing may be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

HOST = re.compile(r"\s*(?:https?:)?//", re.IGNORECASE)
IN_STYLE = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)", re.IGNORECASE)
IN_SCRIPT = re.compile(r"[\"'`](https?://[^\"'`$\s]+)")
LINKS = {"a", "area"}
"""Elements whose address is followed by a click alone."""
NOT_LOADED = {"canonical", "alternate", "next", "prev", "author", "license"}
"""Relations of <link> that load nothing."""
SAID = ("http://www.w3.org/",)
"""Names of namespaces, which are no addresses."""
DORMANT = {
    "https://unpkg.com/mermaid@": re.compile(r"class=\"?mermaid"),
    "https://unpkg.com/resize-observer-polyfill": None,
    "https://api.github.com/": re.compile(r"data-md-component=\"?source\""),
}
"""Addresses in the theme's script -> what on a page makes it load them. None: only a browser from before 2020 does."""


class _Page(HTMLParser):
    """Addresses of other hosts that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what the element loads."""
        given = {name: value or "" for name, value in attrs}
        if tag in LINKS or (tag == "link" and set(given.get("rel", "").split()) <= NOT_LOADED):
            return
        places = [given.get(name, "") for name in ("src", "href", "data", "poster", "action")]
        places += given.get("srcset", "").split(",")
        self.found += [place.strip() for place in places if HOST.match(place)]


def loaded(site: Path) -> Iterator[str]:
    """Yield a line for each file of a site and each address of another host that it loads."""
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    awake = {start for start, mark in DORMANT.items() if mark and any(map(mark.search, pages.values()))}
    for path in sorted(one for one in site.rglob("*") if one.suffix in {".html", ".css", ".js", ".svg"}):
        text = path.read_text(encoding="utf-8")
        for place in dict.fromkeys(_places(path, text)):
            known = next((start for start in DORMANT if place.startswith(start)), None)
            if not place.startswith(SAID) and (known is None or known in awake):
                yield f"{path.relative_to(site)} loads {place}"


def _places(path: Path, text: str) -> list[str]:
    if path.suffix == ".js":
        return IN_SCRIPT.findall(text)
    page = _Page()
    if path.suffix in {".html", ".svg"}:
        page.feed(text)
    inline = re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL) if path.suffix == ".html" else []
    return page.found + IN_STYLE.findall(text) + [place for code in inline for place in IN_SCRIPT.findall(code)]
