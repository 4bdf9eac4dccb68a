/* SPDX-License-Identifier: MIT
 *
 * findings: see the header.
 */
#include "mstx/conclude/findings.h"

#include "mstx/conclude/finding_kinds.h"
#include "mstx/format/note_kinds.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"
#include "probe/base/store.h"

#include <inttypes.h>
#include <stdio.h>

const char *mstx_severity_text(enum mstx_severity s)
{
    static const char *const text[] = {"info", "warning", "error"};
    return text[s];
}

struct mstx_finding *mstx__finding_add(mstx_findings *to, const char *kind,
                                       const struct ms_message_kind *message,
                                       enum mstx_severity severity, int32_t rank, double value)
{
    ms_assert(mstx__finding_kind(ms_str_of(kind)) != NULL);
    return mstx__finding_begin(to, kind, message, severity, rank, value);
}

struct mstx_finding *mstx__finding_begin(mstx_findings *to, const char *kind,
                                         const struct ms_message_kind *message,
                                         enum mstx_severity severity, int32_t rank, double value)
{
    struct mstx_finding *f = ms_vec_push(to);
    if (f == NULL)
        return NULL;
    *f = (struct mstx_finding){.kind = kind,
                               .severity = severity,
                               .rank = rank,
                               .first_step = -1,
                               .last_step = -1,
                               .value = value};
    ms_message_begin(&f->message, message);
    return f;
}

/* ---- messages --------------------------------------------------------------- */

void mstx__message_process(struct ms_message *m, int32_t rank, int64_t pid, struct ms_str name)
{
    enum { NAME_SHOWN = 32 };
    ms_message_i64(m, "pid", pid);
    if (rank >= 0)
        ms_message_i64(m, "rank", rank);
    else if (name.n != 0)
        ms_message_str(m, "name", ms_str_sub(name, 0, NAME_SHOWN));
}

static const struct ms_message_kind *message_kind(struct ms_str name)
{
    static const struct ms_message_kind *const list[] = {
#define NOTE(name, args)    &mstx_note_##name,
#define FINDING(name, args) &mstx_say_##name,
        MSTX_NOTE_KINDS(NOTE) MSTX_FINDING_KINDS(FINDING)
#undef NOTE
#undef FINDING
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (ms_str_is(name, list[i]->name))
            return list[i];
    }
    return NULL;
}

void mstx__finding_set_message(struct mstx_finding *f, struct ms_stored_message message,
                               struct ms_str sentence)
{
    const struct ms_message_kind *kind = message_kind(message.kind);
    if (kind != NULL && ms_message_restore(&f->message, kind, message.args))
        return;
    ms_message_begin(&f->message, &mstx_say_sentence);
    ms_message_str(&f->message, "text", sentence);
}

/* ---- kinds ------------------------------------------------------------------ */

/* The kinds, borrowed by findings.  Kinds about all ranks together come first, in the order in
 * which they are shown. */
static const char *const kinds[] = {
    "mismatch", "hang",     "straggler", "fail_slow", "slow_link",  "absent", "drop",
    "killed",   "overhead", "problem",   "slow_step", "unfinished", "balance"};
enum { KINDS = sizeof kinds / sizeof *kinds, CLUSTER_KINDS = 5 };

const char *mstx__finding_kind(struct ms_str text)
{
    size_t i = 0;
    while (i < KINDS && !ms_str_is(text, kinds[i]))
        i++;
    return i < KINDS ? kinds[i] : NULL;
}

/* Returns the index of a kind among those about all ranks together, CLUSTER_KINDS for other
 * kinds. */
static size_t kind_order(const char *kind)
{
    size_t i = 0;
    while (i < CLUSTER_KINDS && strcmp(kinds[i], kind) != 0)
        i++;
    return i;
}

bool mstx__finding_is_of_cluster(const char *kind)
{
    return kind_order(kind) < CLUSTER_KINDS;
}

