"""`mngr list --schema`: what `mngr list --format json` prints, as a JSON schema."""

from __future__ import annotations

from mngr.cli.app.output import one
from mngr.cli.commands.list_rows import FIELDS, ON_REQUEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.cli.app.parser import Namespace
    from mngr.model.struct import Json
    from mngr.query import Kind

NULLABLE = ("create_time", "start_time", "pid", "idle_seconds", "runtime_seconds", "exit_code")
TYPES = {"bool": "boolean", "int": "integer", "double": "number", "string": "string"}


def show_schema(args: Namespace) -> int:
    if args.format == "human":
        args.format = "json"
    one(args, schema(), "")
    return 0


def schema() -> dict[str, Json]:
    error: Json = {"type": "object", "required": ["message"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mngr list --format json",
        "type": "object",
        "required": ["agents", "errors"],
        "properties": {
            "agents": {"type": "array", "items": _agent()},
            "errors": {"type": "array", "items": error},
        },
    }


def _agent() -> Json:
    kinds = FIELDS.kinds
    properties: dict[str, Json] = {name: _type(kind, name) for name, kind in kinds.items()}
    properties["state"] = {"type": "string", "enum": _states()}
    always: list[Json] = [name for name in kinds if name not in ON_REQUEST or name == "usage"]
    return {"type": "object", "required": always, "properties": properties}


def _states() -> list[Json]:
    from mngr.model.state import State

    return [str(state) for state in State]


def _type(kind: Kind, name: str) -> Json:
    null = name in NULLABLE or name in ON_REQUEST
    if not isinstance(kind, str):
        inner: dict[str, Json] = {key: _type(each, "") for key, each in kind.items()}
        return {"type": _or_null("object", null), "required": list(inner), "properties": inner}
    if kind == "list":
        return {"type": "array", "items": {"type": "string"}}
    if kind == "any":
        return {"type": _or_null("object", null)}
    if kind in ("map", "string map"):
        return {"type": "object"}
    return {"type": _or_null(TYPES[kind], null)}


def _or_null(name: str, null: bool) -> Json:
    return [name, "null"] if null else name
