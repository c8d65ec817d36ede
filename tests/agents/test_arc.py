"""One life of an agent, the same for every real program."""

from __future__ import annotations

from tests.support.real import PATIENCE, Stage

MANY = 'second: two lines\n  indented, with "quotes" and $HOME\n\nlast line'
BIG = "third: begins\n" + "\n".join(f"{n:05d} all work and no play" for n in range(800)) + "\nends"


def test_an_agent_lives_through_its_whole_arc(real: Stage) -> None:
    server, cli = real.server, real.cli
    server.on("first:", say="On it.", run="echo done > made && git add made && git commit -qm made")
    server.on("fourth:", say="Welcome back.")
    server.on("fifth:", say="I am the other one.")
    server.on(":", say="Understood.")
    assert len(BIG) > 20_000

    # created with a prompt, it works and then waits
    real.create("fox", "first: make a file")
    talk = real.answered("fox", "first:")
    assert cli.git("log", "-1", "--format=%s", "mngr/fox") == "made"

    # each message arrives exactly once, as it was written
    expected = ["first: make a file"]
    for text in ("second: one line", MANY, BIG):
        assert "delivered" in real.say("fox", text, "--format", "json").ok().out
        expected.append(text)
        real.until("fox", lambda: len(server.conversations[talk.id].prompts) == len(expected), text)
        real.reaches("fox", "WAITING", "end_of_turn")
    talk = server.conversations[talk.id]
    assert stripped(talk.prompts) == expected
    assert [talk.count(text) for text in expected] == [1, 1, 1, 1]

    # transcript and usage agree with what the server served
    told = real.transcript("fox")
    user = [each["text"].strip() for each in told if each["type"] == "user_message"]
    said = [each["text"] for each in told if each["type"] == "assistant_message" and each["text"]]
    assert user == expected
    assert said == ["On it.", "Done.", "Understood.", "Understood.", "Understood."]
    assert_usage(real, "fox", talk.id)

    # stopped and started, it is the same conversation
    cli("stop", "fox", timeout=PATIENCE).ok()
    assert real.state("fox")[0] == "STOPPED"
    cli("start", "fox", timeout=PATIENCE).ok()
    real.say("fox", "fourth: are you there").ok()
    expected.append("fourth: are you there")
    assert stripped(real.answered("fox", "fourth:").prompts) == expected
    assert_usage(real, "fox", server.conversation("fourth:").id)

    # a clone knows what was said, and what it hears then is its own
    cli("clone", "fox", "cub", timeout=PATIENCE).ok()
    real.say("cub", "fifth: who are you").ok()
    cub = real.answered("cub", "fifth:")
    assert stripped(cub.prompts) == [*expected, "fifth: who are you"]
    assert cub.id != talk.id
    real.say("fox", "sixth: and you").ok()
    fox = real.answered("fox", "sixth:")
    assert stripped(fox.prompts) == [*expected, "sixth: and you"]

    cli("destroy", "fox", "cub", "--force", timeout=PATIENCE).ok()
    assert cli("list", "--format", "json").json()["agents"] == []


def stripped(prompts: list[str]) -> list[str]:
    """OpenCode puts a blank behind what was pasted."""
    return [prompt.strip() for prompt in prompts]


def assert_usage(real: Stage, name: str, conversation: str) -> None:
    """Tokens of the agent's report against those of the server's log."""
    served = real.server.conversations[conversation].usage
    [row] = real.cli("usage", name, "--format", "json").ok().json()["usage"]
    assert (row["output"], row["cache_read"]) == (served.output, served.cache_read)
    # Not every API reports tokens written to the cache separately from input tokens.
    assert row["input"] + row["cache_write"] == served.input + served.cache_write
