/* SPDX-License-Identifier: MIT
 *
 * What ranks did with each other, from calls that are written by hand into run.db.
 */
#include "tests/support/view_files.h"

#include "viz/model/collectives.h"
#include "viz/model/replay.h"

#include "probe/base/store.h"

static void set_up(void)
{
    view_set_up();
    put_events(MS_STR("[" EVENT("a", "0", "1", "0", "1") "," EVENT(
        "a", "1", "1", "0", "1") "," EVENT("a", "2", "1", "0", "1") "]"));
    open_session(events_path, NULL);
}

/* Tables of such names in a database go before the packed ones, and can be written by hand. */
static const char tables[] =
    "CREATE TABLE comm_ops(process INTEGER, rank INTEGER, tid INTEGER, comm_group INTEGER,"
    " seq INTEGER, op TEXT, class INTEGER, bytes INTEGER, sent INTEGER, peer INTEGER,"
    " start_ns INTEGER, end_ns INTEGER);"
    "CREATE TABLE joins(comm_group INTEGER, seq INTEGER, op TEXT, ranks INTEGER,"
    " start_ns INTEGER, transfer_ns INTEGER, waited_ns INTEGER, last_rank INTEGER)";

/* Ranks run from 0 to 1000; then what the test adds. */
static void open_with(const char *sql)
{
    struct ms_store *s;
    ck_ok(ms_store_edit(&s, session.timeline, &err), err);
    ck_ok(ms_store_exec(s, "UPDATE processes SET rank = id - 1, start_ns = 0, end_ns = 1000", &err),
          err);
    if (sql[0] != '\0')
        ck_ok(ms_store_exec(s, tables, &err), err);
    ck_ok(ms_store_exec(s, sql, &err), err);
    ms_store_close(s);
    ck_ok(viz_reader_open(&reader, &session, &err), err);
}

#define CALL                                                                                       \
    "INSERT INTO comm_ops(process, rank, tid, comm_group, seq, op, class, bytes, sent,"            \
    " peer, start_ns, end_ns) VALUES"
/* Rank 2 comes 300 ns after rank 0 and 100 after rank 1; all leave at 500. */
#define COLLECTIVE                                                                                 \
    CALL "(1,0,1,1,0,'AllReduce',0,64,64,-1,100,500),"                                             \
         "(2,1,1,1,0,'AllReduce',0,64,64,-1,300,500),"                                             \
         "(3,2,1,1,0,'AllReduce',0,64,64,-1,400,500);"                                             \
         "INSERT INTO joins(comm_group, seq, op, ranks, transfer_ns, last_rank) VALUES"            \
         "(1,0,'AllReduce',3,100,2);"

START_TEST(a_run_without_calls_has_empty_lists)
{
    struct viz_cluster c;
    open_with("");
    ck_ok(viz_cluster_read(&c, reader.tl, &err), err);
    ck_assert_uint_eq(c.ranks.n + c.waits.n + c.transfers.n + c.sizes.n, 0);
    viz_cluster_free(&c);
}
END_TEST

START_TEST(who_comes_last_makes_the_others_wait)
{
    struct viz_cluster c;
    open_with(COLLECTIVE);
    ck_ok(viz_cluster_read(&c, reader.tl, &err), err);
    ck_assert_uint_eq(c.ranks.n, 3);
    ck_assert_int_eq(c.ranks.p[0].span_ns, 1000);
    ck_assert_int_eq(c.ranks.p[0].comm_ns, 400);
    ck_assert_int_eq(c.ranks.p[0].wait_ns, 300);
    ck_assert_int_eq(c.ranks.p[1].wait_ns, 100);
    ck_assert_int_eq(c.ranks.p[2].wait_ns, 0);
    ck_assert_int_eq(c.ranks.p[2].last, 1);
    ck_assert_int_eq(c.ranks.p[0].last, 0);
    ck_assert_int_eq(c.ranks.p[2].made_others_wait_ns, 400);
    viz_cluster_free(&c);
}
END_TEST

START_TEST(overlapping_calls_count_once_and_starting_up_not_at_all)
{
    struct viz_cluster c;
    open_with(CALL "(1,0,1,0,-1,'Init',3,0,0,-1,0,900),"
                   "(1,0,1,0,0,'Send',1,8,8,1,100,300),"
                   "(1,0,2,0,1,'Send',1,8,8,1,200,400)");
    ck_ok(viz_cluster_read(&c, reader.tl, &err), err);
    ck_assert_int_eq(c.ranks.p[0].comm_ns, 300);
    viz_cluster_free(&c);
}
END_TEST

