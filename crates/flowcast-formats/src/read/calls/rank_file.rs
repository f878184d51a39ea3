//! Conversion of a rank's calls to the form of its file in a recording.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{CompletedRequest, RankCalls, TracedCall};
use crate::lowest_free::LowestFree;
use flowcast_program::key_map::KeyMap;
use flowcast_recording::{
    decode::{Header, Item, Members, RankFile, RecordedCall},
    format::{CANCELLED, MATCHED},
    operation,
};
use flowcast_units::Rank;

const WITHOUT_MEMBERS: &str = "calls on communicators whose members are unknown,";
const WITHOUT_PEER: &str = "calls that name a rank outside their communicator,";

/// Returns the file, and the numbers of omitted calls by kind.
pub(super) fn rank_file(
    rank: u32,
    ranks: u32,
    calls: RankCalls,
    communicators: Vec<Arc<Members>>,
) -> (RankFile, BTreeMap<&'static str, u64>) {
    let fields = BTreeMap::from([("program".to_owned(), calls.program)]);
    let header = Header {
        fields,
        rank: Rank(rank),
        ranks,
        ..Header::default()
    };
    let positions = communicators.iter().map(|members| {
        let mut members = members.own.iter();
        members.position(|member| *member == rank)
    });
    let positions = positions.collect();
    let file = RankFile {
        header,
        communicators,
        ended: true,
        ..RankFile::default()
    };
    let mut writer = RankFileWriter {
        file,
        positions,
        ..RankFileWriter::default()
    };
    for call in calls.calls {
        writer.call(call);
    }
    writer.file.functions = writer.functions.keys().map(str::to_owned).collect();
    (writer.file, writer.left_out)
}

#[derive(Default)]
struct RankFileWriter {
    file: RankFile,
    /// Position of the rank in its group of each communicator.
    positions: Vec<Option<usize>>,
    functions: KeyMap<&'static str>,
    signatures: HashMap<Vec<i64>, u32>,
    /// Free slots: the next request gets the lowest, as in a recording.
    free_slots: LowestFree,
    /// Slot of each request, and `true` if it is persistent.
    requests: BTreeMap<u64, (usize, bool)>,
    /// Return of each thread's last call.
    returned: BTreeMap<u32, u64>,
    left_out: BTreeMap<&'static str, u64>,
}

impl RankFileWriter {
    fn call(&mut self, call: TracedCall) {
        let mut words = vec![i64::from(self.functions.number(call.function))];
        match self.fault(&call) {
            None => self.arguments(&call, &mut words),
            Some(fault) => *self.left_out.entry(fault).or_default() += 1,
        }
        if let (Some(request), true) = (call.makes, words.len() > 1) {
            let slot = self.free_slots.take();
            self.requests.insert(request, (slot, call.persistent));
        }
        let next = self.file.signatures.len() as u32;
        let signature = *self.signatures.entry(words).or_insert_with_key(|words| {
            self.file.signatures.push(words.clone());
            next
        });
        let end = call.end.max(call.begin);
        let before = self.returned.insert(call.thread, end).unwrap_or(call.begin);
        let burst = call.begin.saturating_sub(before);
        let (thread, begin, time) = (call.thread, call.begin, end - call.begin);
        self.file.items.push(Item::Call(RecordedCall {
            thread,
            signature,
            begin,
            burst,
            cpu: burst,
            time,
        }));
    }

    /// Returns the reason why a call cannot be replayed, if there is one.
    fn fault(&self, call: &TracedCall) -> Option<&'static str> {
        let number = usize::try_from(*call.words.first()?).ok();
        let known = number.and_then(|number| self.file.communicators.get(number));
        let Some(members) = known.filter(|members| !members.own.is_empty()) else {
            return Some(WITHOUT_MEMBERS);
        };
        // This word is a root, a destination or a source. A message in both directions also has a source further on.
        let source = call.words.get(4).filter(|_| call.words.len() > 5);
        let mut peers = call.words.get(1).into_iter().chain(source);
        let is_beyond = peers.any(|peer| *peer >= 0 && members.world_rank(*peer).is_none());
        is_beyond.then_some(WITHOUT_PEER)
    }

    fn arguments(&mut self, call: &TracedCall, words: &mut Vec<i64>) {
        words.extend_from_slice(&call.words);
        if let (Some(sizes), Some(op)) = (&call.sizes, operation(call.function)) {
            let own = call.words[0] as usize;
            let (members, position) = (&self.file.communicators[own].own, self.positions[own]);
            let root = call
                .words
                .get(1)
                .and_then(|root| usize::try_from(*root).ok());
            let is_root = root.is_some() && root == position;
            let (size, place) = (members.len() as i64, position.unwrap_or(0));
            let (send, recv) = sizes.volume(op, size, place, is_root);
            words.extend_from_slice(&[send, recv]);
        }
        words.extend(call.starts.iter().filter_map(|request| self.slot(*request)));
        for done in &call.completes {
            self.complete(done, words);
        }
        if let Some(request) = call.frees {
            words.extend(self.slot(request));
            self.forget(request);
        }
    }

    fn slot(&self, request: u64) -> Option<i64> {
        self.requests.get(&request).map(|(slot, _)| *slot as i64)
    }

    fn complete(&mut self, done: &CompletedRequest, words: &mut Vec<i64>) {
        let Some((slot, persistent)) = self.requests.get(&done.request).copied() else {
            return;
        };
        let word = slot as i64 * 4;
        match (done.cancelled, done.matched) {
            (true, _) => words.push(word + CANCELLED),
            (false, Some((source, tag))) => words.extend_from_slice(&[word + MATCHED, source, tag]),
            (false, None) => words.push(word),
        }
        if !persistent {
            self.forget(done.request);
        }
    }

    fn forget(&mut self, request: u64) {
        if let Some((slot, _)) = self.requests.remove(&request) {
            self.free_slots.free(slot);
        }
    }
}
