/* SPDX-License-Identifier: MIT
 *
 * image: a library with a marking context of its own, through our header, in two files one of
 * which is C++.
 */
#include "mstx/ms_tools_ext.h"

void image_mark(const char *text);
void image_mark_too(const char *text);
void image_mark_cxx(void);

__attribute__((visibility("default"))) void image_mark(const char *text)
{
    mstxMarkA(text, NULL);
    image_mark_too("from its second file");
    image_mark_cxx();
}
