"""Gemini CLI: conversations with Google's agent for the terminal, below `~/.gemini`.

```
projects.json                                   {"projects": {"/srv/demo": "demo"}}
tmp/<id>/.project_root                          the directory of a project, as text
tmp/<id>/chats/session-<time>-<8 digits>.json   a conversation, rewritten as a whole
tmp/<id>/chats/session-<time>-<8 digits>.jsonl  the same, appended to (0.39 on)
tmp/<id>/chats/<parent>/<subagent>.jsonl        a subagent (0.36 on)
tmp/<id>/logs.json                              prompts of all conversations of a project
```

`GEMINI_CLI_HOME` replaces the directory that has `.gemini`. `<id>` was the SHA-256 of the project's
directory, and is a short name since 0.29. The name of a file has only the beginning of the id of
its session, which its lines state.

The program deletes conversations after 30 days, and of two files with the same session sometimes
the longer one: a resumed conversation leaves a second file with almost nothing in it.

`oauth_creds.json`, `*oauth-tokens*.json`, `google_accounts.json`, `settings.json` and `.env`
contain credentials and are never opened.

`logs.json` is a list of `{"sessionId","messageId","type":"user","message","timestamp"}`. It repeats
what conversations have, and is the only record of those that are gone.

The messages of a conversation are described in `gemini_chat`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import pairwise
from typing import Any

from ..fields import MAX_TEXT, json_text, mapping, obvious_text, string, utc, without
from ..records import (
    BY_RESULT,
    DECLINED,
    AgentLink,
    ProjectEntry,
    Prompt,
    Record,
    Superseded,
    WorkingDirectory,
)
from ..source import DOCUMENT, LOG, Claim, Context, Line, Listing, Recognition, parts_of
from .chat_reader import AgentSource, ChatReader, actions, exit_code, image_in, readable
from .reader import JSONObject, Reader, document_text, items_at, nothing_in
from .tokens import beside_cache

# ------------------------------------------------------------------------------------------------
# Tool calls of Gemini CLI: what each tool does, its output, and what else is kept of both.


action_of = actions(
    run="run_shell_command",
    read="read_file read_many_files web_fetch get_internal_docs",
    edit="write_file replace edit",
    search="list_directory glob grep search_file_content grep_search google_web_search",
    plan="write_todos enter_plan_mode exit_plan_mode",
    spawn="delegate_to_agent invoke_agent codebase_investigator generalist cli_help",
    ask="ask_user",
)
ENDED = ("success", "error", "cancelled")  # with any other status, a call goes on

_IN_ROWS = frozenset(["content", "thoughts", "model"])
_ITSELF = ["messages"]  # of a conversation
_OF_CALLS = frozenset(["id", "name", "args", "result", "description", "timestamp"])


def result_text(call: JSONObject) -> str:
    """Return the output that the model saw; if there is none, the one that the person saw."""
    result = call.get("result")
    texts = map(_text_of, result if isinstance(result, list) else [result])
    return "\n".join(filter(None, texts)) or string(call.get("resultDisplay")) or ""


def _text_of(part: object) -> str:
    block = mapping(part)
    response = mapping(mapping(block.get("functionResponse")).get("response"))
    text = string(response.get("output")) or string(response.get("error"))
    return text or image_in(mapping(block.get("inlineData"))) or obvious_text(part)


def rest_of(value: JSONObject) -> JSONObject:
    """Return a message without what its rows have, and without opaque fields."""
    bare = mapping(readable(without(value, _IN_ROWS if "type" in value else _ITSELF)))
    if isinstance(stated := bare.get("$set"), dict):
        bare["$set"] = without(stated, _ITSELF)
    if isinstance(calls := bare.get("toolCalls"), list):
        bare["toolCalls"] = [without(call, _OF_CALLS) for call in calls]
    return bare


# ------------------------------------------------------------------------------------------------
# The messages of a Gemini CLI conversation, of both forms.
#
# A `.json` file is one object, `sessionId projectHash startTime lastUpdated messages summary?
# kind?`. The first line of a `.jsonl` file is the same without `messages`; then
#
# ```json
# {"id":"u1","timestamp":"..","type":"gemini","content":"..","thoughts":[{"subject":"..",
#  "description":".."}],"tokens":{"input":1024,"output":40,"cached":600,"thoughts":10,"tool":0,
#  "total":1074},"model":"m","toolCalls":[{"id":"c1","name":"n","args":{},"status":"success",
#  "result":[{"functionResponse":{"id":"c1","response":{"output":".."}}}],"timestamp":".."}]}
# {"$set":{"lastUpdated":".."}}
# {"$set":{"messages":[]}}
# {"$rewindTo":"u1"}
# ```
#
# - `type` is `user gemini info warning error`; `content` a text or parts, `text functionResponse
#   inlineData`. The status of a call is `success error cancelled`, or another one while it runs.
# - A message comes again as a whole when its tokens and calls arrive. What is new in it gives rows,
#   which continue the blocks of the message.
# - `$set.messages` repeats all messages as the model gets them, when a conversation is resumed or
#   compressed: those with unknown ids give rows.
# - `$rewindTo` takes back that message and everything after it; with an unknown id, everything.
# - No person typed a message that begins with `<session_context>` or `<state_snapshot>`, a part
#   after `--- Content from referenced files ---`, or `System: Please continue.`, which follows an
#   answer that came to nothing. A user message of nothing but `functionResponse` repeats the
#   results of calls.
# - **Tokens** are those of one request, not sums. The input includes what was read from the cache,
#   and the output does not include thoughts.
# - A `.json` file that is resumed becomes a `.jsonl` file with the same ids, so a message is
#   identified by session and id.
# - Subagents are files of their own, named by `agentId` of the call, or `kind` says so.


_CONTEXT, _SUMMARY = "<session_context>", "<state_snapshot>"
_CONTINUE = "System: Please continue."
_REFERENCES = "--- Content from referenced files ---"
_PLACES = ("**Workspace Directories:**\n  - ", "currently working in the directory: ")
_MOST_KNOWN, _MOST_RECENT, _MOST_CALLS, _LONGEST_ID, _DIGITS = 1000, 40, 500, 200, 8

TYPES = frozenset(["user", "gemini", "info", "warning", "error"])


def is_ours(value: JSONObject) -> bool:
    """Has the object the shape of a line of this format?"""
    if "type" in value:
        return string(value["type"]) in TYPES and "id" in value
    return any(key in value for key in ("$set", "$rewindTo", "sessionId"))


def _digest(*parts: object) -> str:
    return blake2b(json_text(parts).encode(), digest_size=_DIGITS // 2).hexdigest()


class Chat(ChatReader):
    """Reads one conversation.

    `context` has what later lines need: the session, if it `is_subagent`, digests of the ids of
    messages (`known`), and what was read of the last ones (`recent`): the offset, the number of
    blocks, digests of thoughts and content, and a letter for each call, `1` if its result was read.
    """

    action_of = staticmethod(action_of)

    def __init__(self, claim: Claim, context: Context) -> None:
        super().__init__(claim)
        self.context: dict[str, Any] = dict(context)
        self._recent: dict[str, list[Any]] = dict(self.context.get("recent", {}))
        known = self.context.get("known", "")
        ids = (known[at : at + _DIGITS] for at in range(0, len(known), _DIGITS))
        self._known: dict[str, None] = dict.fromkeys(ids)

    def take(self, value: JSONObject) -> None:
        """Take one line of a log in."""
        if "$set" in value:
            self._set(value)
        elif "$rewindTo" in value:
            self._rewind(value)
        elif string(value.get("type")) is None and "sessionId" in value:
            self.begin_chat(value)
        else:
            self._message(value)

    def begin_chat(self, value: JSONObject) -> None:
        """Take in what is stated of the whole conversation."""
        self.begin({"timestamp": value.get("startTime")}, is_message=False)
        session = self.name(value, "sessionId")
        self.context.setdefault("session", session)
        if self.claim.agent_key is None:
            self._facts.setdefault("stated_session_key", session)
        if value.get("kind") == "subagent":
            self.context["is_subagent"] = True
        self.fact("ai_title", self.text(value, "summary"))
        self.keep_rest(value, ("messages",), rest_of)

    def messages(self, items: object) -> None:
        """Take in the messages of a document, each at its own place."""
        if not isinstance(items, list):
            self._expect(items is None, "messages", items)
            return
        places = self._places(items, "messages")
        self._each(items, [(place, place + size) for place, size in places])

    def _places(self, items: list[object], *keys: str) -> list[tuple[int, int]]:
        """Return (offset, length) of each item of a list of the current line."""
        found = items_at(self.data, *keys)
        return found if len(found) == len(items) else [(place, 1) for place in range(len(items))]

    def _set(self, value: JSONObject) -> None:
        """Take in what a line states anew.

        Rows of a log cover it without overlapping. So the messages of a list divide their line up,
        and are counted in place of it.
        """
        stated = self.mapping(value, "$set")
        self.begin({"timestamp": utc(stated.get("lastUpdated"))}, is_message=False)
        self.fact("ai_title", string(stated.get("summary")))
        items = stated.get("messages")
        new = self._unknown(items) if isinstance(items, list) else {}
        if new:
            starts = [0, *list(new)[1:], self.length]
            self._each(list(new.values()), list(pairwise(starts)))
            self._is_refused = True
            for item in new.values():
                kind = string(item.get("type")) or ""
                self._types[kind, ""] = self._types.get((kind, ""), 0) + 1
        elif stated.keys() - {"lastUpdated", "messages"} or not stated:
            self.keep_rest(value, (), rest_of)

    def _unknown(self, items: list[object]) -> dict[int, JSONObject]:
        """Return the messages of a list that were not read before, by their place in the line."""
        new: dict[object, tuple[int, JSONObject]] = {}
        for (place, _), item in zip(self._places(items, "$set", "messages"), items, strict=True):
            if isinstance(item, dict) and not self._is_known(item):
                new.setdefault(string(item.get("id")) or place, (place, item))
        return dict(new.values())

    def _is_known(self, item: JSONObject) -> bool:
        identity = string(item.get("id"))
        return identity is not None and _digest(identity) in self._known

    def _each(self, items: list[Any], places: list[tuple[int, int]]) -> None:
        start, length, data = self.start, self.length, self.data
        for item, (begin, end) in zip(items, places, strict=True):
            self.start, self.length, self.data = start + begin, end - begin, data[begin:end]
            self._expect(isinstance(item, dict), "messages[]", item)
            if isinstance(item, dict) and not self._is_known(item):
                self._message(item)
        self.start, self.length, self.data = start, length, data

    def _rewind(self, value: JSONObject) -> None:
        self.begin(value, is_message=False)
        identity = self.name(value, "$rewindTo")
        if identity is not None:
            (at, *_) = self._recent.get(identity, [None])
            self.records.append(Superseded(self.moment, self._identity(identity), at, self.start))
        self.keep_rest(value, ())

    # -- messages --------------------------------------------------------------------------------

    def _identity(self, identity: str) -> str:
        return f"{self.context.get('session') or ''}/{identity}"

    def _message(self, value: JSONObject) -> None:
        """Read a message; of one that was read before, what is new in it."""
        identity = self.name(value, "id")
        key = None if identity is None else self._identity(identity)
        self.begin({**value, "uuid": key}, is_message=None)
        new: list[Any] = [self.start, 0, None, None, ""]
        offset, self._block, thoughts, content, calls = self._recent.get(identity or "", new)
        kind = string(value.get("type")) or ""
        self.model = self.name(value, "model")
        thought, said = _digest(value.get("thoughts")), _digest(value.get("content"))
        if thought != thoughts:
            self._think(value)
        if said != content:
            self._say(kind, value.get("content"))
        calls = self._calls_of(value, calls)
        self._spend_tokens(value, key)
        if identity is not None and len(identity) <= _LONGEST_ID and len(calls) <= _MOST_CALLS:
            self._remember(identity, [offset, self._block, thought, said, calls])
        self.keep_rest(value, ("id",), rest_of)

    def _remember(self, identity: str, state: list[Any]) -> None:
        self._known[_digest(identity)] = None
        self._recent.pop(identity, None)
        self._recent[identity] = state
        for memory, most in ((self._known, _MOST_KNOWN), (self._recent, _MOST_RECENT)):
            while len(memory) > most:
                del memory[next(iter(memory))]

    def _think(self, value: JSONObject) -> None:
        for thought in self.items(value, "thoughts"):
            texts = (self.text(thought, "subject"), self.text(thought, "description"))
            self.say("thinking", "\n".join(filter(None, texts)), "assistant")

    def _say(self, kind: str, content: object) -> None:
        if kind == "user":
            self._user(content)
            return
        rows = {"gemini": ("text", "assistant"), "error": ("error", "system")}
        row, role = rows.get(kind, ("system", "system"))
        for text in self._texts(content):
            self.say(row, text, role, is_error=row == "error")

    def _user(self, content: object) -> None:
        """Add what was typed, and what the program added to it."""
        is_added = False
        for text in self._texts(content):
            begin = text.lstrip()
            is_added = is_added or begin.startswith((_CONTEXT, _REFERENCES)) or text == _CONTINUE
            if begin.startswith(_CONTEXT):
                self._place(text)
            if begin.startswith(_SUMMARY):
                self.say("compact_summary", text, "system")
            elif is_added:
                self.say("meta", text, "system")
            else:
                kind = "prompt" if self.claim.agent_key is None else "agent_prompt"
                self.say("image" if text.startswith("[image ") else kind, text, "user")

    def _texts(self, content: object) -> Iterator[str]:
        """Yield the texts of a message; images as descriptions, results of calls not at all."""
        for part in content if isinstance(content, list) else [content]:
            if isinstance(part, str):
                if part:
                    yield part
            elif isinstance(part, dict):
                image = image_in(mapping(part.get("inlineData")))
                if image is not None or (text := self.text(part, "text")):
                    yield image or text or ""
            else:
                self._expect(part is None, "content", part)

    def _place(self, text: str) -> None:
        """Read where the session is: the program tells the model so."""
        for mark in _PLACES:
            _, found, rest = text.partition(mark)
            path = rest.partition("\n")[0].strip()
            if found and path:
                self.fact("first_cwd", path)
                self.records.append(WorkingDirectory(path, "", self.start))
                return

    # -- calls -----------------------------------------------------------------------------------

    def _calls_of(self, value: JSONObject, known: str) -> str:
        """Add calls and results that are new; return a letter for each call."""
        letters = ""
        for place, call in enumerate(self.items(value, "toolCalls")):
            letter = known[place : place + 1]
            identity, has_ended = self.text(call, "id"), call.get("status") in ENDED
            if not letter:
                name, given = self.text(call, "name"), mapping(call.get("args"))
                self.call(name, given, json_text(given), identity)
            if has_ended and letter != "1":
                self._result(call, identity)
            letters += "1" if has_ended or letter == "1" else "0"
        return letters or known

    def _result(self, call: JSONObject, identity: str | None) -> None:
        text, status = result_text(call), call["status"]
        code = exit_code(text, "Exit Code: ", "\n")
        stated, self._moment = self.moment, self.time(call, "timestamp") or self.moment
        self.answer(
            text,
            identity,
            is_error=status == "error" or bool(code),
            status=DECLINED if status == "cancelled" else None,
            name=self.text(call, "name"),
            exit_code=code,
        )
        self._moment = stated
        agent = self.name(call, "agentId")
        if agent is not None and identity is not None:
            self.records.append(AgentLink(agent, identity, BY_RESULT, self.start))

    def _spend_tokens(self, value: JSONObject, key: str | None) -> None:
        tokens = self.mapping(value, "tokens")
        given, output, cached, thoughts, tool = (
            self.count(tokens, field) for field in ("input", "output", "cached", "thoughts", "tool")
        )
        if key is not None and (given or output or thoughts or tool):
            counts = beside_cache(given, output + thoughts, cached)
            self.use(key, counts._replace(fresh=counts.fresh + tool))

    def finish(self) -> list[Record]:
        """Return everything that was gathered, and complete the context."""
        self.context.update(known="".join(self._known), recent=self._recent)
        # In one order, wherever the lines are cut.
        self.context = {key: value for key, value in sorted(self.context.items()) if value}
        if self.context.get("is_subagent") and self.claim.agent_key is None:
            self._facts["sidechain_count"] = self._message_count
        return super().finish()


_PRIVATE = frozenset(["google_accounts.json", "settings.json", ".env"])
_JSON, _JSONL = ".json", ".jsonl"
_LONGEST_PATH = 10_000


class Gemini(AgentSource):
    """The source of kind `gemini`."""

    name = "gemini"
    label = "Gemini CLI"
    unread_places = (
        *("agents", "antigravity*", "commands", "extensions", "history", "policies", "skills"),
    )
    checked = "0.61.0"
    known_lines = TYPES
    variable, below, place = "GEMINI_CLI_HOME", ".gemini", ".gemini"
    resume = ("gemini", "--resume", "{}")
    retention_days = 30

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """Credentials in the root."""
        name = parts[0].casefold()
        return len(parts) == 1 and (name in _PRIVATE or ("oauth" in name and _JSON in name))

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        match parts:
            case ("tmp",) | ("tmp", _) | ("tmp", _, "chats") | ("tmp", _, "chats", _):
                return True
        return False

    def recognises(self, listing: Listing) -> Recognition:
        """A home has chats. Programs that were made from this one have the same list of prompts.

        Qwen Code is one of them; its home has `projects/`, too, and may have such chats.
        """
        names = [path for path in listing if path == "projects" or self.claim(parts_of(path))]
        if any("/chats/" in name for name in names):
            return Recognition.POSSIBLE if "projects" in names else Recognition.CERTAIN
        is_home = "projects" not in names and any("/" in name for name in names)
        return Recognition.POSSIBLE if is_home else Recognition.NO

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """The claim follows from the position in the layout."""
        match parts:
            case ("projects.json",):
                return Claim(self.name, "project_list")
            case ("tmp", project, ".project_root"):
                return self._in_project("project_root", project)
            case ("tmp", project, "logs.json"):
                return self._in_project("history", project)
            case ("tmp", project, "chats", name) if name.endswith((_JSON, _JSONL)):
                return self._in_project("transcript", project, name)
            case ("tmp", project, "chats", parent, name) if name.endswith(_JSONL):
                return self._in_project("agent", project, name, parent)
        return None

    def _in_project(
        self, kind: str, project: str, name: str = "", parent: str | None = None
    ) -> Claim:
        agent = name.removesuffix(_JSONL) if parent is not None else None
        return Claim(self.name, kind, parent, agent, project, project, parts=(name,))

    def shape(self, claim: Claim) -> str:
        """Conversations of newer versions grow; all else is rewritten."""
        return LOG if claim.parts and claim.parts[0].endswith(_JSONL) else DOCUMENT

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; which messages were read before comes from earlier lines."""
        if claim.kind in _LISTS:
            return _LISTS[claim.kind](claim, lines), context
        chat = Chat(claim, context)
        if self.shape(claim) == DOCUMENT:
            for value in chat.document(lines):
                chat.begin_chat(value)
                chat.messages(value.get("messages"))
            return chat.finish(), {}
        for value in chat.objects(lines, is_ours):
            chat.take(value)
        return chat.finish(), chat.context


