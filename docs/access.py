"""Whether the built site is accessible: axe in Chromium on every page, light on a desk and dark on a phone.

    make docs && python docs/access.py [PAGE ...]

Prints each rule that a page breaks, with its first place, and pages that are wider than the screen. Exit 1 if any is.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

SITE = Path(__file__).resolve().parent.parent / "site"
VIEWS = (("light", 1400), ("dark", 390))
WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Write no line for each request."""


def broken(browser: Any, base: str, pages: list[str], scheme: str, width: int) -> Iterator[str]:
    """Yield a line for each rule that a page breaks."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    for name in pages:
        page.goto(f"{base}/{name}/")
        for rule in Axe().run(page).response["violations"]:
            yield f"{name}, {scheme}, {width} px: {rule['id']}, {len(rule['nodes'])} x {rule['nodes'][0]['html'][:200]}"
        if page.evaluate(WIDER):
            yield f"{name}, {scheme}, {width} px: wider than the screen"


def main(argv: list[str]) -> int:
    """Try the pages named, else all, and return the exit status."""
    pages = argv or sorted(str(path.parent.relative_to(SITE)) for path in SITE.rglob("index.html"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(SITE)))
    Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as driver:
        options = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses its sandbox to root
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        base = f"http://127.0.0.1:{server.server_port}"
        found = [line for scheme, width in VIEWS for line in broken(browser, base, pages, scheme, width)]
    print("\n".join([*found, f"{len(pages)} pages in {len(VIEWS)} views: {len(found)} rules broken"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
