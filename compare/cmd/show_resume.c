/* SPDX-License-Identifier: MIT
 *
 * show_resume: the first state that differs, then the others.
 */
#include "compare/cmd/show_resume.h"

#include "probe/base/jprint.h"
#include "probe/base/opt.h"

#include <stdio.h>

static void print_clean(const struct resume_result *r)
{
    if (r->later)
        printf("no contradiction found: step %g of the second can continue step %g of the first "
               "(%llu tensors and %llu values checked)\n",
               r->steps[1], r->steps[0], (unsigned long long)r->tensors,
               (unsigned long long)r->values);
    else
        printf("the resumed run is the continued one (%llu tensors and %llu values agree)\n",
               (unsigned long long)r->tensors, (unsigned long long)r->values);
}

void resume_show_text(const struct resume_result *r, size_t most)
{
    if (r->findings.n == 0) {
        print_clean(r);
        return;
    }
    printf("the resumed run is not the continued one; first state that differs:\n");
    const size_t shown = ms_cmd_listed(r->findings.n, most);
    for (size_t i = 0; i < shown; i++)
        printf("%s%s\n", i == 0 ? "  " : i == 1 ? "then:\n  " : "  ", r->findings.p[i].text);
    ms_cmd_more(stdout, r->findings.n - shown, "states that differ");
}

static void put_finding(struct ms_jwrite *w, const struct resume_finding *f)
{
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "kind", resume_kind_text(f->kind));
    ms_jwrite_kstr(w, "role", resume_role_text(f->role));
    ms_jwrite_ktext(w, "state", f->name);
    if (f->other.p != NULL)
        ms_jwrite_ktext(w, "other", f->other);
    ms_jwrite_kstr(w, "text", f->text);
    ms_jwrite_obj_end(w);
}

enum ms_rc resume_show_json(const struct resume_result *r, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_kbool(&w, "continued", r->findings.n == 0);
    if (r->has_steps) {
        ms_jwrite_key(&w, MS_STR("steps"));
        ms_jwrite_arr(&w);
        ms_jwrite_f64(&w, r->steps[0]);
        ms_jwrite_f64(&w, r->steps[1]);
        ms_jwrite_arr_end(&w);
    }
    ms_jwrite_ki64(&w, "tensors", (int64_t)r->tensors);
    ms_jwrite_ki64(&w, "values", (int64_t)r->values);
    ms_jwrite_key(&w, MS_STR("findings"));
    ms_jwrite_arr(&w);
    for (size_t i = 0; i < r->findings.n; i++)
        put_finding(&w, &r->findings.p[i]);
    ms_jwrite_arr_end(&w);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}
