/* SPDX-License-Identifier: MIT
 *
 * mspti_app: a program that listens to its own markers through libmspti.so, found by dlsym in
 * what is preloaded, as frameworks do it.  Exit status 0 when all came back as they should.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct __attribute__((packed, aligned(8))) marker {
    uint32_t kind, flag, source;
    uint64_t timestamp, id;
    uint32_t pid, tid;
    const char *name, *domain;
};

static int wrong, marks, starts, ends;
static uint64_t range_id;
static int (*next)(uint8_t *, size_t, struct marker **);
#define EXPECT(cond)                                                                               \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                             \
            wrong++;                                                                               \
        }                                                                                          \
    } while (0)

static void request(uint8_t **buf, size_t *size, size_t *max)
{
    *size = 4096; /* small: several are needed */
    *buf = malloc(*size);
    *max = 0;
}

static void look_at(const struct marker *m)
{
    EXPECT(m->kind == 1 && m->source == 0 && m->timestamp > 1600000000000000000u);
    if (m->flag == 1) {
        marks++;
        EXPECT(strcmp(m->domain, "default") == 0 && strncmp(m->name, "mark", 4) == 0);
    } else if (m->flag == 2) {
        starts++;
        range_id = m->id;
        EXPECT(strcmp(m->name, "range") == 0 && strcmp(m->domain, "own") == 0);
    } else {
        ends++;
        EXPECT(m->flag == 4 && m->id == range_id && m->name[0] == '\0');
    }
}

static void complete(uint8_t *buf, size_t size, size_t valid)
{
    struct marker *m = NULL;
    (void)size;
    while (next(buf, valid, &m) == 0)
        look_at(m);
    free(buf);
}

int main(void)
{
#define GET(type, name) __typeof__(type) *name##_ = (__typeof__(type) *)dlsym(RTLD_DEFAULT, #name)
    typedef void request_fn(uint8_t **, size_t *, size_t *);
    typedef void complete_fn(uint8_t *, size_t, size_t);
    GET(void(const char *, void *), mstxMarkA);
    GET(void *(const char *), mstxDomainCreateA);
    GET(uint64_t(void *, const char *, void *), mstxDomainRangeStartA);
    GET(void(void *, uint64_t), mstxDomainRangeEnd);
    GET(int(request_fn *, complete_fn *), msptiActivityRegisterCallbacks);
    GET(int(int), msptiActivityEnable);
    GET(int(int), msptiActivityDisable);
    GET(bool(int), msptiActivityIsEnabled);
    GET(int(const char *), msptiActivityDisableMarkerDomain);
    GET(int(uint32_t), msptiActivityFlushAll);
    GET(int(int, uint64_t), msptiActivityPushExternalCorrelationId);
    GET(int(int, uint64_t *), msptiActivityPopExternalCorrelationId);
    next = (int (*)(uint8_t *, size_t, struct marker **))dlsym(RTLD_DEFAULT,
                                                               "msptiActivityGetNextRecord");
    if (next == NULL || mstxMarkA_ == NULL)
        return 2;
    EXPECT(msptiActivityRegisterCallbacks_(NULL, NULL) == 1);
    EXPECT(msptiActivityRegisterCallbacks_(request, complete) == 0);
    EXPECT(!msptiActivityIsEnabled_(1));
    EXPECT(msptiActivityEnable_(1) == 0 && msptiActivityEnable_(99) == 1);
    EXPECT(msptiActivityIsEnabled_(1));
    EXPECT(msptiActivityDisableMarkerDomain_("off") == 0);
    void *own = mstxDomainCreateA_("own"), *off = mstxDomainCreateA_("off");
    void *offside = mstxDomainCreateA_("own"); /* equal names, equal handles */
    EXPECT(own == offside);
    for (int i = 0; i < 200; i++)
        mstxMarkA_("mark of some length", NULL);
    mstxDomainRangeEnd_(own, mstxDomainRangeStartA_(own, "range", NULL));
    mstxDomainRangeEnd_(off, mstxDomainRangeStartA_(off, "not heard", NULL));
    EXPECT(msptiActivityFlushAll_(0) == 0);
    EXPECT(msptiActivityDisable_(1) == 0);
    mstxMarkA_("mark after", NULL);
    EXPECT(msptiActivityFlushAll_(0) == 0);
    EXPECT(marks == 200 && starts == 1 && ends == 1);
    uint64_t id = 0;
    EXPECT(msptiActivityPopExternalCorrelationId_(1, &id) == 5);
    EXPECT(msptiActivityPushExternalCorrelationId_(1, 42) == 0);
    EXPECT(msptiActivityPopExternalCorrelationId_(1, &id) == 0 && id == 42);
    return wrong != 0;
}
