/* SPDX-License-Identifier: MIT
 *
 * cmd_table_web: the commands of this folder. Each word in COMMANDS names a `const struct ms_cmd
 * web_cmd_WORD`, defined in web/cmd/cmd_WORD.c.
 */
#include "probe/cli/cmds.h"

#define COMMANDS(X) X(serve)

#define DECLARE(name) extern const struct ms_cmd web_cmd_##name;
COMMANDS(DECLARE)
#define POINT_TO(name) &web_cmd_##name,
const struct ms_cmd *const web_cmds[] = {COMMANDS(POINT_TO) NULL};
