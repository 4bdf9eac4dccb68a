# SPDX-License-Identifier: MIT
"""show(): a run, a dump or a comparison inside a notebook.

In Jupyter the result is the first screen of `msprobe view`, the findings, as text, with a link to the page that
`msprobe serve` shows of the same path.  The server is a child of the kernel and ends with it.  Elsewhere the
findings are printed.
"""
import atexit
import html
import os
import shutil
import subprocess
import sys
import tempfile

# Beside this package in the build tree, and as `make install` and pip put it.
_PLACES = ("../../../../bin/msprobe", "../../msprobe")  # lib/msprobe/python/msprobe, build/python/msprobe


def _program():
    here = os.path.dirname(os.path.abspath(__file__))
    for place in _PLACES:
        path = os.path.normpath(os.path.join(here, place))
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    path = shutil.which("msprobe")
    if path is None:
        raise FileNotFoundError("the program msprobe is not there; is msprobe installed whole?")
    return path


def _arguments(path, golden):
    words = [os.fspath(path)]
    return words + ["--golden_path", os.fspath(golden)] if golden is not None else words


def _findings(words, size):
    """The first screen, as text."""
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
        done = subprocess.run([_program(), "view", *words, "--script", keys.name, "--size", size, "--no_color"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
                              env=dict(os.environ, LC_ALL="C.UTF-8"))
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"msprobe view ended with status {done.returncode}")
    lines = [line.rstrip() for line in done.stdout.rstrip("\n").split("\n")[:-1]]  # the last one tells keys
    return "\n".join(line for i, line in enumerate(lines) if line or (i and lines[i - 1]))


def _serve(words):
    """Starts the server of the page; its address, or None where it does not start."""
    server = subprocess.Popen([_program(), "serve", *words, "--port", "0"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    atexit.register(server.terminate)
    address = server.stdout.readline().strip()
    if not address.startswith("http"):
        server.terminate()
        server.wait()
        return None, None
    return server, address


class Shown:
    """What show() returns: Jupyter draws it, print() writes it, close() ends its page."""

    def __init__(self, text, server, address):
        self.text, self.address, self._server = text, address, server

    def __str__(self):
        return self.text

    __repr__ = __str__

    def _repr_html_(self):
        link = ""
        if self.address:
            link = (f'<p><a href="{html.escape(self.address, quote=True)}" target="_blank" rel="noopener">'
                    "open the page</a> (on the machine of this kernel)</p>")
        return f'{link}<pre style="line-height:1.2">{html.escape(self.text)}</pre>'

    def close(self):
        if self._server is not None:
            self._server.terminate()
            self._server.wait()
            self._server = self.address = None


def _in_notebook():
    """Tells whether the shell of IPython shows what an expression returns."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


def show(path, golden=None, page=None, size="110x32"):
    """Shows the findings of a run, a dump, a .vis.db, a trace, or of a dump beside a second one.

    golden: the second dump.  page: also serve the page; without it, in a notebook only.  size: columns and rows of
    the text.
    """
    words = _arguments(path, golden)
    text = _findings(words, size)
    notebook = _in_notebook()
    server, address = _serve(words) if page or (page is None and notebook) else (None, None)
    shown = Shown(text, server, address)
    if not notebook:
        print(text)
    return shown
