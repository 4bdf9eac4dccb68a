#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks who calls whom, by the symbols of the object files.

    python3 tests/calls.py BUILD [FOLDER...]      default: probe mstx compare viz web

For each top folder: the longest chain of calls from file to file, every circle of
files, every circle of rooms (subfolders), and the largest room.  Circles that are
meant to be are listed with their reason in tests/data/circles.known, one line each:

    mstx/rt/ring mstx/rt/helper: the ring asks the helper for files that the helper prepares

Exit status 1 when a circle is not on the list or a listed one is gone, when a circle
holds more than 3 files or a folder more than 3 circles, when rooms call in a circle,
when a chain is longer than 12 files, or when a room holds more than 40 .c files.
"""
import glob
import os
import subprocess
import sys

CHAIN_MAX, CIRCLE_MAX, CIRCLES_MAX, ROOM_MAX = 12, 3, 3, 40
FOLDERS = ["probe", "mstx", "compare", "viz", "web"]
KNOWN = "tests/data/circles.known"


def objects_of(build, top):
    """Objects whose source is there: a build folder may hold older ones."""
    for path in sorted(glob.glob(f"{build}/{top}/**/*.o", recursive=True)):
        name = os.path.relpath(path, build)[:-2]
        if os.path.exists(name + ".c"):
            yield name, path


def symbols_of(path):
    """The names that an object defines for others, and those that it asks for."""
    out = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return ({r[2] for r in rows if len(r) == 3 and r[1] in "TDBRVWC"},
            {r[1] for r in rows if len(r) == 2 and r[0] == "U"})


def calls_of(build, top):
    """File -> files of the same top folder that it calls."""
    symbols = {name: symbols_of(path) for name, path in objects_of(build, top)}
    home = {}
    for name, (defined, _) in symbols.items():
        for symbol in defined:
            home.setdefault(symbol, name)
    return {name: {home[s] for s in asked if home.get(s, name) != name}
            for name, (_, asked) in symbols.items()}


def circles_of(graph):
    """Strongly connected components of more than one node (Tarjan, without recursion)."""
    index, low, stack, on, found = {}, {}, [], set(), []
    for root in graph:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        work = [(root, iter(sorted(graph[root])))]
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while not part or part[-1] != node:
                        part.append(stack.pop())
                        on.discard(part[-1])
                    found.append(sorted(part))
            elif following not in index:
                index[following] = low[following] = len(index)
                stack.append(following)
                on.add(following)
                work.append((following, iter(sorted(graph[following]))))
            elif following in on:
                low[node] = min(low[node], index[following])
    return found


def longest_chain(graph):
    """The longest chain of components, as the first file of each."""
    parts = circles_of(graph)
    part_of = {node: i for i, part in enumerate(parts) for node in part}
    best = {}
    # Tarjan gives a component after all those that it calls.
    for i, part in enumerate(parts):
        below = {part_of[called] for node in part for called in graph[node]} - {i}
        best[i] = [part[0]] + max((best[b] for b in below), key=len, default=[])
    return max(best.values(), key=len, default=[])


def rooms_of(graph):
    rooms = {}
    for node, called in graph.items():
        here = os.path.dirname(node)
        rooms.setdefault(here, set()).update(os.path.dirname(c) for c in called)
    return {room: called - {room} for room, called in rooms.items()}


def known_circles():
    if not os.path.exists(KNOWN):
        return {}
    with open(KNOWN, encoding="utf-8") as f:
        lines = [line.strip() for line in f if line.strip() and not line.startswith("#")]
    return {tuple(sorted(line.split(":")[0].split())): line.split(":", 1)[1].strip() for line in lines}


def check(top, graph, known):
    wrong = []
    circles = [c for c in circles_of(graph) if len(c) > 1]
    chain = longest_chain(graph)
    rooms = rooms_of(graph)
    room_circles = [c for c in circles_of(rooms) if len(c) > 1]
    sizes = {r: len(glob.glob(r + "/*.c")) for r in rooms}
    largest = max(sizes, key=sizes.get)
    print(f"{top}: {len(graph)} files in {len(rooms)} rooms, longest chain {len(chain)}, "
          f"circles {sorted((len(c) for c in circles), reverse=True)}, largest room {largest} ({sizes[largest]})")
    print("    chain: " + " > ".join(os.path.relpath(f, top) for f in chain))
    for circle in circles:
        reason = known.get(tuple(circle))
        print(f"    circle: {' '.join(os.path.relpath(f, top) for f in circle)}: {reason or 'no reason known'}")
        if reason is None:
            wrong.append(f"{top}: a circle of files that {KNOWN} does not explain")
        if len(circle) > CIRCLE_MAX:
            wrong.append(f"{top}: a circle of {len(circle)} files")
    for circle in room_circles:
        print("    rooms in a circle: " + " ".join(circle))
        wrong.append(f"{top}: rooms call in a circle")
    if len(circles) > CIRCLES_MAX:
        wrong.append(f"{top}: {len(circles)} circles")
    if len(chain) > CHAIN_MAX:
        wrong.append(f"{top}: a chain of {len(chain)} files")
    wrong += [f"{r} holds {n} .c files" for r, n in sizes.items() if n > ROOM_MAX]
    gone = [k for k in known if k[0].startswith(top + "/") and list(k) not in circles]
    return wrong + [f"{KNOWN}: there is no circle of {' '.join(k)}" for k in gone]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    wrong = []
    for top in sys.argv[2:] or FOLDERS:
        graph = calls_of(sys.argv[1], top)
        if not graph:
            sys.exit(f"calls: no object files of {top} in {sys.argv[1]}")
        wrong += check(top, graph, known_circles())
    for text in wrong:
        print("calls: " + text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
