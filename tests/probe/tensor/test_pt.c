/* SPDX-License-Identifier: MIT */
#include "probe/base/mem.h"
#include "probe/tensor/tensor.h"
#include "tests/support/check.h"
#include "tests/support/ptmake.h"

static const float eight[8] = {0, 1, 2, 3, 4, 5, 6, 7};

static enum ms_rc parse_bytes(struct probe_tensor *t, const char *p, size_t n, struct ms_err *e)
{
    /* Exactly as long as it is, so that a sanitizer sees a read past the end. */
    char *copy = malloc(n != 0 ? n : 1);
    memcpy(copy, p, n);
    const enum ms_rc rc = probe_tensor_parse(t, "x.pt", copy, n, e);
    if (rc == MS_OK) {
        struct ms_stats s;
        probe_tensor_stats(t, &s);
    }
    probe_tensor_close(t);
    free(copy);
    return rc;
}

/* The error a .pt with this pickle gives; "" when it is read. */
static struct ms_err error_of(struct ms_str pickle)
{
    struct ms_buf b = {.max = 1 << 20};
    struct probe_tensor t;
    struct ms_err e = {0};
    pt_make(&b, pickle, eight, sizeof eight);
    (void)parse_bytes(&t, b.p, b.n, &e);
    ms_buf_free(&b);
    return e;
}

START_TEST(a_tensor_is_read_where_it_lies)
{
    struct ms_buf b = {.max = 1 << 20};
    struct probe_tensor t;
    struct ms_err e = {0};
    pt_make(&b, PK(PKL_F32_2x4), eight, sizeof eight);
    ck_ok(probe_tensor_parse(&t, "x.pt", b.p, b.n, &e), e);
    ck_assert_int_eq(t.kind, PROBE_FILE_PT);
    ck_assert_int_eq(t.dtype, MS_DT_F32);
    ck_assert_uint_eq(t.ndim, 2);
    ck_assert_uint_eq(t.shape[0], 2);
    ck_assert_uint_eq(t.shape[1], 4);
    ck_assert(t.contiguous && t.has_crc);
    ck_assert_uint_eq(t.crc, 0x7a0a407c);
    ck_assert((const char *)t.data > b.p && (const char *)t.data < b.p + b.n);
    ck_assert_mem_eq(t.data, eight, sizeof eight);
    ck_ok(probe_tensor_verify(&t, &e), e);
    probe_tensor_close(&t);
    ms_buf_free(&b);
}
END_TEST

