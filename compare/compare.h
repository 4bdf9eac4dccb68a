/* SPDX-License-Identifier: MIT
 *
 * compare: compares two dumps row by row.
 *
 *     dump.json ─► side ─┐            ┌─ measure ─ judge ─► view ─► csv, xlsx, json, screen
 *                        ├─► align ─► pairs
 *     dump.json ─► side ─┘            └─ tensor files, measured once
 *
 * A comparison holds pairs of row numbers and little else. The cells, figures and verdicts
 * of an operator are made when it is viewed (cmp_view_group), so a dump of any size costs a
 * few dozen bytes a row, and writers, graphs and viewers see the same rows. Column names are
 * those of the official tool: the target is "NPU", the golden side "Bench".
 */
#ifndef COMPARE_COMPARE_H
#define COMPARE_COMPARE_H

#include "compare/align/align.h"
#include "probe/dump/dump.h"
#include "probe/dump/stack.h"

struct cmp_rules; /* compare/read/rules.h */

/* Mapping files of the official tool; file is NULL when only the built-in mapping is used. */
struct cmp_mapping {
    bool on;
    const char *file;
};

/* How rows are paired without a mapping file. */
enum cmp_matching {
    CMP_MATCH_AUTO,   /* by name when both sides have the same names, else by alignment */
    CMP_MATCH_ALWAYS, /* by alignment */
    CMP_MATCH_EXACT,  /* by name */
};

/* Training compared with inference: the framework of the training side, which names its modules. */
enum cmp_consistent { CMP_CONSISTENT_NO, CMP_CONSISTENT_FSDP, CMP_CONSISTENT_MEGATRON };

/* Progress of a long operation. */
struct cmp_progress {
    const char *what;
    double share;    /* 0 to 1 */
    uint64_t amount; /* done so far: rows, or bytes */
    bool is_bytes;
};
/* Called from time to time by the function that does the work. */
typedef void (*cmp_progress_fn)(void *ctx, const struct cmp_progress *p);

struct cmp_conf {
    const struct cmp_rules *rules; /* NULL: cmp_rules_ours */
    cmp_progress_fn progress;      /* may be NULL */
    void *progress_ctx;
    bool fuzzy;
    bool ext;       /* measure what the extended columns need */
    bool explain;   /* the error source will be used: keep the leaves that views parse */
    bool highlight; /* with the rules of msprobe 1: colours, and their reasons among the messages */
    bool summarise; /* compare tensor dumps by their statistics */
    struct cmp_mapping api, cell, layer;
    const char *data_mapping;
    const char *stack; /* the target's stack.json where it is not beside the dump, or NULL */
    bool hide_stack;   /* the table has no column for it */
    enum cmp_matching matching;
    enum cmp_consistent consistent;
    bool fold_lines;    /* names of folded rows on separate lines, as in a workbook */
    const char *config; /* a file of matrices by which tensors are multiplied first, or NULL */
    const char *pins;   /* a file of pairs that the alignment has to respect, or NULL */
    /* Noise floor: dump.json of a second run of the golden side, or a calibration, of which the
     * place with this step and rank is used (-1: not known); or NULL. */
    const char *noise_floor;
    int64_t noise_step, noise_rank;
};

enum cmp_level { CMP_PASS, CMP_WARNING, CMP_ERROR, CMP_UNMATCHED, CMP_LEVELS };
/* "pass", "warning", "error", "unmatched" */
extern const char *const cmp_level_names[CMP_LEVELS];

