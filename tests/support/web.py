"""A Datasette with our plugin, without a network, and what must never stand on a page."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from tests.support.served import closed_at_end, is_line_1, made

TAGS = {
    "html", "head", "meta", "title", "link", "body", "main", "header", "nav", "form", "label",
    "input", "button", "select", "option", "h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr",
    "a", "b", "i", "small", "strong", "em", "s", "code", "pre", "blockquote", "ul", "ol", "li",
    "dl", "dt", "dd", "div", "span", "section", "article", "details", "summary", "table", "thead",
    "tbody", "tr", "th", "td", "abbr", "mark", "ins", "del", "figure", "figcaption", "svg", "rect",
    "dialog", "kbd", "wbr", "path", "pattern", "tfoot",
}  # fmt: skip
SCRIPT = re.compile(r"/-/static-plugins/assoc_ingest/[a-z]+\.js").fullmatch
"""What a page of ours may run: files that come with the plugin, and nothing else."""

IMAGE = re.compile(r"/\w+/-/session/[^/?]+/image\?at=[\dB:.]+&n=\d+").fullmatch
"""What a page of ours may load: images from its own route."""

_address = re.compile(r"(https?://|mailto:|/|\?|#)", re.IGNORECASE)


@dataclass(frozen=True)
class Page:
    """What came back."""

    status: int
    text: str
    headers: dict[str, str]

    @property
    def words(self) -> str:
        """The text that a reader sees, without tags, folded parts included."""
        reader = _Reader()
        reader.feed(self.text)
        return " ".join(" ".join(reader.texts).split())

    def links(self, part: str = "") -> list[str]:
        """The addresses of all links that contain `part`."""
        reader = _Reader()
        reader.feed(self.text)
        return [address for address in reader.addresses if part in address]

    def anchors(self) -> list[str]:
        """The ids on the page."""
        reader = _Reader()
        reader.feed(self.text)
        return reader.ids

    def harmful(self) -> list[str]:
        """What could act: scripts, handlers, styles, other addresses, control letters."""
        reader = _Reader()
        reader.feed(self.text)
        found = re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", self.text)
        return [*reader.harmful, *map(repr, found)]


@dataclass
class _Reader(HTMLParser):
    texts: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    harmful: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "img" and IMAGE(dict(attributes).get("src") or ""):
            return
        if tag == "script":
            self._script(dict(attributes))
            return
        if tag not in TAGS:
            self.harmful.append(f"<{tag}>")
        for name, value in attributes:
            if name.startswith("on") or name in ("style", "src", "srcdoc", "formaction"):
                self.harmful.append(f"<{tag} {name}={value}>")
            if name in ("href", "action"):
                if not _address.match(value or ""):
                    self.harmful.append(f"<{tag} {name}={value}>")
                if tag == "a":
                    self.addresses.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    def _script(self, attributes: dict[str, str | None]) -> None:
        is_ours = SCRIPT(attributes.pop("src", None) or "")
        if not (is_ours and attributes.keys() == {"nonce", "defer"}):
            self.harmful.append(f"<script {attributes}>")


class Site:
    """Datasette over some databases."""

    def __init__(self, *databases: Path, query_ms: int | None = None, **settings: Any) -> None:
        self._databases = [str(path) for path in databases]
        self._settings = settings
        self._query_ms = query_ms

    def get(self, *addresses: str) -> Page:
        """Return the last of the pages."""
        with closed_at_end():
            return asyncio.run(self._get(addresses))

    async def _get(self, addresses: tuple[str, ...]) -> Page:
        parts: dict[str, Any] = {}
        if self._settings:  # 1.0 takes who may see what from its config
            parts["config" if is_line_1() else "metadata"] = self._settings
        if self._query_ms is not None:
            parts["settings"] = {"sql_time_limit_ms": self._query_ms}
        datasette = made(*self._databases, **parts)
        await datasette.invoke_startup()
        for address in addresses:
            answer = await datasette.client.get(address)
        return Page(answer.status_code, answer.text, dict(answer.headers))