static const struct {
    const char *what;
    struct ms_str pickle;
    const char *says;
} pickles[] = {
#define V2F PKL_V2 PKL_STORAGE("FloatStorage", "\x08")
    {"as torch writes it", PK(PKL_F32_2x4), ""},
    {"strided", PK(V2F "K\x01K\x02K\x02\x86K\x04K\x02\x86" PKL_TAIL "R."), ""},
    {"expanded", PK(V2F "K\x07M\xe8\x03K\x03\x86K\0K\0\x86" PKL_TAIL "R."), ""},
    {"0-dim", PK(V2F "K\x07))" PKL_TAIL "R."), ""},
    {"empty", PK(V2F "K\0K\0K\x03\x86K\x03K\x01\x86" PKL_TAIL "R."), ""},
    {"five dimensions from a mark",
     PK(V2F "K\0(K\x01K\x01K\x02K\x02K\x02t(K\x08K\x08K\x04K\x02K\x01t" PKL_TAIL "R."), ""},
    {"numbers in all widths",
     PK(V2F "J\x01\0\0\0\x8a\x01\x02M\x02\0\x86\x8a\x01\x04\x8a\x02\x02\0\x86" PKL_TAIL "R."), ""},
    {"a parameter",
     PK("\x80\x02"
        "ctorch._utils\n_rebuild_parameter\nctorch._utils\n_rebuild_tensor_v2\n" PKL_STORAGE(
            "FloatStorage", "\x08") "K\0K\x08\x85K\x01\x85" PKL_TAIL "R\x88"
                                    "ccollections\nOrderedDict\n)R\x87R."),
     ""},
    {"metadata", PK(V2F "K\0K\x08\x85K\x01\x85\x89}}X\x04\0\0\0conj\x89stR."), ""},
    {"the old NPU form",
     PK("\x80\x02"
        "ctorch_npu.utils.storage\n_rebuild_npu_tensor\n" PKL_STORAGE(
            "FloatStorage", "\x08") "K\0K\x08\x85K\x01\x85\x89}\x88tR."),
     ""},
    {"a plain NPU layout",
     PK(V2F "K\0K\x08\x85K\x01\x85\x89}}(X\x0e\0\0\0npu_format_/ND\x88X\x02\0\0\0ab\x88utR."), ""},
    {"a type without a typed storage",
     PK("\x80\x02"
        "ctorch._utils\n_rebuild_tensor_v3\n((X\x07\0\0\0storagectorch.storage\nUntypedStorage\n"
        "X\x01\0\0\0"
        "0X\x03\0\0\0cpuK\x20tQK\0K\x20\x85K\x01\x85\x89}ctorch\nfloat8_e4m3fn\ntR."),
     ""},
    {"memory used again", PK("\x80\x02K\x08q\x05h\x05\x86q\x06r\x07\0\0\0j\x07\0\0\0\x86."),
     "holds a list: a checkpoint"},

    {"a system call",
     PK("\x80\x02"
        "cos\nsystem\nX\x02\0\0\0ls\x85R."),
     "unsupported object os.system"},
    {"a class of numpy",
     PK("\x80\x02"
        "cnumpy.core.multiarray\n_reconstruct\n."),
     "unsupported object numpy.core.multiarray._reconstruct"},
    {"a type inside a name",
     PK("\x80\x02"
        "ctorch\ntorch.half\n."),
     "unsupported object torch.torch.half"},
    {"a type that is not read",
     PK("\x80\x02"
        "ctorch\nbits1x8\n."),
     "unsupported object torch.bits1x8"},
    {"a call inside a dictionary", PK("\x80\x02}X\x01\0\0\0acos\nsystem\n."),
     "unsupported object os.system in the pickle (nothing was executed); the file holds a "
     "dictionary"},
    {"a name without end",
     PK("\x80\x02"
        "cos\nsystem"),
     "a name without end"},
    {"a dictionary", PK("\x80\x02}X\x01\0\0\0aK\x01s."), "holds a dictionary: a checkpoint"},
    {"an ordered dictionary",
     PK("\x80\x02"
        "ccollections\nOrderedDict\n)R(X\x01\0\0\0aK\x01u."),
     "holds a dictionary: a checkpoint"},
    {"a list",
     PK("\x80\x02]K\x01"
        "a."),
     "holds a list"},
    {"a state with attributes", PK("\x80\x02}}b."), "a checkpoint, not a tensor"},
    {"a number", PK("\x80\x02K\x01."), "holds no tensor"},
    {"an uncalled function",
     PK("\x80\x02"
        "ctorch._utils\n_rebuild_tensor_v2\n."),
     "holds no tensor"},
    {"a called type",
     PK("\x80\x02"
        "ctorch\nfloat16\n)R."),
     "holds no tensor"},
    {"a called number", PK("\x80\x02K\x01)R."), "a call of nothing callable"},
    {"a call without a tuple",
     PK("\x80\x02"
        "ctorch\nfloat16\nK\x01R."),
     "a call of nothing callable"},
    {"an ordered dictionary with content",
     PK("\x80\x02"
        "ccollections\nOrderedDict\nK\x01\x85R."),
     "with arguments"},
    {"parameters without end",
     PK("\x80\x02"
        "ctorch._utils\n_rebuild_parameter\nq\0h\0h\0h\0h\0K\x01\x85R\x85R\x85R\x85R\x85R."),
     "holds no tensor"},

    {"BUILD", PK("\x80\x02N}b."), "operation 0x62"},
    {"INST", PK("\x80\x02(ios\nsystem\n."), "operation 0x69"},
    {"NEWOBJ", PK("\x80\x02N)\x81."), "operation 0x81"},
    {"STACK_GLOBAL", PK("\x80\x02U\x02osU\x06system\x93."), "operation 0x93"},
    {"EXT1", PK("\x80\x02\x82\x01."), "operation 0x82"},
    {"protocol 4", PK("\x80\x04N."), "a protocol other than 2"},
    {"nothing on the stack", PK("\x80\x02."), "more or less than one object"},
    {"two objects", PK("\x80\x02NN."), "more or less than one object"},
    {"a mark alone", PK("\x80\x02(."), "more or less than one object"},
    {"no end", PK("\x80\x02N"), "no end"},
    {"nothing at all", PK(""), "no end"},
    {"an operand cut short", PK("\x80\x02J\x01\x02"), "cut short"},
    {"a text past the end", PK("\x80\x02X\xff\xff\xff\xffqq"), "ends behind the end"},
    {"a number past the end", PK("\x80\x02\x8a\x08qq"), "ends behind the end"},
    {"a number of 80 bits",
     PK("\x80\x02\x8a\x0a"
        "0123456789."),
     "more digits"},
    {"a tuple of too little", PK("\x80\x02N\x86."), "too few values"},
    {"a tuple across a mark", PK("\x80\x02N(N\x86."), "too few values"},
    {"a tuple without a mark", PK("\x80\x02NNt."), "a missing mark"},
    {"items for a number",
     PK("\x80\x02K\x01(K\x01"
        "e."),
     "items for no list"},
    {"an item for nothing", PK("\x80\x02Na."), "too few values"},
    {"items behind a mark for nothing",
     PK("\x80\x02(K\x01"
        "e."),
     "items for no list"},
    {"entries behind a mark for nothing", PK("\x80\x02(NNu."), "entries for no dictionary"},
    {"a tuple of one too little", PK("\x80\x02NN\x87."), "too few values"},
    {"entries for a list", PK("\x80\x02](NNu."), "entries for no dictionary"},
    {"a key without a value", PK("\x80\x02}(NNNu."), "a key without a value"},
    {"an identifier of nothing", PK("\x80\x02Q."), "too few values"},
    {"remembering nothing", PK("\x80\x02q\0."), "nothing to remember"},
    {"remembering a mark", PK("\x80\x02(q\0."), "nothing to remember"},
    {"a memo of four billion", PK("\x80\x02Nr\xff\xff\xff\xff."), "more remembered values"},
    {"a memo of as many as there are bytes", PK("\x80\x02Nr\x09\0\0\0."), "holds no tensor"},
    {"a memo of one more", PK("\x80\x02Nr\x0a\0\0\0."), "more remembered values"},
    {"a memo one behind the last", PK("\x80\x02Nq\0h\1."), "never remembered"},
    {"a memo never filled", PK("\x80\x02h\x01."), "never remembered"},
    {"a memo out of bounds", PK("\x80\x02j\xff\xff\xff\x7f."), "never remembered"},
    {"a list that holds itself",
     PK("\x80\x02]q\0h\0"
        "a."),
     "holds a list"},

    {"a negative size", PK(V2F "K\0J\xff\xff\xff\xff\x85K\x01\x85" PKL_TAIL "R."), "negative"},
    {"a negative stride", PK(V2F "K\x07K\x08\x85J\xff\xff\xff\xff\x85" PKL_TAIL "R."), "negative"},
    {"a negative offset", PK(V2F "J\xff\xff\xff\xffK\x08\x85K\x01\x85" PKL_TAIL "R."), "no offset"},
    {"a text for a size", PK(V2F "K\0U\x01x\x85K\x01\x85" PKL_TAIL "R."), "no number"},
    {"a list of sizes", PK(V2F "K\0]K\x01\x85" PKL_TAIL "R."), "no sizes or strides"},
    {"more strides than sizes", PK(V2F "K\0K\x08\x85K\x01K\x01\x86" PKL_TAIL "R."),
     "not as many strides"},
    {"a size past the end", PK(V2F "K\0K\x09\x85K\x01\x85" PKL_TAIL "R."), "reach past the end"},
    {"an offset past the end", PK(V2F "K\x08K\x01\x85K\x01\x85" PKL_TAIL "R."),
     "reach past the end"},
    {"a stride past the end", PK(V2F "K\0K\x02\x85K\x08\x85" PKL_TAIL "R."), "reach past the end"},
    {"a stride of 2^62", PK(V2F "K\0K\x05\x85\x8a\x08\0\0\0\0\0\0\0\x40\x85" PKL_TAIL "R."),
     "reach past the end"},
    {"an offset of 2^63 - 1",
     PK(V2F "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fK\x02\x85K\x01\x85" PKL_TAIL "R."),
     "reach past the end"},
    {"a product of 2^64", PK(V2F "K\0J\0\0\0\x40J\0\0\0\x40K\x10\x87K\0K\0K\0\x87" PKL_TAIL "R."),
     "does not fit"},
    {"an expanded tensor of 2^40 bytes", PK(V2F "K\0J\0\0\0\x40K\xff\x86K\0K\0\x86" PKL_TAIL "R."),
     "are described but 32 bytes stored"},
    {"32 dimensions",
     PK(V2F
        "K\0(K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1"
        "K\1K\1K\1K\1K\1t(K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K"
        "\1K\1K\1K\1K\1K\1K\1K\1t" PKL_TAIL "R."),
     ""},
    {"33 dimensions",
     PK(V2F "K\0(K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1"
            "K\1K\1K\1K\1K\1K\1tK\x01\x85" PKL_TAIL "R."),
     "33 dimensions"},
    {"a storage of another size",
     PK(PKL_V2 PKL_STORAGE("FloatStorage", "\x07") "K\0K\x07\x85K\x01\x85" PKL_TAIL "R."),
     "a storage of 32 bytes, but the tensor's description says 28"},
    {"a storage of another type",
     PK(PKL_V2 PKL_STORAGE("DoubleStorage", "\x08") "K\0K\x08\x85K\x01\x85" PKL_TAIL "R."),
     "description says 64"},
    {"no storage", PK(PKL_V2 "(NK\0K\x08\x85K\x01\x85" PKL_TAIL "R."), "no storage"},
    {"a storage that is something else",
     PK(PKL_V2 "((X\x06\0\0\0moduleNX\x01\0\0\0"
               "0X\x03\0\0\0cpuK\x08tQK\0K\x08\x85K\x01\x85" PKL_TAIL "R."),
     "no storage"},
    {"a storage without type",
     PK(PKL_V2 "((X\x07\0\0\0storageNX\x01\0\0\0"
               "0X\x03\0\0\0cpuK\x08tQK\0K\x08\x85K\x01\x85" PKL_TAIL "R."),
     "without a type"},
    {"a key that climbs",
     PK(PKL_V2 "((X\x07\0\0\0storagectorch\nFloatStorage\nX\x02\0\0\0..X\x03\0\0\0cpuK\x08tQ"
               "K\0K\x08\x85K\x01\x85" PKL_TAIL "R."),
     "without key"},
    {"a key that is not there",
     PK(PKL_V2 "((X\x07\0\0\0storagectorch\nFloatStorage\nX\x02\0\0\0"
               "17X\x03\0\0\0cpuK\x08tQK\0K\x08\x85K\x01\x85" PKL_TAIL "R."),
     "no member data/17"},
    {"a storage with a view that is none",
     PK(PKL_V2 "((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"
               "0X\x03\0\0\0cpuK\x08NtQK\0K\x08\x85K\x01\x85" PKL_TAIL "R."),
     ""},
    {"a storage with more behind it",
     PK(PKL_V2 "((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"
               "0X\x03\0\0\0cpuK\x08NNtQK\0K\x08\x85K\x01\x85" PKL_TAIL "R."),
     "another form"},
    {"a storage without its size",
     PK(PKL_V2 "((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"
               "0X\x03\0\0\0cputQK\0K\x08\x85K\x01\x85" PKL_TAIL "R."),
     "another form"},
    {"a view into another storage",
     PK(PKL_V2 "((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"
               "0X\x03\0\0\0cpuK\x08K\x01tQK\0K\x08\x85K\x01\x85" PKL_TAIL "R."),
     "another form"},
    {"three parts", PK(V2F "K\0K\x08\x85tR."), "a wrong number of parts"},
    {"an untyped storage for a typed form",
     PK(PKL_V2 "((X\x07\0\0\0storagectorch.storage\nUntypedStorage\nX\x01\0\0\0"
               "0X\x03\0\0\0cpuK\x20tQK\0K\x08\x85K\x01\x85" PKL_TAIL "R."),
     "the wrong kind"},
    {"an untyped storage without dtype",
     PK("\x80\x02"
        "ctorch._utils\n_rebuild_tensor_v3\n((X\x07\0\0\0storagectorch.storage\nUntypedStorage\n"
        "X\x01\0\0\0"
        "0X\x03\0\0\0cpuK\x20tQK\0K\x20\x85K\x01\x85\x89}NtR."),
     "no dtype"},
    {"a conjugate view", PK(V2F "K\0K\x08\x85K\x01\x85\x89}}X\x04\0\0\0conj\x88stR."),
     "conjugate or negative view"},
    {"a private NPU layout", PK(V2F "K\0K\x08\x85K\x01\x85\x89}}X\x0e\0\0\0npu_format_/NZ\x88stR."),
     "private NPU layout"},
    {"metadata of another type", PK(V2F "K\0K\x08\x85K\x01\x85\x89}]tR."), "unknown metadata"},
};

