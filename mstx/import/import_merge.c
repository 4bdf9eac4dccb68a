/* SPDX-License-Identifier: MIT
 *
 * import_merge: divides an import among the processes of an mpirun: assigns captured processes to
 * importing ones, exchanges what they found in the first pass, and merges their databases in
 * process 0.
 *
 * Texts that were known before the exchange have the same ids in every process.  Texts first met
 * while records are read get their ids when process 0 copies the parts in order.  That is the order
 * in which a single process would have met them, so the database does not depend on the number of
 * processes.
 */
#include "mstx/import/import_int.h"

#include "mstx/rundb/pack.h"
#include "mstx/rundb/packed_tables.h"

#include "probe/base/assert.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

/* ---- dividing the files --------------------------------------------------------- */

/* Shares of all work that process 0 alone has, because it copies what the others wrote and draws
 * the conclusions.  Chosen by hand on one capture of 1,024 ranks with 20,000 records each, so that
 * the two processes of a summary ended together (1.25 and 1.22 s); no benchmark repeats this. */
static const double SUMMARY_COPY = 0.13, WHOLE_COPY = 0.30;

double mstx__import_alone(const struct mstx_import *im)
{
    const double k = ms_par_size(im->par);
    return (im->how->summary ? SUMMARY_COPY : WHOLE_COPY) * (k - 1) / k;
}

static uint64_t bytes_of(const char *dir)
{
    struct ms_dir list;
    struct stat st;
    uint64_t sum = 4096; /* the cost of opening the directory */
    if (ms_dir_list(&list, dir, NULL) != MS_OK)
        return sum;
    for (size_t i = 0; i < list.names.n; i++) {
        char *path = ms_path_join(dir, list.names.p[i].p);
        if (path != NULL && stat(path, &st) == 0 && S_ISREG(st.st_mode))
            sum += (uint64_t)st.st_size;
        ms_free(path);
    }
    ms_dir_free(&list);
    return sum;
}

/* Divides the list into ranges of equal bytes, one for each process; the range of process 0 is
 * smaller. */
static void put_limits(struct mstx_import *im, struct ms_buf *b)
{
    const unsigned k = ms_par_size(im->par);
    uint64_t all = 0, sum = 0;
    const double alone = mstx__import_alone(im);
    const double share = k > 1 ? (1 + alone) / k : 1;
    uint64_t at = 0;
    for (size_t i = 0; k > 1 && i < im->procs.list.n; i++)
        all += bytes_of(im->procs.list.p[i].dir);
    for (unsigned p = 1; p < k; p++) {
        double until = share * p - alone;
        until = until > 0 ? until : 0;
        while (at < im->procs.list.n) {
            const uint64_t next = bytes_of(im->procs.list.p[at].dir);
            if ((double)sum + (double)next / 2 > until * (double)all)
                break;
            sum += next;
            at++;
        }
        ms_put_bytes(b, &at, sizeof at);
    }
    at = im->procs.list.n;
    ms_put_bytes(b, &at, sizeof at);
}

static enum ms_rc find_processes(struct mstx_import *im, const char *dir, struct ms_buf *b,
                                 struct ms_err *err)
{
    MS_TRY(mstx__procs_find(&im->procs, dir, &im->problems, err));
    if (im->procs.list.n == 0)
        return ms_fail(err, MS_E_NOTFOUND,
                       "%s: holds no capture; record one with 'msprobe run -o %s -- PROGRAM'", dir,
                       dir);
    put_limits(im, b);
    for (size_t i = 0; i < im->procs.list.n; i++)
        ms_put_text(b, ms_str_of(im->procs.list.p[i].dir));
    return ms_buf_check(b, err);
}

static enum ms_rc take_list(struct mstx_import *im, struct ms_taker *t, struct ms_err *err)
{
    while (t->n != 0 && !t->bad) {
        struct mstx_proc *p = ms_vec_push(&im->procs.list);
        if (p == NULL)
            return ms_no_memory(err);
        *p = (struct mstx_proc){.dir = ms_str_dup(ms_take_text(t))};
        if (p->dir == NULL)
            return ms_no_memory(err);
    }
    return MS_OK;
}

