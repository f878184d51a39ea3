//! Effect of a call, from its named arguments.

use std::collections::BTreeMap;

use super::{
    super::{
        calls::{
            CommunicatorOrigin, CompletedRequest, Group, Leaders, RankCalls, Sizes, TracedCall,
        },
        fault::Fault,
    },
    lines::DumpiRecord,
    types::Types,
};
use flowcast_recording::{
    format::{ANY_SOURCE, ANY_TAG, NO_RANK},
    operation,
    table::MpiFunction,
};

const WORLD: i64 = 2;
const ANY: i64 = -1;

const EMPTY_GROUP: i64 = 2;

/// Collector of one rank's calls.
#[derive(Default)]
pub(super) struct DumpiCalls {
    /// Sizes of the rank's datatypes.
    pub types: Types,
    /// Communicators by their number in the trace.
    communicators: BTreeMap<i64, usize>,
    groups: BTreeMap<i64, Group>,
    /// Dimensions of Cartesian grids.
    grids: BTreeMap<usize, Vec<u32>>,
    /// Non-blocking receives in flight; `true` if one names no source or no tag.
    open: BTreeMap<u64, bool>,
    /// Rank, once the program has requested it.
    pub rank: Option<i64>,
    /// Number of ranks, once the program has requested it.
    pub world_size: Option<i64>,
    /// Number of calls without an end.
    pub unfinished: u64,
    /// Result: calls of the rank so far, and the origins of its communicators.
    pub out: RankCalls,
}

impl DumpiCalls {
    /// Creates an empty collector.
    pub(super) fn new(types: Types) -> DumpiCalls {
        let empty = Group::First(Box::new(Group::Of(0)), 0);
        DumpiCalls {
            types,
            communicators: BTreeMap::from([(WORLD, 0), (WORLD + 1, 1)]),
            groups: BTreeMap::from([(EMPTY_GROUP, empty)]),
            out: RankCalls {
                communicators: vec![CommunicatorOrigin::World, CommunicatorOrigin::Own],
                ..RankCalls::default()
            },
            ..DumpiCalls::default()
        }
    }

    /// Adds a call.
    ///
    /// # Errors
    /// An argument is missing or is not a number.
    pub(super) fn call(&mut self, record: &DumpiRecord<'_>) -> Result<(), Fault> {
        let arguments = DumpiArguments(record);
        self.local(&arguments)?;
        // Calls that are not in the table do not concern other ranks; their time counts as computation.
        let Some(function) = MpiFunction::named(record.name) else {
            return Ok(());
        };
        let (thread, begin, end) = (record.thread, record.begin, record.end);
        let mut call = TracedCall {
            function: &function.name,
            thread,
            begin,
            end,
            ..TracedCall::default()
        };
        self.meaning(&arguments, function, &mut call)?;
        if function.makes_request() && !call.words.is_empty() {
            let request = arguments.requests("request").first().copied();
            call.makes = Some(request.ok_or_else(|| arguments.missing("request"))?);
            call.persistent = function.kind.ends_with("-init");
        }
        self.out.calls.push(call);
        Ok(())
    }

    /// Handles the queries and definitions of a rank that involve no communication.
    fn local(&mut self, arguments: &DumpiArguments<'_>) -> Result<(), Fault> {
        match arguments.0.name {
            "Comm_rank" if arguments.int("comm")? == WORLD => {
                self.rank = Some(arguments.int("rank")?)
            }
            "Comm_size" if arguments.int("comm")? == WORLD => {
                self.world_size = Some(arguments.int("size")?)
            }
            // These communicators have processes that are not in the trace.
            "Comm_accept" | "Comm_connect" | "Comm_spawn" | "Comm_spawn_multiple" => {
                self.add_communicator(arguments, CommunicatorOrigin::Unknown);
            }
            name if name.starts_with("Group_") || name.ends_with("_group") => {
                if let Some(group) = self.new_group(arguments)? {
                    let number = arguments
                        .int("newgroup")
                        .or_else(|_| arguments.int("group"));
                    self.groups.insert(number?, group);
                }
            }
            _ => {
                self.types.note(
                    arguments.0,
                    &|name: &str| arguments.int(name).ok(),
                    &|name: &str| arguments.list(name),
                );
            }
        }
        Ok(())
    }

