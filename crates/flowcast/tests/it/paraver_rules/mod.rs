//! A checker of Paraver traces, written from the description of the format and independent of the writer.
//!
//! It reads the three files as text and collects violations of rules. Tests beside its use check that it accepts the files
//! of Extrae and rejects broken ones.

use std::collections::{BTreeMap, BTreeSet};

/// Contents of a trace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub end: u64,
    pub cpus: Vec<u64>,
    /// Node of each task, from 1.
    pub tasks: Vec<u64>,
    pub communicators: usize,
    pub states: usize,
    pub events: usize,
    pub messages: usize,
    pub bytes: u64,
    pub messages_by_logical_send: bool,
    /// Nanoseconds by state, over all tasks.
    pub time_in_state: BTreeMap<u64, u64>,
    pub event_types: BTreeSet<i64>,
}

/// Checks the three files together.
pub(crate) fn check(prv: &str, pcf: &str, row: &str) -> Result<Contents, Vec<String>> {
    let mut problems = Vec::new();
    let Some((contents, states)) = check_records(prv, &mut problems) else {
        return Err(problems);
    };
    check_legend(pcf, &states, &contents, &mut problems);
    check_names(row, &contents, &mut problems);
    if problems.is_empty() {
        Ok(contents)
    } else {
        Err(problems)
    }
}

fn numbers(text: &str) -> Option<Vec<i64>> {
    text.split(':').map(|field| field.parse().ok()).collect()
}

/// `#Paraver (dd/mm/yy at hh:mm):end_ns:nodes(cpus):applications:tasks(threads:node,...),communicators`
fn header(line: &str) -> Option<(Contents, usize)> {
    let rest = line.strip_prefix("#Paraver (")?;
    let (date, rest) = rest.split_once("):")?;
    let (day, clock) = date.split_once(" at ")?;
    let parts: Vec<&str> = day.split('/').collect();
    let is_date = parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok());
    let (hours, minutes) = clock.split_once(':')?;
    if !is_date || hours.parse::<u32>().ok()? > 23 || minutes.parse::<u32>().ok()? > 59 {
        return None;
    }
    let (end, rest) = rest.split_once("_ns:")?;
    let (nodes, rest) = rest.split_once('(')?;
    let (cpus, rest) = rest.split_once("):")?;
    let cpus: Vec<u64> = cpus
        .split(',')
        .map(|cpus| cpus.parse().ok())
        .collect::<Option<_>>()?;
    let (applications, rest) = rest.split_once(':')?;
    let (count, rest) = rest.split_once('(')?;
    let (tasks, communicators) = rest.split_once("),")?;
    let node_of = |task: &str| match task.split_once(':')? {
        ("1", node) => node
            .parse()
            .ok()
            .filter(|node| (1..=cpus.len() as u64).contains(node)),
        _ => None,
    };
    let tasks: Vec<u64> = tasks.split(',').map(node_of).collect::<Option<_>>()?;
    let counts_fit =
        nodes.parse() == Ok(cpus.len()) && applications == "1" && count.parse() == Ok(tasks.len());
    let end = end.parse().ok()?;
    counts_fit.then_some((
        Contents {
            end,
            cpus,
            tasks,
            messages_by_logical_send: true,
            ..Contents::default()
        },
        communicators.trim().parse().ok()?,
    ))
}

fn check_records(prv: &str, problems: &mut Vec<String>) -> Option<(Contents, BTreeSet<u64>)> {
    let mut lines = prv.lines().enumerate();
    let Some((mut contents, communicators)) = lines.next().and_then(|(_, line)| header(line))
    else {
        problems.push("line 1 is no header".into());
        return None;
    };
    let mut reached = 0;
    let mut busy_until = vec![0; contents.tasks.len()];
    let mut inside: BTreeMap<(i64, i64), i64> = BTreeMap::new();
    let mut states = BTreeSet::new();
    let mut in_body = false;
    for (index, line) in lines {
        let mut wrong = |what: &str| problems.push(format!("line {}: {what}: {line}", index + 1));
        if let Some(rest) = line.strip_prefix("c:") {
            let fields = numbers(rest).unwrap_or_default();
            let is_whole =
                fields.len() >= 3 && fields[0] == 1 && fields[2] as usize == fields.len() - 3;
            let tasks = 1..=contents.tasks.len() as i64;
            if in_body || !is_whole || !fields[3..].iter().all(|task| tasks.contains(task)) {
                wrong("communicator");
            }
            contents.communicators += 1;
            continue;
        }
        in_body = true;
        let Some(fields) = numbers(line) else {
            wrong("not numbers between colons");
            continue;
        };
        let expected = match fields[0] {
            1 => fields.len() == 8,
            2 => fields.len() >= 8 && fields.len() % 2 == 0,
            3 => fields.len() == 15,
            _ => false,
        };
        if !expected || !is_place(&fields[1..5], &contents) {
            wrong("number of fields, or a cpu, application, task or thread out of range");
            continue;
        }
        // Dimemas puts a message at its logical send, Extrae at its physical send.
        let latest = if fields[0] == 3 { fields[6] } else { fields[5] };
        if latest < reached {
            wrong("not sorted by time");
        }
        contents.messages_by_logical_send &= fields[5] >= reached;
        reached = reached.max(fields[5]);
        let task = fields[3] as usize - 1;
        match fields[0] {
            1 => {
                let (begin, end, state) = (fields[5], fields[6], fields[7]);
                if begin > end || begin < busy_until[task] || end > contents.end as i64 || state < 0
                {
                    wrong(
                        "a state that ends before it begins, overlaps the one before or outlives the trace",
                    );
                }
                busy_until[task] = end;
                contents.states += 1;
                states.insert(state as u64);
                *contents.time_in_state.entry(state as u64).or_default() += end.abs_diff(begin);
            }
            2 => {
                if fields[5] > contents.end as i64 {
                    wrong("an event after the end");
                }
                for pair in fields[6..].chunks(2) {
                    contents.events += 1;
                    contents.event_types.insert(pair[0]);
                    if (50_000_001..=50_000_005).contains(&pair[0]) {
                        let before = inside.insert((fields[3], pair[0]), pair[1]).unwrap_or(0);
                        if (before == 0) == (pair[1] == 0) {
                            wrong("a call inside a call, or an end without a begin");
                        }
                    }
                }
            }
            _ => {
                let (logical_send, physical_send, physical_receive) =
                    (fields[5], fields[6], fields[12]);
                let in_order = logical_send <= physical_send && physical_send <= physical_receive;
                let in_time =
                    fields[11].max(physical_receive) <= contents.end as i64 && fields[11] >= 0;
                if !is_place(&fields[7..11], &contents) || !in_order || !in_time || fields[13] < 0 {
                    wrong("a message out of range or out of order");
                }
                contents.messages += 1;
                contents.bytes += fields[13] as u64;
            }
        }
    }
    if contents.communicators != communicators {
        problems.push(format!(
            "{} communicators, {communicators} in the header",
            contents.communicators
        ));
    }
    if inside.values().any(|value| *value != 0) {
        problems.push("a call without an end".into());
    }
    Some((contents, states))
}