START_TEST(pickles_are_read_or_refused_with_the_reason)
{
    for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++) {
        const struct ms_err e = error_of(pickles[i].pickle);
        if (pickles[i].says[0] == '\0')
            ck_assert_msg(e.rc == MS_OK, "%s: %s", pickles[i].what, e.msg);
        else
            ck_assert_msg(e.rc != MS_OK && strstr(e.msg, pickles[i].says) != NULL,
                          "%s: expected '%s' in '%s'", pickles[i].what, pickles[i].says, e.msg);
    }
}
END_TEST

START_TEST(errors_name_file_and_byte)
{
    const struct ms_err e = error_of(PK("\x80\x02"
                                        "cos\nsystem\n."));
    ck_assert_str_eq(e.msg,
                     "x.pt: byte 45: unsupported object os.system in the pickle (nothing was "
                     "executed)");
}
END_TEST

/* n times op, framed as a pickle. */
static struct ms_err error_of_many(const char *op, size_t n)
{
    struct ms_buf b = {.max = 1 << 20};
    ms_buf_puts(&b, "\x80\x02");
    for (size_t i = 0; i < n; i++)
        ms_buf_puts(&b, op);
    ms_buf_putc(&b, '.');
    const struct ms_err e = error_of(ms_buf_slice(&b));
    ms_buf_free(&b);
    return e;
}

