# SPDX-License-Identifier: MIT
"""Paths that nobody meant for msprobe: files of other tools, halves, wrong contents under right names, and names that
look like something else.  any_path.py gives each to every command.
"""
import gzip
import io
import json
import os
import shutil
import struct
import tarfile
import zipfile

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0:~\x9bU\0\0\0\nIDATx\x9cc`\0\0\0\2\0\1H\xaf\xa4q\0\0\0\0IEND\xaeB`\x82"
ELF = b"\x7fELF\x02\x01\x01" + bytes(57)
PARQUET = b"PAR1" + bytes(64) + struct.pack("<I", 8) + b"PAR1"
TFEVENTS = struct.pack("<Q", 24) + bytes(4) + b"\x09" + bytes(8) + b"\x1a\x0dbrain.Event:2" + bytes(4)
SAFETENSORS = struct.pack("<Q", 67) + b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}             ' + bytes(8)
HDF5 = b"\x89HDF\r\n\x1a\n" + bytes(88)
PARTS = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": {}}


def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb" if isinstance(data, bytes) else "w") as f:
        f.write(data)
    return path


def dump_of(top, name, text):
    """A folder with a dump.json of that text."""
    put(os.path.join(top, name, "step0", "rank0", "dump.json"), text)
    return os.path.join(top, name)


def packed(top, dump):
    """A dump in an archive, as people send one."""
    with tarfile.open(os.path.join(top, "dump.tar.gz"), "w:gz") as tar:
        tar.add(dump, "dump")
    with zipfile.ZipFile(os.path.join(top, "dump.zip"), "w") as z:
        for folder, _, names in os.walk(dump):
            for name in names:
                z.write(os.path.join(folder, name), os.path.relpath(os.path.join(folder, name), dump))
    return os.path.join(top, "dump.tar.gz"), os.path.join(top, "dump.zip")


def first_bytes(path, to, share):
    with open(path, "rb") as f:
        data = f.read()
    return put(to, data[:int(len(data) * share)])


def of_other_tools(top, dump):
    at = lambda *names: os.path.join(top, *names)  # noqa: E731
    tar, archive = packed(top, dump)
    npz = io.BytesIO()
    with zipfile.ZipFile(npz, "w") as z:
        z.writestr("arr_0.npy", b"\x93NUMPY\x01\x00" + bytes(20))
    return {
        "picture": put(at("loss.png"), PNG), "program": put(at("a.out"), ELF), "parquet": put(at("trace.parquet"), PARQUET),
        "tfevents": put(at("events.out.tfevents.1"), TFEVENTS), "safetensors": put(at("model.safetensors"), SAFETENSORS),
        "hdf5": put(at("model.h5"), HDF5), "npz": put(at("arrays.npz"), npz.getvalue()), "dump.tar.gz": tar, "dump.zip": archive,
        "yaml": put(at("train.yaml"), "model:\n  layers: 2\n"), "log": put(at("train.log"), "step 1 loss 2.5\nstep 2 loss 2.4\n"),
        "lines of json": put(at("log.jsonl"), '{"step": 1}\n{"step": 2}\n'), "table of others": put(at("loss.csv"), "step,loss\n1,2.5\n2,2.4\n"),
        "nsys": put(at("report.nsys-rep"), b"NVIDIA Nsight" + bytes(200)), "gzip of words": put(at("notes.json.gz"), gzip.compress(b"words\n" * 99)),
        "git": shutil.copytree(put(at("repo", ".git", "HEAD"), "ref: refs/heads/main\n")[:-len("/HEAD")], at("repo_copy", ".git")) and at("repo"),
        "profiler's folder": put(at("prof", "host_1_ascend_pt", "ASCEND_PROFILER_OUTPUT", "step_trace_time.csv"), "Device_id,Step\n0,1\n") and at("prof"),
    }


