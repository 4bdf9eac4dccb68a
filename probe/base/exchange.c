/* SPDX-License-Identifier: MIT
 *
 * exchange: see the header.
 */
#include "probe/base/exchange.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/vec.h"

#include <string.h>

/* ---- bytes ---------------------------------------------------------------------- */

void ms_put_bytes(struct ms_buf *b, const void *p, size_t n)
{
    ms_buf_put(b, p, n);
}

void ms_put_text(struct ms_buf *b, struct ms_str s)
{
    ms_buf_put(b, &s.n, sizeof s.n);
    ms_buf_put(b, s.p, s.n);
}

void ms_put_counted(struct ms_buf *b, const void *p, size_t n, size_t item)
{
    const uint64_t count = n;
    ms_buf_put(b, &count, sizeof count);
    if (n != 0)
        ms_buf_put(b, p, n * item);
}

void ms_take_bytes(struct ms_taker *t, void *p, size_t n)
{
    if (t->bad || t->n < n) {
        t->bad = true;
        memset(p, 0, n);
        return;
    }
    memcpy(p, t->p, n);
    t->p += n;
    t->n -= n;
}

struct ms_str ms_take_text(struct ms_taker *t)
{
    struct ms_str s = {t->p, 0};
    uint32_t n;
    ms_take_bytes(t, &n, sizeof n);
    t->bad |= n > t->n;
    if (t->bad)
        return s;
    s = (struct ms_str){t->p, n};
    t->p += n;
    t->n -= n;
    return s;
}

size_t ms_take_count(struct ms_taker *t, size_t item)
{
    ms_assert(item != 0);
    uint64_t n;
    ms_take_bytes(t, &n, sizeof n);
    t->bad |= n > t->n / item;
    return t->bad ? 0 : (size_t)n;
}

bool ms_take_counted(struct ms_taker *t, void *p, size_t *n, size_t *cap, size_t item)
{
    ms_assert(item != 0 && *n <= *cap);
    const size_t more = ms_take_count(t, item);
    char *first;
    if (more == 0)
        return true;
    if (*n + more > *cap && !ms_vec_grow(p, cap, *n + more, item))
        return false;
    memcpy(&first, p, sizeof first); /* the vector's pointer, whatever its type */
    ms_take_bytes(t, first + *n * item, more * item);
    *n += more;
    return true;
}

/* ---- messages ------------------------------------------------------------------- */

struct ms_taker ms_gathered_message(const struct ms_gathered *m, unsigned process)
{
    if (process >= m->end.n)
        return (struct ms_taker){"", 0, true};
    const size_t from = process != 0 ? m->end.p[process - 1] : 0;
    return (struct ms_taker){m->bytes.p + from, m->end.p[process] - from, false};
}

void ms_gathered_free(struct ms_gathered *m)
{
    ms_buf_free(&m->bytes);
    ms_vec_free(&m->end);
}

/* Writes the result, the error text of a failure, and the message. */
static void wrap_message(struct ms_buf *out, const struct ms_buf *message, enum ms_rc mine,
                         const struct ms_err *err)
{
    const int32_t rc = message->bad != MS_OK && mine == MS_OK ? (int32_t)MS_E_NOMEM : (int32_t)mine;
    const char *why = rc == MS_OK                    ? ""
                      : mine != MS_OK && err != NULL ? err->msg
                                                     : ms_rc_text(MS_E_NOMEM);
    ms_put_bytes(out, &rc, sizeof rc);
    ms_put_text(out, ms_str_of(why));
    if (rc == MS_OK)
        ms_put_bytes(out, message->p, message->n);
}

/* Appends the message of one process, without its result. */
static enum ms_rc unwrap_message(struct ms_gathered *all, const struct ms_buf *got,
                                 struct ms_err *err)
{
    struct ms_taker t = {got->p, got->n, false};
    int32_t rc;
    ms_take_bytes(&t, &rc, sizeof rc);
    const struct ms_str why = ms_take_text(&t);
    size_t *end = ms_vec_push(&all->end);
    if (end == NULL)
        return ms_no_memory(err);
    if (rc == MS_OK && !t.bad)
        ms_buf_put(&all->bytes, t.p, t.n);
    *end = all->bytes.n;
    if (t.bad)
        return ms_fail(err, MS_E_INTERNAL, "a message between processes is damaged");
    return rc != MS_OK ? ms_fail(err, (enum ms_rc)rc, "%.*s", MS_STR_ARG(why))
                       : ms_buf_check(&all->bytes, err);
}

