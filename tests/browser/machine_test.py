#!/usr/bin/env python3
"""The page of a machine of two processors: both at a glance, and each by itself.

    machine_test.py PROGRAM RECORDING

Status 77 where there is no Chromium.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, find_chromium  # noqa: E402
from view_test import Server, expect, moment  # noqa: E402


def main():
    program, recording = sys.argv[1:]
    if find_chromium() is None:
        print("skip: there is no chromium here (Debian's package chromium)")
        return 77
    with Browser() as browser, Server(program, recording) as server:
        page = browser.open(server.url)
        page.wait("document.body.dataset.ready")
        page.wait("document.body.dataset.known === 'all'")
        texts = lambda what: page.evaluate(f"[...document.querySelectorAll({what!r})].map((e) => e.innerText)")
        expect(texts("#timeline-picture .run-name") == ["Processor 0", "Processor 1"], "a timeline of each processor")
        verdicts = texts("#verdict > span")
        expect([v.split(":")[0] for v in verdicts] == ["all processors", "Processor 0", "Processor 1"], f"three verdicts, found {verdicts}")
        expect(len(texts("#overview-content .pane")) == 2, "what is in each of them")
        page.click("#overview-content .pane:nth-child(2) .places a")
        moment(page)
        expect(page.evaluate("new URLSearchParams(location.hash.slice(1)).get('run')") == "2", "the links of the second lead to it")
        expect(len(texts("#timeline-picture svg")) == 1, "one timeline beside its code")
        expect("Processor" in page.evaluate("document.getElementById('screens').innerText"), "a way to the other one")
        expect(page.look() == [], f"nothing on the console, found {page.problems}")
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
