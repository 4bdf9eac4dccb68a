# SPDX-License-Identifier: MIT
"""Empty stand-ins for the vendor's libraries that a wheel of PyTorch is linked to, so that it runs on a
processor without the gigabytes of those it would never call there.

    vendor_standins.py FOLDER      where the wheel's libraries are

Each library that is needed and not found gets one beside them: the name, the versions and the
functions that are asked of it.  Every function returns 100, "no device" to the one that counts them.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def versions_of(library):
    """Version -> the library it is required from."""
    found, file = {}, None
    for line in said("readelf", "-VW", library).splitlines():
        if m := re.search(r"File: (\S+)", line):
            file = m[1]
        elif (m := re.search(r"Name: (\S+) +Flags", line)) and file:
            found[m[1]] = file
    return found


def symbols_of(library):
    """What it lacks, (name, version or ""), and what it has."""
    lacks, has = set(), set()
    for line in said("readelf", "-W", "--dyn-syms", library).splitlines():
        m = re.match(r"\s*\d+: \S+ +\S+ (\S+) +(\S+) +\S+ +(\S+) (\w+)(?:@+(\S+))?", line)
        if m and m[3] != "UND":
            has.add(m[4])
        elif m and m[2] == "GLOBAL":
            lacks.add((m[4], m[5] or ""))
    return lacks, has


def wanted(folder):
    """Missing library -> version -> names."""
    libraries = [os.path.join(folder, f) for f in os.listdir(folder) if ".so" in f]
    missing = sorted({name for library in libraries for name in
                      re.findall(r"^\s*(\S+) => not found", said("ldd", library), re.M)})
    found = collections.defaultdict(lambda: collections.defaultdict(set))
    plain, present = set(), set()
    for library in libraries:
        versions = versions_of(library)
        lacks, has = symbols_of(library)
        present |= has
        for name, version in lacks:
            if versions.get(version) in missing:
                found[versions[version]][version].add(name)
            elif not version and not name.startswith("_"):
                plain.add(name)
    for name in missing:
        found[name][""] |= set()
    if missing:
        found[missing[0]][""] |= plain - present
    return found


def make(path, versions):
    name = os.path.basename(path)
    with tempfile.TemporaryDirectory() as scratch:
        source, script = os.path.join(scratch, "s.c"), os.path.join(scratch, "s.map")
        with open(source, "w", encoding="utf-8") as f:
            for function in sorted(set().union(*versions.values())):
                f.write(f"int {function}(void) {{ return 100; }}\n")
        with open(script, "w", encoding="utf-8") as f:
            for version, names in versions.items():
                if version:
                    f.write(f"{version} {{ {' '.join(n + ';' for n in sorted(names))} }};\n")
        more = [f"-Wl,--version-script,{script}"] if os.path.getsize(script) else []
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{name}", *more,
                        "-o", path, source], check=True)


def main():
    folder = sys.argv[1]
    for name, versions in wanted(folder).items():
        make(os.path.join(folder, name), versions)


if __name__ == "__main__":
    main()
