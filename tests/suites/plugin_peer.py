#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A graph database between the official TensorBoard plugin and ours, there and back.

    plugin_peer.py MSPROBE TARGET GOLDEN SCRATCH

Run by a Python that has tb_graph_ascend.  A database of the pair is made once and copied; the
plugin changes one copy by its own requests, our server the other by ours, and after every change
each row of the two must be the same.  Prints "ok NAME" and "not ok NAME: why".
"""
import glob
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import urllib.parse
import urllib.request
from types import SimpleNamespace

from server.plugin import GraphsPlugin
from werkzeug.test import Client
from werkzeug.wrappers import Response

wrong = 0


def check(name, good, why=""):
    global wrong
    wrong += not good
    print(f"ok {name}" if good else f"not ok {name}: {why}", flush=True)


class Plugin:
    """The plugin's requests, without TensorBoard around it."""

    def __init__(self, folder, run, tag):
        self.apps = GraphsPlugin(SimpleNamespace(logdir=folder)).get_plugin_apps()
        self.at = {"run": run, "tag": tag, "type": "db", "lang": "en"}
        self.meta = dict(self.at, microStep=-1, step=0, rank=0)

    def get(self, route, **query):
        return Client(self.apps["/" + route], Response).get("/" + route, query_string=query)

    def ask(self, route, **body):
        client = Client(self.apps["/" + route], Response)
        answer = client.post("/" + route, json=dict(body, metaData=self.meta)).get_json()
        if not answer.get("success"):
            raise RuntimeError(f"{route} {body}: {answer.get('error')}")
        return answer.get("data")

    def node(self, name, side="NPU"):
        return self.ask("getNodeInfo", nodeInfo={"nodeName": name, "nodeType": side})

    def expand(self, name, side="NPU"):
        return self.ask("changeNodeExpandState", nodeInfo={"nodeName": name, "nodeType": side})


