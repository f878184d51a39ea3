//! What a replay tells about itself while it runs, and the timeline that is made of it.

use super::timeline::{Activity, MessageSpan, Segment, Timeline};
use flowcast_trace::program::Program;
use flowcast_units::{Bytes, Rank, Time};

/// Told of everything that takes time; all times in nanoseconds. The default is to take no notice, at no cost.
pub trait Observer {
    /// Whether it takes any notice.
    const WATCHES: bool = true;
    /// A computation.
    #[inline(always)]
    fn computed(&mut self, _rank: u32, _start: f64, _end: f64) {}
    /// A send call: overhead from `start` to `end`; the last byte arrives at `arrival` unless that is not known yet.
    #[inline(always)]
    fn sent(&mut self, _rank: u32, _slot: u32, _sent: Sent) {}
    /// A rendezvous message that waited for its receiver since `asked` has begun to move and will arrive.
    #[inline(always)]
    fn moved(&mut self, _slot: u32, _start: f64, _arrival: f64) {}
    /// A message that has begun to move had waited for links and buses since `asked`.
    #[inline(always)]
    fn queued(&mut self, _slot: u32, _asked: f64) {}
    /// An immediate receive was posted.
    #[inline(always)]
    fn posted(&mut self, _slot: u32, _time: f64) {}
    /// The program passed an event of the trace, by index into the events.
    #[inline(always)]
    fn marked(&mut self, _rank: u32, _event: u32, _time: f64) {}
    /// A sender waited for its receiver.
    #[inline(always)]
    fn held(&mut self, _rank: u32, _slot: u32, _start: f64, _end: f64) {}
    /// A receive or wait: called at `call`, processor time up to `before`, returned at `end` with `after` of overhead.
    #[inline(always)]
    fn received(&mut self, _rank: u32, _slot: u32, _received: Received) {}
    /// One-sided communication or a request to a file.
    #[inline(always)]
    fn accessed(&mut self, _rank: u32, _accessed: Accessed) {}
    /// A collective: called, start-up over, last of all arrived, done.
    #[inline(always)]
    fn gathered(&mut self, _rank: u32, _gathered: Gathered) {}
}

/// A send.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// Message class.
    pub class: u32,
    /// When the program called.
    pub call: f64,
    /// When the overhead began (later than the call if the interface was busy).
    pub start: f64,
    /// When the overhead ended.
    pub end: f64,
    /// When the last byte arrives; infinite while unknown.
    pub arrival: f64,
}

/// A receive or wait.
#[derive(Debug, Clone, Copy)]
pub struct Received {
    /// When the program called.
    pub call: f64,
    /// When the processor time before the message ended.
    pub before: f64,
    /// When the processor time on the message began.
    pub taken: f64,
    /// When the call returned.
    pub end: f64,
}

/// One-sided communication or a request to a file, as its rank sees it.
#[derive(Debug, Clone, Copy)]
pub struct Accessed {
    /// Index into the accesses.
    pub access: u32,
    /// When the program called.
    pub call: f64,
    /// When the overhead began (later than the call if the interface was busy).
    pub start: f64,
    /// When the overhead ended.
    pub came: f64,
    /// How long it waited for a processor in between.
    pub processor: f64,
    /// How long it then waited for others: for a lock, for a place at the file system, for links, or since others had a
    /// part of the bandwidth.
    pub queued: f64,
    /// How much of the rest no bandwidth would shorten.
    pub latency: f64,
    /// When the rank went on.
    pub end: f64,
}

/// A collective as one rank sees it.
#[derive(Debug, Clone, Copy)]
pub struct Gathered {
    /// Which execution.
    pub instance: u32,
    /// When the rank called.
    pub call: f64,
    /// When the rank's start-up was over.
    pub came: f64,
    /// When the rank came that decided the end.
    pub last: f64,
    /// That rank: the last to come, or the one whose data was last at the root.
    pub last_rank: u32,
    /// When the rank went on.
    pub end: f64,
}

/// Takes no notice.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    const WATCHES: bool = false;
}

/// The methods of an observer that hands everything on to others, one after the other.
macro_rules! hand_on {
    ($self:ident to $($others:expr),+) => {
        hand_on! { $self, [$($others),+],
            computed(rank: u32, start: f64, end: f64),
            sent(rank: u32, slot: u32, sent: Sent),
            moved(slot: u32, start: f64, arrival: f64),
            queued(slot: u32, asked: f64),
            posted(slot: u32, time: f64),
            marked(rank: u32, event: u32, time: f64),
            held(rank: u32, slot: u32, start: f64, end: f64),
            received(rank: u32, slot: u32, received: Received),
            accessed(rank: u32, accessed: Accessed),
            gathered(rank: u32, gathered: Gathered)
        }
    };
    ($self:ident, $others:tt, $($name:ident($($arg:ident: $type:ty),+)),+) => {
        $(#[inline(always)]
        fn $name(&mut $self, $($arg: $type),+) {
            hand_on! { $others.$name($($arg),+) }
        })+
    };
    ([$($others:expr),+].$name:ident $args:tt) => {
        $(for other in $others { other.$name $args; })+
    };
}

