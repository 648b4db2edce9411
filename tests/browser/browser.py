"""Debian's Chromium, without a window, driven by its own protocol through a pipe: no library is needed.

Source: Chrome DevTools Protocol, https://chromedevtools.github.io/devtools-protocol/ (1.3), and Chromium's
content/browser/devtools/devtools_pipe_handler.cc: with --remote-debugging-pipe messages come and go on the
descriptors 3 and 4, each ended by a zero.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find_chromium():
    """The path of the browser, or None."""
    return os.environ.get("CITCAT_CHROMIUM") or shutil.which("chromium")


class BrowserError(Exception):
    pass


class Browser:
    """One browser with pages; use it in a `with`."""

    def __init__(self, dark=False):
        self.profile = tempfile.mkdtemp(prefix="citcat-browser-")
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        # High, so that neither lies where the other is to go.
        to_browser_high, from_browser_high = os.dup(to_browser), os.dup(from_browser)
        for end in (to_browser_high, from_browser_high):
            os.set_inheritable(end, True)

        def settle_descriptors():
            a, b = os.dup(to_browser_high), os.dup(from_browser_high)
            high = [os.dup2(a, 250), os.dup2(b, 251)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        options = ["--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu",
                   "--disable-extensions", "--disable-background-networking", "--hide-scrollbars",
                   "--user-data-dir=" + self.profile, "about:blank"]
        if os.geteuid() == 0:
            options.insert(0, "--no-sandbox")
        if dark:
            options.insert(0, "--force-dark-mode")
        self.log = open(os.path.join(self.profile, "log"), "w")
        self.process = subprocess.Popen([find_chromium()] + options, preexec_fn=settle_descriptors, close_fds=False,
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        for end in (to_browser, from_browser, to_browser_high, from_browser_high):
            os.close(end)
        self.number = 0
        self.waiting = b""
        self.messages = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def _read(self, until):
        """The next message, or None where none comes in time."""
        while b"\0" not in self.waiting:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.read_end], [], [], left)[0]:
                return None
            piece = os.read(self.read_end, 1 << 16)
            if not piece:
                raise BrowserError("the browser has ended")
            self.waiting += piece
        message, self.waiting = self.waiting.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, parameters=None, session=None, seconds=60):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": parameters or {}}
        if session is not None:
            message["sessionId"] = session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + seconds
        while True:
            answer = self._read(until)
            if answer is None:
                raise BrowserError(f"{method}: no answer within {seconds} s")
            if answer.get("id") != number:
                self.messages.append(answer)
                continue
            if "error" in answer:
                raise BrowserError(f"{method}: {answer['error']}")
            return answer["result"]

    def open(self, url, width=1400, height=1000):
        return Page(self, url, width, height)

    def take_messages(self, session):
        """What came for this page since it was asked last."""
        mine = [m for m in self.messages if m.get("sessionId") == session]
        self.messages = [m for m in self.messages if m.get("sessionId") != session]
        return mine


class Page:
    """A window of its own."""

    def __init__(self, browser, url, width, height):
        self.browser = browser
        self.problems = []
        target = browser.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.session = browser.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.size(width, height)
        self.requests = []
        self.call("Page.navigate", {"url": url})

    def call(self, method, parameters=None, seconds=60):
        return self.browser.call(method, parameters, self.session, seconds)

    def size(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.call("Emulation.setEmulatedMedia",
                  {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def print(self, on):
        """As on paper from now on, or as on a screen again."""
        self.call("Emulation.setEmulatedMedia", {"media": "print" if on else ""})

    def evaluate(self, expression, seconds=60):
        """The value of JavaScript in the page; a promise is waited for."""
        result = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True},
                           seconds)
        if "exceptionDetails" in result:
            raise BrowserError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, condition, seconds=60):
        """Until JavaScript is true."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.evaluate(f"Boolean(document.body && ({condition}))"):
                return
            time.sleep(0.03)
        raise BrowserError(f"not within {seconds} s: {condition}; the console says {self.look()}")

    def click(self, selector):
        self.wait(f"document.querySelector({json.dumps(selector)})")
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def press(self, key):
        """A key, as the keyboard would send it."""
        for kind in ("keyDown", "keyUp"):
            event = {"type": kind, "key": key}
            if len(key) == 1 and kind == "keyDown":
                event["text"] = key
            self.call("Input.dispatchKeyEvent", event)

    def type(self, selector, text):
        quoted = json.dumps(selector)
        self.wait(f"document.querySelector({quoted})")
        self.evaluate(f"(() => {{ const f = document.querySelector({quoted}); f.focus(); f.value = {json.dumps(text)}; }})()")

    def picture(self, path):
        # What lies behind another window is not drawn.
        self.call("Page.bringToFront")
        data = self.call("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": False})["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def look(self):
        """Takes what the browser has told: errors into `problems`, addresses into `requests`."""
        for message in self.browser.take_messages(self.session):
            parameters = message.get("params", {})
            if message["method"] == "Runtime.exceptionThrown":
                self.problems.append(json.dumps(parameters["exceptionDetails"])[:600])
            elif message["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
                self.problems.append(str(parameters["args"])[:600])
            elif message["method"] == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                self.problems.append(parameters["entry"]["text"] + " " + parameters["entry"].get("url", ""))
            elif message["method"] == "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
        if self.evaluate("document.body?.innerText.includes('[object ')"):
            self.problems.append("an object stands in the page as text")
        return self.problems
