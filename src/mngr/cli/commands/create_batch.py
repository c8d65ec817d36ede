"""`create --batch`: one agent per line, one result per line as each completes."""

from __future__ import annotations

import json
import os
import re
import sys

from mngr.cli.app.options import overlay
from mngr.cli.app.output import clean, warn
from mngr.cli.app.parser import Namespace
from mngr.cli.app.progress import LastLine
from mngr.cli.app.spread import exit_code, on_interrupt
from mngr.cli.commands import create_options
from mngr.errors import MngrError, UsageError, nearest
from mngr.model.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mngr.api import Created, CreateRequest, Mngr
    from mngr.model.struct import Json

OTHERS = ("name", "args")
"""Keys of a line that are not options of the command line."""
# Options that cannot be used for one agent of many.
FOREIGN = {
    *("batch", "max_parallel", "dry_run", "foreground", "edit_message", "connect"),
    *("connect_command", "format", "quiet", "verbose", "headless"),
}
SLUG_LENGTH = 40


class Line(Struct):
    """A line of the batch: the request, or why it is invalid."""

    number: int
    name: str = ""
    request: CreateRequest | None = None
    error: str = ""


def run_batch(args: Namespace, api: Mngr) -> int:
    lines = list(parse_lines(args, read_lines(args.batch), {a.name for a in api.list()}))
    if not lines:
        source = "standard input" if args.batch == "-" else args.batch
        raise UsageError(f"--batch: {source} has no lines to create agents from")
    failed, progress = 0, LastLine(args.quiet)
    for number, row in enumerate(_results(args, api, lines), start=1):
        failed += row["error"] is not None
        progress.clear()
        print(json.dumps(row), flush=True)
        progress.show(f"{number}/{len(lines)} created")
    progress.clear()
    return exit_code(failed, len(lines))


def _results(args: Namespace, api: Mngr, lines: Sequence[Line]) -> Iterator[dict[str, Json]]:
    for line in lines:
        if line.error:
            yield _row(line, error=line.error)
    good = [line for line in lines if line.request is not None]
    if args.dry_run:
        yield from (_previewed(api, line) for line in good)
        return
    requests = [line.request for line in good if line.request is not None]
    stopped: list[bool] = []
    on_interrupt(lambda: stopped.append(True))
    made = api.create_many(requests, max_parallel=args.max_parallel, stop=lambda: bool(stopped))
    for index, result in made:
        if isinstance(result, MngrError):
            yield _row(good[index], error=str(result))
        else:
            yield _made(good[index], result)
    if stopped:
        raise KeyboardInterrupt


def _made(line: Line, created: Created) -> dict[str, Json]:
    from mngr.cli.commands.create import launch_failure, message_failure

    agent = created.agent
    for remark in created.remarks:
        warn(f"line {line.number}: {remark}")
    error = launch_failure(agent) or message_failure(created) or None
    return _row(line, agent_id=agent.id, name=agent.name, state=str(agent.state), error=error)


def _previewed(api: Mngr, line: Line) -> dict[str, Json]:
    assert line.request is not None
    try:
        return _row(line, name=api.preview(line.request)[0])
    except MngrError as error:
        return _row(line, error=str(error))


def _row(
    line: Line,
    *,
    agent_id: str | None = None,
    name: str = "",
    state: str | None = None,
    error: str | None = None,
) -> dict[str, Json]:
    return {
        "line": line.number,
        "agent_id": agent_id,
        "agent_name": name or line.name or None,
        "state": state,
        "error": clean(error) if error else None,
    }


def read_lines(path: str) -> list[str]:
    """Read the lines of the batch from a file or standard input."""
    try:
        if path == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(os.path.expanduser(path), "rb") as file:
                data = file.read()
    except OSError as error:
        raise UsageError(f"--batch: {path}: {error.strerror}") from None
    # Not splitlines(): a prompt may contain U+2028 and similar characters.
    return data.decode("utf-8", "surrogateescape").split("\n")


def parse_lines(args: Namespace, texts: Sequence[str], taken: set[str]) -> Iterator[Line]:
    """Parse all lines. An invalid line does not stop the others."""
    for number, text in enumerate(texts, start=1):
        text = text.strip()
        if not text:
            continue
        name = ""
        try:
            given = _object(text) if text.startswith("{") else _prompt(text, taken)
            name = given["name"] if isinstance(given.get("name"), str) else ""  # type: ignore[assignment]
            taken.add(name)
            request = create_options.request(_namespace(args, given))
            yield Line(number=number, name=name, request=request)
        except MngrError as error:
            yield Line(number=number, name=name, error=str(error))


def _prompt(text: str, taken: set[str]) -> dict[str, Json]:
    return {"name": free_name(slug(text), taken), "message": text}


def _object(text: str) -> dict[str, Json]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        what = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
        raise UsageError(f"not valid JSON: {what}") from None
    assert isinstance(value, dict), "it starts with a brace"
    return value


def _namespace(args: Namespace, given: Mapping[str, Json]) -> Namespace:
    """Return the options of a line, which override its templates and the command line."""
    from mngr.cli.commands.create import templates

    options = {key: value for key, value in given.items() if key not in OTHERS}
    _refuse_foreign(args, options)
    values = vars(args)
    own = args.parser.coerce(options, "line")
    if "template" in own:
        laid = templates(args, own.pop("template"))
        values = overlay(values, args.parser.coerce(laid, "template"))
    if "message" in own or "message_file" in own:  # of the two, the line's own
        values = {**values, "message": None, "message_file": None}
    if "type" in own:
        values = {**values, "type_word": None}
    merged = Namespace(**overlay(values, own))
    merged.address = _text(given, "name")
    merged.rest = _words(given, args.rest)
    return merged


def _refuse_foreign(args: Namespace, options: Mapping[str, Json]) -> None:
    for key in options:
        if key in FOREIGN:
            raise UsageError(f"{key!r} is an option of the command line, not of a batch line")
        near = nearest(key, OTHERS)
        if near and f"--{key.replace('_', '-')}" not in args.parser.by_name:
            raise UsageError(f"unknown key {key!r}", f"did you mean {near!r}?")


def _text(given: Mapping[str, Json], key: str) -> str:
    value = given.get(key)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{key}: expected a string, not {value!r}")
    return value or ""


def _words(given: Mapping[str, Json], default: list[str]) -> list[str]:
    value = given.get("args")
    if value is None:
        return default
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise UsageError(f"args: expected a list of strings, not {value!r}")
    return [str(word) for word in value]


def slug(text: str) -> str:
    """Return a name made from the first words of a prompt, or "" without plain letters."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    name = ""
    for word in words:
        longer = f"{name}-{word}".lstrip("-")
        if len(longer) > SLUG_LENGTH:
            break
        name = longer
    return name or "".join(words[:1])[:SLUG_LENGTH]


def free_name(name: str, taken: set[str]) -> str:
    """Return the name, with a number if it is taken. "" stays "" (a random name later)."""
    if not name or name not in taken:
        return name
    return next(f"{name}-{n}" for n in range(2, len(taken) + 3) if f"{name}-{n}" not in taken)