/* Tells whether a finding is concluded from tables of the cluster analysis.  Not all hangs are:
 * some are rows of the table hangs only, so a hang counts only when its time is known. */
static bool is_of_all_ranks(const char *kind)
{
    return strcmp(kind, "absent") == 0 ||
           (mstx__finding_is_of_cluster(kind) && strcmp(kind, "hang") != 0);
}

/* Sets the query that shows the rows from which a finding was concluded. */
static void put_evidence(struct mstx_finding *f)
{
    char *to = f->evidence;
    const size_t n = sizeof f->evidence;
    if (f->first_step >= 0 && f->rank >= 0)
        snprintf(to, n,
                 "SELECT * FROM rank_steps WHERE step BETWEEN %" PRId64 " AND %" PRId64
                 " ORDER BY step, rank = %" PRId32 " DESC",
                 f->first_step, f->last_step, f->rank);
    else if (strcmp(f->kind, "mismatch") == 0)
        snprintf(to, n, "SELECT * FROM joins WHERE agrees = 0");
    else if (strcmp(f->kind, "hang") == 0 || strcmp(f->kind, "absent") == 0)
        snprintf(to, n, "SELECT * FROM joins WHERE missing > 0");
    else if (ms_str_is(ms_message_stored(&f->message).kind, "slow_connection"))
        snprintf(to, n, "SELECT rank, name FROM events WHERE domain = '" MSTX_SOCKET_DOMAIN "'");
    else if (strcmp(f->kind, "slow_link") == 0)
        snprintf(to, n, "SELECT * FROM links ORDER BY z DESC");
}

/* ---- order ------------------------------------------------------------------ */

static int worst_first(const void *pa, const void *pb)
{
    const struct mstx_finding *a = pa, *b = pb;
    if (a->severity != b->severity)
        return a->severity > b->severity ? -1 : 1;
    const size_t kind_a = kind_order(a->kind), kind_b = kind_order(b->kind);
    int order = kind_a != kind_b ? (kind_a > kind_b) - (kind_a < kind_b) : strcmp(a->kind, b->kind);
    if (order != 0)
        return order;
    if (a->value != b->value)
        return a->value > b->value ? -1 : 1;
    return a->rank != b->rank ? (a->rank > b->rank) - (a->rank < b->rank)
                              : strcmp(a->message.args, b->message.args);
}

const struct mstx_finding *mstx_findings_headline(const mstx_findings *v)
{
    const struct mstx_finding *f = v->n != 0 ? v->p : NULL;
    return f != NULL && kind_order(f->kind) < CLUSTER_KINDS ? f : NULL;
}

void mstx__findings_sort(mstx_findings *v)
{
    ms_vec_sort(v, worst_first);
}

/* ---- the table -------------------------------------------------------------- */

static void bind_if(struct ms_stmt *st, int i, int64_t v)
{
    if (v >= 0)
        ms_stmt_i64(st, i, v);
    else
        ms_stmt_null(st, i);
}

/* Stores a finding.  from_ns and to_ns are NULL when steps and rank give the time. */
static enum ms_rc save_finding(const struct mstx_finding *f, struct ms_stmt *st,
                               struct ms_buf *text, struct ms_err *err)
{
    const struct ms_stored_message message = ms_message_stored(&f->message);
    ms_assert(ms_message_is_whole(&f->message));
    ms_buf_clear(text);
    ms_message_speak(message, text);
    MS_TRY(ms_buf_check(text, err));
    ms_stmt_str(st, 1, ms_str_of(f->kind));
    ms_stmt_str(st, 2, ms_str_of(mstx_severity_text(f->severity)));
    bind_if(st, 3, f->rank);
    bind_if(st, 4, f->first_step);
    bind_if(st, 5, f->last_step);
    ms_stmt_f64(st, 6, f->value);
    ms_stmt_str(st, 7, ms_buf_slice(text));
    ms_stmt_str(st, 8, message.kind);
    ms_stmt_str(st, 9, message.args);
    bind_if(st, 10, f->from_ns != 0 ? f->from_ns : -1);
    bind_if(st, 11, f->from_ns != 0 ? f->to_ns : -1);
    return ms_stmt_run(st, err);
}

