/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a packed chunk of events: they are refused, or every event has times and a kind that
 * exist, pictures see the same events, and what is packed again with other names reads the same.
 */
#include "mstx/rundb/pack.h"

#include <assert.h>
#include <string.h>

static struct mstx_event all[MSTX_CHUNK_MAX], drawn[MSTX_CHUNK_MAX], again[MSTX_CHUNK_MAX];

static uint32_t next_name(const void *ctx, uint32_t id)
{
    (void)ctx;
    return id + 1;
}

static bool is_name(void *ctx, uint32_t name)
{
    return name == *(const uint32_t *)ctx;
}

static void check_event(const struct mstx_event *ev, struct ms_str blob)
{
    uint32_t name = ev->name;
    assert(ev->dur_ns >= 0 && ev->kind < MSTX_EV_KINDS);
    assert(ev->start_ns <= INT64_MAX - ev->dur_ns);
    assert(mstx_pack_has_name(blob, is_name, &name));
}

static void check_drawn(struct ms_str blob, uint32_t n)
{
    struct ms_err err = {0};
    uint32_t seen = 0;
    enum ms_rc rc = mstx_unpack_drawn(blob, INT64_MAX, drawn, &seen, &err);
    assert(rc == MS_OK && seen == n);
    for (uint32_t i = 0; i < n; i++)
        assert(drawn[i].start_ns == all[i].start_ns && drawn[i].dur_ns == all[i].dur_ns &&
               drawn[i].name == all[i].name);
}

static void check_renumbered(struct mstx_packer *p, struct ms_str blob, uint32_t n)
{
    struct ms_err err = {0};
    uint32_t seen = 0;
    enum ms_rc rc = mstx_pack_renumber(p, blob, next_name, NULL, &err);
    assert(rc == MS_OK);
    rc = mstx_unpack(ms_buf_slice(&p->out), again, &seen, &err);
    assert(rc == MS_OK && seen == n);
    for (uint32_t i = 0; i < n; i++)
        assert(again[i].start_ns == all[i].start_ns && again[i].name == all[i].name + 1 &&
               again[i].id == all[i].id && again[i].arg == all[i].arg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct ms_str blob = {(const char *)data, (uint32_t)size};
    struct ms_err err = {0};
    uint32_t n = 0;
    if (mstx_unpack(blob, all, &n, &err) != MS_OK) {
        assert(n == 0 && err.msg[0] != '\0');
        return 0;
    }
    assert(n <= MSTX_CHUNK_MAX);
    struct mstx_packer *p = mstx_packer_new();
    assert(p != NULL);
    for (uint32_t i = 0; i < n; i++)
        check_event(&all[i], blob);
    check_drawn(blob, n);
    check_renumbered(p, blob, n);
    mstx_packer_free(p);
    return 0;
}
