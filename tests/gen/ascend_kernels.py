#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Changes the profiles that ascend.py made, each in another way, for what export_summary must tell apart.

    ascend_kernels.py DIR

Rank 0 has counters of most kernels, 1 counters of all and no communication, 2 no computation, 3 the older names of
columns, 4 states of operators, 5 scheduling of communication, 6 tasks without model and stream, 7 a first kernel
that runs later than others.
"""
import glob
import random
import sqlite3
import sys

COUNTERS = ("aic_total_time", "aiv_total_time", "mac_ratio", "aic_mac_time", "cycles")


class Profile:
    def __init__(self, top, rank):
        found = glob.glob(f"{top}/**/ascend_pytorch_profiler_{rank}.db", recursive=True)
        self.db, self.rng = sqlite3.connect(found[0]), random.Random(rank)
        self.tasks = [row[0] for row in self.db.execute("SELECT globalTaskId FROM COMPUTE_TASK_INFO")]

    def run(self, sql, *values):
        return self.db.execute(sql, values)

    def text(self, value):
        row = self.run("SELECT id FROM STRING_IDS WHERE value = ?", value).fetchone()
        if row:
            return row[0]
        number = self.run("SELECT max(id) + 1 FROM STRING_IDS").fetchone()[0]
        self.run("INSERT INTO STRING_IDS VALUES (?, ?)", number, value)
        return number

    def count(self, share):
        self.run("CREATE TABLE TASK_PMU_INFO(globalTaskId INTEGER, name INTEGER, value NUMERIC)")
        for name in COUNTERS:
            for task in self.tasks:
                value = self.rng.randint(1, 9000) if name == "cycles" else self.rng.random() * 100
                if self.rng.random() < share:
                    self.run("INSERT INTO TASK_PMU_INFO VALUES (?, ?, ?)", task, self.text(name), value)

    def schedule(self):
        self.run("DROP TABLE IF EXISTS COMMUNICATION_SCHEDULE_TASK_INFO")
        self.run("CREATE TABLE COMMUNICATION_SCHEDULE_TASK_INFO(name INTEGER, globalTaskId INTEGER PRIMARY KEY,"
                 " taskType INTEGER, opType INTEGER)")
        for task in self.tasks[::5]:
            self.run("INSERT INTO COMMUNICATION_SCHEDULE_TASK_INFO VALUES (?, ?, ?, ?)", self.text("scheduled"), task,
                     self.text("AI_CPU"), self.text("Sched,x"))
            self.run("DELETE FROM COMPUTE_TASK_INFO WHERE globalTaskId = ?", task)


def change(p, rank):
    if rank == 0:
        p.count(0.8)
    elif rank == 1:
        p.count(1)
        p.run("DROP TABLE COMMUNICATION_OP")
    elif rank == 2:
        p.run("DROP TABLE COMPUTE_TASK_INFO")
    elif rank == 3:
        p.run("ALTER TABLE COMPUTE_TASK_INFO RENAME COLUMN blockNum TO blockDim")
        p.run("ALTER TABLE COMPUTE_TASK_INFO RENAME COLUMN mixBlockNum TO mixBlockDim")
    elif rank == 4:
        p.run("UPDATE COMPUTE_TASK_INFO SET opState = ? WHERE globalTaskId % 3 <> 0", p.text("dynamic"))
    elif rank == 5:
        p.schedule()
    elif rank == 6:
        p.run("UPDATE TASK SET modelId = NULL, streamId = NULL WHERE globalTaskId IN"
              " (SELECT globalTaskId FROM COMPUTE_TASK_INFO ORDER BY 1 LIMIT 3)")
    else:
        p.run("UPDATE TASK SET startNs = startNs + 50000000, endNs = endNs + 50000000 WHERE globalTaskId = ?",
              min(p.tasks))


def main():
    for rank in range(8):
        profile = Profile(sys.argv[1], rank)
        change(profile, rank)
        profile.db.commit()
        profile.db.close()


if __name__ == "__main__":
    main()