    /// Returns the group that a call makes, if it makes one.
    fn new_group(&mut self, arguments: &DumpiArguments<'_>) -> Result<Option<Group>, Fault> {
        use Group::*;
        let old = |name: &str| -> Result<Box<Group>, Fault> {
            let known = self.groups.get(&arguments.int(name)?).cloned();
            Ok(Box::new(known.unwrap_or(Unknown)))
        };
        Ok(Some(match arguments.0.name {
            "Comm_group" => Of(self.communicator(arguments.int("comm")?)),
            "Comm_remote_group" => Remote(self.communicator(arguments.int("comm")?)),
            "Group_incl" => Including(old("group")?, ranks(arguments)),
            "Group_excl" => {
                let others = Including(old("group")?, ranks(arguments));
                Sift(old("group")?, Box::new(others), false)
            }
            "Group_union" => Union(old("group1")?, old("group2")?),
            "Group_intersection" => Sift(old("group1")?, old("group2")?, true),
            "Group_difference" => Sift(old("group1")?, old("group2")?, false),
            // Ranges are printed on several lines.
            _ if arguments.has("newgroup") => Unknown,
            _ => return Ok(None),
        }))
    }

    /// Returns the position of a communicator in the rank's list.
    fn communicator(&mut self, number: i64) -> usize {
        *self.communicators.entry(number).or_insert_with(|| {
            self.out.communicators.push(CommunicatorOrigin::Unknown);
            self.out.communicators.len() - 1
        })
    }

    fn meaning(
        &mut self,
        arguments: &DumpiArguments<'_>,
        function: &MpiFunction,
        call: &mut TracedCall,
    ) -> Result<(), Fault> {
        match function.kind.as_str() {
            "send" | "ssend" | "isend" | "issend" | "send-init" | "ssend-init" => {
                call.words = self.send(arguments, ["count", "datatype", "tag"])?;
            }
            "recv" | "irecv" | "recv-init" => {
                let communicator = self.communicator(arguments.int("comm")?) as i64;
                let received = self.received(arguments, "tag")?;
                if let Some(request) = arguments
                    .requests("request")
                    .first()
                    .filter(|_| function.makes_request())
                {
                    self.open.insert(*request, received[2] > 0);
                }
                call.words = [&[communicator], &received[..]].concat();
            }
            "sendrecv" => {
                let replaces = arguments.has("count");
                let what = if replaces {
                    ["count", "datatype", "sendtag"]
                } else {
                    ["sendcount", "sendtype", "sendtag"]
                };
                call.words = self.send(arguments, what)?;
                call.words.extend(self.received(arguments, "recvtag")?);
            }
            "wait" | "waitall" | "waitany" | "waitsome" | "test" | "testall" | "testany"
            | "testsome" => {
                call.completes = self.completed(arguments, function)?;
            }
            "start" => call.starts = arguments.requests("request"),
            "startall" => call.starts = arguments.requests("requests"),
            "request-free" => call.frees = arguments.requests("request").first().copied(),
            "comm" | "icomm" => self.new_communicator(arguments)?,
            "comm-free" => drop(self.communicators.remove(&arguments.int("comm")?)),
            _ if operation(&function.name).is_some() => {
                let communicator = self.communicator(arguments.int("comm")?) as i64;
                let root = if arguments.has("root") {
                    arguments.int("root")?
                } else {
                    -1
                };
                call.words = vec![communicator, root];
                call.sizes = Some(self.sizes(arguments)?);
            }
            _ => {}
        }
        Ok(())
    }

    fn bytes(
        &mut self,
        arguments: &DumpiArguments<'_>,
        count: &str,
        datatype: &str,
    ) -> Result<i64, Fault> {
        match arguments.int(count)?.max(0) {
            0 => Ok(0),
            count => Ok(count.saturating_mul(self.types.size(arguments.int(datatype)?))),
        }
    }

    fn send(
        &mut self,
        arguments: &DumpiArguments<'_>,
        [count, datatype, tag]: [&str; 3],
    ) -> Result<Vec<i64>, Fault> {
        let communicator = self.communicator(arguments.int("comm")?) as i64;
        let elements = arguments.int(count)?;
        if elements < 0 {
            let found = format!("{count}={elements}");
            return Err(Fault::value(found, "a count of at least 0"));
        }
        let bytes = self.bytes(arguments, count, datatype)?;
        Ok(vec![
            communicator,
            arguments.int("dest")?.max(NO_RANK),
            arguments.int(tag)?,
            bytes,
        ])
    }

    /// Returns source, tag and flags. The status provides the values that a wildcard matched.
    fn received(&self, arguments: &DumpiArguments<'_>, tag: &str) -> Result<[i64; 3], Fault> {
        let (source, tag) = (arguments.int("source")?, arguments.int(tag)?);
        let flags =
            if source == ANY { ANY_SOURCE } else { 0 } | if tag == ANY { ANY_TAG } else { 0 };
        if source < ANY {
            return Ok([NO_RANK, tag, 0]);
        }
        Ok(
            match arguments.statuses("status").first().filter(|_| flags > 0) {
                Some(status) => [status.source, status.tag, flags],
                None => [source, tag, flags],
            },
        )
    }

