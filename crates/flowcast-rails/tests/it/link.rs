//! Links over loopback, with a separate address for each rail. Some lead through a cable that corrupts or cuts the data.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use flowcast_network::loggp::LogGp;
use flowcast_rails::{
    exchange::{Audit, ExchangeError, ExchangeTest, RailChoices, answer, count, end, exchange},
    frame::RailFault,
    link::{LinkError, LinkWaiting, Listener, RailLink, RailPath},
    path::SessionPath,
    policy::Steering,
    session::{DeliveryOrder, SessionRule},
    token::Token,
};
use flowcast_scheduler::{
    RailId, RailSet,
    discipline::{Discipline, SchedulerName},
    split::SplitRule,
};
use flowcast_units::{Bytes, Time, TimePerByte};

const TIMEOUT: Duration = Duration::from_secs(20);

const TOKEN: Token = Token::new([7; 16]);

fn rule() -> SessionRule {
    let steering = Steering::Fixed(SchedulerName::new(Discipline::RoundRobin));
    SessionRule {
        window: 256,
        longest: 1 << 20,
        acknowledge_within: Time::from_micros(1000.0),
        silence: Time::from_seconds(20.0),
        steering,
        token: TOKEN,
    }
}

/// Rule with a short silence: a silent rail is given up soon, and on a busy machine perhaps a slow one as well.
fn impatient() -> SessionRule {
    SessionRule {
        silence: Time::from_micros(200_000.0),
        ..rule()
    }
}

fn cost() -> LogGp {
    LogGp {
        gap: Time::from_micros(2.0),
        gap_per_byte: TimePerByte::from_nanos(1.0),
        overhead: Time::from_micros(5.0),
        latency: Time::from_micros(20.0),
    }
}

fn course(discipline: Discipline, adapts: bool) -> RailChoices {
    RailChoices {
        scheduler: SchedulerName::new(discipline),
        adapts,
        split: None,
        rails: RailSet::ALL,
    }
}

/// Listens at 127.0.0.1, 127.0.0.2, ...: one address for each rail.
fn door(rails: u8) -> (Listener, Vec<SocketAddr>) {
    let addresses: Vec<SocketAddr> = (1..=rails)
        .map(|rail| (Ipv4Addr::new(127, 0, 0, rail), 0).into())
        .collect();
    let door = Listener::open(&addresses).unwrap();
    let addresses = door.addresses().unwrap();
    (door, addresses)
}

/// Path from the rail's own address to the same address.
fn rail(to: SocketAddr) -> RailPath {
    RailPath {
        cost: cost(),
        path: SessionPath {
            from: Some(to.ip()),
            ..SessionPath::to(to)
        },
    }
}

fn answering(door: Listener) -> thread::JoinHandle<RailLink> {
    answering_by(rule(), door)
}

fn answering_by(rule: SessionRule, door: Listener) -> thread::JoinHandle<RailLink> {
    thread::spawn(move || {
        let mut link = RailLink::accept(door, rule, LinkWaiting::Sleep, Some(TIMEOUT)).unwrap();
        answer(&mut link, TIMEOUT).unwrap();
        link
    })
}

/// Fault of a cable after a number of bytes in one direction.
#[derive(Clone, Copy)]
enum CableFault {
    Never,
    Cut(usize),
    Spoil(usize),
    /// Repeatedly stalls for this duration.
    Stall(usize, Duration),
    /// Carries no more data, but keeps the connection.
    Silence(usize),
    /// Delays everything by this duration.
    Delay(Duration),
}

/// Faults of a connection towards the answering end, and back.
type ConnectionFaults = (CableFault, CableFault);

const SOUND: ConnectionFaults = (CableFault::Never, CableFault::Never);

/// Creates a cable to `to` and returns its near end.
fn cable(to: SocketAddr, mishap: CableFault) -> SocketAddr {
    path(to, vec![(mishap, CableFault::Never)], None)
}

/// Creates a path to `to` that cuts each of its first connections after the given number of bytes towards the answering end,
/// and carries the later ones completely. Returns its near end.
fn cut_again_and_again(to: SocketAddr, cuts: Vec<usize>) -> SocketAddr {
    let fates = cuts
        .into_iter()
        .map(|at| (CableFault::Cut(at), CableFault::Never));
    path(to, fates.collect(), Some(SOUND))
}

