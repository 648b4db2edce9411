"""Runs what docs/howto/python.md shows, on the Linux sample: page_test.py CITCAT SOURCE. Status 77: skipped."""

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
sample = os.path.join(source, "samples", "linux", "start")
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    subprocess.run([program, "import", sample + ".bin.zst", "--internal", sample + ".side.csv", "-o",
                    "linux.citcat", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    with open(page, encoding="utf-8") as file:
        blocks = re.findall(r"^```python\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "python.md", page, 0)
    failed, tried = doctest.DocTestRunner().run(test)
print(f"{tried} examples, {failed} failed")
sys.exit(1 if failed or tried < 10 else 0)
