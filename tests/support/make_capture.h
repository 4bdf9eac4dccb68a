/* SPDX-License-Identifier: MIT
 *
 * make_capture: writes captures as mstx/format/capture.h describes them, for tests and
 * benchmarks, without the recorder: what is in them is known to the last record.
 *
 * Ticks count from TICKS_0 at 1 GHz; calibration says that TICKS_0 was EPOCH_NS.
 */
#ifndef TESTS_SUPPORT_MAKE_CAPTURE_H
#define TESTS_SUPPORT_MAKE_CAPTURE_H

#include "mstx/format/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TICKS_0  UINT64_C(1000000000)
#define EPOCH_NS INT64_C(1717575960000000000)

struct maker {
    char dir[256]; /* of the process */
    uint32_t pid;
    int32_t rank;
    /* the ring being written */
    FILE *f;
    struct mstx_seg head;
    /* texts */
    FILE *texts;
    struct mstx_seg texts_head;
    uint32_t last_text;
    uint16_t last_domain;
};

static inline void maker_head(struct mstx_seg *h, const struct maker *m, uint32_t kind)
{
    memset(h, 0, sizeof *h);
    memcpy(h->magic, MSTX_SEG_MAGIC, sizeof h->magic);
    h->endian = MSTX_SEG_ENDIAN;
    h->major = MSTX_SEG_MAJOR;
    h->minor = MSTX_SEG_MINOR;
    h->header_size = MSTX_SEG_HEADER;
    h->record_size = kind == MSTX_KIND_RING ? MSTX_REC_SIZE : 1;
    h->kind = kind;
    h->pid = m->pid;
    h->ppid = 1;
    h->rank = m->rank;
    h->world_size = 2;
    h->local_rank = m->rank;
    h->clock = MSTX_CLOCK_TSC;
    h->tick_hz = 1000000000;
    h->start_ns = EPOCH_NS;
    memcpy(h->boot_id, "boot-id-of-tests", 16);
    h->part = 1;
    h->first_ticks = TICKS_0;
    h->first_calib = (struct mstx_calib){TICKS_0, 5000000000, EPOCH_NS, 20};
    h->last_calib =
        (struct mstx_calib){TICKS_0 + 60000000000, 65000000000, EPOCH_NS + 60000000000, 20};
    strcpy(h->host, "testhost");
    strcpy(h->tool, "make_capture");
    h->state = MSTX_SEG_CLOSED | MSTX_SEG_LAST;
}

static inline void maker_open_file(FILE **f, const struct maker *m, const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", m->dir, name);
    *f = fopen(path, "wb+");
    if (*f == NULL || fseek(*f, MSTX_SEG_HEADER, SEEK_SET) != 0) {
        perror(path);
        exit(1);
    }
}

/* A process directory below run; its strings stay open until maker_end. */
static inline void maker_begin(struct maker *m, const char *run, int32_t rank, uint32_t pid)
{
    memset(m, 0, sizeof *m);
    m->rank = rank;
    m->pid = pid;
    mkdir(run, 0777);
    snprintf(m->dir, sizeof m->dir, "%s/rank_%d", run, rank);
    mkdir(m->dir, 0777);
    snprintf(m->dir, sizeof m->dir, "%s/rank_%d/testhost.%u.00000001", run, rank, pid);
    mkdir(m->dir, 0777);
    maker_open_file(&m->texts, m, MSTX_STRINGS);
    maker_head(&m->texts_head, m, MSTX_KIND_STRINGS);
}

static inline uint32_t maker_entry(struct maker *m, uint16_t kind, uint16_t domain, uint64_t key,
                                   const void *text, uint32_t len)
{
    static const char zeros[8];
    uint32_t size = (uint32_t)sizeof(struct mstx_text) + (len + 1 + 7) / 8 * 8;
    struct mstx_text e = {size, ++m->last_text, kind, domain, len, key};
    fwrite(&e, sizeof e, 1, m->texts);
    fwrite(text, 1, len, m->texts);
    fwrite(zeros, 1, size - sizeof e - len, m->texts);
    m->texts_head.head += size;
    return e.id;
}

static inline uint32_t maker_text(struct maker *m, const char *text)
{
    return maker_entry(m, MSTX_TEXT, 0, 0, text, (uint32_t)strlen(text));
}

