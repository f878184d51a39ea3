//! First line: unit of time, nodes, applications and their tasks.

use super::super::{cursor::Cursor, scan::ScanInput};
use flowcast_program::TraceError;
use flowcast_units::Rank;

const FORMAT: &str = "#Paraver (date):time[_ns]:nodes(processors,...):applications:tasks(threads:node,...)[,communicators]";

/// Limit for the number of tasks; a larger one means an error.
const MOST_TASKS: i64 = 1 << 24;

/// Contents of the header.
#[derive(Debug, Clone)]
pub(super) struct ParaverHeader {
    /// Nanoseconds per unit of time: 1 or 1000.
    pub unit: i64,
    /// First rank of each application, and the total number of ranks.
    pub first_ranks: Vec<u32>,
}

impl ParaverHeader {
    /// Number of tasks.
    pub(super) fn ranks(&self) -> u32 {
        self.first_ranks.last().copied().unwrap_or(0)
    }

    /// Returns the rank of a task of an application; both are counted from 1.
    pub(super) fn rank(&self, application: i64, task: i64) -> Option<Rank> {
        let index = usize::try_from(application.checked_sub(1)?).ok()?;
        let (first, next) = (
            *self.first_ranks.get(index)?,
            *self.first_ranks.get(index + 1)?,
        );
        let task = u32::try_from(task.checked_sub(1)?).ok()?;
        let rank = first.checked_add(task)?;
        (rank < next).then_some(Rank(rank))
    }
}

/// Reads the header. Returns it with the position of the next line.
pub(super) fn read(input: ScanInput<'_>) -> Result<(ParaverHeader, usize), TraceError> {
    let wrong = || input.fault(0, input.shown(0), FORMAT);
    let line_end = memchr::memchr(b'\n', input.text).unwrap_or(input.text.len());
    // The date contains colons.
    let date_end = memchr::memmem::find(&input.text[..line_end], b"):").ok_or_else(wrong)?;
    let mut cursor = Cursor {
        text: &input.text[..line_end],
        at: date_end + 2,
    };
    cursor.integer().ok_or_else(wrong)?;
    let unit = if cursor.eat_all(b"_ns") { 1 } else { 1000 };
    cursor.integer_after(b':').ok_or_else(wrong)?;
    if cursor.eat(b'(') {
        cursor.until(b')');
        if !cursor.eat(b')') {
            return Err(wrong());
        }
    }
    let applications = cursor.integer_after(b':');
    let applications = applications
        .filter(|number| (1..=MOST_TASKS).contains(number))
        .ok_or_else(wrong)?;
    let mut first_ranks = vec![0];
    for _ in 0..applications {
        let tasks = read_application(input, &mut cursor)?;
        let all = i64::from(first_ranks[first_ranks.len() - 1]) + tasks;
        if all > MOST_TASKS {
            return Err(input.fault(0, format!("{all} tasks"), format!("at most {MOST_TASKS}")));
        }
        first_ranks.push(all as u32);
    }
    if !cursor.eat_line_end() {
        return Err(wrong());
    }
    Ok((
        ParaverHeader { unit, first_ranks },
        (line_end + 1).min(input.text.len()),
    ))
}

/// Returns the number of tasks in `:tasks(threads:node,...)[,communicators]`.
fn read_application(input: ScanInput<'_>, cursor: &mut Cursor<'_>) -> Result<i64, TraceError> {
    let wrong = || input.fault(0, input.shown(0), FORMAT);
    let tasks = cursor
        .integer_after(b':')
        .filter(|tasks| (1..=MOST_TASKS).contains(tasks))
        .ok_or_else(wrong)?;
    if !cursor.eat(b'(') {
        return Err(wrong());
    }
    for task in 1..=tasks {
        let threads = cursor.integer().ok_or_else(wrong)?;
        if threads != 1 {
            let found = format!("{threads} threads in task {task}");
            return Err(input.fault(
                0,
                found,
                "one thread in each task (more are not supported yet)",
            ));
        }
        if !cursor.eat(b':') || cursor.integer().is_none() {
            return Err(wrong());
        }
        if !cursor.eat(if task == tasks { b')' } else { b',' }) {
            return Err(input.fault(
                0,
                format!("threads of more or fewer than {tasks} tasks"),
                FORMAT,
            ));
        }
    }
    if cursor.eat(b',') && cursor.integer().is_none() {
        return Err(wrong());
    }
    Ok(tasks)
}
