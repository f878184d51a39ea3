//! Sockets whose frames carry the time at which the kernel received them.
//!
//! Safe crates give access neither to the time of reception nor to the address of an interface. The system calls are
//! therefore made here.

use std::{
    array,
    ffi::c_int,
    io, mem,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, netdevice, send, socket_with, sockopt,
};

/// Number of frames that one system call receives.
const BATCH: usize = 16;
/// Requested receive buffer of a socket, in bytes; users without privileges get less.
const BUFFER: usize = 8 << 20;

/// Non-blocking packet or datagram socket.
#[derive(Debug)]
pub(super) struct StampedSocket(OwnedFd);

/// Frame or datagram that was received.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub bytes: Vec<u8>,
    /// Time at which the system received it.
    pub at: Option<SystemTime>,
}

/// Buffers for [`StampedSocket::receive`], one for each frame of a batch.
#[derive(Debug)]
pub(super) struct ReceiveBuffers {
    buffers: Vec<Vec<u8>>,
    largest: usize,
}

/// Control messages: their header and a time, aligned like the system's headers.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct SocketControl([u8; 64]);

impl ReceiveBuffers {
    /// Allocates buffers for frames of up to `largest` bytes; longer frames are dropped.
    pub(super) fn new(largest: usize) -> ReceiveBuffers {
        ReceiveBuffers {
            buffers: vec![vec![0; largest]; BATCH],
            largest,
        }
    }

    /// Takes back a buffer for use by later frames.
    pub(super) fn recycle(&mut self, mut buffer: Vec<u8>) {
        buffer.resize(self.largest, 0);
        self.buffers.push(buffer);
    }

    fn fill_up(&mut self) {
        while self.buffers.len() < BATCH {
            self.buffers.push(vec![0; self.largest]);
        }
    }
}

impl StampedSocket {
    /// Opens a socket that receives all frames of an interface in this process's network. It does not receive its own
    /// frames, and it must be the only socket that sends on this interface.
    pub(super) fn on_interface(name: &str) -> io::Result<StampedSocket> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        let index = netdevice::name_to_index(&fd, name)?;
        let socket = StampedSocket::over(fd)?;
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: index as c_int,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let length = mem::size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address is valid for its family and has this length; the system only reads it.
        let done = unsafe { libc::bind(socket.0.as_raw_fd(), (&raw const address).cast(), length) };
        checked(done).map(|_| socket)
    }

    /// Adds timestamps to a datagram socket.
    pub(super) fn over(fd: OwnedFd) -> io::Result<StampedSocket> {
        let yes: c_int = 1;
        let length = mem::size_of_val(&yes) as libc::socklen_t;
        let value = (&raw const yes).cast();
        // SAFETY: the value is an int, as the option requires; the system only reads it.
        let done = unsafe {
            libc::setsockopt(
                fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_TIMESTAMPNS,
                value,
                length,
            )
        };
        checked(done)?;
        if sockopt::set_socket_recv_buffer_size_force(&fd, BUFFER).is_err() {
            sockopt::set_socket_recv_buffer_size(&fd, BUFFER)?;
        }
        Ok(StampedSocket(fd))
    }

    pub(super) fn send(&self, frame: &[u8]) -> io::Result<()> {
        send(&self.0, frame, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Returns the received frames in order, limited to the size of a batch. Returns an empty list if there are none.
    pub(super) fn receive(&self, batch: &mut ReceiveBuffers) -> io::Result<Vec<Received>> {
        batch.fill_up();
        let mut parts: [libc::iovec; BATCH] = array::from_fn(|index| {
            let buffer = &mut batch.buffers[index];
            libc::iovec {
                iov_base: buffer.as_mut_ptr().cast(),
                iov_len: buffer.len(),
            }
        });
        let mut controls = [SocketControl([0; 64]); BATCH];
        let mut headers: [libc::mmsghdr; BATCH] =
            array::from_fn(|index| header(&mut parts[index], &mut controls[index]));
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: each header points to a buffer and to control space. Both live until the end of this function, and nothing
        // else uses them in the meantime.
        let count = unsafe {
            libc::recvmmsg(
                self.0.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as u32,
                flags as _,
                std::ptr::null_mut(),
            )
        };
        let count = match checked(count) {
            Ok(count) => count as usize,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let taken = batch.buffers.drain(..count).zip(&headers);
        let whole = taken.filter(|(buffer, header)| header.msg_len as usize <= buffer.len());
        Ok(whole
            .map(|(bytes, header)| received(bytes, header))
            .collect())
    }
}

impl AsFd for StampedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn header(part: &mut libc::iovec, control: &mut SocketControl) -> libc::mmsghdr {
    // SAFETY: a header of zeros, that is of null pointers and zero lengths, is valid.
    let mut header: libc::mmsghdr = unsafe { mem::zeroed() };
    header.msg_hdr.msg_iov = part;
    header.msg_hdr.msg_iovlen = 1;
    header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
    header.msg_hdr.msg_controllen = control.0.len() as _;
    header
}

fn received(mut bytes: Vec<u8>, header: &libc::mmsghdr) -> Received {
    bytes.truncate(header.msg_len as usize);
    Received {
        bytes,
        at: stamp(&header.msg_hdr),
    }
}

/// Returns the time among the control messages.
fn stamp(header: &libc::msghdr) -> Option<SystemTime> {
    // SAFETY: the system has filled in the header, its control space is alive, and CMSG_NXTHDR stays within it. The data of
    // a message of this kind is a timespec, which need not be aligned.
    let time = unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null()
            && ((*message).cmsg_level, (*message).cmsg_type)
                != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS)
        {
            message = libc::CMSG_NXTHDR(header, message);
        }
        if message.is_null() {
            return None;
        }
        libc::CMSG_DATA(message)
            .cast::<libc::timespec>()
            .read_unaligned()
    };
    Some(UNIX_EPOCH + Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
}

fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
