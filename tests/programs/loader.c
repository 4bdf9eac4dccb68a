/* SPDX-License-Identifier: MIT
 *
 * loader: opens modules RTLD_LOCAL, as Python does, and runs each: files with colons in between.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int run_module(const char *file, int argc, char **argv)
{
    void *module = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    int (*run)(int, char **) = (int (*)(int, char **))(uintptr_t)dlsym(module, "run");
    return run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    int rc = argc > 1 ? 0 : 2;
    char *rest = NULL;
    for (char *file = argc > 1 ? strtok_r(argv[1], ":", &rest) : NULL; file != NULL && rc == 0;
         file = strtok_r(NULL, ":", &rest))
        rc = run_module(file, argc, argv);
    return rc;
}