START_TEST(peers_are_ranks_of_the_whole_run)
{
    struct viz_cluster c;
    open_with("INSERT INTO comm_groups VALUES(7, 'pair', 1, 2, '2,0');" CALL
              "(1,0,1,7,0,'Send',1,10,10,0,0,5),"
              "(1,0,1,7,1,'Send',1,30,30,0,5,9)");
    ck_ok(viz_cluster_read(&c, reader.tl, &err), err);
    ck_assert_uint_eq(c.transfers.n, 1);
    ck_assert_int_eq(c.transfers.p[0].to, 2);
    ck_assert_int_eq(c.transfers.p[0].bytes, 40);
    ck_assert_int_eq(c.transfers.p[0].calls, 2);
    viz_cluster_free(&c);
}
END_TEST

START_TEST(a_send_that_does_not_say_what_it_sent_sent_all)
{
    struct viz_cluster c;
    open_with(CALL "(1,0,1,0,0,'Send',1,64,NULL,1,0,5),(2,1,1,0,0,'Recv',1,64,NULL,0,0,5)");
    ck_ok(viz_cluster_read(&c, reader.tl, &err), err);
    ck_assert_uint_eq(c.transfers.n, 1);
    ck_assert_int_eq(c.transfers.p[0].to, 1);
    ck_assert_int_eq(c.transfers.p[0].bytes, 64);
    viz_cluster_free(&c);
}
END_TEST

START_TEST(a_collective_is_found_on_all_its_ranks)
{
    struct viz_collective c;
    open_with(COLLECTIVE);
    ck_ok(viz_collective_read(&c, reader.tl, 1, 300, &err), err);
    ck_assert_uint_eq(c.list.n, 3);
    ck_assert_str_eq(c.op, "AllReduce");
    ck_assert_int_eq(c.list.p[0].rank, 0);
    ck_assert_int_eq(c.list.p[2].rank, 2);
    ck_assert_int_eq(c.list.p[2].start_ns, 400);
    viz_collective_free(&c);
    ck_assert_int_eq(viz_collective_read(&c, reader.tl, 1, 301, &err), MS_E_NOTFOUND);
}
END_TEST

/* Two collectives that rank 2 enters last; the second makes the others wait longer. */
#define TWO_COLLECTIVES                                                                            \
    CALL "(1,0,1,1,0,'AllReduce',0,64,64,-1,100,500),(2,1,1,1,0,'AllReduce',0,64,64,-1,400,500),"  \
         "(1,0,1,2,0,'AllReduce',0,64,64,-1,600,900),(2,1,1,2,0,'AllReduce',0,64,64,-1,850,900);"  \
         "INSERT INTO joins(comm_group, seq, op, ranks, start_ns, waited_ns, last_rank) VALUES"    \
         "(1,0,'AllReduce',2,100,300,1),(2,0,'AllReduce',2,600,250,1);"

START_TEST(the_worst_collective_of_a_rank_is_the_one_that_is_waited_for_longest)
{
    struct viz_collective c;
    open_with(TWO_COLLECTIVES);
    ck_ok(viz_collective_worst(&c, reader.tl, 1, 0, 1000, &err), err);
    ck_assert_uint_eq(c.list.n, 2);
    ck_assert_int_eq(c.list.p[1].start_ns, 400);
    viz_collective_free(&c);
    ck_ok(viz_collective_worst(&c, reader.tl, 1, 500, 1000, &err), err);
    ck_assert_int_eq(c.list.p[1].start_ns, 850);
    viz_collective_free(&c);
    ck_assert_int_eq(viz_collective_worst(&c, reader.tl, 0, 0, 1000, &err), MS_E_NOTFOUND);
}
END_TEST

START_TEST(dimensions_are_communicators_of_one_size_and_stride)
{
    struct viz_dimension d[VIZ_DIMENSIONS_MAX];
    size_t n;
    open_with("DELETE FROM comm_groups; INSERT INTO comm_groups(id, name, size, ranks) VALUES"
              "(1,'tensor_0',2,'0,1'),(2,'tensor_1',2,'2,3'),(3,'data_7',2,'0,2'),"
              "(4,'data_8',2,'1,3'),(5,'world',4,'0,1,2,3'),(6,'odd',2,''),(7,'none',2,'x,y')");
    ck_ok(viz_dimensions_read(d, &n, reader.tl, &err), err);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(d[0].name, "tensor");
    ck_assert_int_eq(d[0].stride, 1);
    ck_assert_str_eq(d[1].name, "data");
    ck_assert_int_eq(d[1].stride, 2);
    ck_assert_int_eq(d[1].groups, 2);
}
END_TEST

/* ---- replays ------------------------------------------------------------------------- */

