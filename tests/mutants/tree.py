#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A private copy of the tree, built once; one changed file is one compiled object and a few links.

What has to be run for a changed file is asked of make (make -n -W FILE), so the Makefile
stays the only place that knows how something is built.
"""
import contextlib
import fnmatch
import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading

FLAGS = ["W=1", "B=build"]  # as everybody builds, so that a compiler cache has most of it
SANITIZERS = "address undefined"  # as make asan
FILE_MAX, MEMORY_MAX = 1 << 30, 16 << 30
SECONDS_MAX = 30  # of the processor: a slower test meets too few mutants in the time of a campaign
STRICT = "-Werror=incompatible-pointer-types -Werror=int-conversion -Werror=implicit-function-declaration"


# Without a process for each check; what is left open or mapped fails; with an allocator that finds bytes
# written behind the end of a block, as far as no sanitizer does that, and gives out memory that is not zero.
ONE_PROCESS, APART = {"CK_FORK": "no"}, {"CK_FORK": "yes"}
CLOSED = {"LEFT_OPEN_FAILS": "1"}
CHECKED = {"LD_PRELOAD": "libc_malloc_debug.so.0", "MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165"}
UNCHECKED = {"LD_PRELOAD": ""}  # a search for leaks brings its own allocator
MANNERS = ({**ONE_PROCESS, **CHECKED, **CLOSED}, {**ONE_PROCESS, **CHECKED}, ONE_PROCESS, {})


def end_session(leader):
    """Ends what a test started: Check gives each test a process group, so that the group of the
    leader is not all of it."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="latin-1") as f:
                if int(f.read().rpartition(")")[2].split()[3]) == leader:
                    os.kill(int(pid), signal.SIGKILL)
        except (OSError, IndexError):
            continue


def bounds(processor, memory):
    """A changed program may compute, write or allocate without end."""
    def set_limits():
        resource.setrlimit(resource.RLIMIT_CPU, (processor, processor))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_MAX, FILE_MAX))
        if memory:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    return set_limits