static inline uint16_t maker_domain(struct maker *m, const char *name)
{
    m->last_domain++;
    maker_entry(m, MSTX_DOMAIN, m->last_domain, 0, name, (uint32_t)strlen(name));
    return m->last_domain;
}

static inline void maker_ring(struct maker *m, uint32_t ring, uint32_t part, uint32_t tid)
{
    char name[32];
    snprintf(name, sizeof name, MSTX_SEG_NAME, ring, part);
    maker_open_file(&m->f, m, name);
    maker_head(&m->head, m, MSTX_KIND_RING);
    m->head.ring = ring;
    m->head.part = part;
    m->head.tid = tid;
}

static inline void maker_raw(struct maker *m, const void *rec)
{
    fwrite(rec, MSTX_REC_SIZE, 1, m->f);
    m->head.head++;
}

/* t: nanoseconds from the start. */
static inline void maker_rec(struct maker *m, uint8_t type, uint64_t t, uint64_t id, uint32_t name,
                             uint16_t domain, uint64_t arg, uint8_t flags)
{
    struct mstx_rec r = {TICKS_0 + t, id, name, domain, type, flags, arg};
    maker_raw(m, &r);
}

static inline void maker_mark(struct maker *m, uint64_t t, uint32_t name, uint16_t domain)
{
    maker_rec(m, MSTX_REC_MARK, t, 0, name, domain, 0, 0);
}

static inline void maker_begin_range(struct maker *m, uint64_t t, uint64_t id, uint32_t name,
                                     uint16_t domain)
{
    maker_rec(m, MSTX_REC_BEGIN, t, id, name, domain, 0, 0);
}

static inline void maker_end_range(struct maker *m, uint64_t t, uint64_t id, uint32_t name,
                                   uint16_t domain, uint64_t begin, uint8_t flags)
{
    maker_rec(m, MSTX_REC_END, t, id, name, domain, TICKS_0 + begin, flags);
}

static inline void maker_push(struct maker *m, uint64_t t, uint64_t depth, uint32_t name)
{
    maker_rec(m, MSTX_REC_PUSH, t, depth, name, 0, 0, 0);
}

static inline void maker_pop(struct maker *m, uint64_t t, uint64_t depth, uint32_t name,
                             uint64_t begin)
{
    maker_rec(m, MSTX_REC_POP, t, depth, name, 0, TICKS_0 + begin, 0);
}

static inline void maker_close_file(FILE *f, struct mstx_seg *h)
{
    if (h->capacity == 0)
        h->capacity = h->head;
    if (fseek(f, 0, SEEK_SET) != 0 || fwrite(h, sizeof *h, 1, f) != 1 || fclose(f) != 0) {
        perror("closing a segment");
        exit(1);
    }
}

static inline void maker_end_ring(struct maker *m)
{
    maker_close_file(m->f, &m->head);
}

static inline void maker_end(struct maker *m)
{
    maker_close_file(m->texts, &m->texts_head);
}

/* Many ranges of a few names, nested as training steps are, on one thread: `records` records. */
static inline void maker_training(struct maker *m, uint32_t ring, uint32_t tid, uint64_t records)
{
    static const char *const names[] = {"forward", "backward",  "optimizer", "allreduce",
                                        "embed",   "attention", "mlp",       "loss"};
    uint32_t id[8];
    for (int i = 0; i < 8; i++)
        id[i] = maker_text(m, names[i]);
    uint32_t step_name = maker_text(m, "step");
    uint64_t t = 1000 * tid, seed = 88172645463325252u, range = 1;
    maker_ring(m, ring, 1, tid);
    while (m->head.head + 66 < records) {
        uint64_t begin = t;
        uint64_t step = range++;
        maker_begin_range(m, t, step, step_name, 0);
        for (int i = 0; i < 32; i++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            uint64_t from = t += 50 + seed % 400;
            maker_begin_range(m, from, range, id[seed >> 20 & 7], 0);
            t += 200 + (seed >> 24) % 2000;
            maker_end_range(m, t, range++, id[seed >> 20 & 7], 0, from, 0);
        }
        t += 300;
        maker_end_range(m, t, step, step_name, 0, begin, 0);
    }
    maker_end_ring(m);
}

#endif
