#![no_main]

use flowcast::model::builtin;
use flowcast::model::cluster::pattern::{self, Pattern, Steps};
use flowcast::model::sharing::model::Model;
use flowcast::{Contention, Options, predict_pattern, predict_steps};

/// More flows only make a prediction longer.
const MOST_FLOWS: usize = 40;

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let _ = Pattern::is_pattern(text);
    for (network, model) in
        [("gige-lam", Model::FlowCuts), ("ethernet-1g-10g", Model::Asymmetric), ("gige-tcp", Model::Fair)]
    {
        let network = builtin::network(network).expect("the network is built in");
        let options = Options { contention: Contention::Shared(model), ..Options::default() };
        if let Ok(read) = Pattern::read("t", text)
            && read.flows.len() <= MOST_FLOWS
        {
            let _ = predict_pattern(&read, &network, &options);
            let mut written = Vec::new();
            pattern::write(&read.flows, &mut written).expect("writing to memory succeeds");
            let again = Pattern::read("t", &written).expect("a written pattern reads back");
            assert_eq!(again.flows.len(), read.flows.len());
        }
        if let Ok(steps) = Steps::read("t", text)
            && steps.steps.iter().map(Vec::len).sum::<usize>() <= MOST_FLOWS
        {
            let _ = predict_steps(&steps, &network, &options);
        }
    }
});
