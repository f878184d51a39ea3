//! TCP connections of this process over its rails, with the kernel's statistics of each (`tcp_info`, Linux 4.19):
//! acknowledged bytes, time with data in flight, size of packets, and time stalled by the receiver.
//!
//! Open MPI does not expose its sockets. A socket belongs to a rail if its local address is the rail's.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{CStr, c_int},
    mem::MaybeUninit,
    net::IpAddr,
};

use flowcast_scheduler::RailId;

/// Number of looks between two searches for new connections. The first searches are more frequent, while connections are
/// being made.
const LOOKS: u32 = 25;
/// Fraction of a period in which a connection must have data in flight if its rail is the bottleneck. The kernel counts in
/// ticks of up to 10 ms.
const BUSY: f64 = 0.75;
/// Fraction of the capacity of its packets that a connection with large messages fills.
const PACKED: f64 = 0.75;
/// Largest fraction of the time in flight for which the receiver may stall a connection that fills its rail.
const STALLED: f64 = 0.1;
/// Fraction of the kernel's delivery rate that a connection has to reach to fill its rail. The kernel last measured that
/// rate while more data waited to be sent. A sender that waits for an answer after each packet stays far below it, even if
/// delayed acknowledgements keep one packet in flight all the time.
const LIMITED: f64 = 0.25;
/// Time after which a connection counts as stuck, in nanoseconds. No byte in flight was acknowledged meanwhile, and the
/// kernel has timed out at least once; its timeout follows the usual round trip.
const STUCK: u64 = 100_000_000;

/// State of the connections at the last look.
#[derive(Debug)]
pub(crate) struct TcpConnections {
    addresses: Vec<Option<IpAddr>>,
    known: BTreeMap<c_int, TcpConnection>,
    looks: u32,
    last: u64,
}

#[derive(Debug, Clone, Copy)]
struct TcpConnection {
    path: PeerPath,
    progress: TcpProgress,
    stuck_since: Option<u64>,
}

/// A rail and the address at its remote end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PeerPath {
    pub rail: RailId,
    pub far: AddressKey,
}

/// An address in four bytes: an IPv4 address, or a hash of an IPv6 address. Zero means no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct AddressKey(pub u32);

impl From<IpAddr> for AddressKey {
    fn from(address: IpAddr) -> AddressKey {
        AddressKey(match address {
            IpAddr::V4(address) => u32::from(address),
            // FNV-1a.
            IpAddr::V6(address) => address.octets().iter().fold(0x811C_9DC5, |sum, byte| {
                (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
            }),
        })
    }
}

/// Activity of a rail between two looks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RailActivity {
    /// Bytes acknowledged on the rail.
    pub acknowledged: u64,
    /// Time for which the busiest connection had data in flight, in nanoseconds.
    pub busy: f64,
    /// `true` if the rail was the bottleneck of a connection for the whole period.
    pub is_full: bool,
}

/// Result of a look.
#[derive(Debug)]
pub(crate) struct ConnectionsLook {
    /// Time since the previous look, in nanoseconds; `None` at the first look.
    pub period: Option<u64>,
    pub rails: Vec<RailActivity>,
    /// Paths of the stuck connections.
    pub stuck: BTreeSet<PeerPath>,
}

impl TcpConnections {
    /// Watches the connections of rails with these names.
    pub(crate) fn new(rails: &[&str]) -> TcpConnections {
        TcpConnections {
            addresses: addresses(rails),
            known: BTreeMap::new(),
            looks: 0,
            last: 0,
        }
    }

    /// Looks at all connections. `now` is in nanoseconds.
    pub(crate) fn look(&mut self, now: u64) -> ConnectionsLook {
        let period = now - self.last;
        if (self.looks + 1).is_power_of_two() || self.looks.is_multiple_of(LOOKS) {
            self.find();
        }
        self.looks = self.looks.wrapping_add(1);
        let mut rails = vec![RailActivity::default(); self.addresses.len()];
        let mut stuck = BTreeSet::new();
        self.known.retain(|socket, connection| {
            let Some(since) =
                tcp_progress(*socket).and_then(|progress| connection.go_on(progress, now))
            else {
                return false;
            };
            let rail = &mut rails[connection.path.rail.index()];
            rail.acknowledged += since.acknowledged;
            rail.busy = rail.busy.max(since.busy_us as f64 * 1e3);
            rail.is_full |= since.fills(period as f64);
            if connection.is_stuck(now) {
                stuck.insert(connection.path);
            }
            true
        });
        let period = (self.last > 0).then_some(period);
        self.last = now;
        ConnectionsLook {
            period,
            rails,
            stuck,
        }
    }

