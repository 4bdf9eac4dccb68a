/* SPDX-License-Identifier: MIT */
#include "probe/base/fpu.h"

#include "tests/support/check.h"

#include <fenv.h>

static double divide_plainly(double a, double b)
{
    return a / b;
}

static double add_plainly(double a, double b)
{
    return a + b;
}

/* Compilers move a plain operation past a change of the settings, but no call. */
static double (*volatile divide)(double a, double b) = divide_plainly;
static double (*volatile add)(double a, double b) = add_plainly;

START_TEST(nothing_traps_while_the_settings_are_held)
{
    if (feenableexcept(FE_INVALID | FE_DIVBYZERO) < 0)
        return; /* a processor without traps */
    const uint64_t was = ms_fpu_hold();
    const double ratio = divide(0, 0);
    ms_fpu_restore(was);
    ck_assert(ratio != ratio);
    ck_assert_int_eq(fegetexcept(), FE_INVALID | FE_DIVBYZERO);
    fedisableexcept(FE_ALL_EXCEPT);
}
END_TEST

START_TEST(flags_are_those_of_the_program)
{
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_OVERFLOW);
    const uint64_t was = ms_fpu_hold();
    const double sum = divide(0, 0);
    ms_fpu_restore(was);
    ck_assert(sum != sum);
    ck_assert_int_eq(fetestexcept(FE_ALL_EXCEPT & ~FE_INEXACT), FE_OVERFLOW);
}
END_TEST

START_TEST(sums_are_rounded_to_nearest_while_held)
{
    fesetround(FE_UPWARD);
    const uint64_t was = ms_fpu_hold();
    const double held = add(1, 1e-30);
    ms_fpu_restore(was);
    const double own = add(1, 1e-30);
    fesetround(FE_TONEAREST);
    ck_assert(held == 1);
    ck_assert(own > 1);
}
END_TEST

TEST_MAIN("fpu", nothing_traps_while_the_settings_are_held, flags_are_those_of_the_program,
          sums_are_rounded_to_nearest_while_held)
