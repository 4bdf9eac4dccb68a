/* SPDX-License-Identifier: MIT
 *
 * hook_mpi_fortran: bindings of Fortran that call the PMPI functions of C, so that the hooks of C
 * never see them.  Where that is so differs:
 *
 *                           Open MPI                     MPICH
 *     mpif.h, use mpi       all: mpi_x_                  none: MPI_X is called
 *     use mpi_f08           with a logical: mpi_x_f08_   without a buffer: mpi_x_f08_
 *                           others: ompi_x_f             with one: MPI_X is called
 *
 * In Open MPI mpi_x_ and ompi_x_f are one function under many names, and so is each of ours.
 * Handles are numbers in Fortran, in mpi_f08 a number in a structure; they are turned into those of C
 * only to be looked up, and the call itself gets the arguments as they came.
 */
#ifndef MSTX_HOOK_MPI_FORTRAN_H
#define MSTX_HOOK_MPI_FORTRAN_H

#include "mstx/hook_mpi.h"

#define F MPI_Fint

/* ---- handles ----------------------------------------------------------------------------------- */

#if defined(OPEN_MPI)
#define FORTRAN_C(what, f) HOOK_MPI(PMPI_##what##_f2c)(f)
#else
#define FORTRAN_C(what, f) PMPI_##what##_f2c(f)
#endif
static inline MPI_Comm comm_of(const F *c)
{
    return FORTRAN_C(Comm, *c);
}
static inline MPI_Datatype type_of(F t)
{
    return FORTRAN_C(Type, t);
}
static inline MPI_Op op_of(const F *op)
{
    return FORTRAN_C(Op, *op);
}
static inline MPI_Win win_of(const F *w)
{
    return FORTRAN_C(Win, *w);
}
static inline MPI_Request request_of(F r)
{
    return FORTRAN_C(Request, r);
}
static inline const struct hook_comm *window(const F *w)
{
    return hook_comm_find(HOOK_HANDLE(win_of(w)), HOOK_WINDOW);
}
#define ON(c) hook_comm_of(comm_of(c))

static inline void begun(const struct hook_call *x, int rc, const F *request, unsigned flags)
{
    const MPI_Request r = request_of(*request);
    hook_begun(x, rc, &r, flags);
}
static inline void prepared(const struct hook_call *x, int rc, const F *request,
                            const struct mstx_comm_call *later, unsigned flags)
{
    const MPI_Request r = request_of(*request);
    hook_prepared(x, rc, &r, later, flags);
}

/* NULL: the program threw it away. */
const MPI_Status *hook_fortran_status(const F *s, size_t at, MPI_Status *out);

/* ---- one function ------------------------------------------------------------------------------- */

/* In two parts, as HOOK_LIGHT is. SKIPS: with recording off the call alone is enough; it counts the
 * call where that is to be done. BEGIN opens x; the last parameter but texts' lengths is ierr, where
 * a program may say nothing. */
#define SUBROUTINE(OURS, REAL, SKIPS, PARAMS, ARGS, BEGIN, AFTER)                                  \
    static struct hook_site OURS##_site;                                                           \
    HOOK_API void OURS PARAMS;                                                                     \
    static __attribute__((noinline)) void OURS##_watched PARAMS                                    \
    {                                                                                              \
        struct hook_site *const site = &OURS##_site;                                               \
        __typeof__(&OURS) real =                                                                   \
            (__typeof__(real))hook_real(&site->real, REAL, hook_fortran_owners);                   \
        F own_error = MPI_ERR_INTERN;                                                              \
        if (ierr == NULL)                                                                          \
            ierr = &own_error;                                                                     \
        *ierr = MPI_ERR_INTERN;                                                                    \
        if (real == NULL)                                                                          \
            return;                                                                                \
        if (hook_depth != 0) {                                                                     \
            real ARGS;                                                                             \
            return;                                                                                \
        }                                                                                          \
        hook_depth++;                                                                              \
        struct hook_call x;                                                                        \
        BEGIN;                                                                                     \
        hook_begin(&x);                                                                            \
        real ARGS;                                                                                 \
        const int rc = *ierr;                                                                      \
        (void)rc;                                                                                  \
        AFTER;                                                                                     \
        hook_depth--;                                                                              \
    }                                                                                              \
    HOOK_API void OURS PARAMS                                                                      \
    {                                                                                              \
        __typeof__(&OURS) real =                                                                   \
            (__typeof__(real))atomic_load_explicit(&OURS##_site.real, memory_order_relaxed);       \
        if (real == NULL || !hook_mpi_is_off() || !(SKIPS))                                        \
            OURS##_watched ARGS;                                                                   \
        else                                                                                       \
            real ARGS;                                                                             \
    }
#define COUNTED(c, OP)                                                                             \
    ((int)MSTX_CLASS_OF_##OP >= MSTX_SEQUENCES || (HOOK_COUNT(comm_of(c), OP), true))

/* TAIL: the error and, behind it, the lengths of texts that compilers pass unasked. */
#define FUNCTION(OURS, REAL, NAME, OP, SKIPS, K, PARAMS, ARGS, TAIL_PARAMS, TAIL, DESC, AFTER)     \
    SUBROUTINE(                                                                                    \
        OURS, REAL, SKIPS, (HOOK_BARE PARAMS, HOOK_BARE TAIL_PARAMS),                              \
        (HOOK_BARE ARGS, HOOK_BARE TAIL), hook_mpi_here();                                         \
        hook_open(&x, site, NAME, MSTX_COMM_##OP, K); if (HOOK_LIKELY(x.on)) { DESC; }, AFTER)
extern const char *const hook_fortran_owners[];

/* What compilers and bindings call the function ompi_x_f. */
#define ALIAS(name, target)                                                                        \
    extern __typeof__(target) name __attribute__((alias(#target), visibility("default")));
#define NAMES(prefix, PREFIX, lower, UPPER)                                                        \
    ALIAS(prefix##_##lower, o##prefix##_##lower##_f)                                               \
    ALIAS(prefix##_##lower##_, o##prefix##_##lower##_f)                                            \
    ALIAS(prefix##_##lower##__, o##prefix##_##lower##_f)                                           \
    ALIAS(PREFIX##_##UPPER, o##prefix##_##lower##_f)
#define CLASSIC(prefix, PREFIX, lower, UPPER, ...)                                                 \
    FUNCTION(o##prefix##_##lower##_f, #prefix "_" #lower "_", __VA_ARGS__)                         \
    NAMES(prefix, PREFIX, lower, UPPER)
#define MODERN(prefix, lower, ...)                                                                 \
    FUNCTION(prefix##_##lower##_f08_, #prefix "_" #lower "_f08_", __VA_ARGS__)
#define ERROR_ONLY (F * ierr), (ierr)

/* A call without a buffer; one that takes or gives a logical. */
#if defined(OPEN_MPI)
#define HANDLES(lower, UPPER, ...) CLASSIC(mpi, MPI, lower, UPPER, __VA_ARGS__)
#define LOGICAL(lower, UPPER, ...)                                                                 \
    HANDLES(lower, UPPER, __VA_ARGS__) MODERN(mpi, lower, __VA_ARGS__)
#else
#define HANDLES(lower, UPPER, ...) MODERN(mpi, lower, __VA_ARGS__)
#define LOGICAL(lower, UPPER, ...) HANDLES(lower, UPPER, __VA_ARGS__)
#endif

#endif