    fn completed(
        &mut self,
        arguments: &DumpiArguments<'_>,
        function: &MpiFunction,
    ) -> Result<Vec<CompletedRequest>, Fault> {
        let kind = function.kind.as_str();
        let one = ["wait", "test"].contains(&kind);
        let requests = arguments.requests(if one { "request" } else { "requests" });
        let statuses = arguments.statuses(if arguments.has("statuses") {
            "statuses"
        } else {
            "status"
        });
        let missing = arguments.has("flag") && arguments.int("flag")? == 0;
        let chosen: Vec<usize> = match kind {
            _ if missing => Vec::new(),
            "waitany" | "testany" => usize::try_from(arguments.int("index")?)
                .into_iter()
                .collect(),
            "waitsome" | "testsome" => arguments
                .list("indices")
                .unwrap_or_default()
                .iter()
                .filter_map(|index| (*index).try_into().ok())
                .collect(),
            _ => (0..requests.len()).collect(),
        };
        let is_list = ["waitsome", "testsome", "waitany", "testany"].contains(&kind);
        let done = chosen.into_iter().enumerate().filter_map(|(nth, index)| {
            let request = *requests.get(index)?;
            let status = statuses.get(if is_list { nth } else { index });
            let matched = status.filter(|_| self.open.get(&request) == Some(&true));
            // The status of other requests may contain anything.
            let matched = matched.map(|status| (status.source, status.tag));
            Some(CompletedRequest {
                request,
                matched,
                cancelled: false,
            })
        });
        Ok(done.collect())
    }

    fn sizes(&mut self, arguments: &DumpiArguments<'_>) -> Result<Sizes, Fault> {
        let mut sizes = Sizes::default();
        let sent = ["sendcount", "count"]
            .into_iter()
            .find(|name| arguments.has(name));
        let [out_type, in_type] =
            ["sendtype", "recvtype"].map(|own| if arguments.has(own) { own } else { "datatype" });
        if let Some(count) = sent {
            sizes.out = self.bytes(arguments, count, out_type)?;
        }
        if arguments.has("recvcount") {
            sizes.into = self.bytes(arguments, "recvcount", in_type)?;
        }
        sizes.outs = self.vector(arguments, ["sendcounts", out_type, "sendtypes"])?;
        sizes.ins = self.vector(arguments, ["recvcounts", in_type, "recvtypes"])?;
        Ok(sizes)
    }

    fn vector(
        &mut self,
        arguments: &DumpiArguments<'_>,
        [counts, datatype, datatypes]: [&str; 3],
    ) -> Result<Option<Vec<i64>>, Fault> {
        let Some(counts) = arguments.list(counts) else {
            return Ok(None);
        };
        let units: Vec<i64> = match arguments.list(datatypes) {
            Some(types) => types
                .into_iter()
                .map(|number| self.types.size(number))
                .collect(),
            None => {
                let number = arguments.int(datatype)?;
                let unit = if counts.iter().any(|count| *count > 0) {
                    self.types.size(number)
                } else {
                    1
                };
                vec![unit; counts.len()]
            }
        };
        Ok(Some(
            counts
                .iter()
                .zip(units)
                .map(|(count, unit)| count.max(&0).saturating_mul(unit))
                .collect(),
        ))
    }

    fn new_communicator(&mut self, arguments: &DumpiArguments<'_>) -> Result<(), Fault> {
        use CommunicatorOrigin::*;
        let named = ["oldcomm", "comm", "localcomm"]
            .into_iter()
            .find(|name| arguments.has(name));
        let parent = self.communicator(arguments.int(named.unwrap_or("comm"))?);
        let place = self.out.communicators.len();
        let origin = match arguments.0.name {
            "Comm_dup" | "Comm_idup" => Same(parent),
            "Comm_split" => Split(parent, arguments.int("color")?, arguments.int("key")?),
            "Comm_create" | "Comm_create_group" => {
                let group = self.groups.get(&arguments.int("group")?);
                Create(parent, group.cloned().unwrap_or(Group::Unknown))
            }
            "Intercomm_create" => Between(Leaders {
                local: parent,
                local_leader: arguments.int("localleader")?,
                peer: self.communicator(arguments.int("remotecomm")?),
                remote_leader: arguments.int("remoteleader")?,
                tag: arguments.int("tag")?,
            }),
            "Intercomm_merge" => Merge(parent, arguments.int("high")? != 0),
            "Graph_create" => first_of(parent, u32::try_from(arguments.int("nodes")?).ok()),
            "Cart_create" => self.grid(parent, place, arguments),
            "Cart_sub" => self.slice(parent, place, arguments),
            _ => Unknown,
        };
        self.add_communicator(arguments, origin);
        Ok(())
    }