enum ms_rc mstx__import_divide(struct mstx_import *im, const char *dir, struct ms_err *err)
{
    struct ms_buf b = {.max = MS_SHARE_MAX};
    const bool is_first = ms_par_rank(im->par) == 0;
    enum ms_rc rc =
        ms_share_result(im->par, is_first ? find_processes(im, dir, &b, err) : MS_OK, err);
    if (rc == MS_OK)
        rc = ms_share_from_first(im->par, &b, err);
    struct ms_taker t = {b.p, b.n, false};
    for (unsigned i = 0; rc == MS_OK && i < ms_par_size(im->par); i++) {
        uint64_t end;
        ms_take_bytes(&t, &end, sizeof end);
        if (i < ms_par_rank(im->par))
            im->from = (size_t)end;
        if (i == ms_par_rank(im->par))
            im->to = (size_t)end;
    }
    if (rc == MS_OK && !is_first)
        rc = take_list(im, &t, err);
    ms_buf_free(&b);
    const size_t n = im->procs.list.n;
    if (rc == MS_OK && !ms_vec_reserve(&im->seen, n))
        rc = ms_no_memory(err);
    if (rc == MS_OK && n != 0)
        memset(im->seen.p, 0, n * sizeof *im->seen.p);
    im->seen.n = rc == MS_OK ? n : 0;
    return ms_share_result(im->par, rc, err);
}

/* ---- exchange after the first pass ---------------------------------------------------- */

static void put_learnt(const struct mstx_import *im, struct ms_buf *b)
{
    ms_assert(im->from <= im->to && im->to <= im->seen.n);
    const uint64_t n = im->to - im->from, texts = mstx__writer_texts(im->w);
    mstx__import_put_clocks(im, b);
    ms_put_bytes(b, &n, sizeof n);
    for (size_t i = im->from; i < im->to; i++) {
        ms_put_bytes(b, &im->seen.p[i].records, sizeof im->seen.p[i].records);
        ms_put_bytes(b, &im->seen.p[i].id, sizeof im->seen.p[i].id);
        ms_put_bytes(b, &im->seen.p[i].size, sizeof im->seen.p[i].size);
    }
    ms_put_bytes(b, &texts, sizeof texts);
    for (uint32_t i = 1; i <= texts; i++)
        ms_put_text(b, mstx__writer_text_of(im->w, i));
    ms_put_bytes(b, im->groups.p, im->groups.n);
}

static enum ms_rc take_groups(struct mstx_import *im, struct ms_taker *t, struct ms_err *err)
{
    while (t->n != 0 && !t->bad) {
        struct mstx_comm_known g;
        bool is_new;
        if (!mstx__comm_group_parse(ms_take_text(t), &g))
            continue;
        MS_TRY(mstx__comm_writer_meet(im->comm, &g, &is_new, err));
        if (is_new)
            mstx__cluster_group(&im->cluster, (uint32_t)im->cluster.group.n + 1, g.name, g.size,
                                g.world, g.listed);
    }
    return im->cluster.no_memory ? ms_no_memory(err) : MS_OK;
}

static enum ms_rc take_learnt(struct mstx_import *im, struct ms_taker *t, size_t *at,
                              struct ms_err *err)
{
    uint64_t n, texts;
    MS_TRY(mstx__import_take_clocks(im, t, err));
    ms_take_bytes(t, &n, sizeof n);
    for (uint64_t i = 0; i < n && !t->bad && *at < im->seen.n; i++, ++*at) {
        struct mstx_seen *s = &im->seen.p[*at];
        ms_take_bytes(t, &s->records, sizeof s->records);
        ms_take_bytes(t, &s->id, sizeof s->id);
        ms_take_bytes(t, &s->size, sizeof s->size);
    }
    ms_take_bytes(t, &texts, sizeof texts);
    for (uint64_t i = 0; i < texts && !t->bad; i++)
        mstx__writer_text(im->w, ms_take_text(t));
    return take_groups(im, t, err);
}

