"""Messages as a file to keep shows them: as the pages do, with all of their texts and images."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from markupsafe import Markup

from ..ask import message_text, tool_calls
from ..ask.conversation import Message, Subagent
from ..ask.export import ExportedConversation
from ..terminal import one_line, readable
from .budget import Budget, WholeText
from .entries import Entries, Entry, Nested
from .html import joined, shortened
from .tool_input import fields

LARGEST_IMAGE = 3_000_000
"""Characters of base64 of one image, about 2 MB; a larger one is left out."""

_ALL_IMAGES = 40_000_000  # characters of base64 of all images of a file
_LEVELS = 20  # of subagents inside each other; a deeper one is at the end
_SHOWN_ARGUMENTS = {"old_string", "new_string", "new_source", "content"}  # in a difference


class ExportedEntries(Entries):
    """Entries with all of their texts. A subagent is not in its entry: `_Page` writes it there."""

    def __init__(self, conversation: ExportedConversation) -> None:
        super().__init__(conversation, budget=WholeText())
        self._exported = conversation
        self._room_for_images = _ALL_IMAGES

    def new_in(self, level: int, call: int) -> list[Subagent]:
        """Return the subagents that a call spawned and that are not shown yet."""
        found = self._spawned.get(call, ()) if level < _LEVELS else ()
        return self.new(found)

    def new(self, subagents: Iterable[Subagent]) -> list[Subagent]:
        """Return those that are not shown yet; from now on they are."""
        new = [one for one in subagents if one.id not in self._shown]
        self._shown.update(one.id for one in new)
        return new

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Write messages of a subagent: without the days, which are those around it."""
        day, self._day = self._day, "nested"
        yield
        self._day = day

    def nested_all(self, subagents: Sequence[Subagent]) -> tuple[list[Nested], int]:
        """Return nothing: a long one would be in memory."""
        return [], 0

    def _entry(self, message: Message) -> Entry:
        entry = super()._entry(message)
        if entry.shape == "typed":  # whoever reads the file may be someone else
            entry.who = entry.who.replace("You", "User")
        return entry

    def _call(self, message: Message) -> Entry:
        entry = super()._call(message)
        entry.body += _rest_of_input(message, self._budget)
        if message.result_id is not None and entry.result is not None:
            entry.result += self._images(message.result_id, str(entry.result))
        if output := self._exported.output_file(message):
            whole = shortened(output, self._budget)
            entry.result = (entry.result or Markup("")) + _WHOLE_OUTPUT.format(whole)
        return entry

    def _aside(self, message: Message) -> Entry:
        if message.kind == "image":
            entry = self._new(message, "aside", "Image")
            entry.body = self._images(message.id, message.content)
            entry.body = entry.body or Markup('<p class="ai-image">{}</p>').format(
                readable(message.content)
            )
            return entry
        entry = super()._aside(message)
        if message.kind == "task_notification":  # of which a page shows the summary
            entry.summary = entry.summary or one_line(
                message_text.heard(message.kind, message.content)
            )
            entry.body = shortened(message.content.strip(), self._budget)
        if message.kind == "thinking":
            entry.summary = entry.summary or one_line(message.content)
        return entry

    def _images(self, message: int, text: str) -> Markup:
        shown = []
        for image in self._exported.images(message, text):
            if not image.data or len(image.data) > min(LARGEST_IMAGE, self._room_for_images):
                shown.append(_NO_IMAGE.format(image.placeholder))
                continue
            self._room_for_images -= len(image.data)
            shown.append(_IMAGE.format(image.media_type, image.data, image.placeholder))
        return joined(shown)


def _rest_of_input(message: Message, budget: Budget) -> Markup:
    """Return what the shape in which a page shows an input leaves out of it."""
    arguments = tool_calls.arguments_of(message)
    if tool_calls.changes_files(message) and not isinstance(arguments.get("edits"), list):
        rest = {key: one for key, one in arguments.items() if key not in _SHOWN_ARGUMENTS}
        return fields(rest, budget)
    is_list = tool_calls.things_to_do(message) is not None
    if is_list or (tool_calls.changes_files(message) and arguments):
        whole = json.dumps(arguments, ensure_ascii=False, indent=2)
        return _INPUT.format(shortened(whole, budget))
    return Markup("")


_WHOLE_OUTPUT = Markup('<div class="ai-label">Whole output, from its own file</div>{}')
_INPUT = Markup('<details><summary class="ai-facts">Input as JSON</summary>{}</details>')
_IMAGE = Markup('<img class="ai-picture" src="data:{};base64,{}" alt="{}">')
_NO_IMAGE = Markup('<p class="ai-image">{}: too large for this file, or not an image</p>')
