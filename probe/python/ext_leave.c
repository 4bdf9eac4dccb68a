/* SPDX-License-Identifier: MIT
 *
 * ext_leave: calls that end before the next one is entered.
 */
#include "probe/python/ext.h"

/* Calls that have all their values and end before the next call is entered: gradients of
 * parameters computed by the same node have to be recorded inside them. */
enum { LEAVING_MAX = 64 };
static struct {
    struct probe_call *call;
    uint64_t uses;
} leaving[LEAVING_MAX];
unsigned ext_leaving;

void ext_leave_calls(void)
{
    unsigned n = ext_leaving;
    ext_leaving = 0;
    for (unsigned i = 0; i < n; i++) {
        if (ext_dumper != NULL && probe__call_uses(leaving[i].call) == leaving[i].uses)
            probe_call_exit(leaving[i].call);
    }
}

bool ext_leave_later(struct probe_call *c, uint64_t uses)
{
    if (ext_leaving == LEAVING_MAX)
        ext_leave_calls();
    leaving[ext_leaving].call = c;
    leaving[ext_leaving].uses = uses;
    return ext_leaving++ == 0;
}
