"""Create many agents in parallel; only git operations that require a lock wait for each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mngr.errors import MngrError
from mngr.ops.lifecycle.create import Created, create
from mngr.ops.lifecycle.request import CreateRequest
from mngr.ops.world import World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future


TICK = 0.2
"""Seconds between two calls of `stop`."""


def create_many(
    world: World,
    requests: Sequence[CreateRequest],
    max_parallel: int,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[int, Created | MngrError]]:
    """Yield each result as it completes, with the index of its request.

    Once `stop` is true, start no more requests, and finish those that were started.
    """
    from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

    pool = ThreadPoolExecutor(max_workers=max(1, max_parallel))
    try:
        futures = {pool.submit(create, world, each): n for n, each in enumerate(requests)}
        left = set(futures)
        while left:
            done, left = wait(left, TICK, FIRST_COMPLETED)
            for future in done:
                if not future.cancelled():
                    yield futures[future], _result(future)
            if stop():
                for future in left:
                    future.cancel()
    finally:
        pool.shutdown(cancel_futures=True)


def _result(future: Future[Created]) -> Created | MngrError:
    try:
        return future.result()
    except MngrError as error:
        return error
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return MngrError(what)
