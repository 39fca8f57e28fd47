"""An invented agent, Letters, whose files are like those of none that assoc-ingest reads.

Each day is a conversation:

```
letters/<day>.jsonl
```

The first line states the model, where the letters were written, and which day they go on from; no
other line repeats it. What was spent is stated cumulatively. A tool may be given several papers.

```json
{"model":"quill-2","desk":"/srv/garden","answers":"2026-03-01"}
{"timestamp":"2026-03-02T08:00:00.000Z","by":"person","words":"Are the seeds sown?"}
{"timestamp":"2026-03-02T08:00:05.000Z","by":"quill","words":"All of them.","spent":[100,20]}
{"timestamp":"2026-03-02T08:00:06.000Z","by":"quill","tool":"mend","papers":["a","b"],"call":"c1"}
{"timestamp":"2026-03-02T08:00:07.000Z","by":"desk","call":"c1","words":"mended"}
```
"""

from __future__ import annotations

from collections.abc import Iterable

from assoc_ingest.fields import is_count, json_text
from assoc_ingest.records import Record
from assoc_ingest.source import Claim, Context, Line
from assoc_ingest.sources.chat_reader import AgentSource, ChatReader, actions
from assoc_ingest.sources.reader import JSONObject
from assoc_ingest.sources.tokens import Counts, since

_action_of = actions(edit="mend", read="peruse")
_LONGEST_NAME = 200  # letters of a model's name that later lines need


class Letters(AgentSource):
    """The source of kind `letters`."""

    contract = 1
    name = "letters"
    label = "Letters"
    checked = "1.0 to 2.3"
    known_lines = frozenset[str]()
    variable, place = "LETTERBOX", ".letterbox"
    resume = ("quill", "--day", "{}")
    retention_days = 90

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """The seal, which opens all letters."""
        return parts == ("seal.json",)

    def descends(self, parts: tuple[str, ...]) -> bool:
        """All days lie in one directory."""
        return parts == ("letters",)

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """A file is a day, and a day is a conversation."""
        match parts:
            case ("letters", name) if name.endswith(".jsonl"):
                day = name.removesuffix(".jsonl")
                return Claim(self.name, "transcript", session_key=day)
        return None

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; the model and what was spent before come from earlier lines."""
        day = _Day(claim, context)
        for value in day.reader.objects(lines, _is_ours):
            day.take(value)
        return day.reader.finish(), day.context


def _is_ours(value: JSONObject) -> bool:
    return "by" in value or "model" in value


class _Day:
    """Reads the lines of a day, and knows what its lines said so far."""

    def __init__(self, claim: Claim, context: Context) -> None:
        self.reader = ChatReader(claim, type_key="by")
        self.context = dict(context)
        self._key = claim.session_key

    def take(self, value: JSONObject) -> None:
        """Take one line in."""
        reader = self.reader
        by = value.get("by")
        reader.begin(value, is_message=by in ("person", "quill"))
        if "model" in value:
            self.context["model"] = (reader.text(value, "model") or "")[:_LONGEST_NAME] or None
            reader.fact("first_cwd", reader.text(value, "desk"))
            reader.fact("forked_from_key", reader.text(value, "answers"))
        if by == "quill":
            reader.model = self.context.get("model")
        words, call = reader.text(value, "words"), reader.text(value, "call")
        if by == "desk":
            reader.answer(words or "", call, is_error=value.get("failed") is True)
        elif by == "quill" and "tool" in value:
            self._call(value, call)
        elif words is not None:
            is_person = by == "person"
            reader.say(
                "prompt" if is_person else "text", words, "user" if is_person else "assistant"
            )
        self._spend(value)
        reader.keep_rest(value, ("words", "spent", "tool", "papers", "call", "failed"))

    def _call(self, value: JSONObject, call: str | None) -> None:
        papers = value.get("papers")
        paths = [one for one in papers if isinstance(one, str)] if isinstance(papers, list) else []
        tool = self.reader.text(value, "tool")
        self.reader.call(
            tool,
            {"path": paths[0]} if paths else {},
            json_text({"papers": paths}) or "{}",
            call,
            action=_action_of(tool),
            paths=paths,
        )

    def _spend(self, value: JSONObject) -> None:
        """Note what the line spent: the difference to what was spent before."""
        spent = value.get("spent")
        if not isinstance(spent, list) or len(spent) != 2 or not all(map(is_count, spent)):
            return
        counts = Counts(*since(spent, self.context.get("spent")))
        self.context["spent"] = spent
        reader = self.reader
        reader.use(f"{self._key}:{reader.start}", counts, model=self.context.get("model"))
