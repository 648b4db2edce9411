#!/usr/bin/env python3
"""What somebody does with a run in a browser, by a script: citcat view, and the page that it exports.

    view_test.py PROGRAM RECORDING [--function NAME] [--pictures FOLDER]

Finds a function, goes to its third call, steps back over it, asks who wrote a byte, follows the answer, copies the
address of the page, opens it in another window and sees the same moment; then does it again in an exported file. Status
77 where there is no Chromium.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, find_chromium  # noqa: E402


class Failure(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Failure(what)


class Server:
    """citcat view, until the end of a `with`."""

    def __init__(self, program, recording, *more):
        self.process = subprocess.Popen([program, "view", recording, "--no-browser", *more], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        expect(re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", self.url), f"an address, found '{self.url}'")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        expect(self.process.wait(30) == 0, "Ctrl-C ends the server with status 0")


def moment(page):
    page.wait("document.body.dataset.shown !== undefined")
    return page.evaluate("document.body.dataset.shown")


def moved(page, act):
    """The moment that is shown behind what `act` does."""
    before = moment(page)
    act()
    page.wait(f"document.body.dataset.shown !== undefined && document.body.dataset.shown !== {before!r}")
    return moment(page)


def current_line(page):
    return page.evaluate("document.querySelector('#code [aria-current]').innerText")


def registers(page):
    return page.evaluate("""Object.fromEntries([...document.querySelectorAll('#registers [data-register]')]
        .map((row) => [row.dataset.register, row.querySelector('.value').innerText]))""")


def some_function(page, least):
    """The address of code that is called so often: the first callee of the run that is."""
    return page.evaluate("""(async () => {
      const {to} = await citcat.ask('run');
      for (let at = 0; at < to; at += 400) {
        const {lines} = await citcat.ask('code', {at: String(at), before: 0, after: 400});
        for (let i = 0; i + 1 < lines.length; ++i) {
          if (!lines[i].text.startsWith('call')) continue;
          const found = await citcat.ask('nth', {function: lines[i + 1].address, n: %d});
          if (found.found) return lines[i + 1].address;
        }
        if (lines.length < 10) break;
      }
      return null;
    })()""" % least)


def walk(page, browser, url, function):
    """The walk of the issue. Returns the moment at its end."""
    page.press("b")
    moment(page)
    page.press("/")
    page.type("#find-call [name=function]", function)
    page.type("#find-call [name=n]", "3")
    third = moved(page, lambda: page.click("#find-call button"))
    print("third call of", function, "at", third, current_line(page).split("\t")[2:3])
    # Out of it, and back over it, to where it is called from.
    returned = moved(page, lambda: page.press("o"))
    call = moved(page, lambda: page.press("N"))
    expect("call" in current_line(page), f"back over it is its call, found {current_line(page)}")
    expect(moved(page, lambda: page.press("n")) == returned, "over it again is where it returned")
    expect(moved(page, lambda: page.press("N")) == call, "and back over it is its call")
    expect(moved(page, lambda: page.press("s")) == third, "a step from the call is its first instruction")
    there = registers(page)
    moved(page, lambda: page.press("s"))
    expect(moved(page, lambda: page.press("S")) == third, "a step back is where it came from")
    expect(registers(page) == there, "with the same registers")
    # What set the stack pointer?
    pointer = "#registers [data-register$=sp]"
    page.click(pointer + " .ask")
    page.wait(f"document.querySelector('{pointer} .before a')")
    expect(page.evaluate(f"document.querySelector('{pointer} .before a').innerText") == call.split("~")[0],
           "the call set the stack pointer")
    # Who wrote the first byte of its return address?
    stack = page.evaluate("""[...document.querySelectorAll('#registers [data-register]')]
        .find((r) => ['sp', 'esp', 'rsp'].includes(r.dataset.register))?.querySelector('.value a').getAttribute('href')""")
    expect(stack, "a link from the stack pointer to memory")
    page.evaluate(f"location.hash = {stack!r}")
    page.wait("document.querySelector('[data-kind=write][data-direction=back]')")
    page.click("[data-kind=write][data-direction=back]")
    page.wait("document.querySelector('.results .found a')")
    expect(page.evaluate("document.querySelector('.results .found a').innerText") == call.split("~")[0],
           "the call wrote the return address")
    wrote = moved(page, lambda: page.click(".results .found a"))
    expect(wrote == call, f"the link goes to the call, {call}, found {wrote}")
    # The same in a new window.
    other = browser.open(url + page.evaluate("location.hash"))
    other.wait("document.body.dataset.ready")
    expect(moment(other) == wrote, "the same moment in another window")
    expect(registers(other) == registers(page), "with the same registers")
    expect(current_line(other) == current_line(page), "and the same line of code")
    expect(other.look() == [] and page.look() == [], f"nothing on the console, found {page.problems + other.problems}")
    return wrote


def until(page, happened, seconds=20):
    """Waits for what a slow machine may take long for, and a little for what should not follow."""
    end = time.time() + seconds
    while time.time() < end and not happened():
        time.sleep(0.1)
        page.look()
    time.sleep(0.5)


def costs_few_requests(page):
    """A step asks for what it shows, and a zoom for the timeline: nothing else, and nothing twice."""
    for key, most in (("s", ["move", "state", "code", "memory", "calls"]), ("S", ["move", "state", "code", "memory", "calls"]),
                      ("+", ["timeline"])):
        page.look()
        page.requests.clear()
        if key == "+":
            page.press(key)
            until(page, lambda: any("/api/" in r for r in page.requests))
        else:
            moved(page, lambda: page.press(key))
        page.look()
        asked = sorted(re.search(r"api/(\w+)", r).group(1) for r in page.requests if "/api/" in r)
        where = page.evaluate("[location.hash, document.activeElement.outerHTML.slice(0, 99), document.visibilityState]")
        expect(asked == sorted(most), f"{key} asks {sorted(most)}, found {asked} at {where}")
    page.press("0")


def refuses_other_recordings(page):
    page.evaluate("location.hash = '#id=000000000000&at=1'")
    page.wait("!document.getElementById('problem').hidden")
    expect("another recording" in page.evaluate("document.getElementById('problem').innerText"),
           "a link of another recording is refused")


def follow(page, fragment):
    """Goes where a link leads, and waits until that is shown."""
    page.evaluate("delete document.body.dataset.shown")
    page.evaluate(f"location.hash = {fragment!r}")
    moment(page)


def shows_where_a_link_leads(page, at):
    """In a low window too: from the code to memory, from memory to the code; a link of a colleague opens at the top."""
    page.size(1280, 700)
    in_window = "((r) => r.top >= 0 && r.top < innerHeight - 60)(document.querySelector({!r}).getBoundingClientRect())"
    page.evaluate("scrollTo(0, 0)")
    follow(page, f"#at={at}&panel=events")
    expect(page.evaluate("scrollY") == 0, "who opens a link sees the page from its top")
    page.evaluate("delete document.body.dataset.shown")
    page.click("#code .effects a")
    moment(page)
    page.wait(in_window.format("#panel table.memory"))
    page.evaluate("scrollTo(0, document.body.scrollHeight); delete document.body.dataset.shown")
    page.click("#tab-events")
    moment(page)
    page.evaluate("delete document.body.dataset.shown")
    page.click("#panel td a[title^='Go to instruction']")
    moment(page)
    page.wait(in_window.format("#code .here"))
    page.size(1400, 1000)


def works_without_a_mouse(page):
    page.press("b")
    moment(page)
    page.press("/")
    page.wait("document.activeElement.name === 'text'")
    page.press("Escape")
    expect(page.evaluate("document.activeElement === document.body"), "Escape leaves the field")
    here = moment(page)
    expect(moved(page, lambda: page.press("s")) != here, "and then keys are keys again")
    said = page.evaluate("document.getElementById('now').innerText")
    expect(current_line(page).split("\t")[2].split(" ")[0] in said, f"a screen reader is told of the step, found '{said}'")
    page.evaluate("document.querySelector('#code .here a').focus()")
    moved(page, lambda: page.press("s"))
    expect(page.evaluate("document.activeElement === document.querySelector('#code .here a')"), "the focus goes with the step")
    page.evaluate("document.querySelector('#registers .ask').focus()")
    moved(page, lambda: page.press("S"))
    expect(page.evaluate("document.activeElement.matches('#registers .ask')"), "or stays where it was")


def takes_addresses_as_people_write_them(page):
    """Without protection also as SEGMENT:OFFSET; what is none is refused in words."""
    place = "0040:0017" if page.evaluate("citcat.ask('run').then((r) => !r.has.levels)") else "0x00000417"
    follow(page, f"#at=begin&panel=memory&address={place}")
    page.wait("/00410$/.test(document.querySelector('#panel table.memory th[scope=row]')?.innerText)")
    follow(page, "#at=begin&panel=memory&address=nowhere")
    text = page.evaluate("document.getElementById('panel').innerText")
    expect("Address: expected hexadecimal digits" in text, f"what an address is, found {text}")
    page.evaluate("history.back()")


def lists_what_is_called(page, function):
    """Who knows no name finds the functions that are called."""
    follow(page, "#at=end&panel=find")
    page.wait("document.querySelector('#panel table')")
    text = page.evaluate("document.getElementById('panel').innerText")
    expect("Called here" in text, f"functions that are called, found {text}")


def says_what_was_different(page):
    """Where two runs part the registers that differed are in a table."""
    text = page.evaluate("""(async () => {
      const [{show_parting}, {element}] = [await import('./overview.js'), await import('./dom.js')];
      return element('div', {}, show_parting({differs: true, compared: 5, a: {position: 5, address: '10', text: 'nop'}, b: null,
        last: {a: 4, b: 4}, registers: [{name: 'ax', a: '1', b: '2'}], memory: []})).textContent;
    })()""")
    expect("Different before that instruction:FirstSecondax12" in text and "[object" not in text, f"a table, found {text}")


def tells_which_part_it_holds(arguments, browser, file):
    """A page of a part of the run tells of all of it, and does not take the part's beginning for the run's."""
    subprocess.run([arguments.program, "view", arguments.recording, "-q", "--export", file, "--from", "5", "--to", "20"], check=True)
    page = browser.open("file://" + file + "#at=begin")
    page.wait("document.body.dataset.ready", 60)
    problem = page.evaluate("document.getElementById('problem').innerText")
    expect("holds each step of instructions 5 to 20" in problem, f"the beginning is not in the page, found {problem}")
    page.evaluate("location.hash = ''")
    page.wait("document.body.dataset.screen === 'overview'")
    glance = page.evaluate("document.getElementById('overview-content').innerText")
    expect("The page holds each step of 5 to 20." in glance, f"which part the page holds, found {glance}")


def take_pictures(browser, url, fragment, folder, name):
    """Each screen, light and dark, from a telephone's to a wide one's width."""
    os.makedirs(folder, exist_ok=True)
    for width, height in ((390, 844), (768, 1024), (1400, 1000), (2560, 1400)):
        for screen, hash_text in (("first", ""), ("moment", fragment)):
            page = browser.open(url + hash_text, width, height)
            page.wait("document.body.dataset.ready")
            page.wait("document.body.dataset.known === 'all'")
            if hash_text:
                moment(page)
            for dark in (False, True):
                page.size(width, height, dark)
                page.wait("document.readyState === 'complete'")
                page.picture(os.path.join(folder, f"{name}-{screen}-{width}-{'dark' if dark else 'light'}.png"))
                expect(page.evaluate("document.documentElement.scrollWidth <= innerWidth"),
                       f"nothing is wider than {width} pixels on the {screen} screen")


def prints_no_controls(page):
    controls = "[...document.querySelectorAll('form, #moves, #tabs')].filter((e) => e.getClientRects().length > 0).length"
    expect(page.evaluate(controls) > 0, "controls on the screen")
    page.print(True)
    expect(page.evaluate(controls) == 0, "no controls on paper")
    page.print(False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("recording")
    parser.add_argument("--function")
    parser.add_argument("--pictures")
    arguments = parser.parse_args()
    if find_chromium() is None:
        print("skip: there is no chromium here (Debian's package chromium)")
        return 77
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        with Server(arguments.program, arguments.recording) as server:
            page = browser.open(server.url)
            page.wait("document.body.dataset.ready")
            page.wait("document.body.dataset.known === 'all'")
            function = arguments.function or some_function(page, 4)
            expect(function, "a function that is called four times")
            wrote = walk(page, browser, server.url, function)
            fragment = page.evaluate("location.hash")
            expect(all(r.startswith((server.url, "data:")) for r in page.requests), "nothing is asked of anybody else")
            costs_few_requests(page)
            refuses_other_recordings(page)
            says_what_was_different(page)
            shows_where_a_link_leads(page, wrote)
            prints_no_controls(page)
            works_without_a_mouse(page)
            takes_addresses_as_people_write_them(page)
            lists_what_is_called(page, function)
            expect(page.look() == [], f"nothing on the console, found {page.problems}")
            if arguments.pictures:
                take_pictures(browser, server.url, fragment, arguments.pictures, "live")
        exported = os.path.join(folder, "page.html")
        last = int(re.match(r"\d+", wrote).group()) + 50_000
        subprocess.run([arguments.program, "view", arguments.recording, "-q", "--export", exported, "--to", str(last)],
                       check=True)
        url = "file://" + exported
        page = browser.open(url)
        page.wait("document.body.dataset.ready", 180)
        expect(walk(page, browser, url, function) == wrote, "the exported page shows the same moments")
        shows_where_a_link_leads(page, wrote)
        works_without_a_mouse(page)
        takes_addresses_as_people_write_them(page)
        lists_what_is_called(page, function)
        expect(all(r.startswith(("file://" + folder, "data:")) for r in page.requests),
               f"nothing outside of the file is read, found {page.requests}")
        refuses_other_recordings(page)
        if arguments.pictures:
            take_pictures(browser, url, fragment, arguments.pictures, "exported")
        tells_which_part_it_holds(arguments, browser, exported)
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
