"""Roo Code: tasks of this agent for VS Code, which was made from Cline.

```
<User>/globalStorage/rooveterinaryinc.roo-cline/tasks/<task>/
```

`<User>` is the directory of settings of VS Code, or of an editor that was made from it. A setting
that is not read names another place. The documents of a task are described in `task_store`.

A task that another one began (`new_task`, as the orchestrator does) is a subagent of that: its
`history_item.json`, which newer versions (2026) write, states `parentTaskId`, and the result of
the call states its id. In earlier versions, it is a task of its own.

Ids are UUIDs, and were times until early 2025, as those of Cline are: a home without newer tasks
cannot be told from one of Cline. Messages have times. Which model answers is stated in what the
program tells it only.

`settings/` can contain credentials. `checkpoints/` of a task is a repository of the person's files.
The format is that of the program's source, from 3.3 (2025) to 3.52.1 (April 2026), the last one.
"""

from __future__ import annotations

from ..fields import MAX_NAME
from ..records import BY_RESULT_TEXT, AgentLink
from ..source import Listing, Recognition
from .chat_reader import actions
from .reader import folded
from .task_reader import TaskReader
from .task_source import TaskSource
from .task_store import STORE

_ACTIONS = {
    "run": "execute_command read_command_output run_slash_command browser_action",
    "read": "read_file fetch_instructions access_mcp_resource skill",
    "edit": "write_to_file apply_diff edit search_and_replace search_replace edit_file apply_patch "
    "insert_content append_to_file generate_image",
    "search": "search_files list_files codebase_search list_code_definition_names",
    "plan": "update_todo_list switch_mode",
    "spawn": "new_task",
    "ask": "ask_followup_question",
}
_TOOLS = (*" ".join(_ACTIONS.values()).split(), "attempt_completion", "use_mcp_tool")
_BEGUN = ("Delegated to child task ", "Subtask ")  # what the result of `new_task` begins with


class _Task(TaskReader):
    """Reads the lines of a task of Roo Code."""

    action_of = staticmethod(actions(**_ACTIONS))
    tools = _TOOLS

    def answer_call(self, text: str, key: str | None, *, is_error: bool) -> None:
        super().answer_call(text, key, is_error=is_error)
        for begin in _BEGUN:
            task = text.removeprefix(begin)[:MAX_NAME].split(maxsplit=1)[:1]
            if key is not None and text.startswith(begin) and task:
                self.records.append(AgentLink(task[0], key, BY_RESULT_TEXT, self.start))


class Roo(TaskSource):
    """The source of kind `roo`."""

    name, label, checked = "roo", "Roo Code", "3.3 to 3.52.1"
    reader = _Task
    extension = "rooveterinaryinc.roo-cline"
    unread_places = ("cache", "puppeteer", "settings", "worktrees")

    def recognises(self, listing: Listing) -> Recognition:
        """A home has a list of tasks, items of it, or tasks with UUIDs."""
        for path in listing:
            names = tuple(path.split("/"))
            is_task = self.claim(names) is not None and names[0] == STORE
            if names == (STORE, "_index.json") or (is_task and _is_told(names)):
                return Recognition.CERTAIN
        return Recognition.NO

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """Settings of servers can contain credentials."""
        return parts[0].casefold() == "settings"


def _is_told(names: tuple[str, ...]) -> bool:
    """Does a path of a task tell that it is none of another agent?"""
    return names[2:] == ("history_item.json",) or folded(names[1].upper()) != names[1].upper()
