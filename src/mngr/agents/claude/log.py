"""Read the transcript and the usage from Claude's conversation files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mngr.agents.base import KINDS, Tokens, ToolCall, Turn, by_model
from mngr.agents.jsonl import AWK, number, objects, rows, table, text
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


def usage(files: Mapping[str, bytes]) -> dict[str, Tokens]:
    """Return the usage of all programs that used the agent's folder; each answer counts once."""
    parent = {id for id, _, _ in _spent(files.get(PARENT, b""))}
    answers: dict[str, tuple[str, Tokens]] = {}
    for path, data in files.items():
        if path.startswith(PROJECTS):
            for id, model, tokens in _spent(data):
                if id not in parent:
                    answers[id] = (model, _larger(answers.get(id, ("", Tokens()))[1], tokens))
    return by_model(answers.values())


def _spent(data: bytes) -> Iterator[tuple[str, str, Tokens]]:
    for entry in objects(data, b'"type":"assistant"'):
        message = table(entry.get("message"))
        told, id, model = table(message.get("usage")), text(message.get("id")), message.get("model")
        if entry.get("type") == "assistant" and id and model not in ("<synthetic>", None, ""):
            yield id, text(model), _tokens(told)


def _tokens(told: dict[str, Json]) -> Tokens:
    return Tokens(
        input=number(told.get("input_tokens")),
        output=number(told.get("output_tokens")),
        cache_read=number(told.get("cache_read_input_tokens")),
        cache_write=number(told.get("cache_creation_input_tokens")),
    )


def _larger(one: Tokens, other: Tokens) -> Tokens:
    """Return the larger counts: the entries of an answer are written while it streams."""
    return Tokens(**{kind: max(getattr(one, kind), getattr(other, kind)) for kind in KINDS})


# The same sum for a host that has only POSIX tools. In a line, the usage is the last key of its
# name, after any input of a tool.
METER = (
    r"""
{ find claude/parent.jsonl -type f -exec grep -h '"type":"assistant"' {} +
  echo
  find claude/projects -type f -name '*.jsonl' -exec grep -h '"type":"assistant"' {} +
} 2>/dev/null | awk '"""
    + AWK
    + r"""
  function after(words, mark,  at) {
    while (at = index(words, mark)) words = substr(words, at + length(mark))
    return words
  }
  function most(table, id, value) { if (value > table[id] + 0) table[id] = value }
  $0 == "" { own = 1; next }
  {
    message = substr($0, index($0, "\"message\":{")); told = after($0, "\"usage\":{")
    head = substr(message, 1, 400); id = word(head, "id"); model = word(head, "model")
    if (!own) { parent[id] = 1; next }
    if (id == "" || model == "" || model == "<synthetic>" || id in parent || told == $0) next
    of[id] = model
    most(input, id, count(told, "input_tokens")); most(output, id, count(told, "output_tokens"))
    most(reads, id, count(told, "cache_read_input_tokens"))
    most(writes, id, count(told, "cache_creation_input_tokens"))
  }
  END {
    for (id in of) {
      m = of[id]; any[m] = 1
      i[m] += input[id]; o[m] += output[id]; r[m] += reads[id]; w[m] += writes[id]
    }
    for (m in any) printf "%s %.0f %.0f %.0f %.0f\n", m, i[m], o[m], r[m], w[m]
  }'
"""
)
