/* SPDX-License-Identifier: MIT
 *
 * domain: the domains of the process, in a table whose entries are the handles that
 * callers hold.  An entry is never moved or given to another name, so a stale handle is
 * harmless.  `live` of each holds the result of every filter; it is recomputed when the
 * filter, the state of recording or the table changes, so a filtered call reads one byte.
 */
#include "mstx/rt/domain.h"

#include <stdio.h>

#include "mstx/format/comm.h"
#include "mstx/rt/string_file.h"

struct rt_domain rt_domains[RT_DOMAINS] = {{.name = "default"}};
struct rt_domain *rt_comm_domain;

enum { NAME_MAX_BYTES = 1023 };

static struct {
    _Atomic uint32_t count;
    char include[1024], exclude[1024];
    _Atomic(rt_tap_fn *) taps[RT_TAPS];
} dom = {.count = 1};

uint32_t rt_domain_count(void)
{
    return atomic_load(&dom.count);
}

/* Tells whether name is one of the comma separated words. */
static bool is_listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; *p != '\0'; p += *p == ',') {
        size_t len = strcspn(p, ",");
        if (len == n && memcmp(p, name, n) == 0)
            return true;
        p += len;
    }
    return false;
}

static uint8_t live_of(const struct rt_domain *d)
{
    ms_assert(d->name != NULL && d == &rt_domains[d->number]);
    int state = atomic_load(&rt.state);
    if (d->destroyed)
        return RT_DEAD;
    bool wanted = dom.include[0] == '\0' || is_listed(dom.include, d->name);
    bool records = wanted && !is_listed(dom.exclude, d->name) && atomic_load(&rt.recording) != 0 &&
                   (state == RT_IDLE || state == RT_RUNNING);
    bool tapped = false;
    for (int i = 0; i < RT_TAPS; i++)
        tapped = tapped || atomic_load(&dom.taps[i]) != NULL;
    return (uint8_t)((records ? RT_RECORD : 0) | (tapped ? RT_TAP : 0));
}

/* Caller holds domain_lock. */
static void refresh_all(void)
{
    ms_assert(atomic_load(&rt.domain_lock.held) == 1);
    uint32_t n = atomic_load(&dom.count);
    for (uint32_t i = 0; i < n; i++)
        atomic_store_explicit(&rt_domains[i].live, live_of(&rt_domains[i]), memory_order_relaxed);
}

void rt_domain_refresh(void)
{
    rt_lock(&rt.domain_lock);
    refresh_all();
    rt_unlock(&rt.domain_lock);
}

void rt_domain_filter(const char *include, const char *exclude)
{
    rt_lock(&rt.domain_lock);
    if (include != NULL)
        snprintf(dom.include, sizeof dom.include, "%s", include);
    if (exclude != NULL)
        snprintf(dom.exclude, sizeof dom.exclude, "%s", exclude);
    refresh_all();
    rt_unlock(&rt.domain_lock);
}

static void define(struct rt_domain *d)
{
    if (!rt_is_running() || atomic_exchange(&d->epoch, rt.epoch) == rt.epoch)
        return;
    rt_text_define(MSTX_DOMAIN, d->number, 0, d->name, strlen(d->name));
}

void rt_domain_define_all(void)
{
    rt_lock(&rt.domain_lock);
    uint32_t n = atomic_load(&dom.count);
    for (uint32_t i = 0; i < n; i++)
        define(&rt_domains[i]);
    rt_unlock(&rt.domain_lock);
}

/* Tells whether an allocator is known to pass uninitialised handles: PyTorch's NPU allocator leaves
 * fields of its memory descriptions unset. */
static bool passes_garbage(const char *name)
{
    return strcmp(name, "ptaCaching") == 0 || strcmp(name, "ptaWorkspace") == 0;
}

static struct rt_domain *find(const char *name)
{
    uint32_t n = atomic_load(&dom.count);
    for (uint32_t i = 1; i < n; i++) {
        if (strcmp(rt_domains[i].name, name) == 0)
            return &rt_domains[i];
    }
    return NULL;
}

static struct rt_domain *add(const char *name)
{
    ms_assert(atomic_load(&rt.domain_lock.held) == 1);
    uint32_t n = atomic_load(&dom.count);
    const char *kept = n < RT_DOMAINS ? rt_keep(name, strlen(name)) : NULL;
    if (kept == NULL)
        return NULL;
    struct rt_domain *d = &rt_domains[n];
    d->name = kept;
    d->number = (uint16_t)n;
    d->foreign_memory = passes_garbage(kept);
    if (strcmp(kept, MSTX_COMM_DOMAIN) == 0)
        rt_comm_domain = d;
    atomic_store(&dom.count, n + 1);
    return d;
}

/* Tells whether an existing domain can be returned as it is. */
static bool is_settled(const struct rt_domain *d)
{
    return !__atomic_load_n(&d->destroyed, __ATOMIC_ACQUIRE) && rt_is_running() &&
           atomic_load(&d->epoch) == rt.epoch;
}

struct rt_domain *rt_domain_create(const char *name)
{
    if (!rt_message_ok(name) || strlen(name) > NAME_MAX_BYTES) {
        rt_say(RT_SAY_DOMAIN, 0, "a domain name is missing, too long or begins with = + - @");
        return NULL;
    }
    if (strcmp(name, "default") == 0)
        return NULL; /* the reserved name: NULL is the default domain */
    struct rt_domain *d = find(name);
    if (d != NULL && is_settled(d)) /* the fast case: Python looks the domain up with every mark */
        return d;
    rt_lock(&rt.domain_lock);
    d = find(name);
    if (d == NULL)
        d = add(name);
    if (d != NULL) {
        __atomic_store_n(&d->destroyed, false, __ATOMIC_RELEASE); /* creating again revives */
        define(d);
        atomic_store(&d->live, live_of(d));
    }
    rt_unlock(&rt.domain_lock);
    if (d == NULL)
        rt_say(RT_SAY_DOMAIN, 0, "more than %d domains; the rest counts as default", RT_DOMAINS);
    return d;
}

void rt_domain_destroy(struct rt_domain *d)
{
    ms_assert(rt_domain_of(d) == d && d->number < rt_domain_count());
    if (d == &rt_domains[0])
        return; /* the default domain stays */
    rt_lock(&rt.domain_lock);
    d->destroyed = true;
    atomic_store(&d->live, RT_DEAD);
    rt_unlock(&rt.domain_lock);
}

/* ---- taps ------------------------------------------------------------------------ */

void rt_set_tap(int which, rt_tap_fn *fn)
{
    ms_assert(which >= 0 && which < RT_TAPS);
    atomic_store(&dom.taps[which], fn);
    rt_domain_refresh();
}

void rt_pass_to_taps(enum rt_tap_kind kind, struct rt_domain *d, const char *message, void *stream,
                     uint32_t id, uint64_t *other)
{
    ms_assert(kind == RT_TAP_END || message != NULL);
    for (int i = 0; i < RT_TAPS; i++) {
        rt_tap_fn *fn = atomic_load(&dom.taps[i]);
        if (fn != NULL)
            fn(kind, d, message, stream, id, other);
    }
}
