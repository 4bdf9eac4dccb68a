// SPDX-License-Identifier: MIT
//
// image3: the same from C++, with the scope guard.
#include "mstx/mstx.hpp"

extern "C" void image_mark_cxx(void);
extern "C" void image_mark_cxx(void)
{
    mstx::domain d("cxx");
    mstx::range r(d, "scope");
    mstx::mark("inside");
}
