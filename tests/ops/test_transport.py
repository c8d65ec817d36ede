"""How a repository on a host is named for git on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mngr.hosts.local import LocalHost
from mngr.ops.work import transport
from tests.support.properties import examples

words = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
    | st.sampled_from(["", " ", "%", "%s", "%S", "%G", "% ", "a b", "--", "%%G", "\n", "'"]),
    max_size=6,
)


class Echo(LocalHost):
    """Notes the words it was run with instead of running them."""

    def __init__(self, file: Path, prefix: list[str]) -> None:
        super().__init__("/nowhere")
        script = f"import json, sys; json.dump(sys.argv[1:], open({str(file)!r}, 'w'))"
        self.prefix = [sys.executable, "-c", script, *prefix]

    def argv(self, argv: object, *, tty: bool = False) -> list[str]:
        return [*self.prefix, *argv]  # type: ignore[misc]


@examples(20)
@given(words, st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_every_word_reaches_the_host_as_it_is(prefix: list[str], path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        seen = Path(folder) / "seen"
        url = transport.to_mirror(Echo(seen, prefix), f"/{path}").url
        allow = ["-c", "protocol.ext.allow=always"]
        env = {**os.environ, "LC_ALL": "C.UTF-8"}
        subprocess.run(["git", *allow, "ls-remote", url], capture_output=True, env=env)
        quiet = ["-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null"]
        expected = ["git", *quiet, "upload-pack", f"/{path}"]
        assert json.loads(seen.read_text()) == prefix + expected


def test_a_host_that_is_this_machine_needs_no_detour() -> None:
    assert transport.to_mirror(LocalHost("/nowhere"), "/a b%").url == "/a b%"


def test_a_pipe_fails_when_either_side_does() -> None:
    here = LocalHost("/nowhere")
    assert transport.pipe(["printf", "a'b"], ["cat"], here).stdout == b"a'b"
    assert transport.pipe(["sh", "-c", "echo x; exit 3"], ["cat"], here).code != 0
    assert transport.pipe(["true"], ["sh", "-c", "cat; exit 3"], here).code != 0
