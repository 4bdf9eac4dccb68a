/* SPDX-License-Identifier: MIT
 *
 * answers: a list of replies under a lock, the least recently asked one first.
 */
#include "web/serve/answers.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/vec.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

enum { REPLIES_MOST = 256 }; /* a list this short needs no index */

struct kept {
    char *question;
    uint32_t length;
    struct web_shared *reply;
};

struct web_answers {
    pthread_mutex_t lock;
    size_t most, held;
    uint64_t state;   /* of all that is kept */
    uint64_t forgets; /* number of times that everything was dropped */
    MS_VEC(struct kept) list;
};

enum ms_rc web_answers_new(struct web_answers **out, size_t most, struct ms_err *err)
{
    struct web_answers *a = ms_calloc(1, sizeof *a);
    *out = a;
    if (a == NULL)
        return ms_no_memory(err);
    a->most = most;
    pthread_mutex_init(&a->lock, NULL);
    return MS_OK;
}

void web_shared_drop(struct web_shared *s)
{
    if (s != NULL && __atomic_sub_fetch(&s->users, 1, __ATOMIC_ACQ_REL) == 0)
        ms_free(s);
}

void web_shared_drop_bytes(void *bytes)
{
    web_shared_drop((struct web_shared *)((char *)bytes - offsetof(struct web_shared, bytes)));
}

static size_t cost_of(const struct kept *k)
{
    return sizeof *k + sizeof *k->reply + k->length + k->reply->n;
}

/* Removes entry i; the others keep their order. */
static void remove_at(struct web_answers *a, size_t i)
{
    const struct kept old = a->list.p[i];
    a->held -= cost_of(&old);
    a->list.n--;
    memmove(a->list.p + i, a->list.p + i + 1, (a->list.n - i) * sizeof *a->list.p);
    ms_free(old.question);
    web_shared_drop(old.reply);
}

static void drop_all(struct web_answers *a)
{
    while (a->list.n != 0)
        remove_at(a, a->list.n - 1);
    a->forgets++;
}

void web_answers_free(struct web_answers *a)
{
    if (a == NULL)
        return;
    drop_all(a);
    ms_vec_free(&a->list);
    pthread_mutex_destroy(&a->lock);
    ms_free(a);
}

void web_answers_forget(struct web_answers *a)
{
    pthread_mutex_lock(&a->lock);
    drop_all(a);
    pthread_mutex_unlock(&a->lock);
}

/* Index of a question, or the length of the list. */
static size_t index_of(const struct web_answers *a, struct ms_str question)
{
    size_t i = 0;
    while (i < a->list.n &&
           !ms_str_eq(question, (struct ms_str){a->list.p[i].question, a->list.p[i].length}))
        i++;
    return i;
}

/* Moves entry i to the end, where the most recently asked one is. */
static struct web_shared *use_answer(struct web_answers *a, size_t i)
{
    const struct kept k = a->list.p[i];
    memmove(a->list.p + i, a->list.p + i + 1, (a->list.n - i - 1) * sizeof k);
    a->list.p[a->list.n - 1] = k;
    __atomic_add_fetch(&k.reply->users, 1, __ATOMIC_RELAXED);
    return k.reply;
}

struct web_shared *web_answers_find(struct web_answers *a, struct ms_str question, uint64_t state,
                                    uint64_t *asked)
{
    pthread_mutex_lock(&a->lock);
    if (state > a->state) {
        drop_all(a);
        a->state = state;
    }
    *asked = a->forgets;
    const size_t i = state == a->state ? index_of(a, question) : a->list.n;
    struct web_shared *found = i < a->list.n ? use_answer(a, i) : NULL;
    pthread_mutex_unlock(&a->lock);
    return found;
}

static struct web_shared *share_bytes(struct ms_str bytes)
{
    struct web_shared *s = ms_alloc(sizeof *s + bytes.n);
    if (s == NULL)
        return NULL;
    *s = (struct web_shared){.users = 1, .n = bytes.n};
    memcpy(s->bytes, bytes.p, bytes.n);
    return s;
}

/* Appends an entry that fits and drops the oldest ones until all fit. The list becomes an owner
 * of the reply. */
static bool append(struct web_answers *a, struct ms_str question, struct web_shared *reply)
{
    char *text = ms_alloc(question.n + 1);
    struct kept *k = text != NULL ? ms_vec_push(&a->list) : NULL;
    if (k == NULL) {
        ms_free(text);
        return false;
    }
    memcpy(text, question.p, question.n);
    *k = (struct kept){text, question.n, reply};
    reply->users++;
    a->held += cost_of(k);
    while (a->held > a->most || a->list.n > REPLIES_MOST)
        remove_at(a, 0);
    return true;
}

struct web_shared *web_answers_keep(struct web_answers *a, struct ms_str question, uint64_t state,
                                    uint64_t asked, struct ms_str bytes)
{
    const struct kept size = {.length = question.n, .reply = &(struct web_shared){.n = bytes.n}};
    struct web_shared *reply = cost_of(&size) <= a->most / 4 ? share_bytes(bytes) : NULL;
    if (reply == NULL)
        return NULL;
    pthread_mutex_lock(&a->lock);
    bool kept = state == a->state && asked == a->forgets;
    if (kept) {
        const size_t i = index_of(a, question); /* another thread may have been faster */
        if (i < a->list.n)
            remove_at(a, i);
        kept = append(a, question, reply);
    }
    pthread_mutex_unlock(&a->lock);
    if (!kept) {
        web_shared_drop(reply);
        reply = NULL;
    }
    return reply;
}
