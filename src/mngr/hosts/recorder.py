"""Write stdin to an asciicast v2 file and to stdout; tmux's pipe-pane runs it."""

from __future__ import annotations

import codecs
import json
import os
import sys
import time

from mngr.files import remove


def record(path: str, width: int, height: int) -> None:
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    began = time.time()
    header = {"version": 2, "width": width, "height": height, "timestamp": int(began)}
    remove(path)  # the agent may have replaced it by a link
    with open(path, "x", encoding="utf-8") as cast:
        print(json.dumps(header), file=cast, flush=True)
        while chunk := os.read(0, 1 << 16):
            print(
                json.dumps([round(time.time() - began, 6), "o", decode(chunk)]),
                file=cast,
                flush=True,
            )
            os.write(1, chunk)


if __name__ == "__main__":
    record(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
