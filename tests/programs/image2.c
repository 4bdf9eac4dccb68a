/* SPDX-License-Identifier: MIT
 *
 * image2: the second C file that includes the header: no duplicate symbols, one context.
 */
#include "mstx/ms_tools_ext.h"

void image_mark_too(const char *text);
void image_mark_too(const char *text)
{
    uint64_t tool = 0;
    mstxMarkA(text, NULL);
    mstxGetToolId(&tool);
    if (tool == 0x4D53)
        mstxMarkA("the tool told its id", NULL);
}
