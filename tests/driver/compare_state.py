#!/usr/bin/env python3
"""Compares what the driver wrote into its window with what the emulator says of the processor.

compare_state.py PROBE FIRST-TRACED: PROBE.txt is QEMU's own dump of the registers at the first
traced instruction, PROBE.bin the window's first 32 KiB, PROBE.ram the memory, all written at that
instruction; FIRST-TRACED is the instruction's address in hexadecimal. Prints each difference; exit status 1
when there is one. Offsets are those of driver-kmod/uapi/citcat_dump.h.
"""
import re
import struct
import sys

SEGMENTS = ["ES", "CS", "SS", "DS", "FS", "GS", "LDT", "TR"]


def parse_dump(text):
    values = {}
    for name, value in re.findall(r"\b([A-Z][A-Z0-9]*) ?= ?([0-9a-f]+)\b", text):
        values[name] = int(value, 16)
    for name in SEGMENTS:
        match = re.search(rf"^{name} ?= ?([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)", text, re.M)
        values[name] = [int(v, 16) for v in match.groups()]
    for name in ["GDT", "IDT"]:
        match = re.search(rf"^{name}= +([0-9a-f]+) ([0-9a-f]+)", text, re.M)
        values[name] = [int(v, 16) for v in match.groups()]
    values["top"] = int(re.search(r"\[ST=(\d)\]", text).group(1))
    for number, mantissa, exponent in re.findall(r"FPR(\d)=([0-9a-f]{16}) ([0-9a-f]{4})", text):
        values[f"FPR{number}"] = (int(mantissa, 16), int(exponent, 16))
    for number, high, low in re.findall(r"XMM(\d\d)=([0-9a-f]{16}) ?([0-9a-f]{16})", text):
        values[f"XMM{number}"] = (int(low, 16), int(high, 16))
    return values


class Comparison:
    def __init__(self, window):
        self.window = window
        self.checked = 0
        self.different = 0

    def field(self, form, offset):
        return struct.unpack_from("<" + form, self.window, offset)[0]

    def equal(self, name, dumped, emulator):
        self.checked += 1
        if dumped != emulator:
            self.different += 1
            print(f"{name}: the driver has {dumped:x}, the emulator {emulator:x}")


def compare_segments(c, emulator, wide):
    for n, name in enumerate(SEGMENTS):
        selector, base, limit, flags = emulator[name]
        at = 48 + 16 * n
        c.equal(f"{name} selector", c.field("I", at), selector)
        if selector & ~3 == 0:
            c.equal(f"{name} unusable", c.field("I", at + 12) >> 16, 1)
            if not wide or name not in ("FS", "GS"):
                continue
        else:
            # The descriptor says "busy" of the task that runs, and the driver marks the code segment
            # as accessed, which it is; the emulator's copies say neither.
            mask = {"TR": 0xF0FD, "CS": 0xF0FE}.get(name, 0xF0FF)
            c.equal(f"{name} limit", c.field("I", at + 8), limit)
            c.equal(f"{name} attributes", c.field("I", at + 12) & mask, (flags >> 8) & mask)
        c.equal(f"{name} base", c.field("I", at + 4), base & 0xFFFFFFFF)
        if wide:
            c.equal(f"{name} 64-bit base", c.field("Q", 0x4098 + 8 * n), base)


def compare_fpu(c, emulator):
    image = 260
    c.equal("FCW", c.field("H", image), emulator["FCW"])
    c.equal("FSW", c.field("H", image + 2), emulator["FSW"])
    c.equal("FTW", c.field("B", image + 4), emulator["FTW"])
    c.equal("MXCSR", c.field("I", image + 24), emulator["MXCSR"])
    for n in range(8):
        mantissa, exponent = emulator[f"FPR{(n + emulator['top']) & 7}"]
        c.equal(f"ST{n}", c.field("Q", image + 32 + 16 * n), mantissa)
        c.equal(f"ST{n} exponent", c.field("H", image + 40 + 16 * n), exponent)
    for n in range(8):
        low, high = emulator[f"XMM{n:02}"]
        c.equal(f"XMM{n} low", c.field("Q", image + 160 + 16 * n), low)
        c.equal(f"XMM{n} high", c.field("Q", image + 168 + 16 * n), high)


def compare_general(c, emulator, first_traced, wide):
    letters = ["AX", "CX", "DX", "BX", "SP", "BP", "SI", "DI"]
    prefix = "R" if wide else "E"
    flags = emulator["RFL" if wide else "EFL"]
    for n, name in enumerate(letters):
        value = emulator[prefix + name]
        c.equal(name, c.field("I", 8 + 4 * n), value & 0xFFFFFFFF)
        if wide:
            c.equal("R" + name, c.field("Q", 0x4008 + 8 * n), value)
    c.equal("EIP", c.field("I", 40), first_traced & 0xFFFFFFFF)
    c.equal("EFLAGS", c.field("I", 44), flags)
    if wide:
        for n in range(8, 16):
            c.equal(f"R{n}", c.field("Q", 0x4008 + 8 * n), emulator[f"R{n}"])
        c.equal("RIP", c.field("Q", 0x4088), first_traced)
        c.equal("RFLAGS", c.field("Q", 0x4090), flags)


