"""Words and environments pass through a real sh unharmed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mngr.model.quoting import join, portable, quote
from mngr.ops.lifecycle.launch import env_file
from tests.support.properties import examples

raw = st.binary(max_size=40).map(lambda data: os.fsdecode(data.replace(b"\0", b"")))
PRINT = ["printf", "%s\\0"]


@examples(40)
@given(st.lists(raw, min_size=1, max_size=5))
def test_any_words_reach_a_program_through_sh_byte_for_byte(words: list[str]) -> None:
    script = os.fsencode(f"exec env {join([*PRINT, *words])}")
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    assert done.stdout == b"".join(os.fsencode(word) + b"\0" for word in words)


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "fish", "tcsh"])
@examples(10)
@given(words=st.lists(raw, min_size=1, max_size=5))
@example(words=["a\n\n", "!x", "\\\\n", "%s %%", "it's", "$HOME `x`", '"', "\u00e4", "\udcff"])
def test_any_words_pass_through_any_login_shell(shell: str, words: list[str]) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    line = portable(["env", *PRINT, *words])
    assert line.isascii() and line.isprintable() and "!" not in line
    done = subprocess.run([shell, "-c", line], capture_output=True, check=True)
    assert done.stdout == b"".join(os.fsencode(word) + b"\0" for word in words)


def test_a_word_with_an_equals_sign_is_never_an_assignment() -> None:
    assert quote("A=b") == "'A=b'"


@examples(20)
@given(st.dictionaries(st.from_regex(r"X_[A-Z0-9_]{1,10}", fullmatch=True), raw, max_size=4))
def test_any_environment_passes_through_the_env_file(env: dict[str, str]) -> None:
    script = b"set -e\n" + env_file(env) + b"exec env -0\n"
    done = subprocess.run(["sh"], input=script, capture_output=True, check=True)
    pairs = [pair.partition(b"=") for pair in done.stdout.split(b"\0")]
    seen = {os.fsdecode(key): os.fsdecode(value) for key, _, value in pairs}
    assert {key: seen.get(key) for key in env} == env


def test_nothing_in_a_value_is_executed(tmp_path: Path) -> None:
    values = [
        "$(touch x)",
        "`touch x`",
        "a;touch x",
        "'; touch x; '",
        "\n touch x \n",
        "\\'; touch x",
    ]
    script = env_file({f"V{n}": value for n, value in enumerate(values)})
    subprocess.run(["sh"], input=script, cwd=tmp_path, check=True)
    assert not (tmp_path / "x").exists()
