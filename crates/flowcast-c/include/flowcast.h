/* Flowcast for C: replays traces on networks, and chooses rails for messages.
 *
 * Times are in seconds, sizes in bytes, if a name says nothing else. Functions that can fail give NULL or a number below 0;
 * flowcast_error() then says why, with place, what was found and what was expected. What a function gives is freed by the
 * function named at it. Objects may be read by several threads at once; a rail scheduler belongs to one thread at a time.
 */
#ifndef FLOWCAST_H
#define FLOWCAST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A program's trace or schedule; flowcast_trace_free(). */
typedef struct flowcast_trace flowcast_trace;
/* A network; flowcast_network_free(). */
typedef struct flowcast_network flowcast_network;
/* How long a trace takes on a network; flowcast_prediction_free(). */
typedef struct flowcast_prediction flowcast_prediction;
/* The answer to a request; flowcast_answer_free(). */
typedef struct flowcast_answer_document flowcast_answer_document;
/* A scheduler over several rails; flowcast_rails_free(). */
typedef struct flowcast_rails flowcast_rails;

/* Where the time of a rank goes, in seconds. */
typedef struct {
    double end_s;      /* when it ends */
    double compute_s;  /* its own computation */
    double blocked_s;  /* waiting for messages and receivers */
    double overhead_s; /* the processor's part of messages */
} flowcast_rank;

/* The version, such as "0.3.0"; not freed. */
const char *flowcast_version(void);

/* Why the last call of this thread failed; empty if none did. Valid until the thread's next call. */
const char *flowcast_error(void);

/* Reads a trace of any format, or a folder with one; a recording of which a part is missing is refused. */
flowcast_trace *flowcast_trace_open(const char *path);
void flowcast_trace_free(flowcast_trace *trace);

/* A built-in network by name, a network file or a Dimemas .cfg. */
flowcast_network *flowcast_network_load(const char *name);
/* The same network with another value of a field, such as "nic.latency" and "5us". */
flowcast_network *flowcast_network_with(const flowcast_network *network, const char *field, const char *value);
void flowcast_network_free(flowcast_network *network);

/* Replays a trace; model is a name as for `flowcast predict --model`, or NULL for the network's own choice. */
flowcast_prediction *flowcast_predict(const flowcast_trace *trace, const flowcast_network *network, const char *model);
/* When the last rank ends. */
double flowcast_makespan_s(const flowcast_prediction *prediction);
/* Number of ranks. */
size_t flowcast_ranks(const flowcast_prediction *prediction);
/* The times of a rank; 0, or -1 if there is no such rank. */
int flowcast_rank_times(const flowcast_prediction *prediction, size_t rank, flowcast_rank *times);
/* Notes of a prediction, one per line: what the replay leaves out and what it assumes. Empty if there are none, NULL without a
 * prediction. Valid until the prediction is freed. */
const char *flowcast_notes(const flowcast_prediction *prediction);
void flowcast_prediction_free(flowcast_prediction *prediction);

/* Answers a request about a trace on a network (NULL where the request needs none) with the document that the command prints
 * with --json. A request is JSON: {"predict": {"replay": REPLAY, "interval": {"level": 0.9}}}, {"path": REPLAY}, {"gradient": REPLAY},
 * {"slack": REPLAY} or {"sensitivity": {"parameter": "latency", "range": "0us..1ms", "most_walks": 10000, "replay": REPLAY}}, where
 * REPLAY is an object with any of model, mapping (a name or the node of each rank), rendezvous_from and collectives. */
flowcast_answer_document *flowcast_answer(const flowcast_trace *trace, const flowcast_network *network, const char *request);
/* The document as text, NULL without an answer. Valid until the answer is freed. */
const char *flowcast_answer_json(const flowcast_answer_document *answer);
void flowcast_answer_free(flowcast_answer_document *answer);

/* A scheduler, such as "earliest-delivery", over count rails (at most 16), each "NAME=g,G,o,Lus". */
flowcast_rails *flowcast_rails_new(const char *const *rails, size_t count, const char *scheduler);
/* The rail (from 0 on) of a message that is ready at now_ns nanoseconds, which never decreases from call to call; usable
 * has a bit for each rail that it may take. -1 if none is usable. Allocates nothing and takes no lock. */
int flowcast_rails_pick(flowcast_rails *rails, uint64_t now_ns, uint64_t size, uint16_t usable);
void flowcast_rails_free(flowcast_rails *rails);

#ifdef __cplusplus
}
#endif

#endif
