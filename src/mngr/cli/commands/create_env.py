"""The variables a new agent gets: --env, --env-file and --pass-env."""

from __future__ import annotations

import os

from mngr.cli.app.output import warn
from mngr.cli.app.parser import Namespace
from mngr.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ENV_FILE_LIMIT = 1 << 20


def environment(args: Namespace, below: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the type, then files, --pass-env and --env; later ones override."""
    found = {key: sound(value, f"agent_types: {key}") for key, value in below.items()}
    for path in args.env_file:
        found.update(read_env_file(path))
    for key in args.pass_env:
        if _key(key, "--pass-env") in os.environ:
            found[key] = os.environ[key]
        else:
            warn(f"--pass-env: {key} is not set here; the agent will not have it")
    for key, value in args.env.items():
        found[_key(key, "--env")] = sound(value, f"--env: {key}")
    return found


def _key(key: str, where: str) -> str:
    if not (key.isascii() and key.isidentifier()):
        raise UsageError(f"{where}: {key[:80]!r} is not a variable name")
    if key.startswith("MNGR_"):
        raise UsageError(f"{where}: {key} is set by mngr itself")
    return key


def sound(text: str, where: str) -> str:
    """Return the text if it can be passed to a program: no NUL and no lone surrogates."""
    try:
        if b"\0" not in os.fsencode(text):
            return text
    except UnicodeEncodeError:
        raise UsageError(f"{where}: contains a lone surrogate, which is not valid text") from None
    raise UsageError(f"{where}: contains a NUL character, which cannot be passed to a program")


def read_env_file(path: str) -> dict[str, str]:
    """Read KEY=VALUE lines. `export `, quoted values and # comments are allowed."""
    where = f"--env-file: {path}"
    try:
        with open(os.path.expanduser(path), "rb") as file:
            data = file.read(ENV_FILE_LIMIT + 1)
    except OSError as error:
        raise UsageError(f"{where}: {error.strerror}") from None
    if len(data) > ENV_FILE_LIMIT:
        raise UsageError(f"{where}: larger than 1 MiB")
    return dict(_assignments(os.fsdecode(data), where))


def _assignments(text: str, where: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.strip().removeprefix("export ").lstrip()
        if not line or line.startswith("#"):
            continue
        key, equals, value = line.partition("=")
        here = f"{where}:{number}"
        if not equals:
            raise UsageError(f"{here}: expected KEY=VALUE")
        key = _key(key.strip(), here)
        yield key, sound(_unquoted(value.strip(), here), f"{here}: {key}")


def _unquoted(value: str, where: str) -> str:
    """Remove quotes like a shell, without any expansion."""
    import re

    quote = value[:1]
    if quote not in ("'", '"'):
        return re.split(r"\s#", value, maxsplit=1)[0].rstrip()
    pattern = r"'([^']*)'\s*(#.*)?" if quote == "'" else r'"((?:[^"\\]|\\.)*)"\s*(#.*)?'
    match = re.fullmatch(pattern, value)
    if match is None:
        raise UsageError(f"{where}: the quotes do not match")
    return match[1] if quote == "'" else re.sub(r'\\(["\\$`])', r"\1", match[1])
