/* SPDX-License-Identifier: MIT
 *
 * ext_held: calls that stay open while code of the program runs, those that end before the next
 * one is entered, and what waits for the next call of the program.
 */
#include "probe/python/ext.h"

unsigned ext_generation;

struct ext_held_call ext_hold_call(struct probe_call *call)
{
    return (struct ext_held_call){.call = call,
                                  .uses = call != NULL ? probe__call_uses(call) : 0,
                                  .generation = ext_generation};
}

struct probe_call *ext_open_call(const struct ext_held_call *held)
{
    const bool is_open = held->call != NULL && ext_dumper != NULL &&
                         held->generation == ext_generation &&
                         probe__call_uses(held->call) == held->uses;
    return is_open ? held->call : NULL;
}

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

/* A function to call before the next call of the program is entered, once; NULL: none. */
static PyObject *before_next;

void ext_begin_call(void)
{
    ext_leave_calls();
    if (before_next == NULL)
        return;
    PyObject *func = before_next;
    before_next = NULL;
    PyObject *done = ext_ask(func, NULL, 0);
    if (done == NULL)
        ext_fail("what waits for the next call");
    Py_XDECREF(done);
    Py_DECREF(func);
}

void ext_when_called(PyObject *func)
{
    Py_XSETREF(before_next, Py_NewRef(func));
}

bool ext_leave_later(struct probe_call *c, uint64_t uses)
{
    if (ext_leaving == LEAVING_MAX)
        ext_leave_calls();
    leaving[ext_leaving].call = c;
    leaving[ext_leaving].uses = uses;
    return ext_leaving++ == 0;
}