/* Receives the messages of all processes in order, even after one of them failed. */
static enum ms_rc hear_all(struct ms_par *par, const struct ms_buf *own, struct ms_gathered *all,
                           struct ms_err *err)
{
    struct ms_buf got = {.max = MS_SHARE_MAX};
    struct ms_err first = {0};
    enum ms_rc rc =
        own->bad == MS_OK ? unwrap_message(all, own, &first) : ms_buf_check(own, &first);
    for (unsigned i = 1; i < ms_par_size(par); i++) {
        struct ms_err e = {0};
        unsigned who;
        enum ms_rc one = ms_par_recv(par, (int)i, &got, &who, &e);
        if (one == MS_OK)
            one = unwrap_message(all, &got, &e);
        if (one != MS_OK && rc == MS_OK) {
            rc = one;
            first = e;
        }
    }
    ms_buf_free(&got);
    if (rc != MS_OK && err != NULL && err->rc == MS_OK)
        *err = first;
    return rc;
}

enum ms_rc ms_share_from_first(struct ms_par *par, struct ms_buf *bytes, struct ms_err *err)
{
    uint64_t n = bytes->n;
    if (ms_par_size(par) == 1)
        return MS_OK;
    MS_TRY(ms_par_share(par, &n, sizeof n, err));
    if (ms_par_rank(par) != 0) {
        ms_buf_clear(bytes);
        if (n != 0 && ms_buf_room(bytes, n) == NULL)
            return ms_buf_check(bytes, err);
        bytes->n = n;
    }
    return n != 0 ? ms_par_share(par, bytes->p, n, err) : MS_OK;
}

/* Replaces the result of every process by that of process 0. */
static enum ms_rc settle_result(struct ms_par *par, enum ms_rc rc, struct ms_err *err)
{
    struct ms_err mine = {0};
    struct ms_buf b = {.max = MS_SHARE_MAX};
    const struct ms_buf nothing = {0};
    if (rc != MS_OK && err != NULL)
        mine = *err;
    if (ms_par_rank(par) == 0)
        wrap_message(&b, &nothing, rc, &mine);
    enum ms_rc told = ms_share_from_first(par, &b, err);
    struct ms_gathered one = {.bytes = {.max = MS_SHARE_MAX}};
    if (told == MS_OK && ms_par_rank(par) != 0)
        rc = unwrap_message(&one, &b, err);
    ms_gathered_free(&one);
    ms_buf_free(&b);
    return rc != MS_OK ? rc : told;
}

enum ms_rc ms_share_gather(struct ms_par *par, const struct ms_buf *message, enum ms_rc mine,
                           struct ms_gathered *all, struct ms_err *err)
{
    struct ms_buf own = {.max = MS_SHARE_MAX};
    struct ms_err first = {0};
    enum ms_rc rc;
    *all = (struct ms_gathered){.bytes = {.max = MS_SHARE_MAX}};
    wrap_message(&own, message, mine, err);
    if (ms_par_rank(par) != 0)
        rc = ms_par_send(par, 0, own.p, own.n, &first);
    else
        rc = hear_all(par, &own, all, &first);
    ms_buf_free(&own);
    rc = settle_result(par, rc, &first);
    if (rc != MS_OK && mine == MS_OK && err != NULL && err->rc == MS_OK)
        *err = first;
    if (rc != MS_OK)
        ms_gathered_free(all);
    return rc;
}

enum ms_rc ms_share_all(struct ms_par *par, const struct ms_buf *message, enum ms_rc mine,
                        struct ms_gathered *all, struct ms_err *err)
{
    struct ms_buf ends = {.max = MS_SHARE_MAX};
    MS_TRY(ms_share_gather(par, message, mine, all, err));
    if (ms_par_rank(par) == 0)
        ms_put_items(&ends, &all->end);
    enum ms_rc rc = ms_share_from_first(par, &ends, err);
    if (rc == MS_OK)
        rc = ms_share_from_first(par, &all->bytes, err);
    struct ms_taker t = {ends.p, ends.n, false};
    if (rc == MS_OK && ms_par_rank(par) != 0 && !ms_take_items(&t, &all->end))
        rc = ms_no_memory(err);
    ms_buf_free(&ends);
    if (rc != MS_OK)
        ms_gathered_free(all);
    return rc;
}

enum ms_rc ms_share_result(struct ms_par *par, enum ms_rc mine, struct ms_err *err)
{
    const struct ms_buf nothing = {0};
    struct ms_gathered all;
    if (ms_par_size(par) == 1)
        return mine;
    enum ms_rc rc = ms_share_gather(par, &nothing, mine, &all, err);
    if (rc == MS_OK)
        ms_gathered_free(&all);
    return rc;
}
