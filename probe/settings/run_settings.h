/* SPDX-License-Identifier: MIT
 *
 * run_settings: what a program is started with: its command, environment and installed Python packages, as a
 * file of a run, and in what two runs differ.
 */
#ifndef PROBE_SETTINGS_RUN_SETTINGS_H
#define PROBE_SETTINGS_RUN_SETTINGS_H

#include "probe/base/str.h"
#include "probe/base/vec.h"

/* ---- collecting ------------------------------------------------------------------------------ */

/* Parts of names of variables whose values are secrets, ended by NULL. MSPROBE_SECRETS in the
 * environment, words with commas between, replaces the list; empty, it hides nothing. */
extern const char *const ms_secret_words[];
/* Tells whether the value of a variable or option of this name is kept out of files. */
bool ms_is_secret(struct ms_str name);

/* Receives an installed package. */
typedef enum ms_rc ms_package_fn(void *ctx, struct ms_str name, struct ms_str version,
                                 struct ms_err *err);
/* Lists the packages that the first python3 of PATH would import, and counts them. No Python is started:
 * packages are folders NAME-VERSION.dist-info in the folders that Python searches. */
enum ms_rc ms_packages_each(ms_package_fn *fn, void *ctx, uint64_t *n,
                            struct ms_err *err) MS_MUST_USE;

#define MS_SETTINGS_FILE "settings.json"
/* Writes the settings of a program to DIR/settings.json. */
enum ms_rc ms_settings_write(const char *dir, char *const *program, struct ms_err *err) MS_MUST_USE;

/* ---- differences ------------------------------------------------------------------------------- */

struct ms_setting {
    struct ms_str section, name; /* "packages", "torch" */
    struct ms_str old, new;      /* empty: not set */
    int rank;                    /* the lower, the more it can explain */
};
struct ms_settings_diff {
    struct ms_arena *arena;
    MS_VEC(struct ms_setting) all; /* what can explain most first */
};
/* Compares the settings of two runs: those in the folders, or, of a path inside of a run, in the folders
 * above it. Without a file on either side nothing differs. */
enum ms_rc ms_settings_differ(struct ms_settings_diff *d, const char *old_path,
                              const char *new_path, struct ms_err *err) MS_MUST_USE;
void ms_settings_diff_free(struct ms_settings_diff *d);
/* Appends at most `most` differences as lines; nothing when there are none. */
void ms_settings_diff_text(const struct ms_settings_diff *d, size_t most, struct ms_buf *out);

#endif
