"""Settings at work: layers, and defaults of options, seen from the commands that obey them."""

from __future__ import annotations

import re

from tests.support.cli import ROOT, Cli

KEY = "commands.config.format"
SHOW = ("config", "get", "trash.keep")


def test_each_layer_beats_the_one_below_it_in_what_a_command_does(local: Cli) -> None:
    seen = []

    def look(*words: str) -> None:
        seen.append(local(*words, *SHOW).ok().out.strip())

    look()
    for scope in ("user", "project", "local"):
        local("config", "set", "--scope", scope, KEY, f"{{key}} {scope}").ok()
        look()
    local.env["MNGR__COMMANDS__CONFIG__FORMAT"] = "{key} variable"
    look()
    look("-S", f"{KEY}={{key}} -S")
    look("-S", f"{KEY}={{key}} -S", "--format", "{key} option")
    layers = ("user", "project", "local", "variable", "-S", "option")
    assert seen == ["14d", *(f"trash.keep {layer}" for layer in layers)]


def test_defaults_for_a_command_that_does_not_exist_are_reported(local: Cli) -> None:
    settings = local.controller_home / "settings.toml"
    settings.parent.mkdir()
    settings.write_text("[commands.creat]\nproject = 'x'\n[commands.ls]\nsort = 'name'\n")
    done = local("list").ok()
    assert done.out == "No agents found\n"
    creat, ls = done.err.splitlines()
    where = f" in {settings}: "
    assert creat == f"mngr: commands.creat{where}unknown command 'creat'; did you mean 'create'?"
    assert ls == f"mngr: commands.ls{where}'ls' is an alias of 'list'; use commands.list"


def test_defaults_for_a_disabled_plugins_command_are_nobodys_mistake(local: Cli) -> None:
    local.env |= {
        "MNGR__PLUGINS__MODULES": '["tests.support.bare"]',
        "MNGR__PLUGINS__DISABLED": '["tests.support.bare"]',
        "MNGR__COMMANDS__BAREFOOT__SORT": "name",
    }
    assert local("list").ok().err == ""


def test_edit_reports_an_option_no_command_has(local: Cli) -> None:
    editor = local.base / "editor"
    editor.write_text('#!/bin/sh\nprintf \'[commands.list]\\nsrot = "name"\\n\' > "$1"\n')
    editor.chmod(0o755)
    local.env["EDITOR"] = str(editor)
    local("config", "edit").fails(2, "'srot'", "did you mean 'sort'?")


def test_flags_lists_and_tables_are_defaults_too(local: Cli) -> None:
    settings = local.repo / ".mngr" / "settings.toml"
    settings.parent.mkdir()
    settings.write_text(
        "[commands.create]\nconnect = false\nproject = 'web'\nenv = ['A=1']\n"
        "label = { team = 'core', by = 'file' }\n"
    )
    local.commit("settings")
    words = ("--label", "by=me", "--env", "B=2")
    local("create", "ann", *words, "--", "sh", "-c", "echo $A$B; sleep 1000").ok()
    agent = local.agent("ann")
    assert (agent["project"], agent["labels"]) == (
        "web",
        {"project": "web", "team": "core", "by": "me"},
    )
    assert "12" in local("capture", "ann").ok().out


def test_the_guide_names_every_layer() -> None:
    guide = (ROOT / "docs" / "configuration.md").read_text()
    table = re.findall(r"^\| (\S+) \| ", guide, re.MULTILINE)
    assert table[:8] == ["layer", *"defaults user project local variables `-S` options".split()]
