/* SPDX-License-Identifier: MIT
 *
 * rt_hook: see the header.
 */
#include "mstx/rt_hook.h"

#include "mstx/rt.h"

#define API __attribute__((visibility("default")))

API void mstx_device_stream(const void *key, const char *name, uint32_t device, uint32_t number)
{
    if (!rt_start(false))
        return;
    const struct mstx_text *text = rt_text_intern(name, strlen(name));
    struct mstx_rec rec = {.ticks = rt_ticks(),
                           .id = (uint64_t)(uintptr_t)key,
                           .name = text != NULL ? text->id : 0,
                           .type = MSTX_REC_STREAM,
                           .arg = (uint64_t)number << 32 | device};
    rt_lock(&rt.process_lock);
    rt_ring_process(&rec);
    rt_unlock(&rt.process_lock);
}

API uint64_t mstx_device_range(const char *domain, const char *name, void *key, uint64_t *ticks)
{
    struct rt_domain *d = rt_domain_create(domain);
    uint32_t id = d != NULL ? rt_range_start(d, name, key) : 0;
    *ticks = id != 0 ? rt_range_ticks(id) : 0;
    return id;
}

API void mstx_device_range_end(uint64_t id)
{
    if (id != 0)
        rt_range_end(&rt_domains[rt_range_domain((uint32_t)id)], id);
}

API void mstx_device_time(uint64_t id, uint64_t ticks, bool is_end, int64_t ns)
{
    struct rt_ring *r = id != 0 && rt_is_running() ? rt_ring_of_thread() : NULL;
    struct mstx_rec *to = r == NULL ? NULL : rt_reserve(r, 1);
    if (to == NULL)
        return;
    *to = (struct mstx_rec){.ticks = ticks,
                            .id = id,
                            .name = is_end,
                            .type = MSTX_REC_DEVICE,
                            .flags = ns == 0 ? MSTX_F_NO_DEVICE : 0,
                            .arg = (uint64_t)ns};
    rt_publish(r);
}
