"""An agent type for tests: a small program that stores a conversation, asks, fails and spends.

It replaces the real programs, without an account and without their size. Each line that it reads is
a turn:

    ask QUESTION          asks permission, and reads y or n
    mishear QUESTION      the same, but loses the first answer
    think                 works until the file `go` is in its work directory
    spend MODEL I O R W   uses these numbers of tokens
    fail TEXT | quota TEXT   waits for that reason, without an answer
    exit CODE             ends
    anything else         is answered with `You said: …`
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mngr.agents.base import (
    AgentType,
    Delivery,
    Launch,
    LaunchContext,
    Receipt,
    ToolCall,
    Turn,
)
from mngr.model.state import Evidence, Signals
from mngr.plugins.registry import Registry
from tests.support.cli import Cli, Result, until

TALK, SPENT = "talk/talk.jsonl", "talk/spent.txt"

PROGRAM = r"""
import json, os, sys, time

state = os.environ["MNGR_AGENT_STATE_DIR"]
os.makedirs(f"{state}/talk", exist_ok=True)
os.makedirs(f"{state}/signals", exist_ok=True)
launch = json.load(open(f"{state}/started"))["launch"]


def signal(**said):
    text = json.dumps({"launch": launch, "time": time.time(), "input": said})
    open(f"{state}/signals/.part", "w").write(text)
    os.rename(f"{state}/signals/.part", f"{state}/signals/Scribe.json")


def note(role, text, **more):
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with open(f"{state}/talk/talk.jsonl", "a") as file:
        file.write(json.dumps({"role": role, "text": text, "time": stamp, **more}) + "\n")


def spend(model="claude-sonnet-4-5", input=100, output=10, read=0, write=0):
    with open(f"{state}/talk/spent.txt", "a") as file:
        file.write(f"{model} {input} {output} {read} {write}\n")


def turn(line):
    word, _, rest = line.partition(" ")
    if word in ("ask", "mishear"):
        signal(waiting="permission", detail=rest)
        if word == "mishear":
            sys.stdin.readline()
        answer = sys.stdin.readline().strip()
        signal(working="working")
        note("tool", f"{rest}: {'allowed' if answer == 'y' else 'denied'}")
    elif word == "think":
        while not os.path.exists("go"):
            time.sleep(0.02)
    elif word == "exit":
        sys.exit(int(rest))
    elif word in ("fail", "quota"):
        return {"waiting": "error" if word == "fail" else "quota", "detail": rest}
    spend(*rest.split()) if word == "spend" else spend()
    tools = [{"id": "t1", "name": "Look", "input": {"at": rest}}] if word == "ask" else []
    note("assistant", f"You said: {line}", model="claude-sonnet-4-5", tools=tools)
    return {"waiting": "end_of_turn"}


signal(waiting="end_of_turn")
print("ready", flush=True)
for line in sys.stdin:
    signal(working="working")
    note("user", line.strip())
    signal(**turn(line.strip()))
"""


def scribe(cli: Cli, name: str, *options: str) -> Result:
    """Create a scribe that has read its message, if any, and answered it or waits."""
    know(cli)
    made = cli("create", name, "scribe", "--no-connect", *options).ok()
    until(lambda: cli.state(name) == "WAITING", timeout=30, what=f"{name} waits")
    return made


def know(cli: Cli) -> None:
    """Register the type, in addition to existing plugins."""
    modules = json.loads(cli.env.get("MNGR__PLUGINS__MODULES", "[]"))
    if __name__ not in modules:
        cli.env["MNGR__PLUGINS__MODULES"] = json.dumps([*modules, __name__])


def register(registry: Registry) -> None:
    registry.agent_type("scribe", "tests.support.scribe:Scribe")


class Scribe(AgentType):
    name = "scribe"
    program = "scribe-of-the-tests"
    install = "get a pen"
    conversation = (TALK, SPENT)

    def prepare(self, context: LaunchContext) -> Launch:
        script = f"{context.state_dir}/scribe.py"
        files = {"scribe.py": (PROGRAM.encode(), 0o600)}
        return Launch(argv=("python3", script, *context.record.argv), files=files)

    def signals(self, evidence: Evidence) -> Signals:
        signal = evidence.this_signals.get("Scribe")
        if signal is None:
            return Signals()
        words = {key: str(signal.input.get(key, "")) for key in ("waiting", "working", "detail")}
        return Signals(since=signal.time, **words)

    def ready(self, evidence: Evidence) -> bool:
        return "Scribe" in evidence.this_signals

    def evidence(self, delivery: Delivery) -> Receipt:
        before = len(delivery.told.get(TALK, b""))
        for _ in range(20):
            for turn in _entries(delivery.conversation().get(TALK, b"")[before:]):
                if turn.get("role") == "user" and turn.get("text") == delivery.text.strip():
                    return Receipt(outcome="delivered")
            delivery.pause(0.05)
        return Receipt(outcome="queued")

    def transcript(self, files: Mapping[str, bytes]) -> list[Turn]:
        types = {"user": "user_message", "assistant": "assistant_message", "tool": "tool_result"}
        return [
            Turn(
                type=types[entry["role"]],
                text=entry["text"],
                time=entry["time"],
                model=entry.get("model", ""),
                tools=tuple(ToolCall(**tool) for tool in entry.get("tools", ())),
            )
            for entry in _entries(files.get(TALK, b""))
        ]

    def meter(self) -> str:
        return f"""for each; do
  [ ! -f "$each/{SPENT}" ] || sed "s/^/$each /" "$each/{SPENT}"
done"""

    def answer(self, evidence: Evidence, allow: bool) -> tuple[str, ...]:
        odd = self.signals(evidence).detail == "the unanswerable"
        return () if odd else ("y" if allow else "n", "Enter")


def _entries(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.decode().splitlines()]
