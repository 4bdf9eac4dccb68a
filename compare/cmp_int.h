/* SPDX-License-Identifier: MIT
 *
 * cmp_int: what the stages of a comparison share.
 */
#ifndef COMPARE_CMP_INT_H
#define COMPARE_CMP_INT_H

#include "compare/compare.h"
#include "probe/tensor.h"
#include "probe/tree.h"

/* ---- side: one dump as the official tables list it --------------------- */

struct cmp__op {
    uint32_t node;
    uint32_t first, n; /* rows */
    int32_t call;      /* call number to use in keys; -1: the one in the name */
};

struct cmp__side {
    struct probe_dump *dump;
    MS_VEC(uint32_t) order; /* table row -> row of the dump */
    MS_VEC(struct cmp__op) ops;
    MS_VEC(uint32_t) op_of;           /* table row -> op */
    bool as_float[PROBE_STATS];       /* print whole numbers of this column as floats */
    bool alone_as_float[PROBE_STATS]; /* the same, where a row has no partner */
    bool is_debug;
    struct source__value
        *seen; /* by row of the dump: what views of it have read; NULL: forgotten */
};

enum ms_rc cmp__side_init(struct cmp__side *s, const struct cmp_conf *conf, const char *path,
                          struct ms_pool *pool, struct ms_err *err);
/* The same for a dump that is open, which becomes the side's, also when this fails. */
enum ms_rc cmp__side_of(struct cmp__side *s, const struct cmp_conf *conf, struct probe_dump *dump,
                        struct ms_err *err);
void cmp__side_free(struct cmp__side *s);
/* A dump that does not say its framework is PyTorch's. */
static inline bool cmp__is_pytorch(const struct cmp__side *s)
{
    return s->dump->framework == PROBE_FW_PYTORCH || s->dump->framework == PROBE_FW_UNKNOWN;
}
static inline const struct probe_row *cmp__side_row(const struct cmp__side *s, uint32_t row)
{
    return &s->dump->rows.p[s->order.p[row]];
}
/* The row's name; with renumber, its call is counted in execution order. */
void cmp__side_name(const struct cmp__side *s, uint32_t row, bool renumber, struct ms_buf *out);

/* ---- item: one row's cells --------------------------------------------- */

enum ms_rc cmp__item_make(const struct cmp__side *s, uint32_t row, enum probe_mode mode,
                          struct cmp_view *v, struct cmp_item *item, struct ms_err *err);
/* The leaf that a row shows, and its statistics as far as they are numbers. */
void cmp__item_leaf(const struct cmp__side *s, uint32_t row, struct probe_leaf *leaf);
void cmp__item_numbers(const struct cmp__side *s, uint32_t row, const struct probe_leaf *leaf,
                       struct probe_num stat[PROBE_STATS]);
/* Write whole numbers of these columns as floats. */
enum ms_rc cmp__item_show_floats(struct cmp_view *v, struct cmp_item *item,
                                 const bool as_float[PROBE_STATS], struct ms_err *err);
/* Class and value of a leaf's statistic. */
struct cmp_value cmp__value_of(const struct probe_num *n);
extern const struct cmp_item cmp__item_none;

/* Python's str() and repr() of JSON values. */
void cmp__py_str(struct ms_buf *out, struct ms_str json, struct ms_buf *scratch);
void cmp__py_repr_text(struct ms_buf *out, struct ms_str text);

/* ---- mapping: the official mapping files -------------------------------- */

struct cmp__pairs { /* key: value, in file order */
    struct ms_map keys;
    MS_VEC(struct ms_str) values;
    struct ms_arena *arena;
};
struct cmp__api_rule { /* one entry of an api mapping */
    struct ms_str ms, pt;
    struct cmp__index_list {
        MS_VEC(struct ms_str) ms, pt;
    } part[4]; /* args, output, parameters, parameters_grad */
    bool valid;
};
struct cmp__api_rules {
    MS_VEC(struct cmp__api_rule) list;
    struct ms_arena *arena;
};
struct cmp__layers { /* class: { key: value } */
    struct ms_map classes;
    MS_VEC(struct cmp__pairs) maps; /* by class; their arena is the one below */
    struct ms_arena *arena;
};
enum ms_rc cmp__pairs_read(struct cmp__pairs *p, const char *path, struct ms_err *err);
enum ms_rc cmp__pairs_parse(struct cmp__pairs *p, const char *name, struct ms_str text,
                            struct ms_err *err);
