#!/usr/bin/env python3
"""The page of a run whose replay diverges from its evidence, served and exported.

    diverged_test.py PROGRAM RECORDING SAME

RECORDING diverges somewhere, because of one bit that was captured wrongly; up to there SAME is the same run, without
that. Status 77 where there is no Chromium.
"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, find_chromium  # noqa: E402
from view_test import Server, expect, moment  # noqa: E402


def events(page, last):
    return page.evaluate(f"citcat.ask('events', {{to: {last}, limit: 5000}})")["events"]


def opened(browser, url):
    page = browser.open(url)
    page.wait("document.body.dataset.ready", 120)
    page.wait("document.body.dataset.known === 'all'", 120)
    return page


def main():
    program, diverged, same = sys.argv[1:]
    if find_chromium() is None:
        print("skip: there is no chromium here (Debian's package chromium)")
        return 77
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        with Server(program, diverged) as server, Server(program, same) as other:
            page = opened(browser, server.url)
            run = page.evaluate("citcat.ask('run')")
            expect(run["verdict"]["state"] == "diverged", f"it diverges, found {run['verdict']}")
            last = int(run["verdict"]["moment"].split("+")[0])
            expected = events(opened(browser, other.url), last)
            expect(events(page, last) == expected, "each event once, as in the run without the wrong bit")
            page.click("#overview-content .unusual button")
            page.wait("document.querySelector('#overview-content .unusual [aria-live] :is(ol, .hint)')", 90)
            causes = page.evaluate("[...document.querySelectorAll('#overview-content .unusual ol li')].map((e) => e.innerText)")
            said = page.evaluate("document.querySelector('#overview-content .unusual [aria-live]').innerText")
            # On a busy machine the time may be over before one is found.
            in_time = "None was found" not in said
            expect(not in_time or "agrees to the end" in causes[0], f"the likeliest cause repairs the run, found {said}")
            page.click("#overview-content .unusual a")
            moment(page)
            expect("here the replay diverges from its evidence" in page.evaluate("document.getElementById('code').innerText"),
                   "the code says where")
            expect(page.look() == [], f"nothing on the console, found {page.problems}")
        file = os.path.join(folder, "page.html")
        subprocess.run([program, "view", diverged, "-q", "--export", file, "--from", str(max(last - 5000, 0))], check=True)
        page = opened(browser, "file://" + file)
        text = page.evaluate("document.getElementById('overview-content').innerText")
        cause = causes[0].split(" (with it")[0] if in_time else ""
        expect(f"perhaps: {cause}" in text or not in_time, f"the exported page has the cause, found {text}")
        page.click("#overview-content .unusual a")
        moment(page)
        expect(page.look() == [], f"nothing on the console, found {page.problems}")
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
