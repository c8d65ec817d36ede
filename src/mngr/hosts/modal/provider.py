"""Modal sandboxes as hosts. The handle is the host's id: its sandbox changes at each start."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping

from mngr import errors
from mngr.errors import MngrError, Unreachable, UsageError
from mngr.hosts import ledger
from mngr.hosts.base import Capabilities, HostRequest, Lease
from mngr.hosts.engines import engine, holding
from mngr.hosts.engines.engine import Engine, EngineHost
from mngr.hosts.ledger import HostNote
from mngr.hosts.modal import enter
from mngr.hosts.modal import state as states
from mngr.model.durations import parse_duration
from mngr.model.struct import Json

DAY = 86400
"""Seconds after which Modal ends a sandbox."""
MARGIN = 900
"""A sandbox ends itself this many seconds before Modal does, so that its files are kept."""
IDLE = "2h"
LONG = 3700.0
"""Seconds for requests that may build an image or take a snapshot."""


PRICES = {"cpu": "0.00003942", "memory": "0.00000672"}
"""Dollars per second of a physical core and of a GiB, as Modal lists them for sandboxes."""
OWN = ("HOME", "PATH", "PWD", "OLDPWD", "SHLVL", "TERM", "_", "USER", "SHELL", "HOSTNAME")
"""Variables of a sandbox that its agents do not get."""


class ModalHost(EngineHost):
    """A Modal sandbox."""

    @property
    def environment(self) -> dict[str, str]:  # type: ignore[override]
        """Return the environment with the variables of its secrets, read in the sandbox."""
        asked = self._engine.asked  # type: ignore[attr-defined]
        known = cores(asked(self._note.build, "cpu", "1"))
        if not asked(self._note.build, "secret"):
            return known
        told = os.fsdecode(self.run(["env", "-0"], timeout=60).stdout).split("\0")
        pairs = (each.partition("=") for each in told if "=" in each)
        return {**{name: value for name, _, value in pairs if name not in OWN}, **known}


class ModalProvider(Engine):
    name = "modal"
    program = sys.executable
    capabilities = Capabilities(new_hosts=True, snapshots=True, restarts=True)
    build_keys = (
        *("image", "file", "context", "base", "cpu", "memory", "gpu", "region"),
        *("secret", "volume", "offline", "cidr"),
    )

    def entering(self, handle: str, *, tty: bool) -> list[str]:
        kind = "tty" if tty else "pipe"
        return [sys.executable, "-I", "-S", enter.__file__, self.controller, handle, kind]

    def host(self, note: HostNote) -> ModalHost:
        return ModalHost(self, note)

    def hosts(self) -> list[EngineHost]:
        """Return the hosts; without a login, raise once instead of once per host."""
        found = super().hosts()
        if found and (why := self.why_not()):
            raise MngrError(why)
        return found

    def why_not(self) -> str:
        """Return why Modal cannot be used, without network access or importing the SDK."""
        from importlib.util import find_spec

        if find_spec("modal") is None:
            return "modal: its Python package is not installed: pip install 'mngr[modal]'"
        config = os.environ.get("MODAL_CONFIG_PATH") or os.path.expanduser("~/.modal.toml")
        if os.environ.get("MODAL_TOKEN_ID") or os.path.exists(config):
            return ""
        return "modal: no token found: run `modal token new`"

    def asked(self, build: Mapping[str, str], key: str, default: str = "") -> str:
        """Return the value of -b, else of the settings."""
        return build.get(key) or self.setting(key, default)

    def rate(self, build: Mapping[str, str]) -> float | None:
        """Return the price from the settings; a GPU has no price unless one is set."""
        cpu = number(self.asked(build, "cpu", "1"), "cpu") * self._price("cpu")
        memory = megabytes(self.asked(build, "memory", "2048")) / 1024 * self._price("memory")
        if not self.asked(build, "gpu"):
            return cpu + memory
        return cpu + memory + self._price("gpu") if self.setting("gpu_price") else None

    def _price(self, what: str) -> float:
        key = f"{what}_price"
        return number(self.setting(key, PRICES.get(what, "0")), f"providers.modal.{key}")

    def cost(self, note: HostNote) -> float | None:
        """Return the cost for the time that its sandboxes ran."""
        rate, state = self.rate(note.build), states.read(self.controller, note.id)
        if rate is None:
            return None
        running = time.time() - state.made if state.made and not state.ended else 0.0
        return rate * (state.ran + running)

    def make(self, note: HostNote, request: HostRequest) -> str:
        self.call("create", LONG, host=note.id, wanted=self.wanted(note))
        return note.id

    def wanted(self, note: HostNote) -> dict[str, Json]:
        """Return the sandbox to create, as service.Wanted expects it."""
        build, life = note.build, self.life(note.lifetime)
        idle = note.idle or parse_duration(self.setting("idle", IDLE))
        made: dict[str, Json] = {
            "name": note.id,
            "argv": [*holding.words(note.id, life, idle)],
            "tags": {**note.tags, **self.tags(note.replace(lifetime=life))},
            "timeout": round(min(life + MARGIN, DAY)),
            "cpu": number(self.asked(build, "cpu", "1"), "cpu"),
            "memory": megabytes(self.asked(build, "memory", "2048")),
            "env": {**cores(self.asked(build, "cpu", "1"))},
            "renewed": note.lifetime is None,
            "offline": self.asked(build, "offline") in ("1", "yes", "true"),
            "secret": _several(self.asked(build, "secret")),
            "volume": _volumes(self.asked(build, "volume")),
        }
        for key in ("image", "base", "gpu", "region"):
            made[key] = self.asked(build, key)
        if build.get("file"):
            made["file"] = os.path.abspath(build["file"])
            made["context"] = os.path.abspath(build.get("context", "."))
        if cidr := self.asked(build, "cidr"):
            made["cidr"] = _several(cidr)
        return made

    def life(self, lifetime: float | None) -> float:
        longest = DAY - MARGIN
        if lifetime is not None and lifetime > DAY:
            hint = "use --max-age 1d or less; `mngr start` continues from the last snapshot"
            raise UsageError("Modal ends every sandbox after 24 hours", hint)
        return min(lifetime or longest, longest)

    def sought(self, note: HostNote) -> str:
        """Return the id, known beforehand; the bridge waits for a sandbox that is being created."""
        return note.id

    def remove(self, handle: str) -> None:
        self.call("remove", 120, host=handle)

    def start(self, handle: str) -> None:
        self.call("start", LONG, host=handle)

    def stop(self, handle: str) -> None:
        self.call("stop", LONG, host=handle)

    def snapshot(self, handle: str, name: str) -> str:
        """Return the image's id: Modal's images have no names."""
        return str(self.call("snapshot", LONG, host=handle))

    def leases(self) -> list[Lease]:
        notes = {note.id: note for note in ledger.known(self.controller, self.name)}
        told = self.call("leases", engine.LOOK, known=[*notes])
        assert isinstance(told, dict)
        running, ended = told["running"], told["ended"]
        assert isinstance(running, list)
        assert isinstance(ended, dict)
        found = [self._running(each) for each in running if isinstance(each, dict)]
        for host_id, reason in ended.items():
            values = [*self.tags(notes[host_id]).values()]
            found.append(engine.lease(host_id, values, False, str(reason)))
        return found

    def _running(self, tags: dict[str, Json]) -> Lease:
        values = [str(tags.get(f"{engine.TAG}{key}", "")) for key in engine.KEYS]
        return engine.lease(values[0], values, True, "")

    def call(self, op: str, seconds: float, **words: Json) -> Json:
        """Send a request to the bridge."""
        if why := self.why_not():
            raise MngrError(why)
        try:
            door = enter.reach(self.controller)
            door.settimeout(seconds)
            enter.send(door, json.dumps({"op": op, **words}).encode())
            told = _line(door)
        except TimeoutError:
            raise Unreachable(f"modal did not answer within {seconds:g} s") from None
        except OSError as error:
            raise MngrError(f"modal: {error}") from None
        if "error" in told:
            raise _error(told)
        return told.get("answer")


def _line(door: object) -> dict[str, Json]:
    parts = []
    while chunk := door.recv(1 << 16):  # type: ignore[attr-defined]
        parts.append(chunk)
    if not parts:
        raise OSError("the bridge ended; see `mngr host audit`")
    found: dict[str, Json] = json.loads(b"".join(parts))
    return found


def _error(told: Mapping[str, Json]) -> MngrError:
    name = str(told["kind"])
    kind = engine.NotMade if name == "NotMade" else getattr(errors, name, MngrError)
    made: MngrError = kind(str(told["error"]), str(told.get("hint") or ""))
    return made


def cores(cpu: str) -> dict[str, str]:
    """Return variables that limit `nproc` and others to the requested cores."""
    count = str(max(1, -int(-number(cpu, "cpu") // 1)))
    names = ("OMP_NUM_THREADS", "GOMAXPROCS", "CARGO_BUILD_JOBS", "PYTEST_XDIST_AUTO_NUM_WORKERS")
    return dict.fromkeys(names, count)


def number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{what}={text}: not a number") from None


def megabytes(text: str) -> int:
    """Parse `2g`, `512m`, or plain MiB."""
    units = {"g": 1024.0, "m": 1.0}
    lower = text.lower().removesuffix("ib").removesuffix("b")
    unit = units.get(lower[-1:], 0.0)
    return round(number(lower[:-1] if unit else lower, "memory") * (unit or 1.0))


def _several(text: str) -> list[Json]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _volumes(text: str) -> dict[str, Json]:
    """Parse `NAME:/there,OTHER:/elsewhere` into a table by path."""
    made: dict[str, Json] = {}
    for each in str(text).split(",") if text else ():
        name, _, path = each.strip().partition(":")
        if not name or not path.startswith("/"):
            raise UsageError(f"-b volume={each}: expected NAME:/PATH")
        made[path] = name
    return made
