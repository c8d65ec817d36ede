"""Read files that programs write, mostly JSON line by line; anything else in them is skipped.

Agents can write to these files, so nothing here raises on torn, huge or malicious content.
"""

from __future__ import annotations

import os
import time

from mngr.model import jsontext
from mngr.model.quoting import quote
from mngr.model.struct import Json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = 4 << 20

# The largest file that a meter reads, in blocks of 512 bytes, because a file can be sparse.
BLOCKS = (512 << 20) // 512

# For awk, because a host may have only POSIX tools. Inside a JSON string a quote is never bare, so
# `"name":` is always a key. `owner` is the agent, `add` counts tokens for an agent and a model.
AWK = r"""
  function word(line, name) {
    if (!match(line, "\"" name "\":\"[^\" ]+\"")) return ""
    return substr(line, RSTART + length(name) + 4, RLENGTH - length(name) - 5)
  }
  function count(line, name) {
    if (!match(line, "\"" name "\":[0-9]+")) return 0
    return substr(line, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0
  }
  function add(key, i, o, r, w) {
    any[key] = 1; sum[key, 1] += i; sum[key, 2] += o; sum[key, 3] += r; sum[key, 4] += w
  }
  { owner = substr($0, 1, index($0, "/") - 1) }
PROGRAM
  END {
    for (key in any)
      printf "%s %.0f %.0f %.0f %.0f\n", key, sum[key, 1], sum[key, 2], sum[key, 3], sum[key, 4]
  }"""

# Before each line, grep writes the path of the file, which begins with the agent. A path with a
# newline is left out, because its second line could begin with another agent.
METER = r"""places=
for place in PLACES; do
  for each; do places="$places $each/$place"; done
done
find $places -type f -name NAME -size -BLOCKS ! -path '*
*' -exec grep -aE LINES /dev/null {} + 2>/dev/null | awk AWK
"""


def meter(places: str, name: str, lines: str, program: str) -> str:
    """Return the shell lines for `AgentType.meter`.

    `program` gets the lines that match `lines` of all files with this name in the `places`.
    """
    parts = {
        "PLACES": places,
        "NAME": quote(name),
        "BLOCKS": str(BLOCKS),
        "LINES": quote(lines),
        "AWK": quote(AWK.replace("PROGRAM", program)),
    }
    import re

    return re.sub("|".join(parts), lambda found: parts[found[0]], METER)


def read(path: str) -> bytes:
    """Return the content of a file; b"" if it is missing, too large or not a regular file."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > LIMIT:
            return b""
        with open(path, "rb") as file:
            return file.read(LIMIT)
    except OSError:
        return b""


def load(path: str) -> dict[str, Json]:
    """Return the JSON object in a file; {} if there is none."""
    try:
        return table(jsontext.loads(read(path) or b"{}"))
    except (ValueError, RecursionError):
        return {}


def objects(data: bytes, *marks: bytes) -> Iterator[dict[str, Json]]:
    """Yield one object per line; with marks, only of lines with one of them: parsing is slow."""
    for line in data.split(b"\n"):
        if not line.startswith(b"{") or (marks and not any(mark in line for mark in marks)):
            continue
        try:
            entry = jsontext.loads(line)
        except (ValueError, RecursionError):
            continue  # torn: its beginning is not in the tail, or its end not yet written
        if isinstance(entry, dict):
            yield entry


def table(value: Json) -> dict[str, Json]:
    """Return the value if it is an object, else {}. The functions below do the same."""
    return value if isinstance(value, dict) else {}


def rows(value: Json) -> list[dict[str, Json]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def number(value: Json) -> int:
    plain = isinstance(value, int) and not isinstance(value, bool)
    return value if plain and 0 <= value < 1 << 53 else 0  # type: ignore[operator, return-value]


def one_line(words: str, limit: int = 300) -> str:
    joined = " ".join(words.split())
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"


def iso(epoch: float) -> str:
    """Return UTC with milliseconds, sortable as text; "" for a time outside the calendar."""
    try:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(epoch))
    except (ValueError, OverflowError, OSError):
        return ""
    return f"{seconds}.{int(epoch % 1 * 1000):03d}Z"
