//! Sockets whose frames carry the time at which the kernel received them.
//!
//! Neither the time of reception nor the address of an interface is within reach of safe crates, so the system calls are
//! made here.

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

/// Frames that one system call fetches.
const BATCH: usize = 16;
/// What may wait in a socket; the system gives less to users without the right.
const BUFFER: usize = 8 << 20;

/// A packet or datagram socket that does not wait.
#[derive(Debug)]
pub(super) struct StampedSocket(OwnedFd);

/// One frame or datagram.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub bytes: Vec<u8>,
    /// When the system received it.
    pub at: Option<SystemTime>,
}

/// Buffers into which [`StampedSocket::receive`] reads.
#[derive(Debug)]
pub(super) struct ReceiveBuffers {
    buffers: Vec<Vec<u8>>,
    largest: usize,
}

/// Control messages: their header and a time. Aligned as the system's headers are.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct SocketControl([u8; 64]);

impl ReceiveBuffers {
    /// Buffers for frames of up to `largest` bytes; longer frames are dropped.
    pub(super) fn new(largest: usize) -> ReceiveBuffers {
        ReceiveBuffers {
            buffers: vec![vec![0; largest]; BATCH],
            largest,
        }
    }

    /// Gives memory back for frames to come.
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
    /// All frames that an interface of this process's network receives. Those that it sends are not among them as long
    /// as only this socket sends there.
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
        // SAFETY: the address is a valid one of its family and of that length; the system only reads it.
        let done = unsafe { libc::bind(socket.0.as_raw_fd(), (&raw const address).cast(), length) };
        checked(done).map(|_| socket)
    }

    /// A datagram socket, from now on with times.
    pub(super) fn over(fd: OwnedFd) -> io::Result<StampedSocket> {
        let yes: c_int = 1;
        let length = mem::size_of_val(&yes) as libc::socklen_t;
        let value = (&raw const yes).cast();
        // SAFETY: the value is an int, as the option asks for; the system only reads it.
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

    /// What has been received, in order, to a certain number; nothing if there is nothing.
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
        // SAFETY: each header points to a buffer and to control space that live until the end of this function and that
        // nothing else uses meanwhile.
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
    // SAFETY: a header of zeros, null pointers and zero lengths, is a valid one.
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

/// The time among the control messages.
fn stamp(header: &libc::msghdr) -> Option<SystemTime> {
    // SAFETY: the system has filled the header in; its control space is alive, and CMSG_NXTHDR stays inside it. The data
    // of a message of this kind is a timespec, which need not be aligned.
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
