# SPDX-License-Identifier: MIT
"""A signal ends the server at once, whatever it answers, and nothing of it stays.

    signals.py MSPROBE FOLDER     a folder of make_inputs.py
"""
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

MSPROBE, FOLDER = sys.argv[1:]
SECONDS = 1.0  # of the server alone; a loaded machine gets as much again for starting and reaping
ENDLESS = "WITH RECURSIVE x(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM x) SELECT count(*) FROM x"
# Far more than a quick machine does within the limit, in few steps of SQLite.
IN_FUNCTION = ("SELECT sum(" + "+".join(f"length(printf('%800000{i}d', value))" for i in range(8)) +
               ") FROM json_each('[" + ",".join("1" * 400) + "]')")
failed = False


def check(name, good, got=""):
    global failed
    failed |= not good
    print(f"ok {name}" if good else f"not ok {name}: {got!r:.300}", flush=True)


def ask(root, token, sql):
    query = urllib.request.Request(f"{root}api/sql?graph=1&q={urllib.parse.quote(sql)}", headers={"X-Msprobe-Token": token})
    try:
        urllib.request.urlopen(query, timeout=30).read()
    except (urllib.error.URLError, OSError):
        pass


def end(name, sql, how, many):
    tmp = f"{FOLDER}/tmp-{name}".replace(" ", "-")
    os.makedirs(tmp)
    argv = [MSPROBE, "serve", "--port", "0", f"{FOLDER}/t", "--golden", f"{FOLDER}/g"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, "TMPDIR": tmp}) as server:
        root, token = re.match(r"(http://[^/]+/)#token=(\w+)", server.stdout.readline()).groups()
        threads = [threading.Thread(target=ask, args=(root, token, sql)) for _ in range(many)]
        for t in threads:
            t.start()
        time.sleep(0.5)
        start = time.monotonic()
        server.send_signal(how)
        code = server.wait(timeout=60)
        lasted = time.monotonic() - start
        for t in threads:
            t.join()
    check(f"{name}: ended within a second", code == 0 and lasted < 2 * SECONDS, (code, lasted))
    check(f"{name}: nothing stays", os.listdir(tmp) == [], os.listdir(tmp))


end("idle", ENDLESS, signal.SIGTERM, 0)
end("a statement without end", ENDLESS, signal.SIGTERM, 1)
end("statements inside a function", IN_FUNCTION, signal.SIGTERM, 4)
end("an interrupt", IN_FUNCTION, signal.SIGINT, 2)
sys.exit(failed)
