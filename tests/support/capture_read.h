/* SPDX-License-Identifier: MIT
 *
 * capture_read: a reader of captures as small as the format allows, independent of the real
 * one, for tests of the recorder.  Everything it meets is checked: a header that is not valid
 * or a record that names an unknown text fails the test.  A CALL is shown as the BEGIN and END
 * that it stands for.
 */
#ifndef TESTS_SUPPORT_CAPTURE_READ_H
#define TESTS_SUPPORT_CAPTURE_READ_H

#include "mstx/format/capture.h"
#include "tests/support/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct cap_rec {
    struct mstx_rec r;
    uint32_t ring, tid;
    uint64_t part;
};

struct cap {
    char path[1024];
    struct mstx_seg head; /* of strings.seg */
    char *strings;
    const struct mstx_text **text; /* by id */
    size_t ntexts;
    struct cap_rec *rec; /* by ring, then in order */
    size_t n, files;
    size_t calls, ended_in_place; /* CALLs, and those of them that hold their end */
    uint64_t dropped;
    uint32_t open_files; /* segments without CLOSED */
};

static inline char *cap_slurp(const char *path, size_t *n)
{
    int fd = open(path, O_RDONLY);
    struct stat st;
    ck_assert_msg(fd >= 0 && fstat(fd, &st) == 0, "%s: %s", path, strerror(errno));
    char *p = malloc((size_t)st.st_size + 1);
    ck_assert(read(fd, p, (size_t)st.st_size) == st.st_size);
    close(fd);
    *n = (size_t)st.st_size;
    return p;
}

static inline void cap_read_strings(struct cap *c)
{
    char path[1100];
    size_t n;
    snprintf(path, sizeof path, "%.1023s/" MSTX_STRINGS, c->path);
    c->strings = cap_slurp(path, &n);
    ck_assert_int_eq(mstx_seg_check(c->strings, n, MSTX_KIND_STRINGS), MSTX_SEG_GOOD);
    memcpy(&c->head, c->strings, sizeof c->head);
    ck_assert_uint_le(c->head.head + MSTX_SEG_HEADER, n);
    c->text = calloc(c->head.head / 24 + 2, sizeof *c->text);
    for (size_t at = 0; at < c->head.head;) {
        const struct mstx_text *e =
            (const struct mstx_text *)(const void *)(c->strings + MSTX_SEG_HEADER + at);
        ck_assert_uint_eq(e->id, ++c->ntexts);
        ck_assert_uint_ge(e->size, sizeof *e + e->len + 1);
        ck_assert_uint_eq(e->size % 8, 0);
        c->text[e->id] = e;
        at += e->size;
    }
}

/* BEGIN, continuations, END. */
static inline void cap_show_call(struct cap *c, size_t at)
{
    struct mstx_rec *begin = &c->rec[at].r;
    c->calls++;
    begin->type = MSTX_REC_BEGIN;
    if (begin->arg == 0)
        return;
    c->ended_in_place++;
    c->rec[c->n] = c->rec[at];
    struct mstx_rec *end = &c->rec[c->n++].r;
    end->type = MSTX_REC_END;
    end->flags = 0;
    end->arg = begin->ticks;
    end->ticks = begin->arg;
    begin->arg = 0;
}

static inline void cap_read_ring(struct cap *c, const char *path)
{
    size_t n;
    char *p = cap_slurp(path, &n);
    struct mstx_seg h;
    ck_assert_int_eq(mstx_seg_check(p, n, MSTX_KIND_RING), MSTX_SEG_GOOD);
    memcpy(&h, p, sizeof h);
    c->files++;
    if (h.part == 0) { /* prepared, never used */
        free(p);
        return;
    }
    c->dropped += h.dropped;
    c->open_files += (h.state & MSTX_SEG_CLOSED) == 0;
    ck_assert_uint_le(h.head, h.capacity);
    ck_assert_uint_le(MSTX_SEG_HEADER + h.head * MSTX_REC_SIZE, n);
    c->rec = realloc(c->rec, (c->n + 2 * h.head + 1) * sizeof *c->rec);
    uint32_t tid = h.tid;
    size_t call = SIZE_MAX;
    for (size_t i = 0; i < h.head; i++) {
        struct cap_rec *to = &c->rec[c->n++];
        memcpy(&to->r, p + MSTX_SEG_HEADER + i * MSTX_REC_SIZE, MSTX_REC_SIZE);
        tid = to->r.type == MSTX_REC_THREAD ? (uint32_t)to->r.id : tid;
        to->ring = h.ring;
        to->part = h.part;
        to->tid = tid;
        /* Check writes down every assertion that holds, which is much for millions of records. */
        if (to->r.type == 0 || (to->r.type <= MSTX_REC_COUNTER && to->r.name > c->ntexts))
            ck_abort_msg("%s: record %zu of type %u, text %u of %zu", path, i, to->r.type,
                         to->r.name, c->ntexts);
        call = to->r.type == MSTX_REC_CALL ? c->n - 1 : call;
        if (call != SIZE_MAX && (to->r.flags & MSTX_F_MORE) == 0) {
            cap_show_call(c, call);
            call = SIZE_MAX;
        }
    }
    free(p);
}