/* A stored table of that name goes before the packed one, which is not empty either. */
#define SPANS                                                                                      \
    "DROP TABLE IF EXISTS packed_spans; CREATE TABLE packed_spans(id, rows, data);"                \
    "INSERT INTO packed_spans VALUES(1, 1, x'');"                                                  \
    "CREATE TABLE replay_spans(timeline INTEGER, process INTEGER, rank INTEGER, tid INTEGER,"      \
    " step INTEGER, kind TEXT, start_ns INTEGER, end_ns INTEGER);"                                 \
    "INSERT INTO replay_spans VALUES"                                                              \
    "(0,1,0,1,NULL,'work',0,300),(0,2,1,1,0,'comm',300,310),(0,1,0,1,0,'work',310,315),"           \
    "(0,3,2,7,0,'comm',315,600),(1,1,0,1,0,'work',0,200),(1,1,0,1,0,'wait',200,220),"              \
    "(1,1,0,1,0,'comm',220,500),(1,2,1,1,0,'work',0,200);"

START_TEST(a_run_without_replays_has_no_spans)
{
    viz_spans v = {0};
    open_with("");
    ck_assert(!viz_replay_exists(reader.tl));
    ck_ok(viz_replay_path(&v, reader.tl, 0, 1000, 0, &err), err);
    ck_assert_uint_eq(v.n, 0);
    ck_ok(viz_replay_ideal(&v, reader.tl, 0, 0, 1000, 0, &err), err);
    ck_assert_uint_eq(v.n, 0);
    ms_vec_free(&v);
}
END_TEST

START_TEST(the_critical_path_goes_from_track_to_track)
{
    viz_spans v = {0};
    open_with(SPANS);
    ck_assert(viz_replay_exists(reader.tl));
    ck_ok(viz_replay_path(&v, reader.tl, 0, 1000, 0, &err), err);
    ck_assert_uint_eq(v.n, 4);
    ck_assert_int_eq(v.p[0].step, -1);
    ck_assert_uint_eq(v.p[0].process, 0);
    ck_assert_int_ge(v.p[0].track, 0);
    ck_assert_uint_eq(mstx_tl_track(reader.tl, (size_t)v.p[0].track)->tid, 1);
    ck_assert_int_eq(v.p[3].track, -1); /* no thread 7 in process 3 */
    ck_assert_int_eq(v.p[3].to, 600);
    ck_ok(viz_replay_path(&v, reader.tl, 312, 314, 0, &err), err);
    ck_assert_uint_eq(v.n, 1);
    ck_assert_int_eq(v.p[0].from, 310);
    ms_vec_free(&v);
}
END_TEST

/* What is shorter than a pixel of 50 ns is one span, that of the longest part. */
START_TEST(short_spans_are_merged)
{
    viz_spans v = {0};
    open_with(SPANS);
    ck_ok(viz_replay_path(&v, reader.tl, 0, 1000, 50, &err), err);
    ck_assert_uint_eq(v.n, 3);
    ck_assert_int_eq(v.p[1].from, 300);
    ck_assert_int_eq(v.p[1].to, 315);
    ck_assert_uint_eq(v.p[1].process, 1);
    ms_vec_free(&v);
}
END_TEST

START_TEST(the_ideal_timeline_is_that_of_one_process)
{
    viz_spans v = {0};
    uint8_t has[64] = {0};
    open_with(SPANS);
    ck_ok(viz_replay_ideal(&v, reader.tl, 0, 0, 1000, 0, &err), err);
    ck_assert_uint_eq(v.n, 3);
    ck_assert_int_eq(v.p[0].kind, MSTX_SPAN_WORK);
    ck_assert_int_eq(v.p[1].kind, MSTX_SPAN_WAIT);
    ck_assert_int_eq(v.p[2].kind, MSTX_SPAN_COMM);
    ck_assert_uint_lt(mstx_tl_track_count(reader.tl), sizeof has);
    ck_ok(viz_replay_tracks(reader.tl, has, &err), err);
    ck_assert_uint_eq(has[v.p[0].track], 1);
    size_t tracks = 0;
    for (size_t i = 0; i < sizeof has; i++)
        tracks += has[i];
    ck_assert_uint_eq(tracks, 2);
    ms_vec_free(&v);
}
END_TEST

TEST_MAIN_AROUND(set_up, view_tear_down, "viz_cluster", a_run_without_replays_has_no_spans,
                 the_critical_path_goes_from_track_to_track, short_spans_are_merged,
                 the_ideal_timeline_is_that_of_one_process, a_run_without_calls_has_empty_lists,
                 who_comes_last_makes_the_others_wait,
                 overlapping_calls_count_once_and_starting_up_not_at_all,
                 peers_are_ranks_of_the_whole_run, a_send_that_does_not_say_what_it_sent_sent_all,
                 a_collective_is_found_on_all_its_ranks,
                 the_worst_collective_of_a_rank_is_the_one_that_is_waited_for_longest,
                 dimensions_are_communicators_of_one_size_and_stride)
