#![no_main]

use flowcast::model::loggp::LogGp;
use flowcast::scheduler::RailId;
use flowcast::scheduler::clock::{ClockArithmetic, Ticks};
use flowcast::scheduler::discipline::{Discipline, SchedulerName};
use flowcast::units::{Time, TimePerByte};
use flowcast_rails::frame::{FrameHeader, FrameKind, FramePiece, encode};
use flowcast_rails::policy::Steering;
use flowcast_rails::session::{DeliveryOrder, Opening, Session, SessionRule};
use flowcast_rails::token::Token;

const COST: LogGp = LogGp {
    latency: Time::from_nanos(20_000.0),
    overhead: Time::from_nanos(1000.0),
    gap: Time::from_nanos(1000.0),
    gap_per_byte: TimePerByte::from_nanos(10.0),
};

/// Meaning of a byte of the input. Most frames have a correct checksum, because a wrong one ends the session.
fn frame(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let (head, rest) = bytes.split_at_checked(12)?;
    let [kind, index, of, sequence, order, acknowledged, credit, length, arrived, ..] = *head else { return None };
    let number = |byte: u8| if byte > 250 { u64::MAX - u64::from(255 - byte) } else { u64::from(byte) };
    let kind = match kind % 8 {
        0 => FrameKind::Acknowledgement,
        1 => FrameKind::Hello,
        2 => {
            // Unchanged, with any checksum.
            *bytes = rest;
            return Some(head.to_vec());
        }
        3 => FrameKind::Question,
        _ => FrameKind::Data,
    };
    let message = &rest[..rest.len().min(usize::from(length))];
    *bytes = &rest[message.len()..];
    let header = FrameHeader {
        kind,
        piece: FramePiece { index: index % 17, of: of % 18 },
        sequence: number(sequence),
        order: number(order),
        acknowledged: number(acknowledged),
        arrived: number(arrived) << 20,
        credit: number(credit),
    };
    let mut frame = Vec::new();
    encode(&mut frame, &header, message);
    Some(frame)
}

fn again(session: &mut Session, rail: RailId, opening: Opening, now: Ticks) {
    session.lost(rail, now);
    session.connected(rail, COST, opening, now).expect("the entry exists");
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let steering = Steering::Fixed(SchedulerName::new(Discipline::RoundRobin));
    let token = Token::new([7; 16]);
    let rule = SessionRule {
        window: 64,
        longest: 200,
        acknowledge_within: Time::from_nanos(1e5),
        silence: Time::from_nanos(5e6),
        steering,
        token,
    };
    let mut session = Session::new(rule, vec![COST; 2]).expect("two rails are enough");
    let mut rest = bytes;
    let mut now = 0;
    for rail in [RailId(0), RailId(1)] {
        session.connected(rail, COST, Opening::New, Ticks::ZERO).expect("arrivals are in order");
    }
    while let Some(frame) = frame(&mut rest) {
        now += 1_000_000;
        let rail = RailId(u8::from(now % 3_000_000 == 0));
        session.receive_buffer(rail)[..frame.len()].copy_from_slice(&frame);
        let _ = session.send(
            &frame,
            if now % 2_000_000 == 0 { DeliveryOrder::Ordered } else { DeliveryOrder::Unordered },
            Ticks::ZERO,
        );
        if session.arrived(rail, frame.len(), Ticks::ZERO).is_err() {
            again(&mut session, rail, Opening::New, Ticks::ZERO);
        }
        while let Some(message) = session.receive() {
            assert!(message.len() <= 200, "{}", message.len());
        }
        let now = Ticks::from_nanos(now);
        for rail in session.attend(now) {
            again(&mut session, rail, Opening::Answered, now);
        }
    }
});
