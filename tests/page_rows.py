"""What the script of a run's page reads: its rows, and what they refer to."""

import base64
import gzip
import json
import re
from typing import Any


def held(page: str) -> dict[str, Any]:
    about = re.search(r'id="data">(.*?)</script>', page)
    parts = re.findall(r'class="part">([A-Za-z0-9+/=]+)</script>', page)
    assert about
    content: dict[str, Any] = {**json.loads(about[1]), "traces": [], "entities": {}, "rows": []}
    for part in parts:
        for name, values in json.loads(gzip.decompress(base64.b64decode(part))).items():
            content[name] = {**content[name], **values} if name == "entities" else [*content[name], *values]
    return content
