# SPDX-License-Identifier: MIT
"""Processes of Python by all start methods: pools, queues, one that aborts, memory that is shared."""
import concurrent.futures
import multiprocessing
import os
import subprocess
import sys
import threading
from multiprocessing import shared_memory


def square(x):
    return x * x


def answer_and_exit(queue):
    queue.put(os.getpid() != 0)
    sys.exit(5)


def main():
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            print(method, pool.map(square, range(5)))
        queue = context.Queue()
        one = context.Process(target=answer_and_exit, args=(queue,))
        one.start()
        print(queue.get())
        one.join()
        other = context.Process(target=os.abort)
        other.start()
        other.join()
        print(one.exitcode, other.exitcode)
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        print(list(pool.map(square, range(3))))
    print(subprocess.run(["sh", "-c", "kill -TERM $$"], check=False).returncode)
    shared = shared_memory.SharedMemory(create=True, size=100)
    shared.buf[0] = 7
    print(shared.buf[0])
    shared.close()
    shared.unlink()
    print(sorted(thread.name for thread in threading.enumerate()))


if __name__ == "__main__":
    main()
