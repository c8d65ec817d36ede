"""Any other engine, by commands in the settings.

    [providers.incus]
    create = "incus launch images:debian/12 {name} >&2 && echo {name}"
    exec = "incus exec {handle} --"
    list = "incus list -f csv -c ns"
    destroy = "incus delete -f {handle}"
    snapshot = "incus snapshot create {handle} {label}"

Every template except `exec` and `attach` is a script for `sh -c`. A value in braces is quoted for
the shell when it is inserted, so the template has no quotes around it. `exec`, and `attach` for a
terminal, are split into words as a shell does, then each value is inserted as is, and the words of
the command are appended. With `joined = true` they are appended as one word, quoted for a shell on
the host, as ssh and similar programs require.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mngr.errors import MngrError, UsageError
from mngr.hosts import ledger, spawn
from mngr.hosts.base import Capabilities, HostRequest, Lease
from mngr.hosts.engines import holding
from mngr.hosts.engines.engine import LOOK, Engine
from mngr.hosts.ledger import HostNote
from mngr.model.quoting import join, quote
from mngr.settings.layers import Config

LONG = 3600.0
"""Seconds that a template may take; it may build an image."""
PLACE = re.compile(r"\{([a-z]+(?:\.[A-Za-z0-9_-]+)?)\}")
TEMPLATES = ("create", "exec", "list", "destroy")
"""Required templates; `snapshot`, `start`, `stop` and `attach` are optional."""


def __getattr__(name: str) -> object:
    """Return the provider for `mngr.hosts.engines.command:NAME`, one per table of templates."""
    if name.startswith("_"):
        raise AttributeError(name)
    return lambda config: CommandProvider(config, name)


class CommandProvider(Engine):
    """An engine described in the settings."""

    def __init__(self, config: Config, name: str) -> None:
        self.name = name
        super().__init__(config)
        able = {key: bool(self.setting(key)) for key in ("create", "snapshot", "start", "stop")}
        self.capabilities = Capabilities(
            new_hosts=able["create"],
            snapshots=able["snapshot"],
            restarts=able["start"] and able["stop"],
        )
        asked = PLACE.findall(self.setting("create"))
        self.build_keys = tuple(dict.fromkeys(key[2:] for key in asked if key.startswith("b.")))

    def why_not(self) -> str:
        missing = [key for key in TEMPLATES if not self.setting(key)]
        if missing:
            return f"providers.{self.name} has no {missing[0]}"
        try:
            self._run("list", {}, LOOK)
        except MngrError as error:
            return error.message
        return ""

    def argv(self, handle: str, argv: Sequence[str], *, tty: bool) -> list[str]:
        joined = self._settings.get("joined") is True
        return [*self.entering(handle, tty=tty), *([join(argv)] if joined else argv)]

    def entering(self, handle: str, *, tty: bool) -> list[str]:
        from shlex import split

        template = (self.setting("attach") if tty else "") or self._template("exec")
        try:
            words = split(template)
        except ValueError as error:
            raise UsageError(f"providers.{self.name}.exec: {error}") from None
        return [filled(word, {"handle": handle}) for word in words]

    def make(self, note: HostNote, request: HostRequest) -> str:
        values = {f"b.{key}": request.build.get(key, "") for key in self.build_keys}
        hold = join(holding.words(note.id, note.lifetime, note.idle))
        tags = join([f"{key}={value}" for key, value in note.tags.items()])
        scripts = {"hold": hold, "args": join(request.start), "tags": tags}
        values |= {"name": note.name, "id": note.id, "lifetime": str(round(note.lifetime or 0))}
        lines = self._run("create", values, LONG, scripts).splitlines()
        if not lines:
            raise MngrError(f"providers.{self.name}.create printed no handle")
        return lines[-1].strip()

    def remove(self, handle: str) -> None:
        """Run the template; ignore its failure if the host no longer exists."""
        try:
            self._run("destroy", {"handle": handle}, LONG)
        except MngrError:
            if handle in self._listed():
                raise

    def start(self, handle: str) -> None:
        self._run("start", {"handle": handle}, LONG)

    def stop(self, handle: str) -> None:
        self._run("stop", {"handle": handle}, LONG)

    def snapshot(self, handle: str, name: str) -> str:
        self._run("snapshot", {"handle": handle, "label": name}, LONG)
        return name

    def leases(self) -> list[Lease]:
        """Return the listed hosts that this home created.

        An engine need not support tags: a host is recognised by its handle, or by its name or id if
        mngr was killed before it had the handle.
        """
        notes = list(ledger.known(self.controller, self.name))
        ours = {each: note for note in notes for each in _handles(note)}
        mine = ledger.controller(self.controller)
        return [
            Lease(
                handle=handle, host_id=ours[handle].id, name=ours[handle].name, controller=mine,
                running=state.lower().startswith("running"), reason=state.lower(),
                ends=_ends(ours[handle]),
            )
            for handle, state in self._listed().items()
            if handle in ours
        ]  # fmt: skip

    def _listed(self) -> dict[str, str]:
        """Return the state of every host by handle, from lines with a space, comma or tab."""
        lines = self._run("list", {}, LOOK).splitlines()
        pairs = (re.split(r"[\s,]+", line.strip(), maxsplit=1) for line in lines if line.strip())
        return {handle: " ".join(state) for handle, *state in pairs}

    def _template(self, key: str) -> str:
        template = self.setting(key)
        if not template:
            raise UsageError(f"providers.{self.name} has no {key}", "see docs/hosts.md")
        return template

    def _run(
        self,
        key: str,
        values: Mapping[str, str],
        timeout: float,
        scripts: Mapping[str, str] | None = None,
    ) -> str:
        """Run a template; `scripts` are inserted as is, because their words are quoted."""
        every = {key: quote(value) for key, value in values.items()} | dict(scripts or {})
        script = filled(self._template(key), every)
        done = spawn.run(["sh", "-c", script], timeout=timeout)
        done.raise_if_failed(f"providers.{self.name}.{key}")
        return done.stdout.decode("utf-8", "surrogateescape").strip()


def _handles(note: HostNote) -> tuple[str, ...]:
    return (note.handle,) if note.handle else (note.name, note.id)


def _ends(note: HostNote) -> float | None:
    return note.time + note.lifetime if note.lifetime else None


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return the template with each `{name}` replaced; other braces are kept."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name not in values:
            hint = f"known here: {', '.join(sorted(values)) or 'none'}"
            raise UsageError(f"{{{name}}} in a template is unknown", hint)
        return values[name]

    return PLACE.sub(value, template)
