/* Predicts a trace on a network, and lets a scheduler choose rails.
 *
 * cargo build --release --package flowcast-c
 * cc -I crates/flowcast-c/include crates/flowcast-c/examples/predict.c -L target/release -lflowcast_c -o predict
 * LD_LIBRARY_PATH=target/release ./predict examples/ring.dim gige-tcp
 */
#include <flowcast.h>
#include <stdio.h>

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, flowcast_error());
    return 2;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return fprintf(stderr, "expected a trace and a network\n"), 2;
    flowcast_trace *trace = flowcast_trace_open(argv[1]);
    if (!trace)
        return failed("trace");
    flowcast_network *network = flowcast_network_load(argv[2]);
    if (!network)
        return failed("network");
    flowcast_prediction *prediction = flowcast_predict(trace, network, NULL);
    if (!prediction)
        return failed("prediction");
    printf("%.17g s\n", flowcast_makespan_s(prediction));
    for (size_t rank = 0; rank < flowcast_ranks(prediction); rank++) {
        flowcast_rank times;
        flowcast_rank_times(prediction, rank, &times);
        printf("rank %zu: %.17g s, blocked %.17g s\n", rank, times.end_s, times.blocked_s);
    }
    flowcast_prediction_free(prediction);
    flowcast_answer_document *answer = flowcast_answer(trace, network, "{\"path\": {\"model\": \"independent\"}}");
    if (!answer)
        return failed("answer");
    printf("%s\n", flowcast_answer_json(answer));
    flowcast_answer_free(answer);
    flowcast_network_free(network);
    flowcast_trace_free(trace);

    const char *const two[] = {"ib=1.4,0.00103,1.4,2.82us", "myri=3.4,0.00409,1.9,24.3us"};
    flowcast_rails *rails = flowcast_rails_new(two, 2, "earliest-delivery");
    if (!rails)
        return failed("rails");
    int first = flowcast_rails_pick(rails, 0, 1000000, 3);
    int second = flowcast_rails_pick(rails, 0, 64, 3);
    printf("rails %d %d\n", first, second);
    flowcast_rails_free(rails);
    return 0;
}