/// Both observe, the first before the second.
impl<A: Observer, B: Observer> Observer for (A, B) {
    const WATCHES: bool = A::WATCHES || B::WATCHES;
    hand_on!(self to [&mut self.0], [&mut self.1]);
}

/// Observes if it is there.
impl<O: Observer> Observer for Option<O> {
    const WATCHES: bool = O::WATCHES;
    hand_on!(self to self.iter_mut());
}

impl<O: Observer> Observer for &mut O {
    const WATCHES: bool = O::WATCHES;
    hand_on!(self to [&mut **self]);
}

/// Why a rank waited until the end of a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The rank itself was busy.
    Own,
    /// A message from another rank, by slot.
    Message(u32),
    /// A rendezvous message whose receiver came late, by slot.
    Receiver(u32),
    /// The rank's own rendezvous message, which had left, by slot.
    Release(u32),
    /// The sending interface, which rested after the message before, by that message's slot.
    Interface(u32),
    /// The rank that decided the end of a collective, and when it came.
    LastOf(Rank, Time),
    /// The rank's processor moved the bytes of a message.
    Bytes,
}

/// A stretch of a rank's time with the reason for its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// The stretch.
    pub segment: Segment,
    /// Why it ended when it did.
    pub cause: Cause,
}

/// A message's whereabouts.
#[derive(Debug, Clone, Copy)]
pub struct Flight {
    /// Sender.
    pub from: u32,
    /// Message class.
    pub class: u32,
    /// When the program called.
    pub call: f64,
    /// When the sender's overhead began.
    pub begun: f64,
    /// When the sender's overhead ended.
    pub ready: f64,
    /// When it could have begun to move: once it was ready, or, if a rendezvous waited, once its receiver was.
    pub asked: f64,
    /// When it began to move: later than that if it waited for links or buses.
    pub start: f64,
    /// When the last byte arrived.
    pub arrival: f64,
    /// When the receiver's call returned.
    pub received: f64,
}

/// Names no message and no rank.
const NONE: u32 = u32::MAX;

const NOWHERE: Flight = Flight {
    from: NONE,
    class: 0,
    call: f64::NAN,
    begun: f64::NAN,
    ready: f64::NAN,
    asked: f64::NAN,
    start: f64::NAN,
    arrival: f64::NAN,
    received: f64::NAN,
};

/// Keeps everything.
#[derive(Debug, Clone)]
pub struct Recorder {
    /// Stretches by rank, in time order.
    pub ranks: Vec<Vec<Stretch>>,
    /// Messages by slot.
    pub flights: Vec<Flight>,
    /// The slot of each rank's last send.
    last_sends: Vec<u32>,
    /// How much of the processor's time on a message that has come is overhead; the rest is for its bytes.
    overhead: f64,
}

/// What the numbers of messages stand for.
pub trait Messages {
    /// How many ranks there are, before their strands.
    fn ranks(&self) -> usize;
    /// The rank that a stream belongs to.
    fn owner(&self, stream: Rank) -> Rank;
    /// The stream that receives a message, its size and its tag.
    fn message(&self, slot: u32, flight: &Flight) -> (Rank, Bytes, i32);
}

impl Messages for Program {
    fn ranks(&self) -> usize {
        Program::ranks(self)
    }

    fn owner(&self, stream: Rank) -> Rank {
        Program::owner(self, stream)
    }

    fn message(&self, slot: u32, flight: &Flight) -> (Rank, Bytes, i32) {
        let class = &self.classes()[flight.class as usize];
        (self.receiver(slot), class.size, class.tag)
    }
}

impl Recorder {
    /// For the replay of this program.
    pub fn new(program: &Program) -> Recorder {
        Recorder::of((program.streams(), program.messages() as usize), f64::INFINITY)
    }

    /// For so many streams and slots; of the processor's time on a message so much is overhead.
    pub(super) fn of((streams, slots): (usize, usize), overhead: f64) -> Recorder {
        let (ranks, flights) = (vec![Vec::new(); streams], vec![NOWHERE; slots]);
        Recorder { ranks, flights, last_sends: vec![NONE; streams], overhead }
    }

    fn push(&mut self, rank: u32, (start, end): (f64, f64), activity: Activity, cause: Cause) {
        if end > start {
            let segment = Segment { start: Time::from_nanos(start), end: Time::from_nanos(end), activity };
            self.ranks[rank as usize].push(Stretch { segment, cause });
        }
    }

    /// The timeline of what was recorded: neighbouring stretches of the same activity become one.
    pub fn timeline(&self, program: &impl Messages) -> Timeline {
        let ranks = self.ranks.iter().take(program.ranks()).map(|stretches| merged(stretches)).collect();
        Timeline { ranks, messages: self.spans(program) }
    }

    /// The same where ranks have several processors, whose stretches overlap: at each time the first activity, in the order
    /// of [`Activity::ALL`], that any of them has.
    pub(super) fn timeline_of_processors(&self, program: &impl Messages) -> Timeline {
        let ranks = self.ranks.iter().map(|stretches| busiest(stretches)).collect();
        Timeline { ranks, messages: self.spans(program) }
    }

