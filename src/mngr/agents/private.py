"""Remove secrets from a coding agent's settings before they are copied to another machine."""

from __future__ import annotations

import re
from collections.abc import Mapping

TABLES = ("env", "environment", "headers", "http_headers", "set")
"""Tables of variables and headers, which may hold a secret under any name."""
SECRET = {"key", "keys", "apikey", "token", "tokens", "secret", "secrets", "password", "passwd"}
SECRET |= {"passphrase", "credential", "credentials", "authorization", "bearer", "cookie"}
HARMLESS = {"var", "vars", "store", "method", "instructions"}
"""Last words of names such as `bearer_token_env_var`, whose values are no secrets."""
WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
REFERENCE = re.compile(r"\{(env|file):")
"""OpenCode's way to name a variable or a file instead of its content."""
SHAPES = re.compile(
    r"\b(sk|rk)-[\w-]{16}|\bgh[a-z]_\w{20}|\bgithub_pat_\w{20}|\bxox[a-z]-|\bglpat-|\bAKIA[A-Z0-9]{16}"
    r"|\beyJ[\w-]{10,}\.|\bBearer |://[^/\s@]+:[^/\s@]+@"
    r"|(?i:(^--?|[?&])[\w-]*(key|token|secret|password)[\w-]*(=|$))"
)
"""Values that are secrets whatever their name: keys, a password in a URL, `--api-key`."""


def without_secrets(
    settings: Mapping[str, object], path: str = ""
) -> tuple[dict[str, object], list[str]]:
    """Return the settings without secrets, and the dotted names of what was left out."""
    kept: dict[str, object] = {}
    left_out: list[str] = []
    for name, value in settings.items():
        where = f"{path}{name}"
        if isinstance(value, dict) and name not in TABLES and not _names_a_secret(name):
            kept[name], inner = without_secrets(value, f"{where}.")
            left_out += inner
        elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
            pairs = [without_secrets({"": each}, where) for each in value]
            kept[name] = [clean[""] for clean, _ in pairs if "" in clean]
            left_out += [each for _, inner in pairs for each in inner]
        elif _private(name, value):
            left_out.append(where)
        else:
            kept[name] = value
    return kept, left_out


def _private(name: str, value: object) -> bool:
    if isinstance(value, dict):
        return not all(REFERENCE.search(str(each)) for each in value.values())
    values = value if isinstance(value, list) else [value]
    texts = [each for each in values if isinstance(each, str) and not REFERENCE.search(each)]
    return any(map(SHAPES.search, texts)) or (bool(texts) and _names_a_secret(name))


def _names_a_secret(name: str) -> bool:
    words = [each.lower() for each in WORDS.findall(name)]
    return bool(SECRET & {*words}) and words[-1] not in HARMLESS and words[0] != "env"


def remark(file: str, left_out: list[str]) -> tuple[str, ...]:
    """Return a line for stderr about what was left out of a file."""
    names = ", ".join(left_out[:5]) + (f" and {len(left_out) - 5} more" if left_out[5:] else "")
    hint = "use --pass-login to copy the file as it is"
    return (f"{file}: {names} may be secret and was not copied; {hint}",) if left_out else ()
