"""Builds the extension: with CMake, from the sources of the library two folders up, or takes the
file that AGENTWAL_PREBUILT names; and the module of the classes that calls return. AGENTWAL_SOURCE
names another place of the sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py


def source_folder() -> Path:
    source = Path(os.environ.get("AGENTWAL_SOURCE") or Path(__file__).resolve().parents[2])
    if not (source / "engine" / "include" / "agentwal.h").is_file():
        sys.exit("setup.py: %s does not have the sources of the library: build in a clone, or "
                 "name one by AGENTWAL_SOURCE" % source)
    return source


class BuildWithRecords(build_py):
    def run(self) -> None:
        super().run()
        bindings = source_folder() / "bindings"
        subprocess.run([sys.executable, bindings / "generate.py", "records",
                        bindings / "python" / "src" / "interface.txt",
                        Path(self.build_lib, "agentwal", "_records.py")], check=True)


class BuildWithCMake(build_ext):
    def build_extension(self, extension: Extension) -> None:
        target = Path(self.get_ext_fullpath(extension.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        prebuilt = os.environ.get("AGENTWAL_PREBUILT")
        shutil.copyfile(prebuilt if prebuilt else self.build_library(), target)
        if not prebuilt and shutil.which("strip"):
            subprocess.run(["strip", "-S", "-x", target], check=True)

    def build_library(self) -> Path:
        source = source_folder()
        build = Path(self.build_temp).absolute()
        subprocess.run(["cmake", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release",
                        "-DAGENTWAL_PYTHON=ON",
                        "-DPYTHON_INCLUDE=" + sysconfig.get_path("include")], check=True)
        subprocess.run(["cmake", "--build", build, "--target", "agentwal_python", "--parallel",
                        str(len(os.sched_getaffinity(0)))], check=True)
        return build / "python" / "agentwal" / "_wal.abi3.so"


def write_licences() -> None:
    """The licence of the package, and those of the libraries that the extension carries."""
    here = Path(__file__).resolve().parent
    source = Path(os.environ.get("AGENTWAL_SOURCE") or here.parents[1])
    if (source / "LICENSE").is_file():
        shutil.copyfile(source / "LICENSE", here / "LICENSE")
    texts = []
    for library in ("libssl-dev", "liblz4-dev", "zlib1g-dev", "libzstd-dev", "libdeflate-dev",
                    "libsqlite3-dev"):
        text = Path("/usr/share/doc", library, "copyright")
        if text.is_file():
            texts.append("The extension contains code of %s:\n\n%s\n\n" % (
                library.removesuffix("-dev"), text.read_text("utf-8")))
    (here / "NOTICE").write_text("".join(texts), "utf-8")


write_licences()
setup(ext_modules=[Extension("agentwal._wal", sources=[], py_limited_api=True)],
      cmdclass={"build_ext": BuildWithCMake, "build_py": BuildWithRecords})