enum ms_rc mstx__findings_save(const mstx_findings *v, struct ms_store *s, struct ms_err *err)
{
    struct ms_stmt *st;
    struct ms_buf text = {.max = 4 * MS_MESSAGE_MAX};
    MS_TRY(ms_store_prepare(s, &st,
                            "INSERT INTO findings(kind, severity, ranks, first_step, last_step,"
                            " value, text, message, args, from_ns, to_ns)"
                            " VALUES(?,?,?,?,?,?,?,?,?,?,?)",
                            err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < v->n && rc == MS_OK; i++)
        rc = save_finding(&v->p[i], st, &text, err);
    ms_buf_free(&text);
    ms_stmt_free(st);
    return rc;
}

static enum mstx_severity severity_of(struct ms_str text)
{
    return ms_str_is(text, "error")     ? MSTX_ERROR_FINDING
           : ms_str_is(text, "warning") ? MSTX_WARNING_FINDING
                                        : MSTX_INFO_FINDING;
}

static int64_t known_or_minus_1(struct ms_stmt *st, int column)
{
    return ms_stmt_is_null(st, column) ? -1 : ms_stmt_get_i64(st, column);
}

static enum ms_rc read_finding(mstx_findings *v, struct ms_stmt *st, struct ms_err *err)
{
    const struct ms_str kind = ms_stmt_get_str(st, 0);
    const char *known = mstx__finding_kind(kind);
    if (known == NULL)
        return ms_fail(err, MS_E_FORMAT,
                       "run.db has a finding of the unknown kind '%.*s'; import the capture again",
                       MS_STR_ARG(kind));
    struct mstx_finding *f =
        mstx__finding_add(v, known, &mstx_say_sentence, severity_of(ms_stmt_get_str(st, 1)),
                          (int32_t)known_or_minus_1(st, 2), ms_stmt_get_f64(st, 5));
    if (f == NULL)
        return ms_no_memory(err);
    f->first_step = known_or_minus_1(st, 3);
    f->last_step = known_or_minus_1(st, 4);
    mstx__finding_set_message(
        f, (struct ms_stored_message){ms_stmt_get_str(st, 7), ms_stmt_get_str(st, 8)},
        ms_stmt_get_str(st, 6));
    f->from_ns = ms_stmt_get_i64(st, 9);
    f->to_ns = ms_stmt_get_i64(st, 10);
    if (f->from_ns != 0 || is_of_all_ranks(f->kind))
        put_evidence(f);
    return MS_OK;
}

/* The query for findings; `message` is the columns of message and time, or constants when a
 * database of an older version lacks them. */
#define FINDINGS(message)                                                                          \
    "SELECT kind, severity, ranks, first_step, last_step, value, text, " message                   \
    " FROM findings ORDER BY id"

enum ms_rc mstx_findings_read(struct mstx_tl *tl, mstx_findings *v, struct ms_err *err)
{
    struct ms_stmt *st;
    *v = (mstx_findings){0};
    struct ms_store *s = mstx_tl_store(tl);
    struct ms_err newer = {0};
    enum ms_rc rc = ms_store_prepare(s, &st, FINDINGS("message, args, from_ns, to_ns"), &newer);
    if (rc == MS_E_NOMEM)
        return ms_no_memory(err);
    if (rc != MS_OK)
        MS_TRY(ms_store_prepare(s, &st, FINDINGS("'', '', 0, 0"), err));
    rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = read_finding(v, st, err);
    ms_stmt_free(st);
    if (rc != MS_OK)
        ms_vec_free(v);
    return rc;
}
