"""Tool calls of Codex: what a call does and to which files, and how its output says it ended.

A command states its exit code and its time in one of four ways, before its output:

```
{"output":"ok\\n","metadata":{"exit_code":0,"duration_seconds":0.7}}

Exit code: 0
Wall time: 0.1 seconds
Output:

Command: /bin/zsh -lc ls
Chunk ID: b5a9ac
Wall time: 0.0000 seconds
Process exited with code 0        or: Process running with session ID 7
Output:

Script completed                  or: Script failed
Wall time 0.2 seconds
Output:
```

Older versions pass a patch to a shell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...fast_json import orjson
from ...fields import integer, json_text, mapping, obvious_text, string
from ...records import EDIT
from .. import media
from ..agent import actions
from ..claude.tools import DECLINED, ERROR, OK
from ..jsonl import JSONObject
from ..patches import patched

_action_of = actions(
    run="shell shell_command exec_command write_stdin local_shell container.exec unified_exec"
    " CommandExecution",
    read="view_image read_file read_mcp_resource",
    edit="apply_patch FileChange",
    search="grep_files list_dir tool_search web_search web.search list_mcp_resources",
    plan="update_plan",
    spawn="spawn_agent",
    ask="request_user_input",
)

_MAX_DEPTH = 64
_HEADER = 1000  # letters of an output that can say how its command ended
_exit_code = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d{1,9})$", re.MULTILINE)
_wall_time = re.compile(r"^Wall time:? (\d{1,9}(?:\.\d{1,9})?) seconds", re.MULTILINE)
_output_heading = re.compile(r"^Output:", re.MULTILINE)
_user_in_url = re.compile(r"//[^/@]*+@")
_FAILED = (
    "Script failed",
    "exec_command failed",
    "apply_patch verification failed",
    "execution error",
)
_STILL_RUNNING = "Process running with session ID"
_DECLINED = ("exec command rejected by user", "rejected by user", "patch rejected by user")


class Deed(NamedTuple):
    """What a call does, and what it was applied to."""

    action: str
    target: JSONObject
    """The argument that says what it was applied to, by the name that says which kind it is."""
    paths: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """The output of a call, and how the call ended."""

    text: str
    status: str = OK
    exit_code: int | None = None
    duration_ms: int | None = None


def deed(name: str | None, arguments: Mapping[str, object], text: str, cwd: str | None) -> Deed:
    """Return what a call does. `text` is its input as it stands, `cwd` where it runs."""
    command = command_of(arguments)
    cwd = string(arguments.get("workdir")) or cwd
    if name == "apply_patch" or (command is not None and _is_patch(command)):
        paths = patched(text if command is None else command, cwd)
        return Deed(EDIT, {"path": paths[0]} if paths else {}, paths)
    action = _action_of(name)
    if command is not None:
        return Deed(action, {"command": command})
    target = {**arguments, **({"prompt": arguments["message"]} if "message" in arguments else {})}
    return Deed(action, target or ({"command": text} if text != "{}" else {}))


def command_of(arguments: Mapping[str, object]) -> str | None:
    """Return the command that a call runs, without the shell that runs it."""
    command = arguments.get("cmd", arguments.get("command"))
    if isinstance(command, str):
        return command or None
    if not isinstance(command, list) or not command:
        return None
    words = [word for word in command if isinstance(word, str)]
    if len(words) == 3 and words[1] in ("-lc", "-c", "-Command"):
        return words[2]
    return " ".join(words) or None


def _is_patch(command: str) -> bool:
    return command.lstrip().startswith("apply_patch")


# -- outputs -------------------------------------------------------------------------------------


def outcome(output: object) -> Outcome:
    """Return what the output of a call says."""
    if isinstance(output, dict) and "content" in output:
        text = output_text(output["content"])
        found = outcome(text)
        return found._replace(status=ERROR) if output.get("success") is False else found
    text = output_text(output)
    if text.startswith('{"output"'):
        stated = parsed(text)
        if isinstance(stated.get("output"), str):
            facts = mapping(stated.get("metadata"))
            code = integer(facts.get("exit_code"))
            status = ERROR if code else OK
            seconds = facts.get("duration_seconds")
            return Outcome(str(stated["output"]), status, code, milliseconds(seconds))
    return _headed(text)


def _headed(text: str) -> Outcome:
    """Return what the lines before an output say."""
    head = text[:_HEADER]
    heading = _output_heading.search(head)
    head = head[: heading.start()] if heading else head
    code, time = _exit_code.search(head), _wall_time.search(head)
    exit_code = int(code[1]) if code else None
    status = ERROR if exit_code or text.startswith(_FAILED) else OK
    if text.startswith(_DECLINED):
        status = DECLINED
    if heading and (code or time) and _STILL_RUNNING not in head:
        text = text[heading.end() :].lstrip("\n")
    return Outcome(text, status, exit_code, milliseconds(float(time[1])) if time else None)


def milliseconds(seconds: object) -> int | None:
    """Return a duration that is stated in seconds, or in seconds and nanoseconds."""
    if isinstance(seconds, dict):
        whole, rest = integer(seconds.get("secs")), integer(seconds.get("nanos")) or 0
        seconds = None if whole is None else whole + rest / 1e9
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    return round(seconds * 1000) if 0 <= seconds < 10**9 else None


def parsed(text: str) -> JSONObject:
    """Return the JSON object that a text is, an empty one for any other text."""
    try:
        return mapping(orjson.loads(text))
    except orjson.JSONDecodeError:
        return {}


def output_text(output: object) -> str:
    """Return the text of an output, with images as placeholders."""
    if isinstance(output, str):
        return output
    if isinstance(output, list):
        return "\n".join(filter(None, map(_part, output)))
    return obvious_text(output) or (json_text(output) if output else "")


def _part(part: object) -> str:
    block = mapping(part)
    url = string(block.get("image_url"))
    return image(url) if url else string(block.get("text")) or obvious_text(part)


def image(url: str) -> str:
    """Return what stands for an image: of its data, only the type and the length."""
    if not url.startswith("data:"):
        return f"[image {url[:1000]}]"
    kind, _, data = url[5:].partition(",")
    return media.image(kind.partition(";")[0][:100], data)


def without_data(value: object, depth: int = 0) -> object:
    """Return a JSON value without what is dropped, and with images as placeholders."""
    if isinstance(value, str):
        return image(value) if value.startswith("data:") and "," in value[:200] else value
    if depth >= _MAX_DEPTH:
        return None
    if isinstance(value, list):
        return [without_data(item, depth + 1) for item in value]
    if isinstance(value, dict):
        kept = {
            key: without_data(item, depth + 1) for key, item in value.items() if key not in DROPPED
        }
        if isinstance(url := kept.get("repository_url"), str):
            kept["repository_url"] = _user_in_url.sub("//", url)
        return kept
    return value


DROPPED = ("encrypted_content", "base_instructions", "dynamic_tools", "env")
"""Fields that no row has: what nobody can read, the program's own instructions, and the
environment of a command, which contains secrets."""

TELLING = (
    "role", "content", "summary", "encrypted_content", "action", "author", "recipient", "message",
    "reason",
)  # fmt: skip
"""Fields of an item without a call that are the same in all copies of it."""


def todos(arguments: Mapping[str, object]) -> Iterator[JSONObject]:
    """Yield the steps of a plan."""
    steps = arguments.get("plan")
    for step in steps if isinstance(steps, list) else []:
        if isinstance(step, dict):
            yield {"content": string(step.get("step")), "status": string(step.get("status"))}
