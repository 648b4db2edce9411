#!/usr/bin/env python3
"""An exported page answers what the server answers, at random moments of its stretch.

    page_answers_test.py PROGRAM RECORDING [--from N] [--to M] [--moments 100] [--seed 1] [--unchecked]

The page answers from what it holds of each step, the server by replaying: they share neither the code that finds an
answer nor the data. Where the server finds something outside of the stretch, the page must say that it has found
nothing. Status 77 where there is no Chromium.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, find_chromium  # noqa: E402
from view_test import Server  # noqa: E402

MOVES = ["step", "back", "over", "over-back", "out", "out-back"]
REACH = 200_000  # instructions before the stretch that a page is made with
PLACES = ("place", "from_place", "to_place", "process")


def order(moment):
    """A moment as a tuple that can be compared."""
    return tuple(int(part or 0) for part in re.fullmatch(r"(\d+)(?:\+(\d+))?(?:~(\d+))?", moment).groups())


class Compared:
    def __init__(self, page, url, run):
        self.page, self.url = page, url
        self.begin, self.end = run.get("held", (run["from"], run["to"]))
        self.has = run["has"]
        self.found, self.counts = [], {}

    def of_page(self, question, **parameters):
        text = f"citcat.ask({question!r}, {json.dumps(parameters)}).catch((e) => ({{error: e.message}}))"
        return self.page.evaluate(text)

    def of_server(self, question, **parameters):
        where = f"{self.url}api/{question}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(where) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return {"error": json.load(error)["error"]}

    def both(self, question, **parameters):
        return self.of_page(question, **parameters), self.of_server(question, **parameters)

    def expect(self, name, mine, theirs, what):
        self.counts[name] = self.counts.get(name, 0) + 1
        if isinstance(mine, dict) and isinstance(theirs, dict):
            differ = [k for k in {**mine, **theirs} if mine.get(k) != theirs.get(k)]
            mine, theirs = {k: mine.get(k) for k in differ}, {k: theirs.get(k) for k in differ}
        elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
            differ = [i for i in range(len(mine)) if mine[i] != theirs[i]]
            mine, theirs = {i: mine[i] for i in differ}, {i: theirs[i] for i in differ}
        if mine != theirs:
            self.found.append(f"{name} {what}: the page has {json.dumps(mine)[:300]}, the server {json.dumps(theirs)[:300]}")

    def is_held(self, moment):
        return self.begin <= order(moment)[0] and order(moment) <= order(self.last)

    # ---- questions

    def state(self, at):
        mine, theirs = self.both("state", at=at)
        if "registers" not in mine or "registers" not in theirs:
            return self.expect("state", mine, theirs, at)
        first = order(at) == order(self.first)
        for name in sorted((set(mine) | set(theirs)) - {"registers"} - set(PLACES)):
            self.expect("state", mine.get(name), theirs.get(name), f"{at} {name}")
        for a, b in zip(mine["registers"], theirs["registers"]):
            if first:
                b.pop("before", None)
            self.expect("registers", a, b, at)

    def code(self, at):
        mine, theirs = self.both("code", at=at, before=12, after=12)
        # The server shows a REP only from the beginning of its window on.
        lines = {line["moment"]: line for line in mine["lines"]}
        for line in theirs["lines"][1:]:
            if line["moment"] not in lines or "ends" in line or "ends" in lines[line["moment"]]:
                continue
            a = {k: v for k, v in lines[line["moment"]].items() if k not in PLACES}
            b = {k: v for k, v in line.items() if k not in PLACES}
            if order(b.get("next", at))[0] <= self.end and a.get("iterations") == b.get("iterations"):
                self.expect("code", a, b, at)
        return mine["lines"]

    def memory(self, at, address, size, space="linear"):
        mine, theirs = self.both("memory", at=at, address=address, size=size, space=space)
        if "error" in mine or "error" in theirs:
            return self.expect("memory", mine, theirs, f"{at} {address}")
        for a, b in zip(mine["pages"], theirs["pages"]):
            if a is not None or address in self.accessed:
                self.expect("pages", a, b, f"{at} {address}")
        for i in range(size):
            byte = slice(2 * i, 2 * i + 2)
            if mine["bytes"][byte] != "??":
                self.expect("memory", mine["bytes"][byte], theirs["bytes"][byte], f"{at} {address}+{i}")

    def calls(self, at):
        reach = max(order(at)[0] - max(self.begin - REACH, 0), 0)
        mine, theirs = self.both("calls", at=at, reach=reach)
        for call in mine.get("calls", []) + theirs.get("calls", []):
            for place in PLACES:
                call.pop(place, None)
        for name in ("calls", "looked_back", "whole"):
            self.expect("calls", mine.get(name), theirs.get(name), f"{at} {name}")

    def events(self, first, last):
        mine, theirs = self.both("events", **{"from": first, "to": last, "limit": 300})
        # Where the page begins, it does not hold what is delivered before.
        kept = lambda answer: [e for e in answer["events"] if int(e["moment"]) > self.begin and e["kind"] != "process"]
        self.expect("events", kept(mine), kept(theirs), f"{first} to {last}")
        processes = lambda answer: [e for e in answer["events"] if e["kind"] == "process" and int(e["moment"]) > self.begin]
        self.expect("process events", processes(mine), processes(theirs), f"{first} to {last}")

    def console(self, at):
        mine, theirs = self.both("console", at=at)
        self.expect("console", mine.get("lines"), theirs.get("lines"), at)
        self.expect("screen", mine.get("screen"), theirs.get("screen"), at)

    def functions(self, at, reach):
        n = order(at)[0]
        if not (self.begin < n - reach and n + reach < self.end):
            return
        mine, theirs = self.both("functions", at=at, reach=reach)
        for one in mine["functions"] + theirs["functions"]:
            one.pop("place", None)
        self.expect("functions", mine["functions"], theirs["functions"], f"{at} {reach}")

    def timeline(self, first, last):
        mine, theirs = self.both("timeline", **{"from": first, "to": last, "count": last - first})
        if mine["width"] != theirs["width"]:
            return
        for name in sorted(set(mine["columns"]) | set(theirs["columns"])):
            self.expect("timeline", mine["columns"].get(name), theirs["columns"].get(name), f"{first} to {last} {name}")

    def access(self, at, address, kind, direction, space):
        mine, theirs = self.both("access", at=at, address=address, kind=kind, direction=direction, space=space)
        what = f"{at} {address} {kind} {direction}"
        if theirs.get("found") and not (self.is_held(theirs["moment"]) and self.is_held(theirs["next"])):
            return self.expect("access", mine["found"], False, what)
        # One access of 16 bytes may be two of 8 where the server looks at code as a whole.
        first, last = (int(mine.get("physical", "0"), 16), int(theirs.get("physical", "0"), 16))
        within = {"physical", "size"} if first <= last and last + theirs.get("size", 0) <= first + mine.get("size", 0) else set()
        for name in sorted((set(mine) | set(theirs)) - {"why", "place"} - within):
            self.expect("access", mine.get(name), theirs.get(name), f"{what} {name}")

    def setter(self, at, register):
        mine, theirs = self.both("setter", at=at, register=register)
        if theirs.get("found") and not self.is_held(theirs["moment"]):
            return self.expect("setter", mine["found"], False, f"{at} {register}")
        if not theirs.get("found") and "looked back" in theirs.get("why", ""):
            return
        for name in ("found", "moment", "text", "events"):
            self.expect("setter", mine.get(name), theirs.get(name), f"{at} {register} {name}")

    def move(self, at, how, **more):
        mine, theirs = self.both("move", at=at, how=how, **more)
        if "error" in theirs or "took too long" in theirs["why"]:
            return
        if "error" in mine:
            return self.expect("move", self.is_held(theirs["moment"]), False, f"{at} {how}: {mine['error']}")
        if not self.is_held(theirs["moment"]):
            return self.expect("move", mine["why"] in ("end", "beginning", "no call", "moved"), True, f"{at} {how}")
        if order(mine["moment"]) in (order(self.first), order(self.last)):
            return  # the stretch ends before what the server finds
        for name in ("moment", "why", "address"):
            self.expect("move", mine.get(name), theirs.get(name), f"{at} {how} {name}")

    # ---- a moment

    def at_moment(self, at):
        self.state(at)
        lines = self.code(at)
        accesses = [a for line in lines for a in line.get("reads", []) + line.get("writes", [])]
        self.accessed = {a["address"] for a in accesses if "address" in a}
        for a in random.sample(accesses, min(4, len(accesses))):
            if "address" in a:
                self.memory(at, a["address"], min(a["size"], 64))
                self.access(at, a["address"], random.choice(["write", "read", "access"]), random.choice(["back", "on"]), "linear")
            self.memory(at, a["physical"], min(a["size"], 64), "physical")
            self.access(at, a["physical"], random.choice(["write", "read", "access"]), random.choice(["back", "on"]), "physical")
        self.memory(at, lines[len(lines) // 2]["address"], 64)
        self.calls(at)
        self.console(at)
        self.functions(at, 300 if order(at)[0] % 2 else 2000)
        names = [r["name"] for r in self.of_page("state", at=at)["registers"] if not r["name"].endswith("ip")]
        self.setter(at, random.choice(names))
        for how in MOVES:
            self.move(at, how)
        address = random.choice([line["address"] for line in lines])
        self.move(at, random.choice(["run", "run-back"]), address=address)
        n = order(at)[0]
        self.events(max(n - 300, self.begin), min(n + 300, self.end))
        if self.begin < n < self.end - 64:
            self.timeline(n, min(n + random.choice([40, 500, 3000]), self.end))


def special_moments(page, begin):
    """Behind and before events, where most can go wrong."""
    events = page.evaluate(f"citcat.ask('events', {{limit: 1e9, from: {begin}, kinds: "
                           "'exception,interrupt,software_interrupt,nmi,smi,external_write,halt'})")["events"]
    return [int(e["moment"]) for e in events]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("recording")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", dest="last", type=int)
    parser.add_argument("--moments", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unchecked", action="store_true")
    arguments = parser.parse_args()
    if find_chromium() is None:
        print("skip: there is no chromium here (Debian's package chromium)")
        return 77
    random.seed(arguments.seed)
    more = ["--unchecked"] if arguments.unchecked else []
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        file = os.path.join(folder, "page.html")
        command = [arguments.program, "view", arguments.recording, "-q", "--export", file, "--from", str(arguments.first)] + more
        subprocess.run(command + (["--to", str(arguments.last)] if arguments.last else []), check=True)
        page = browser.open("file://" + file)
        page.wait("document.body.dataset.ready", 300)
        with Server(arguments.program, arguments.recording, *more) as server:
            compared = Compared(page, server.url, page.evaluate("citcat.ask('run')"))
            while not compared.of_server("run")["complete"]:
                pass
            compared.first = compared.of_page("moment", at=str(compared.begin))["moment"]
            compared.last = compared.of_page("moment", at="end")["moment"]
            special = special_moments(page, compared.begin)
            for i in range(arguments.moments):
                n = random.randrange(compared.begin, compared.end)
                if special and i % 2 == 0:
                    n = min(max(random.choice(special) + random.randrange(-2, 3), compared.begin), compared.end - 1)
                at = compared.of_page("moment", at=str(n))["moment"]
                # Moments of one instruction beyond the first.
                for _ in range(random.choice([0, 0, 1, 2])):
                    at = compared.of_page("move", at=at, how="step")["moment"]
                compared.at_moment(at)
                if len(compared.found) > 200:
                    break
        compared.found += page.look()
        size = os.path.getsize(file)
    counts = ", ".join(f"{n} {name}" for name, n in compared.counts.items())
    print(f"{arguments.moments} moments in {size} bytes, {counts}: {len(compared.found)} differences")
    for line in compared.found[:40]:
        print(" ", line)
    return 1 if compared.found else 0


if __name__ == "__main__":
    sys.exit(main())
