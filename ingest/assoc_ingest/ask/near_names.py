"""What a name that does not exist may have been meant to be: "Did you mean ...?"."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_LEAST = 3  # letters; fewer are part of too many names
_NEAREST = 3


def did_you_mean(name: str, known: Iterable[str], *, quoted: bool = False) -> str:
    """Return a question that suggests the nearest names, with a space before it; '' if none is."""
    names = {other.casefold(): other for other in known}
    wanted = name.casefold()
    near = get_close_matches(wanted, names, 1)
    if not near and len(wanted) >= _LEAST:
        near = [other for other in names if wanted in other][:_NEAREST]
    shown = [repr(names[other]) if quoted else names[other] for other in near]
    *others, last = shown or [""]
    return f" Did you mean {', '.join(others)}{' or ' if others else ''}{last}?" if near else ""
