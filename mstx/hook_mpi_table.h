/* SPDX-License-Identifier: MIT
 *
 * hook_mpi_table: the calls of MPI that have variants, once each.  The including file says what
 * becomes of a line by defining COLL (and SEND, RECV, ...), and how parameters look by defining
 *
 *   BUF RBUF   a buffer to read, to write       TYP TYPS   a type, an array of types
 *   CNT CNTS   a count, an array of counts      OPR COM    a reduction, a communicator
 *   DSP ADSP   displacements, always as MPI_Aint
 *   INT        an int: root, rank or tag
 *
 * and how a description reads them: V(number) T(type) TS(types, i) O(reduction) IN_PLACE(buffer).
 * So one line serves the blocking, the non-blocking and the persistent form, with int and with
 * MPI_Count, in C and in Fortran.
 *
 *   COLL(Name, name, NAME, operation, (parameters), (arguments), communicator, description)
 *
 * No include guard: it is included several times.
 */

#define ONE_BUFFER (RBUF(b), CNT(n), TYP(t), INT(root), COM(c)), (b, n, t, root, c), c
#define TWO_BUFFERS                                                                                \
    (BUF(sb), CNT(sn), TYP(st), RBUF(rb), CNT(rn), TYP(rt), COM(c)), (sb, sn, st, rb, rn, rt, c), c
#define ROOTED                                                                                     \
    (BUF(sb), CNT(sn), TYP(st), RBUF(rb), CNT(rn), TYP(rt), INT(root), COM(c)),                    \
        (sb, sn, st, rb, rn, rt, root, c), c
#define REDUCING (BUF(sb), RBUF(rb), CNT(n), TYP(t), OPR(op), COM(c)), (sb, rb, n, t, op, c), c
#define GATHERED_V                                                                                 \
    (BUF(sb), CNT(sn), TYP(st), RBUF(rb), CNTS(rn), DSP(rd), TYP(rt), COM(c)),                     \
        (sb, sn, st, rb, rn, rd, rt, c), c
#define ALL_V                                                                                      \
    (BUF(sb), CNTS(sn), DSP(sd), TYP(st), RBUF(rb), CNTS(rn), DSP(rd), TYP(rt), COM(c)),           \
        (sb, sn, sd, st, rb, rn, rd, rt, c), c
#define ALL_W                                                                                      \
    (BUF(sb), CNTS(sn), DSP(sd), TYPS(st), RBUF(rb), CNTS(rn), DSP(rd), TYPS(rt), COM(c)),         \
        (sb, sn, sd, st, rb, rn, rd, rt, c), c
#define NEIGHBOR_W                                                                                 \
    (BUF(sb), CNTS(sn), ADSP(sd), TYPS(st), RBUF(rb), CNTS(rn), ADSP(rd), TYPS(rt), COM(c)),       \
        (sb, sn, sd, st, rb, rn, rd, rt, c), c

#define REDUCED                                                                                    \
    hook_one(&x, V(n), T(t));                                                                      \
    hook_reduced(&x, O(op), IN_PLACE(sb))
#define PAIR      hook_pair(&x, IN_PLACE(sb), V(sn), T(st), V(rn), T(rt))
#define OWN(v)    (x.k != NULL && !x.k->is_inter ? hook_nth(v, sizeof *v, x.k->rank) : 0)
#define SUM(v, n) hook_sum(v, sizeof *v, n)
#define GOT(n)    hook_moved(&x, x.c.count *x.c.elem, SUM(rn, n) * hook_type_bytes(T(rt)))
#define BOTH_V(out, in)                                                                            \
    hook_pair(&x, IN_PLACE(sb), IN_PLACE(sb) ? 0 : (int64_t)SUM(sn, out), T(st),                   \
              (int64_t)SUM(rn, in), T(rt));                                                        \
    hook_moved(&x, x.c.count *x.c.elem, SUM(rn, in) * hook_type_bytes(T(rt)))
#define BOTH_W(out, in)                                                                            \
    do {                                                                                           \
        uint64_t given = 0;                                                                        \
        uint64_t taken = 0;                                                                        \
        for (int i = 0; i < (in); i++)                                                             \
            taken += (uint64_t)hook_nth(rn, sizeof *rn, i) * hook_type_bytes(TS(rt, i));           \
        for (int i = 0; i < (out) && !IN_PLACE(sb); i++)                                           \
            given += (uint64_t)hook_nth(sn, sizeof *sn, i) * hook_type_bytes(TS(st, i));           \
        if (IN_PLACE(sb))                                                                          \
            x.c.flags |= MSTX_CF_IN_PLACE;                                                         \
        x.c.count = IN_PLACE(sb) ? taken : given;                                                  \
        x.c.elem = 1;                                                                              \
        x.c.dtype = MSTX_TYPE_DERIVED;                                                             \
        hook_moved(&x, x.c.count, taken);                                                          \
    } while (0)
#define TO_ROOT    x.c.peer = hook_member(&x, V(root))
#define PEERS      hook_peers(&x)
#define IN_DEGREE  (x.k != NULL ? x.k->in : 0)
#define OUT_DEGREE (x.k != NULL ? x.k->out : 0)

