/* SPDX-License-Identifier: MIT
 *
 * spread: compares the pairs of ranks with several processes.
 */
#include "compare/run/spread.h"
#include "compare/run/report.h"
#include "probe/base/jread.h"

#include <sys/stat.h>

/* ---- out -------------------------------------------------------------------- */

static void put_number(struct ms_buf *b, uint64_t v)
{
    ms_buf_put(b, &v, sizeof v);
}

static void put_text(struct ms_buf *b, const char *text)
{
    size_t n = text != NULL ? strlen(text) + 1 : 0;
    put_number(b, n);
    if (n != 0)
        ms_buf_put(b, text, n);
}

static void put_texts(struct ms_buf *b, char *const *list, size_t n)
{
    put_number(b, n);
    for (size_t i = 0; i < n; i++)
        put_text(b, list[i]);
}

static void put_told(struct ms_buf *b, const struct cmp_reported_row *t)
{
    put_text(b, t->row);
    put_text(b, t->op);
    put_text(b, t->golden_op);
    put_text(b, t->text);
    ms_buf_put(b, &t->score, sizeof t->score);
}

void cmp_report_pack(const struct cmp_result *r, struct ms_buf *b)
{
    ms_buf_put(b, &r->err, sizeof r->err);
    ms_buf_put(b, &r->sum, sizeof r->sum);
    put_texts(b, r->files.list.p, r->files.list.n);
    put_told(b, &r->first);
    put_number(b, r->nworst);
    for (unsigned i = 0; i < r->nworst; i++)
        put_told(b, &r->worst[i]);
    put_texts(b, r->problems.p, r->problems.n);
    put_number(b, r->json_bytes);
    put_number(b, r->tensor_bytes);
    put_number(b, r->done);
    put_number(b, r->trail.segments);
    put_number(b, r->trail.steps.n);
    if (r->trail.steps.n != 0)
        ms_buf_put(b, r->trail.steps.p, r->trail.steps.n * sizeof *r->trail.steps.p);
}

/* ---- in ----------------------------------------------------------------------- */

struct taker {
    struct ms_str rest;
    struct ms_err *err;
    enum ms_rc rc;
};

static void take_bytes(struct taker *t, void *into, size_t n)
{
    if (t->rc == MS_OK && n > t->rest.n)
        t->rc = ms_fail(t->err, MS_E_FORMAT, "a result from another process is cut short");
    if (t->rc != MS_OK || n == 0)
        return;
    memcpy(into, t->rest.p, n);
    t->rest = ms_str_sub(t->rest, (uint32_t)n, t->rest.n);
}

static uint64_t take_number(struct taker *t)
{
    uint64_t v = 0;
    take_bytes(t, &v, sizeof v);
    return v;
}

static char *take_text(struct taker *t)
{
    uint64_t n = take_number(t);
    if (t->rc != MS_OK || n == 0)
        return NULL;
    char *text = n <= t->rest.n ? ms_alloc((size_t)n) : NULL;
    if (text == NULL && n <= t->rest.n)
        t->rc = ms_no_memory(t->err);
    take_bytes(t, text, (size_t)n);
    return text;
}

static void take_told(struct taker *t, struct cmp_reported_row *told)
{
    told->row = take_text(t);
    told->op = take_text(t);
    told->golden_op = take_text(t);
    told->text = take_text(t);
    take_bytes(t, &told->score, sizeof told->score);
}

static void take_problems(struct taker *t, struct cmp_result *r)
{
    for (uint64_t n = take_number(t); n != 0 && t->rc == MS_OK; n--) {
        char **slot = ms_vec_push(&r->problems);
        if (slot == NULL)
            t->rc = ms_no_memory(t->err);
        else
            *slot = take_text(t);
    }
}

static void take_files(struct taker *t, struct cmp_result *r)
{
    for (uint64_t n = take_number(t); n != 0 && t->rc == MS_OK; n--) {
        char **slot = ms_vec_push(&r->files.list);
        if (slot == NULL)
            t->rc = ms_no_memory(t->err);
        else
            *slot = take_text(t);
    }
}

