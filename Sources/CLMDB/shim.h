#ifndef SKEP_CLMDB_SHIM_H
#define SKEP_CLMDB_SHIM_H
#include <lmdb.h>
#endif