START_TEST(nesting_and_repetition_have_limits)
{
    static const struct {
        const char *op, *says;
        size_t n;
    } cases[] = {{"(", "open values", 600},
                 {"N", "open values", 10000},
                 {")", "objects", 400},
                 {"]", "objects", 300},
                 {"N0", "0x30", 5},
                 {"}", "objects", 400},
                 {"N\x85", "objects", 1000},
                 {"(((((", "open values", 1000},
                 {"]NaNaNaNaNaNaNaNa", "values", 200}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ms_err e = error_of_many(cases[i].op, cases[i].n);
        ck_says(e, cases[i].says);
    }
}
END_TEST

/* ---- the container --------------------------------------------------------- */

#define PKL  .name = "x/data.pkl", .p = PKL_F32_2x4, .n = sizeof PKL_F32_2x4 - 1
#define DATA .name = "x/data/0", .p = (const char *)eight, .n = sizeof eight
#define MEMBER(path, text)                                                                         \
    {                                                                                              \
        .name = (path), .p = (text), .n = sizeof(text) - 1                                         \
    }

static const struct {
    const char *what;
    struct zip_part part[3];
    size_t n, count;
    const char *says;
} zips[] = {
    {"plain", {{PKL}, {DATA}}, 2, 2, ""},
    {"data first, then a version", {{DATA}, {PKL}, MEMBER("x/version", "3\n")}, 3, 3, ""},
    {"zip64 sizes", {{PKL, .zip64 = true}, {DATA, .zip64 = true}}, 2, 2, ""},
    {"little-endian by name", {{PKL}, {DATA}, MEMBER("x/byteorder", "little")}, 3, 3, ""},
    {"big-endian", {{PKL}, {DATA}, MEMBER("x/byteorder", "big")}, 3, 3, ""},
    {"an unknown byte order", {{PKL}, {DATA}, MEMBER("x/byteorder", "middle")}, 3, 3, "byteorder"},
    {"compressed", {{PKL}, {DATA, .method = 8}}, 2, 2, "compressed"},
    {"encrypted", {{PKL}, {DATA, .flags = 1}}, 2, 2, "encrypted"},
    {"two sizes", {{PKL}, {DATA, .packed_add = 1}}, 2, 2, "two sizes"},
    {"a size past the end", {{PKL}, {DATA, .size_add = 1}}, 2, 2, "reaches past the end"},
    {"a size of 2^32 - 33", {{PKL}, {DATA, .size_add = -65U}}, 2, 2, "reaches past the end"},
    {"an offset past the end", {{PKL}, {DATA, .begin_add = 1 << 30}}, 2, 2, "without a header"},
    {"an offset beside a header", {{PKL}, {DATA, .begin_add = 1}}, 2, 2, "without a header"},
    {"a zip64 offset past the end",
     {{PKL}, {DATA, .zip64 = true, .begin_add = 1 << 30}},
     2,
     2,
     "without a header"},
    {"a zip64 size past the end",
     {{PKL}, {DATA, .zip64 = true, .size_add = 1 << 30}},
     2,
     2,
     "reaches past the end"},
    {"overlapping members", {{PKL, .size_add = 20}, {DATA}}, 2, 2, "members that overlap"},
    {"members that overlap by a byte",
     {{PKL, .size_add = 1}, {DATA}},
     2,
     2,
     "members that overlap"},
    {"the second inside the first", {{DATA, .size_add = 100}, {PKL}}, 2, 2, "members that overlap"},
    {"two names", {{PKL}, {DATA, .real_name = "x/data/1"}}, 2, 2, "two names"},
    {"a name twice", {{PKL}, {DATA}, {DATA}}, 3, 3, "a name twice"},
    {"a damaged pickle", {{PKL, .crc_xor = 4}, {DATA}}, 2, 2, "the file is damaged"},
    {"two pickles", {{PKL}, {DATA}, MEMBER("y/data.pkl", "N.")}, 3, 3, "two members data.pkl"},
    {"no pickle", {{DATA}}, 1, 1, "no member data.pkl"},
    {"no data", {{PKL}}, 1, 1, "no member data/0"},
    {"a program", {{PKL}, {DATA}, MEMBER("x/code/a.py", "1")}, 3, 3, "TorchScript"},
    {"constants", {{PKL}, {DATA}, MEMBER("x/constants.pkl", "1")}, 3, 3, "TorchScript"},
    {"fewer entries than promised", {{PKL}, {DATA}}, 2, 3, "a wrong directory entry"},
    {"more entries than promised", {{PKL}, {DATA}}, 2, 1, "something after the last"},
    {"17 members",
     {{PKL}, {DATA}},
     2,
     17,
     "17 members in the zip archive; at most 16 are expected"},
    {"no members", {{PKL}, {DATA}}, 0, 0, "does not begin as"},
};

