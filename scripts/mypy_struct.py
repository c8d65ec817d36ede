"""A mypy plugin that checks `struct.replace(name=3)` like the struct's constructor.

mypy computes the signature of `dataclasses.replace` for every class that looks like a dataclass.
This plugin applies it to the structs' own `replace`.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.plugin import MethodSigContext, Plugin
from mypy.types import CallableType, FunctionLike, Instance, get_proper_type


class StructPlugin(Plugin):
    def get_method_signature_hook(
        self, fullname: str
    ) -> Callable[[MethodSigContext], FunctionLike] | None:
        return _signature if fullname.endswith(".replace") else None


def _signature(context: MethodSigContext) -> FunctionLike:
    of = get_proper_type(context.type)
    if isinstance(of, Instance) and of.type.has_base("mngr.model.struct.Struct"):
        kept = of.type.get("__mypy-replace")
        found = get_proper_type(kept.type) if kept else None
        if isinstance(found, CallableType):
            return found.copy_modified(ret_type=of, name="replace")
    return context.default_signature


def plugin(version: str) -> type[Plugin]:
    return StructPlugin
