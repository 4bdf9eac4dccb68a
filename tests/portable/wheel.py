# SPDX-License-Identifier: MIT
"""Builds a Python wheel of what `make portable` left in a folder.

    python3 tests/portable/wheel.py build/portable/x86_64 --arch x86_64 --glibc 2.28 --version 0.1.0

The wheel has what `make install` installs, at the same places below the prefix of the Python: bin/msprobe,
lib/msprobe, share/man. Nothing lies in site-packages but msprobe.pth, which puts lib/msprobe/python at the END
of the path of Python's modules; so an official package msprobe is never covered or overwritten.
One commit gives one wheel, byte for byte.
"""
import argparse
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

LIMIT = 8 * 1024 * 1024

METADATA = """Metadata-Version: 2.1
Name: msprobe
Version: {version}
Summary: Finds out why a large-model training run is wrong or slow
License: MIT
Requires-Python: >=3.9
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: Python :: 3
Description-Content-Type: text/markdown

{readme}"""
WHEEL = """Wheel-Version: 1.0
Generator: msprobe
Root-Is-Purelib: true
Tag: py3-none-manylinux_{glibc}_{arch}
"""


def strip_tool(arch):
    """A strip that knows this processor's files."""
    own = ["strip"] if arch == os.uname().machine else []
    for name in [f"{arch}-linux-gnu-strip", *own, "llvm-strip", *(f"llvm-strip-{v}" for v in range(22, 12, -1))]:
        if shutil.which(name):
            return name
    sys.exit(f"wheel: no strip for {arch} here; install binutils-{arch.replace('_', '-')}-linux-gnu, or llvm")


def is_elf(path):
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def install(build, arch, version, root):
    cross = "" if arch == os.uname().machine else arch
    env = dict(os.environ, B=build, VERSION=version, PREFIX="/", DESTDIR=root, CROSS=cross)
    subprocess.run(["sh", "tests/install.sh", "install"], check=True, env=env, stdout=subprocess.DEVNULL)


def wanted(path):
    """What a Python user has no use for stays out: headers, files for linking and for the system's package tools."""
    return not path.startswith(("include/", "lib/pkgconfig/", "share/doc/")) and not path.startswith("lib/libmsprobe")


def files_of(root):
    """(path below the prefix, file) of all that goes in, in one order. A library is there once, by its soname."""
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            file = os.path.join(folder, name)
            path = os.path.relpath(file, root)
            if os.path.islink(file):
                if path.endswith(".so.0"):
                    yield path, os.path.realpath(file)
            elif ".so." not in name and wanted(path):
                yield path, file


def place_of(path, data):
    """Where pip looks for it: programs in their own folder, all else below the prefix."""
    if path.startswith("bin/"):
        return f"{data}/scripts/{path[4:]}"
    return f"{data}/data/{path}"


class Wheel:
    def __init__(self, path, info):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.info = info
        self.rows = []

    def add(self, name, content, mode=0o644):
        entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.rows.append(f"{name},sha256={digest},{len(content)}\n")

    def close(self):
        record = f"{self.info}/RECORD"
        self.rows.append(f"{record},,\n")
        self.zip.writestr(zipfile.ZipInfo(record, (2020, 1, 1, 0, 0, 0)), "".join(self.rows), zipfile.ZIP_DEFLATED)
        self.zip.close()


def read(path):
    with open(path, "rb") as f:
        return f.read()


def fill(wheel, root, strip, data):
    for path, file in files_of(root):
        if is_elf(file):
            subprocess.run([strip, "--strip-unneeded", file], check=True)
        if not wanted(path):
            continue
        wheel.add(place_of(path, data), read(file), 0o755 if is_elf(file) else 0o644)


def build_wheel(args, path):
    name = f"msprobe-{args.version}"
    with tempfile.TemporaryDirectory() as root:
        install(args.build, args.arch, args.version, root)
        wheel = Wheel(path, f"{name}.dist-info")
        fill(wheel, root, strip_tool(args.arch), f"{name}.data")
    # From site-packages of Python 3.x up to the prefix, and into the folder of our modules.
    wheel.add("msprobe.pth", b"../../msprobe/python\n")
    wheel.add(f"{name}.dist-info/METADATA", METADATA.format(version=args.version, readme=read("README.md").decode()).encode())
    wheel.add(f"{name}.dist-info/WHEEL", WHEEL.format(glibc=args.glibc.replace(".", "_"), arch=args.arch).encode())
    wheel.add(f"{name}.dist-info/LICENSE", read("LICENSE"))
    wheel.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--arch", required=True)
    parser.add_argument("--glibc", required=True)
    parser.add_argument("--version", required=True)
    args = parser.parse_args()
    tag = f"py3-none-manylinux_{args.glibc.replace('.', '_')}_{args.arch}"
    path = os.path.join(os.path.dirname(args.build.rstrip("/")), f"msprobe-{args.version}-{tag}.whl")
    build_wheel(args, path + ".tmp")
    os.replace(path + ".tmp", path)
    size = os.path.getsize(path)
    print(f"{path}  {size} bytes")
    if size > LIMIT:
        sys.exit(f"wheel: {size} bytes are more than {LIMIT}")


if __name__ == "__main__":
    main()