/// Creates a path to `to` with the given faults for the first connections and for later ones; without the latter, later
/// connections fail. Returns its near end.
fn path(
    to: SocketAddr,
    first: Vec<ConnectionFaults>,
    later: Option<ConnectionFaults>,
) -> SocketAddr {
    let listener = TcpListener::bind(SocketAddr::new(to.ip(), 0)).unwrap();
    let near = listener.local_addr().unwrap();
    let fates = first.into_iter().chain(later.into_iter().cycle());
    thread::spawn(move || {
        for (there, back) in fates {
            let Ok((near, _)) = listener.accept() else {
                return;
            };
            let Ok(far) = TcpStream::connect(to) else {
                continue;
            };
            let (back_from, back_to) = (far.try_clone().unwrap(), near.try_clone().unwrap());
            thread::spawn(move || carry(back_from, back_to, back));
            thread::spawn(move || carry(near, far, there));
        }
    });
    near
}

fn carry(mut from: TcpStream, mut to: TcpStream, mishap: CableFault) {
    let mut buffer = [0; 4096];
    let mut carried = 0;
    loop {
        let bytes = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        match mishap {
            CableFault::Cut(at) if carried + bytes > at => break,
            CableFault::Spoil(at) if (carried..carried + bytes).contains(&at) => {
                buffer[at - carried] ^= 4
            }
            CableFault::Stall(every, pause) if carried / every != (carried + bytes) / every => {
                thread::sleep(pause)
            }
            CableFault::Silence(at) if carried + bytes > at => loop {
                thread::park();
            },
            CableFault::Delay(by) => thread::sleep(by),
            _ => {}
        }
        carried += bytes;
        if to.write_all(&buffer[..bytes]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

fn whole(audit: Audit, messages: u64) {
    let Audit {
        received,
        out_of_order,
        spoilt,
        ..
    } = audit;
    assert_eq!(
        (received, out_of_order, spoilt),
        (messages, 0, 0),
        "{audit:?}"
    );
}

#[test]
fn messages_go_and_come_back_over_two_rails_with_every_scheduler() {
    let (door, addresses) = door(2);
    let other = answering(door);
    let rails: Vec<RailPath> = addresses.into_iter().map(rail).collect();
    let mut link = RailLink::connect(&rails, rule(), LinkWaiting::Sleep).unwrap();
    for name in SchedulerName::distinct() {
        let course = RailChoices {
            scheduler: name,
            ..course(Discipline::EarliestDelivery, false)
        };
        for (messages, size) in [(1, 1), (8, 4096), (32, 65_536)] {
            let times = exchange(
                &mut link,
                course,
                ExchangeTest {
                    messages,
                    size: Bytes(size),
                    repetitions: 2,
                },
            )
            .unwrap();
            assert!(times.len() == 2 && times.iter().all(|time| *time > Time::ZERO));
        }
    }
    end(&mut link).unwrap();
    other.join().unwrap();
    assert!(link.faults().is_empty(), "{:?}", link.faults());
}

#[test]
fn a_rail_cut_at_any_moment_loses_repeats_and_disorders_nothing() {
    for cut_at in [0, 100, 5_000, 77_777, 400_000] {
        let (door, addresses) = door(2);
        let other = answering(door);
        let cut = cable(addresses[1], CableFault::Cut(cut_at));
        let mut link =
            RailLink::connect(&[rail(addresses[0]), rail(cut)], rule(), LinkWaiting::Sleep)
                .unwrap();
        let audit = count(
            &mut link,
            course(Discipline::RoundRobin, false),
            3000,
            Bytes(300),
            &mut |_, _| {},
        )
        .unwrap();
        whole(audit, 3000);
        assert_eq!(link.session().alive(), RailSet::first(1), "cut at {cut_at}");
        end(&mut link).unwrap();
        other.join().unwrap();
    }
}

#[test]
fn a_rail_cut_during_its_introduction_ends_no_other_rail_and_reconnects() {
    for (cut, whole_one) in [(0, 1), (1, 0)] {
        for at in [0, 1, 40, 80] {
            let (door, addresses) = door(2);
            let other = answering(door);
            let mut rails = [rail(addresses[0]), rail(addresses[1])];
            rails[cut] = rail(cut_again_and_again(addresses[cut], vec![at, at]));
            let mut link = RailLink::connect(&rails, rule(), LinkWaiting::Sleep).unwrap();
            let audit = count(
                &mut link,
                course(Discipline::RoundRobin, false),
                3000,
                Bytes(300),
                &mut |_, _| {},
            )
            .unwrap();
            whole(audit, 3000);
            // All messages may have taken the other rail before the second cut is detected.
            while link.faults().len() < 2 || link.session().alive() != RailSet::first(2) {
                link.poll().unwrap();
            }
            assert_eq!(
                link.faults(),
                [(RailId(cut as u8), RailFault::Closed); 2],
                "cut at {at}, not {whole_one}"
            );
            end(&mut link).unwrap();
            other.join().unwrap();
        }
    }
}

#[test]
fn a_single_rail_that_is_cut_reconnects_and_loses_nothing() {
    let (door, addresses) = door(1);
    let other = answering(door);
    let cut = cut_again_and_again(addresses[0], vec![20_000, 300_000, 100]);
    let mut link = RailLink::connect(&[rail(cut)], rule(), LinkWaiting::Sleep).unwrap();
    let audit = count(
        &mut link,
        course(Discipline::RoundRobin, false),
        3000,
        Bytes(300),
        &mut |_, _| {},
    )
    .unwrap();
    whole(audit, 3000);
    end(&mut link).unwrap();
    other.join().unwrap();
}

/// Cuts two rails after 0 to 400 kB each, in whole messages and in pieces.
#[test]
#[ignore = "takes long: cargo xtask test kills"]
fn a_thousand_cuts_lose_repeat_and_disorder_nothing() {
    const CUTS: usize = 500;
    let split = Some(SplitRule {
        from: Bytes(10_000),
        minimal_piece: Bytes(1000),
        ..SplitRule::default()
    });
    let (door, addresses) = door(2);
    let other = answering(door);
    let mut number = 88_172_645_463_325_252u64;
    let mut path = |to: SocketAddr| {
        let cuts = (0..CUTS).map(|_| {
            number ^= number << 13;
            number ^= number >> 7;
            number ^= number << 17;
            (number % 400_000) as usize
        });
        rail(cut_again_and_again(to, cuts.collect()))
    };
    let rails = [path(addresses[0]), path(addresses[1])];
    let mut link = RailLink::connect(&rails, rule(), LinkWaiting::Sleep).unwrap();
    while link.faults().len() < 2 * CUTS {
        let course = RailChoices {
            split,
            ..course(
                Discipline::EarliestDelivery,
                link.faults().len().is_multiple_of(2),
            )
        };
        whole(
            count(&mut link, course, 200, Bytes(20_000), &mut |_, _| {}).unwrap(),
            200,
        );
    }
    end(&mut link).unwrap();
    other.join().unwrap();
    println!("{} cuts, {:?}", link.faults().len(), link.counts());
}

#[test]
fn a_rail_cut_while_pieces_are_in_flight_loses_repeats_and_disorders_nothing() {
    let split = Some(SplitRule {
        from: Bytes(10_000),
        minimal_piece: Bytes(1000),
        ..SplitRule::default()
    });
    for (cut_at, adapts) in [
        (120, false),
        (30_000, true),
        (1_000_000, false),
        (1_500_000, true),
    ] {
        let (door, addresses) = door(2);
        let other = answering(door);
        let cut = cable(addresses[1], CableFault::Cut(cut_at));
        let mut link =
            RailLink::connect(&[rail(addresses[0]), rail(cut)], rule(), LinkWaiting::Sleep)
                .unwrap();
        let course = RailChoices {
            split,
            ..course(Discipline::EarliestDelivery, adapts)
        };
        let audit = count(&mut link, course, 200, Bytes(40_000), &mut |_, _| {}).unwrap();
        whole(audit, 200);
        assert!(link.counts().divided > 0, "cut at {cut_at}");
        assert_eq!(link.session().alive(), RailSet::first(1), "cut at {cut_at}");
        end(&mut link).unwrap();
        other.join().unwrap();
    }
}

/// Pieces on the other rail overtake the delayed ones, so that they arrive in a different order.
#[test]
fn a_rail_that_stalls_again_and_again_loses_repeats_and_disorders_nothing() {
    let split = Some(SplitRule {
        from: Bytes(10_000),
        minimal_piece: Bytes(1000),
        ..SplitRule::default()
    });
    for (every, adapts) in [(3000, false), (100_000, true), (400_000, false)] {
        let (door, addresses) = door(2);
        let other = answering(door);
        let stalled = cable(
            addresses[1],
            CableFault::Stall(every, Duration::from_millis(5)),
        );
        let mut link = RailLink::connect(
            &[rail(addresses[0]), rail(stalled)],
            rule(),
            LinkWaiting::Sleep,
        )
        .unwrap();
        for (split, size) in [(split, 40_000), (None, 300)] {
            let course = RailChoices {
                split,
                ..course(Discipline::EarliestDelivery, adapts)
            };
            whole(
                count(&mut link, course, 200, Bytes(size), &mut |_, _| {}).unwrap(),
                200,
            );
        }
        assert!(
            link.counts().divided > 0 && link.faults().is_empty(),
            "every {every}: {:?}",
            link.faults()
        );
        assert_eq!(link.session().alive(), RailSet::first(2), "every {every}");
        end(&mut link).unwrap();
        other.join().unwrap();
    }
}

#[test]
fn a_corrupt_frame_ends_its_rail_and_arrives_whole_over_another() {
    let (door, addresses) = door(2);
    let other = answering(door);
    let spoilt = cable(addresses[1], CableFault::Spoil(50_000));
    let mut link = RailLink::connect(
        &[rail(addresses[0]), rail(spoilt)],
        rule(),
        LinkWaiting::Sleep,
    )
    .unwrap();
    let audit = count(
        &mut link,
        course(Discipline::RoundRobin, false),
        2000,
        Bytes(300),
        &mut |_, _| {},
    )
    .unwrap();
    whole(audit, 2000);
    end(&mut link).unwrap();
    let faults = other.join().unwrap().faults().to_vec();
    assert!(
        matches!(
            faults.first(),
            Some((RailId(1), RailFault::Checksum { .. }))
        ),
        "{faults:?}"
    );
}

#[test]
fn rails_come_and_go_while_messages_flow() {
    let (door, addresses) = door(3);
    let other = answering(door);
    let mut link = RailLink::connect(&[rail(addresses[0])], rule(), LinkWaiting::Sleep).unwrap();
    let mut change = |link: &mut RailLink, number: u64| match number {
        500 => link.add_rail(RailId(1), &rail(addresses[1])).unwrap(),
        1000 => link.add_rail(RailId(2), &rail(addresses[2])).unwrap(),
        1500 => link.withdraw(RailId(0)),
        2000 => link.withdraw(RailId(2)),
        2500 => link.add_rail(RailId(0), &rail(addresses[0])).unwrap(),
        _ => {}
    };
    let audit = count(
        &mut link,
        course(Discipline::EarliestDelivery, true),
        4000,
        Bytes(2000),
        &mut change,
    )
    .unwrap();
    whole(audit, 4000);
    assert_eq!(link.session().alive(), RailSet::first(2));
    end(&mut link).unwrap();
    other.join().unwrap();
}

#[test]
fn a_receiver_that_does_not_consume_stops_its_sender() {
    let (door, addresses) = door(2);
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let other = thread::spawn(move || {
        let mut link = RailLink::accept(door, rule(), LinkWaiting::Sleep, Some(TIMEOUT)).unwrap();
        // Moves bytes, but takes no message.
        while stopped.try_recv().is_err() {
            link.poll().unwrap();
        }
        (0..400u32)
            .map(|_| link.receive(TIMEOUT).unwrap())
            .collect::<Vec<_>>()
    });
    let rails: Vec<RailPath> = addresses.into_iter().map(rail).collect();
    let mut link = RailLink::connect(&rails, rule(), LinkWaiting::Sleep).unwrap();
    let mut sent = 0u32;
    while link.session().has_credit() {
        link.send(&sent.to_le_bytes(), DeliveryOrder::Ordered, TIMEOUT)
            .unwrap();
        sent += 1;
    }
    assert_eq!(sent, 256, "the window");
    link.flush(TIMEOUT).unwrap();
    assert!(
        !link.session().has_credit(),
        "all has arrived, nothing is consumed"
    );
    stop.send(()).unwrap();
    for number in sent..400 {
        link.send(&number.to_le_bytes(), DeliveryOrder::Ordered, TIMEOUT)
            .unwrap();
    }
    link.flush(TIMEOUT).unwrap();
    let expected: Vec<Vec<u8>> = (0..400u32)
        .map(|number| number.to_le_bytes().to_vec())
        .collect();
    assert_eq!(other.join().unwrap(), expected);
}

#[test]
fn a_link_without_rails_is_an_error() {
    let (door, addresses) = door(1);
    let other = thread::spawn(move || {
        RailLink::accept(door, rule(), LinkWaiting::Sleep, Some(TIMEOUT)).unwrap()
    });
    let mut link = RailLink::connect(&[rail(addresses[0])], rule(), LinkWaiting::Sleep).unwrap();
    drop(other.join().unwrap());
    assert!(matches!(link.receive(TIMEOUT), Err(LinkError::Closed)));
    assert!(matches!(
        link.send(b"x", DeliveryOrder::Ordered, TIMEOUT),
        Err(LinkError::Closed)
    ));
}

#[test]
fn both_ends_report_the_messages_that_arrived_before_every_rail_was_cut() {
    let (door, addresses) = door(2);
    let other = thread::spawn(move || {
        let mut link = RailLink::accept(door, rule(), LinkWaiting::Sleep, Some(TIMEOUT)).unwrap();
        answer(&mut link, TIMEOUT).unwrap_err()
    });
    let cables = addresses
        .into_iter()
        .map(|address| rail(cable(address, CableFault::Cut(100_000))));
    let mut link =
        RailLink::connect(&cables.collect::<Vec<_>>(), rule(), LinkWaiting::Sleep).unwrap();
    let sent = count(
        &mut link,
        course(Discipline::RoundRobin, false),
        20_000,
        Bytes(64),
        &mut |_, _| {},
    )
    .unwrap_err();
    let arrived = |error: &ExchangeError| match error {
        ExchangeError::Interrupted {
            source: LinkError::Closed,
            arrived,
            messages: 20_000,
        } => *arrived,
        other => panic!("{other}"),
    };
    let (acknowledged, received) = (arrived(&sent), arrived(&other.join().unwrap()));
    // Frames of 64 bytes and a header over two cables that carry 100 kB each.
    assert!(
        (100..3200).contains(&acknowledged) && acknowledged <= received,
        "{acknowledged} {received}"
    );
    assert!(
        sent.to_string()
            .ends_with(&format!("{acknowledged} of 20000 messages had arrived")),
        "{sent}"
    );
}

/// Counts and exchanges messages over a sound rail and one with these faults. Returns the rail faults of both ends.
fn counted_and_exchanged(
    fate: Vec<ConnectionFaults>,
    later: Option<ConnectionFaults>,
) -> [Vec<(RailId, RailFault)>; 2] {
    let (door, addresses) = door(2);
    let other = answering_by(impatient(), door);
    // The faulty rail has the lower number, so that it takes messages without a rail of their own.
    let ill = path(addresses[0], fate, later);
    let rails = [rail(ill), rail(addresses[1])];
    let mut link = RailLink::connect(&rails, impatient(), LinkWaiting::Sleep).unwrap();
    let course = course(Discipline::RoundRobin, false);
    whole(
        count(&mut link, course, 3000, Bytes(300), &mut |_, _| {}).unwrap(),
        3000,
    );
    let there_and_back = ExchangeTest {
        messages: 100,
        size: Bytes(2000),
        repetitions: 3,
    };
    assert_eq!(
        exchange(&mut link, course, there_and_back).unwrap().len(),
        3
    );
    end(&mut link).unwrap();
    let faults = [
        link.faults().to_vec(),
        other.join().unwrap().faults().to_vec(),
    ];
    for (rail, fault) in faults.iter().flatten() {
        assert_eq!(*rail, RailId(0), "{fault}");
    }
    faults
}

#[test]
fn a_rail_that_falls_silent_in_either_direction_is_given_up_and_loses_nothing() {
    for at in [0, 150, 20_000] {
        for (silent, later) in [
            ((CableFault::Silence(at), CableFault::Never), Some(SOUND)),
            (
                (CableFault::Never, CableFault::Silence(at / 4)),
                Some(SOUND),
            ),
            ((CableFault::Silence(at), CableFault::Silence(at / 4)), None),
        ] {
            let [own, others] = counted_and_exchanged(vec![silent], later);
            let all = own.iter().chain(&others);
            assert!(
                all.clone().any(|(_, fault)| *fault == RailFault::Silent),
                "{at} {own:?} {others:?}"
            );
        }
    }
}

#[test]
fn a_rail_that_stays_silent_whenever_it_is_connected_holds_nothing_up() {
    let silent = |there: bool| match there {
        true => (CableFault::Silence(0), CableFault::Never),
        false => (CableFault::Never, CableFault::Silence(0)),
    };
    for there in [true, false] {
        counted_and_exchanged(Vec::new(), Some(silent(there)));
    }
}

#[test]
fn a_rail_that_corrupts_or_delays_either_direction_loses_nothing() {
    let late = CableFault::Delay(Duration::from_millis(2));
    for ill in [
        CableFault::Spoil(0),
        // Frames that announce too many bytes, and one of another kind.
        CableFault::Spoil(2),
        CableFault::Spoil(131),
        CableFault::Spoil(133),
        CableFault::Spoil(4001),
        CableFault::Cut(4001),
        late,
    ] {
        for fate in [
            (ill, CableFault::Never),
            (CableFault::Never, ill),
            (ill, ill),
        ] {
            counted_and_exchanged(vec![fate, fate], Some(SOUND));
        }
    }
}

#[test]
fn a_rail_that_was_silent_is_used_again() {
    let (door, addresses) = door(2);
    let other = answering_by(impatient(), door);
    let ill = path(
        addresses[0],
        vec![(CableFault::Silence(5000), CableFault::Never)],
        Some(SOUND),
    );
    let rails = [rail(ill), rail(addresses[1])];
    let mut link = RailLink::connect(&rails, impatient(), LinkWaiting::Sleep).unwrap();
    let course = course(Discipline::RoundRobin, false);
    let given = |link: &RailLink| link.session().bytes_assigned(RailId(0)).0;
    whole(
        count(&mut link, course, 3000, Bytes(300), &mut |_, _| {}).unwrap(),
        3000,
    );
    // Each count sends half of its messages over a rail that is up: until one does so, the rail is not back.
    let mut before = given(&link);
    while link.faults().is_empty() || given(&link) - before < 20 * 300 {
        before = given(&link);
        whole(
            count(&mut link, course, 40, Bytes(300), &mut |_, _| {}).unwrap(),
            40,
        );
    }
    assert_eq!(link.faults()[0], (RailId(0), RailFault::Silent));
    end(&mut link).unwrap();
    other.join().unwrap();
}

#[test]
fn an_end_that_computes_loses_no_rail() {
    let (door, addresses) = door(2);
    let (told, computes) = std::sync::mpsc::channel::<()>();
    let other = thread::spawn(move || {
        let mut link =
            RailLink::accept(door, impatient(), LinkWaiting::Sleep, Some(TIMEOUT)).unwrap();
        link.receive(TIMEOUT).unwrap();
        computes.recv().unwrap();
        (0..4).for_each(|_| drop(link.receive(TIMEOUT).unwrap()));
        link.acknowledge();
        link
    });
    let rails: Vec<RailPath> = addresses.into_iter().map(rail).collect();
    let mut link = RailLink::connect(&rails, impatient(), LinkWaiting::Sleep).unwrap();
    (0..5).for_each(|_| link.send(b"x", DeliveryOrder::Ordered, TIMEOUT).unwrap());
    // Four times the silence after which a rail is given up if the other end answers elsewhere.
    assert!(matches!(
        link.receive(Duration::from_millis(800)),
        Err(LinkError::Silent(_))
    ));
    told.send(()).unwrap();
    link.flush(TIMEOUT).unwrap();
    assert!(link.faults().is_empty(), "{:?}", link.faults());
    assert!(other.join().unwrap().faults().is_empty());
}

#[test]
fn a_sender_without_credit_gives_up_a_silent_receiver() {
    let (door, addresses) = door(1);
    let other =
        thread::spawn(move || RailLink::accept(door, rule(), LinkWaiting::Sleep, Some(TIMEOUT)));
    let mut link = RailLink::connect(&[rail(addresses[0])], rule(), LinkWaiting::Sleep).unwrap();
    let held = other.join().unwrap().unwrap();
    let timeout = Duration::from_millis(50);
    let ended = (0..1000).find_map(|_| link.send(b"x", DeliveryOrder::Ordered, timeout).err());
    assert!(matches!(ended, Some(LinkError::Silent(_))), "{ended:?}");
    drop(held);
}

#[test]
fn the_next_conversation_begins_at_once_when_the_other_end_was_killed() {
    let (door, addresses) = door(2);
    let served = thread::spawn(move || {
        let mut link = RailLink::accept(door, rule(), LinkWaiting::Sleep, Some(TIMEOUT)).unwrap();
        assert!(matches!(
            answer(&mut link, TIMEOUT),
            Err(ExchangeError::Link(LinkError::Closed))
        ));
        let door = link.into_door().unwrap();
        let mut link = RailLink::accept(door, rule(), LinkWaiting::Sleep, Some(TIMEOUT)).unwrap();
        answer(&mut link, TIMEOUT).unwrap();
    });
    let rails: Vec<RailPath> = addresses.into_iter().map(rail).collect();
    let mut killed = RailLink::connect(&rails, rule(), LinkWaiting::Sleep).unwrap();
    killed
        .send(
            b"exchange earliest-delivery fixed whole 3 1 1 1",
            DeliveryOrder::Ordered,
            TIMEOUT,
        )
        .unwrap();
    killed.flush(TIMEOUT).unwrap();
    drop(killed);
    // The serving end still waits for its lost rails.
    let mut next = RailLink::connect(&rails, rule(), LinkWaiting::Sleep).unwrap();
    let course = course(Discipline::RoundRobin, false);
    whole(
        count(&mut next, course, 100, Bytes(300), &mut |_, _| {}).unwrap(),
        100,
    );
    end(&mut next).unwrap();
    served.join().unwrap();
}

/// Connections that send nothing, other data, or the wrong token.
fn strangers(to: SocketAddr) -> Vec<TcpStream> {
    let connect = || TcpStream::connect(to).unwrap();
    let mut all: Vec<TcpStream> = (0..80).map(|_| connect()).collect();
    let mut talker = connect();
    talker.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    all.push(talker);
    all
}

#[test]
fn unknown_and_silent_connections_neither_end_nor_delay_a_conversation() {
    let (door, addresses) = door(1);
    let idle = strangers(addresses[0]);
    let other = answering(door);
    let wrong = SessionRule {
        token: Token::new([8; 16]),
        ..rule()
    };
    // The other end closes it at an unknown time.
    let mut stranger = RailLink::connect(&[rail(addresses[0])], wrong, LinkWaiting::Sleep).unwrap();
    assert!(stranger.receive(TIMEOUT).is_err());
    let mut link = RailLink::connect(&[rail(addresses[0])], rule(), LinkWaiting::Sleep).unwrap();
    let later = strangers(addresses[0]);
    let audit = count(
        &mut link,
        course(Discipline::RoundRobin, false),
        500,
        Bytes(300),
        &mut |_, _| {},
    )
    .unwrap();
    whole(audit, 500);
    end(&mut link).unwrap();
    other.join().unwrap();
    drop((idle, later));
}

#[test]
fn a_silent_peer_is_given_up() {
    let (door, addresses) = door(1);
    let other = thread::spawn(move || {
        let mut link = RailLink::accept(door, rule(), LinkWaiting::Sleep, Some(TIMEOUT)).unwrap();
        answer(&mut link, Duration::from_millis(50))
    });
    let link = RailLink::connect(&[rail(addresses[0])], rule(), LinkWaiting::Sleep).unwrap();
    let given_up = other.join().unwrap();
    assert!(
        matches!(given_up, Err(ExchangeError::Link(LinkError::Silent(_)))),
        "{given_up:?}"
    );
    drop(link);
}

#[test]
fn a_size_beyond_the_longest_message_is_refused_before_memory_is_allocated() {
    for size in [u64::MAX, 1 << 62, 1 << 34, (1 << 20) + 1] {
        let (door, addresses) = door(1);
        let other = thread::spawn(move || {
            let mut link =
                RailLink::accept(door, rule(), LinkWaiting::Sleep, Some(TIMEOUT)).unwrap();
            answer(&mut link, TIMEOUT)
        });
        let mut link =
            RailLink::connect(&[rail(addresses[0])], rule(), LinkWaiting::Sleep).unwrap();
        let asked = format!("exchange earliest-delivery fixed whole 1 1 {size} 1");
        link.send(asked.as_bytes(), DeliveryOrder::Ordered, TIMEOUT)
            .unwrap();
        let refused = other.join().unwrap().unwrap_err().to_string();
        assert!(refused.ends_with("expected at most 1048576"), "{refused}");
    }
}