def compare_control(c, emulator, wide):
    for n, name in enumerate(["CR0", "CR2", "CR3", "CR4"]):
        c.equal(name, c.field("I", 192 + 4 * n), emulator[name] & 0xFFFFFFFF)
        if wide:
            c.equal(f"64-bit {name}", c.field("Q", 0x40E8 + 8 * n), emulator[name])
    for n, name in enumerate(["DR0", "DR1", "DR2", "DR3", "DR6", "DR7"]):
        c.equal(name, c.field("I", 208 + 4 * n), emulator[name] & 0xFFFFFFFF)
    for name, at, at_wide in [("GDT", 176, 0x40D8), ("IDT", 184, 0x40E0)]:
        base, limit = emulator[name]
        c.equal(f"{name} base", c.field("I", at), base & 0xFFFFFFFF)
        c.equal(f"{name} limit", c.field("I", at + 4), limit)
        if wide:
            c.equal(f"{name} 64-bit base", c.field("Q", at_wide), base)


class Memory:
    """What the emulated memory holds at linear addresses: Intel SDM vol. 3, ch. 4."""

    def __init__(self, file, emulator, wide):
        self.file = file
        self.cr3 = emulator["CR3"]
        pae = emulator["CR4"] & 0x20 != 0
        if wide:
            self.levels, self.entry = [39, 30, 21, 12], 8
        elif pae:
            self.levels, self.entry = [30, 21, 12], 8
        else:
            self.levels, self.entry = [22, 12], 4

    def physical(self, form, address):
        self.file.seek(address)
        return struct.unpack("<" + form, self.file.read(struct.calcsize(form)))[0]

    def word(self, linear):
        index_bits = 9 if self.entry == 8 else 10
        table = self.cr3 & ~0xFFF
        for shift in self.levels:
            index = linear >> shift & (1 << index_bits) - 1
            entry = self.physical("Q" if self.entry == 8 else "I", table + index * self.entry)
            if not entry & 1:
                raise ValueError(f"linear address {linear:x} is not mapped")
            table = entry & 0x000FFFFFFFFFF000
            if entry & 0x80 and shift != 12:
                break
        return self.physical("I", (table & ~((1 << shift) - 1)) + (linear & (1 << shift) - 1))


def compare_task(c, emulator, memory):
    base, limit = emulator["TR"][1:3]
    size = c.field("I", 0x3000)
    c.equal("bytes of the TSS", size, min(limit + 1, 104) & ~3)
    words = [c.field("I", 0x3004 + 4 * n) for n in range(size // 4)]
    for n, word in enumerate(words):
        c.equal(f"TSS + {4 * n}", word, memory.word(base + 4 * n))
    # In either form the second word belongs to the stack of the kernel, which is never 0.
    c.equal("the TSS has a stack pointer", int(words[1] != 0), 1)


def compare_layout(c, wide):
    """What only the window says: it must at least be whole and consistent."""
    c.equal("magic", c.field("I", 0), 0x53544943)
    c.equal("version", c.field("I", 4), 1)
    leaves = c.field("I", 772)
    msr_at = 776 + 20 * leaves
    c.equal("first CPUID leaf", c.field("I", 776), 0)
    c.equal("more CPUID leaves", int(leaves >= 2), 1)
    count = c.field("I", msr_at)
    indices = [c.field("I", msr_at + 4 + 12 * n) for n in range(count)]
    c.equal("end word", c.field("I", msr_at + 4 + 12 * count), 0x45544943)
    c.equal("SYSENTER MSR is there", int(0x174 in indices), 1)
    c.equal("FS base MSR", int(0xC0000100 in indices), int(wide))
    c.equal("start marker", c.field("I", 0x1000), 0x57A27001)
    c.equal("segment", c.field("I", 0x1004), 1)
    ranges = c.field("I", 0x2000)
    kinds = [c.field("I", 0x2004 + 20 * n + 16) for n in range(ranges)]
    c.equal("memory map has RAM", int(1 in kinds), 1)
    c.equal("memory map has what is reserved", int(2 in kinds), 1)
    c.equal("64-bit block", c.field("I", 0x4000), 0x34365443 if wide else 0)


def main():
    probe, first_traced = sys.argv[1], int(sys.argv[2], 16)
    with open(probe + ".txt", encoding="ascii") as file:
        text = file.read()
    with open(probe + ".bin", "rb") as file:
        c = Comparison(file.read())
    emulator = parse_dump(text)
    wide = "RAX" in emulator
    compare_general(c, emulator, first_traced, wide)
    compare_segments(c, emulator, wide)
    compare_control(c, emulator, wide)
    compare_fpu(c, emulator)
    with open(probe + ".ram", "rb") as file:
        compare_task(c, emulator, Memory(file, emulator, wide))
    compare_layout(c, wide)
    print(f"{c.checked} values compared, {c.different} different")
    return 1 if c.different else 0


if __name__ == "__main__":
    sys.exit(main())
