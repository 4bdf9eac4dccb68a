/* SPDX-License-Identifier: MIT
 *
 * path_kind: see the header.
 */
#include "viz/model/path_kind.h"

#include "mstx/memory/mem_read.h"
#include "probe/base/assert.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/store.h"
#include "probe/dump/find.h"
#include "probe/tensor/tensor.h"
#include "probe/trend/trend.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { HEAD_MAX = 8192, NAMES_MAX = 1000 };

/* ---- words -------------------------------------------------------------------------- */

static const struct words {
    const char *what, *next, *after; /* what it is; the command, and what follows the path in it */
} words[VIZ_PATH_KINDS] = {
    [VIZ_PATH_NONE] = {"nothing", NULL, ""},
    [VIZ_PATH_OTHER] = {"something of another program", NULL, ""},
    [VIZ_PATH_FOLDER] = {"a folder", NULL, ""},
    [VIZ_PATH_DUMP] = {"a dump", "msprobe check ", ""},
    [VIZ_PATH_DUMP_PART] = {"a part of a dump, which is read by its folder", NULL, ""},
    [VIZ_PATH_RUN] = {"a recorded run", "msprobe report ", ""},
    [VIZ_PATH_TRACE] = {"a trace", "msprobe report ", ""},
    [VIZ_PATH_PROFILE] = {"what Ascend's profiler recorded", "msprobe cluster -d ", ""},
    [VIZ_PATH_GRAPH] = {"a graph", "msprobe view ", ""},
    [VIZ_PATH_TABLE] = {"a table of a comparison", "msprobe view ", ""},
    [VIZ_PATH_TREND] = {"statistics of many steps", "msprobe trend ", ""},
    [VIZ_PATH_MEMORY] = {"a record of memory", "msprobe memory ", ""},
    [VIZ_PATH_TENSOR] = {"tensor data", "msprobe parse -d ", ""},
    [VIZ_PATH_CONFIG] = {"the configuration of a dump", "msprobe run --dump ", " -- PROGRAM"},
    [VIZ_PATH_DATABASE] = {"a database of another program", NULL, ""},
    [VIZ_PATH_TAR] = {"a tar archive", "tar -xf ", ""},
    [VIZ_PATH_ZIP] = {"a zip archive", "unzip ", ""},
    [VIZ_PATH_PROGRAM] = {"a program", "msprobe run -- ", ""},
    [VIZ_PATH_PICTURE] = {"a picture", NULL, ""},
    [VIZ_PATH_DAMAGED] = {"a damaged database", NULL, ""},
};

const char *viz_path_what(enum viz_path_kind kind)
{
    return words[kind].what;
}

bool viz_path_has_next(enum viz_path_kind kind)
{
    return words[kind].next != NULL;
}

const char *viz_path_verb(enum viz_path_kind kind)
{
    return kind == VIZ_PATH_TAR || kind == VIZ_PATH_ZIP ? "unpacks it"
           : kind == VIZ_PATH_PROGRAM                   ? "records it"
                                                        : "does";
}

static void put_quoted(const char *path, struct ms_buf *out)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-:@%=,";
    if (path[strspn(path, plain)] == '\0') {
        ms_buf_puts(out, path);
        return;
    }
    ms_buf_putc(out, '\'');
    for (; *path != '\0'; path++)
        *path == '\'' ? ms_buf_puts(out, "'\\''") : ms_buf_putc(out, *path);
    ms_buf_putc(out, '\'');
}

void viz_path_next(enum viz_path_kind kind, const char *path, struct ms_buf *out)
{
    ms_assert(viz_path_has_next(kind));
    ms_buf_puts(out, words[kind].next);
    put_quoted(path, out);
    ms_buf_puts(out, words[kind].after);
}

/* ---- files -------------------------------------------------------------------------- */

/* Finds the kind of a database by a table that only this kind has. */
static enum viz_path_kind kind_of_database(const char *path)
{
    static const struct {
        const char *table;
        enum viz_path_kind kind;
    } known[] = {
        {"tb_nodes", VIZ_PATH_GRAPH},
        {"rank_steps", VIZ_PATH_RUN},
        {"packed_rank_steps", VIZ_PATH_RUN}, /* folded */
        {"monitoring_targets", VIZ_PATH_TREND},
        {"STRING_IDS", VIZ_PATH_PROFILE},
        {"TASK", VIZ_PATH_PROFILE},
        {"RANK_DEVICE_MAP", VIZ_PATH_PROFILE},
        {"CommAnalyzerTime", VIZ_PATH_PROFILE},
        {"ClusterCommAnalyzerTime", VIZ_PATH_PROFILE},
    };
    static const char ask[] = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
    struct ms_store *s;
    struct ms_stmt *st = NULL;
    enum viz_path_kind kind = VIZ_PATH_DATABASE;
    struct ms_err why = {0};
    if (ms_store_open(&s, path, &why) != MS_OK)
        return why.rc == MS_E_FORMAT ? VIZ_PATH_DAMAGED : kind;
    if (ms_store_prepare(s, &st, ask, NULL) == MS_OK) {
        for (size_t i = 0; i < sizeof known / sizeof *known && kind == VIZ_PATH_DATABASE; i++) {
            bool is_row = false;
            ms_stmt_str(st, 1, ms_str_of(known[i].table));
            if (ms_stmt_step(st, &is_row, NULL) == MS_OK && is_row)
                kind = known[i].kind;
            ms_stmt_reset(st);
        }
    }
    ms_stmt_free(st);
    ms_store_close(s);
    return kind;
}

