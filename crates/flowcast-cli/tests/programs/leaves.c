/* Calls of MPI that are left in other ways than by their return; then five barriers, and exit code 4. */
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static jmp_buf back;
static sigjmp_buf back_from_signal;
static pthread_t main_thread;

static void jumps(MPI_Comm *comm, int *error, ...) { longjmp(back, 1); }

static void sleeps(MPI_Comm *comm, int *error, ...) {
  for (;;) pause();
}

static void interrupts(int signal) {
  if (pthread_equal(pthread_self(), main_thread)) siglongjmp(back_from_signal, 1);
  pthread_kill(main_thread, signal);
}

static void *fails(void *handler) {
  MPI_Errhandler errhandler;
  MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)handler, &errhandler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler);
  MPI_Send(NULL, 0, MPI_BYTE, 99, 0, MPI_COMM_SELF);
  return NULL;
}

int main(int argc, char **argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  main_thread = pthread_self();
  if (!strcmp(argv[1], "cancelled")) {
    pthread_t thread;
    pthread_create(&thread, NULL, fails, (void *)sleeps);
    usleep(20000);
    pthread_cancel(thread);
    void *result;
    pthread_join(thread, &result);
    printf(result == PTHREAD_CANCELED ? "cancelled\n" : "returned\n");
  } else if (!strcmp(argv[1], "jumped")) {
    if (!setjmp(back)) fails((void *)jumps);
    else printf("jumped\n");
  } else {
    volatile int left = 300;
    struct itimerval every = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, interrupts);
    sigsetjmp(back_from_signal, 1);
    setitimer(ITIMER_REAL, left > 0 ? &every : &never, NULL);
    while (left-- > 0)
      for (;;) {
        MPI_Request none = MPI_REQUEST_NULL;
        MPI_Wait(&none, MPI_STATUS_IGNORE);
      }
    printf("interrupted\n");
  }
  for (int i = 0; i < 5; i++) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 4;
}
