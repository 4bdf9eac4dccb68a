#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the seeds of fuzz_npy, fuzz_pt and fuzz_atb: small files, good ones and ones with one thing
wrong.  The same bytes in every run.      tensor_seeds.py DIRECTORY"""
import os
import struct
import sys
import zlib


def npy(header, data=b"", version=1):
    head = header.encode()
    length = struct.pack("<H" if version == 1 else "<I", len(head))
    return b"\x93NUMPY" + bytes([version, 0]) + length + head + data


def header(descr, shape, fortran=False):
    return "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n" % (descr, fortran, shape)


def npy_seeds():
    for descr, size in [("|b1", 1), ("|u1", 1), ("|i1", 1), ("<u2", 2), ("<i2", 2), (">i4", 4),
                        ("<u4", 4), (">u8", 8), ("<i8", 8), ("<f2", 2), (">f2", 2), ("<f4", 4),
                        (">f4", 4), ("<f8", 8), ("<c8", 8), (">c16", 16)]:
        name = descr.translate({ord("<"): "little_", ord(">"): "big_", ord("|"): "byte_"})
        yield "type_" + name, npy(header(descr, "(2, 3)"), bytes(range(6 * size)))
    yield "scalar", npy(header("<f4", "()"), b"\0\0\x80\x3f")
    yield "empty", npy(header("<f4", "(0, 3)"))
    yield "one_dimension", npy(header("<f4", "(2,)"), b"\0" * 8)
    yield "fortran", npy(header("<i2", "(2, 3)", True), bytes(range(12)))
    yield "fortran_big", npy(header(">i4", "(2, 1, 3)", True), bytes(range(24)))
    yield "specials", npy(header("<f4", "(4,)"), struct.pack("<4I", 0x7fc00000, 0xff800000, 1, 1 << 31))
    yield "version2", npy(header("<f4", "(1,)"), b"abcd", 2)
    yield "version3", npy(header("<f4", "(1,)"), b"abcd", 3)
    yield "version9", npy(header("<f4", "(1,)"), b"abcd", 9)
    yield "short", npy(header("<f4", "(2,)"), b"abcd")
    yield "object", npy(header("|O", "(2,)"), b"abcd")
    yield "text", npy(header("<U3", "(1,)"), b"abcdefghijkl")
    yield "structured", npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", b"abcd")
    yield "twice", npy("{'shape': (), 'shape': (), 'descr': '<f4'}", b"abcd")
    yield "missing", npy("{'shape': ()}", b"abcd")
    yield "huge", npy(header("<f4", "(4294967296, 4294967296)"))
    yield "length", b"\x93NUMPY\x02\0\xff\xff\xff\xff{"


def member(name, data, **wrong):
    return dict(name=name, data=data, **wrong)


def archive(members, zip64=False):
    out, central = b"", b""
    for m in members:
        begin, name, data = len(out) + m.get("begin", 0), m["name"].encode(), m["data"]
        size = len(data) + m.get("size", 0)
        out += struct.pack("<I22xHH", 0x04034b50, len(name), 1) + name + b"z" + data
        extra, shown, at = b"", size, begin
        if zip64:
            extra, shown, at = struct.pack("<HHQQQ", 1, 24, size, size, begin), 2**32 - 1, 2**32 - 1
        central += struct.pack("<IIHHIIIIHHHHHII", 0x02014b50, 0, m.get("flags", 0), m.get("method", 0),
                               0, zlib.crc32(data), shown, shown, len(name), len(extra), 0, 0, 0, 0, at)
        central += name + extra
    begin, n, end = len(out), len(members), b""
    if zip64:
        end = struct.pack("<IQHHIIQQQQ", 0x06064b50, 44, 45, 45, 0, 0, n, n, len(central), begin)
        end += struct.pack("<IIQI", 0x07064b50, 0, begin + len(central), 1)
    end += struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, n, n, len(central), begin, 0)
    return out + central + end


def text(s):
    return b"X" + struct.pack("<I", len(s)) + s.encode()


def storage(kind, count, key="0", last=b""):
    return b"(" + text("storage") + b"c" + kind.encode() + b"\n" + text(key) + text("cpu") + \
        b"K" + bytes([count]) + last + b"tQ"


def sizes(*v):
    return b"(" + b"".join(b"K" + bytes([x]) for x in v) + b"t"


TAIL = b"\x89ccollections\nOrderedDict\n)R"


def tensor(kind, count, shape, stride, offset=0, tail=TAIL):
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nq\0(" + storage("torch\n" + kind, count) + \
        b"K" + bytes([offset]) + sizes(*shape) + sizes(*stride) + tail + b"tR."


def pt(pickle, data, *more, **how):
    return archive([member("a/data.pkl", pickle), member("a/data/0", data), *more], **how)


def pt_seeds():
    f8 = struct.pack("<8f", *range(8))
    plain = tensor("FloatStorage", 8, (2, 4), (4, 1))
    yield "plain", pt(plain, f8)
    yield "zip64", pt(plain, f8, zip64=True)
    yield "version", pt(plain, f8, member("a/version", b"3\n"), member("a/byteorder", b"little"))
    yield "big", pt(plain, f8, member("a/byteorder", b"big"))
    for kind, size in [("Double", 8), ("Half", 2), ("BFloat16", 2), ("Long", 8), ("Int", 4), ("Short", 2),
                       ("Char", 1), ("Byte", 1), ("Bool", 1), ("ComplexDouble", 16), ("ComplexFloat", 8)]:
        yield "type_" + kind, pt(tensor(kind + "Storage", 6, (2, 3), (3, 1)), bytes(range(6 * size)))
    yield "transposed", pt(tensor("FloatStorage", 8, (4, 2), (1, 4)), f8)
    yield "sliced", pt(tensor("FloatStorage", 8, (2, 2), (4, 2), 1), f8)
    yield "expanded", pt(tensor("FloatStorage", 8, (5, 3), (0, 1), 2), f8)
    yield "scalar", pt(tensor("FloatStorage", 8, (), (), 3), f8)
    yield "empty", pt(tensor("FloatStorage", 0, (0, 2), (2, 1)), b"")
    yield "metadata", pt(tensor("FloatStorage", 8, (8,), (1,), 0, TAIL + b"}" + text("conj") + b"\x89s"), f8)
    yield "npu", pt(tensor("FloatStorage", 8, (8,), (1,), 0, TAIL + b"}" + text("npu_format_/NZ") + b"\x88s"), f8)
    v3 = b"\x80\x02ctorch._utils\n_rebuild_tensor_v3\n(" + storage("torch.storage\nUntypedStorage", 6) + \
        b"K\0" + sizes(2, 3) + sizes(3, 1) + TAIL + b"ctorch\nfloat8_e5m2\ntR."
    yield "fp8", pt(v3, bytes(range(6)))
    inner = plain[2:-1]
    yield "parameter", pt(b"\x80\x02ctorch._utils\n_rebuild_parameter\n(" + inner + b"\x88}tR.", f8)
    yield "numbers", pt(b"\x80\x02(J\1\0\0\0M\1\0\x8a\1\1U\1xNtq\1h\1r\2\0\0\0j\2\0\0\0\x86.", f8)
    yield "dictionary", pt(b"\x80\x02}(" + text("w") + inner + b"u.", f8)
    yield "list", pt(b"\x80\x02]q\0(h\0h\0e.", f8)
    yield "system", pt(b"\x80\x02cos\nsystem\n" + text("true") + b"\x85R.", f8)
    yield "build", pt(b"\x80\x02}}b.", f8)
    yield "compressed", archive([member("a/data.pkl", plain), member("a/data/0", f8, method=8)])
    yield "encrypted", archive([member("a/data.pkl", plain), member("a/data/0", f8, flags=1)])
    yield "overlap", archive([member("a/data.pkl", plain, size=9), member("a/data/0", f8)])
    yield "outside", archive([member("a/data.pkl", plain), member("a/data/0", f8, begin=99999)])
    yield "script", pt(plain, f8, member("a/code/m.py", b"1"))
    head = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e80024de9032e")
    info = b"\x80\x02}" + text("little_endian") + b"\x88s."
    old = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage("torch\nFloatStorage", 8, "7", b"N") + \
        b"K\0" + sizes(2, 4) + sizes(4, 1) + TAIL + b"tR."
    keys = b"\x80\x02]" + text("7") + b"a."
    yield "legacy", head + info + old + keys + struct.pack("<q", 8) + f8
    yield "legacy_short", head + info + old + keys + struct.pack("<q", 8) + f8[:-1]
    yield "legacy_count", head + info + old + keys + struct.pack("<q", 2**62) + f8


def atb_seeds():
    lines = ["$Version=1.0", "$Object.Count=1", "$Object.Length=32", "format=2"]

    def atb(*more, data=bytes(range(32))):
        return "\n".join(lines + list(more) + ["$End=1", ""]).encode() + data
    for code, n in [(0, 8), (1, 16), (2, 32), (3, 8), (4, 32), (6, 16), (7, 16), (8, 8), (9, 4), (10, 4),
                    (11, 4), (12, 32), (27, 16)]:
        yield "type_%d" % code, atb("dtype=%d" % code, "dims=%d,2" % (n // 2), "$Object.data=0,32")
    yield "scalar", atb("dtype=0", "dims=", "$Object.data=4,4")
    yield "empty", atb("dtype=0", "dims=0,5", "$Object.data=0,0")
    yield "link", atb("dtype=0", "dims=8", "data=../other.bin")
    yield "private", atb("dtype=0", "dims=8", "format=29", "$Object.data=0,32")
    yield "short", atb("dtype=0", "dims=8", "$Object.data=0,32", data=b"abc")
    yield "far", atb("dtype=0", "dims=8", "$Object.data=18446744073709551615,32")
    yield "huge", atb("dtype=0", "dims=4294967296,4294967296", "$Object.data=0,32")
    yield "two", atb("dtype=0", "dims=8", "$Object.a=0,32", "$Object.b=0,32")
    yield "no_end", b"$Version=1.0\ndtype=0\n"
    yield "no_line", b"$Version=1.0\ndtype"


for kind, seeds in (("npy", npy_seeds), ("pt", pt_seeds), ("atb", atb_seeds)):
    folder = os.path.join(sys.argv[1], kind)
    os.makedirs(folder, exist_ok=True)
    for name, data in seeds():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
