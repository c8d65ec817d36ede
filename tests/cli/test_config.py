from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mngr.settings.schema import SETTINGS
from tests.support.cli import Cli


class Shell:
    """Runs mngr as a user would: own home, own project, nothing inherited."""

    def __init__(self, base: Path) -> None:
        self.home = base / "user"
        self.project = self.home / "project"
        (self.project / "src").mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        self.user_file = self.home / ".mngr" / "settings.toml"
        self.project_file = self.project / ".mngr" / "settings.toml"
        self.local_file = self.project / ".mngr" / "settings.local.toml"
        self.cwd = self.project / "src"
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        self.env = kept | {"HOME": str(self.home), "PYTHONSAFEPATH": "1"}

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mngr", "config", *words],
            cwd=self.cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def ok(self, *words: str) -> str:
        done = self(*words)
        assert (done.returncode, done.stderr.count("mngr: ")) == (0, 0), done.stderr
        return done.stdout

    def fails(self, code: int, *words: str) -> str:
        done = self(*words)
        assert (done.returncode, done.stdout) == (code, ""), done
        assert done.stderr.startswith("mngr: ")
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr

    def json(self, *words: str) -> dict[str, object]:
        found = json.loads(self.ok(*words, "--format", "json"))
        assert isinstance(found, dict)
        return found

    def write_user(self, text: str) -> None:
        self.user_file.parent.mkdir(exist_ok=True)
        self.user_file.write_text(text)


def use_editor(mngr: Shell, script: str) -> None:
    """`$1` is the file."""
    editor = mngr.home / "my editor"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o755)
    mngr.env["EDITOR"] = f"'{editor}'"


GUIDE = Path(__file__).parents[2] / "docs" / "configuration.md"


