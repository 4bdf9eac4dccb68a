/* SPDX-License-Identifier: MIT
 *
 * cmd_table_mstx: the commands of this folder.  One word here adds
 * `const struct ms_cmd mstx_cmd_WORD`, which mstx/cmd/cmd_WORD.c defines.  The program
 * declares the list in probe/cli/cmds.h.
 */
#include "probe/base/opt.h"

extern const struct ms_cmd *const mstx_cmds[];

#define COMMANDS(X) X(run) X(ctl) X(import) X(report) X(whatif) X(cluster) X(export) X(sql)

#define DECLARE(name) extern const struct ms_cmd mstx_cmd_##name;
COMMANDS(DECLARE)
#define POINT_TO(name) &mstx_cmd_##name,
const struct ms_cmd *const mstx_cmds[] = {COMMANDS(POINT_TO) NULL};
