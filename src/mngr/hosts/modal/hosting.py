"""Hosts in the bridge: created, found by their tags, saved as images, and created again."""

from __future__ import annotations

import asyncio
import os
import time

from mngr.errors import MngrError, NotFound
from mngr.hosts.engines import holding
from mngr.hosts.engines.engine import NotMade
from mngr.hosts.modal import state as states
from mngr.hosts.modal.service import KEPT, Service, Wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import modal

    from mngr.hosts.modal.service import Listed
    from mngr.model.struct import Json

FRESH = 1.0
"""Seconds for which one list is reused for all callers."""
WATCH = 60.0
"""Seconds between two checks of the remaining lifetime of sandboxes."""
GUARD = 900.0
"""Seconds before the end of a sandbox at which a snapshot is taken."""
ID, ENDS = "mngr-host", "mngr-host-ends"


class Hosting:
    """The hosts of one home and one login."""

    def __init__(self, home: str) -> None:
        os.makedirs(os.path.join(home, "modal"), mode=0o700, exist_ok=True)
        self._home = home
        app = os.environ.get("MNGR_MODAL_APP", "mngr")
        self.service = Service(app, os.path.join(home, "modal", "rate"))
        self._sandboxes: dict[str, modal.Sandbox] = {}
        self._listing: asyncio.Task[list[Listed]] | None = None
        self._listed = 0.0
        self._asking: dict[str, asyncio.Task[str]] = {}
        self._making: dict[str, asyncio.Event] = {}
        """By host id; set when its creation has succeeded or failed."""

    async def perform(self, op: str, asked: dict[str, Json]) -> Json:
        host = str(asked.get("host", ""))
        if op == "create":
            return await self.create(host, Wanted.from_json(asked["wanted"]))
        if op == "leases":
            known = asked["known"]
            assert isinstance(known, list)
            return await self.leases([str(each) for each in known])
        actions = {"remove": self.remove, "stop": self.stop, "start": self.start}
        if op == "snapshot":
            return await self.snapshot(host)
        await actions[op](host)
        return None

    async def running(self) -> list[Listed]:
        """Return running sandboxes, with one request for all concurrent callers."""
        if self._listing is None or (
            self._listing.done() and time.monotonic() - self._listed > FRESH
        ):
            self._listing = asyncio.create_task(self._list())
        return await asyncio.shield(self._listing)

    async def _list(self) -> list[Listed]:
        found = await self.service.list()
        self._listed = time.monotonic()
        return found

    def _changed(self) -> None:
        self._listing = None

    async def create(self, host: str, wanted: Wanted) -> str:
        known = self._making[host] = asyncio.Event()
        try:
            made = self._sandboxes[host] = await self.service.create(wanted)
        except NotFound as error:  # a missing image or secret, not a missing host
            raise NotMade(error.message, error.hint) from None
        finally:
            self._changed()
            del self._making[host]
            known.set()
        states.changed(
            self._home, host, sandbox=made.object_id, wanted=wanted.to_json(), ended="",
            stopped=False, made=time.time(),
        )  # fmt: skip
        return str(made.object_id)

    async def sandbox(self, host: str) -> modal.Sandbox:
        """Return the current sandbox of a host."""
        if host not in self._sandboxes:
            mine = [each for each in await self.running() if each.tags.get(ID) == host]
            if not mine:
                raise NotFound("its sandbox is not running")
            self._sandboxes[host] = await self.service.sandbox(mine[0].id)
        return self._sandboxes[host]

    async def lost(self, host: str) -> None:
        """Forget the sandbox of a host after an unexpected error, so that it is looked up again."""
        self._sandboxes.pop(host, None)
        self._changed()

    async def leases(self, known: list[str]) -> Json:
        """Return running sandboxes with their tags; for known hosts that do not run, the reason."""
        running = await self.running()
        mine = {each.tags[ID]: each for each in running if ID in each.tags}
        gone = [each for each in known if each not in mine]
        reasons = await asyncio.gather(*(self._why(each) for each in gone))
        return {
            "running": [{**each.tags} for each in mine.values()],
            "ended": {host: why for host, why in zip(gone, reasons, strict=True) if why},
        }

    async def _why(self, host: str) -> str:
        """Return why a host ended, asked once since it is final; "" if the host never existed."""
        state = states.read(self._home, host)
        if state.ended or not state.sandbox:
            return state.ended
        self._sandboxes.pop(host, None)
        if host not in self._asking:
            self._asking[host] = asyncio.create_task(self._end(host, state.sandbox))
            self._asking[host].add_done_callback(lambda done: self._asking.pop(host))
        return await asyncio.shield(self._asking[host])

    async def _end(self, host: str, sandbox: str) -> str:
        try:
            reason, code = await self.service.ending(sandbox)
            told = holding.ended(code) or (f"{reason} (exit code {code})" if code else reason)
        except NotFound:
            told = "Modal no longer lists its sandbox"
        return self._over(host, told).ended

    def _over(self, host: str, why: str) -> states.ModalState:
        """Record why a host ended and how long it ran, at most its lifetime."""
        state = states.read(self._home, host)
        ran = min(time.time() - state.made, float(str(state.wanted.get("timeout") or 0)))
        return states.changed(self._home, host, ended=why, ran=state.ran + ran)

    async def remove(self, host: str) -> None:
        """End the known sandbox, or all with the host's tag; its name allows only one to run."""
        if host in self._making:  # the client that requested it was killed
            await self._making[host].wait()
        known = self._sandboxes.pop(host, None)
        if known is not None:
            await self.service.terminate(known)
        else:
            self._changed()
            mine = [each.id for each in await self.running() if each.tags.get(ID) == host]
            for each in mine:
                await self.service.terminate(await self.service.sandbox(each))
        self._changed()
        states.forget(self._home, host)

    async def snapshot(self, host: str) -> str:
        """Return a new snapshot; for a host that is not running, the one taken when it ended."""
        try:
            sandbox = await self.sandbox(host)
        except NotFound:
            return (await self._kept(host)).image
        image = await self.service.snapshot(sandbox)
        states.changed(self._home, host, image=image, taken=time.time())
        return image

    async def _kept(self, host: str) -> states.ModalState:
        """Return the state with Modal's exit image, if mngr did not stop the sandbox."""
        state = states.read(self._home, host)
        if state.stopped or not state.sandbox:
            return state
        kept = await self.service.exit_snapshot(state.sandbox)
        if not kept or kept == state.image:
            return state
        return states.changed(self._home, host, image=kept, taken=time.time())

    async def stop(self, host: str) -> None:
        """Save the file system, then end the sandbox."""
        sandbox = await self.sandbox(host)
        image = await self.service.snapshot(sandbox)
        states.changed(self._home, host, image=image, taken=time.time(), stopped=True)
        await self.service.terminate(sandbox)
        self._sandboxes.pop(host, None)
        self._changed()
        self._over(host, "its files are kept as a snapshot")

    async def start(self, host: str) -> None:
        """Create a sandbox from the last snapshot; do nothing if one is running."""
        if any(each.tags.get(ID) == host for each in await self.running()):
            return
        state = await self._kept(host)
        if not state.image or not state.wanted:
            raise MngrError("modal: its sandbox left no snapshot, so its files are lost")
        if time.time() - state.taken > KEPT:
            raise MngrError("modal: its last snapshot is over 30 days old, and Modal removed it")
        fresh = _again(Wanted.from_json(state.wanted), host)
        await self.create(host, fresh.replace(image=state.image, file="", base=""))

    async def guard(self) -> None:
        """Snapshot sandboxes that are close to their end, while the bridge runs."""
        while True:
            await asyncio.sleep(WATCH)
            for host in list(self._sandboxes):
                try:
                    await self._guarded(host)
                except MngrError:
                    continue

    async def _guarded(self, host: str) -> None:
        state = states.read(self._home, host)
        tags = state.wanted.get("tags")
        ends = float(str(tags.get(ENDS, 0))) if isinstance(tags, dict) else 0.0
        if ends and ends - time.time() < GUARD and state.taken < ends - GUARD:
            await self.snapshot(host)


def _again(wanted: Wanted, host: str) -> Wanted:
    """Return the request with a new lifetime; --max-age counts from the first start."""
    if not wanted.renewed:
        return wanted
    *before, _, lifetime, idle = wanted.argv
    argv = (*before, f"{host}.{os.urandom(4).hex()}", lifetime, idle)
    tags = {**wanted.tags, ENDS: str(round(time.time() + int(lifetime)))}
    return wanted.replace(argv=argv, tags=tags)