def wrong_inside(top):
    at = lambda *names: os.path.join(top, *names)  # noqa: E731
    os.makedirs(at("folder_for_file", "step0", "rank0", "dump.json"))
    os.makedirs(at("empty_ranks", "step0", "rank0"))
    os.makedirs(at("empty_ranks", "step1", "rank1"))
    os.makedirs(at("link_inside", "step0", "rank0"))
    os.symlink(at("gone"), at("link_inside", "step0", "rank0", "dump.json"))
    os.makedirs(at("fifo_inside", "step0", "rank0"))
    os.mkfifo(at("fifo_inside", "step0", "rank0", "dump.json"))
    os.makedirs(at("run_without", "rank_0"))
    put(at("run_of_noise", "rank_0", "host.1.2", "r0000.0001.seg"), bytes(range(256)) * 64)
    put(at("run_of_nothing", "rank_0", "host.1.2", "r0000.0001.seg"), "")
    return {
        "dump.json is a folder": at("folder_for_file"), "ranks without a dump": at("empty_ranks"), "dump.json leads nowhere": at("link_inside"),
        "dump.json is a fifo": at("fifo_inside"), "run without segments": at("run_without"), "run of noise": at("run_of_noise"),
        "run of empty segments": at("run_of_nothing"),
        "dump: null": dump_of(top, "d_null", "null"), "dump: data is a list": dump_of(top, "d_list", json.dumps({**PARTS, "data": []})),
        "dump: data is null": dump_of(top, "d_data_null", json.dumps({**PARTS, "data": None})),
        "dump: task is a number": dump_of(top, "d_task", json.dumps({**PARTS, "task": 7, "level": []})),
        "dump: records are words": dump_of(top, "d_words", json.dumps({**PARTS, "data": {"Functional.a.0.forward": "x", "b": None, "": []}})),
        "dump: deep": dump_of(top, "d_deep", '{"task": "statistics", "data": ' + '{"a": ' * 5000 + "1" + "}" * 5001),
        "dump: UTF-16": dump_of(top, "d_utf16", json.dumps(PARTS).encode("utf-16")), "dump: BOM": dump_of(top, "d_bom", b"\xef\xbb\xbf" + json.dumps(PARTS).encode()),
        "dump: not UTF-8": dump_of(top, "d_latin", json.dumps(PARTS).encode()[:-2] + b'"\xff\xfe": {}}}'),
        "dump: another framework": dump_of(top, "d_jax", json.dumps({**PARTS, "framework": "jax"})),
    }


def halves(top, paths):
    at = lambda *names: os.path.join(top, *names)  # noqa: E731
    sparse = at("huge.json")
    with open(sparse, "wb") as f:
        f.truncate(20 << 30)
    return {
        "half a run.db": first_bytes(paths["run.db"], at("half_run.db"), 0.5), "half a graph": first_bytes(paths["graph"], at("half.vis.db"), 0.5),
        "half a trend": first_bytes(paths["trend"], at("half.trend.db"), 0.5), "half a table": first_bytes(paths["table"], at("compare_result_9.xlsx"), 0.5),
        "first page of a run.db": first_bytes(paths["run.db"], at("page_run.db"), 4096 / os.path.getsize(paths["run.db"])),
        "20 GB of zeros": sparse,
    }


def names(top, dump):
    """Names that look like something else, of a dump that is in order."""
    at = lambda *parts: os.path.join(top, *parts)  # noqa: E731
    made = {"name of two lines": "two\nlines", "name in UTF-8": "梯度 élan 🚀", "name not in UTF-8": os.fsdecode(b"bad\xff\xfename"),
            "name of spaces": "  ", "name with quotes": "a'b\"c`$(d)", "name of percents": "%s%n%99999d", "name of a glob": "*", "name of wildcards": "step[0-9]?"}
    found = {}
    for kind, name in made.items():
        found[kind] = shutil.copytree(dump, at("names", name))
    os.symlink(dump, at("link_to_dump"))
    return {**found, "link to a dump": at("link_to_dump"), "slash behind": dump + "///", "dots inside": os.path.join(dump, "..", os.path.basename(dump)),
            "here": ".", "above": "..", "home": "~", "address": "http://example.org/dump", "bucket": "s3://bucket/dump", "an option": "--nothing",
            "proc": "/proc/self", "memory of a process": "/proc/self/mem", "random numbers": "/dev/urandom", "terminal": "/dev/tty"}


def make_odd(top, paths):
    """Kinds of odd paths by name; paths: the plain ones of any_path.py."""
    os.makedirs(top)
    return {**of_other_tools(top, paths["dump"]), **wrong_inside(top), **halves(top, paths), **names(top, paths["dump"])}