/* Gives ids to processes and calls by their place in the list of all captured processes. */
static void number_processes(struct mstx_import *im)
{
    uint32_t id = 0;
    uint64_t calls = 0;
    for (size_t i = 0; i < im->seen.n; i++) {
        struct mstx_seen *s = &im->seen.p[i];
        s->calls = calls;
        calls += s->records;
        if (s->id != 0)
            s->id = ++id;
    }
    im->texts = mstx__writer_texts(im->w);
}

/* Rows of communicators that every process knows are written once, by process 0. */
static enum ms_rc new_comm(struct mstx_import *im, struct ms_err *err)
{
    MS_TRY(mstx__comm_writer_new(&im->comm, im->w, err));
    if (ms_par_rank(im->par) != 0)
        mstx__comm_writer_mute(im->comm);
    return MS_OK;
}

enum ms_rc mstx__import_exchange(struct mstx_import *im, enum ms_rc mine, struct ms_err *err)
{
    struct ms_buf b = {.max = MS_SHARE_MAX};
    struct ms_gathered all;
    size_t at = 0;
    if (mine == MS_OK)
        put_learnt(im, &b);
    enum ms_rc rc = ms_share_all(im->par, &b, mine, &all, err);
    ms_buf_free(&b);
    if (rc != MS_OK)
        return rc;
    mstx__clocks_free(&im->clocks);
    mstx__writer_forget_texts(im->w);
    rc = new_comm(im, err);
    for (unsigned i = 0; rc == MS_OK && i < ms_par_size(im->par); i++) {
        struct ms_taker t = ms_gathered_message(&all, i);
        rc = take_learnt(im, &t, &at, err);
    }
    ms_gathered_free(&all);
    number_processes(im);
    if (rc == MS_OK && ms_par_rank(im->par) != 0)
        mstx__comm_writer_part(im->comm);
    return ms_share_result(im->par, rc, err);
}

/* ---- one database out of the parts -------------------------------------------------- */

struct merging {
    struct mstx_import *im;
    struct ms_store *s;
    int64_t tracks, chunks; /* ids used by the parts merged before */
    MS_VEC(uint32_t) text;  /* id in the merged database of each text that only this part has */
    MS_VEC(int64_t)
    group; /* likewise of communicators, numbered from MSTX_COMM_LATER in the part */
    struct mstx_rows rows;
    struct mstx_packed_out out;
    struct mstx_packer *packer;
};

typedef enum ms_rc (*row_fn)(struct merging *m, struct ms_stmt *row, struct ms_err *err);

