// SPDX-License-Identifier: MIT
//
// mstx_cpp: ranges that end with their scope.
//
//     g++ -I. -o mstx_cpp samples/mstx_cpp.cpp && msprobe run ./mstx_cpp
#include "mstx/mstx.hpp"

#include <chrono>
#include <thread>

static void train(int step)
{
    static const mstx::domain model("model");
    mstx::range whole(model, "step");
    if (step % 5 == 0)
        mstx::mark("checkpoint due");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

int main()
{
    for (int step = 0; step < 20; step++)
        train(step);
}