    /// Adds the sockets of this process whose local address is the address of a rail.
    fn find(&mut self) {
        let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
            return;
        };
        let sockets =
            entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<c_int>().ok());
        for socket in sockets {
            if !self.known.contains_key(&socket)
                && let Some(connection) = self.connection(socket)
            {
                self.known.insert(socket, connection);
            }
        }
    }

    fn connection(&self, socket: c_int) -> Option<TcpConnection> {
        let own = address(socket, libc::getsockname)?;
        let rail = self
            .addresses
            .iter()
            .position(|address| *address == Some(own))?;
        let path = PeerPath {
            rail: RailId(rail as u8),
            far: address(socket, libc::getpeername)?.into(),
        };
        Some(TcpConnection {
            path,
            progress: tcp_progress(socket)?,
            stuck_since: None,
        })
    }
}

impl TcpConnection {
    /// Returns the progress since the last look, or `None` if the socket belongs to another connection now.
    fn go_on(&mut self, progress: TcpProgress, now: u64) -> Option<TcpProgress> {
        let before = std::mem::replace(&mut self.progress, progress);
        let since = progress.since(before)?;
        let waits = before.in_flight > 0 && progress.in_flight > 0 && progress.sends_again;
        self.stuck_since = if waits && since.acknowledged == 0 {
            self.stuck_since.or(Some(now))
        } else {
            None
        };
        Some(since)
    }

    fn is_stuck(&self, now: u64) -> bool {
        self.stuck_since.is_some_and(|since| now - since >= STUCK)
    }
}

/// The kernel's statistics of a connection, since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct TcpProgress {
    acknowledged: u64,
    busy_us: u64,
    stalled_us: u64,
    sent: u64,
    /// Number of packets with data sent.
    packets: u32,
    /// Capacity of a packet, in bytes.
    room: u32,
    /// Number of packets sent and not acknowledged.
    in_flight: u32,
    /// Delivery rate, in bytes per second, last measured while more data waited to be sent.
    rate: u64,
    /// `true` if the kernel has timed out waiting for an acknowledgement and retransmits.
    sends_again: bool,
}

impl TcpProgress {
    /// Returns the difference to an earlier state, or `None` if the earlier state belongs to another connection.
    fn since(self, before: TcpProgress) -> Option<TcpProgress> {
        Some(TcpProgress {
            acknowledged: self.acknowledged.checked_sub(before.acknowledged)?,
            busy_us: self.busy_us.checked_sub(before.busy_us)?,
            stalled_us: self.stalled_us.checked_sub(before.stalled_us)?,
            sent: self.sent.checked_sub(before.sent)?,
            packets: self.packets.wrapping_sub(before.packets),
            ..self
        })
    }

    /// Returns `true` if the network was the bottleneck for the whole period, given in nanoseconds. Small messages do not
    /// count, because each of them may wait for its acknowledgement.
    fn fills(&self, period: f64) -> bool {
        let busy = self.busy_us as f64;
        let room = f64::from(self.packets) * f64::from(self.room);
        self.acknowledged > 0
            && self.packets > 0
            && self.sent as f64 >= PACKED * room
            && busy * 1e3 >= BUSY * period
            && self.stalled_us as f64 <= STALLED * busy
            && self.acknowledged as f64 >= LIMITED * self.rate as f64 * busy * 1e-6
    }

    /// Parses the kernel's `struct tcp_info`, which grows at its end. Returns `None` if it is too short.
    fn parse(info: &[u8]) -> Option<TcpProgress> {
        let number = |at: usize| Some(u64::from_ne_bytes(info.get(at..at + 8)?.try_into().ok()?));
        let short = |at: usize| Some(u32::from_ne_bytes(info.get(at..at + 4)?.try_into().ok()?));
        Some(TcpProgress {
            // tcpi_ca_state is TCP_CA_Loss, or tcpi_retransmits.
            sends_again: *info.get(1)? == 4 || *info.get(2)? > 0,
            room: short(16)?,
            in_flight: short(24)?,
            packets: short(156)?,
            rate: number(160)?,
            // Available since Linux 4.19. Without it no network ever counts as full.
            sent: number(200).unwrap_or(0),
            acknowledged: number(120)?,
            busy_us: number(168)?,
            stalled_us: number(176)?,
        })
    }
}

