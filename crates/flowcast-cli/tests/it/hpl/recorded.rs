//! Solves of HPL in a recording. HPL's test program generates a matrix, solves it and checks the solution, for one setting
//! after the other.

use std::{fs, path::Path};

use flowcast::{
    hpl::HplSettings,
    recording::{
        decode::{self, Item, RankFile},
        summary::rank_file,
    },
    units::Rank,
};

use super::solves::{Call, Calls, Function};

/// Calls of each rank of the grid in each of these runs, which follow one another in the recording.
pub(crate) fn solves(folder: &Path, runs: &[HplSettings]) -> Vec<Vec<Calls>> {
    let mut solves = vec![Vec::new(); runs.len()];
    let ranks = runs.iter().map(HplSettings::ranks).max().unwrap();
    for rank in 0..ranks {
        let name = rank_file(Rank(rank));
        let file = decode::read(&name, &fs::read(folder.join(&name)).unwrap()).unwrap();
        let takes_part = |run: &&HplSettings| rank < run.ranks();
        let own: Vec<HplSettings> = runs.iter().filter(takes_part).copied().collect();
        let found = of_rank(&file, &own);
        assert_eq!(found.len(), own.len(), "solves of rank {rank}");
        let parts = solves.iter_mut().zip(runs);
        let parts = parts.filter(|(_, run)| takes_part(run));
        parts
            .zip(found)
            .for_each(|((calls, _), own)| calls.push(own));
    }
    solves
}

/// Solves of a rank, identified by the ranges of HPL's tags (`hpl_pgesv.h`): a solve is an uninterrupted sequence of the
/// tags of factorization, broadcasts and solution, with the last broadcast of the solution.
fn of_rank(file: &RankFile, runs: &[HplSettings]) -> Vec<Calls> {
    let mut solves: Vec<Calls> = Vec::new();
    let mut column_communicator = None;
    let mut solving = false;
    for item in &file.items {
        let Item::Call(call) = item else { continue };
        let words = &file.signatures[call.signature as usize];
        let Some(function) = function(&file.functions[words[0] as usize], words) else {
            continue;
        };
        let (communicator, tag) = (words[1], words[3]);
        let part = match tag {
            1001..=4000 => true,
            // HPL's own collective operations. The last one of the solution goes up a column.
            9001 => solving && column_communicator == Some(communicator),
            _ => false,
        };
        if part && !solving {
            solves.push(Calls::default());
            column_communicator = None;
        }
        solving = part;
        if !part {
            continue;
        }
        // The solution has odd tags in rows and even ones in columns.
        if tag <= 2000 || (tag <= 4000 && tag > 3000 && tag % 2 == 0) {
            column_communicator = Some(communicator);
        }
        let members = &file.communicators[communicator as usize];
        let peer = members.world_rank(words[2]).expect("a rank of the grid").0;
        let number = solves.len() - 1;
        if let Some(settings) = runs.get(number) {
            solves[number].push(settings, file.header.rank.0, Call { function, peer });
        }
    }
    solves
}

fn function(name: &str, words: &[i64]) -> Option<Function> {
    let bytes = || words[4] as u64;
    match name {
        "Send" => Some(Function::Send(bytes())),
        "Ssend" => Some(Function::Ssend(bytes())),
        "Issend" => Some(Function::Issend(bytes())),
        "Recv" | "Irecv" => Some(Function::Receive),
        _ => None,
    }
}
