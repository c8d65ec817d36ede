"""Delay a connection, for ssh's ProxyCommand: relay.py HOST PORT MILLISECONDS.

Every byte is delayed, in both directions. The throughput is not limited.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque


async def carry(reader: asyncio.StreamReader, writer: asyncio.WriteTransport, delay: float) -> None:
    """Copy the input to the output, each piece after the delay, until the input ends."""
    loop = asyncio.get_running_loop()
    travelling: deque[bytes] = deque()
    while data := await reader.read(1 << 16):
        travelling.append(data)
        # Timers for the same moment may fire in any order, so each takes the oldest piece.
        loop.call_later(delay, lambda: writer.write(travelling.popleft()))
    await asyncio.sleep(2 * delay)  # until the last piece has arrived


async def relay(host: str, port: int, delay: float) -> None:
    loop = asyncio.get_running_loop()
    there, back = await asyncio.open_connection(host, port)
    here = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(here), sys.stdin.buffer)
    out, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout.buffer)
    both = [
        asyncio.create_task(carry(here, back.transport, delay)),
        asyncio.create_task(carry(there, out, delay)),
    ]
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)


if __name__ == "__main__":
    asyncio.run(relay(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]) / 1000))
