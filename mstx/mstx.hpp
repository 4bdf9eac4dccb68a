// SPDX-License-Identifier: MIT
//
// mstx: scope guards over the mstx interface.
//
//     mstx::range step("step");            // ends with the scope
//     static mstx::domain io("io");
//     mstx::range load(io, "load batch");
#ifndef MSTX_MSTX_HPP
#define MSTX_MSTX_HPP

#include "mstx/ms_tools_ext.h"

namespace mstx
{

// A name for the marks of one library; as cheap to copy as a pointer.
class domain
{
  public:
    explicit domain(const char *name) : handle_(mstxDomainCreateA(name))
    {
    }
    mstxDomainHandle_t handle() const
    {
        return handle_;
    }

  private:
    mstxDomainHandle_t handle_;
};

inline void mark(const char *message, aclrtStream stream = nullptr)
{
    mstxMarkA(message, stream);
}
inline void mark(const domain &d, const char *message, aclrtStream stream = nullptr)
{
    mstxDomainMarkA(d.handle(), message, stream);
}

class range
{
  public:
    explicit range(const char *message, aclrtStream stream = nullptr)
        : domain_(nullptr), id_(mstxRangeStartA(message, stream))
    {
    }
    range(const domain &d, const char *message, aclrtStream stream = nullptr)
        : domain_(d.handle()), id_(mstxDomainRangeStartA(d.handle(), message, stream))
    {
    }
    range(range &&other) noexcept : domain_(other.domain_), id_(other.id_)
    {
        other.id_ = 0;
    }
    range(const range &) = delete;
    range &operator=(const range &) = delete;
    range &operator=(range &&) = delete;
    ~range()
    {
        if (id_ != 0)
            mstxDomainRangeEnd(domain_, id_);
    }

  private:
    mstxDomainHandle_t domain_;
    mstxRangeId id_;
};

} // namespace mstx
#endif
