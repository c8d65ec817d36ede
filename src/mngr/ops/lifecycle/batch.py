"""Create many agents in parallel; only git operations that require a lock wait for each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mngr.errors import MngrError
from mngr.ops.lifecycle.create import Created, create
from mngr.ops.lifecycle.request import CreateRequest
from mngr.ops.world import World


def create_many(
    world: World, requests: Sequence[CreateRequest], max_parallel: int
) -> Iterator[tuple[int, Created | MngrError]]:
    """Yield each result as it completes, with the index of its request."""
    from concurrent.futures import ThreadPoolExecutor, as_completed

    pool = ThreadPoolExecutor(max_workers=max(1, max_parallel))
    try:
        futures = {pool.submit(create, world, each): n for n, each in enumerate(requests)}
        for future in as_completed(futures):
            try:
                yield futures[future], future.result()
            except MngrError as error:
                yield futures[future], error
            except OSError as error:
                what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
                yield futures[future], MngrError(what)
    finally:  # on Ctrl-C, finish the started requests and start no more
        pool.shutdown(cancel_futures=True)