static struct ms_err error_of_zip(const struct zip_part *part, size_t n, size_t count)
{
    struct ms_buf b = {.max = 1 << 20};
    struct probe_tensor t;
    struct ms_err e = {0};
    zip_make(&b, part, n, count);
    (void)parse_bytes(&t, b.p, b.n, &e);
    ms_buf_free(&b);
    return e;
}

START_TEST(archives_are_read_or_refused_with_the_reason)
{
    for (size_t i = 0; i < sizeof zips / sizeof *zips; i++) {
        const struct ms_err e = error_of_zip(zips[i].part, zips[i].n, zips[i].count);
        if (zips[i].says[0] == '\0')
            ck_assert_msg(e.rc == MS_OK, "%s: %s", zips[i].what, e.msg);
        else
            ck_assert_msg(e.rc != MS_OK && strstr(e.msg, zips[i].says) != NULL,
                          "%s: expected '%s' in '%s'", zips[i].what, zips[i].says, e.msg);
    }
}
END_TEST

START_TEST(a_large_pickle_is_a_checkpoint)
{
    static char large[(64 << 10) + 1];
    const struct ms_err e = error_of((struct ms_str){large, sizeof large});
    ck_says(e,
            "data.pkl has 65537 bytes; that of a tensor has at most 65536; is this a checkpoint?");
    ck_says(error_of((struct ms_str){large, sizeof large - 1}), "operation 0x00");
}
END_TEST

