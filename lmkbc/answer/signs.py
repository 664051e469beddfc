"""Signs around an answer that are none of it: of vocabularies, LaTeX, links, references, flags and other scripts."""

from __future__ import annotations

import html
import re
import unicodedata
from functools import lru_cache

_BYTE_LEVEL = re.compile(r"[^\sĠ]Ġ|Ċ|^Ġ+[A-Z\d\[{\"']")
"""Blanks and line ends of byte-level BPE; at the start of a Maltese word, "Ġ" is a letter."""
_BYTES = re.compile(r"(?:<0x[0-9A-Fa-f]{2}>)+")
_UNSEEN = re.compile(
    "(?<![^\\x00-\\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\\x00-\\x7f])|[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]"
)
_WIDE = str.maketrans(
    {
        **dict(zip("，、；：（）［］｛｝＝｜＂＇．،؛", ",,;:()[]{}=|\"'.,;", strict=True)),
        **{chr(0xFF10 + digit): str(digit) for digit in range(10)},
        **dict.fromkeys("▁\u3000", " "),
        **dict.fromkeys("\u2028\u2029\x85", "\n"),
        **dict.fromkeys("─━═", "-"),
        **dict.fromkeys("│┃║┼├┤┌┐└┘┬┴╔╗╚╝╠╣╬╦╩", "|"),
    }
)
"""Signs of other scripts, blanks, line ends and lines of tables -> their plain forms."""
_KEYCAP = re.compile("(\\d)\ufe0f?\u20e3")
_CIRCLED = re.compile("[\u2460-\u2473\u2776-\u277f\u2780-\u2793]")
_UNPRINTED = re.compile(
    "\x1b\\[[0-9;]*[A-Za-z]|\ue200[^\ue201]*\ue201?|[\ue000-\uf8ff]|(?:(?<=\\s)|\\A):[a-z][a-z0-9_+-]{1,30}:(?=\\s)"
)
"""Escapes of terminals, marks in the private area, and names of pictures."""
_STOP = re.compile(r"(?<=[\x00-\x7fÀ-ɏ])。(?=\s|$|[,;])")
_PICTURE = re.compile(
    "[\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff\u2600-\u2604\u2607-\u26ff\u2700-\u2712\u2715-\u27bf\u2b00-\u2bff]"
    "[\ufe0f\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*[ \t]*"
)
_NOT_TICKED = re.compile(r"^[ \t]*(?:[-*•][ \t]+)?(?:\[ \]|[❌✗✘☐🚫❎✖×]\ufe0f?)[^\n]*(?:\n|\Z)", re.MULTILINE)
_TICKED = re.compile(r"^[ \t]*((?:[-*•][ \t]+)?)(?:\[[xX✓✔]\]|[✅✓✔☑]\ufe0f?)", re.MULTILINE)
_STRUCK = re.compile(r"~~[^~\n]{1,300}~~")
_LINKS = (
    (re.compile(r"^[ \t]*\[\^?\w{1,20}\]:[^\n]*$\n?", re.MULTILINE), ""),
    (
        re.compile(
            r"</?co(?::[^<>\n]{0,20})?>|\[cite_(?:start|end)\]|\[/?(?:b|i|u|s|url|list|quote|code|size|color)(?:=[^\]\n]*)?\]"
        ),
        "",
    ),
    (re.compile(r"^[ \t]*\[\*\]", re.MULTILINE), "- "),
    (re.compile(r"(?<=\d)\\(?=[.)])|^[ \t]*\\(?=[*+#-])", re.MULTILINE), ""),
    (re.compile(r"!\[[^\]\n]*\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)"), ""),
    (
        re.compile(
            r"""\[(?!\^?\d+\])((?:[^\[\]"'\n]|(?<=\w)['’](?=\w)){1,300})\](?:\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+"[^"\n]*")?\)|\[\w{1,20}\])"""
        ),
        r"\1",
    ),
    (re.compile(r"""\[\[(?:[^\[\]"'|\n]{1,300}\|)?([^\[\]"'|\n]{1,300})\]\]"""), r"\1"),
    (re.compile(r"""(?<=[\])\w]),\s*\[{1,2}[^\[\]\n"']*\Z"""), ","),
    (
        re.compile(
            r"""<https?://[^\s<>]+>|\(https?://[^\s()]*(?:\([^()\s]*\)[^()\s]*)*\)|(?<!["'])\bhttps?://[^\s"'<>)\]]+"""
        ),
        "",
    ),
)
_REFERENCE = re.compile(
    r"(?<=[^\s:=\[({,;])(?:[ \t]*(?:\[\^?\d{1,3}(?:\s*[,–-]\s*\d{1,3})*\]|\[\^\w{1,20}\]|【[^】\n]{1,60}】"
    r"|\[(?:citation needed|cite[^\]\n]{0,40}|source|ref|note \d+|\w)\]))+(?!\()|(?<=[A-Za-zÀ-ɏ])[¹²³⁴⁵⁶⁷⁸⁹⁰]+(?![\w])",
    re.IGNORECASE,
)
_SOURCES = re.compile(
    r"(?:\A|\n)[^\w\n]*(?:sources?|references?|footnotes?|citations?|bibliography)[^\w\n]*(?::|\n)", re.IGNORECASE
)
"""The head of a list of sources behind an answer."""
_AREA = re.compile(r"(?<=[kcdmt])[mi][²³]$|(?<=\b)m[²³]$", re.IGNORECASE)
_RAISED = re.compile(r"\^\{([^{}]*)\}")
_BOXED = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{")
_LATEX = (
    (re.compile(r"\\(?:text\w*|math\w*|emph|mbox|operatorname|underline|ensuremath|bf|it)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\hline|\\(?:top|mid|bottom)rule\b|\\begin\{(?:tabular|array)\}\{[^{}]*\}"), " "),
    (re.compile(r"\\begin\{[^{}]*\}|\\end\{[^{}]*\}|\\(?:left|right|displaystyle|big|Big|quad|qquad)\b(?!\w)"), " "),
    (re.compile(r"\\(?:text\w*|math\w*|mbox)\s*\{"), ""),
    (re.compile(r"\\(?:emptyset|varnothing)\b"), "∅"),
    (re.compile(r"\\item\b"), "\n- "),
    (re.compile(r"\\[ ,;:!]|~(?=\S)(?<=\S~)"), " "),
    (re.compile(r"\\(?:times|cdot)\b"), "×"),
    (re.compile(r"\\(?:approx|sim|simeq)\b"), "~"),
    (re.compile(r"\^\s*\{?\\(?:circ|degree)\}?|\\degree\b"), "°"),
    (re.compile(r"\\([%&_#${}])"), r"\1"),
    (re.compile(r"\\[()\[\]]|\\\\"), " "),
    (re.compile(r"\$\$?([^$\n]*)\$\$?"), r"\1"),
)


def without_signs(text: str) -> str:
    """Return an answer without signs that only carry it: its names and numbers, lists and lines stay."""
    if (sources := _SOURCES.search(text)) and text[: sources.start()].strip():
        text = text[: sources.start()]
    text = _UNPRINTED.sub("", text)
    if "\n" not in text and text[:1] not in ('"', "{", "["):
        text = re.sub(r"\\n(?=[A-Z*\d-])", "\n", text)
    if "Ġ" in text or "Ċ" in text:
        text = _from_bytes(text)
    text = _RAISED.sub(r"^\1", text.replace("{,}", ","))
    if text.isascii() and not any(mark in text for mark in "\\$[<&^~"):
        return text
    text = _BYTES.sub(lambda raw: bytes.fromhex(re.sub(r"<0x|>", "", raw[0])).decode(errors="replace"), text)
    text = html.unescape(text) if "&" in text else text
    text = _CIRCLED.sub(lambda one: f"{unicodedata.digit(one[0], 0) or int(unicodedata.numeric(one[0]))}. ", text)
    text = _STOP.sub("", _KEYCAP.sub(r"\1. ", _UNSEEN.sub("", text).translate(_WIDE)))
    if "\\" in text or "$" in text:
        text = _from_latex(text)
    if _TICKED.search(text):
        text = _TICKED.sub(r"\1", _NOT_TICKED.sub("", text))
    text = _STRUCK.sub("", text)
    for pattern, kept in _LINKS:
        text = pattern.sub(kept, text)
    text = _REFERENCE.sub(_kept_power, text)
    return _PICTURE.sub("", text) if re.search(r"\w", _PICTURE.sub("", text)) else text


def _kept_power(mark: re.Match[str]) -> str:
    """Return a raised figure behind a unit, as in "km²"; "" for the mark of a reference."""
    return (
        mark[0] if mark[0][0] in "²³" and _AREA.search(mark.string[max(0, mark.start() - 3) : mark.start() + 1]) else ""
    )


def _from_latex(text: str) -> str:
    text = re.sub(r"\\textsuperscript\s*\{([^{}]*)\}", r"^\1", re.sub(r"(?<=\S)\s?\\\[\d{1,2}\\\]", "", text))
    if boxes := list(_boxes(text)):
        text = ", ".join(boxes)
    elif not re.search(r"\\(?![\"'/nrtu])|\$[^$\n]*\$", text):
        return text
    before = None
    while text != before:
        before = text
        text = _LATEX[0][0].sub(_LATEX[0][1], text)
    if re.search(r"\\begin\{(?:tabular|array)", text):
        text = re.sub(r"^([^\n&]*(?<!\\)&[^\n]*?)\\\\", _row, text, flags=re.MULTILINE)
    for pattern, kept in _LATEX[1:]:
        text = pattern.sub(kept, text)
    return text.strip()


def _row(line: re.Match[str]) -> str:
    cells = re.sub(r"(?<!\\)&", "|", line[1])
    return f"| {cells} |"


def _boxes(text: str) -> list[str]:
    """Return what stands in the last boxes that follow each other, with balanced braces."""
    found: list[str] = []
    end = None
    for match in _BOXED.finditer(text):
        if end is not None and match.start() < end:
            continue
        if end is not None and re.sub(r"and|[\s,;$&]", "", text[end : match.start()]):
            found = []
        depth, at = 1, match.end()
        while at < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        found.append(text[match.end() : at - (not depth)])
        end = at
    return found


@lru_cache(maxsize=1)
def _alphabet() -> dict[str, int]:
    """Return the letters of byte-level BPE: printable bytes stand for themselves, the others from U+0100 on (GPT-2)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + at): byte for at, byte in enumerate(others)}


def _from_bytes(text: str) -> str:
    """Return the text that a byte-level vocabulary spells; unchanged if it is none."""
    if not _BYTE_LEVEL.search(text):
        return text
    letters = _alphabet()
    if all(letter in letters for letter in text):
        return bytes(letters[letter] for letter in text).decode(errors="replace")
    return text.replace("Ġ", " ").replace("Ċ", "\n")
