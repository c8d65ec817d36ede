"""Create many agents in parallel; only git operations that require a lock wait for each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mngr.errors import MngrError
from mngr.ops.lifecycle.create import Created, create
from mngr.ops.lifecycle.request import CreateRequest
from mngr.ops.world import World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future


def create_many(
    world: World, requests: Sequence[CreateRequest], max_parallel: int
) -> Iterator[tuple[int, Created | MngrError]]:
    """Yield each result as it completes, with the index of its request.

    On Ctrl-C, finish the requests that were started, yield their results too, and start no more.
    """
    from concurrent.futures import ThreadPoolExecutor, as_completed

    pool = ThreadPoolExecutor(max_workers=max(1, max_parallel))
    try:
        futures = {pool.submit(create, world, each): n for n, each in enumerate(requests)}
        told = set()
        try:
            for future in as_completed(futures):
                told.add(future)
                yield futures[future], _result(future)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            for future in futures.keys() - told:
                if not future.cancelled():
                    yield futures[future], _result(future)
            raise
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
