"""A scripted model on loopback: a test defines what it answers.

    with ModelServer() as server:
        server.on("fix the bug", say="Looking.", run="sed -i s/1/2/ a.py").then(
            call=("Bash", {"command": "git commit -qam fixed"})
        ).then(say="Fixed.")
        ... start a real client with server.environment("claude") ...
        assert server.conversation("fix the bug").prompts == ["fix the bug"]

`server.url` is the address without a path (what ANTHROPIC_BASE_URL takes); `server.url + "/v1"` is
the base of an OpenAI provider. It speaks Anthropic's Messages (`/v1/messages`), OpenAI's Responses
(`/v1/responses`, for Codex) and OpenAI's Chat Completions (`/v1/chat/completions`, for OpenCode).

**Rules.** `server.on(PATTERN, **step)` answers conversations whose last user prompt matches the
regular expression (`re.search`, `.` matches newlines); rules are tried in order, the first one
wins. `.then(**step)` adds the answer to what follows: the k-th step of a rule is served when the
history holds k answers since that prompt, so resumed, forked and retried conversations are right
without any state. After the last step the answer is "Done.". A prompt that no rule matches is
answered with "No rule matches: …". New rules may be added at any time.

A step takes:
  say="text"              what it says
  call=("Bash", {...})    the tools it calls, by the client's own names; one pair or a list of pairs
  run="shell command"     one shell call, by the name that the client gives its shell tool
  ask=True                `run` is a command that needs permission (Codex leaves that to the model)
  usage=Usage(...)        the tokens it claims; by default counted from the text, never zero
  slow=1.5                seconds before the answer begins
  hold="name"             wait until `server.release("name")`; `server.until_held("name")` returns
                          once a request is waiting there
  fail=429                an error of that status instead; times=2 how often (None: always), then
                          the next step is served. kind="overloaded_error" and text="…" change the
                          error's words, retry_after=1 the header
  quota=EPOCH             429 as of a used-up plan that resets at that time (always, unless times=)
  broken=True             the stream is cut in its middle (once, unless times= says otherwise)

**What was asked.** `server.requests` logs every request: `method path headers body key status
conversation background usage`. Requests without tools (titles, topics, quota probes) are
`background`: answered with something harmless, matched by no rule, counted nowhere else.
`server.conversations` maps the client's own session id to a `Conversation`; and
`server.conversation("text")` is the one whose prompts contain the text (exactly one must).
  .id .turns              requests that were answered, of this conversation; .asked are all
  .over                   whether the model has had the last word, with no tool called
  .prompts                what the user said, in order, as the last request shows it
  .count("text")          how often the text stands in the user's part of the last request
  .said                   what the model said in it, in order
  .usage                  `Usage(input, output, cache_read, cache_write)` served, summed
`server.usage` sums over all conversations. `server.until(lambda: …)` waits for a condition.

**Trouble.** `server.vanish()` closes the port, `server.return_()` opens the same one again.

`server.environment("claude")` are the variables that point a client here (`claude`, `codex`,
`opencode`), with plan=True for a Claude who has a subscription instead of a key: only then does
it understand a quota with its reset time. `server.codex_config()` is the text of the `config.toml`
that Codex needs besides; OpenCode finds its settings in the variables.
"""

from tests.support.model.conversation import Conversation, Request
from tests.support.model.scenario import Usage
from tests.support.model.server import ModelServer

__all__ = ["Conversation", "ModelServer", "Request", "Usage"]
