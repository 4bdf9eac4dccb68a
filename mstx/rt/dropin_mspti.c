/* SPDX-License-Identifier: MIT
 *
 * dropin_mspti: the marker part of the vendor's monitoring interface, for programs and
 * frameworks that look for libmspti.so.  Markers are collected into buffers that the program
 * provides and gets back full, as from the original: packed records, a range as two, the end
 * without name. Kinds other than markers are accepted, but no records of them are made.
 */
#include "mstx/rt/entry.h"

#include "probe/base/compat.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

enum msptiResult {
    MSPTI_SUCCESS = 0,
    MSPTI_ERROR_INVALID_PARAMETER = 1,
    MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 2,
    MSPTI_ERROR_MAX_LIMIT_REACHED = 3,
    MSPTI_ERROR_QUEUE_EMPTY = 5,
};
enum {
    KIND_MARKER = 1,
    KINDS = 13,
    SOURCE_HOST = 0,
    DOMAINS_OFF = 64,
    STACK = 64, /* external correlation ids of a thread, per kind */
    CORRELATION_KINDS = 5,
};
enum { FLAG_INSTANT = 1, FLAG_START = 2, FLAG_END = 4 };

struct __attribute__((packed, aligned(8))) marker {
    uint32_t kind, flag, source;
    uint64_t timestamp, id;
    uint32_t pid, tid;
    const char *name, *domain;
};
_Static_assert(sizeof(struct marker) == 56, "marker");
_Static_assert(offsetof(struct marker, timestamp) == 12, "marker");
_Static_assert(offsetof(struct marker, name) == 36, "marker");

typedef void request_fn(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void complete_fn(uint8_t *buffer, size_t size, size_t valid);
typedef void callback_fn(void *user, int domain, uint32_t id, const void *data);

/* The lock is recursive, because a callback may call back. The text of a record stays valid while
 * the program holds its buffer: texts are stored behind the records, from the end of the buffer
 * downwards. */
static struct {
    pthread_mutex_t lock;
    request_fn *request;
    complete_fn *complete;
    uint8_t *buf;
    size_t size, used, texts, records, max;
    bool enabled[KINDS];
    char off[DOMAINS_OFF][128];
    uint64_t marks;
    bool subscribed;
} pti = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};

/* ---- buffers ------------------------------------------------------------------------------ */

static void give_back(void)
{
    uint8_t *buf = pti.buf;
    pti.buf = NULL;
    if (buf != NULL && pti.complete != NULL)
        pti.complete(buf, pti.size, pti.used);
}

static bool get_buffer(void)
{
    size_t size = 0, max = 0;
    uint8_t *buf = NULL;
    if (pti.request == NULL)
        return false;
    pti.request(&buf, &size, &max);
    if (buf == NULL || size < sizeof(struct marker))
        return false;
    pti.buf = buf;
    pti.size = pti.texts = size;
    pti.used = pti.records = 0;
    pti.max = max;
    return true;
}

static bool fits(size_t text)
{
    return pti.buf != NULL && pti.used + sizeof(struct marker) + text <= pti.texts &&
           (pti.max == 0 || pti.records < pti.max);
}

static const char *keep_text(const char *text, size_t n)
{
    pti.texts -= n;
    memcpy(pti.buf + pti.texts, text, n);
    return (const char *)pti.buf + pti.texts;
}

static bool is_off(const char *domain)
{
    for (int i = 0; i < DOMAINS_OFF; i++) {
        if (strcmp(pti.off[i], domain) == 0)
            return true;
    }
    return false;
}

static void add_record(struct marker *m, const char *name, const char *domain)
{
    size_t a = strlen(name) + 1, b = strlen(domain) + 1;
    if (!fits(a + b)) {
        give_back();
        if (!get_buffer() || !fits(a + b))
            return;
    }
    m->name = keep_text(name, a);
    m->domain = keep_text(domain, b);
    memcpy(pti.buf + pti.used, m, sizeof *m);
    pti.used += sizeof *m;
    pti.records++;
}