static inline int cap_by_order(const void *a, const void *b)
{
    const struct cap_rec *x = a, *y = b;
    if (x->ring != y->ring)
        return x->ring < y->ring ? -1 : 1;
    return x->part < y->part ? -1 : x->part > y->part;
}

static inline int cap_is_seg(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return e->d_name[0] == 'r' && n > 4 && strcmp(e->d_name + n - 4, ".seg") == 0;
}

static inline void cap_read(struct cap *c, const char *path)
{
    struct dirent **names;
    char file[1400];
    memset(c, 0, sizeof *c);
    snprintf(c->path, sizeof c->path, "%s", path);
    cap_read_strings(c);
    /* names sort by ring and number; parts of one file stay together, so a stable merge does */
    int n = scandir(path, &names, cap_is_seg, alphasort);
    for (int i = 0; i < n; i++) {
        snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
        cap_read_ring(c, file);
        free(names[i]);
    }
    free(names);
}

static inline void cap_free(struct cap *c)
{
    free(c->strings);
    free(c->text);
    free(c->rec);
}

static inline int cap_visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

/* All processes of a run, in the order of their names; how many. */
static inline size_t cap_load(struct cap *c, size_t max, const char *run)
{
    struct dirent **ranks, **procs;
    char path[512], proc[800];
    size_t found = 0;
    int n = scandir(run, &ranks, cap_visible, alphasort);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", run, ranks[i]->d_name);
        int m = strncmp(ranks[i]->d_name, MSTX_RANK_PREFIX, 5) != 0
                    ? -1
                    : scandir(path, &procs, cap_visible, alphasort);
        for (int k = 0; k < m; k++) {
            snprintf(proc, sizeof proc, "%s/%s", path, procs[k]->d_name);
            ck_assert_uint_lt(found, max);
            cap_read(&c[found++], proc);
            free(procs[k]);
        }
        if (m >= 0)
            free(procs);
        free(ranks[i]);
    }
    if (n >= 0)
        free(ranks);
    return found;
}

/* The only process of a run. */
static inline void cap_load_one(struct cap *c, const char *run)
{
    ck_assert_uint_eq(cap_load(c, 1, run), 1);
}

static inline const char *cap_text(const struct cap *c, uint32_t id)
{
    return id == 0 || id > c->ntexts ? "" : (const char *)(c->text[id] + 1);
}

static inline const char *cap_domain(const struct cap *c, uint16_t number)
{
    for (size_t i = 1; i <= c->ntexts; i++) {
        if (c->text[i]->kind == MSTX_DOMAIN && c->text[i]->domain == number)
            return (const char *)(c->text[i] + 1);
    }
    return "?";
}

/* Records of a type, with that text and in that domain (NULL: any). */
static inline size_t cap_count(const struct cap *c, int type, const char *domain, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct mstx_rec *r = &c->rec[i].r;
        n += r->type == type && (name == NULL || strcmp(cap_text(c, r->name), name) == 0) &&
             (domain == NULL || strcmp(cap_domain(c, r->domain), domain) == 0);
    }
    return n;
}

/* The first record of a type with that text; the test fails when there is none. */
static inline const struct cap_rec *cap_find(const struct cap *c, int type, const char *name)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->rec[i].r.type == type && strcmp(cap_text(c, c->rec[i].r.name), name) == 0)
            return &c->rec[i];
    }
    ck_abort_msg("no record of type %d named '%s' in %s", type, name, c->path);
    return NULL;
}

/* Definitions of a kind whose text holds the words. */
static inline size_t cap_says(const struct cap *c, int kind, const char *words)
{
    size_t n = 0;
    for (size_t i = 1; i <= c->ntexts; i++)
        n += c->text[i]->kind == kind && strstr((const char *)(c->text[i] + 1), words) != NULL;
    return n;
}

#endif
