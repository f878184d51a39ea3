//! Whether the rails still are what was measured, asked while the program runs.
//!
//! The component does not see when its messages leave, but the kernel says of each TCP connection what the other side has
//! acknowledged, for how long anything was under way, and whether the program or the receiver stalled it (`tcp_info`, Linux 4.9).
//! A rail on which a connection has had data in flight for a whole period, with more behind, carries what it can: its bytes and
//! that period are one observation of the sequential test that stored parameters have to stand ([`StillHolds`]).

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_int},
    mem::MaybeUninit,
    net::IpAddr,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use flowcast_model::{
    loggp::LogGp,
    stats::{
        sample::median_in_place,
        still::{StillHolds, Verdict},
    },
};
use flowcast_scheduler::Rail;
use flowcast_units::TimePerByte;

use super::equal_rails;
use crate::{costs, state::RailModule};

/// Between two looks, in nanoseconds; longer where the program does not wait for messages.
const PERIOD: u64 = 40_000_000;
/// Looks until connections are looked for again.
const LOOKS: u32 = 25;
/// The part of a period in which a connection has data in flight if its rail is the limit; the kernel counts in ticks of up to
/// 10 ms.
const BUSY: f64 = 0.75;
/// The part of that in which its receiver may stall it.
const STALLED: f64 = 0.1;
/// Bytes of an observation at least: the kernel acknowledges up to 64 KiB at once.
const LEAST: u64 = 256 << 10;
/// A median within this factor of what is expected is no change, as for live rails.
const TOLERANCE: f64 = 1.25;
/// Probability that a window of observations gives an alarm where nothing has changed.
const LEVEL: f64 = 0.001;
/// A window ends without a verdict after it.
const LONGEST_WINDOW: u32 = 32;
/// A rail that has changed is what the median of so many observations says.
const RECENT: usize = 8;
/// Looks at a changed rail with something to carry and time to spare, after which it counts as measured again.
const SPARE: u32 = 100;
/// Where parameters in use and found differ by less, they stay.
const WORTH_A_CHANGE: f64 = 0.1;

/// The looks at all rails, by any thread.
#[derive(Debug)]
pub(super) struct Watch {
    clock: Instant,
    next: AtomicU64,
    rails: Mutex<WatchedRails>,
}

#[derive(Debug)]
struct WatchedRails {
    addresses: Vec<Option<IpAddr>>,
    watched: Vec<Watched>,
    connections: BTreeMap<c_int, WatchedConnection>,
    looks: u32,
    last: u64,
}

#[derive(Debug)]
struct Watched {
    measured: LogGp,
    /// A message takes as many times as long as measured.
    times: f64,
    test: StillHolds,
    /// Of the latest observations, the oldest first: how many times as long as measured.
    recent: [f64; RECENT],
    /// Of the next observation: bytes, and nanoseconds that they took.
    bytes: u64,
    took: f64,
    /// Looks that found it with time to spare, less those that found it full.
    spare: u32,
}

#[derive(Debug, Clone, Copy)]
struct WatchedConnection {
    rail: usize,
    progress: TcpProgress,
}

/// What the kernel says of a connection, since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct TcpProgress {
    acknowledged: u64,
    busy_us: u64,
    stalled_us: u64,
    program_is_the_limit: bool,
}

impl Watch {
    /// Of rails that were measured so.
    pub(super) fn new(rails: &[RailModule], measured: &[LogGp]) -> Watch {
        let rails = WatchedRails {
            addresses: addresses(rails),
            watched: measured.iter().map(|cost| Watched::new(*cost)).collect(),
            connections: BTreeMap::new(),
            looks: 0,
            last: 0,
        };
        Watch {
            clock: Instant::now(),
            next: AtomicU64::new(0),
            rails: Mutex::new(rails),
        }
    }

    /// Looks at all rails if it is time to, unless another thread does: the parameters to go on with, where they differ from
    /// those `in_use`.
    #[inline]
    pub(super) fn look(&self, rails: &[RailModule], in_use: &[LogGp]) -> Option<Vec<LogGp>> {
        let now = self.clock.elapsed().as_nanos() as u64;
        if now < self.next.load(Ordering::Relaxed) {
            None
        } else {
            self.look_now(now, rails, in_use)
        }
    }

