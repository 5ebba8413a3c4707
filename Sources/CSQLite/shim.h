#ifndef SKEP_CSQLITE_SHIM_H
#define SKEP_CSQLITE_SHIM_H
#include <sqlite3.h>

// Swift imports neither SQLITE_TRANSIENT and SQLITE_STATIC (casts) nor the variadic sqlite3_db_config.
static inline int skep_sqlite3_bind_blob_static(sqlite3_stmt *s, int i, const void *p, int n) {
  return sqlite3_bind_blob(s, i, p, n, SQLITE_STATIC);
}
static inline int skep_sqlite3_bind_blob_copy(sqlite3_stmt *s, int i, const void *p, int n) {
  return sqlite3_bind_blob(s, i, p, n, SQLITE_TRANSIENT);
}
static inline int skep_sqlite3_bind_text_static(sqlite3_stmt *s, int i, const char *p, int n) {
  return sqlite3_bind_text(s, i, p, n, SQLITE_STATIC);
}
static inline int skep_sqlite3_bind_text_copy(sqlite3_stmt *s, int i, const char *p, int n) {
  return sqlite3_bind_text(s, i, p, n, SQLITE_TRANSIENT);
}
// A connection that reads leaves the write-ahead log where it is when it closes.
static inline int skep_sqlite3_keep_wal(sqlite3 *db) {
  return sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}
#endif