fn tcp_progress(socket: c_int) -> Option<TcpProgress> {
    let mut info = [0u8; 256];
    let mut length = info.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes and refuses a number that is not a socket.
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

type AskForAddress =
    unsafe extern "C" fn(c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> c_int;

fn address(socket: c_int, ask: AskForAddress) -> Option<IpAddr> {
    let mut address = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes; zeros are a valid address.
    unsafe {
        if ask(socket, address.as_mut_ptr().cast(), &raw mut length) != 0 {
            return None;
        }
        ip_of(address.as_ptr().cast())
    }
}

/// # Safety
/// `address` is null or points to an address of its family.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: guaranteed by the caller; the family determines the type of the address.
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

/// Returns the address of each rail's interface, or `None` if several rails share an interface, because their connections
/// cannot be distinguished.
pub(crate) fn addresses(rails: &[&str]) -> Vec<Option<IpAddr>> {
    let names: Vec<&str> = rails
        .iter()
        .map(|rail| rail.split(':').next().unwrap_or_default())
        .collect();
    let all = interface_addresses();
    names
        .iter()
        .map(|name: &&str| {
            let is_alone = names.iter().filter(|other| *other == name).count() == 1;
            all.iter()
                .find(|(of, _)| of == name && is_alone)
                .map(|(_, address)| *address)
        })
        .collect()
}

/// Interfaces with their addresses, IPv4 first.
pub(crate) fn interface_addresses() -> Vec<(String, IpAddr)> {
    let mut list = std::ptr::null_mut();
    let mut all = Vec::new();
    // SAFETY: a list of the C library, which ends with null and is freed once.
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

    use super::*;

    #[test]
    fn the_kernel_reports_the_bytes_that_a_connection_has_delivered() {
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
            address(out.as_raw_fd(), libc::getsockname),
            Some("127.0.0.1".parse().unwrap())
        );
        assert!(tcp_progress(-1).is_none() && address(-1, libc::getsockname).is_none());
        assert!(interface_addresses().contains(&("lo".into(), "127.0.0.1".parse().unwrap())));
    }

    #[test]
    fn only_a_network_that_is_the_limit_is_tested() {
        let full = TcpProgress {
            acknowledged: 1,
            sent: 2600,
            packets: 2,
            room: 1448,
            busy_us: 24_000,
            stalled_us: 100,
            ..TcpProgress::default()
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
            !TcpProgress { sent: 1600, ..full }.fills(25e6),
            "small messages"
        );
        // A packet of 1300 bytes every 12 ms, on a connection with an observed rate of 12.5 MB/s.
        let answered = |acknowledged| TcpProgress {
            acknowledged,
            rate: 12_500_000,
            ..full
        };
        assert!(!answered(2600).fills(25e6), "delayed acknowledgements");
        assert!(answered(150_000).fills(25e6), "half of that rate");
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

    #[test]
    fn a_connection_is_stuck_while_the_kernel_waits_in_vain_and_free_when_it_moves() {
        let at = |acknowledged, sends_again| TcpProgress {
            acknowledged,
            sends_again,
            in_flight: 9,
            ..TcpProgress::default()
        };
        let path = PeerPath {
            rail: RailId(0),
            far: AddressKey(1),
        };
        let mut connection = TcpConnection {
            path,
            progress: at(5, false),
            stuck_since: None,
        };
        let mut is_stuck = |progress, now| {
            connection.go_on(progress, now).unwrap();
            connection.is_stuck(now)
        };
        assert!(!is_stuck(at(5, false), 40_000_000), "answers may take long");
        assert!(!is_stuck(at(5, true), 80_000_000), "not yet");
        assert!(is_stuck(at(5, true), 200_000_000));
        assert!(!is_stuck(at(6, true), 240_000_000), "slow is not stuck");
        assert!(!is_stuck(at(6, false), 500_000_000));
    }
}
