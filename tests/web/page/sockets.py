# SPDX-License-Identifier: MIT
"""Requests that a browser would not send, over raw sockets: all are refused, and
the server goes on answering.

    sockets.py PORT TOKEN LOG SERVER     SERVER: its process
"""
import http.client
import json
import os
import re
import resource
import select
import socket
import sys
import threading
import time
import urllib.parse

PORT, TOKEN, LOG, SERVER = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
CROWD, SLOW_MOST = 10000, 60
HERE = f"127.0.0.1:{PORT}"
failed = False


def check(name, good, got=""):
    global failed
    failed |= not good
    print(f"ok {name}" if good else f"not ok {name}: {got!r:.300}", flush=True)


def raw(data, wait=5.0):
    """What the server sends back for some bytes until it closes or is silent."""
    got = b""
    with socket.create_connection(("127.0.0.1", PORT), 5) as s:
        s.settimeout(wait)
        try:
            s.sendall(data)
            while part := s.recv(65536):
                got += part
        except (TimeoutError, ConnectionError):
            pass
    return got


def request(path, method="GET", host=HERE, headers=(), wait=5.0, token=TOKEN):
    lines = [f"{method} {path} HTTP/1.1", *([f"Host: {host}"] if host is not None else []), "Connection: close",
             *([f"X-Msprobe-Token: {token}"] if token is not None else []), *headers]
    if method == "POST":
        lines.append("Content-Length: 0")
    return raw("\r\n".join(lines).encode() + b"\r\n\r\n", wait)


def status(reply):
    return int(reply.split(b" ", 2)[1]) if reply.startswith(b"HTTP/1.") else 0


def alive():
    return status(request("/api/about")) == 200


def expect(name, wanted, reply):
    check(name, status(reply) in wanted and b"root:" not in reply, reply)


def paths():
    for p in ["/../../../../etc/passwd", "/..%2f..%2f..%2fetc/passwd", "//etc/passwd", "/etc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
              "/api/../../etc/passwd", "/style.css/../../etc/passwd", "/style.css%00.html", "file:///etc/passwd"]:
        expect(f"path {p}", {404, 400}, request(p))
    expect("an absolute address of another server", {404, 403}, request("http://evil.example/etc/passwd"))
    expect("a path in a value opens nothing", {404}, request("/api/node?name=../../../../etc/passwd"))
    expect("SQL in a name finds nothing", {404}, request("/api/node?name=x'%3B%20DROP%20TABLE%20tb_nodes%3B--"))
    check("after which the graph is whole", status(request("/api/children")) == 200)