    /// Adds a communicator, which has this number in the trace from now on.
    fn add_communicator(&mut self, arguments: &DumpiArguments<'_>, origin: CommunicatorOrigin) {
        let place = self.out.communicators.len();
        self.out.communicators.push(origin);
        if let Ok(new) = arguments.int("newcomm") {
            self.communicators.insert(new, place);
        }
    }

    /// Adds a grid. It has the first ranks of its parent. MPI allows a different order, but no library that produces these
    /// traces uses one.
    fn grid(
        &mut self,
        parent: usize,
        place: usize,
        arguments: &DumpiArguments<'_>,
    ) -> CommunicatorOrigin {
        let dimensions: Option<Vec<u32>> = arguments
            .list("dims")
            .and_then(|dims| dims.iter().map(|width| (*width).try_into().ok()).collect());
        let Some(dimensions) = dimensions else {
            return CommunicatorOrigin::Unknown;
        };
        let size = dimensions
            .iter()
            .try_fold(1u32, |size, width| size.checked_mul(*width));
        self.grids.insert(place, dimensions);
        first_of(parent, size)
    }

    fn slice(
        &mut self,
        parent: usize,
        place: usize,
        arguments: &DumpiArguments<'_>,
    ) -> CommunicatorOrigin {
        let (Some(dimensions), Some(remain)) =
            (self.grids.get(&parent), arguments.list("remain_dims"))
        else {
            return CommunicatorOrigin::Unknown;
        };
        let slice: Vec<(u32, bool)> = dimensions
            .iter()
            .zip(remain)
            .map(|(width, remains)| (*width, remains != 0))
            .collect();
        let left = slice
            .iter()
            .filter(|(_, remains)| *remains)
            .map(|(width, _)| *width)
            .collect();
        self.grids.insert(place, left);
        CommunicatorOrigin::Slice(parent, slice)
    }
}

fn ranks(arguments: &DumpiArguments<'_>) -> Vec<u32> {
    arguments
        .list("ranks")
        .unwrap_or_default()
        .into_iter()
        .filter_map(|rank| rank.try_into().ok())
        .collect()
}

/// Returns the origin of a grid or a graph: the first ranks of a communicator.
fn first_of(parent: usize, size: Option<u32>) -> CommunicatorOrigin {
    size.filter(|size| *size < 1 << 24)
        .map_or(CommunicatorOrigin::Unknown, |size| {
            let group = Box::new(Group::Of(parent));
            CommunicatorOrigin::Create(parent, Group::First(group, size))
        })
}

/// Status of a request.
struct Status {
    source: i64,
    tag: i64,
}

struct DumpiArguments<'a>(&'a DumpiRecord<'a>);

impl DumpiArguments<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        self.0
            .arguments
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
    }

    fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    fn missing(&self, name: &str) -> Fault {
        Fault::value(
            format!("MPI_{} without `{name}`", self.0.name),
            format!("`{name}=` among its arguments"),
        )
    }

    /// Reads `7` or `7 (MPI_SOMETHING)`.
    fn int(&self, name: &str) -> Result<i64, Fault> {
        let value = self.value(name).ok_or_else(|| self.missing(name))?;
        let number = value
            .split_whitespace()
            .next()
            .and_then(|word| word.parse().ok());
        number.ok_or_else(|| {
            Fault::value(
                format!("{name}={value}"),
                format!("a whole number in MPI_{}", self.0.name),
            )
        })
    }

    /// Reads `[1, 2]`, with or without a name after each number. Returns `None` if the argument is missing.
    fn list(&self, name: &str) -> Option<Vec<i64>> {
        let inner = self
            .value(name)?
            .trim()
            .strip_prefix('[')?
            .strip_suffix(']')?;
        if inner.trim().is_empty() {
            Some(Vec::new())
        } else {
            inner
                .split(',')
                .map(|item| item.split_whitespace().next()?.parse().ok())
                .collect()
        }
    }

    fn requests(&self, name: &str) -> Vec<u64> {
        self.list(name)
            .unwrap_or_default()
            .into_iter()
            .map(|number| number as u64)
            .collect()
    }

    /// Reads `[{bytes=4, cancelled=0, source=3, tag=7, error=0}]`.
    fn statuses(&self, name: &str) -> Vec<Status> {
        let Some(text) = self.value(name) else {
            return Vec::new();
        };
        let statuses = text.split('{').skip(1);
        statuses
            .filter_map(|one| {
                Some(Status {
                    source: field(one, "source=")?,
                    tag: field(one, "tag=")?,
                })
            })
            .collect()
    }
}

fn field(status: &str, name: &str) -> Option<i64> {
    let rest = &status[status.find(name)? + name.len()..];
    rest.split([',', '}']).next()?.trim().parse().ok()
}