static enum ms_rc each_row(struct merging *m, const char *sql, row_fn fn, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(m->s, &st, sql, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = fn(m, st, err);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc take_text(struct merging *m, struct ms_stmt *row, struct ms_err *err)
{
    uint32_t *slot = ms_vec_push(&m->text);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = mstx__writer_text(m->im->w, ms_stmt_get_str(row, 0));
    return MS_OK;
}

/* Returns the id that a text of the part has in the whole database. */
static uint32_t text_of(const void *ctx, uint32_t id)
{
    const struct merging *m = ctx;
    ms_assert(m->im->texts <= mstx__writer_texts(m->im->w));
    const uint32_t known = m->im->texts;
    return id > known && id - known <= m->text.n ? m->text.p[id - known - 1] : id;
}

static enum ms_rc take_blob(struct merging *m, struct ms_stmt *row, struct ms_err *err)
{
    ms_assert(m->chunks >= 0);
    struct ms_str blob = ms_stmt_get_blob(row, 1);
    if (m->text.n != 0) {
        MS_TRY(mstx_pack_renumber(m->packer, blob, text_of, m, err));
        blob = ms_buf_slice(&m->packer->out);
    }
    return mstx__writer_blob(m->im->w, m->chunks + ms_stmt_get_i64(row, 0), blob, err);
}

static enum ms_rc take_name(struct merging *m, struct ms_stmt *row, struct ms_err *err)
{
    int64_t column[9];
    for (int i = 0; i < 9; i++)
        column[i] = ms_stmt_get_i64(row, i);
    column[0] += m->tracks;
    column[1] = text_of(m, (uint32_t)column[1]);
    return mstx__writer_name(m->im->w, column, err);
}

/* Adds a communicator that only the marked calls of this part mention. */
static enum ms_rc take_group(struct merging *m, struct ms_stmt *row, struct ms_err *err)
{
    int64_t *slot = ms_vec_push(&m->group);
    if (slot == NULL)
        return ms_no_memory(err);
    return mstx__comm_writer_adopt(m->im->comm, (uint64_t)ms_stmt_get_i64(row, 2),
                                   ms_stmt_get_str(row, 1), ms_stmt_get_i64(row, 3),
                                   ms_stmt_get_str(row, 4), slot, err);
}

static int64_t group_of(const struct merging *m, int64_t id)
{
    const uint64_t later = (uint64_t)id - MSTX_COMM_LATER;
    return later < m->group.n ? m->group.p[later] : id;
}

/* Returns true when all texts and communicators of the rows have the same ids in every process. */
static bool is_known_to_all(const struct merging *m)
{
    return m->rows.column[MSTX_CALL_NAME].high <= m->im->texts &&
           m->rows.column[MSTX_CALL_GROUP].high < MSTX_COMM_LATER;
}

/* Rewrites the calls of a blob with the ids of the merged database. */
static enum ms_rc renumber_calls(struct merging *m, struct ms_err *err)
{
    ms_assert(m->rows.n >= 1);
    struct mstx_rows_out *to = &m->out.rows;
    for (unsigned c = 0; c < MSTX_CALL_COLUMNS; c++) {
        const int64_t *cell = mstx__rows_column(&m->rows, c, err);
        if (cell == NULL)
            return MS_E_FORMAT;
        for (to->n = 0; to->n < m->rows.n; to->n++) {
            const int64_t v = cell[to->n];
            mstx__rows_put(to, c,
                           c == MSTX_CALL_NAME    ? (int64_t)text_of(m, (uint32_t)v)
                           : c == MSTX_CALL_GROUP ? group_of(m, v)
                                                  : v);
        }
    }
    return MS_OK;
}

static enum ms_rc take_calls(struct merging *m, struct ms_stmt *row, struct ms_err *err)
{
    const struct ms_str blob = ms_stmt_get_blob(row, 1);
    const int64_t id = ms_stmt_get_i64(row, 0);
    MS_TRY(mstx__rows_look(&m->rows, blob, MSTX_CALL_COLUMNS, err));
    if (is_known_to_all(m))
        return mstx__packed_copy(&m->out, id, m->rows.n, blob, err);
    MS_TRY(renumber_calls(m, err));
    return mstx__packed_flush(&m->out, id, err);
}

static enum ms_rc copy_part(struct merging *m, struct ms_err *err)
{
    char sql[1024];
    MS_TRY(each_row(m, "SELECT value FROM part.strings ORDER BY id", take_text, err));
    snprintf(sql, sizeof sql,
             "INSERT INTO processes SELECT * FROM part.processes;"
             "INSERT INTO hangs SELECT * FROM part.hangs;"
             "INSERT OR REPLACE INTO sources SELECT * FROM part.sources;"
             "INSERT INTO packed_joins SELECT * FROM part.packed_joins;"
             "INSERT INTO tracks SELECT id + %" PRId64 ", process, kind, tid, domain, name, unit,"
             " events, rows, start_ns, end_ns, device FROM part.tracks ORDER BY id;"
             "INSERT INTO levels SELECT track + %" PRId64 ", shift, events, first_chunk + %" PRId64
             ", chunks FROM part.levels;"
             "INSERT INTO chunks SELECT id + %" PRId64 ", start_ns, end_ns, events FROM part.chunks"
             " ORDER BY id",
             m->tracks, m->tracks, m->chunks, m->chunks);
    MS_TRY(ms_store_exec(m->s, sql, err));
    MS_TRY(each_row(m, "SELECT chunk, data FROM part.blobs ORDER BY chunk", take_blob, err));
    MS_TRY(each_row(m, "SELECT * FROM part.names", take_name, err));
    MS_TRY(each_row(m, "SELECT * FROM part.comm_groups ORDER BY id", take_group, err));
    return each_row(m, "SELECT id, data FROM part.packed_calls ORDER BY id", take_calls, err);
}

static enum ms_rc count_rows(struct merging *m, const char *sql, int64_t *n, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(m->s, &st, sql, err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more)
        *n = ms_stmt_get_i64(st, 0);
    ms_stmt_free(st);
    return rc;
}

/* Attaches the database of a part.  SQLite can attach and detach only outside a transaction. */
static enum ms_rc attach_part(struct merging *m, struct ms_str path, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_exec(m->s, "COMMIT", err));
    MS_TRY(ms_store_prepare(m->s, &st, "ATTACH ? AS part", err));
    ms_stmt_str(st, 1, path);
    enum ms_rc rc = ms_stmt_run(st, err);
    ms_stmt_free(st);
    return rc == MS_OK ? ms_store_exec(m->s, "BEGIN", err) : rc;
}

static enum ms_rc take_part(struct merging *m, struct ms_str path, struct ms_err *err)
{
    m->text.n = m->group.n = 0;
    MS_TRY(count_rows(m, "SELECT max(id) FROM main.tracks", &m->tracks, err));
    MS_TRY(count_rows(m, "SELECT max(id) FROM main.chunks", &m->chunks, err));
    MS_TRY(attach_part(m, path, err));
    MS_TRY(copy_part(m, err));
    return ms_store_exec(m->s, "COMMIT; DETACH part; BEGIN", err);
}

/* ---- sending and receiving ----------------------------------------------------------- */

/* Commits the part of this process and sends its path and the problems to process 0. */
static enum ms_rc send_part(struct mstx_import *im, const char *path, struct ms_err *err)
{
    struct ms_buf b = {.max = MS_SHARE_MAX};
    enum ms_rc rc = mstx__writer_commit_part(im->w, im->texts, err);
    im->w = NULL;
    rc = ms_share_result(im->par, rc, err);
    if (rc == MS_OK) {
        ms_put_text(&b, ms_str_of(path));
        mstx__import_put_problems(im, &b);
        rc = ms_buf_check(&b, err);
    }
    if (rc == MS_OK)
        rc = ms_par_send(im->par, 0, b.p, b.n, err);
    ms_buf_free(&b);
    return rc;
}

static enum ms_rc receive_part(struct merging *m, unsigned from, struct ms_err *err)
{
    ms_assert(from >= 1 && from < ms_par_size(m->im->par));
    struct ms_buf b = {.max = MS_SHARE_MAX};
    unsigned who;
    enum ms_rc rc = ms_par_recv(m->im->par, (int)from, &b, &who, err);
    struct ms_taker t = {b.p, b.n, false};
    const struct ms_str path = ms_take_text(&t);
    if (rc == MS_OK)
        rc = take_part(m, path, err);
    if (rc == MS_OK)
        rc = mstx__import_take_problems(m->im, &t, err);
    if (rc == MS_OK && t.bad)
        rc = ms_fail(err, MS_E_INTERNAL, "the part of process %u is damaged", from);
    ms_buf_free(&b);
    return rc;
}

static enum ms_rc begin_merging(struct merging *m, struct ms_err *err)
{
    m->packer = mstx_packer_new();
    if (m->packer == NULL)
        return ms_no_memory(err);
    MS_TRY(mstx__rows_new(&m->rows, err));
    return mstx__packed_calls_new(&m->out, m->s, err);
}

static void end_merging(struct merging *m)
{
    mstx__packed_free(&m->out);
    mstx__rows_free(&m->rows);
    ms_vec_free(&m->text);
    ms_vec_free(&m->group);
    mstx_packer_free(m->packer);
}

static enum ms_rc receive_parts(struct mstx_import *im, struct ms_err *err)
{
    struct merging m = {.im = im, .s = mstx__writer_store(im->w)};
    enum ms_rc rc = ms_share_result(im->par, begin_merging(&m, err), err);
    for (unsigned i = 1; rc == MS_OK && i < ms_par_size(im->par); i++)
        rc = receive_part(&m, i, err);
    end_merging(&m);
    return rc;
}

enum ms_rc mstx__import_merge(struct mstx_import *im, const char *db, struct ms_err *err)
{
    if (ms_par_size(im->par) == 1)
        return MS_OK;
    return ms_par_rank(im->par) == 0 ? receive_parts(im, err) : send_part(im, db, err);
}