@pytest.fixture
def mngr(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_list_shows_the_defaults_of_a_fresh_install(mngr: Shell) -> None:
    lines = mngr.ok("list", "--origin").splitlines()
    assert lines[0].split() == ["KEY", "VALUE", "ORIGIN"]
    assert ["trash.keep", "14d", "default"] in [line.split() for line in lines]
    assert not mngr.user_file.exists()


def test_list_says_where_each_value_comes_from(mngr: Shell) -> None:
    mngr.ok("set", "tmux.width", "100")
    mngr.ok("set", "--scope", "project", "tmux.height", "30")
    mngr.ok("set", "--scope", "local", "trash.keep", "1h30m")
    mngr.env["MNGR__STOP__GRACE"] = "3"
    listed = mngr.json("list", "-S", "tmux.history=7")
    rows = listed["settings"]
    assert isinstance(rows, list)
    found = {row["key"]: (row["value"], row["origin"]) for row in rows}
    assert found["tmux.width"] == (100, str(mngr.user_file))
    assert found["tmux.height"] == (30, str(mngr.project_file))
    assert found["trash.keep"] == ("1h30m", str(mngr.local_file))
    assert found["stop.grace"] == (3, "MNGR__STOP__GRACE")
    assert found["tmux.history"] == (7, "-S")
    assert listed["errors"] == []


def test_list_of_one_scope_shows_only_its_file(mngr: Shell) -> None:
    mngr.ok("set", "tmux.width", "100")
    assert mngr.ok("list", "--scope", "user", "--format", "{key}={value}") == "tmux.width=100\n"
    assert mngr.ok("list", "--scope", "project") == "No settings found\n"


def test_get_prints_the_plain_value(mngr: Shell) -> None:
    assert mngr.ok("get", "trash.keep") == "14d\n"
    mngr.ok("set", "providers.x.list", '["a", "b"]')
    assert mngr.ok("get", "providers.x.list") == '["a", "b"]\n'
    assert mngr.ok("get", "providers") == 'providers.x.list = ["a", "b"]\n'
    found = mngr.json("get", "tmux.width")
    assert found == {"key": "tmux.width", "value": 200, "origin": "default"}


def test_get_tells_an_unset_key_from_an_unknown_one(mngr: Shell) -> None:
    assert "commands.create.project is not set" in mngr.fails(4, "get", "commands.create.project")
    assert "did you mean 'trash.keep'?" in mngr.fails(2, "get", "trash.kep")


def test_set_creates_a_private_file_and_get_reads_it_back(mngr: Shell) -> None:
    done = mngr("set", "trash.keep", "30d")
    assert done.stderr == ""
    assert done.stdout == f"Set trash.keep in {mngr.user_file}\n"
    assert mngr.ok("get", "trash.keep") == "30d\n"
    assert mngr.user_file.stat().st_mode & 0o777 == 0o600
    assert mngr.user_file.parent.stat().st_mode & 0o777 == 0o700
    assert not [name for name in os.listdir(mngr.user_file.parent) if name.endswith(".tmp")]


def test_set_keeps_comments_and_order(mngr: Shell) -> None:
    mngr.write_user('# mine\n[trash]\nkeep = "1d" # short\n\n[tmux]\nwidth = 90\n')
    mngr.ok("set", "trash.keep", "2d")
    text = '# mine\n[trash]\nkeep = "2d" # short\n\n[tmux]\nwidth = 90\n'
    assert mngr.user_file.read_text() == text


def test_set_in_a_project_without_settings_creates_them_at_the_git_root(mngr: Shell) -> None:
    mngr.ok("set", "--scope", "project", "tmux.width", "90")
    assert mngr.project_file.read_text() == "[tmux]\nwidth = 90\n"
    assert mngr.ok("get", "tmux.width") == "90\n"
    mngr.cwd = mngr.home
    assert mngr.ok("get", "tmux.width") == "200\n"


def test_local_settings_stay_out_of_git(mngr: Shell) -> None:
    mngr.ok("set", "--scope", "local", "tmux.width", "90")
    status = ["git", "-C", str(mngr.project), "status", "--porcelain"]
    assert subprocess.run(status, capture_output=True, check=True).stdout == b""


def test_set_outside_any_project_is_refused_for_the_project_scope(mngr: Shell) -> None:
    mngr.cwd = mngr.home
    assert "use --scope user" in mngr.fails(2, "set", "--scope", "project", "tmux.width", "9")
    assert not mngr.user_file.exists()


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("trash.kep", "1d", "unknown setting 'trash.kep'; did you mean 'trash.keep'?"),
        ("providers.ssh.host", '["box"]', "did you mean 'providers.ssh.hosts'?"),
        ("providers.ssh.hosts", "box", "must be a list of strings"),
        ("trash.keep", "soon", "must be a duration"),
        ("tmux.width", "wide", "must be a whole number"),
        ("commands.confg.origin", "true", "did you mean 'config'?"),
        ("commands.config.orign", "true", "did you mean 'origin'?"),
        ("commands.config.origin", "3", "origin: expected true or false"),
        ("commands.config.scope", "usr", "did you mean 'user'?"),
        ("commands.ls.sort", "name", "use commands.list"),
        ("trash..keep", "1d", "bad setting name"),
    ],
)
def test_set_refuses_what_would_not_work(mngr: Shell, key: str, value: str, complaint: str) -> None:
    assert complaint in mngr.fails(2, "set", key, value)
    assert not mngr.user_file.exists()


def test_the_default_of_an_option_takes_effect(mngr: Shell) -> None:
    mngr.ok("set", "commands.config.origin", "true")
    assert "ORIGIN" in mngr.ok("list")


def test_unset_goes_back_to_the_default(mngr: Shell) -> None:
    mngr.ok("set", "trash.keep", "30d")
    mngr.ok("unset", "trash.keep")
    assert mngr.ok("get", "trash.keep") == "14d\n"
    unset = mngr.fails(4, "unset", "trash.keep")
    assert f"trash.keep is not set in {mngr.user_file}; it has its default value" in unset


def test_unset_of_a_value_from_elsewhere_names_that_place(mngr: Shell) -> None:
    mngr.ok("set", "--scope", "project", "tmux.width", "90")
    told = mngr.fails(4, "unset", "--scope", "user", "tmux.width")
    assert f"it comes from {mngr.project_file}" in told


