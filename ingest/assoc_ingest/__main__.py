"""The entry point: runs a command and turns whatever happens into an exit code.

0 success · 1 nothing found, or a problem was found · 2 usage · 3 busy · 4 not a usable database ·
5 the database or the output could not be written · 6 the server of the fleet ·
70 internal error · 130 interrupted · 143 terminated

Output never affects the work (`streams`): nothing changes if a reader closes the pipe (`... |
head`) or text cannot be encoded. If output could not be written, that is reported at the end.
"""

# ruff: noqa: E402

from __future__ import annotations

import gc

# A short command makes 40,000 objects, nearly all of which stay. With the default, 700, Python
# looks through them for garbage 50 times, a tenth of the time that the command takes.
gc.set_threshold(50_000)

import io
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from . import terminal
from .cli import cli
from .stopping import Terminated, raise_on_sigterm

_LOST, _BUG, _INTERRUPTED, _TERMINATED = 5, 70, 130, 143


def program() -> int:
    """Run the program in a process of its own, and return its exit code."""
    try:
        return main()
    finally:
        gc.freeze()  # Python would look through all modules for garbage, for 13 ms, before it ends


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    terminal.prepare()
    raise_on_sigterm()
    code = _run(arguments)
    error = terminal.flushed()
    if error is None:
        return code
    why = error.strerror or str(error)
    words = f"Some output was lost: standard output could not be written ({why})."
    print(f"Error: {words}" + " Everything else was completed." * (code == 0), file=sys.stderr)
    return code or _LOST


def _run(arguments: Sequence[str] | None) -> int:
    settings: dict[str, object] = {}
    try:
        code = cli.main(
            args=arguments, prog_name="assoc-ingest", standalone_mode=False, obj=settings
        )
        sys.stdout.flush()  # while signals are still turned into exit codes
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        if _wants_json(arguments):
            _write_error("usage", error.format_message())
        else:
            shown = io.StringIO()
            error.show(shown)
            print(terminal.message(shown.getvalue().rstrip("\n")), file=sys.stderr)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except Terminated:
        return _TERMINATED
    except Exception as error:
        return _explain(error, arguments, is_verbose="verbose" in settings)
    return code if isinstance(code, int) else 0


def _explain(error: Exception, arguments: Sequence[str] | None, *, is_verbose: bool) -> int:
    """Print one sentence about the error; return the exit code."""
    from .errors import as_known

    known = as_known(error)
    if is_verbose and known is None:
        import traceback

        print("".join(traceback.format_exception(error)), file=sys.stderr)
    words = str(known or "") or (
        f"internal error in assoc-ingest: {type(error).__name__}: {error}. "
        "Please report it, including the output of the command with -v."
    )
    if _wants_json(arguments):
        _write_error(known.code if known else "internal", words)
    else:
        start = (
            "" if known and known.exit_code == 1 else "Error: "
        )  # a negative answer is not an error
        print(terminal.message(start + words), file=sys.stderr)
    return known.exit_code if known else _BUG


def _wants_json(arguments: Sequence[str] | None) -> bool:
    """Is the answer read by a program? Asked of the words: wrong ones are never parsed."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    return "--json" in words[: words.index("--") if "--" in words else None]


def _write_error(code: str, words: str) -> None:
    """Print an error as the object that `questions.fit` documents."""
    from .errors import with_hint
    from .questions.fit import SCHEMA
    from .terminal import safe_json

    message, hint = with_hint(words)
    error = {"code": code, "message": message, "hint": hint}
    with suppress(OSError):  # nobody reads it; the exit code says the same
        sys.stdout.write(safe_json({"schema": SCHEMA, "error": error}) + "\n")


if __name__ == "__main__":
    sys.exit(program())
