//! Ranks that wait for each other, described so that the user finds the records at fault.

use super::SimulateError;
use flowcast_units::Rank;

/// A rank that cannot continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wait {
    /// The rank, or the progress stream of a rank.
    pub rank: Rank,
    /// The rank that it belongs to.
    pub owner: Rank,
    /// Its record: `file:line`, or rank and record.
    pub place: String,
    /// Description of what it waits for.
    pub what: String,
    /// The ranks that could end the wait.
    pub on: Vec<Rank>,
}

/// Maximum number of waiting ranks in the message if there is no cycle.
const SHOWN: usize = 8;

/// The error for these waits: a cycle if there is one, otherwise the first waiting ranks.
pub(crate) fn deadlock(waits: &[Wait]) -> SimulateError {
    let cycle = find_cycle(waits);
    let chosen: Vec<&Wait> = match &cycle {
        Some(cycle) => cycle.iter().map(|index| &waits[*index]).collect(),
        None => waits.iter().take(SHOWN).collect(),
    };
    let mut story: Vec<String> = chosen
        .iter()
        .map(|wait| {
            format!(
                "{}: rank {} waits for {}",
                wait.place, wait.owner, wait.what
            )
        })
        .collect();
    if cycle.is_some() {
        story.push(format!("rank {} closes the cycle", chosen[0].owner));
    } else if waits.len() > SHOWN {
        story.push(format!("and {} more ranks", waits.len() - SHOWN));
    }
    let waiting = waits.iter().filter(|wait| wait.rank == wait.owner).count();
    SimulateError::Deadlock {
        waiting,
        story: story.join("; "),
    }
}

/// From each rank, follows the first waiting rank that it waits for; a rank that occurs again closes a cycle.
fn find_cycle(waits: &[Wait]) -> Option<Vec<usize>> {
    let mut by_rank: Vec<(Rank, usize)> = waits
        .iter()
        .enumerate()
        .map(|(index, wait)| (wait.rank, index))
        .collect();
    by_rank.sort_unstable();
    let index_of = |rank: Rank| {
        let found = by_rank
            .binary_search_by_key(&rank, |(rank, _)| *rank)
            .ok()?;
        Some(by_rank[found].1)
    };
    let mut visited = vec![0u32; waits.len()];
    for start in 0..waits.len() {
        let mark = start as u32 + 1;
        let mut path = Vec::new();
        let mut at = start;
        while visited[at] == 0 {
            visited[at] = mark;
            path.push(at);
            match waits[at].on.iter().find_map(|rank| index_of(*rank)) {
                Some(next) => at = next,
                None => break,
            }
        }
        if visited[at] == mark
            && let Some(first) = path.iter().position(|index| *index == at)
            && waits[*path.last().expect("the path holds `at`")]
                .on
                .contains(&waits[at].rank)
        {
            return Some(path[first..].to_vec());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(rank: u32, on: &[u32]) -> Wait {
        Wait {
            rank: Rank(rank),
            owner: Rank(rank),
            place: format!("t:{rank}"),
            what: "a message".into(),
            on: on.iter().copied().map(Rank).collect(),
        }
    }

    #[test]
    fn a_cycle_is_reported_without_the_ranks_that_lead_to_it() {
        let cycle = find_cycle(&[wait(0, &[1]), wait(1, &[2]), wait(2, &[1])]);
        assert_eq!(cycle, Some(vec![1, 2]));
        assert_eq!(find_cycle(&[wait(0, &[1]), wait(1, &[7])]), None);
        assert_eq!(find_cycle(&[wait(3, &[3])]), Some(vec![0]));
    }
}
