/* SPDX-License-Identifier: MIT
 *
 * config_zip: archives of configurations. What is read comes from strangers: names that climb out of a
 * folder, links and archives that grow beyond all bounds are refused before anything is unpacked.
 */
#ifndef COMPARE_CONFIG_CONFIG_ZIP_H
#define COMPARE_CONFIG_CONFIG_ZIP_H

#include "probe/base/arena.h"
#include "probe/base/io.h"
#include "probe/base/zip.h"

/* Limits of an archive that is read. */
#define CFG_ZIP_MEMBER_MAX ((uint64_t)256 << 20)
#define CFG_ZIP_TOTAL_MAX  ((uint64_t)1 << 30)
enum { CFG_ZIP_MEMBERS_MAX = 100000 };

struct cfg_zip {
    struct ms_file file;
    struct probe_zip_large zip;
    const char *path; /* borrowed */
};

enum ms_rc cfg_zip_open(struct cfg_zip *z, const char *path, struct ms_err *err) MS_MUST_USE;
/* The same for bytes in memory, which must outlive z. */
enum ms_rc cfg_zip_parse(struct cfg_zip *z, const char *name, const char *p, size_t n,
                         struct ms_err *err) MS_MUST_USE;
void cfg_zip_close(struct cfg_zip *z);
/* Unpacks a member into the arena and checks its CRC. */
enum ms_rc cfg_zip_text(const struct cfg_zip *z, const struct probe_zip_member *m,
                        struct ms_arena *a, struct ms_str *text, struct ms_err *err) MS_MUST_USE;
/* Unpacks all members below a folder. */
enum ms_rc cfg_zip_extract(const struct cfg_zip *z, const char *dir,
                           struct ms_err *err) MS_MUST_USE;

/* Writes an archive member by member; the file appears whole or not at all. */
struct cfg_zip_out {
    struct ms_out *out;
    struct ms_buf directory;
    uint32_t members;
};
enum ms_rc cfg_zip_create(struct cfg_zip_out *z, const char *path, struct ms_err *err) MS_MUST_USE;
enum ms_rc cfg_zip_add(struct cfg_zip_out *z, const char *name, struct ms_str text,
                       struct ms_err *err) MS_MUST_USE;
/* Ends the archive; rc is the caller's result, and a failed one discards the file. */
enum ms_rc cfg_zip_finish(struct cfg_zip_out *z, enum ms_rc rc, struct ms_err *err);

#endif