def test_in_a_project_with_a_folder_of_its_own_settings_go_there(mngr: Shell) -> None:
    assert mngr("set", "tmux.width", "90").stdout == f"Set tmux.width in {mngr.user_file}\n"
    mngr.project_file.parent.mkdir()
    assert mngr("set", "tmux.width", "91").stdout == f"Set tmux.width in {mngr.project_file}\n"
    assert mngr.ok("path") == f"{mngr.project_file}\n"
    token = ("providers.box.api_token", "hunter2")
    assert mngr("set", *token).stdout == f"Set {token[0]} in {mngr.user_file}\n"
    for file in (mngr.project_file, mngr.user_file):
        assert mngr("unset", "tmux.width").stdout == f"Unset tmux.width in {file}\n"
    assert mngr.ok("get", "tmux.width") == "200\n"


def test_unset_takes_out_a_key_that_is_unknown(mngr: Shell) -> None:
    mngr.write_user("[trash]\nkep = 1\n")
    done = mngr("unset", "trash.kep")
    assert done.returncode == 0
    assert mngr.ok("get", "trash.keep") == "14d\n"


def test_a_dry_run_changes_nothing(mngr: Shell) -> None:
    done = mngr("set", "trash.keep", "1d", "--dry-run")
    assert done.stdout == f"Would set trash.keep in {mngr.user_file}\n"
    assert not mngr.user_file.parent.exists()
    mngr.ok("set", "trash.keep", "1d")
    mngr.ok("unset", "trash.keep", "--dry-run")
    assert mngr.ok("get", "trash.keep") == "1d\n"


def test_secrets_are_masked_until_asked_for(mngr: Shell) -> None:
    mngr.write_user(
        '[providers.x]\napi_token = "s3cret"\nregion = "eu"\nmax_tokens = 5\n'
        '[agent_types.mine.env]\nMY_API_KEY = "s3cret"\n'
        '[create_templates.t]\nformat = "human"\nsetting = ["DB_PASSWORD=s3cret"]\n'
    )
    shown = mngr("list").stdout + mngr("get", "providers").stdout
    assert "s3cret" not in shown
    assert "***" in shown
    rows = json.loads(mngr("list", "--format", "json").stdout)["settings"]
    values = {row["key"]: row["value"] for row in rows}
    assert values["providers.x.api_token"] == "***"
    assert values["agent_types.mine.env.MY_API_KEY"] == "***"
    assert values["create_templates.t.setting"] == ["DB_PASSWORD=***"]
    assert values["providers.x.region"] == "eu"
    assert values["providers.x.max_tokens"] == 5
    assert "s3cret" in mngr("list", "--show-secrets").stdout
    assert mngr.ok("get", "providers.x.api_token") == "s3cret\n"


def test_path_names_each_scopes_file(mngr: Shell) -> None:
    assert mngr.ok("path") == f"{mngr.user_file}\n"
    assert mngr.ok("path", "--scope", "project") == f"{mngr.project_file}\n"
    found = mngr.json("path", "--scope", "local")
    assert found == {"scope": "local", "path": str(mngr.local_file), "exists": False}


def test_the_home_can_be_elsewhere(mngr: Shell, tmp_path: Path) -> None:
    mngr.env["MNGR_HOST_DIR"] = str(tmp_path / "other")
    mngr.ok("set", "trash.keep", "2d")
    assert mngr.ok("path") == f"{tmp_path}/other/settings.toml\n"
    assert mngr.ok("get", "trash.keep") == "2d\n"
    del mngr.env["MNGR_HOST_DIR"]
    assert mngr.ok("get", "trash.keep") == "14d\n"


def test_with_a_broken_file_one_line_names_it_and_path_still_works(mngr: Shell) -> None:
    mngr.write_user("[trash]\nkeep = = 3\n")
    done = mngr("path")
    assert (done.returncode, done.stdout) == (0, f"{mngr.user_file}\n")
    assert done.stderr.startswith(f"mngr: {mngr.user_file}:2: ")
    for words in (("get", "trash.keep"), ("set", "trash.keep", "1d"), ("unset", "trash.keep")):
        assert f"{mngr.user_file}:2: " in mngr.fails(2, *words)
    done = mngr("list")
    assert done.returncode == 2
    assert "trash.keep" in done.stdout
    assert done.stderr.count("\n") == 1


def test_other_files_can_be_changed_while_one_is_broken(mngr: Shell) -> None:
    mngr.write_user("[trash\n")
    assert mngr("set", "--scope", "project", "tmux.width", "90").returncode == 0
    assert mngr.project_file.read_text() == "[tmux]\nwidth = 90\n"


