"""The result of a command, on a host or in a repository."""

from __future__ import annotations

from mngr.errors import MngrError
from mngr.model.struct import Struct


class Completed(Struct):
    """The result of a command."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def complaint(self) -> str:
        """Return the last line of stderr, which in most programs is the error; git adds advice."""
        told = self.stderr.decode("utf-8", "replace").strip()
        cause = told.partition("fatal: Could not read from remote")[0].strip()
        lines = (cause or told).splitlines()
        if len(lines) > 1 and lines[-1].startswith("tar: "):
            lines.pop()  # in any language, it only says that there were errors
        return lines[-1] if lines else f"exit code {self.code}"

    def raise_if_failed(self, what: str, kind: type[MngrError] = MngrError) -> None:
        """Raise an error with what could not be done and why, unless the exit code is 0."""
        if self.code:
            raise kind(f"{what}: {self.complaint}")