def run(args, cwd, limit, env=None, shell=False, processor=600, memory=MEMORY_MAX):
    """Exit status, or None after `limit` seconds; whatever it started ends with it."""
    p = subprocess.Popen(args, cwd=cwd, shell=shell, env=env, stdin=subprocess.DEVNULL,
                         preexec_fn=bounds(processor, memory), stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        return p.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        end_session(p.pid)
        p.wait()


def processor_seconds():
    """Of every process that this one started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Tree:
    def __init__(self, top, at, cc, sanitizers=""):
        self.top, self.at, self.cc = top, at, cc
        self.covered = os.path.join(at, "covered")
        self.flags = FLAGS + [f"SAN={sanitizers}"] if sanitizers else FLAGS
        # A sanitizer maps terabytes, so its own limit bounds the memory.
        self.memory = 0 if sanitizers else MEMORY_MAX
        self.env = dict(os.environ, B="build", LC_ALL="C.UTF-8", TZ="UTC", CCACHE_DISABLE="1",
                        ASAN_OPTIONS=f"detect_leaks=1:allocator_may_return_null=1:hard_rss_limit_mb={MEMORY_MAX >> 20}")
        for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
            self.env.pop(name, None)
        # Tests wait for the disk most of their time: mkdir, unlink and fsync in memory are nothing.
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.scratch = tempfile.TemporaryDirectory(prefix="mutants-", dir=memory)
        self.env["TMPDIR"] = self.scratch.name
        self.contracts = "-DMS_ASSERT"
        self.manner = {}  # of each test the first of MANNERS in which it passes

    def copy(self):
        """Files that differ are copied, so that a second run builds only what changed."""
        names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=self.top,
                               capture_output=True, text=True, check=True).stdout.split("\n")
        self.remove_covered()
        for name in filter(None, names):
            self.restore(name)
        shared = os.path.join(os.path.dirname(self.at), "shared")
        if os.path.exists(os.path.join(self.top, "../shared")) and not os.path.lexists(shared):
            os.symlink(os.path.realpath(os.path.join(self.top, "../shared")), shared)

    def restore(self, name):
        source, to = os.path.join(self.top, name), os.path.join(self.at, name)
        if not os.path.exists(source):
            return
        with open(source, "rb") as f:
            wanted = f.read()
        if os.path.exists(to):
            with open(to, "rb") as f:
                if f.read() == wanted:
                    return
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(to, "wb") as f:
            f.write(wanted)
        shutil.copymode(source, to)

    def fingerprint(self):
        """Of every source of the copy: as long as it stays, so does what tests run."""
        whole = hashlib.sha256()
        for folder, inner, names in sorted(os.walk(self.at)):
            inner[:] = sorted(set(inner) - {"build"})
            for name in sorted(n for n in names if n.endswith((".c", ".h", ".txt")) or n == "Makefile"):
                with open(os.path.join(folder, name), "rb") as f:
                    whole.update(name.encode() + hashlib.sha256(f.read()).digest())
        return whole.hexdigest()

    def make(self, targets, jobs):
        env = dict(os.environ)  # a compiler cache asks for the locale too
        for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
            env.pop(name, None)
        p = subprocess.run(["make", "-s", f"-j{jobs}", f"CC={self.cc}", *self.flags, *targets], cwd=self.at,
                           env=env, capture_output=True, text=True)
        if p.returncode != 0:
            raise SystemExit(f"the copy in {self.at} does not build:\n{p.stderr[-2000:]}")

    def will_cover(self, outputs):
        """What is built with coverage from now on is no part of the usual build, also after a kill."""
        with open(self.covered, "w", encoding="utf-8") as f:
            f.write("\n".join(outputs))

    def remove_covered(self):
        if os.path.exists(self.covered):
            with open(self.covered, encoding="utf-8") as f:
                for output in f.read().split("\n"):
                    if os.path.exists(os.path.join(self.at, output)):
                        os.remove(os.path.join(self.at, output))
            os.remove(self.covered)

    def commands(self, files, targets):
        """Output file -> the command that makes it, of everything that hangs on these files."""
        changed = [a for f in files for a in ("-W", f)]
        out = subprocess.run(["make", "-n", "CC=gcc", *self.flags, *changed, *targets], cwd=self.at,
                             env=self.env, capture_output=True, text=True, check=True).stdout
        found = {}
        for line in out.replace("\\\n", " ").split("\n"):
            archive = re.match(r"rm -f (\S+) && ar rcs ", line)
            made = archive or re.search(r" -o (\S+)", line)
            if made:
                found[made.group(1)] = line
        return found

    def tests_of(self, patterns):
        names = [f[:-2] for _, _, files in os.walk(os.path.join(self.at, "tests")) for f in files
                 if f.endswith(".c")]
        found = []
        for pattern in patterns:
            found += sorted(n for n in names if fnmatch.fnmatch(n, pattern) and n not in found)
        return found

    def test_command(self, name):
        corpus = os.path.join("tests/data/fuzz", name[5:])
        if name == "tool_simulate":
            return ["build/tests/tool_simulate", "-f", "2000"]
        if not name.startswith("fuzz_"):
            return [f"build/tests/{name}"]
        full = os.path.join(self.at, corpus)
        files = sorted(os.listdir(full)) if os.path.isdir(full) else []
        return [f"build/tests/{name}"] + [os.path.join(corpus, f) for f in files]

    def light(self, command, level):
        """The command with another level of optimization, without notes for a debugger, with contracts as in
        `make contracts`, and with warnings that stay warnings: a changed file has unused names."""
        return re.sub(r" -O\d -g ", f" {level} -g0 {self.contracts} ", command.replace(" -Werror ", " "))

    def must(self, command):
        if run(command, self.at, 300, self.env, shell=True) != 0:
            raise SystemExit(f"in {self.at} this fails:\n{command}")

    def tools_of(self, suite):
        """Programs of tests/ that a suite runs, by their names in its script."""
        path = os.path.join(self.at, "tests/suites", f"suite_{suite.partition(':')[0]}.sh")
        with open(path, encoding="utf-8") as f:
            return sorted(set(re.findall(r"tests/(tool_\w+)", f.read())))

    def try_test(self, name, limit, processor, more=None):
        """Exit status (None: too long) and processor seconds."""
        began = processor_seconds()
        env = {**self.env, **MANNERS[self.manner.get(name, -1)], **(more or {})}
        status = run(self.test_command(name), self.at, limit, env, processor=processor, memory=self.memory)
        self.empty_scratch()
        return status, processor_seconds() - began

    def try_unchanged(self, name, more):
        """As try_test, in the first manner in which it passes."""
        for manner in range(len(MANNERS)):
            self.manner[name] = manner
            status, took = self.try_test(name, 300, SECONDS_MAX, more)
            if status == 0:
                break
        return status, took

    def empty_scratch(self):
        """What a test that failed left behind."""
        for name in os.listdir(self.scratch.name):
            path = os.path.join(self.scratch.name, name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.remove(path)

    def try_suite(self, name, limit, more=None):
        """Whether a suite passes: it ends at its first "not ok".  cli:NAME has the cases of that name."""
        name, _, cases = name.partition(":")
        command = f"sh tests/suites/suite_{name}.sh" + (f" tests/cli/{cases}*.sh" if cases else "")
        p = subprocess.Popen(command, shell=True, cwd=self.at, env={**self.env, **(more or {})},
                             preexec_fn=bounds(600, self.memory), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        clock = threading.Timer(limit, end_session, [p.pid])
        clock.start()
        try:
            failed = any(line.startswith(b"not ok ") for line in p.stdout)
            return not failed and p.wait() == 0
        finally:
            clock.cancel()
            end_session(p.pid)
            p.stdout.close()
            p.wait()


class Changed:
    """The one file of the tree that is being changed, and what is made of it."""

    def __init__(self, tree, name, commands):
        self.tree, self.name, self.commands, self.env = tree, name, commands, {}
        self.object = f"build/{name[:-2]}.o"
        self.path = os.path.join(tree.at, name)
        self.kept = os.path.join(tree.at, self.object + ".kept")
        if os.path.exists(os.path.join(tree.at, self.object)):
            shutil.copy2(os.path.join(tree.at, self.object), self.kept)

    def shell(self, command, limit=120):
        return run(command, self.tree.at, limit, self.tree.env, shell=True) == 0

    def strict(self):
        """The command that compiles it, and refuses what C would still take."""
        return self.tree.light(self.commands[self.object], "-O1").replace(" -c -o ", f" {STRICT} -c -o ", 1)

    def compile(self, text):
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(text)
        return self.shell(self.strict())

    def place(self):
        """Puts the object where programs that start later find it: archives, libraries, and tests that
        include the source."""
        ok = True
        for output, command in self.commands.items():
            if output.endswith(".o"):
                ok &= output == self.object or self.shell(self.tree.light(command, "-O1"))
            elif output.endswith(".a"):
                if self.object in command.split():
                    ok &= self.shell(f"ar r {output} {self.object}")
            elif ".so" in output and self.object in command.split():
                ok &= self.shell(command)
        return ok

    def link(self, test, more=""):
        """Notes for a debugger stay out: they are most of the bytes of a program."""
        command = self.commands.get(f"build/tests/{test}")
        return command is None or self.shell(f"{command} -Wl,-S{more}")

    def link_programs(self, tools):
        """The program, its libraries and the tools that a suite runs."""
        programs = ["build/libmsprobe_cli.so", "build/msprobe", "build/libmsprobe.so"]
        return all(self.shell(self.commands[output] + " -Wl,-S")
                   for output in programs + [f"build/tests/{t}" for t in tools] if output in self.commands)

    @contextlib.contextmanager
    def as_it_was(self):
        """The object of before in the place of the changed one, for a while."""
        path = os.path.join(self.tree.at, self.object)
        shutil.copy2(path, path + ".changed")
        shutil.copy2(self.kept, path)
        try:
            self.place()
            yield
        finally:
            os.replace(path + ".changed", path)
            self.place()

    def put_source_back(self):
        """The source and its object as they were."""
        os.remove(self.path)
        self.tree.restore(self.name)
        if os.path.exists(self.kept):
            os.replace(self.kept, os.path.join(self.tree.at, self.object))
            os.utime(os.path.join(self.tree.at, self.object))

    def put_back(self):
        """As it was: what holds the object too."""
        self.put_source_back()
        if self.object in self.commands:
            self.place()