static void take_trail(struct taker *t, struct cmp_trail *trail)
{
    trail->segments = (uint32_t)take_number(t);
    uint64_t n = take_number(t);
    if (t->rc != MS_OK || n == 0)
        return;
    if (n > t->rest.n / sizeof *trail->steps.p)
        t->rc = ms_fail(t->err, MS_E_FORMAT, "a result from another process is cut short");
    else if (!ms_vec_reserve(&trail->steps, (size_t)n))
        t->rc = ms_no_memory(t->err);
    if (t->rc != MS_OK)
        return;
    take_bytes(t, trail->steps.p, (size_t)n * sizeof *trail->steps.p);
    trail->steps.n = (size_t)n;
}

enum ms_rc cmp_report_unpack(struct cmp_result *r, struct ms_str packed, struct ms_err *err)
{
    struct taker t = {.rest = packed, .err = err};
    take_bytes(&t, &r->err, sizeof r->err);
    take_bytes(&t, &r->sum, sizeof r->sum);
    take_files(&t, r);
    take_told(&t, &r->first);
    uint64_t nworst = take_number(&t);
    for (; r->nworst < nworst && r->nworst < CMP_WORST && t.rc == MS_OK; r->nworst++)
        take_told(&t, &r->worst[r->nworst]);
    take_problems(&t, r);
    r->json_bytes = take_number(&t);
    r->tensor_bytes = take_number(&t);
    r->done = take_number(&t) != 0;
    take_trail(&t, &r->trail);
    return t.rc;
}

/* ---- spreading -------------------------------------------------------------- */

#define MESSAGE_MAX ((size_t)1 << 36)
#define DUMP_MAX    ((size_t)1 << 40)

/* ---- ownership ----------------------------------------------------------------- */

/* Tells whether a dump is of task tensor. The task precedes `data`, so that little of the file is
 * read. */
