/* Files are replaced as a whole or not at all, through links, and no other files are left. */
#include "unit.h"

#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/smelt-test-file-XXXXXX";

static const char *in_folder(const char *name) {
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, 256, "%s/%s", folder, name);
    return path;
}

static smelt_status write_string(const char *path, const char *string) {
    struct bytes pieces[] = {{string, strlen(string) / 2},
                             {string + strlen(string) / 2, strlen(string) - strlen(string) / 2}};
    return file_write(path, pieces, 2);
}

static void expect_contents(const char *path, const char *contents) {
    struct text text = {0};
    assert_int_equal(file_read(path, &text), SMELT_OK);
    assert_string_equal(text_string(&text), contents);
    text_free(&text);
}

static int files_in_folder(void) {
    int count = -2;
    DIR *directory = opendir(folder);
    while (readdir(directory)) count++;
    closedir(directory);
    return count;
}

static int empty_folder(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s/*", folder);
    return system(command);
}

static void new_file_has_the_usual_mode(void **state) {
    (void)state;
    struct stat status;
    mode_t mask = umask(027);
    assert_int_equal(write_string(in_folder("a"), "first"), SMELT_OK);
    umask(mask);
    expect_contents(in_folder("a"), "first");
    assert_int_equal(stat(in_folder("a"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
    assert_int_equal(files_in_folder(), 1);
}

static void replaced_file_keeps_its_mode(void **state) {
    (void)state;
    struct stat status;
    assert_int_equal(write_string(in_folder("a"), "a long first text"), SMELT_OK);
    assert_int_equal(chmod(in_folder("a"), 0604), 0);
    assert_int_equal(write_string(in_folder("a"), "second"), SMELT_OK);
    expect_contents(in_folder("a"), "second");
    assert_int_equal(stat(in_folder("a"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0604);
    assert_int_equal(files_in_folder(), 1);
}

static void a_symbolic_link_stays_one(void **state) {
    (void)state;
    struct stat status;
    assert_int_equal(write_string(in_folder("target"), "first"), SMELT_OK);
    assert_int_equal(symlink("target", in_folder("link")), 0);
    assert_int_equal(write_string(in_folder("link"), "second"), SMELT_OK);
    assert_int_equal(lstat(in_folder("link"), &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    expect_contents(in_folder("target"), "second");
}

static void a_reader_keeps_the_old_contents(void **state) {
    (void)state;
    char seen[16] = "";
    assert_int_equal(write_string(in_folder("a"), "first"), SMELT_OK);
    int fd = open(in_folder("a"), O_RDONLY);
    assert_int_equal(write_string(in_folder("a"), "second"), SMELT_OK);
    assert_int_equal(read(fd, seen, sizeof seen - 1), 5);
    assert_string_equal(seen, "first");
    close(fd);
}

static void failures_name_path_and_reason_and_leave_nothing(void **state) {
    (void)state;
    char expected[512];
    assert_int_equal(write_string(in_folder("no/such"), "x"), SMELT_ERROR_IO);
    snprintf(expected, sizeof expected, "file '%s/no/such' cannot be written: No such file or directory",
             folder);
    assert_string_equal(smelt_error(), expected);
    assert_int_equal(write_string(folder, "x"), SMELT_ERROR_IO);
    snprintf(expected, sizeof expected, "file '%s' cannot be written: Is a directory", folder);
    assert_string_equal(smelt_error(), expected);
    assert_int_equal(write_string("/dev/full", "x"), SMELT_ERROR_IO);
    assert_string_equal(smelt_error(), "file '/dev/full' cannot be written: No space left on device");
    assert_int_equal(files_in_folder(), 0);
}

static void a_pipe_whose_reader_goes_is_an_error_not_a_signal(void **state) {
    (void)state;
    size_t size = 4 << 20; /* more than a pipe holds */
    char *data = calloc(1, size), expected[512];
    struct bytes piece = {data, size};
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    pid_t reader = fork();
    if (reader == 0) {
        int fd = open(in_folder("pipe"), O_RDONLY);
        _exit(read(fd, data, 1) != 1);
    }
    assert_int_equal(file_write(in_folder("pipe"), &piece, 1), SMELT_ERROR_IO);
    snprintf(expected, sizeof expected, "file '%s/pipe' cannot be written: Broken pipe", folder);
    assert_string_equal(smelt_error(), expected);
    assert_int_equal(waitpid(reader, NULL, 0), reader);
    free(data);
}

static void writers_of_one_path_do_not_disturb_each_other(void **state) {
    (void)state;
    pid_t children[6];
    for (int c = 0; c < 6; c++) {
        children[c] = fork();
        if (children[c]) continue;
        for (int i = 0; i < 200; i++)
            if (write_string(in_folder("a"), "the same from everyone") != SMELT_OK) _exit(1);
        _exit(0);
    }
    for (int c = 0; c < 6; c++) {
        int status = 1;
        assert_int_equal(waitpid(children[c], &status, 0), children[c]);
        assert_int_equal(status, 0);
    }
    expect_contents(in_folder("a"), "the same from everyone");
    assert_int_equal(files_in_folder(), 1);
}

static void killed_at_any_moment_leaves_old_or_new(void **state) {
    (void)state;
    size_t size = 8 << 20;
    char *data = malloc(size);
    memset(data, 'n', size);
    assert_int_equal(write_string(in_folder("a"), "old"), SMELT_OK);
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct bytes piece = {data, size};
            for (;;) (void)file_write(in_folder("a"), &piece, 1);
        }
        usleep((useconds_t)(i * 997 % 20000));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        struct stat status;
        assert_int_equal(stat(in_folder("a"), &status), 0);
        assert_true(status.st_size == 3 || (size_t)status.st_size == size);
        /* The one moment with two names: see file.c. */
        if (files_in_folder() == 2) assert_int_equal(access(in_folder("a.tmp.new"), F_OK), 0);
        if (i % 8 == 0) assert_int_equal(write_string(in_folder("a"), "old"), SMELT_OK);
    }
    assert_int_equal(write_string(in_folder("a"), "old"), SMELT_OK);
    assert_int_equal(files_in_folder(), 1);
    free(data);
}

static void folders_are_made_private(void **state) {
    (void)state;
    struct stat status;
    assert_int_equal(file_make_folder(in_folder("x/y/z")), SMELT_OK);
    assert_int_equal(file_make_folder(in_folder("x/y/z")), SMELT_OK);
    assert_int_equal(stat(in_folder("x/y"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(write_string(in_folder("plain"), ""), SMELT_OK);
    assert_int_equal(file_make_folder(in_folder("plain/z")), SMELT_ERROR_IO);
}

int main(void) {
    if (!mkdtemp(folder)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(new_file_has_the_usual_mode, empty_folder),
        cmocka_unit_test_teardown(replaced_file_keeps_its_mode, empty_folder),
        cmocka_unit_test_teardown(a_symbolic_link_stays_one, empty_folder),
        cmocka_unit_test_teardown(a_reader_keeps_the_old_contents, empty_folder),
        cmocka_unit_test_teardown(failures_name_path_and_reason_and_leave_nothing, empty_folder),
        cmocka_unit_test_teardown(a_pipe_whose_reader_goes_is_an_error_not_a_signal, empty_folder),
        cmocka_unit_test_teardown(writers_of_one_path_do_not_disturb_each_other, empty_folder),
        cmocka_unit_test_teardown(killed_at_any_moment_leaves_old_or_new, empty_folder),
        cmocka_unit_test_teardown(folders_are_made_private, empty_folder),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)rmdir(folder);
    return failed;
}
