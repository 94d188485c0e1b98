/*-------------------------------------------------------------------------
 *
 * bloomfilter.c
 *	  The module's front door.
 *
 * core/ is the filter in plain C, type/ the SQL type above it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"

PG_MODULE_MAGIC;