START_TEST(a_comment_may_follow_the_archive)
{
    struct ms_buf b = {.max = 1 << 20};
    struct probe_tensor t;
    struct ms_err e = {0};
    pt_make(&b, PK(PKL_F32_2x4), eight, sizeof eight);
    b.p[b.n - 2] = 5;
    ms_buf_puts(&b, "hello");
    ck_ok(parse_bytes(&t, b.p, b.n, &e), e);
    ms_buf_puts(&b, "!");
    ck_assert_int_eq(parse_bytes(&t, b.p, b.n, &e), MS_E_FORMAT);
    ck_says(e, "no end record");
    ms_buf_free(&b);
}
END_TEST

START_TEST(zip64_records_are_followed_and_checked)
{
    struct ms_buf b = {.max = 1 << 20};
    struct probe_tensor t;
    struct ms_err e = {0};
    pt_make(&b, PK(PKL_F32_2x4), eight, sizeof eight);
    const size_t end = b.n - 22;
    uint32_t at, size;
    memcpy(&size, b.p + end + 12, 4);
    memcpy(&at, b.p + end + 16, 4);
    b.n = end;
    le(&b, 0x06064b50, 4);
    le(&b, 44, 8);
    le(&b, 0, 12);
    le(&b, 2, 8);
    le(&b, 2, 8);
    le(&b, size, 8);
    le(&b, at, 8);
    le(&b, 0x07064b50, 4);
    le(&b, 0, 4);
    const size_t locator_offset = b.n;
    le(&b, end, 8);
    le(&b, 1, 4);
    le(&b, 0x06054b50, 4);
    for (int i = 0; i < 8; i++)
        le(&b, 0xffff, 2);
    le(&b, 0, 2);
    ck_ok(parse_bytes(&t, b.p, b.n, &e), e);
    static const uint64_t wrong[] = {0, 1, UINT64_MAX, INT64_MAX, 1 << 20};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(b.p + locator_offset, &wrong[i], 8);
        ms_err_clear(&e);
        ck_assert_int_eq(parse_bytes(&t, b.p, b.n, &e), MS_E_FORMAT);
        ck_says(e, "a wrong zip64 locator");
    }
    memcpy(b.p + locator_offset, &(uint64_t){end}, 8);
    memcpy(b.p + end + 40, &(uint64_t){UINT64_MAX - 5}, 8);
    ms_err_clear(&e);
    ck_assert_int_eq(parse_bytes(&t, b.p, b.n, &e), MS_E_FORMAT);
    ck_says(e, "a directory outside the file");
    ms_buf_free(&b);
}
END_TEST

START_TEST(a_wrong_crc_of_the_data_is_found_when_asked)
{
    const struct zip_part part[] = {{PKL}, {DATA, .crc_xor = 0x80}};
    struct ms_buf b = {.max = 1 << 20};
    struct probe_tensor t;
    struct ms_err e = {0};
    zip_make(&b, part, 2, 2);
    ck_ok(probe_tensor_parse(&t, "x.pt", b.p, b.n, &e), e);
    ck_assert_uint_eq(t.crc, 0x7a0a40fc);
    ck_assert_int_eq(probe_tensor_verify(&t, &e), MS_E_FORMAT);
    ck_says(e, "CRC-32 7a0a407c but 7a0a40fc was stored");
    probe_tensor_close(&t);
    ms_buf_free(&b);
}
END_TEST

