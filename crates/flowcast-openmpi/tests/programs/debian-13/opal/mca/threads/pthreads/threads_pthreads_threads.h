/* See threads_pthreads_mutex.h. */
#pragma once
#include <pthread.h>