/* clang-format off */
COLL(Barrier, barrier, BARRIER, BARRIER, (COM(c)), (c), c, (void)0)
COLL(Bcast, bcast, BCAST, BROADCAST, ONE_BUFFER, hook_one(&x, V(n), T(t)); TO_ROOT)
COLL(Gather, gather, GATHER, GATHER, ROOTED, PAIR; TO_ROOT)
COLL(Gatherv, gatherv, GATHERV, GATHER_V,
     (BUF(sb), CNT(sn), TYP(st), RBUF(rb), CNTS(rn), DSP(rd), TYP(rt), INT(root), COM(c)),
     (sb, sn, st, rb, rn, rd, rt, root, c), c,
     TO_ROOT; const bool at_root = hook_is_root(&x, V(root));
     hook_pair(&x, IN_PLACE(sb), V(sn), T(st), at_root ? OWN(rn) : 0, T(rt)); GOT(at_root ? PEERS : 0))
COLL(Scatter, scatter, SCATTER, SCATTER, ROOTED,
     hook_pair(&x, IN_PLACE(rb), V(rn), T(rt), V(sn), T(st)); TO_ROOT)
COLL(Scatterv, scatterv, SCATTERV, SCATTER_V,
     (BUF(sb), CNTS(sn), DSP(sd), TYP(st), RBUF(rb), CNT(rn), TYP(rt), INT(root), COM(c)),
     (sb, sn, sd, st, rb, rn, rt, root, c), c,
     TO_ROOT; const bool at_root = hook_is_root(&x, V(root));
     hook_pair(&x, IN_PLACE(rb), V(rn), T(rt), at_root ? OWN(sn) : 0, T(st));
     hook_moved(&x, at_root ? SUM(sn, PEERS) * hook_type_bytes(T(st)) : 0, x.c.count * x.c.elem))
COLL(Allgather, allgather, ALLGATHER, ALLGATHER, TWO_BUFFERS, PAIR)
COLL(Allgatherv, allgatherv, ALLGATHERV, ALLGATHER_V, GATHERED_V,
     hook_pair(&x, IN_PLACE(sb), V(sn), T(st), OWN(rn), T(rt)); GOT(PEERS))
COLL(Alltoall, alltoall, ALLTOALL, ALLTOALL, TWO_BUFFERS, PAIR)
COLL(Alltoallv, alltoallv, ALLTOALLV, ALLTOALL_V, ALL_V, BOTH_V(PEERS, PEERS))
COLL(Alltoallw, alltoallw, ALLTOALLW, ALLTOALL_W, ALL_W, BOTH_W(PEERS, PEERS))
COLL(Reduce, reduce, REDUCE, REDUCE,
     (BUF(sb), RBUF(rb), CNT(n), TYP(t), OPR(op), INT(root), COM(c)), (sb, rb, n, t, op, root, c), c,
     REDUCED; TO_ROOT)
COLL(Allreduce, allreduce, ALLREDUCE, ALLREDUCE, REDUCING, REDUCED)
COLL(Reduce_scatter, reduce_scatter, REDUCE_SCATTER, REDUCE_SCATTER_V,
     (BUF(sb), RBUF(rb), CNTS(n), TYP(t), OPR(op), COM(c)), (sb, rb, n, t, op, c), c,
     hook_one(&x, OWN(n), T(t)); hook_reduced(&x, O(op), IN_PLACE(sb));
     hook_moved(&x, x.k != NULL ? SUM(n, x.k->size) * x.c.elem : 0, x.c.count * x.c.elem))
COLL(Reduce_scatter_block, reduce_scatter_block, REDUCE_SCATTER_BLOCK, REDUCE_SCATTER, REDUCING, REDUCED)
COLL(Scan, scan, SCAN, SCAN, REDUCING, REDUCED)
COLL(Exscan, exscan, EXSCAN, EXSCAN, REDUCING, REDUCED)
COLL(Neighbor_allgather, neighbor_allgather, NEIGHBOR_ALLGATHER, NEIGHBOR_ALLGATHER, TWO_BUFFERS,
     hook_one(&x, V(sn), T(st)))
COLL(Neighbor_allgatherv, neighbor_allgatherv, NEIGHBOR_ALLGATHERV, NEIGHBOR_ALLGATHER_V, GATHERED_V,
     hook_one(&x, V(sn), T(st)); GOT(IN_DEGREE))
COLL(Neighbor_alltoall, neighbor_alltoall, NEIGHBOR_ALLTOALL, NEIGHBOR_ALLTOALL, TWO_BUFFERS,
     hook_one(&x, V(sn), T(st)))
COLL(Neighbor_alltoallv, neighbor_alltoallv, NEIGHBOR_ALLTOALLV, NEIGHBOR_ALLTOALL_V, ALL_V,
     BOTH_V(OUT_DEGREE, IN_DEGREE))
COLL(Neighbor_alltoallw, neighbor_alltoallw, NEIGHBOR_ALLTOALLW, NEIGHBOR_ALLTOALL_W, NEIGHBOR_W,
     BOTH_W(OUT_DEGREE, IN_DEGREE))
/* clang-format on */

#undef ONE_BUFFER
#undef TWO_BUFFERS
#undef ROOTED
#undef REDUCING
#undef GATHERED_V
#undef ALL_V
#undef ALL_W
#undef NEIGHBOR_W
#undef REDUCED
#undef PAIR
#undef OWN
#undef SUM
#undef GOT
#undef BOTH_V
#undef BOTH_W
#undef TO_ROOT
#undef PEERS
#undef IN_DEGREE
#undef OUT_DEGREE
