/* SPDX-License-Identifier: MIT
 *
 * cmd_table_probe: the commands of this folder. A word here declares `const struct ms_cmd
 * probe_cmd_WORD`, which a cmd_*.c of this folder defines.
 */
#include "probe/cli/cmds.h"

#define COMMANDS(X) X(stat) X(parse) X(overflow_check) X(data2db)

#define DECLARE(name) extern const struct ms_cmd probe_cmd_##name;
COMMANDS(DECLARE)
#define POINT_TO(name) &probe_cmd_##name,
const struct ms_cmd *const probe_cmds[] = {COMMANDS(POINT_TO) NULL};