    #[cold]
    fn look_now(&self, now: u64, rails: &[RailModule], in_use: &[LogGp]) -> Option<Vec<LogGp>> {
        let mut known = self.rails.try_lock().ok()?;
        // Another thread may have looked since the clock was read.
        if now <= known.last {
            return None;
        }
        self.next.store(now + PERIOD, Ordering::Relaxed);
        known.observe(now, rails);
        let mut found: Vec<Rail> = rails
            .iter()
            .zip(&known.watched)
            .map(|(rail, watched)| costs::rail(&rail.name, watched.cost()))
            .collect();
        equal_rails::even_out(&mut found);
        let change = found.iter().zip(in_use).any(|(new, old): (&Rail, &LogGp)| {
            let ratio = new.cost.gap_per_byte.as_nanos() / old.gap_per_byte.as_nanos();
            !(1.0 - WORTH_A_CHANGE..=1.0 + WORTH_A_CHANGE).contains(&ratio)
        });
        change.then(|| found.into_iter().map(|rail| rail.cost).collect())
    }
}

impl WatchedRails {
    fn observe(&mut self, now: u64, rails: &[RailModule]) {
        let period = (now - self.last) as f64;
        let mut carried = vec![0; rails.len()];
        let mut full = vec![false; rails.len()];
        if self.looks.is_multiple_of(LOOKS) {
            self.find_connections();
        }
        self.looks = self.looks.wrapping_add(1);
        self.connections.retain(|socket, connection| {
            let Some(progress) = tcp_progress(*socket) else {
                return false;
            };
            let before = std::mem::replace(&mut connection.progress, progress);
            let Some(since) = progress.since(before) else {
                return false;
            };
            carried[connection.rail] += since.acknowledged;
            full[connection.rail] |= since.fills(period);
            true
        });
        if self.last > 0 {
            for (rail, watched) in self.watched.iter_mut().enumerate() {
                match (full[rail], carried[rail]) {
                    (true, bytes) => {
                        watched.was_full(bytes, period, rails[rail].counters.read().mean_length())
                    }
                    (false, 0) => {}
                    (false, _) => watched.had_time_to_spare(),
                }
            }
        }
        self.last = now;
    }

    /// Adds the sockets of this process whose own address is a rail's.
    fn find_connections(&mut self) {
        let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
            return;
        };
        let sockets =
            entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<c_int>().ok());
        for socket in sockets {
            if self.connections.contains_key(&socket) {
                continue;
            }
            let Some(own) = own_address(socket) else {
                continue;
            };
            let Some(rail) = self
                .addresses
                .iter()
                .position(|address| *address == Some(own))
            else {
                continue;
            };
            if let Some(progress) = tcp_progress(socket) {
                self.connections
                    .insert(socket, WatchedConnection { rail, progress });
            }
        }
    }
}

impl Watched {
    fn new(measured: LogGp) -> Watched {
        Watched {
            measured,
            times: 1.0,
            test: StillHolds::within(TOLERANCE, LEVEL),
            recent: [1.0; RECENT],
            bytes: 0,
            took: 0.0,
            spare: 0,
        }
    }

    fn cost(&self) -> LogGp {
        let gap_per_byte =
            TimePerByte::from_nanos(self.measured.gap_per_byte.as_nanos() * self.times);
        LogGp {
            gap: self.measured.gap * self.times,
            gap_per_byte,
            ..self.measured
        }
    }

    /// It carried so many bytes in so many nanoseconds, with more behind; `length` of a message in the mean: which are under way
    /// nobody knows.
    fn was_full(&mut self, bytes: u64, took: f64, length: f64) {
        self.spare = self.spare.saturating_sub(1);
        self.bytes += bytes;
        self.took += took;
        if self.bytes >= LEAST {
            let a_byte =
                self.measured.gap.as_nanos() / length + self.measured.gap_per_byte.as_nanos();
            self.observe(self.took / (self.bytes as f64 * a_byte));
            (self.bytes, self.took) = (0, 0.0);
        }
    }

    fn observe(&mut self, times: f64) {
        self.recent.rotate_left(1);
        self.recent[RECENT - 1] = times;
        self.test.count_in(times / self.times);
        let verdict = self.test.end_window(LONGEST_WINDOW);
        if let Some(Verdict::Above | Verdict::Below) = verdict {
            self.times = median_in_place(&mut self.recent.clone());
        }
    }

