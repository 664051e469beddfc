"""Pages in a real browser, opened from disk and offline, and what their consoles complained of."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium here: install Debian's package chromium")


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        options = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses its sandbox to root
        opened = driver.chromium.launch(executable_path=BROWSER, args=options)
        yield opened
        opened.close()


class View:
    """A page that is open, and what its console complained of."""

    def __init__(
        self, browser: Any, path: Path, scheme: str = "light", width: int = 1400, *, address: str = ""
    ) -> None:
        """Open a file, or the address at which it is served."""
        size = {"width": width, "height": 900}
        self.context = browser.new_context(color_scheme=scheme, viewport=size, offline=not address)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda shown: self.complaints.append(shown.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(address or path.as_uri())
        if path.name != "compare.html":
            self.page.wait_for_selector("body[data-ready]")

    def check_access(self) -> None:
        """Assert that axe finds nothing, the page is not wider than the screen, and the console is silent."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page, options={"preload": False}).response["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found] == []
        assert self.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert not self.complaints, "; ".join(self.complaints)