def callers():
    expect("a foreign Host", {403}, request("/api/about", host="evil.example"))
    expect("a name that begins like our address", {403}, request("/api/about", host=f"127.evil.example:{PORT}"))
    expect("another port", {403}, request("/api/about", host="127.0.0.1:1"))
    expect("no Host at all", {400, 403}, request("/api/about", host=None))
    expect("a foreign Origin", {403}, request("/api/about", headers=["Origin: http://evil.example"]))
    expect("Origin null", {403}, request("/api/about", headers=["Origin: null"]))
    for twice in f"Host: {HERE}", "Host: evil.example", "X-Msprobe-Token: x":
        expect(f"twice {twice.split(':')[0]}", {400}, request("/api/about", headers=[twice]))
    for twice in ["Origin: http://evil.example", f"Origin: http://{HERE}"], ["Sec-Fetch-Site: cross-site", "sec-fetch-site: none"]:
        expect(f"twice {twice[0]}", {400}, request("/api/about", headers=twice[::-1]))
    for folded in "Origin: http://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors", "Authorization: Bearer x", "Content-Length: 1":
        for rest in "x", ".x", ", y", "0":
            expect(f"{folded.split(':')[0]} on two lines", {400}, request("/api/about", headers=[f"{folded}\r\n {rest}"]))
    for coding in "xchunked", "gzip", "gzip, chunked", "identity", "chunked, chunked", "":
        expect(f"a body that is coded as {coding}", {400}, request("/api/about", headers=[f"Transfer-Encoding: {coding}"]))
    expect("our Origin", {200}, request("/api/about", headers=[f"Origin: http://localhost:{PORT}"]))
    for name, token in [("without a token", None), ("with another token", "0" * 32), ("with the beginning of the token", TOKEN[:16]),
                        ("with more than the token", TOKEN + "0")]:
        for method, path in [("GET", "/api/about"), ("GET", "/api/sql?graph=1&q=SELECT%201"), ("GET", "/metrics"), ("POST", "/api/undo")]:
            expect(f"{method} {path[:10]} {name}", {403}, request(path, method, token=token))
    expect("the page itself without a token", {200}, request("/", token=None))
    expect("the token in the address", {200}, request(f"/metrics?token={TOKEN}", token=None))
    expect("the token as monitoring programs send it", {200}, request("/metrics", token=None, headers=[f"Authorization: Bearer {TOKEN}"]))
    expect("a change by GET", {405}, request("/api/undo"))
    expect("a question by POST", {405}, request("/api/about", "POST"))
    expect("a change with the token", {404}, request("/api/undo", "POST"))
    for site in ["cross-site", "same-site", "nonsense"]:
        for path in ["/api/about", "/api/sql?graph=1&q=SELECT%201", "/main.js", "/metrics", "/"]:
            expect(f"{path[:10]} asked by a page of another site ({site})", {403}, request(path, headers=[f"Sec-Fetch-Site: {site}"]))
    navigates = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"]
    expect("a link on another site opens the page", {200}, request("/", headers=navigates))
    expect("a link on another site asks nothing", {403}, request(f"/api/sql?graph=1&q=SELECT%201&token={TOKEN}", headers=navigates))
    expect("what a person typed", {200}, request("/api/about", headers=["Sec-Fetch-Site: none"]))
    expect("our own page", {200}, request("/api/about", headers=["Sec-Fetch-Site: same-origin"]))
    for m in ["PUT", "DELETE", "TRACE", "OPTIONS", "CONNECT", "NONSENSE"]:
        expect(f"method {m}", {405, 400, 403, 404}, request("/api/about", m))


