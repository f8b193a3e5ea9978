/* The few functions of SQLite that the store needs, opened at run time: a machine without the library can do
 * everything but remember results. */
#ifndef SMELT_TUNE_SQLITE_H
#define SMELT_TUNE_SQLITE_H

#include <stddef.h>

/* Numbers of SQLite's interface, which its versions keep. */
#define SQLITE_OK 0
#define SQLITE_ROW 100
#define SQLITE_DONE 101
#define SQLITE_OPEN_READWRITE 2
#define SQLITE_OPEN_CREATE 4
#define SQLITE_TRANSIENT ((void (*)(void *)) - 1) /* the value is copied */

struct sqlite3;
struct sqlite3_stmt;

/* X(result, name, arguments) */
#define SQLITE_TABLE(X)                                                                                   \
    X(int, open_v2, (const char *path, struct sqlite3 **database, int flags, const char *system))         \
    X(int, close, (struct sqlite3 * database))                                                            \
    X(int, busy_timeout, (struct sqlite3 * database, int milliseconds))                                   \
    X(int, prepare_v2,                                                                                    \
      (struct sqlite3 * database, const char *text, int bytes, struct sqlite3_stmt **statement,           \
       const char **rest))                                                                                \
    X(int, bind_text,                                                                                     \
      (struct sqlite3_stmt * statement, int index, const char *text, int bytes, void (*release)(void *))) \
    X(int, bind_double, (struct sqlite3_stmt * statement, int index, double value))                       \
    X(int, step, (struct sqlite3_stmt * statement))                                                       \
    X(const unsigned char *, column_text, (struct sqlite3_stmt * statement, int column))                  \
    X(double, column_double, (struct sqlite3_stmt * statement, int column))                               \
    X(int, finalize, (struct sqlite3_stmt * statement))                                                   \
    X(const char *, errmsg, (struct sqlite3 * database))

struct sqlite {
#define MEMBER(result, name, arguments) result(*name) arguments;
    SQLITE_TABLE(MEMBER)
#undef MEMBER
};

/* The functions; NULL with a reason if the library is missing or incomplete. */
const struct sqlite *sqlite_open(const char **reason);

#endif