    /// A share by what was found keeps a rail busy that still is so slow; one that is not may be what it was measured.
    fn had_time_to_spare(&mut self) {
        self.spare += 1;
        if self.spare == SPARE {
            *self = Watched::new(self.measured);
        }
    }
}

impl TcpProgress {
    /// What has come since; none if this is another connection.
    fn since(self, before: TcpProgress) -> Option<TcpProgress> {
        Some(TcpProgress {
            acknowledged: self.acknowledged.checked_sub(before.acknowledged)?,
            busy_us: self.busy_us.checked_sub(before.busy_us)?,
            stalled_us: self.stalled_us.checked_sub(before.stalled_us)?,
            program_is_the_limit: self.program_is_the_limit,
        })
    }

    /// Whether the network was the limit for the whole period of so many nanoseconds.
    fn fills(&self, period: f64) -> bool {
        let busy = self.busy_us as f64;
        !self.program_is_the_limit
            && busy * 1e3 >= BUSY * period
            && self.stalled_us as f64 <= STALLED * busy
    }

    /// Of the kernel's `struct tcp_info`, which grows at its end; none if it is too old.
    fn parse(info: &[u8]) -> Option<TcpProgress> {
        let number = |at: usize| Some(u64::from_ne_bytes(info.get(at..at + 8)?.try_into().ok()?));
        Some(TcpProgress {
            // The lowest bit of the bit field tcpi_delivery_rate_app_limited.
            program_is_the_limit: info.get(7)? & 1 != 0,
            acknowledged: number(120)?,
            busy_us: number(168)?,
            stalled_us: number(176)?,
        })
    }
}

