/* SPDX-License-Identifier: MIT
 *
 * fuzz_monitor_settings: any text as a monitor's config.json. What is accepted keeps its rules; what is
 * refused leaves nothing behind.
 */
#include "probe/base/log.h"
#include "probe/base/mem.h"
#include "probe/monitor/monitor.h"

#include <assert.h>

static void check(const struct probe_monitor_settings *s)
{
    unsigned seen = 0;
    assert(s->nops >= 2 && s->nops <= PROBE_MON_OPS && s->nrules <= PROBE_MON_RULES);
    for (uint32_t i = 0; i < s->nops; i++) {
        assert((seen >> s->ops[i] & 1) == 0);
        seen |= 1U << s->ops[i];
    }
    assert((seen >> PROBE_MON_SHAPE & 1) != 0 && (seen >> PROBE_MON_DTYPE & 1) != 0);
    assert(s->targets != NULL && s->targets[0] != NULL);
    assert(s->eps >= 0 && s->step_interval >= 1 && s->step_count_per_record >= 1);
    for (uint32_t i = 0; i < s->nrules; i++)
        assert(s->rules[i].is_nan || s->rules[i].threshold >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct probe_monitor_settings *s;
    struct ms_err err = {0};
    const size_t before = ms_mem_live();
    ms_log_set_level(MS_LOG_ERROR);
    if (n > UINT32_MAX)
        return 0;
    const struct ms_str text = {(const char *)p, (uint32_t)n};
    if (probe_monitor_settings_parse(&s, "config.json", text, &err) == MS_OK)
        check(s);
    else
        assert(s == NULL && err.msg[0] != '\0');
    probe_monitor_settings_free(s);
    assert(ms_mem_live() == before);
    return 0;
}
