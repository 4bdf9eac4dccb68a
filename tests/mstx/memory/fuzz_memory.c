/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a record of memory use, of every form: what is read gives answers that add up, as text and
 * as JSON.
 */
#include "mstx/memory/mem_read.h"
#include "mstx/memory/mem_report.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_answer(const struct mstx_mem_answer *a)
{
    uint64_t kinds = 0, frames = 0;
    for (int k = 0; k < MSTX_MEM_KIND_COUNT; k++)
        kinds += a->peak.by_kind[k];
    for (size_t i = 0; i < a->peak.frames.n; i++)
        frames += a->peak.frames.p[i].bytes;
    if (mstx__mem_events(a->space) != 0)
        assert(kinds == a->peak.bytes);
    assert(frames + a->space->earlier == kinds);
    assert(a->peak.reserved_most >= a->peak.reserved_then);
}

static void check_answers(const struct mstx_mem_log *log)
{
    struct mstx_mem_report r;
    struct ms_buf text = {.max = 1 << 26};
    struct ms_jwrite w;
    const enum ms_rc made = mstx__mem_report_make(&r, "x", log, NULL);
    assert(made == MS_OK);
    for (size_t i = 0; i < r.answers.n; i++)
        check_answer(&r.answers.p[i]);
    mstx__mem_report_text(&r, 10, &text);
    mstx__mem_against_text(&r, &r, 10, &text);
    assert(text.bad == MS_OK);
    ms_jwrite_init(&w, 0, 1 << 28);
    mstx__mem_report_json(&r, 10, &w);
    const enum ms_rc written = ms_jwrite_finish(&w, NULL);
    assert(written == MS_OK);
    ms_jwrite_free(&w);
    ms_buf_free(&text);
    mstx__mem_report_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[96];
    const char *tmp = getenv("TMPDIR");
    const char *end =
        size != 0 && (data[0] == 's' || data[0] == 'N' || data[0] == 'C') ? "csv" : "json";
    snprintf(path, sizeof path, "%.30s/msprobe-fuzz-memory-%d.%s", tmp != NULL ? tmp : "/tmp",
             (int)getpid(), end);
    FILE *f = fopen(path, "wb");
    assert(f != NULL);
    fwrite(data, 1, size, f);
    fclose(f);
    struct mstx_mem_log *log;
    struct ms_err err = {0};
    if (mstx__mem_read(&log, path, NULL, &err) == MS_OK)
        check_answers(log);
    else
        assert(err.rc != MS_OK && err.msg[0] != '\0');
    mstx__mem_log_free(log);
    unlink(path);
    return 0;
}
