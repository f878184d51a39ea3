/* See threads_pthreads_mutex.h. */
#pragma once
#include <pthread.h>

typedef pthread_key_t opal_tsd_key_t;
