/* SPDX-License-Identifier: MIT
 *
 * loader: opens a module RTLD_LOCAL, as Python does, and runs it.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *module = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (module == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    int (*run)(int, char **) = (int (*)(int, char **))(uintptr_t)dlsym(module, "run");
    return run(argc - 1, argv + 1);
}