/* Reasons for the verdict of a row, in the order in which the rules are applied. */
/* clang-format off */
#define CMP_NOTE_MAP(X)                                                                            \
    X(NO_BENCH,    "unmatched: The bench has no such row.")                                        \
    X(NO_TARGET,   "unmatched: The NPU has no such row.")                                          \
    X(NO_FILE,     "error: The data file of NPU or Bench is missing or cannot be read.")           \
    X(NO_DATA,     "error: Only one of NPU and Bench has a data file.")                            \
    X(MASKS,       "error: NaN or inf stand at different places in NPU and Bench.")                \
    X(INF_NAN,     "error: There is nan/inf/-inf in the maximum or minimum value of NPU.")         \
    X(THOUSANDTH,  "error: The input/parameters of One Thousandth Err Ratio > 0.9 while the "      \
                   "output < 0.6.")                                                                \
    X(NORM_ERR,    "error: The NormRelativeErr of output is greater than 0.5.")                    \
    X(GRAD,        "error: The Required_Grad of NPU and Bench are inconsistent")                   \
    X(PARAM,       "error: The scalar parameters of NPU and Bench are inconsistent.")              \
    X(DTYPE,       "error: The dtype of NPU and Bench are inconsistent.")                          \
    X(SHAPE,       "error: The shape of NPU and Bench are inconsistent.")                          \
    X(NORM_WARN,   "warning: The norm relative error of output is 10 times that of input.")        \
    X(COSINE_WARN, "warning: The input/parameters of Cosine > 0.9, and input/parameters - output " \
                   "> 0.1")                                                                        \
    X(CRC,         "error: The CRC-32 value of NPU differs from that of the bench.")               \
    X(CRC_NONE,    "warning: The parameter of NPU does not match the bench.")                      \
    X(CRC_PARTS,   "warning: Checksums of parts say nothing about the whole.")
/* clang-format on */
enum cmp_note {
#define CMP_NOTE_ENUM(name, text) CMP_NOTE_##name,
    CMP_NOTE_MAP(CMP_NOTE_ENUM)
#undef CMP_NOTE_ENUM
        CMP_NOTES
};
extern const char *const cmp_note_texts[CMP_NOTES];

/* A cell of the statistics columns, as Python sees it. */
enum cmp_value_kind {
    CMP_VALUE_NA, /* no value: "N/A" */
    CMP_VALUE_NUMBER,
    CMP_VALUE_NAN,
    CMP_VALUE_INF,
    CMP_VALUE_NINF,
    CMP_VALUE_DEVICE, /* text that names a device */
    CMP_VALUE_TEXT,   /* True, None, any other text */
};
struct cmp_value {
    enum cmp_value_kind kind;
    bool is_int;  /* of NUMBER: an integer */
    bool is_text; /* the dump has the number as text */
    double v;
    struct ms_str text; /* as it is shown; infinities are "inf" and "-inf" */
};
static inline bool cmp_value_is_special(const struct cmp_value *x)
{
    return x->kind == CMP_VALUE_NAN || x->kind == CMP_VALUE_INF || x->kind == CMP_VALUE_NINF;
}

/* One side of a row. */
struct cmp_item {
    bool present;
    struct ms_str name, dtype, shape, requires_grad;
    struct cmp_value stat[PROBE_STATS];
    struct ms_str md5, data_name; /* "-1": no data file */
    struct ms_str json;           /* the leaf as in the dump */
    enum ms_dtype type;
    uint8_t section;
};

/* Measured figures of a pair of tensor files. */
enum cmp_state {
    CMP_STATE_OK,
    CMP_STATE_NO_DATA,   /* a side has no data file */
    CMP_STATE_UNMATCHED, /* no partner */
    CMP_STATE_UNREADABLE,
    CMP_STATE_EMPTY,
    CMP_STATE_SHAPE,  /* shapes differ beyond axes of size 1 */
    CMP_STATE_SCALAR, /* one element: only the two errors */
    CMP_STATE_MASKS,  /* NaN or inf at different places */
};
enum { CMP_COSINE, CMP_EUCLID, CMP_MAX_ABS, CMP_MAX_REL, CMP_THOUSANDTH, CMP_FIVE, CMP_METRICS };
/* Figures of --ext; NaN when not known. Without cmp_conf.ext only relL2, SQNR and scale are
 * measured. */
struct cmp_ext {
    double rel_l2, rel_l2_bound, sqnr_db, mean_ulp, max_ulp, bit_equal, bias, scale;
};
struct cmp_figures {
    enum cmp_state state;
    double metric[CMP_METRICS]; /* as the official cells show them; NaN is "Nan" */
    struct cmp_ext ext;
};

/* A pair of cells "diff" and "relative error" of one statistic. */
struct cmp_delta {
    struct ms_str diff, rel;
    double rel_value; /* rel as a fraction; NaN when rel is not a percentage */
    bool rel_inf;     /* the text "inf" or "-inf" */
};