fn tcp_progress(socket: c_int) -> Option<TcpProgress> {
    let mut info = [0u8; 256];
    let mut length = info.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes; a number that is no socket is refused.
    let done = unsafe {
        libc::getsockopt(
            socket,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if done == 0 {
        TcpProgress::parse(&info[..(length as usize).min(info.len())])
    } else {
        None
    }
}

fn own_address(socket: c_int) -> Option<IpAddr> {
    let mut address = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes; zeros are a valid address.
    unsafe {
        if libc::getsockname(socket, address.as_mut_ptr().cast(), &raw mut length) != 0 {
            return None;
        }
        ip_of(address.as_ptr().cast())
    }
}

/// # Safety
/// `address` is null or an address of its family.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: the caller's; the family says what lies there.
    unsafe {
        match c_int::from((*address).sa_family) {
            libc::AF_INET => {
                let address = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some(IpAddr::from(address.sin_addr.s_addr.to_ne_bytes()))
            }
            libc::AF_INET6 => {
                let address = address.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(IpAddr::from(address.sin6_addr.s6_addr).to_canonical())
            }
            _ => None,
        }
    }
}

/// The address of each rail's interface; none where several rails have one interface, whose connections nothing tells apart.
fn addresses(rails: &[RailModule]) -> Vec<Option<IpAddr>> {
    let names: Vec<String> = rails
        .iter()
        .map(|rail: &RailModule| rail.name.split(':').next().unwrap_or_default().to_owned())
        .collect();
    let all = interface_addresses();
    names
        .iter()
        .map(|name: &String| {
            let is_alone = names.iter().filter(|other| *other == name).count() == 1;
            all.iter()
                .find(|(of, _)| of == name && is_alone)
                .map(|(_, address)| *address)
        })
        .collect()
}

fn interface_addresses() -> Vec<(String, IpAddr)> {
    let mut list = std::ptr::null_mut();
    let mut all = Vec::new();
    // SAFETY: a list of the C library, ended by null and freed once.
    unsafe {
        if libc::getifaddrs(&raw mut list) != 0 {
            return all;
        }
        let mut entry = list;
        while !entry.is_null() {
            let name = CStr::from_ptr((*entry).ifa_name)
                .to_string_lossy()
                .into_owned();
            all.extend(ip_of((*entry).ifa_addr).map(|address| (name, address)));
            entry = (*entry).ifa_next;
        }
        libc::freeifaddrs(list);
    }
    // Open MPI prefers IPv4.
    all.sort_by_key(|(_, address)| address.is_ipv6());
    all
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
        os::fd::AsRawFd,
    };

    use flowcast_units::Time;

    use super::*;

    #[test]
    fn the_kernel_tells_what_a_connection_has_delivered() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut out = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut other = listener.accept().unwrap().0;
        let before = tcp_progress(out.as_raw_fd()).unwrap();
        out.write_all(&[0; 100_000]).unwrap();
        other.read_exact(&mut [0; 100_000]).unwrap();
        let begun = std::time::Instant::now();
        let delivered = || {
            tcp_progress(out.as_raw_fd())
                .unwrap()
                .since(before)
                .unwrap()
                .acknowledged
        };
        while delivered() < 100_000 {
            assert!(begun.elapsed().as_secs() < 10, "{}", delivered());
        }
        assert_eq!(delivered(), 100_000);
        assert_eq!(
            own_address(out.as_raw_fd()),
            Some("127.0.0.1".parse().unwrap())
        );
        assert!(tcp_progress(-1).is_none() && own_address(-1).is_none());
        assert!(interface_addresses().contains(&("lo".into(), "127.0.0.1".parse().unwrap())));
    }

    /// Observations of a rail that is as many times slower, until it is taken for other than it was.
    fn until_changed(rail: &mut Watched, times: f64) -> Option<u32> {
        let before = rail.times;
        (1..100).find(|at| {
            // A tenth of noise; 40 ns for a byte.
            let noise = 1.0 + 0.1 * f64::from(at % 3) - 0.1;
            rail.was_full(LEAST, LEAST as f64 * 40.0 * times * noise, 1000.0);
            rail.times != before
        })
    }

    fn watched() -> Watched {
        // 20 us for each message of 1000 bytes are as much as their bytes.
        Watched::new(LogGp {
            gap: Time::from_micros(20.0),
            gap_per_byte: TimePerByte::from_nanos(20.0),
            ..LogGp::default()
        })
    }

    #[test]
    fn a_rail_that_changes_is_found_out_and_so_is_its_return() {
        let mut rail = watched();
        assert_eq!(until_changed(&mut rail, 1.1), None, "within the tolerance");
        let within = until_changed(&mut rail, 5.0).unwrap();
        assert!(within <= LONGEST_WINDOW + 14, "{within}");
        assert!(
            (rail.times / 5.0 - 1.0).abs() < 0.1,
            "what came before the change has no part in it: {}",
            rail.times
        );
        let cost = rail.cost();
        assert!(
            (cost.gap.as_micros() / rail.times - 20.0).abs() < 1e-9,
            "{cost:?}"
        );
        assert!(
            (cost.gap_per_byte.as_nanos() / rail.times - 20.0).abs() < 1e-9,
            "{cost:?}"
        );
        assert_eq!(until_changed(&mut rail, 5.0), None);
        assert!(
            until_changed(&mut rail, 1.0).is_some() && (rail.times - 1.0).abs() < 0.1,
            "{}",
            rail.times
        );
    }

    #[test]
    fn a_changed_rail_with_time_to_spare_is_tried_again() {
        let mut rail = watched();
        until_changed(&mut rail, 5.0).unwrap();
        (1..SPARE).for_each(|_| rail.had_time_to_spare());
        assert!(rail.times > 4.0);
        rail.had_time_to_spare();
        assert_eq!((rail.times, rail.spare), (1.0, 0));
    }

    #[test]
    fn only_a_network_that_is_the_limit_is_tested() {
        let full = TcpProgress {
            acknowledged: 1,
            busy_us: 24_000,
            stalled_us: 100,
            program_is_the_limit: false,
        };
        assert!(full.fills(25e6));
        assert!(!full.fills(50e6), "idle for half of the time");
        assert!(
            !TcpProgress {
                stalled_us: 9_000,
                ..full
            }
            .fills(25e6),
            "the receiver does not read"
        );
        assert!(
            !TcpProgress {
                program_is_the_limit: true,
                ..full
            }
            .fills(25e6)
        );
        assert_eq!(
            TcpProgress::default().since(full),
            None,
            "another connection has the number now"
        );
        assert_eq!(
            TcpProgress::parse(&[0; 104]),
            None,
            "a kernel that tells less"
        );
    }
}
