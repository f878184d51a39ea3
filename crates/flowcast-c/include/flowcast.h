/* Flowcast for C: replays traces on networks, and chooses rails for messages.
 *
 * Times are in seconds and sizes in bytes, unless a name states another unit. Functions that can fail return NULL or a
 * negative number; flowcast_error() then returns the reason, with the place, the value found and the value expected. The
 * comment of each type names the function that frees its objects. Several threads may read an object at the same time; a rail
 * scheduler belongs to one thread at a time.
 */
#ifndef FLOWCAST_H
#define FLOWCAST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Trace or schedule of a program; freed by flowcast_trace_free(). */
typedef struct flowcast_trace flowcast_trace;
/* Network; freed by flowcast_network_free(). */
typedef struct flowcast_network flowcast_network;
/* Predicted time of a trace on a network; freed by flowcast_prediction_free(). */
typedef struct flowcast_prediction flowcast_prediction;
/* Answer to a request; freed by flowcast_answer_free(). */
typedef struct flowcast_answer_document flowcast_answer_document;
/* Scheduler of several rails; freed by flowcast_rails_free(). */
typedef struct flowcast_rails flowcast_rails;

/* Times of a rank, in seconds. */
typedef struct {
    double end_s;      /* end of the rank */
    double compute_s;  /* computation */
    double blocked_s;  /* waiting for messages and receivers */
    double overhead_s; /* processor time for messages */
} flowcast_rank;

/* Version, such as "0.3.0"; must not be freed. */
const char *flowcast_version(void);

/* Reason why the last call of this thread failed; empty if it succeeded. Valid until the thread's next call. */
const char *flowcast_error(void);

/* Reads a trace of any format, or a folder with one. Refuses recordings with missing parts. */
flowcast_trace *flowcast_trace_open(const char *path);
void flowcast_trace_free(flowcast_trace *trace);

/* Reads a built-in network by name, a network file or a Dimemas .cfg. */
flowcast_network *flowcast_network_load(const char *name);
/* Returns a copy of the network with another value of a field, such as "nic.latency" and "5us". */
flowcast_network *flowcast_network_with(const flowcast_network *network, const char *field, const char *value);
void flowcast_network_free(flowcast_network *network);

/* Replays a trace. model is a name as for `flowcast predict --model`, or NULL for the network's default. */
flowcast_prediction *flowcast_predict(const flowcast_trace *trace, const flowcast_network *network, const char *model);
/* Time at which the last rank ends. */
double flowcast_makespan_s(const flowcast_prediction *prediction);
/* Number of ranks. */
size_t flowcast_ranks(const flowcast_prediction *prediction);
/* Stores the times of a rank. Returns 0, or -1 if the rank does not exist. */
int flowcast_rank_times(const flowcast_prediction *prediction, size_t rank, flowcast_rank *times);
/* Notes of a prediction, one per line: omissions and assumptions of the replay. Empty if there are none, NULL without a
 * prediction. Valid until the prediction is freed. */
const char *flowcast_notes(const flowcast_prediction *prediction);
void flowcast_prediction_free(flowcast_prediction *prediction);

/* Answers a request about a trace on a network (NULL if the request needs none) with the document that the command prints
 * with --json. A request is JSON: {"predict": {"replay": REPLAY, "interval": {"level": 0.9}}}, {"path": REPLAY}, {"gradient": REPLAY},
 * {"slack": REPLAY} or {"sensitivity": {"parameter": "latency", "range": "0us..1ms", "most_walks": 10000, "replay": REPLAY}}, where
 * REPLAY is an object with any of model, mapping (a name or the node of each rank), rendezvous_from and collectives. */
flowcast_answer_document *flowcast_answer(const flowcast_trace *trace, const flowcast_network *network, const char *request);
/* Document as text, NULL without an answer. Valid until the answer is freed. */
const char *flowcast_answer_json(const flowcast_answer_document *answer);
void flowcast_answer_free(flowcast_answer_document *answer);

/* Creates a scheduler, such as "earliest-delivery", of count rails (at most 16), each "NAME=g,G,o,Lus". */
flowcast_rails *flowcast_rails_new(const char *const *rails, size_t count, const char *scheduler);
/* Returns the rail (from 0) of a message that is ready at now_ns nanoseconds, which must not decrease from call to call. usable
 * has a bit for each usable rail; the result is -1 if there is none. Allocates no memory and takes no lock. */
int flowcast_rails_pick(flowcast_rails *rails, uint64_t now_ns, uint64_t size, uint16_t usable);
void flowcast_rails_free(flowcast_rails *rails);

#ifdef __cplusplus
}
#endif

#endif
