#!/usr/bin/env python3
"""Copies a capture of samples/linux with one bit of a memory write changed, as a faulty probe would.

    damaged.py CAPTURE COPY

CAPTURE is not compressed. Source: docs/formats/capture.md, "Records", whose first 40 bytes are those of a record here.
"""

import sys

RECORD = 40
TYPE, FLAGS, DATA = 20, 22, 24  # offsets in a record
MEMORY_WRITE, OF_STATE = 3, 16


def main():
    with open(sys.argv[1], "rb") as file:
        capture = bytearray(file.read())
    writes = [at for at in range(0, len(capture), RECORD)
              if capture[at + TYPE] == MEMORY_WRITE and not capture[at + FLAGS] & OF_STATE]
    capture[writes[len(writes) * 4 // 5] + DATA] ^= 0x10
    with open(sys.argv[2], "wb") as file:
        file.write(capture)


if __name__ == "__main__":
    main()