def bodies_in_two_ways():
    """A proxy and this server must not read two requests out of what is one to the other."""
    mine = f"Host: {HERE}\r\nX-Msprobe-Token: {TOKEN}\r\n"
    behind = f"0\r\n\r\nGET /api/about HTTP/1.1\r\n{mine}Connection: close\r\n\r\n"
    for name, headers in {"two lengths": "Content-Length: 0\r\nContent-Length: 70\r\n", "a length and chunks": "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                          "a space behind a name": "Transfer-Encoding : chunked\r\n"}.items():
        got = raw(f"POST /api/undo HTTP/1.1\r\n{mine}{headers}\r\n{behind}".encode(), 2)
        check(f"{name} is refused, and what follows is not read", status(got) == 400 and got.count(b"HTTP/1.1 ") == 1, got)
    for first, second in (TOKEN, "0" * 32), ("0" * 32, TOKEN):
        expect("two tokens of monitoring programs", {400}, request("/metrics", token=None, headers=[f"Authorization: Bearer {first}", f"Authorization: Bearer {second}"]))


def answers():
    head = request("/", headers=["Accept-Encoding: gzip"]).split(b"\r\n\r\n")[0].lower()
    for h in [b"content-security-policy: default-src 'none'", b"x-content-type-options: nosniff", b"frame-ancestors 'self'", b"x-frame-options: sameorigin", b"etag: ", b"referrer-policy: no-referrer"]:
        check(f"header {h.decode().split(':')[0]}", h in head, head)
    check("no answer allows other sites", b"access-control" not in head, head)
    etag = head.split(b"etag: ")[1].split(b"\r\n")[0].decode()
    expect("an ETag saves the transfer", {304}, request("/", headers=[f"If-None-Match: {etag}"]))
    check("gzip when it is taken", b"content-encoding: gzip" in request("/", headers=["Accept-Encoding: gzip"]).lower())
    check("plain when it is not", b"<!doctype html>" in request("/"))
    check("metrics", b"msprobe_http_requests_total{result=\"refused\"}" in request("/metrics"))


def values():
    for q in ["children?limit=-1", "children?limit=1e9", "children?step=x", "node?name=", "search?q=/(/", "search?q=state:Z", "next?state=x",
              "children?after=%zz", "children?" + "&".join(f"a{i}=1" for i in range(99)), "matrix", "children?limit=99999999999999999999",
              "lanes"]:
        r = request(f"/api/{q}")
        body = r.split(b"\r\n\r\n", 1)[-1]
        try:
            told = json.loads(body)["error"]
        except (ValueError, KeyError):
            told = ""
        check(f"value {q[:40]}", status(r) in {400, 404, 413} and told != "", r)


def statements():
    """Whatever a statement asks for, it may only look."""
    def ask(sql):
        return request("/api/sql?graph=1&q=" + urllib.parse.quote(sql), wait=60)
    expect("a statement that selects", {200}, ask("SELECT count(*) FROM tb_nodes"))
    for sql in ["DROP TABLE tb_nodes", "DELETE FROM tb_nodes", "UPDATE tb_nodes SET node_name = ''", "INSERT INTO tb_nodes DEFAULT VALUES",
                "CREATE TEMP TABLE x(y)", "ATTACH '/etc/passwd' AS x", "PRAGMA writable_schema = 1", "VACUUM INTO '/tmp/msprobe-stolen.db'",
                "SELECT load_extension('x')", "SELECT * FROM pragma_database_list", "BEGIN", "SELECT hex(zeroblob(100000000))",
                "SELECT readfile('/etc/passwd')", "SELECT fts3_tokenizer('simple')", "PRAGMA data_store_directory = '/'", "nonsense", " "]:
        expect(f"statement {sql[:40]!r}", {400, 413}, ask(sql))
    expect("a statement without end", {503}, ask(ENDLESS))
    memory = "SELECT length(group_concat(x)) FROM (SELECT zeroblob(8000000) x FROM json_each('[%s]') ORDER BY x)" % ",".join("1" * 200)
    expect("a statement that wants all memory", {400, 413, 503}, ask(memory))
    check("after which the graph is whole", status(request("/api/children")) == 200)


ENDLESS = "WITH RECURSIVE x(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM x) SELECT count(*) FROM x"
# One function works for longer than the limit, between two looks that SQLite takes at the clock.
# Far more than a quick machine does within the limit, in few steps of SQLite.
IN_FUNCTION = ("SELECT sum(" + "+".join(f"length(printf('%800000{i}d', value))" for i in range(8)) +
               ") FROM json_each('[" + ",".join("1" * 400) + "]')")
LIMIT, MOST = 5, 4


def children():
    """Processes of statements that run: children of the server."""
    with open(f"/proc/{SERVER}/task/{SERVER}/children", encoding="ascii") as f:
        listed = set(f.read().split())
    for task in os.listdir(f"/proc/{SERVER}/task"):
        try:
            with open(f"/proc/{SERVER}/task/{task}/children", encoding="ascii") as f:
                listed |= set(f.read().split())
        except OSError:
            pass
    return listed


def file_limit(pid):
    """Bytes that a process may write to one file; None: it has ended, or there is no limit."""
    try:
        with open(f"/proc/{pid}/limits", encoding="ascii") as f:
            found = re.search(r"Max file size +(\d+)", f.read())
    except OSError:
        return None
    return int(found.group(1)) if found else None


def wait_for(what, seconds=10):
    deadline = time.monotonic() + seconds
    while not what() and time.monotonic() < deadline:
        time.sleep(0.05)
    return what()


def statement(sql):
    return f"/api/sql?graph=1&q={urllib.parse.quote(sql)}"


def processes():
    """Statements run side by side, within bounds, as long as they may and somebody waits for them."""
    took, got = [], []

    def ask(sql):
        start = time.monotonic()
        got.append(status(request(statement(sql), wait=60)))
        took.append(time.monotonic() - start)
    crowd = [threading.Thread(target=ask, args=(IN_FUNCTION,)) for _ in range(MOST)]
    for t in crowd:
        t.start()
    check("statements run side by side", wait_for(lambda: len(children()) == MOST), children())
    check("none of them may fill the disk", wait_for(lambda: all(file_limit(pid) == 256 << 20 for pid in children())))
    start = time.monotonic()
    check("others are answered meanwhile", alive() and time.monotonic() - start < 2)
    expect("one more than may run", {503}, request(statement("SELECT 1"), wait=60))
    for t in crowd:
        t.join()
    check("the limit holds inside a function", got == [503] * MOST and max(took) < LIMIT + 3, (got, took))
    expect("after them there is room", {200}, request(statement("SELECT 1"), wait=60))
    with socket.create_connection(("127.0.0.1", PORT), 5) as s:
        s.sendall(f"GET {statement(ENDLESS)} HTTP/1.1\r\nHost: {HERE}\r\nX-Msprobe-Token: {TOKEN}\r\n\r\n".encode())
        check("a statement of somebody runs", wait_for(lambda: len(children()) == 1), children())
    start = time.monotonic()
    check("a statement ends with its connection", wait_for(lambda: not children(), 4) and time.monotonic() - start < 2, children())


def sizes():
    expect("a long address", {413, 414, 431}, request("/api/search?q=" + "x" * 40000))
    expect("a long header", {413, 431, 400, 0}, request("/api/about", headers=["X-Long: " + "y" * 200000]))
    expect("many headers", {413, 431, 400, 0}, request("/api/about", headers=[f"X-{i}: {i}" for i in range(9000)]))
    big = raw(f"POST /api/undo HTTP/1.1\r\nHost: {HERE}\r\nX-Msprobe-Token: {TOKEN}\r\nContent-Length: 900000000\r\n\r\n".encode() + b"z" * 4000000, 2)
    expect("a long body", {413, 0}, big)
    expect("a negative length", {400, 0, 413}, raw(f"POST /api/undo HTTP/1.1\r\nHost: {HERE}\r\nContent-Length: -5\r\n\r\n".encode(), 2))
    expect("noise", {400, 0}, raw(bytes(range(256)) * 20 + b"\r\n\r\n", 2))
    expect("an empty line", {400, 0}, raw(b"\r\n\r\n", 1))
    check("the server is alive", alive())


def log_from(at):
    with open(LOG, encoding="utf-8", errors="replace") as f:
        f.seek(at)
        return f.read()


def logged():
    """One of each kind leaves its line in the log, and no control character of it."""
    large = "POST /api/undo HTTP/1.1\r\nHost: %s\r\nX-Msprobe-Token: %s\r\n" % (HERE, TOKEN)
    for name, words, ask in [
            ("path traversal", "no such page: /../../etc/passwd", lambda: request("/../../etc/passwd")),
            ("an absolute path", "no such page: /etc/passwd", lambda: request("/etc/passwd")),
            ("escape sequences", "no such page: /?[31m", lambda: request("/\x1b[31m\x07")),
            ("a foreign Host", "the Host header does not name this server", lambda: request("/", host="evil.example")),
            ("a foreign Origin", "pages of other sites", lambda: request("/", headers=["Origin: http://evil.example"])),
            ("a missing token", "the token is missing", lambda: request("/api/undo", "POST", token=None)),
            ("another token", "the token of another server", lambda: request("/api/undo", "POST", token="0" * 32)),
            ("a malformed value", "limit must be a whole number", lambda: request("/api/children?limit=-1")),
            ("an unknown method", "only GET and POST", lambda: request("/", "PUT")),
            ("a long address", "refused", lambda: request("/api/search?q=" + "x" * 40000)),
            ("a long header", "refused", lambda: request("/", headers=["X-Long: " + "y" * 200000])),
            ("a long body", "the body is too long", lambda: raw((large + "Content-Length: 900000000\r\n\r\n").encode(), 2)),
            ("an endless body", "the body is too long", lambda: raw((large + "Transfer-Encoding: chunked\r\n\r\n").encode() + (b"8000\r\n" + b"z" * 0x8000 + b"\r\n") * 20, 2))]:
        time.sleep(1.1)  # of one second only some are written
        at = len(log_from(0))
        ask()
        deadline = time.monotonic() + 10
        while words not in log_from(at) and time.monotonic() < deadline:
            time.sleep(0.1)
        told = log_from(at)
        check(f"logged: {name}", words in told and not re.search("[\x00-\x09\x0b-\x1f\x7f]", told), told)


def closed_within(s, seconds):
    """Does the server close, or say 408, before that many seconds are over?"""
    if not select.select([s], [], [], seconds)[0]:
        return False
    try:
        got = s.recv(100)
    except OSError:
        return True
    return got == b"" or status(got) == 408


def slow():
    """A request of which a byte comes now and then must not hold up others, nor its place for ever."""
    at = len(log_from(0))
    with socket.create_connection(("127.0.0.1", PORT)) as silent, socket.create_connection(("127.0.0.1", PORT)) as drops:
        silent.sendall(b"GET /api/about HT")
        start = time.monotonic()
        check("others are answered beside a slow one", alive() and time.monotonic() - start < 5)
        text = iter(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 1000)
        ended = False
        while not ended and time.monotonic() - start < SLOW_MOST:
            try:
                drops.sendall(bytes([next(text)]))
                ended = closed_within(drops, 0.5)
            except OSError:
                ended = True
        check("a request that comes by drops is ended", ended)
        check("a request that does not end is closed", closed_within(silent, SLOW_MOST))
    deadline = time.monotonic() + 10
    while "did not arrive in time" not in log_from(at) and time.monotonic() < deadline:
        time.sleep(0.1)
    check("logged: a slow request", "did not arrive in time" in log_from(at), log_from(at))


def has_gone(s):
    try:
        return s.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def crowd():
    """More idle connections than the server takes: some are refused; who was there is answered, and new
    visitors are once the idle have been sent away, though none of them has left."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    visitor = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)

    def answered():
        visitor.request("GET", "/api/about", headers={"X-Msprobe-Token": TOKEN})
        r = visitor.getresponse()
        r.read()
        return r.status == 200
    good, at, idle = answered(), len(log_from(0)), []
    for i in range(min(CROWD, most - 100)):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", PORT))
        idle.append(s)
        good = good and (i % 500 != 0 or answered())
    check("who was there is answered beside a crowd", good)
    deadline = time.monotonic() + SLOW_MOST
    while not alive() and time.monotonic() < deadline:
        time.sleep(0.2)
    check("new visitors are answered while a crowd sits idle", alive())
    refused = 0
    while refused == 0 and time.monotonic() < deadline:
        time.sleep(0.2)
        refused = sum(has_gone(s) for s in idle)
    print(f"# {len(idle)} connections, {refused} of them refused when others were answered")
    if len(idle) > 9000:
        check("what is too much was refused", refused > 0)
        check("logged: too many connections", "too many connections" in log_from(at), log_from(at)[-300:])
    for s in idle:
        s.close()
    check("alive after a crowd of idle connections", alive())


def keep_alive():
    c = http.client.HTTPConnection("127.0.0.1", PORT, timeout=5)
    good = 0
    for _ in range(50):
        c.request("GET", "/api/about", headers={"X-Msprobe-Token": TOKEN})
        r = c.getresponse()
        r.read()
        good += r.status == 200
    check("many requests on one connection", good == 50, good)


for part in [paths, callers, bodies_in_two_ways, answers, values, statements, processes, sizes, logged, slow, crowd, keep_alive]:
    part()
sys.exit(failed)
