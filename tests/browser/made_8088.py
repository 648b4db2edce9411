"""A capture of an 8088 that calls a procedure again and again: the bus of a program of few instructions, made here.

    made_8088.py CAPTURE STATE      writes a native capture (docs/formats/capture.md) and the state it begins with
"""

import json
import struct
import sys

CODE, STACK, DATA = 0x1000, 0x2000, 0x3000  # segments
CODE_READ, READ, WRITE, PORT_WRITE = 1, 2, 3, 5
CALLS = 12

# The same in assembly:
#       mov cx, 12
#   1:  mov ax, cx
#       call 2f
#       mov [0010h], ax
#       dec cx
#       jnz 1b
#       nop
#       nop
#   2:  push bx
#       mov bx, ax
#       add ax, bx
#       out 80h, al
#       pop bx
#       ret
PROGRAM = bytes.fromhex("b90c00" "89c8" "e80800" "a31000" "49" "75f5" "90" "90" "90" "53" "89c3" "01d8" "e680" "5b" "c3")


class Bus:
    def __init__(self):
        self.records = []
        self.memory = {CODE * 16 + i: byte for i, byte in enumerate(PROGRAM)}
        self.count = 0

    def add(self, kind, address, byte):
        self.records.append(struct.pack("<QIIIBBBB16s", self.count, 4 * len(self.records), address, 0, kind, 1, 0, 0, bytes([byte])))

    def fetch(self, ip):
        byte = self.memory[CODE * 16 + ip]
        self.add(CODE_READ, CODE * 16 + ip, byte)
        return byte

    def fetch_word(self, ip):
        return self.fetch(ip) | self.fetch(ip + 1) << 8

    def write_word(self, address, value):
        for i in range(2):
            self.memory[address + i] = value >> 8 * i & 0xff
            self.add(WRITE, address + i, value >> 8 * i & 0xff)

    def read_word(self, address):
        word = 0
        for i in range(2):
            byte = self.memory[address + i]
            self.add(READ, address + i, byte)
            word |= byte << 8 * i
        return word


def run(bus):
    ax, bx, cx, sp, ip = 0x1234, 0x5678, 0, 0x100, 0
    while True:
        opcode, at = bus.fetch(ip), ip
        ip += 1
        if opcode == 0xb9:
            cx, ip = bus.fetch_word(ip), ip + 2
        elif opcode in (0x89, 0x01):
            operands, ip = bus.fetch(ip), ip + 1
            if operands == 0xc8:
                ax = cx
            elif operands == 0xc3:
                bx = ax
            else:
                ax = (ax + bx) & 0xffff
        elif opcode == 0xe8:
            distance, ip = bus.fetch_word(ip), ip + 2
            sp -= 2
            bus.write_word(STACK * 16 + sp, ip)
            ip += distance
        elif opcode == 0xa3:
            address, ip = bus.fetch_word(ip), ip + 2
            bus.write_word(DATA * 16 + address, ax)
        elif opcode == 0x49:
            cx -= 1
        elif opcode == 0x75:
            distance, ip = bus.fetch(ip), ip + 1
            ip += (distance - 256) * (cx != 0)
        elif opcode == 0x53:
            sp -= 2
            bus.write_word(STACK * 16 + sp, bx)
        elif opcode == 0xe6:
            port, ip = bus.fetch(ip), ip + 1
            bus.add(PORT_WRITE, port, ax & 0xff)
        elif opcode == 0x5b:
            bx, sp = bus.read_word(STACK * 16 + sp), sp + 2
        elif opcode == 0xc3:
            ip, sp = bus.read_word(STACK * 16 + sp), sp + 2
        elif at == len(PROGRAM) - 11:
            return
        bus.count += 1


def sums(records):
    a = b = 0
    for record in records:
        for word in struct.unpack("<5Q", record):
            a = a + word & 0xffffffffffffffff
            b = b + a & 0xffffffffffffffff
    return struct.pack("<QQ", a, b)


def header():
    head = struct.pack("<8sHHHHBBBBIQ32s", b"\x93CITCAP\n", 2, 72, 40, 1, 1, 1, 1, 0, 0xfffff, 0, b"made_8088")
    total = 0xcbf29ce484222325
    for byte in head:
        total = (total ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return head + struct.pack("<Q", total)


def main():
    capture, state = sys.argv[1:]
    bus = Bus()
    run(bus)
    end = struct.pack("<QIIIBBBB", len(bus.records), 0, 0, 0, 255, 16, 0, 0) + sums(bus.records)
    with open(capture, "wb") as file:
        file.write(header() + b"".join(bus.records) + end)
    registers = {"cs": CODE, "ip": 0, "ss": STACK, "sp": 0x100, "ds": DATA, "es": DATA, "ax": 0x1234, "bx": 0x5678,
                 "cx": 0, "dx": 0, "si": 0, "di": 0, "bp": 0, "flags": 0xf002}
    with open(state, "w", encoding="utf-8") as file:
        json.dump({"cpu": "8088", "registers": {name: hex(value) for name, value in registers.items()}}, file)


if __name__ == "__main__":
    main()