START_TEST(big_endian_data_is_turned_round_in_a_copy)
{
    static const unsigned char data[32] = {0x3f, 0x80, 0, 0, 0xc0, 0x20, 0, 0};
    const struct zip_part part[] = {{PKL},
                                    {.name = "x/data/0", .p = (const char *)data, .n = 32},
                                    MEMBER("x/byteorder", "big")};
    struct ms_buf b = {.max = 1 << 20};
    struct probe_tensor t;
    struct ms_err e = {0};
    const size_t live = ms_mem_live();
    zip_make(&b, part, 3, 3);
    ck_ok(probe_tensor_parse(&t, "x.pt", b.p, b.n, &e), e);
    const float want[3] = {1, -2.5F, 0};
    ck_assert_mem_eq(t.data, want, sizeof want);
    ck_assert(!t.has_crc);
    probe_tensor_close(&t);
    ms_buf_free(&b);
    ck_assert_uint_eq(ms_mem_live(), live);
}
END_TEST

/* Bytes have no order: those of a big-endian machine are read where they lie. */
START_TEST(single_bytes_of_a_big_endian_machine_are_not_copied)
{
    static const char pickle[] =
        PKL_V2 PKL_STORAGE("ByteStorage", "\x20") "K\0K\x20\x85K\x01\x85" PKL_TAIL "R.";
    const struct zip_part part[] = {{.name = "x/data.pkl", .p = pickle, .n = sizeof pickle - 1},
                                    {DATA},
                                    MEMBER("x/byteorder", "big")};
    struct ms_buf b = {.max = 1 << 20};
    struct probe_tensor t;
    struct ms_err e = {0};
    zip_make(&b, part, 3, 3);
    ck_ok(probe_tensor_parse(&t, "x.pt", b.p, b.n, &e), e);
    ck_assert_ptr_null(t.copy);
    ck_assert(t.has_crc);
    ck_assert_mem_eq(t.data, eight, sizeof eight);
    probe_tensor_close(&t);
    ms_buf_free(&b);
}
END_TEST

/* A prefix is never a tensor: the end record is at the end. */
START_TEST(truncated_anywhere_it_is_an_error)
{
    struct ms_buf b = {.max = 1 << 20};
    struct probe_tensor t;
    pt_make(&b, PK(PKL_F32_2x4), eight, sizeof eight);
    for (size_t n = 0; n < b.n; n++) {
        struct ms_err e = {0};
        ck_assert_msg(parse_bytes(&t, b.p, n, &e) != MS_OK, "%zu bytes", n);
    }
    ms_buf_free(&b);
}
END_TEST

/* Any byte changed: an error or a tensor, never a crash; what is read stays inside. */
START_TEST(any_byte_may_be_wrong)
{
    struct ms_buf b = {.max = 1 << 20};
    struct probe_tensor t;
    pt_make(&b, PK(PKL_F32_2x4), eight, sizeof eight);
    unsigned refused = 0;
    for (size_t i = 0; i < b.n; i++) {
        const char good = b.p[i];
        static const char wrong[] = {0, 1, 0x7f, (char)0x80, (char)0xff};
        for (size_t k = 0; k < sizeof wrong; k++) {
            struct ms_err e = {0};
            b.p[i] = wrong[k];
            refused += parse_bytes(&t, b.p, b.n, &e) != MS_OK;
        }
        b.p[i] = good;
    }
    ck_assert_uint_gt(refused, b.n);
    ms_buf_free(&b);
}
END_TEST

/* ---- the form without zip --------------------------------------------------- */

#define LEGACY_MAGIC        "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
#define LEGACY_HEAD         LEGACY_MAGIC "\x80\x02M\xe9\x03."
#define LEGACY_INFO(little) "\x80\x02}X\x0d\0\0\0little_endian" little "s."
#define LEGACY_STORAGE(last)                                                                       \
    "((X\x07\0\0\0storagectorch\nFloatStorage\nX\x02\0\0\0"                                        \
    "42X\x03\0\0\0cpuK\x02" last "tQ"
#define LEGACY_TENSOR(last) PKL_V2 LEGACY_STORAGE(last) "K\0K\x02\x85K\x01\x85" PKL_TAIL "R."
#define LEGACY_KEYS(key)    "\x80\x02]X\x02\0\0\0" key "a."
#define LEGACY_DATA         "\x02\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\x40"
#define LEGACY              LEGACY_HEAD LEGACY_INFO("\x88") LEGACY_TENSOR("N") LEGACY_KEYS("42")

