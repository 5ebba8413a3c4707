#ifndef SKEP_CEDIT_SHIM_H
#define SKEP_CEDIT_SHIM_H
#include <histedit.h>
#endif