def _root(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the directory of a project."""
    (line,) = lines
    text, records = document_text(line)
    path = text.strip()
    if not path or "\n" in path or len(path) > _LONGEST_PATH:
        return nothing_in(line, "no path")
    return [ProjectEntry(claim.project_key or "", None, path), *records]


def _projects(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the list of projects: the short name of each directory."""
    reader = Reader(claim)
    for value in reader.document(lines):
        projects = reader.mapping(value, "projects")
        for path in projects:
            if (name := reader.name(projects, path)) is not None:
                reader.records.append(ProjectEntry(name, None, path))
    return reader.finish()


def _prompts(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the list of what was typed."""
    reader = Reader(claim)
    (line,) = lines
    places = items_at(b'{"":' + line.data + b"}", "")
    for place, item in reader.array([line], is_empty_allowed=True):
        offset, length = places[place] if place < len(places) else (4 + place, 1)
        text = string(item.get("message"))
        if text is None:
            reader.note("message: missing")
            continue
        moment, session = reader.time(item, "timestamp"), reader.name(item, "sessionId")
        prompt = Prompt(text[:MAX_TEXT], moment, None, session, None, None, offset - 4, length)
        reader.records.append(prompt._replace(project_key=claim.project_key))
    return reader.finish()


_LISTS = {"project_root": _root, "project_list": _projects, "history": _prompts}
"""How files are read that are no conversations, by their kind."""
