#!/usr/bin/env python3
"""Two recordings side by side, served and in the page of a report: where they part, and steps in both.

    compared_test.py PROGRAM RECORDING OTHER

OTHER must leave the way of RECORDING somewhere. Status 77 where there is no Chromium.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, find_chromium  # noqa: E402
from view_test import Server, expect, moved  # noqa: E402


def panes(page, what):
    return page.evaluate(f"[...document.querySelectorAll('{what}')].map((e) => e.innerText)")


def moments(page):
    return page.evaluate("""['at', 'at2'].map((n) => new URLSearchParams(location.hash.slice(1)).get(n).split('~')[0])""")


def shows_both(page, difference):
    """The first screen says where they part; from there steps go on in both, or in one alone."""
    page.wait("document.body.dataset.ready", 120)
    page.wait("document.body.dataset.known === 'all'", 120)
    expect(len(panes(page, "#timeline-picture svg")) == 2, "a timeline of each")
    a, b = difference["a"], difference["b"]
    first_screen = page.evaluate("document.getElementById('overview-content').innerText")
    said = [side["text"] for side in (a, b) if side] if difference["verdict"] == "differ" else [f"the same {difference['compared']} instruc"]
    expect(all(text in first_screen for text in said), f"where they part: {said}, found {first_screen}")
    expect(page.look() == [], f"nothing on the console, found {page.problems}")
    page.evaluate("document.body.dataset.shown = ''")
    moved(page, lambda: page.click(".parting a"))
    parted = [str(side["position"]) for side in (a, b) if side]
    expect(moments(page)[:len(parted)] == parted, f"the link goes to {parted}, found {moments(page)}")
    moved(page, lambda: page.press("S"))
    both = [int(m) for m in moments(page)]
    lines = panes(page, "#code-content [aria-current]")
    expect(len(lines) == 2 and lines[0].split("\t")[2] == lines[1].split("\t")[2],
           f"before they part both run the same, found {lines}")
    moved(page, lambda: page.press("S"))
    expect([int(m) for m in moments(page)] == [both[0] - 1, both[1] - 1], f"a step back in both, found {moments(page)}")
    page.click("#only-chosen")
    moved(page, lambda: page.press("s"))
    expect([int(m) for m in moments(page)] == [both[0], both[1] - 1], f"a step in one alone, found {moments(page)}")
    differs = panes(page, "#registers .differs th")
    expect("ip" in differs, f"marked registers, ip among them, found {differs}")
    for width in (390, 1000, 1400, 2560):
        page.size(width, 900)
        time.sleep(0.2)
        expect(page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"nothing is wider than {width} pixels")
        left = page.evaluate("document.getElementById('moves').getBoundingClientRect().width")
        expect(left > width / 2, f"the moves have room at {width} pixels, found {left}")
    expect(page.look() == [], f"nothing on the console, found {page.problems}")


def main():
    if find_chromium() is None:
        print("skip: there is no chromium here (Debian's package chromium)")
        return 77
    program, recording, other = sys.argv[1:]
    found = subprocess.run([program, "diff", recording, other, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    difference = json.loads(found.stdout)
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        with Server(program, recording, "--compare", other) as server:
            shows_both(browser.open(server.url), difference)
        file = os.path.join(folder, "page.html")
        subprocess.run([program, "report", "--compare", recording, other, "-q", "--explain-time", "0", "-o", file])
        page = browser.open("file://" + file)
        shows_both(page, difference)
        page.press("f")
        page.wait("document.body.dataset.screen === 'figures'")
        titles = panes(page, ".figures-part > h3")
        expect("Comparison" in titles and "Functions" in titles, f"the figures of both, found {titles}")
        expect(all(re.match(r"(file|data):", r) for r in page.requests), f"nothing outside of the file, found {page.requests}")
        expect(page.look() == [], f"nothing on the console, found {page.problems}")
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