void cmp__pairs_free(struct cmp__pairs *p);
enum ms_rc cmp__api_rules_read(struct cmp__api_rules *r, const char *path, struct ms_err *err);
enum ms_rc cmp__api_rules_parse(struct cmp__api_rules *r, const char *name, struct ms_str text,
                                struct ms_err *err);
void cmp__api_rules_free(struct cmp__api_rules *r);
enum ms_rc cmp__layers_new(struct cmp__layers *l, struct ms_err *err);
enum ms_rc cmp__layers_put(struct cmp__layers *l, struct ms_str cls, struct ms_str key,
                           struct ms_str value, struct ms_err *err);
enum ms_rc cmp__layers_read(struct cmp__layers *l, const char *path, struct ms_err *err);
enum ms_rc cmp__layers_parse(struct cmp__layers *l, const char *name, struct ms_str text,
                             struct ms_err *err);
void cmp__layers_free(struct cmp__layers *l);

/* The official table of MindSpore names and their PyTorch twins, sorted by ms. */
struct cmp__api_twin {
    const char *ms, *pt;
};
extern const struct cmp__api_twin cmp__api_twins[];
extern const size_t cmp__api_twin_count;

/* ---- align -------------------------------------------------------------- */

struct cmp__pair {
    uint32_t t, b; /* rows, MS_MAP_NONE: none */
};
struct cmp__fold { /* another row of the pair's side that has parts; in order of pairs */
    uint32_t pair, row;
};
struct cmp__group {
    uint32_t first; /* pair */
};
struct cmp__place { /* of a row of the table */
    uint32_t pair;  /* whose verdict stands there */
    uint32_t first; /* place of the first verdict of its op */
};

struct cmp__factors; /* compare/multiply.h */

struct cmp {
    struct cmp_conf conf;
    enum probe_mode mode;
    bool merged;             /* ranks that were put together: shapes are those of their parts */
    bool is_graph;           /* its rows are those of nodes that met, not of a table */
    bool cross;              /* the two frameworks name dtypes differently */
    bool whole[PROBE_STATS]; /* columns whose differences are whole numbers */
    struct cmp__side t, b;
    struct probe_stacks stacks;
    bool has_stack;
    struct cmp__pairs row_map;        /* -dm, or what -lm comes to */
    MS_VEC(struct cmp_pairing) named; /* operators that -lm itself names, forward */
    struct cmp__factors *factors;     /* with --config */
    struct cmp_align *al;             /* NULL: rows are joined by name */
    struct probe_tree tree[2];        /* golden, target; of the alignment */
    bool has_tree[2];
    MS_VEC(struct cmp__pair) pairs;
    MS_VEC(struct cmp__fold) folds;     /* with --consistent_check */
    MS_VEC(struct cmp__place) places;   /* strictly with it: by pair */
    MS_VEC(struct cmp__group) groups;   /* one more than there are */
    MS_VEC(struct cmp_figures) figures; /* by pair; tensor mode */
    MS_VEC(double) noise; /* by golden row: how far a second run is from it; NaN: not known */
    MS_VEC(struct ms_str) problems;
    struct ms_arena *arena;
    uint64_t bytes_read;
    char *t_dir, *b_dir; /* where the dumps lie */
};

static inline bool cmp__strict(const struct cmp *c)
{
    return c->conf.compat != CMP_CUR;
}

static inline void cmp__progress(const struct cmp *c, const struct cmp_progress *p)
{
    if (c->conf.progress != NULL)
        c->conf.progress(c->conf.progress_ctx, p);
}
/* `groups` of c have been written. */
static inline void cmp__wrote(const struct cmp *c, size_t groups)
{
    size_t all = cmp_groups(c);
    const struct cmp_progress p = {.what = "writing",
                                   .share = all != 0 ? (double)groups / (double)all : 1,
                                   .amount = c->groups.p[groups].first};
    cmp__progress(c, &p);
}

