"""Anthropic's Messages API: parse requests, write events."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.support.model.scenario import Call, Step, Turn, Usage

# Text that the client sends in the user's name: context, and the traces of an interruption.
NOT_A_PROMPT = re.compile(
    r"\s*(<system-reminder>|\[Request interrupted|<local-command-|<bash-(input|stdout)>"
    r"|Continue from where you left off)"
)
# Text typed while the model was at work is wrapped like this.
QUEUED = re.compile(
    r"The user sent a new message while you were working:\n"
    r"(.*?)(?=\n\nThis is how Claude Code|\n*</system-reminder>|\Z)",
    re.DOTALL,
)


def read(body: Any, headers: dict[str, str]) -> Turn:
    prompts: list[str] = []
    said: list[str] = []
    parts: list[str] = []
    answered = 0
    for message in body.get("messages", []):
        texts = texts_of(message)
        if message["role"] == "assistant":
            said += [text for text in texts if text]
            answered += 1
        # The client's own text is a system message among the messages.
        if message["role"] != "user":
            continue
        parts += texts + results_of(message)
        new = [prompt for text in texts for prompt in prompts_of(text)]
        if new:
            prompts += new
            answered = 0
    return Turn(
        conversation=session_of(body, headers),
        prompts=tuple(prompts),
        said=tuple(said),
        answered=answered,
        user_text="\n".join(parts),
        tools=tuple(tool.get("name", "") for tool in body.get("tools") or []),
        size=len(json.dumps(body.get("messages", []))),
        stream=bool(body.get("stream")),
        model=str(body.get("model", "")),
        structured="format" in (body.get("output_config") or {}),
    )


def session_of(body: Any, headers: dict[str, str]) -> str:
    """Return the session, which Claude Code puts into a header and the user id of the metadata."""
    if headers.get("x-claude-code-session-id"):
        return headers["x-claude-code-session-id"]
    user = str((body.get("metadata") or {}).get("user_id", ""))
    found = re.search(r'(?:session_|"session_id"\s*:\s*")([0-9a-f-]{36})', user)
    return found[1] if found else headers.get("x-session-id", user)


def texts_of(message: Any) -> list[str]:
    content = message["content"]
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content if block.get("type") == "text"]


def results_of(message: Any) -> list[str]:
    if isinstance(message["content"], str):
        return []
    results = [block for block in message["content"] if block.get("type") == "tool_result"]
    return [
        part if isinstance(part, str) else part.get("text", "")
        for result in results
        for part in (
            [result.get("content")]
            if isinstance(result.get("content"), str)
            else result.get("content") or []
        )
    ]


def prompts_of(text: str) -> list[str]:
    queued = [found.strip() for found in QUEUED.findall(text)]
    if queued:
        return queued
    # If several are sent at once, the client ends each but the last with a newline.
    return [] if NOT_A_PROMPT.match(text) or not text.strip() else [text.removesuffix("\n")]


def failure(step: Step) -> tuple[int, dict[str, str], Any]:
    """Return status, headers and body of an error."""
    headers = {} if step.retry_after is None else {"retry-after": str(step.retry_after)}
    kind, text, status = step.kind, step.text, step.fail or 429
    if step.quota:
        kind, text = kind or "rate_limit_error", text or "This request would exceed your limit."
        headers |= {
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-reset": str(step.quota),
            "anthropic-ratelimit-unified-representative-claim": "five_hour",
            "anthropic-ratelimit-unified-overage-status": "rejected",
        }
    kind = kind or {
        429: "rate_limit_error",
        529: "overloaded_error",
        400: "invalid_request_error",
    }.get(status, "api_error")
    return status, headers, {"type": "error", "error": {"type": kind, "message": text or kind}}


def usage_json(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
    }


def whole(number: int, turn: Turn, step: Step, calls: list[Call], usage: Usage) -> Any:
    """Return the answer to a request that does not stream."""
    content: list[Any] = [{"type": "text", "text": step.say}] if step.say or not calls else []
    content += [
        {"type": "tool_use", "id": f"toolu_{number:08d}{index:02d}", "name": name, "input": given}
        for index, (name, given) in enumerate(calls)
    ]
    return {
        "id": f"msg_{number:010d}",
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": usage_json(usage),
    }


def events(answer: Any) -> Iterator[tuple[str, Any]]:
    """Yield the same answer as a stream of named events."""
    start = answer | {"content": [], "stop_reason": None}
    # The first event has only the input tokens; the last one has the output tokens.
    start["usage"] = answer["usage"] | {"output_tokens": 1}
    yield "message_start", {"type": "message_start", "message": start}
    for index, block in enumerate(answer["content"]):
        yield from block_events(index, block)
    yield (
        "message_delta",
        {
            "type": "message_delta",
            "delta": {"stop_reason": answer["stop_reason"], "stop_sequence": None},
            "usage": answer["usage"],
        },
    )
    yield "message_stop", {"type": "message_stop"}


def block_events(index: int, block: Any) -> Iterator[tuple[str, Any]]:
    if block["type"] == "text":
        opening: Any = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": part} for part in halves(block["text"])]
    else:
        opening = block | {"input": {}}
        deltas = [
            {"type": "input_json_delta", "partial_json": part}
            for part in halves(json.dumps(block["input"]))
        ]
    yield (
        "content_block_start",
        {"type": "content_block_start", "index": index, "content_block": opening},
    )
    for delta in deltas:
        yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": index}


def halves(text: str) -> list[str]:
    """Return text in two parts if possible, because clients must join them."""
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part] or [""]
