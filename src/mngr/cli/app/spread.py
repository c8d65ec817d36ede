"""Act on several agents and keep every result, including errors."""

from __future__ import annotations

from mngr.errors import MngrError, PartialFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    from mngr.api import Agent
    from mngr.cli.app.parser import Parser

    T = TypeVar("T")
else:
    import _signal as signal  # the module signal imports enum

PARALLEL = 8
TICK = 0.2
"""Seconds between looks: a signal just before a wait without a timeout would not end it."""


def add_on_error(parser: Parser) -> None:
    help = "after a failure, continue (default) or abort; abort runs the agents one by one"
    choices = ("continue", "abort")
    add = parser.add_argument
    add("--on-error", choices=choices, default="continue", metavar="ACTION", help=help)


def spread(
    agents: Sequence[Agent],
    action: Callable[[Agent], T],
    good: Callable[[T], bool] = lambda _: True,
    on_error: str = "continue",
    interrupt: Callable[[], None] | None = None,
) -> Iterator[tuple[Agent, T | MngrError]]:
    """Yield each result in order. With `abort`, run one at a time and end at the first failure.

    Ctrl-C waits for the agents that were begun, unless `interrupt` ends their actions.
    """
    if on_error == "abort" or len(agents) <= 1:
        for agent in agents:
            result = _attempt(action, agent)
            yield agent, result
            if on_error == "abort" and (isinstance(result, MngrError) or not good(result)):
                return
        return
    from concurrent.futures import ThreadPoolExecutor, wait

    if interrupt:
        on_interrupt(interrupt)
    pool = ThreadPoolExecutor(max_workers=PARALLEL)
    try:
        futures = [pool.submit(_attempt, action, agent) for agent in agents]
        for agent, future in zip(agents, futures, strict=True):
            while wait([future], TICK).not_done:
                continue
            yield agent, future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def on_interrupt(call: Callable[[], None]) -> None:
    """Call this at the first Ctrl-C instead of raising KeyboardInterrupt; the second one raises.

    An exception at any point could leave a lock of the thread pool locked, and hang the process.
    """

    def handle(number: int, _: object) -> None:
        signal.signal(number, previous)
        call()

    previous = signal.getsignal(signal.SIGINT)
    if previous is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, handle)


def _attempt(action: Callable[[Agent], T], agent: Agent) -> T | MngrError:
    try:
        return action(agent)
    except MngrError as error:
        return error
    except OSError as error:
        reason = error.strerror or str(error)
        return MngrError(f"{error.filename}: {reason}" if error.filename else reason)


def exit_code(failed: int, total: int) -> int:
    if not failed:
        return 0
    return 1 if failed == total else PartialFailure.exit_code
