"""An engine that consists only of folders and processes, described by templates.

A host is a folder and a process that holds it; commands run with that folder as their home.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.cli import Cli
from tests.support.places import ended, without_hosts

TEMPLATES = {
    "CREATE": "mkdir -p $D/{name} && echo {b.colour} > $D/{name}/colour && "
    'for each in {args}; do echo "$each" >> $D/{name}/args; done; '
    'for each in {tags}; do echo "$each" >> $D/{name}/tags; done; '
    "{ setsid env -u MNGR_HOST_DIR HOME=$D/{name} {hold} < /dev/null > /dev/null 2>&1 & } && "
    "echo $! > $D/{name}/pid && echo {name}",
    "EXEC": 'sh -c \'kill -0 $(cat "$D/$0/pid") && '
    'exec env -u MNGR_HOST_DIR HOME=$D/$0 "$@"\' {handle}',
    "LIST": "cd $D && for each in *; do [ -e $each/pid ] || continue; "
    "kill -0 $(cat $each/pid) 2> /dev/null && echo $each, RUNNING || echo $each, STOPPED; done",
    "DESTROY": "grep -lsF $D/{handle} /proc/[0-9]*/environ | cut -d/ -f3 | "
    "xargs -r kill -KILL 2> /dev/null; rm -rf $D/{handle}",
    "SNAPSHOT": "cp -a $D/{handle} $D/.{label}",
}


@contextmanager
def on_folders(base: Path) -> Iterator[Cli]:
    """Yield a CLI whose provider `folders` creates such hosts."""
    cli = Cli(base)
    place = base / "folders"
    place.mkdir()
    for key, text in TEMPLATES.items():
        cli.env[f"MNGR__PROVIDERS__FOLDERS__{key}"] = text.replace("$D", str(place))
    try:
        yield cli
    finally:
        without_hosts(cli)
        ended(cli)
