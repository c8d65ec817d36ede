"""Read the transcript and the usage from Claude's conversation files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mngr.agents.base import ToolCall, Turn
from mngr.agents.jsonl import meter, objects, rows, table, text
from mngr.model.struct import Json

PROJECTS = "claude/projects/"
PARENT = "claude/parent.jsonl"
"""The conversation that a clone continues; its cost belongs to the original."""
HISTORY = "claude/history.jsonl"
LAUNCH = "signals/Launch.json"
FILES = (f"{PROJECTS}*/*.jsonl", f"{PROJECTS}*/*/subagents/*.jsonl", PARENT, HISTORY, LAUNCH)

SESSION = re.compile(rf"{PROJECTS}[^/]+/([0-9a-f-]{{36}})\.jsonl")
COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
SHELL = re.compile(r"<bash-input>(.*)</bash-input>", re.DOTALL)
INTERRUPTED = "[Request interrupted by user"
NOT_SAID = ("<task-notification>", "<local-command-", "<bash-std", "<system-reminder>", INTERRUPTED)
"""Beginnings of texts with the role of the user that the program wrote."""
STAMP = b'"timestamp":"'
TALK = (b'"type":"user"', b'"type":"assistant"', b'"queued_command"')


def said(content: Json) -> str:
    """Return the text of a message, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = [text(block.get("text")) for block in rows(content) if block.get("type") == "text"]
    return "\n".join(blocks)


def prompt(entry: Mapping[str, Json]) -> str:
    """Return the text of a user message as typed, or nothing for other entries."""
    if entry.get("isSidechain") or entry.get("isMeta") or entry.get("isCompactSummary"):
        return ""
    attachment = table(entry.get("attachment"))
    if attachment.get("type") == "queued_command":
        spoken = attachment.get("commandMode", "prompt") == "prompt"
        return said(attachment.get("prompt")) if spoken and _human(attachment) else ""
    if entry.get("type") != "user" or not _human(entry):
        return ""
    words = said(table(entry.get("message")).get("content"))
    command, shell = COMMAND.search(words), SHELL.fullmatch(words)
    if command and words.startswith("<command-"):
        given = ARGUMENTS.search(words)
        return " ".join([command[1], *([given[1]] if given and given[1] else [])])
    if shell:
        return "!" + shell[1]
    return "" if words.startswith(NOT_SAID) else words.rstrip()


def _human(entry: Mapping[str, Json]) -> bool:
    """Return whether a person wrote the entry."""
    return text(table(entry.get("origin")).get("kind")) in ("", "human")


def transcript(files: Mapping[str, bytes]) -> list[Turn]:
    """Return all conversations of the agent itself, oldest first, without its subagents."""
    turns: dict[str, Turn] = {}
    seen: set[str] = set()
    for data in own(files):
        for entry in objects(data, *TALK):
            uuid = text(entry.get("uuid"))
            # A fork repeats the entries of the earlier conversation.
            if uuid not in seen and not entry.get("isSidechain"):
                seen.add(uuid)
                _add(turns, entry)
    return list(turns.values())


def own(files: Mapping[str, bytes]) -> list[bytes]:
    """Return the agent's own conversations, the last one at the end.

    Other programs that the agent starts share its folder, but are not interactive. The agent itself
    is, unless its first conversation is its only one.
    """
    launched = next(objects(files.get(LAUNCH, b"")), {})
    first = text(table(launched.get("input")).get("session_id"))
    found: list[tuple[bytes, str, bytes]] = []
    for path, data in files.items():
        session = SESSION.fullmatch(path)
        opening = next(objects(data, *TALK), None) if session else None
        if not session or opening is None:
            continue
        if session[1] == first or text(opening.get("entrypoint")) in ("", "cli"):
            at = data.rfind(STAMP) + len(STAMP)
            found.append((data[at : at + len("2000-01-01T00:00:00.000Z")], path, data))
    return [data for _, _, data in sorted(found)]


def _add(turns: dict[str, Turn], entry: dict[str, Json]) -> None:
    """Add an entry; an answer consists of several entries with one id."""
    for key, turn in _turns(entry):
        old = turns.get(key)
        if old is None:
            turns[key] = turn
        elif turn.type == "assistant_message":
            parts = [part for part in (old.text, turn.text) if part]
            turns[key] = old.replace(text="\n".join(parts), tools=(*old.tools, *turn.tools))


def _turns(entry: dict[str, Json]) -> Iterator[tuple[str, Turn]]:
    message, time = table(entry.get("message")), text(entry.get("timestamp"))
    if entry.get("type") == "assistant":
        if not entry.get("isApiErrorMessage") and text(message.get("model")) != "<synthetic>":
            yield text(message.get("id")) or text(entry.get("uuid")), _answer(message, time)
        return
    spoken, uuid = prompt(entry), text(entry.get("uuid"))
    if spoken:
        yield f"{uuid} {time}", Turn(type="user_message", text=spoken, time=time, id=uuid)
    for block in rows(message.get("content")):
        if block.get("type") == "tool_result":
            tool = text(block.get("tool_use_id"))
            result = said(block.get("content"))
            yield f"{tool} result", Turn(type="tool_result", text=result, time=time, id=tool)


def _answer(message: dict[str, Json], time: str) -> Turn:
    tools = tuple(
        ToolCall(id=text(block.get("id")), name=text(block.get("name")), input=block.get("input"))
        for block in rows(message.get("content"))
        if block.get("type") == "tool_use"
    )
    return Turn(
        type="assistant_message",
        text=said(message.get("content")),
        time=time,
        id=text(message.get("id")),
        model=text(message.get("model")),
        tools=tools,
    )


# Every program that used the agent's folder counts, and each answer once: its entries are written
# while it streams, so the largest counts are right. In a line, the usage is the last key of its
# name, after any input of a tool.
METER = meter(
    f"{PARENT} {PROJECTS.rstrip('/')}",
    "*.jsonl",
    '"type":"assistant"',
    r"""
  function after(words, mark,  at) {
    while (at = index(words, mark)) words = substr(words, at + length(mark))
    return words
  }
  function most(kind, value) { if (value > tokens[id, kind] + 0) tokens[id, kind] = value }
  {
    message = substr($0, index($0, "\"message\":{")); told = after($0, "\"usage\":{")
    head = substr(message, 1, 400); id = owner " " word(head, "id"); model = word(head, "model")
    if (index($0, owner "/claude/parent.jsonl:") == 1) { parent[id] = 1; next }
    if (id == owner " " || model == "" || model == "<synthetic>" || id in parent || told == $0) next
    of[id] = owner " " model
    most(1, count(told, "input_tokens")); most(2, count(told, "output_tokens"))
    most(3, count(told, "cache_read_input_tokens"))
    most(4, count(told, "cache_creation_input_tokens"))
  }
  END {
    for (id in of) add(of[id], tokens[id, 1], tokens[id, 2], tokens[id, 3], tokens[id, 4])
  }""",
)
