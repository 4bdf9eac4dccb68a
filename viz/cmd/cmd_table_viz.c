/* SPDX-License-Identifier: MIT
 *
 * cmd_table_viz: the commands of this folder. Each word in COMMANDS names a `const struct ms_cmd
 * viz_cmd_WORD`, defined in viz/cmd/cmd_WORD.c.
 */
#include "probe/cli/cmds.h"

#define COMMANDS(X) X(view)

#define DECLARE(name) extern const struct ms_cmd viz_cmd_##name;
COMMANDS(DECLARE)
#define POINT_TO(name) &viz_cmd_##name,
const struct ms_cmd *const viz_cmds[] = {COMMANDS(POINT_TO) NULL};