def test_edit_opens_the_file_and_makes_its_folder(mngr: Shell) -> None:
    use_editor(mngr, """echo 'trash.keep = "3d"' > "$1" """)
    mngr.ok("edit")
    assert mngr.ok("get", "trash.keep") == "3d\n"
    mngr.ok("edit", "--scope", "local")
    assert mngr.local_file.exists()


def test_edit_mends_a_broken_file(mngr: Shell) -> None:
    mngr.write_user("oops")
    use_editor(mngr, ': > "$1"')
    assert mngr("edit").returncode == 0
    assert mngr.ok("get", "trash.keep") == "14d\n"


def test_edit_says_when_the_file_is_broken_afterwards(mngr: Shell) -> None:
    use_editor(mngr, 'echo trash.kep = 1 > "$1"')
    assert "did you mean 'trash.keep'?" in mngr.fails(2, "edit")


def test_a_template_holds_options_of_create(mngr: Shell) -> None:
    mngr.ok("set", "create_templates.quick.label.team", "core")
    assert "did you mean 'label'?" in mngr.fails(2, "set", "create_templates.quick.lable", "a=b")


def test_list_reports_options_no_command_has(mngr: Shell) -> None:
    mngr.write_user("[commands.config]\norigin = true\n[commands.nonsense]\nx = 1\n")
    done = mngr("list")
    assert done.returncode == 2
    assert f"{mngr.user_file}: commands.nonsense: unknown command 'nonsense'" in done.stderr
    assert "commands.config.origin" in done.stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["get"], "missing KEY"),
        (["set", "trash.keep"], "missing VALUE"),
        (["list", "trash"], "unexpected argument 'trash'"),
        (["unset", "a", "b"], "unexpected argument 'b'"),
        (["sett", "a", "b"], "did you mean 'set'?"),
        (["get", "trash.keep", "--scop", "user"], "did you mean '--scope'?"),
    ],
)
def test_wrong_words_are_usage_errors(mngr: Shell, words: list[str], complaint: str) -> None:
    assert complaint in mngr.fails(2, *words)


def test_every_example_in_the_guide_does_what_it_says(mngr: Shell) -> None:
    mngr.cwd = mngr.project
    mngr.env["PYTHON"] = sys.executable
    blocks = re.findall(r"```console\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    expected = "".join(blocks)
    commands = [line[2:] for line in expected.splitlines() if line.startswith("$ ")]
    shown = ""
    for command in commands:
        script = 'mngr() { "$PYTHON" -m mngr "$@"; }\n' + command
        done = subprocess.run(
            ["sh", "-c", script],
            cwd=mngr.cwd,
            env=mngr.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        shown += f"$ {command}\n{done.stdout}".replace(str(mngr.home), "/home/you")
    assert len(commands) > 20
    assert _squeezed(shown) == _squeezed(expected)


def _squeezed(text: str) -> list[str]:
    """Columns are as wide as this machine's paths make them."""
    return [" ".join(line.split()) for line in text.splitlines()]


def test_every_settings_file_in_the_guide_is_accepted(mngr: Shell) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) >= 3
    mngr.write_user("\n".join(blocks))
    assert "create_templates.reviewer.type" in mngr.ok("list")


def test_the_guide_lists_every_setting_with_its_default_and_meaning() -> None:
    guide = GUIDE.read_text()
    section = guide[guide.index("## The settings") :].partition("A **duration**")[0]
    rows = re.findall(r"^\| `(\S+)` \| [^|]+ \| (?:`(.+)` )?\| (.+) \|$", section, re.MULTILINE)
    listed = {re.sub(r"\b[A-Z]+\b", "*", key): (default, help) for key, default, help in rows}
    assert listed == {
        key: ("" if value is None else json.dumps(value).strip('"'), help)
        for key, (_, value, help) in SETTINGS.items()
    }


def test_options_of_other_verbs_are_refused(local: Cli) -> None:
    for words, of in (("get trash.keep --scope user", "set"), ("set a b --origin", "list")):
        local("config", *words.split()).fails(2, "is an option of `mngr config", of)
    local("plugin", "list", "--scope", "local").fails(2, "--scope is an option of `mngr plugin")