    fn spans(&self, program: &impl Messages) -> Vec<MessageSpan> {
        let flights = self.flights.iter().enumerate().filter(|(_, flight)| flight.from != NONE);
        let message = |(slot, flight): (usize, &Flight)| {
            let (receiver, size, tag) = program.message(slot as u32, flight);
            MessageSpan {
                src: program.owner(Rank(flight.from)),
                dst: program.owner(receiver),
                size,
                tag,
                sent: Time::from_nanos(flight.call),
                arrived: Time::from_nanos(flight.arrival),
                received: Time::from_nanos(if flight.received.is_nan() { flight.arrival } else { flight.received }),
            }
        };
        flights.map(message).collect()
    }
}

fn merged(stretches: &[Stretch]) -> Vec<Segment> {
    let mut segments = Vec::with_capacity(stretches.len());
    stretches.iter().for_each(|stretch| append(&mut segments, stretch.segment));
    segments
}

fn append(segments: &mut Vec<Segment>, segment: Segment) {
    match segments.last_mut() {
        Some(last) if last.activity == segment.activity && last.end == segment.start => last.end = segment.end,
        _ => segments.push(segment),
    }
}

fn busiest(stretches: &[Stretch]) -> Vec<Segment> {
    let ends =
        |Stretch { segment, .. }: &Stretch| [(segment.start, segment.activity, 1), (segment.end, segment.activity, -1)];
    let mut changes: Vec<(Time, Activity, i32)> = stretches.iter().flat_map(ends).collect();
    changes.sort_by_key(|(time, ..)| *time);
    let mut processors = [0; Activity::ALL.len()];
    let (mut segments, mut start) = (Vec::new(), Time::ZERO);
    for (end, changed, by) in changes {
        if end > start {
            let first = Activity::ALL.into_iter().find(|activity| processors[*activity as usize] > 0);
            first.into_iter().for_each(|activity| append(&mut segments, Segment { start, end, activity }));
            start = end;
        }
        processors[changed as usize] += by;
    }
    segments
}

impl Observer for Recorder {
    fn computed(&mut self, rank: u32, start: f64, end: f64) {
        self.push(rank, (start, end), Activity::Compute, Cause::Own);
    }

    fn sent(&mut self, rank: u32, slot: u32, sent: Sent) {
        let Sent { class, call, start, end, arrival } = sent;
        let before = std::mem::replace(&mut self.last_sends[rank as usize], slot);
        // An interface that is still busy with the messages before holds the sender as overhead does.
        self.push(rank, (call, start), Activity::Overhead, Cause::Interface(before));
        self.push(rank, (start, end), Activity::Overhead, Cause::Own);
        let flight = &mut self.flights[slot as usize];
        *flight = Flight {
            from: rank,
            class,
            call,
            begun: start,
            ready: end,
            asked: end,
            start: end,
            arrival,
            received: f64::NAN,
        };
    }

    fn moved(&mut self, slot: u32, start: f64, arrival: f64) {
        let flight = &mut self.flights[slot as usize];
        flight.asked = start;
        flight.start = start;
        flight.arrival = arrival;
    }

    fn queued(&mut self, slot: u32, asked: f64) {
        self.flights[slot as usize].asked = asked;
    }

    fn held(&mut self, rank: u32, slot: u32, start: f64, end: f64) {
        let begun = self.flights[slot as usize].asked.clamp(start, end);
        self.push(rank, (start, begun), Activity::LateReceiver, Cause::Receiver(slot));
        self.push(rank, (begun, end), Activity::Transfer, Cause::Release(slot));
    }

    fn received(&mut self, rank: u32, slot: u32, received: Received) {
        let Received { call, before, taken, end } = received;
        self.push(rank, (call, before), Activity::Overhead, Cause::Own);
        let sent = self.flights[slot as usize].asked.clamp(before, taken.max(before));
        self.push(rank, (before, sent), Activity::LateSender, Cause::Message(slot));
        self.push(rank, (sent, taken), Activity::Transfer, Cause::Message(slot));
        let handled = end.min(taken + self.overhead);
        self.push(rank, (taken, handled), Activity::Overhead, Cause::Own);
        self.push(rank, (handled, end), Activity::Transfer, Cause::Bytes);
        self.flights[slot as usize].received = end;
    }

    fn accessed(&mut self, rank: u32, accessed: Accessed) {
        let Accessed { call, came, end, .. } = accessed;
        self.push(rank, (call, came), Activity::Overhead, Cause::Own);
        self.push(rank, (came, end), Activity::Transfer, Cause::Own);
    }

    fn gathered(&mut self, rank: u32, gathered: Gathered) {
        let Gathered { call, came, last, last_rank, end, .. } = gathered;
        let cause = Cause::LastOf(Rank(last_rank), Time::from_nanos(last));
        let last = last.clamp(came, end);
        self.push(rank, (call, came), Activity::Overhead, Cause::Own);
        self.push(rank, (came, last), Activity::CollectiveWait, cause);
        self.push(rank, (last, end), Activity::Collective, cause);
    }
}
