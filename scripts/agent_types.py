"""Write the table of what each agent type can do: `scripts/agent_types.py docs/agents.md`.

A test compares the table in the documentation with the code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from mngr.agents.base import AgentType

BEGIN = "<!-- made by scripts/agent_types.py -->\n"
END = "<!-- end of what was made -->\n"


def overrides(method: str) -> Callable[[AgentType], bool]:
    return lambda kind: getattr(type(kind), method) is not getattr(AgentType, method)


ROWS: tuple[tuple[str, Callable[[AgentType], bool]], ...] = (
    ("reports whether it is working, waiting, asking or has failed", overrides("signals")),
    ("messages are confirmed by its own records", overrides("evidence")),
    ("`start` resumes the conversation", lambda kind: bool(kind.conversation)),
    ("`clone` continues with a copy of the conversation", lambda kind: kind.forks),
    ("`transcript`", lambda kind: kind.reader is not None),
    ("`usage`: tokens and cost", lambda kind: bool(kind.meter())),
    ("`--max-cost`, `--max-tokens`", lambda kind: bool(kind.meter())),
    ("`answer --allow`, `answer --deny`", overrides("answer")),
)


def table(types: Mapping[str, AgentType]) -> str:
    """Return a Markdown table with a row per capability and a column per type."""
    names = [f"`{name}`" for name in types]
    lines = [["", *names], ["---", *("---" for _ in names)]]
    kinds = list(types.values())
    lines += [[what, *("yes" if has(kind) else "" for kind in kinds)] for what, has in ROWS]
    lines += [["required program", *(_code(kind.program) for kind in kinds)]]
    lines += [["program of `--foreground`", *(_code(kind.headless) for kind in kinds)]]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _code(words: str) -> str:
    return f"`{words}`" if words else ""


def builtin_types() -> dict[str, AgentType]:
    from mngr.plugins.registry import own_registry

    registry = own_registry()
    found = {name: registry.load("agent_type", name) for name in registry.names("agent_type")}
    return {name: kind() for name, kind in found.items() if isinstance(kind, type)}


def filled(document: str, made: str) -> str:
    """Return the document with the text between the marks replaced."""
    before, _, rest = document.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the marks {BEGIN!r} and {END!r} are not there")
    return f"{before}{BEGIN}\n{made}\n{END}{after}"


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        document = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(filled(document, table(builtin_types())))


if __name__ == "__main__":
    main(sys.argv[1])