static void hear_record(const struct mstx_heard *h)
{
    static const uint32_t flags[] = {FLAG_INSTANT, FLAG_START, FLAG_END};
    struct marker m = {.kind = KIND_MARKER,
                       .flag = flags[h->kind],
                       .source = SOURCE_HOST,
                       .timestamp = (uint64_t)h->ns,
                       .id = h->id,
                       .pid = (uint32_t)getpid(),
                       .tid = (uint32_t)ms_gettid()};
    pthread_mutex_lock(&pti.lock);
    if (h->kind == MSTX_HEARD_MARK)
        m.id = UINT64_C(1) << 32 | ++pti.marks; /* never the id of a range */
    if (pti.enabled[KIND_MARKER] && !is_off(h->domain))
        add_record(&m, h->message != NULL ? h->message : "",
                   h->kind != MSTX_HEARD_END ? h->domain : "");
    pthread_mutex_unlock(&pti.lock);
}

/* ---- activities ----------------------------------------------------------------------------- */

API int msptiActivityRegisterCallbacks(request_fn *request, complete_fn *complete);
API int msptiActivityEnable(int kind);
API int msptiActivityDisable(int kind);
API bool msptiActivityIsEnabled(int kind);
API int msptiActivityEnableMarkerDomain(const char *name);
API int msptiActivityDisableMarkerDomain(const char *name);
API int msptiActivityGetNextRecord(uint8_t *buffer, size_t valid, struct marker **record);
API int msptiActivityFlushAll(uint32_t flag);
API int msptiActivityFlushPeriod(uint32_t ms);
API int msptiActivityPushExternalCorrelationId(int kind, uint64_t id);
API int msptiActivityPopExternalCorrelationId(int kind, uint64_t *id);
API int msptiSubscribe(void **handle, callback_fn *callback, void *user);
API int msptiUnsubscribe(void *handle);
API int msptiEnableCallback(uint32_t enable, void *handle, int domain, uint32_t id);
API int msptiEnableDomain(uint32_t enable, void *handle, int domain);

int msptiActivityRegisterCallbacks(request_fn *request, complete_fn *complete)
{
    if (request == NULL || complete == NULL)
        return MSPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&pti.lock);
    pti.request = request;
    pti.complete = complete;
    pthread_mutex_unlock(&pti.lock);
    return MSPTI_SUCCESS;
}

static int enable_kind(int kind, bool on)
{
    if (kind <= 0 || kind >= KINDS)
        return MSPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&pti.lock);
    pti.enabled[kind] = on;
    pthread_mutex_unlock(&pti.lock);
    if (kind == KIND_MARKER)
        mstx_rt_entry.listen(on ? hear_record : NULL);
    return MSPTI_SUCCESS;
}

int msptiActivityEnable(int kind)
{
    return enable_kind(kind, true);
}
int msptiActivityDisable(int kind)
{
    return enable_kind(kind, false);
}

bool msptiActivityIsEnabled(int kind)
{
    pthread_mutex_lock(&pti.lock);
    bool on = kind > 0 && kind < KINDS && pti.enabled[kind];
    pthread_mutex_unlock(&pti.lock);
    return on;
}

/* Switches a domain on or off. Names are compared whole; the original compares prefixes. */
static int set_domain(const char *name, const char *from, const char *to)
{
    if (name == NULL || name[0] == '\0' || strlen(name) >= sizeof pti.off[0])
        return MSPTI_ERROR_INVALID_PARAMETER;
    int rc = MSPTI_ERROR_MAX_LIMIT_REACHED;
    pthread_mutex_lock(&pti.lock);
    for (int i = 0; i < DOMAINS_OFF && rc != MSPTI_SUCCESS; i++) {
        if (strcmp(pti.off[i], from) != 0)
            continue;
        memcpy(pti.off[i], to, strlen(to) + 1);
        rc = MSPTI_SUCCESS;
    }
    pthread_mutex_unlock(&pti.lock);
    return rc;
}

