# SPDX-License-Identifier: MIT
"""Decides which package `import msprobe` finds in one Python: the official one, where it is installed, or this.

`msprobe drop-in` runs this file with that Python: on, off, or nothing, which says how it is.

A wheel of msprobe has its package outside of site-packages, in PREFIX/lib/msprobe/python, and a file
msprobe.pth that puts this folder at the end of sys.path; so an official package, which lies in site-packages,
comes first.  `on` adds the file msprobe-drop-in.pth, which puts the folder at the front.
"""
import os
import sys
import sysconfig
from importlib.machinery import PathFinder

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NAME = "msprobe-drop-in.pth"


def is_ours(folder):
    return os.path.realpath(folder or ".") == os.path.realpath(HERE)


def site_folders():
    """The folders whose .pth files this Python reads, the one for everybody first."""
    import site

    folders = [sysconfig.get_paths()["purelib"]]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    # Debian's Python reads another folder than the one that it names to packagers.
    folders += [f for f in site.getsitepackages() if f not in folders]
    return folders


def official():
    """The file of another msprobe that this Python would import without ours, or None."""
    # The folder of this script is on the path here, not in a program.
    found = PathFinder.find_spec("msprobe", [p for p in sys.path if not is_ours(p)])
    return found.origin if found else None


def written():
    """The files by which ours goes to the front."""
    return [f for f in (os.path.join(d, NAME) for d in site_folders()) if os.path.exists(f)]


def switch_on():
    line = f"import sys; sys.path.insert(0, {HERE!r})\n"
    why = None
    for folder in site_folders():
        path = os.path.join(folder, NAME)
        try:
            os.makedirs(folder, exist_ok=True)
            with open(path + ".tmp", "w", encoding="utf-8") as f:
                f.write(line)
            os.replace(path + ".tmp", path)
            return
        except OSError as e:
            why = why or e
    raise why


def switch_off():
    for path in written():
        os.remove(path)


def is_on_path():
    return any(is_ours(p) for p in sys.path[1:])


def state():
    other = official()
    version = "{}.{}.{}".format(*sys.version_info)
    python = f"Python {version} ({sys.executable})"
    if written():
        instead = f", instead of {os.path.dirname(other)}" if other else ""
        return f"on: {python} imports {HERE}/msprobe{instead}"
    if other:
        return f"off: {python} imports {os.path.dirname(other)}; `msprobe drop-in on` puts {HERE}/msprobe in its place"
    if is_on_path():
        return f"off: {python} imports {HERE}/msprobe; no other package msprobe is installed"
    return f"off: {python} has no package msprobe; `msprobe drop-in on` adds {HERE}/msprobe"


def main(words):
    # What this script's own folder adds to the path no program would see.
    sys.path[:] = [p for i, p in enumerate(sys.path) if i or os.path.realpath(p) != os.path.dirname(os.path.realpath(__file__))]
    try:
        if words == ["on"]:
            switch_on()
        elif words == ["off"]:
            switch_off()
    except OSError as why:
        print(f"msprobe drop-in: {why}; use a virtual environment, or a Python whose packages you may change", file=sys.stderr)
        return 3
    print(state())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