class Ours:
    """msprobe serve on a database, and its requests."""

    def __init__(self, msprobe, db):
        self.process = subprocess.Popen([msprobe, "serve", db, "--port", "0"], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.url = self.token = None
        while self.url is None:
            line = self.process.stdout.readline()
            found = re.search(r"(http://[^/\s]+)/\S*token=([0-9a-zA-Z_-]+)", line)
            if found:
                self.url, self.token = found.groups()
            elif line == "":
                raise RuntimeError("msprobe serve ended")

    def ask(self, route, post=False, **query):
        where = f"{self.url}/api/{route}?{urllib.parse.urlencode(query)}"
        request = urllib.request.Request(where, data=b"" if post else None,
                                         headers={"X-Msprobe-Token": self.token})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def change(self, route, **query):
        """What is changed lasts when it is written."""
        self.ask(route, post=True, **query)
        self.ask("write", post=True, over=1)

    def end(self):
        self.process.terminate()
        self.process.wait()


def rows(db):
    """Every node by its place, with JSON as what it means."""
    def value(text):
        try:
            return json.loads(text) if isinstance(text, str) else text
        except ValueError:
            return text
    with sqlite3.connect(db) as c:
        c.row_factory = sqlite3.Row
        return {(r["step"], r["rank"], r["data_source"], r["node_name"]):
                {k: value(r[k]) for k in r.keys()} for r in c.execute("SELECT * FROM tb_nodes")}


METRICS = re.compile("(Max|Min|Mean|L2norm|Norm) ?(diff|AbsErr|RelativeErr)|Requires_grad Consistent|Result|Err_message|accuracy_level")


def essence(row):
    """What both viewers must agree on: the partner's name, whether a hand was here, whether there
    is a verdict, and what was recorded.  The plugin writes the partner without its parents, and
    figures of its own making beside those of the file, which it leaves when the pair is parted."""
    recorded = {side: {item: {k: v for k, v in figures.items() if not METRICS.match(k)}
                       for item, figures in (row[side] or {}).items()}
                for side in ("input_data", "output_data")}
    return dict(recorded, partner=(row["matched_node_link"] or [None])[-1], modified=row["modified"] or 0,
                judged=row["precision_index"] is not None)


def differences(a, b):
    said = []
    for key, row in a.items():
        x, y = essence(row), essence(b[key])
        said += [f"{key[2]} {key[3]} {k}: {x[k]!r} / {y[k]!r}"[:200] for k in x if x[k] != y[k]]
    return said


def opens(plugin, db):
    """What the plugin shows of a file that it has never met."""
    known = rows(db)
    config = plugin.ask("loadGraphConfigInfo")
    check("configuration", config["isSingleGraph"] is False and config["task"] == "summary"
          and config["ranks"] == [0] and config["steps"] == [0], config)
    names = plugin.ask("loadGraphAllNodeList")
    for side, listed in (("NPU", "npuNodeList"), ("Bench", "benchNodeList")):
        # the plugin leaves the root out of what can be looked for
        mine = {k[3] for k, r in known.items() if k[2] == side and r["up_node"] != ""}
        check(f"all nodes of {side}", set(names[listed]) | {"DefaultModel"} == mine | {"DefaultModel"},
              set(names[listed]) ^ mine)
    matched = {k[3] for k, r in known.items() if k[2] == "NPU" and r["matched_node_link"]}
    told = set(names["npuMatchNodes"]) if "npuMatchNodes" in names else matched
    check("matched nodes", told == matched, told ^ matched)
    shown = plugin.expand("root")
    first = {k[3] for k, r in known.items() if k[2] == "NPU" and r["up_node"] == "DefaultModel"}
    check("root expands", first <= set(shown), first - set(shown))
    parent = next(k[3] for k, r in known.items()
                  if k[2] == "NPU" and r["up_node"] == "DefaultModel" and r["sub_nodes"])
    shown = plugin.expand(parent)
    below = known[0, 0, "NPU", parent]["sub_nodes"]
    check("a module expands", set(below) <= set(shown), set(below) - set(shown))
    empty = [k[3] for k in known if k[2] == "NPU"
             and not (plugin.node(k[3])["npu"] or {}).get("node_type") in (0, 1, 8, 9)]
    check("every node has details", not empty, empty[:3])


def stepped(ours, state, is_wanted=lambda row: True):
    """The target's nodes of a state, one after the other as n does it."""
    names, at = set(), {}
    while True:
        found = ours.ask("next", step=0, rank=0, side="target", state=state, **at)["rows"]
        if not found:
            return names
        names.update(row["name"] for row in found[:1] if is_wanted(row))
        at = {"from": found[0]["order"]}


def filters(plugin, ours):
    """The plugin looks at leaves alone, and at figures: suspects are errors to us."""
    suspects = stepped(ours, "error", lambda row: row.get("suspect"))
    for band in plugin.ask("loadGraphConfigInfo")["colors"].values():
        state = band["accuracy_level"].split()[0]
        unmatched = state == "unmatched"
        told = set(plugin.ask("screen", type="precision", values=[-1 if unmatched else band["value"]]))
        check(f"{state}: what the plugin filters is what we step through",
              told - suspects <= stepped(ours, state), sorted(told - suspects - stepped(ours, state))[:3])


def leaves(db, n):
    """Matched leaves spread over the graph: (target, golden)."""
    with sqlite3.connect(db) as c:
        found = c.execute("SELECT node_name, json_extract(matched_node_link, '$[#-1]') FROM tb_nodes "
                          "WHERE data_source = 'NPU' AND matched_node_link <> '[]' AND sub_nodes IN ('', '[]') "
                          "AND node_name NOT LIKE '%parameters_grad%' "
                          "ORDER BY node_order").fetchall()
    return found[::max(1, len(found) // n)]


def changes(plugin, ours, theirs, mine):
    pairs = leaves(mine, 12)
    bad = []
    for target, golden in pairs:
        plugin.ask("deleteMatchNodes", npuNodeName=target, benchNodeName=golden, isUnMatchChildren=False)
        ours.change("unmatch", step=0, rank=0, target=target)
        bad += differences(rows(theirs), rows(mine))
    check("pairs are parted alike", len(pairs) > 5 and not bad, bad[:4])
    parted = {k[3] for k, r in rows(mine).items() if k[2] == "NPU" and not r["matched_node_link"]}
    check("parted nodes are unmatched here", {p[0] for p in pairs} <= stepped(ours, "unmatched") >= parted,
          parted)
    for target, golden in pairs:
        plugin.ask("addMatchNodes", npuNodeName=target, benchNodeName=golden, isMatchChildren=False)
        ours.change("match", step=0, rank=0, target=target, partner=golden)
        bad += differences(rows(theirs), rows(mine))
    check("pairs are made alike", not bad, bad[:4])


def below(plugin, ours, theirs, mine):
    """A module and all that is in it."""
    module, golden = next((k[3], r["matched_node_link"][-1]) for k, r in rows(mine).items()
                          if k[2] == "NPU" and r["node_type"] == 0 and len(r["sub_nodes"] or []) > 2
                          and r["up_node"] and r["matched_node_link"])
    plugin.ask("deleteMatchNodes", npuNodeName=module, benchNodeName=golden, isUnMatchChildren=True)
    ours.change("unmatch", step=0, rank=0, target=module, below=1)
    partners = [{k for k, r in rows(db).items() if not r["matched_node_link"]} for db in (theirs, mine)]
    check("a module is parted with all that is in it", len(partners[0]) > 5 and partners[0] == partners[1],
          sorted(partners[0] ^ partners[1])[:4])
    plugin.ask("addMatchNodes", npuNodeName=module, benchNodeName=golden, isMatchChildren=True)
    ours.change("match", step=0, rank=0, target=module, partner=golden, below=1)
    partners = [{k: essence(r)["partner"] for k, r in rows(db).items()} for db in (theirs, mine)]
    bad = {k[3]: (v, partners[1][k]) for k, v in partners[0].items() if v is not None and partners[1][k] != v}
    check("a module is matched with all that is in it", len(partners[0]) > 5 and not bad, list(bad.items())[:4])


def exchanged(plugin, msprobe, theirs):
    """What the plugin has written opens here, and what it saved can be applied."""
    pair = leaves(theirs, 3)[1]
    plugin.ask("deleteMatchNodes", npuNodeName=pair[0], benchNodeName=pair[1], isUnMatchChildren=False)
    plugin.ask("updateColors", colors=json.dumps({
        "#00AA00": {"value": [0, 0.2], "description": "good"},
        "#AA0000": {"value": [0.2, 1], "description": "bad"},
        "#C7C7C7": {"value": "No matching nodes", "description": "none"}}))
    saved = plugin.ask("saveMatchedRelations")
    check("the plugin saves what was matched", saved.endswith(".vis.config"), saved)
    ours = Ours(msprobe, theirs)
    try:
        node = ours.ask("node", step=0, rank=0, side="target", name=pair[0])["row"]
        check("what the plugin parted is parted here", node["state"] == "unmatched", node)
        about = ours.ask("about")
        check("colours of the plugin do not keep the file from opening", "graph" in json.dumps(about), about)
    finally:
        ours.end()


def main():
    msprobe, target, golden, scratch = sys.argv[1:]
    logs = os.path.join(scratch, "logs")
    made = os.path.join(logs, "theirs")
    subprocess.run([msprobe, "graph_visualize", "-tp", target, "-gp", golden, "-o", made],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    theirs = glob.glob(made + "/*.vis.db")[0]
    mine = os.path.join(scratch, "mine", os.path.basename(theirs))
    os.mkdir(os.path.dirname(mine))
    shutil.copy(theirs, mine)
    plugin = Plugin(logs, "theirs", os.path.basename(theirs)[:-len(".vis.db")])
    listed = plugin.get("load_meta_dir").get_json()
    check("the plugin lists the file", "theirs" in listed["data"] and not listed["error"], listed)
    loaded = plugin.get("loadGraphData", **plugin.at).get_data(as_text=True)
    check("the plugin loads the file", "success" in loaded, loaded)
    ours = Ours(msprobe, mine)
    try:
        opens(plugin, theirs)
        filters(plugin, ours)
        changes(plugin, ours, theirs, mine)
        below(plugin, ours, theirs, mine)
    finally:
        ours.end()
    exchanged(plugin, msprobe, theirs)
    sys.exit(wrong != 0)


main()
