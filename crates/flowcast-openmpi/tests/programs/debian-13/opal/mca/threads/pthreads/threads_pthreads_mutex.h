/* Debian 13's libopenmpi-dev lacks this header, which its own headers include. The types are those of Open MPI 5.0 on pthreads. */
#pragma once
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define OPAL_THREAD_INTERNAL_RECURSIVE_MUTEX_INITIALIZER PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
#define OPAL_THREAD_INTERNAL_COND_INITIALIZER PTHREAD_COND_INITIALIZER
#define opal_thread_internal_mutex_init(mutex, recursive) pthread_mutex_init(mutex, NULL)
#define opal_thread_internal_mutex_trylock pthread_mutex_trylock
#define opal_thread_internal_mutex_lock pthread_mutex_lock
#define opal_thread_internal_mutex_unlock pthread_mutex_unlock
#define opal_thread_internal_mutex_destroy pthread_mutex_destroy
#define opal_thread_internal_cond_init(condition) pthread_cond_init(condition, NULL)
#define opal_thread_internal_cond_wait pthread_cond_wait
#define opal_thread_internal_cond_broadcast pthread_cond_broadcast
#define opal_thread_internal_cond_signal pthread_cond_signal
#define opal_thread_internal_cond_destroy pthread_cond_destroy
