#!/usr/bin/env python3
"""An exported page says what `citcat debug` and `citcat cat` say, at random moments.

    exported_page_test.py PROGRAM RECORDING [--from N] [--to M] [--moments 200] [--most-bytes N]

Registers and memory are asked of the debugger by gdb's protocol, instructions are read from the trace as text. Status 77
where there is no Chromium.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, find_chromium  # noqa: E402

# In the order of gdb's description of the processor (features/i386/32bit-core.xml, 64bit-core.xml); bytes of each.
NARROW = [(n, 4) for n in "eax ecx edx ebx esp ebp esi edi".split()] + [("linear", 4), ("eflags", 4)] + \
         [(n, 4) for n in "cs ss ds es fs gs".split()]
WIDE = [(n, 8) for n in "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15".split()] + \
       [("linear", 8), ("rflags", 4)] + [(n, 4) for n in "cs ss ds es fs gs".split()]


class Debugger:
    """citcat debug behind a pipe, asked by packets ("Debugging with GDB", appendix E)."""

    def __init__(self, program, recording):
        self.process = subprocess.Popen([program, "debug", "--stdio", "--unchecked", "--", recording],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def send(self, text):
        data = text.encode()
        self.process.stdin.write(b"$" + data + b"#" + b"%02x" % (sum(data) % 256))
        self.process.stdin.flush()

    def receive(self):
        while self.process.stdout.read(1) != b"$":
            pass
        data = b""
        while (byte := self.process.stdout.read(1)) != b"#":
            data += byte
        self.process.stdout.read(2)
        self.process.stdin.write(b"+")
        self.process.stdin.flush()
        # Run-length encoding: a character, *, and how often it is repeated beyond 29.
        text, plain = data.decode(), ""
        i = 0
        while i < len(text):
            if i + 2 < len(text) and text[i + 1] == "*":
                plain += text[i] * (ord(text[i + 2]) - 28)
                i += 3
            else:
                plain += text[i]
                i += 1
        return plain

    def ask(self, text):
        self.send(text)
        return self.receive()

    def seek(self, instruction):
        self.send("qRcmd," + f"seek {instruction}".encode().hex())
        while (answer := self.receive()) != "OK":
            if answer.startswith("E"):
                raise RuntimeError(answer)
            if not answer.startswith("O"):
                return  # the text of the command

    def registers(self, names):
        digits, values, at = self.ask("g"), {}, 0
        for name, size in names:
            part = digits[at:at + 2 * size]
            values[name] = None if "x" in part else int.from_bytes(bytes.fromhex(part), "little")
            at += 2 * size
        return values

    def close(self):
        self.process.terminate()
        self.process.wait()


def trace(program, recording, first, last):
    """Address, bytes and instruction of each position, from the trace as text."""
    text = subprocess.run([program, "cat", recording, "--format", "text", "-q", "--from", str(first), "--to", str(last)],
                          check=True, capture_output=True, text=True).stdout
    lines = {}
    for line in text.splitlines():
        # Events stand between them. Behind @ stand the addresses that an instruction accesses.
        found = re.match(r" *(\d+(?:\+\d+)?) ([0-9a-f]{8}(?:[0-9a-f]{8})?) ([0-9a-f]+) +(.*)", line)
        if found:
            lines[found[1]] = (int(found[2], 16), found[3], found[4].split(" @")[0])
    return lines


def differences(page, debugger, instruction, names, steps):
    ask = lambda question, **parameters: page.evaluate(f"citcat.ask({question!r}, {json.dumps(parameters)})")
    found = []
    state = ask("state", at=str(instruction))
    shown = {r["name"]: r["value"] for r in state["registers"]}
    debugger.seek(instruction)
    for name, value in debugger.registers(names).items():
        if name == "linear":
            mine = int(state["address"], 16)
        else:
            # Processors of 16 bits call it AX.
            text = shown.get(name, shown.get(name[1:]) if name[0] == "e" and len(name) == 3 or name == "eflags" else None)
            if name == "eflags" and text is None:
                text = shown.get("flags")
            if text is None or value is None:
                continue
            mine = int(text, 16)
            value &= (1 << 4 * len(text)) - 1
        if mine != value:
            found.append(f"{instruction}: {name} is {mine:x}, the debugger has {value:x}")
    # Memory that the stretch accesses around here.
    code = ask("code", at=str(instruction), before=6, after=6)
    for line in code["lines"]:
        position = line["position"]
        if position in steps and line.get("iterations") is None and not line.get("faults") and not line.get("interrupted"):
            mine = (int(line["address"], 16), line["bytes"], line["text"])
            if mine != steps[position]:
                found.append(f"{position}: {mine}, the trace has {steps[position]}")
        for access in line.get("reads", []) + line.get("writes", []):
            if "address" not in access or access["size"] > 16:
                continue
            mine = ask("memory", at=str(instruction), address=access["address"], size=access["size"])["bytes"]
            theirs = debugger.ask(f"m{int(access['address'], 16):x},{access['size']:x}")
            if theirs.startswith("E") or "?" in mine:
                continue
            if mine[:len(theirs)] != theirs:
                found.append(f"{instruction}: memory at {access['address']} is {mine}, the debugger has {theirs}")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("recording")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", dest="last", type=int)
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--most-bytes", type=int)
    arguments = parser.parse_args()
    if find_chromium() is None:
        print("skip: there is no chromium here (Debian's package chromium)")
        return 77
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        file = os.path.join(folder, "page.html")
        command = [arguments.program, "view", arguments.recording, "-q", "--export", file, "--from", str(arguments.first)]
        subprocess.run(command + (["--to", str(arguments.last)] if arguments.last else []), check=True)
        size = os.path.getsize(file)
        page = browser.open("file://" + file)
        page.wait("document.body.dataset.ready", 300)
        run = page.evaluate("citcat.ask('run')")
        names = WIDE if run["has"]["address_bits"] == 64 else NARROW
        random.seed(1)
        debugger = Debugger(arguments.program, arguments.recording)
        found, checked = [], 0
        begin, end = run.get("held", (run["from"], run["to"]))
        while checked < arguments.moments:
            # Neighbours, so that one trace serves several.
            middle = random.randrange(begin, end)
            steps = trace(arguments.program, arguments.recording, max(begin, middle - 60), middle + 60)
            for _ in range(10):
                instruction = random.randrange(max(begin, middle - 50), min(end, middle + 50))
                found += differences(page, debugger, instruction, names, steps)
                checked += 1
        debugger.close()
        found += page.look()
    print(f"{checked} moments of {end - begin} instructions in {size} bytes: {len(found)} differences")
    for line in found[:20]:
        print(" ", line)
    if arguments.most_bytes and size > arguments.most_bytes:
        print(f"expected at most {arguments.most_bytes} bytes")
        return 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
