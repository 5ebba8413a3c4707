#ifndef SKEP_CWEBSOCKETS_SHIM_H
#define SKEP_CWEBSOCKETS_SHIM_H
#include <libwebsockets.h>

// LWS_PRE is an expression macro, which Swift does not import.
static inline size_t skep_lws_pre(void) { return LWS_PRE; }
#endif
