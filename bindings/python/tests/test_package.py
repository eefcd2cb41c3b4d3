"""The wheel: built offline, installed into an empty folder, imported; README's programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import agentwal
from conftest import LONG

PROJECT = Path(__file__).resolve().parents[1]
ROOT = PROJECT.parents[1]
PACKAGE = Path(agentwal.__file__).parent
EXTENSION = Path(agentwal._wal.__file__)


def run(*command, cwd, **environment):
    kept = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=cwd,
                          env={**kept, **environment}, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of an installed package."""
    folder = tmp_path_factory.mktemp("package")
    source = folder / "source"
    shutil.copytree(PROJECT, source, ignore=shutil.ignore_patterns(
        "build", "dist", "*.egg-info", "__pycache__", "tests", "*.so"))
    how = {"AGENTWAL_SOURCE": str(ROOT)}
    if not LONG:
        how["AGENTWAL_PREBUILT"] = str(EXTENSION)
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder,
        source, cwd=folder, PYTHONPATH="", **how)
    [wheel] = folder.glob("*.whl")
    assert re.fullmatch(r"agentwal-%s-cp311-abi3-linux_\w+\.whl" % re.escape(agentwal.__version__),
                        wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        notice = [archive.read(name) for name in names if name.endswith("/NOTICE")]
    assert {"agentwal/__init__.py", "agentwal/_wal.pyi", "agentwal/py.typed", "agentwal/aio.py",
            "agentwal/openai_agents.py", "agentwal/claude/__init__.py",
            "agentwal/_wal.abi3.so"} <= names
    assert [name for name in names if name.endswith(".dist-info/LICENSE")]
    assert b"code of libssl" in notice[0] and b"Yann Collet" in notice[0]
    assert not [name for name in names if name.startswith(("src/", "tests/", "bench/"))]
    run(sys.executable, "-m", "installer", "--destdir", folder / "root", wheel, cwd=folder)
    [init] = (folder / "root").glob("**/agentwal/__init__.py")
    return init.parent.parent


def test_wheel__is_imported_from_an_empty_folder(installed, tmp_path):
    program = ("import agentwal, agentwal.aio, agentwal.claude, agentwal.openai_agents;"
               "print(agentwal.__file__, agentwal.__version__)")
    text = run(sys.executable, "-B", "-c", program, cwd=tmp_path, PYTHONPATH=str(installed))
    assert text.split() == [str(installed / "agentwal" / "__init__.py"), agentwal.__version__]


def blocks(language):
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^```%s\n(.*?)^```" % language, text, re.M | re.S)


def test_readme__program_prints_what_it_says(installed, tmp_path):
    text = run(sys.executable, "-B", "-W", "error", "-c", blocks("python")[0], cwd=tmp_path,
               PYTHONPATH=str(installed))
    assert text == blocks("text")[0]


def test_readme__every_call_of_the_list_works(installed, tmp_path):
    prefix = """
import agentwal, pathlib, os
store = agentwal.open("store")
session = store.create(cwd="/srv/app")
payload = {"role": "user", "content": "Hello"}
root = pathlib.Path("tree").absolute()
root.mkdir()
(root / "main.py").write_text("print(1)\\n")
folder, copy, bundle = root, "copy", "bundle"
other = agentwal.memory()
"""
    program = prefix + blocks("python")[1] + "\nstore.close()\n"
    run(sys.executable, "-B", "-c", program, cwd=tmp_path, PYTHONPATH=str(installed))


def test_readme__program_of_asyncio_works(installed, tmp_path):
    body = "".join("    %s" % line for line in blocks("python")[2].splitlines(keepends=True))
    program = "import asyncio, agentwal.aio\nasync def main():\n%s\nasyncio.run(main())" % body
    run(sys.executable, "-B", "-W", "error", "-c", program, cwd=tmp_path,
        PYTHONPATH=str(installed))


def test_extension__exports_one_symbol_and_needs_the_c_library_alone():
    text = run("nm", "-D", "--defined-only", EXTENSION, cwd=PACKAGE)
    assert [line.split()[-1] for line in text.splitlines()] == ["PyInit__wal"]
    text = run("readelf", "-d", EXTENSION, cwd=PACKAGE)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    assert all(re.match(r"libc\.so|ld-linux|libasan|libubsan|libtsan|libm\.so|libpthread|libgcc",
                        name) for name in needed), needed


def test_extension__uses_the_limited_interface_alone():
    """Names of Python that it takes, against those that the stable ABI lists."""
    text = run("nm", "-D", "--undefined-only", EXTENSION, cwd=PACKAGE)
    names = {line.split()[-1] for line in text.splitlines() if re.search(r"\b_?Py", line)}
    assert "PyType_FromModuleAndSpec" in names
    assert {name for name in names if name.startswith("_Py")} <= {
        "_Py_Dealloc", "_Py_NoneStruct", "_Py_TrueStruct", "_Py_FalseStruct", "_PyObject_GC_New",
        "_Py_BuildValue_SizeT", "_PyObject_CallFunction_SizeT"}


def test_version__is_that_of_the_library():
    text = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r'^version = "(.*)"$', text, re.M)[1] == agentwal.__version__
