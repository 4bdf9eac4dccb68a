/* SPDX-License-Identifier: MIT
 *
 * Requests to a running capture: one at a time, whoever asks.  The test plays the recorded process.
 */
#include "tests/support/check.h"

#include "mstx/read/control.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static char folder[64], process[100], file[120];
static struct mstx_control *page;
static int fd;

static void pause_ms(int ms)
{
    const struct timespec t = {.tv_nsec = ms * 1000000L};
    nanosleep(&t, NULL);
}

/* The name of another host: whether the process lives cannot be told. */
static void set_up(void)
{
    snprintf(process, sizeof process, "%s/other-host.1.0", scratch_dir(folder));
    ck_assert_int_eq(mkdir(process, 0755), 0);
    snprintf(file, sizeof file, "%s/" MSTX_CONTROL, process);
    fd = open(file, O_RDWR | O_CREAT | O_EXCL, 0644);
    ck_assert_int_eq(ftruncate(fd, sizeof *page), 0);
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(page, MAP_FAILED);
    memcpy(page->magic, MSTX_SEG_MAGIC, sizeof page->magic);
    page->endian = MSTX_SEG_ENDIAN;
    page->major = MSTX_SEG_MAJOR;
    page->kind = MSTX_KIND_CONTROL;
}

static void tear_down(void)
{
    munmap(page, sizeof *page);
    close(fd);
    scratch_remove(folder);
}

static uint32_t requests(void)
{
    return __atomic_load_n(&page->request, __ATOMIC_ACQUIRE);
}

static bool waits_for_request(uint32_t n)
{
    for (int i = 0; i < 2000 && requests() != n; i++)
        pause_ms(1);
    return requests() == n;
}

static void answer(uint32_t result)
{
    memcpy(page->answer, page->text, sizeof page->answer);
    page->result = result;
    __atomic_store_n(&page->done, requests(), __ATOMIC_RELEASE);
}

/* In a process of its own; it ends with 0 when the answer is that of its own question. */
static pid_t ask_elsewhere(const char *text)
{
    const pid_t child = fork();
    if (child != 0)
        return child;
    struct mstx_link *l = NULL;
    static struct mstx_control reply;
    struct ms_err e = {0};
    bool ok = mstx_link_open(&l, process, &e) == MS_OK && l != NULL &&
              mstx_link_ask(l, MSTX_CMD_SNAPSHOT, text, &reply, &e) == MS_OK &&
              strcmp(reply.answer, text) == 0;
    mstx_link_close(l);
    _exit(ok ? 0 : 1);
}

static int status_of(pid_t child)
{
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

START_TEST(who_asks_waits_until_the_other_has_its_answer)
{
    const pid_t one = ask_elsewhere("one");
    ck_assert(waits_for_request(1));
    const pid_t two = ask_elsewhere("two");
    pause_ms(100);
    ck_assert_uint_eq(requests(), 1);
    ck_assert_str_eq(page->text, "one");
    answer(0);
    ck_assert_int_eq(status_of(one), 0);
    ck_assert(waits_for_request(2));
    ck_assert_str_eq(page->text, "two");
    answer(0);
    ck_assert_int_eq(status_of(two), 0);
}
END_TEST

START_TEST(a_lock_that_another_program_holds_is_waited_for)
{
    const int own = open(file, O_RDWR);
    ck_assert_int_eq(flock(own, LOCK_EX), 0);
    const pid_t child = ask_elsewhere("late");
    pause_ms(100);
    ck_assert_uint_eq(requests(), 0);
    ck_assert_int_eq(flock(own, LOCK_UN), 0);
    ck_assert(waits_for_request(1));
    answer(0);
    ck_assert_int_eq(status_of(child), 0);
    /* It gave the lock back. */
    ck_assert_int_eq(flock(own, LOCK_EX | LOCK_NB), 0);
    close(own);
}
END_TEST

START_TEST(a_refusal_is_told_in_the_words_of_the_process)
{
    struct mstx_link *l;
    struct mstx_control reply;
    struct ms_err e = {0};
    pid_t child = fork();
    if (child == 0) {
        const bool came = waits_for_request(1);
        answer(ENOSPC);
        _exit(came ? 0 : 1);
    }
    ck_ok(mstx_link_open(&l, process, &e), e);
    ck_assert_int_eq(mstx_link_ask(l, MSTX_CMD_SNAPSHOT, "no room", &reply, &e), MS_E_IO);
    ck_says(e, "no room");
    ck_assert_int_eq(status_of(child), 0);
    mstx_link_close(l);
}
END_TEST

START_TEST(a_text_that_does_not_fit_is_not_sent)
{
    struct mstx_link *l;
    struct mstx_control reply;
    struct ms_err e = {0};
    char text[sizeof page->text + 1];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    ck_ok(mstx_link_open(&l, process, &e), e);
    ck_assert_int_eq(mstx_link_ask(l, MSTX_CMD_INCLUDE, text, &reply, &e), MS_E_LIMIT);
    ck_assert_uint_eq(requests(), 0);
    mstx_link_close(l);
}
END_TEST

START_TEST(what_is_no_control_file_is_refused)
{
    struct mstx_link *l;
    struct ms_err e = {0};
    page->major++;
    ck_assert_int_eq(mstx_link_open(&l, process, &e), MS_E_FORMAT);
    ck_says(e, "not a control file of this version");
    page->major--;
    ms_err_clear(&e);
    ck_assert_int_eq(ftruncate(fd, sizeof *page - 1), 0);
    ck_assert_int_eq(mstx_link_open(&l, process, &e), MS_E_FORMAT);
    ck_says(e, "too short");
    ms_err_clear(&e);
    ck_assert_int_eq(unlink(file), 0);
    ck_ok(mstx_link_open(&l, process, &e), e);
    ck_assert_ptr_null(l);
}
END_TEST

/* Only a missing file means that there is nobody to ask; errno of an earlier call says nothing. */
START_TEST(a_control_file_that_cannot_be_opened_is_an_error_and_a_missing_one_is_none)
{
    struct mstx_link *l = NULL;
    struct ms_err e = {0};
    errno = ENOENT;
    ck_ok(mstx_link_open(&l, process, &e), e);
    ck_assert_ptr_nonnull(l);
    mstx_link_close(l);
    ck_assert_int_eq(unlink(file), 0);
    ck_ok(mstx_link_open(&l, process, &e), e);
    ck_assert_ptr_null(l);
    ck_assert_int_eq(mkdir(file, 0755), 0);
    ck_assert_int_eq(mstx_link_open(&l, process, &e), MS_E_IO);
    ck_says(e, file);
    ck_assert_ptr_null(l);
}
END_TEST

TEST_MAIN_AROUND(set_up, tear_down, "control", who_asks_waits_until_the_other_has_its_answer,
                 a_lock_that_another_program_holds_is_waited_for,
                 a_refusal_is_told_in_the_words_of_the_process,
                 a_text_that_does_not_fit_is_not_sent, what_is_no_control_file_is_refused,
                 a_control_file_that_cannot_be_opened_is_an_error_and_a_missing_one_is_none)
