//! Prints the messages behind measured collectives: reads lines `system,run,nodes,ranks_per_node,collective,library,version,
//! algorithm,bytes,...` and prints the meaning of each name, by [`named_choice`].
//!
//! ```sh
//! cargo run --example named_choices < collectives.csv
//! ```

use std::io::{BufRead, stdin};

use flowcast::{
    model::algorithm::{RuleExtent, named_choice},
    units::{Bytes, CollectiveOp},
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in stdin().lock().lines().skip(1) {
        let line = line?;
        let fields: Vec<&str> = line.split(',').collect();
        let [
            system,
            run,
            nodes,
            per_node,
            collective,
            library,
            version,
            algorithm,
            bytes,
        ] = fields[..9]
        else {
            return Err(format!("found `{line}`, expected at least nine fields").into());
        };
        let op = CollectiveOp::from_function(collective)
            .ok_or_else(|| format!("found `{collective}`, expected a collective operation"))?;
        let ranks = nodes.parse::<u32>()? * per_node.parse::<u32>()?;
        let extent = RuleExtent::from_buffer(op, ranks, Bytes(bytes.parse()?));
        let choice = match named_choice(op, library, version, algorithm, &extent) {
            Ok(choice) => choice.to_string(),
            Err(error) => error.to_string(),
        };
        println!("{system},{run},{ranks},{collective},{algorithm},{bytes},{choice}");
    }
    Ok(())
}
