/* SPDX-License-Identifier: MIT
 *
 * writer_place: a folder in which a writer makes a dump, and its files.
 */
#ifndef TESTS_SUPPORT_WRITER_PLACE_H
#define TESTS_SUPPORT_WRITER_PLACE_H

#include "probe/probe.h"

#include "tests/support/check.h"

#define TENSOR(type, bytes, grad, ...)                                                             \
    &(struct probe_tensor_desc)                                                                    \
    {                                                                                              \
        .data = (bytes), .dtype = (type), .shape = (const uint64_t[]){__VA_ARGS__},                \
        .ndim = sizeof((const uint64_t[]){__VA_ARGS__}) / 8, .requires_grad = (grad)               \
    }

static const float counting[] = {0, 1, 2, 3, 4, 5};
static const float half_two = 2.5F;
static const uint16_t bf16_ones[] = {0x3f80, 0x3f80, 0x3f80};
static const int64_t whole[] = {1, 2, 3};
static const uint16_t halves[] = {0x3800, 0x4200};
static const double doubles[] = {1, 2};
static const uint8_t bytes[] = {255, 0};
static const uint8_t truths[] = {0, 0, 1};
static const float square[] = {1, 2, 3, 4};

static struct ms_err err;
static char dir[64], path[256];

static inline const char *file_in_dir(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

/* A whole file, with a NUL behind it. */
static inline char *read_file(const char *at, size_t *n)
{
    FILE *f = fopen(at, "rb");
    ck_assert_msg(f != NULL, "no %s", at);
    char *p = malloc(1 << 20);
    *n = fread(p, 1, (1 << 20) - 1, f);
    p[*n] = '\0';
    fclose(f);
    return p;
}

static inline struct probe_writer *open_with(struct probe_conf conf)
{
    struct probe_writer *w;
    conf.dir = dir;
    ms_err_clear(&err);
    ck_ok(probe_writer_open(&w, &conf, &err), err);
    return w;
}

static inline void ck_closes(struct probe_writer *w)
{
    ms_err_clear(&err);
    ck_ok(probe_writer_close(w, &err), err);
}

static inline void ck_file_is(const char *name, const char *want)
{
    size_t n;
    char *text = read_file(file_in_dir(name), &n);
    size_t same = 0;
    while (text[same] != '\0' && text[same] == want[same])
        same++;
    ck_assert_msg(text[same] == want[same], "%s differs at byte %zu: '%.60s', expected '%.60s'",
                  name, same, text + same, want + same);
    free(text);
}

#endif