int msptiActivityEnableMarkerDomain(const char *name)
{
    int rc = set_domain(name, name, "");
    /* The domain was not switched off. */
    return rc == MSPTI_ERROR_MAX_LIMIT_REACHED ? MSPTI_SUCCESS : rc;
}

int msptiActivityDisableMarkerDomain(const char *name)
{
    return set_domain(name, "", name);
}

/* Returns the next record of a buffer. The position is kept per thread; *record is ignored, as in
 * the original. */
int msptiActivityGetNextRecord(uint8_t *buffer, size_t valid, struct marker **record)
{
    static __thread size_t at;
    if (buffer == NULL || record == NULL)
        return MSPTI_ERROR_INVALID_PARAMETER;
    if (at + sizeof(struct marker) > valid) {
        at = 0;
        return MSPTI_ERROR_MAX_LIMIT_REACHED;
    }
    *record = (struct marker *)(void *)(buffer + at);
    at += sizeof(struct marker);
    return MSPTI_SUCCESS;
}

int msptiActivityFlushAll(uint32_t flag)
{
    (void)flag;
    pthread_mutex_lock(&pti.lock);
    give_back();
    pthread_mutex_unlock(&pti.lock);
    return MSPTI_SUCCESS;
}

/* Accepted without effect: full buffers are returned at once, the others on request. */
int msptiActivityFlushPeriod(uint32_t ms)
{
    (void)ms;
    return MSPTI_SUCCESS;
}

/* ---- correlation ids, per thread and kind ------------------------------------------------------ */

static __thread struct {
    uint64_t id[CORRELATION_KINDS][STACK];
    unsigned n[CORRELATION_KINDS];
} corr;

int msptiActivityPushExternalCorrelationId(int kind, uint64_t id)
{
    if (kind <= 0 || kind >= CORRELATION_KINDS)
        return MSPTI_ERROR_INVALID_PARAMETER;
    if (corr.n[kind] == STACK)
        return MSPTI_ERROR_MAX_LIMIT_REACHED;
    corr.id[kind][corr.n[kind]++] = id;
    return MSPTI_SUCCESS;
}

int msptiActivityPopExternalCorrelationId(int kind, uint64_t *id)
{
    if (kind <= 0 || kind >= CORRELATION_KINDS)
        return MSPTI_ERROR_INVALID_PARAMETER;
    if (corr.n[kind] == 0)
        return MSPTI_ERROR_QUEUE_EMPTY;
    uint64_t top = corr.id[kind][--corr.n[kind]];
    if (id != NULL)
        *id = top;
    return MSPTI_SUCCESS;
}

/* ---- subscribers: accepted, one at a time; there are no callbacks without a device -------------- */

int msptiSubscribe(void **handle, callback_fn *callback, void *user)
{
    (void)user;
    if (handle == NULL || callback == NULL)
        return MSPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&pti.lock);
    bool taken = pti.subscribed;
    pti.subscribed = true;
    pthread_mutex_unlock(&pti.lock);
    if (taken)
        return MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    *handle = &pti;
    return MSPTI_SUCCESS;
}

int msptiUnsubscribe(void *handle)
{
    if (handle != &pti)
        return MSPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&pti.lock);
    pti.subscribed = false;
    pthread_mutex_unlock(&pti.lock);
    return MSPTI_SUCCESS;
}

int msptiEnableCallback(uint32_t on, void *handle, int domain, uint32_t id)
{
    (void)on;
    (void)id;
    return handle == &pti && domain > 0 ? MSPTI_SUCCESS : MSPTI_ERROR_INVALID_PARAMETER;
}

int msptiEnableDomain(uint32_t on, void *handle, int domain)
{
    return msptiEnableCallback(on, handle, domain, 0);
}
