"""Plant every file in a repository that makes git run a program."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.support.cli import Cli

HOOKS = (
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit"),
    *("prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-checkout"),
    *("post-merge", "pre-push", "pre-receive", "update", "proc-receive", "post-receive"),
    *("post-update", "reference-transaction", "push-to-checkout", "pre-auto-gc", "post-rewrite"),
    *("sendemail-validate", "fsmonitor-watchman", "post-index-change"),
)

# {} is a separate program for each setting, so that its marker shows which one ran.
PROGRAMS = (
    *("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.gitProxy"),
    *("core.askPass", "core.alternateRefsCommand", "sequence.editor", "credential.helper"),
    *("diff.external", "diff.evil.textconv", "diff.evil.command", "merge.evil.driver"),
    *("gpg.program", "gpg.ssh.program", "gpg.x509.program", "uploadpack.packObjectsHook"),
    *("interactive.diffFilter", "pager.status", "pager.log", "pager.diff", "pager.for-each-ref"),
    *("gc.recentObjectsHook", "trailer.evil.command", "submodule.inner.update"),
)
FILTERS = ("filter.evil.clean", "filter.evil.smudge", "filter.evil.process")
SWITCHES = {
    "log.showSignature": "true",
    "protocol.allow": "always",
    "protocol.ext.allow": "always",
    "merge.default": "evil",
    "submodule.recurse": "true",
    "status.submoduleSummary": "true",
    "fetch.recurseSubmodules": "true",
    "extensions.partialClone": "evil",
    "remote.evil.promisor": "true",
    "core.repositoryFormatVersion": "1",
}
ALIASES = ("status", "diff", "log", "fetch", "add", "rev-parse", "diff-tree", "update-ref")
MISSING = "1234567890" * 4


class Planter:
    """Programs that record that they ran, and their environment."""

    def __init__(self, cli: Cli) -> None:
        self.cli, self.folder = cli, cli.base / "planted"
        (self.folder / "ran").mkdir(parents=True)
        cli.env["SECRET_TOKEN"] = "the user's own"

    def program(self, name: str) -> str:
        """Return a filter, a hook or a driver, which passes its input through."""
        path = self.folder / name.replace("/", "-")
        path.write_text(
            f'#!/bin/sh\n{{ echo "$0 $*"; env; }} > {self.folder}/ran/{path.name}\nexec cat\n'
        )
        path.chmod(0o755)
        return str(path)

    def ran(self) -> list[str]:
        """Return what ran since the last call."""
        found = sorted((self.folder / "ran").iterdir())
        names = [path.name for path in found]
        for path in found:
            path.unlink()
        return names

    def hooks(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        for name in HOOKS:
            link = folder / name
            link.unlink(missing_ok=True)
            link.symlink_to(self.program(f"{folder.parent.name}-hook-{name}"))

    def config(self, path: Path, where: str, *, filters: bool = False) -> None:
        """Add every setting that names a program to a configuration file."""
        keys = [*PROGRAMS, *(FILTERS if filters else ())]
        settings = {key: self.program(f"{where}-{key}") for key in keys}
        settings |= SWITCHES
        if where != "shared":  # the included file is read later, so it overrides the plain setting
            settings["include.path"] = str(self._included(where))
        settings |= {f"alias.{name}": "!" + self.program(f"{where}-alias") for name in ALIASES}
        elsewhere = f"ext::{self.program(f'{where}-ext')}"
        settings |= {"remote.evil.url": elsewhere, f"url.{elsewhere} .insteadOf": "/"}
        self.hooks(self.folder / f"{where}-hooks")
        settings["core.hooksPath"] = str(self.folder / f"{where}-hooks")
        _set(path, settings.items())

    def _included(self, where: str) -> Path:
        path = self.folder / f"{where}.inc"
        fsmonitor = self.program(f"{where}-included-fsmonitor")
        path.write_text(f"[core]\n\tfsmonitor = {fsmonitor}\n")
        return path


def _set(path: Path, settings: Iterable[tuple[str, str]]) -> None:
    """Set all values by writing the file as git would, in one process."""
    lines = []
    for key, value in settings:
        section, _, name = key.partition(".")
        middle, dot, last = name.rpartition(".")
        header = f'[{section} "{middle}"]' if dot else f"[{section}]"
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'{header}\n\t{last} = "{quoted}"\n')
    with path.open("a") as file:
        file.write("".join(lines))


def signed(cli: Cli, work: Path) -> str:
    """Commit with a signature, on the branch that is checked out there."""
    head = cli.git("rev-parse", "HEAD", cwd=work)
    text = cli.git("cat-file", "commit", head, cwd=work)
    top, _, message = text.partition("\n\n")
    armour = "-----BEGIN PGP SIGNATURE-----\n \n iQ==\n =aaaa\n -----END PGP SIGNATURE-----"
    done = subprocess.run(
        ["git", "hash-object", "-w", "-t", "commit", "--stdin"],
        input=f"{top}\ngpgsig {armour}\n\n{message}\n".encode(),
        cwd=work, env=cli.env, capture_output=True, check=True,
    )  # fmt: skip
    made = done.stdout.decode().strip()
    cli.git("reset", "-q", "--soft", made, cwd=work)
    return made
