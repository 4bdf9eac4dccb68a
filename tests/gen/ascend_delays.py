#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Delays tasks, calls and operations of the profiles that ascend.py made, so that ranks wait for each other.

    ascend_delays.py DIR SEED
"""
import glob
import random
import sqlite3
import sys


def name_types(db):
    """Every call of CANN becomes one of type node, those with tasks launches; operators get a framework."""
    db.execute("CREATE TABLE ENUM_API_TYPE(id INTEGER PRIMARY KEY, name TEXT)")
    db.execute("INSERT INTO ENUM_API_TYPE SELECT DISTINCT type, 'node' FROM CANN_API")
    launch = db.execute("SELECT max(id) + 1 FROM STRING_IDS").fetchone()[0]
    db.execute("INSERT INTO STRING_IDS VALUES(?, 'launch')", (launch,))
    db.execute("UPDATE CANN_API SET name = ? WHERE connectionId IN (SELECT connectionId FROM TASK)", (launch,))
    for name, text in db.execute("SELECT id, value FROM STRING_IDS").fetchall():
        if db.execute("SELECT 1 FROM PYTORCH_API WHERE name = ? LIMIT 1", (name,)).fetchone():
            db.execute("UPDATE STRING_IDS SET value = ? WHERE id = ?", ("aten::" + text, name))


def delay(db, draw):
    for row, end, start in db.execute("SELECT rowid, endNs, startNs FROM COMMUNICATION_OP").fetchall():
        db.execute("UPDATE COMMUNICATION_OP SET startNs = ? WHERE rowid = ?",
                   (end - int((end - start) * draw.uniform(0.3, 1)), row))
    for table in ("TASK", "PYTORCH_API", "CANN_API"):
        for row, start, end in db.execute(f"SELECT rowid, startNs, endNs FROM {table}").fetchall():
            by = draw.choice((0, 0, 0, 10**5, 9 * 10**5, 2 * 10**6)) * (draw.random() < 0.3)
            db.execute(f"UPDATE {table} SET startNs = ?, endNs = ? WHERE rowid = ?",
                       (int(start) + by, int(end) + by + draw.randrange(5000), row))


def launch_within(db, draw):
    """Puts some launched tasks into each operation."""
    names = [c[1] for c in db.execute("PRAGMA table_info(TASK)")]
    rows = db.execute("SELECT t.* FROM TASK t JOIN CANN_API c ON c.connectionId = t.connectionId"
                      " JOIN CONNECTION_IDS i ON i.connectionId = t.connectionId"
                      " JOIN PYTORCH_API p ON p.connectionId = i.id").fetchall()
    for start, end in db.execute("SELECT startNs, endNs FROM COMMUNICATION_OP").fetchall():
        for _ in range(draw.randrange(4)):
            row = dict(zip(names, draw.choice(rows)))
            row["startNs"] = start + draw.randrange(1, max(2, (end - start) // 2))
            row["endNs"] = row["startNs"] + 10
            row["globalTaskId"] = draw.randrange(10**9, 10**12)
            db.execute(f"INSERT INTO TASK({','.join(row)}) VALUES({','.join('?' * len(row))})",
                       tuple(row.values()))


def main(folder, seed):
    draw = random.Random(seed)
    for path in sorted(glob.glob(folder + "/*/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_*.db")):
        db = sqlite3.connect(path)
        name_types(db)
        delay(db, draw)
        launch_within(db, draw)
        db.commit()
        db.close()


main(sys.argv[1], int(sys.argv[2]))