static const struct {
    const char *what;
    struct ms_str file;
    const char *says;
} legacy[] = {
    {"as torch writes it", PK(LEGACY LEGACY_DATA), ""},
    {"five items",
     PK(LEGACY_HEAD LEGACY_INFO("\x88") LEGACY_TENSOR("") LEGACY_KEYS("42") LEGACY_DATA), ""},
    {"a view",
     PK(LEGACY_HEAD LEGACY_INFO("\x88") LEGACY_TENSOR("K\x01") LEGACY_KEYS("42") LEGACY_DATA),
     "another form"},
    {"a big-endian machine",
     PK(LEGACY_HEAD LEGACY_INFO("\x89") LEGACY_TENSOR("N") LEGACY_KEYS("42") LEGACY_DATA),
     "not written on a little-endian machine"},
    {"another key",
     PK(LEGACY_HEAD LEGACY_INFO("\x88") LEGACY_TENSOR("N") LEGACY_KEYS("43") LEGACY_DATA),
     "another list of storages"},
    {"another count", PK(LEGACY "\x03\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\x40"),
     "a storage of 3 elements"},
    {"a byte more", PK(LEGACY LEGACY_DATA "x"), "a storage of 9 bytes"},
    {"a dictionary", PK(LEGACY_HEAD LEGACY_INFO("\x88") "\x80\x02}." LEGACY_KEYS("42")),
     "holds a dictionary: a checkpoint"},
    {"a system call",
     PK(LEGACY_HEAD LEGACY_INFO("\x88") "\x80\x02"
                                        "cos\nsystem\n)R."),
     "unsupported object os.system"},
    {"another version", PK(LEGACY_MAGIC "\x80\x02M\xea\x03."), "another version"},
};

START_TEST(files_without_zip_are_read_or_refused)
{
    for (size_t i = 0; i < sizeof legacy / sizeof *legacy; i++) {
        struct probe_tensor t;
        struct ms_err e = {0};
        (void)parse_bytes(&t, legacy[i].file.p, legacy[i].file.n, &e);
        if (legacy[i].says[0] == '\0')
            ck_assert_msg(e.rc == MS_OK, "%s: %s", legacy[i].what, e.msg);
        else
            ck_assert_msg(e.rc != MS_OK && strstr(e.msg, legacy[i].says) != NULL,
                          "%s: expected '%s' in '%s'", legacy[i].what, legacy[i].says, e.msg);
    }
}
END_TEST

START_TEST(without_zip_truncated_anywhere_it_is_an_error)
{
    static const char file[] = LEGACY LEGACY_DATA;
    struct probe_tensor t;
    struct ms_err e = {0};
    ck_ok(probe_tensor_parse(&t, "x.pt", file, sizeof file - 1, &e), e);
    ck_assert_int_eq(t.kind, PROBE_FILE_PT_LEGACY);
    ck_assert_mem_eq(t.data, ((const float[]){1, 2}), 8);
    probe_tensor_close(&t);
    for (size_t n = 0; n < sizeof file - 1; n++) {
        ms_err_clear(&e);
        ck_assert_msg(parse_bytes(&t, file, n, &e) != MS_OK, "%zu bytes", n);
    }
}
END_TEST

/* ---- memory ------------------------------------------------------------------ */

START_TEST(running_out_of_memory_is_an_error_without_leak)
{
    const struct zip_part part[] = {{PKL}, {DATA}, MEMBER("x/byteorder", "big")};
    struct ms_buf b = {.max = 1 << 20};
    struct probe_tensor t;
    zip_make(&b, part, 3, 3);
    const size_t live = ms_mem_live();
    enum ms_rc rc = MS_E_NOMEM;
    uint64_t n = 1;
    for (; rc != MS_OK && n < 10; n++) {
        struct ms_err e = {0};
        ms_mem_fail_at(n);
        rc = probe_tensor_parse(&t, "x.pt", b.p, b.n, &e);
        ck_assert(rc == MS_OK || rc == MS_E_NOMEM);
        if (rc == MS_OK)
            probe_tensor_close(&t);
        ck_assert_uint_eq(ms_mem_live(), live);
    }
    ms_mem_fail_at(0);
    ck_assert_uint_eq(n, 7); /* arena, its chunk, stack, memo and the copy, then success */
    ms_buf_free(&b);
}
END_TEST

TEST_MAIN("pt", a_tensor_is_read_where_it_lies, pickles_are_read_or_refused_with_the_reason,
          errors_name_file_and_byte, nesting_and_repetition_have_limits,
          archives_are_read_or_refused_with_the_reason, a_large_pickle_is_a_checkpoint,
          a_comment_may_follow_the_archive, zip64_records_are_followed_and_checked,
          a_wrong_crc_of_the_data_is_found_when_asked, big_endian_data_is_turned_round_in_a_copy,
          single_bytes_of_a_big_endian_machine_are_not_copied, truncated_anywhere_it_is_an_error,
          any_byte_may_be_wrong, files_without_zip_are_read_or_refused,
          without_zip_truncated_anywhere_it_is_an_error,
          running_out_of_memory_is_an_error_without_leak)
