"""Runs what docs/howto/python.md shows, on the samples: page_test.py CITCAT SOURCE. Status 77: skipped."""

import doctest
import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy  # noqa: F401
except ImportError:
    print("skipped: python3-numpy is not installed")
    sys.exit(77)

program, source = (os.path.abspath(p) for p in sys.argv[1:3])
page = os.path.join(source, "docs", "howto", "python.md")
linux = os.path.join(source, "samples", "linux", "start")
queue = os.path.join(source, "samples", "two-processors", "queue")


def import_sample(capture, internal, recording):
    options = [part for each in internal for part in ("--internal", each)]
    subprocess.run([program, "import", capture, *options, "-o", recording, "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    import_sample(linux + ".bin.zst", [linux + ".side.csv"], "linux.citcat")
    import_sample(queue + ".bin.zst", [f"{p}={queue}.side.{p}.csv" for p in (0, 1)], "queue.citcat")
    with open(page, encoding="utf-8") as file:
        blocks = re.findall(r"^```python\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "python.md", page, 0)
    failed, tried = doctest.DocTestRunner().run(test)
print(f"{tried} examples, {failed} failed")
sys.exit(1 if failed or tried < 10 else 0)