/* How a row got its partner. */
struct cmp_match {
    const char *how; /* "exact", "renumbered", "mapped", "none", or one of cmp_align_how_names */
    double confidence;
};

struct cmp_row {
    struct cmp_item t, b;
    struct cmp_match match;
    uint32_t pair;
    enum cmp_level level;
    uint32_t notes; /* bits of enum cmp_note */
    bool grad_same;
    /* an output of the operator; some rules decide this by name */
    bool is_output;
    struct cmp_delta delta[PROBE_STATS]; /* statistics */
    struct cmp_figures fig;              /* tensors */
};

struct read__values;
/* The rows of one operator, or consecutive rows without a target. */
struct cmp_view {
    struct ms_arena *arena; /* holds the text; the caller makes and frees it */
    struct ms_buf scratch;
    MS_VEC(struct cmp_row) rows;
    /* name of the target's record; empty for rows of the golden side alone */
    struct ms_str op;
    struct ms_str frames;        /* its stack as a JSON list; p is NULL when there is none */
    struct read__values *values; /* receives the leaves that are parsed; NULL: they are not kept */
};

struct cmp;

/* Opens both dumps and pairs their rows. Neither path is a directory. pool may be NULL and is not
 * kept. */
enum ms_rc cmp_open(struct cmp **c, const struct cmp_conf *conf, const char *target,
                    const char *golden, struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;
void cmp_close(struct cmp *c);
/* Reads all tensor files; required once before views, in tensor mode only. */
enum ms_rc cmp_measure(struct cmp *c, struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;

/* Tells whether the file is a calibration rather than a dump. */
bool cmp_is_calibration(const char *path);
/* Measure with several processes, each of which has opened the pair: each process measures one of
 * `parts` parts and packs its results; then one process joins all packed results. */
enum ms_rc cmp_measure_part(struct cmp *c, struct ms_pool *pool, unsigned part, unsigned parts,
                            struct ms_buf *packed, struct ms_err *err) MS_MUST_USE;
enum ms_rc cmp_measure_join(struct cmp *c, const struct ms_str *packed, unsigned parts,
                            struct ms_err *err) MS_MUST_USE;

enum probe_mode cmp_mode(const struct cmp *c);
bool cmp_has_stack(const struct cmp *c);
/* Tells whether a layer mapping was used. (Rules with layers_of_mindspore use one for MindSpore
 * only.) */
bool cmp_maps_layers(const struct cmp *c);
bool cmp_is_debug(const struct cmp *c);
const struct probe_dump *cmp_dump(const struct cmp *c, bool golden);
/* Returns the alignment that paired the rows; NULL when they were paired by name. */
const struct cmp_align *cmp_alignment(const struct cmp *c);
/* Returns warnings about the input files, one line of text each. */
size_t cmp_problems(const struct cmp *c, const struct ms_str **list);
/* Bytes of tensor data that cmp_measure has read. */
uint64_t cmp_bytes_read(const struct cmp *c);

/* Tells whether one side has nothing to compare. */
bool cmp_is_empty(const struct cmp *c);
size_t cmp_rows(const struct cmp *c);
size_t cmp_groups(const struct cmp *c);
/* Returns the number of rows of a group without making them. */
size_t cmp_group_rows(const struct cmp *c, size_t group);
/* Makes the rows of a group, in place of the previous contents of the view; thread-safe with one
 * view per thread. */
enum ms_rc cmp_view_group(const struct cmp *c, size_t group, struct cmp_view *v,
                          struct ms_err *err) MS_MUST_USE;
enum ms_rc cmp_view_init(struct cmp_view *v, struct ms_err *err) MS_MUST_USE;
/* Frees the text of earlier groups; call this now and then in a long loop. */
enum ms_rc cmp_view_renew(struct cmp_view *v, struct ms_err *err) MS_MUST_USE;
void cmp_view_free(struct cmp_view *v);

/* The nodes that a group pairs, as numbers of records; MS_MAP_NONE: no node on that side. */
struct cmp_pairing {
    uint32_t target, golden;
};
struct cmp_pairing cmp_group_nodes(const struct cmp *c, size_t group);

#endif
