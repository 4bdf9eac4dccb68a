/* SPDX-License-Identifier: MIT
 *
 * against: see the header.
 */
#include "mstx/differ/against.h"

#include "mstx/conclude/run_ready.h"

#include "probe/base/mem.h"

#include <sys/stat.h>

/* ---- reading --------------------------------------------------------------------------------- */

static enum ms_rc read_run(struct mstx_against *a, const char *path,
                           const struct mstx_step_range *steps, struct mstx_profile *p,
                           struct mstx_run_facts *f, struct ms_err *err)
{
    struct mstx_tl *tl;
    enum ms_rc rc = mstx_run_open(&tl, path, NULL, err);
    if (rc != MS_OK)
        return rc;
    rc = mstx__profile_read(p, tl, *steps, &a->places, err);
    if (rc == MS_OK && f != NULL)
        rc = mstx__facts_read(f, tl, p, err);
    mstx_tl_close(tl);
    return rc != MS_OK ? ms_err_wrap(err, "%s", path) : MS_OK;
}

static bool is_same(const struct mstx_against_how *how)
{
    struct stat old, new;
    return stat(how->old_path, &old) == 0 && stat(how->new_path, &new) == 0 &&
           old.st_dev == new.st_dev &&old.st_ino == new.st_ino &&
           how->old_steps.first == how->new_steps.first &&
           how->old_steps.last == how->new_steps.last;
}

static enum ms_rc find_causes(struct mstx_against *a, const struct mstx_profile *noise,
                              size_t noises, struct ms_err *err)
{
    return mstx__difference_find(&a->difference, &a->places, &a->old, &a->new, noise, noises) &&
                   mstx__causes_find(&a->causes, &a->difference)
               ? MS_OK
               : ms_no_memory(err);
}

enum ms_rc mstx_against_read(struct mstx_against *a, const struct mstx_against_how *how,
                             struct ms_err *err)
{
    *a = (struct mstx_against){
        .old_facts.path = how->old_path, .new_facts.path = how->new_path, .is_same = is_same(how)};
    struct mstx_profile *noise = ms_calloc(how->noises + 1, sizeof *noise);
    enum ms_rc rc = noise != NULL && mstx__places_new(&a->places) ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK)
        rc = read_run(a, how->old_path, &how->old_steps, &a->old, &a->old_facts, err);
    if (rc == MS_OK)
        rc = read_run(a, how->new_path, &how->new_steps, &a->new, &a->new_facts, err);
    for (size_t i = 0; i < how->noises && rc == MS_OK; i++)
        rc = read_run(a, how->noise[i], &how->old_steps, &noise[i], NULL, err);
    if (rc == MS_OK)
        rc = find_causes(a, noise, how->noises, err);
    for (size_t i = 0; i < how->noises && noise != NULL; i++)
        mstx__profile_free(&noise[i]);
    ms_free(noise);
    return rc;
}

void mstx_against_free(struct mstx_against *a)
{
    mstx__causes_free(&a->causes);
    mstx__difference_free(&a->difference);
    mstx__profile_free(&a->old);
    mstx__profile_free(&a->new);
    mstx__places_free(&a->places);
    mstx__facts_free(&a->old_facts);
    mstx__facts_free(&a->new_facts);
}
