#!/usr/bin/env python3
"""Takes a picture of a page of `citcat view` in Debian's Chromium, as a window of 1280 x 860 pixels shows it.

    picture.py ADDRESS FILE.png

ADDRESS may name a place in the page. Fails if the page says that something is wrong, or is not shown from its beginning.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser  # noqa: E402


def main():
    address, file = sys.argv[1:]
    with Browser() as browser:
        page = browser.open(address, 1280, 860)
        page.wait("document.body.dataset.ready", 180)
        page.wait("document.body.dataset.shown !== undefined")
        problems = page.look()
        said = page.evaluate("document.getElementById('problem').innerText")
        scrolled = page.evaluate("scrollY")
        if problems or said or scrolled:
            sys.exit(f"{address}: {problems or said or f'it is scrolled by {scrolled} pixels'}")
        page.picture(file)


if __name__ == "__main__":
    main()
