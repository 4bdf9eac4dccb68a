/* SPDX-License-Identifier: MIT
 *
 * rt_nvtx_next_ext: the extension modules of the next NVTX tool.  Each is offered to it when the
 * first image of the program offers it to us, under the same version; one table of slots serves
 * all images.
 */
#include "mstx/rt_nvtx.h"

#include <dlfcn.h>

enum { MODULES = 5, SLOTS = 63 };
enum { IDLE, OFFERING, OFFERED };

typedef int extension_fn(struct nvtx_module *);
static extension_fn *extension;
static struct {
    _Atomic int state;
    uint16_t compat;
    intptr_t slots[SLOTS + 1];
} modules[MODULES];

void nvtx_next_extension(void *lib)
{
    void *found = lib != NULL ? dlsym(lib, "InitializeInjectionNvtxExtension") : NULL;
    memcpy(&extension, &found, sizeof extension);
}

/* What the tool left empty, and all of it when it refuses, is not called. */
static void offer(const struct nvtx_module *m, intptr_t *slots)
{
    struct nvtx_segment segment = {m->segment->id, SLOTS, slots};
    struct nvtx_module copy = *m;
    copy.segments = 1;
    copy.segment = &segment;
    bool ok = extension(&copy) != 0;
    for (int i = 0; i < SLOTS; i++)
        slots[i] = ok && slots[i] != -1 ? slots[i] : 0;
}

void nvtx_next_offer(const struct nvtx_module *m)
{
    int idle = IDLE;
    if (!atomic_load(&nvtx_has_next) || extension == NULL || m->id >= MODULES)
        return;
    if (!atomic_compare_exchange_strong(&modules[m->id].state, &idle, OFFERING)) {
        while (atomic_load(&modules[m->id].state) != OFFERED) /* by another thread */
            sched_yield();
        return;
    }
    modules[m->id].compat = m->compat;
    offer(m, modules[m->id].slots);
    atomic_store(&modules[m->id].state, OFFERED);
}

intptr_t nvtx_next_slot_of(unsigned module, unsigned slot)
{
    bool there = atomic_load_explicit(&modules[module].state, memory_order_acquire) == OFFERED;
    return there ? modules[module].slots[slot] : 0;
}

bool nvtx_next_counts_by_structure(void)
{
    return modules[NVTX_MODULE_COUNTERS].compat >= NVTX_COUNTERS_0102;
}