static bool has(struct ms_str head, const char *word)
{
    return memmem(head.p, head.n, word, strlen(word)) != NULL;
}

static enum viz_path_kind kind_of_json(struct ms_str base, struct ms_str head)
{
    if (ms_str_is(base, "dump.json") || ms_str_is(base, "debug.json"))
        return VIZ_PATH_DUMP;
    if (ms_str_is(base, "construct.json") || ms_str_is(base, "stack.json"))
        return VIZ_PATH_DUMP_PART;
    if (has(head, "\"traceEvents\"") || (has(head, "\"ph\"") && has(head, "\"ts\"")))
        return VIZ_PATH_TRACE;
    if (has(head, "\"task\"") && has(head, "\"data\""))
        return VIZ_PATH_DUMP;
    return has(head, "\"task\"") || has(head, "\"dump_path\"") ? VIZ_PATH_CONFIG : VIZ_PATH_OTHER;
}

static enum viz_path_kind kind_by_name(struct ms_str base, struct ms_str head)
{
    static const char *const traces[] = {".json.gz", ".perfetto-trace", ".pftrace", ".perfetto"};
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        if (ms_str_ends(base, ms_str_of(traces[i])))
            return VIZ_PATH_TRACE;
    }
    if (ms_str_ends(base, MS_STR(".csv")))
        return has(head, "NPU Name")                          ? VIZ_PATH_TABLE
               : has(head, "begin_ns") && has(head, "end_ns") ? VIZ_PATH_TRACE
                                                              : VIZ_PATH_OTHER;
    return ms_str_starts(base, MS_STR("compare_result")) ? VIZ_PATH_TABLE : VIZ_PATH_OTHER;
}

enum { TAR_MAGIC_AT = 257 };

/* Of a compressed file only the name says that there is an archive in it. */
static bool is_tar(struct ms_str base, struct ms_str head)
{
    static const char *const ends[] = {".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (ms_str_ends(base, ms_str_of(ends[i])))
            return true;
    }
    return ms_str_starts(ms_str_sub(head, TAR_MAGIC_AT, head.n), MS_STR("ustar"));
}

/* A zip archive is a tensor file by its name, or by its member data.pkl, which torch.save writes first. */
static bool is_plain_zip(struct ms_str base, struct ms_str head)
{
    const bool is_named = ms_str_ends(base, MS_STR(".xlsx")) || ms_str_ends(base, MS_STR(".pt")) ||
                          ms_str_ends(base, MS_STR(".pth"));
    return ms_str_starts(head, MS_STR("PK\x03\x04")) && !is_named && !has(head, "data.pkl");
}

/* Finds what no command reads by the first bytes; VIZ_PATH_OTHER: none of these. */
static enum viz_path_kind kind_of_others(struct ms_str base, struct ms_str head)
{
    static const struct {
        const char *begin;
        enum viz_path_kind kind;
    } known[] = {{"\x89PNG", VIZ_PATH_PICTURE},
                 {"\xff\xd8\xff", VIZ_PATH_PICTURE},
                 {"GIF8", VIZ_PATH_PICTURE},
                 {"\x7f"
                  "ELF",
                  VIZ_PATH_PROGRAM},
                 {"#!", VIZ_PATH_PROGRAM}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (ms_str_starts(head, ms_str_of(known[i].begin)))
            return known[i].kind;
    }
    return is_tar(base, head)         ? VIZ_PATH_TAR
           : is_plain_zip(base, head) ? VIZ_PATH_ZIP
                                      : VIZ_PATH_OTHER;
}

static enum viz_path_kind kind_of_bytes(const char *path, struct ms_str head)
{
    const struct ms_str base = ms_path_base(path);
    if (ms_str_starts(head, MS_STR("SQLite format 3")))
        return kind_of_database(path);
    if (mstx__mem_is_record(path))
        return VIZ_PATH_MEMORY;
    const size_t blank = strspn(head.p, " \t\r\n");
    if (head.n > blank && (head.p[blank] == '{' || head.p[blank] == '['))
        return kind_of_json(base, head);
    if (ms_str_starts(head, MS_STR("MSTXSEG")))
        return VIZ_PATH_RUN;
    const enum viz_path_kind other = kind_of_others(base, head);
    if (other != VIZ_PATH_OTHER)
        return other;
    if (!ms_str_ends(base, MS_STR(".xlsx")) &&
        probe_tensor_sniff(head.p, head.n) != PROBE_FILE_UNKNOWN)
        return VIZ_PATH_TENSOR;
    return kind_by_name(base, head);
}

