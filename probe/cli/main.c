/* SPDX-License-Identifier: MIT
 *
 * main: the msprobe program. Skeleton.
 */
#include <stdio.h>

int main(void)
{
    puts("msprobe " MS_VERSION);
    return 0;
}