static bool holds_tensors(const char *path)
{
    struct ms_file f;
    struct ms_jread r;
    bool tensors = false, found = false;
    if (ms_file_map(&f, path, DUMP_MAX, NULL) != MS_OK)
        return false;
    ms_jread_init(&r, f.p, f.n, 0);
    if (ms_jread_next(&r) == MS_J_OBJ) {
        while (!found && ms_jread_next(&r) == MS_J_KEY) {
            found = ms_str_is(r.text, "task");
            enum ms_jtok tok = ms_jread_next(&r);
            tensors = found && tok == MS_J_STR && ms_str_is(r.text, "tensor");
            if (ms_jread_skip(&r, tok) == MS_J_ERR)
                break;
        }
    }
    ms_file_unmap(&f);
    return tensors;
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* Assigns couples in order, each to the process with the least load so far. Tensor dumps are owned
 * by process 0, which needs their figures to find the suspects. */
static void hand_out(struct cmp_spread *s, const struct cmp_ranks *ranks, uint64_t *load)
{
    for (size_t i = 0; i < s->n; i++) {
        unsigned least = 0;
        for (unsigned k = 1; k < ms_par_size(s->par); k++)
            least = load[k] < load[least] ? k : least;
        s->shared[i] = holds_tensors(ranks->list.p[i].t->json);
        s->owner[i] = s->shared[i] ? 0 : least;
        load[s->owner[i]] +=
            size_of(ranks->list.p[i].t->json) + size_of(ranks->list.p[i].b->json) + 1;
    }
}

static uint64_t fingerprint_of(const struct cmp_ranks *ranks)
{
    uint64_t hash = ranks->list.n;
    for (size_t i = 0; i < ranks->list.n; i++)
        hash = hash * 31 + ms_str_hash(ms_str_of(ranks->list.p[i].t->json)) * 7 +
               ms_str_hash(ms_str_of(ranks->list.p[i].b->json));
    return hash;
}

/* Checks that every process has couples and that all have the same ones. */
static enum ms_rc agree(struct cmp_spread *s, bool ok, const struct cmp_ranks *ranks,
                        struct ms_err *err)
{
    uint64_t here = ok ? fingerprint_of(ranks) : 0, first = here;
    bool all;
    bool first_ok = ok;
    MS_TRY(ms_par_agree(s->par, ok, &all, err));
    MS_TRY(ms_par_share(s->par, &first_ok, sizeof first_ok, err));
    s->quiet = ms_par_rank(s->par) != 0 && (ok || !first_ok);
    if (!all)
        return ms_fail(err, MS_E_IO, "another process could not begin");
    MS_TRY(ms_par_share(s->par, &first, sizeof first, err));
    MS_TRY(ms_par_agree(s->par, here == first, &all, err));
    return all ? MS_OK
               : ms_fail(err, MS_E_IO,
                         "the processes do not see the same dumps; are the paths "
                         "on a file system that they share?");
}

/* Makes process 0's assignment that of all processes, since it depends on the files. */
static enum ms_rc settle(struct cmp_spread *s, const struct cmp_ranks *ranks, struct ms_err *err)
{
    s->owner = ms_calloc(s->n + 1, sizeof *s->owner);
    s->shared = ms_calloc(s->n + 1, sizeof *s->shared);
    uint64_t *load = ms_calloc(ms_par_size(s->par), sizeof *load);
    enum ms_rc rc = MS_OK;
    if (s->owner == NULL || s->shared == NULL || load == NULL)
        rc = ms_no_memory(err);
    else if (ms_par_size(s->par) > 1)
        hand_out(s, ranks, load);
    ms_free(load);
    if (rc == MS_OK)
        rc = ms_par_share(s->par, s->owner, s->n * sizeof *s->owner, err);
    return rc == MS_OK ? ms_par_share(s->par, s->shared, s->n * sizeof *s->shared, err) : rc;
}

enum ms_rc cmp_spread_init(struct cmp_spread *s, struct ms_par *par, bool ok,
                           const struct cmp_ranks *ranks, struct ms_err *err)
{
    *s = (struct cmp_spread){.par = par, .n = ranks->list.n};
    MS_TRY(agree(s, ok, ranks, err));
    enum ms_rc rc = settle(s, ranks, err);
    if (rc != MS_OK)
        cmp_spread_free(s);
    return rc;
}

void cmp_spread_free(struct cmp_spread *s)
{
    ms_free(s->owner);
    ms_free(s->shared);
    *s = (struct cmp_spread){0};
}

bool cmp_spread_owns(const struct cmp_spread *s, size_t couple)
{
    return s->owner[couple] == ms_par_rank(s->par);
}

bool cmp_spread_joins(const struct cmp_spread *s, size_t couple)
{
    return s->shared[couple] || cmp_spread_owns(s, couple);
}

/* ---- tensors --------------------------------------------------------------------- */

/* Begins a message: an ms_err, followed by chunks when it is MS_OK. */
static void put_outcome(struct ms_buf *b, const struct ms_err *e)
{
    ms_buf_clear(b);
    ms_buf_put(b, e, sizeof *e);
}

/* Measures this process's part and writes the result into a message. */
static void measure_here(const struct cmp_spread *s, struct cmp *c, const struct ms_err *opened,
                         struct ms_pool *pool, struct ms_buf *message)
{
    struct ms_err e = {0};
    put_outcome(message, opened);
    if (c == NULL)
        return;
    if (cmp_measure_part(c, pool, ms_par_rank(s->par), ms_par_size(s->par), message, &e) != MS_OK)
        put_outcome(message, &e);
}

static enum ms_rc open_message(const struct ms_buf *message, struct ms_str *chunks,
                               struct ms_err *err)
{
    struct ms_err e;
    if (message->bad != MS_OK)
        return ms_buf_check(message, err);
    if (message->n < sizeof e)
        return ms_fail(err, MS_E_FORMAT, "a message from another process is cut short");
    memcpy(&e, message->p, sizeof e);
    *chunks = ms_str_sub(ms_buf_slice(message), sizeof e, (uint32_t)message->n);
    if (e.rc != MS_OK)
        *err = e;
    return e.rc;
}

/* Receives the messages of all processes even after a failure, because those of the next couple
 * follow them. */
static enum ms_rc hear_all(const struct cmp_spread *s, struct ms_buf *messages, struct ms_err *err)
{
    for (unsigned i = 0, who; i < ms_par_size(s->par); i++) {
        if (i != ms_par_rank(s->par))
            MS_TRY(ms_par_recv(s->par, (int)i, &messages[i], &who, err));
    }
    return MS_OK;
}

static enum ms_rc join(const struct cmp_spread *s, struct cmp *c, const struct ms_buf *messages,
                       struct ms_str *chunks, struct ms_err *err)
{
    unsigned own = ms_par_rank(s->par);
    MS_TRY(open_message(&messages[own], &chunks[own], err));
    for (unsigned i = 0; i < ms_par_size(s->par); i++)
        MS_TRY(open_message(&messages[i], &chunks[i], err));
    return cmp_measure_join(c, chunks, ms_par_size(s->par), err);
}

static enum ms_rc compare_own_ranks(const struct cmp_spread *s, struct cmp *c,
                                    struct ms_buf *messages, struct ms_err *err)
{
    struct ms_str *chunks = ms_calloc(ms_par_size(s->par), sizeof *chunks);
    enum ms_rc rc = hear_all(s, messages, err);
    if (rc == MS_OK)
        rc = chunks != NULL ? join(s, c, messages, chunks, err) : ms_no_memory(err);
    ms_free(chunks);
    return rc;
}

static enum ms_rc take_part(const struct cmp_spread *s, size_t couple, struct cmp *c,
                            const struct ms_err *opened, struct ms_pool *pool, struct ms_err *err)
{
    unsigned size = ms_par_size(s->par), rank = ms_par_rank(s->par);
    struct ms_buf *messages = ms_calloc(size, sizeof *messages);
    if (messages == NULL)
        return ms_no_memory(err);
    for (unsigned i = 0; i < size; i++)
        messages[i].max = MESSAGE_MAX;
    measure_here(s, c, opened, pool, &messages[rank]);
    enum ms_rc rc =
        cmp_spread_owns(s, couple)
            ? compare_own_ranks(s, c, messages, err)
            : ms_par_send(s->par, s->owner[couple], messages[rank].p, messages[rank].n, err);
    for (unsigned i = 0; i < size; i++)
        ms_buf_free(&messages[i]);
    ms_free(messages);
    return rc;
}

enum ms_rc cmp_spread_measure(const struct cmp_spread *s, size_t couple, struct cmp *c,
                              const struct ms_err *opened, struct ms_pool *pool, struct ms_err *err)
{
    if (s->shared[couple])
        return take_part(s, couple, c, opened, pool, err);
    if (c == NULL) {
        *err = *opened;
        return opened->rc;
    }
    return cmp_measure(c, pool, err);
}

/* ---- results ------------------------------------------------------------------------- */

static enum ms_rc send_result(const struct cmp_spread *s, const struct cmp_result *r,
                              struct ms_err *err)
{
    struct ms_buf packed = {.max = MESSAGE_MAX};
    cmp_report_pack(r, &packed);
    enum ms_rc rc = ms_buf_check(&packed, err);
    if (rc == MS_OK)
        rc = ms_par_send(s->par, 0, packed.p, packed.n, err);
    ms_buf_free(&packed);
    return rc;
}

static enum ms_rc receive_result(const struct cmp_spread *s, unsigned from, struct cmp_result *r,
                                 struct ms_err *err)
{
    struct ms_buf packed = {.max = MESSAGE_MAX};
    unsigned who;
    enum ms_rc rc = ms_par_recv(s->par, (int)from, &packed, &who, err);
    if (rc == MS_OK)
        rc = cmp_report_unpack(r, ms_buf_slice(&packed), err);
    ms_buf_free(&packed);
    return rc;
}

enum ms_rc cmp_spread_gather(const struct cmp_spread *s, struct cmp_report *report,
                             struct ms_err *err)
{
    unsigned rank = ms_par_rank(s->par);
    for (size_t i = 0; i < s->n; i++) {
        if (s->owner[i] == 0)
            continue;
        if (rank == 0)
            MS_TRY(receive_result(s, s->owner[i], report->list.p[i], err));
        else if (s->owner[i] == rank)
            MS_TRY(send_result(s, report->list.p[i], err));
    }
    return MS_OK;
}
