"""OpenAI's Responses API, as Codex uses it, and Chat Completions, as OpenCode does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.support.model.anthropic import halves
from tests.support.model.scenario import Call, Step, Turn, Usage

SESSION_HEADERS = (
    "session_id",
    "session-id",
    "conversation_id",
    "x-session-affinity",
    "x-session-id",
    "x-opencode-session",
)


def session_of(body: Any, headers: dict[str, str], prompts: list[str]) -> str:
    named = [headers[name] for name in SESSION_HEADERS if headers.get(name)]
    return (named or [str(body.get("prompt_cache_key") or "")])[0] or (prompts or [""])[0]


def text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or ""


def is_prompt(text: str) -> bool:
    """Return whether a person wrote it: Codex sends context in the user's name, in tags."""
    return bool(text.strip()) and not text.lstrip().startswith(("<", "# AGENTS.md"))


def read_chat(body: Any, headers: dict[str, str]) -> Turn:
    items = [(m["role"], text_of(m.get("content"))) for m in body.get("messages", [])]
    return turn(items, body, headers, "messages")


def read_responses(body: Any, headers: dict[str, str]) -> Turn:
    return turn([item_of(item) for item in body.get("input", [])], body, headers, "input")


def item_of(item: Any) -> tuple[str, str]:
    kind = item.get("type", "message")
    if kind == "message":
        return item.get("role", ""), text_of(item.get("content"))
    if kind.endswith("_output"):
        return "tool", text_of(item.get("output")) if isinstance(item.get("output"), list) else str(
            item.get("output")
        )
    return ("assistant", "") if kind.endswith("_call") else ("other", "")


def turn(items: list[tuple[str, str]], body: Any, headers: dict[str, str], where: str) -> Turn:
    prompts: list[str] = []
    said: list[str] = []
    parts: list[str] = []
    answered = 0
    before = ""
    for role, text in items:
        if role == "assistant":
            # Text and calls of one answer are separate items, in order.
            answered += before != "assistant"
            said += [text] if text else []
        elif role in ("user", "tool"):
            parts.append(text)
            if role == "user" and is_prompt(text):
                prompts.append(text)
                answered = 0
        before = role if role != "other" else before
    tools = body.get("tools") or []
    return Turn(
        conversation=session_of(body, headers, prompts),
        prompts=tuple(prompts),
        said=tuple(said),
        answered=answered,
        user_text="\n".join(parts),
        tools=tuple(
            tool.get("name") or tool.get("function", {}).get("name") or tool.get("type")
            for tool in tools
        ),
        size=len(json.dumps(body.get(where, []))),
        stream=bool(body.get("stream")),
        model=str(body.get("model", "")),
    )


KINDS = {400: "invalid_request_error", 429: "rate_limit_exceeded", 503: "server_is_overloaded"}


def failure(step: Step) -> tuple[int, dict[str, str], Any]:
    headers = {} if step.retry_after is None else {"retry-after": str(step.retry_after)}
    status = step.fail or 429
    error: dict[str, Any] = {
        "message": step.text or step.kind or "scripted",
        "code": step.kind or None,
        "type": step.kind or KINDS.get(status, "server_error"),
    }
    if step.quota:
        error |= {
            "type": "usage_limit_reached",
            "plan_type": "plus",
            "resets_at": step.quota,
            "code": "usage_limit_reached",
        }
        headers |= {
            "x-codex-primary-used-percent": "100",
            "x-codex-primary-window-minutes": "300",
            "x-codex-primary-reset-at": str(step.quota),
        }
    return status, headers, {"error": error}


def responses_usage(usage: Usage) -> Any:
    """Return the usage; tokens read from the cache are part of the input."""
    given = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + usage.output,
    }


def response(number: int, turn: Turn, step: Step, calls: list[Call], usage: Usage) -> Any:
    output: list[Any] = []
    if step.say or not calls:
        content = [{"type": "output_text", "text": step.say, "annotations": []}]
        output.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        )
    for index, (name, given) in enumerate(calls):
        output.append(
            {
                "type": "function_call",
                "id": f"fc_{number}_{index}",
                "call_id": f"call_{number}_{index}",
                "name": name,
                "arguments": json.dumps(given),
                "status": "completed",
            }
        )
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_700_000_000 + number,
        "status": "completed",
        "model": turn.model,
        "output": output,
        "usage": responses_usage(usage),
    }


def response_events(answer: Any) -> Iterator[tuple[str, Any]]:
    opening = answer | {"status": "in_progress", "output": [], "usage": None}
    for number, (kind, rest) in enumerate(response_parts(answer, opening)):
        yield kind, {"type": kind, "sequence_number": number} | rest


def response_parts(answer: Any, opening: Any) -> Iterator[tuple[str, Any]]:
    yield "response.created", {"response": opening}
    for index, item in enumerate(answer["output"]):
        empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
        yield (
            "response.output_item.added",
            {"output_index": index, "item": item | empty | {"status": "in_progress"}},
        )
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            for part in halves(item["content"][0]["text"]):
                yield "response.output_text.delta", place | {"content_index": 0, "delta": part}
        else:
            for part in halves(item["arguments"]):
                yield "response.function_call_arguments.delta", place | {"delta": part}
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield "response.completed", {"response": answer}


def chat_usage(usage: Usage) -> Any:
    given = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": given,
        "completion_tokens": usage.output,
        "total_tokens": given + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    }


def chat(number: int, turn: Turn, step: Step, calls: list[Call], usage: Usage) -> Any:
    message: dict[str, Any] = {"role": "assistant", "content": step.say}
    if calls:
        message["tool_calls"] = [
            {
                "index": index,
                "id": f"call_{number}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(given)},
            }
            for index, (name, given) in enumerate(calls)
        ]
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_700_000_000 + number,
        "model": turn.model,
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        ],
        "usage": chat_usage(usage),
    }


def chat_events(answer: Any) -> Iterator[tuple[str, Any]]:
    """Yield chunks without names; the caller ends them with [DONE]."""
    frame = answer | {"object": "chat.completion.chunk"}
    choice = answer["choices"][0]

    def chunk(delta: Any, reason: str | None = None, **more: Any) -> tuple[str, Any]:
        choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
        return "", frame | {"choices": choices, "usage": None} | more

    yield chunk({"role": "assistant", "content": ""})
    for part in halves(choice["message"]["content"]):
        yield chunk({"content": part})
    for call in choice["message"].get("tool_calls", []):
        yield chunk({"tool_calls": [call]})
    yield chunk({}, choice["finish_reason"])
    yield "", frame | {"choices": [], "usage": answer["usage"]}
