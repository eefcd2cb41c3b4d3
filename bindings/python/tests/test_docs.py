"""The pages of docs/: their programs print what the pages say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
PROGRAM = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)


def programs():
    for page in sorted(DOCS.glob("*.md")):
        found = PROGRAM.findall(page.read_text(encoding="utf-8"))
        assert found, page
        for number, (program, printed) in enumerate(found):
            yield pytest.param(program, printed, id="%s-%d" % (page.stem, number))


@pytest.mark.parametrize("program, printed", programs())
def test_page__program_prints_what_it_says(program, printed, tmp_path):
    done = subprocess.run([sys.executable, "-B", "-W", "error", "-c", program], cwd=tmp_path,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert done.stdout == printed