/* How whole numbers of the statistics are written: first as each side has them, then, strictly, as
 * the official table has them, once rows have partners. */
void cmp__settle_sides(struct cmp *c);
enum ms_rc cmp__settle_table(struct cmp *c, struct ms_pool *pool, struct ms_err *err);
/* Strictly, are the types of a pair's rows too far apart for it? */
enum ms_rc cmp__is_parted(const struct cmp *c, struct cmp_view *v, uint32_t pair, bool *parted,
                          struct ms_err *err);
enum ms_rc cmp__align(struct cmp *c, struct ms_pool *pool, struct ms_err *err);
/* The alignment as a layer mapping; nothing where the modules are not known. */
enum ms_rc cmp__write_layers(const struct cmp *c, struct ms_buf *out, struct ms_err *err);
/* Expand a layer mapping into pairs of row names. */
enum ms_rc cmp__layer_pairs(struct cmp *c, struct cmp__pairs *out, struct ms_err *err);
/* List names of a -dm file that neither dump has. */
enum ms_rc cmp__check_names(struct cmp *c, struct ms_err *err);
/* How far the sides of a row are apart: what a second run would call noise; NaN: not known. */
double cmp__row_noise(const struct cmp *c, const struct cmp_row *row);
/* Fill c->noise from a calibration; of another file's text. */
enum ms_rc cmp__read_noise(struct cmp *c, struct ms_err *err);
enum ms_rc cmp__parse_noise(struct cmp *c, const char *name, struct ms_str text,
                            struct ms_err *err);
/* Fill c->noise from the second run. */
enum ms_rc cmp__take_noise(struct cmp *c, struct ms_pool *pool, struct ms_err *err);
/* A line for cmp_problems. */
enum ms_rc cmp__problem(struct cmp *c, struct ms_err *err, const char *fmt, ...) MS_PRINTF(3, 4);

/* ---- measure and judge -------------------------------------------------- */

/* strict: with the numbers as the official tool reads them. */
enum ms_rc cmp__measure_stats(const struct cmp *c, struct cmp_view *v, struct cmp_row *row,
                              struct ms_err *err);
/* The same in the words of 1.x. */
enum ms_rc cmp__measure_stats_old(struct cmp_view *v, struct cmp_row *row, struct ms_err *err);
/* A number, infinity, or NaN for what is none. */
double cmp__value_number(const struct cmp_value *x);
/* Two tensors that belong to no comparison; of conf, compat and ext count. */
struct probe_tensor;
enum ms_rc cmp__measure_two(const struct cmp_conf *conf, const struct probe_tensor *n,
                            const struct probe_tensor *b, struct cmp_figures *fig,
                            struct ms_err *err);
/* As Python's "%.12f" and back. */
double cmp__round12(double x);
enum ms_rc cmp__measure_tensors(struct cmp *c, struct ms_pool *pool, struct ms_err *err);
void cmp__judge(const struct cmp *c, struct cmp_view *v);
/* Make and measure another row of the view. */
enum ms_rc cmp__view_row(const struct cmp *c, struct cmp_view *v, uint32_t pair,
                         struct ms_err *err);
bool cmp__shows_stack(const struct cmp *c, const struct cmp_view *v, const struct cmp_row *row);
/* A data file of the dump: in dir, or where the dump says that it was written. */
enum ms_rc cmp__open_tensor(const struct probe_dump *d, const char *dir, struct ms_str name,
                            struct probe_tensor *t, struct ms_err *err);
/* How many rows of a target's output were written, where its operator leaves the rest as it was;
 * UINT64_MAX: all. */
uint64_t cmp__used_rows(const struct cmp *c, uint32_t t_row);
/* The name of a row's data file; empty: it has none. */
struct ms_str cmp__data_name(const struct cmp__side *s, uint32_t row);
/* Elements of a shape as it is written, "[2, 3]" or "(2, 3)". */
uint64_t cmp__shape_count(struct ms_str shape);
/* Shapes are equal but for axes of length 1. */
bool cmp__same_shape(const struct probe_tensor *a, const struct probe_tensor *b);

/* Copy what is in the view's scratch into its arena and clear the scratch. */
enum ms_rc cmp__keep(struct cmp_view *v, struct ms_str *out, struct ms_err *err);

#endif