/// `cpu:application:task:thread`: cpu 0 means none, otherwise a cpu of the task's node.
fn is_place(fields: &[i64], contents: &Contents) -> bool {
    let [cpu, application, task, thread] = fields else {
        return false;
    };
    let Some(node) = contents.tasks.get((*task - 1) as usize) else {
        return false;
    };
    let before: u64 = contents.cpus[..*node as usize - 1].iter().sum();
    let own = before as i64 + 1..=(before + contents.cpus[*node as usize - 1]) as i64;
    *application == 1 && *thread == 1 && (*cpu == 0 || own.contains(cpu))
}

/// Checks that each block begins with a keyword on its own line.
fn check_legend(
    pcf: &str,
    states: &BTreeSet<u64>,
    contents: &Contents,
    problems: &mut Vec<String>,
) {
    let mut block = "";
    let mut named = BTreeSet::new();
    let mut coloured = BTreeSet::new();
    let mut types = BTreeSet::new();
    for line in pcf.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (line, block) {
            (
                "DEFAULT_OPTIONS" | "DEFAULT_SEMANTIC" | "STATES" | "STATES_COLOR" | "EVENT_TYPE"
                | "VALUES" | "GRADIENT_COLOR" | "GRADIENT_NAMES",
                _,
            ) => block = line,
            (_, "STATES") if words.len() >= 2 && words[0].parse::<u64>().is_ok() => {
                named.insert(words[0].parse::<u64>().unwrap());
            }
            (_, "STATES_COLOR") if words.len() == 2 && is_colour(words[1]) => {
                coloured.insert(words[0].parse::<u64>().unwrap_or(u64::MAX));
            }
            (_, "EVENT_TYPE") if words.len() >= 3 && words[0].parse::<u32>().is_ok() => {
                types.insert(words[1].parse::<i64>().unwrap_or(-1));
            }
            (_, "VALUES") if words.len() >= 2 && words[0].parse::<i64>().is_ok() => {}
            (_, "DEFAULT_OPTIONS" | "DEFAULT_SEMANTIC" | "GRADIENT_COLOR" | "GRADIENT_NAMES") => {}
            _ => problems.push(format!("pcf: `{line}` in block `{block}`")),
        }
    }
    if !states.is_subset(&named) || named != coloured {
        problems.push(format!(
            "pcf: states {states:?} occur, {named:?} have names, {coloured:?} colours"
        ));
    }
    if !contents.event_types.is_subset(&types) {
        problems.push(format!(
            "pcf: events {:?} occur, {types:?} have names",
            contents.event_types
        ));
    }
}

fn is_colour(text: &str) -> bool {
    let inside = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    inside.is_some_and(|inside| {
        let parts: Vec<_> = inside.split(',').map(str::parse::<u8>).collect();
        parts.len() == 3 && parts.iter().all(Result::is_ok)
    })
}

/// `LEVEL name SIZE n`, then n lines.
fn check_names(row: &str, contents: &Contents, problems: &mut Vec<String>) {
    let mut sizes = BTreeMap::new();
    let mut lines = row
        .lines()
        .filter(|line| !line.trim().is_empty())
        .peekable();
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["LEVEL", level, "SIZE", size] = words[..] else {
            problems.push(format!("row: `{line}`, expected LEVEL name SIZE n"));
            return;
        };
        let size: usize = size.parse().unwrap_or(usize::MAX);
        let names =
            std::iter::from_fn(|| lines.next_if(|line| !line.starts_with("LEVEL "))).count();
        if names != size {
            problems.push(format!(
                "row: {names} names of level {level}, expected {size}"
            ));
        }
        sizes.insert(level, size);
    }
    let cpus = contents.cpus.iter().sum::<u64>() as usize;
    for (level, size) in [
        ("CPU", cpus),
        ("NODE", contents.cpus.len()),
        ("THREAD", contents.tasks.len()),
    ] {
        if sizes.get(level) != Some(&size) {
            problems.push(format!(
                "row: level {level} has size {:?}, expected {size}",
                sizes.get(level)
            ));
        }
    }
}