static enum viz_path_kind kind_of_file(const char *path)
{
    char head[HEAD_MAX + 1];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t n = fd >= 0 ? read(fd, head, HEAD_MAX) : -1;
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return VIZ_PATH_NONE;
    head[n] = '\0';
    return kind_of_bytes(path, (struct ms_str){head, (uint32_t)n});
}

/* ---- folders ------------------------------------------------------------------------ */

/* What a name in a folder says of the folder. */
static enum viz_path_kind kind_of_name(struct ms_str name)
{
    static const struct {
        const char *begin, *end;
        enum viz_path_kind kind;
    } known[] = {
        {"run.db", "", VIZ_PATH_RUN},
        {"", ".seg", VIZ_PATH_RUN},
        {"", ".vis.db", VIZ_PATH_GRAPH},
        {"", ".trend.db", VIZ_PATH_TREND},
        {"PROF_", "", VIZ_PATH_PROFILE},
        {"ASCEND_PROFILER_OUTPUT", "", VIZ_PATH_PROFILE},
        {"cluster_analysis_output", "", VIZ_PATH_PROFILE},
        {"", "_ascend_pt", VIZ_PATH_PROFILE},
        {"", "_ascend_ms", VIZ_PATH_PROFILE},
        {"compare_result", ".csv", VIZ_PATH_TABLE},
        {"compare_result", ".xlsx", VIZ_PATH_TABLE},
        {"", ".pickle", VIZ_PATH_MEMORY},
        {"memory_block", ".csv", VIZ_PATH_MEMORY},
        {"", ".npy", VIZ_PATH_TENSOR},
        {"", ".pt", VIZ_PATH_TENSOR},
        {"", ".json.gz", VIZ_PATH_TRACE},
        {"trace_view.json", "", VIZ_PATH_TRACE},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (ms_str_starts(name, ms_str_of(known[i].begin)) &&
            ms_str_ends(name, ms_str_of(known[i].end)))
            return known[i].kind;
    }
    return VIZ_PATH_FOLDER;
}

bool viz_path_holds_dump(const char *path)
{
    struct probe_places places;
    if (probe_find(&places, path, NULL) != MS_OK)
        return false;
    probe_places_free(&places);
    return true;
}

static enum viz_path_kind kind_of_names(const char *path, unsigned depth);

/* What a process or a rank below a folder says of it: a run keeps its segments in rank_R/HOST.PID.TAG. */
static enum viz_path_kind kind_below(const char *path, struct ms_str name, unsigned depth)
{
    int64_t rank;
    if (probe__is_rank_dir(name, &rank))
        return VIZ_PATH_TREND;
    if (depth == 0 ||
        (!ms_str_starts(name, MS_STR("rank_")) && memchr(name.p, '.', name.n) == NULL))
        return VIZ_PATH_FOLDER;
    char *below = ms_path_join(path, name.p);
    enum viz_path_kind kind = VIZ_PATH_FOLDER;
    if (below != NULL && ms_path_kind(below) == MS_KIND_DIR)
        kind = kind_of_names(below, depth - 1);
    ms_free(below);
    return kind == VIZ_PATH_RUN ? kind : VIZ_PATH_FOLDER;
}

/* A record of memory lies beside what else a run has left, which says more. */
static enum viz_path_kind kind_of_names(const char *path, unsigned depth)
{
    struct ms_dir list;
    enum viz_path_kind kind = VIZ_PATH_FOLDER, beside = VIZ_PATH_FOLDER;
    if (ms_dir_list(&list, path, NULL) != MS_OK)
        return VIZ_PATH_NONE;
    for (size_t i = 0; i < list.names.n && i < NAMES_MAX && kind == VIZ_PATH_FOLDER; i++) {
        kind = kind_of_name(list.names.p[i]);
        if (kind == VIZ_PATH_MEMORY) {
            beside = kind;
            kind = VIZ_PATH_FOLDER;
        } else if (kind == VIZ_PATH_FOLDER) {
            kind = kind_below(path, list.names.p[i], depth);
        }
    }
    ms_dir_free(&list);
    return kind == VIZ_PATH_FOLDER ? beside : kind;
}

/* Tells whether the folder is of a run that was imported, without a look at its thousands of ranks. */
static bool holds_run(const char *path)
{
    char *db = ms_path_join(path, "run.db");
    const bool is = db != NULL && ms_path_kind(db) == MS_KIND_FILE;
    ms_free(db);
    return is;
}

static enum viz_path_kind kind_of_folder(const char *path)
{
    if (holds_run(path))
        return VIZ_PATH_RUN;
    const enum viz_path_kind kind = kind_of_names(path, 2);
    const bool is_run = kind == VIZ_PATH_RUN || kind == VIZ_PATH_GRAPH;
    return !is_run && kind != VIZ_PATH_NONE && viz_path_holds_dump(path) ? VIZ_PATH_DUMP : kind;
}

enum viz_path_kind viz_path_kind_of(const char *path)
{
    switch (ms_path_kind(path)) {
    case MS_KIND_FILE:
        return kind_of_file(path);
    case MS_KIND_DIR:
        return kind_of_folder(path);
    case MS_KIND_OTHER:
        return VIZ_PATH_OTHER;
    default:
        return VIZ_PATH_NONE;
    }
}
