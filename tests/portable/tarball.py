# SPDX-License-Identifier: MIT
"""Packs what `make portable` left in a folder into an archive that runs from any folder.

    python3 tests/portable/tarball.py build/portable/x86_64 --arch x86_64 --version 0.1.0

The archive has what `make install` installs, below msprobe-VERSION-ARCH/: programs and libraries find each
other by where they lie, and msprobe.pc by where pkg-config found it. One commit gives one archive, byte for byte.
"""
import argparse
import gzip
import os
import subprocess
import tarfile
import tempfile

from wheel import install, is_elf, strip_tool

PREFIX_LINE = "prefix=/\n"


def relocate(pkgconfig):
    with open(pkgconfig) as f:
        text = f.read()
    assert text.startswith(PREFIX_LINE), text
    with open(pkgconfig, "w") as f:
        f.write("prefix=${pcfiledir}/../..\n" + text[len(PREFIX_LINE):])


def strip_all(root, arch):
    tool = strip_tool(arch)
    for folder, _, names in os.walk(root):
        for path in (os.path.join(folder, name) for name in names):
            if not os.path.islink(path) and is_elf(path):
                subprocess.run([tool, "--strip-unneeded", path], check=True)


def anonymous(entry):
    """Nothing in the archive says who packed it, or when."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = "root"
    return entry


def pack(root, name, path):
    """Compressed with gzip, which every system unpacks."""
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as z, tarfile.open(fileobj=z, mode="w") as archive:
        archive.add(root, name, filter=anonymous)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--arch", required=True)
    parser.add_argument("--version", required=True)
    args = parser.parse_args()
    name = f"msprobe-{args.version}-{args.arch}"
    path = os.path.join(os.path.dirname(args.build.rstrip("/")), f"{name}.tar.gz")
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        install(args.build, args.arch, args.version, root)
        relocate(os.path.join(root, "lib/pkgconfig/msprobe.pc"))
        strip_all(root, args.arch)
        pack(root, name, path + ".tmp")
    os.replace(path + ".tmp", path)
    print(f"{path}  {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
