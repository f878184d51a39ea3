//! Sockets of a node for use in this process.
//!
//! A socket always belongs to the network namespace in which it was created. A process with threads may not change its user
//! namespace, but a newly forked child may. The child enters the node, creates the socket and passes it back. The threads of
//! one process, with one clock, can thus communicate between any two nodes.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    net::{SocketAddrV4, TcpStream},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    process::{Command, Stdio},
};

use rustix::{
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socket_with,
        sockopt::set_tcp_congestion,
    },
    thread::{LinkNameSpaceType, move_into_link_name_space},
};
use socket2::{SockAddr, Socket};

/// Namespaces that a child enters.
#[derive(Debug)]
pub(crate) struct NamespaceEntry<'a> {
    /// User namespace of the lab.
    pub user: BorrowedFd<'a>,
    /// Network namespace of the node.
    pub network: BorrowedFd<'a>,
}

/// Creates an IPv4 socket in a node.
pub(crate) fn socket_in(door: &NamespaceEntry<'_>, kind: SocketType) -> io::Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    let (user, network) = (
        door.user.try_clone_to_owned()?,
        door.network.try_clone_to_owned()?,
    );
    let mut child = Command::new("true");
    child
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: between fork and exec, the child makes only system calls: no allocation, no lock.
    unsafe {
        child.pre_exec(move || {
            move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))?;
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
            let made = socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)?;
            pass(&theirs, made.as_fd())
        });
    }
    child.status()?;
    drop(child);
    receive(&ours)
}

fn pass(channel: &UnixStream, socket: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let sockets = [socket];
    ancillary.push(SendAncillaryMessage::ScmRights(&sockets));
    sendmsg(
        channel,
        &[IoSlice::new(b"s")],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

fn receive(channel: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(
        channel,
        &mut [IoSliceMut::new(&mut byte)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let passed = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
        _ => None,
    });
    passed.ok_or_else(|| io::Error::other("the node returned no socket"))
}

/// Congestion control that fills a fixed window immediately, like slow start without a loss. Cubic leaves slow start when
/// queues grow.
const FILLS_WINDOWS: &str = "reno";

/// Connects two nodes; the first stream is the end of `from`. A `buffer` replaces the lab's window and its congestion
/// control, so only this window limits the flow.
pub(crate) fn tcp_pair(
    from: &NamespaceEntry<'_>,
    to: &NamespaceEntry<'_>,
    address: SocketAddrV4,
    buffer: Option<usize>,
) -> io::Result<(TcpStream, TcpStream)> {
    let listener = tcp_socket(to, buffer)?;
    listener.bind(&SockAddr::from(address))?;
    listener.listen(1)?;
    let sender = tcp_socket(from, buffer)?;
    sender.connect(&listener.local_addr()?)?;
    let (receiver, _) = listener.accept()?;
    receiver.set_tcp_nodelay(true)?;
    if buffer.is_some() {
        // Connecting sets the congestion control of the lab's route, so this must come afterwards.
        set_tcp_congestion(&sender, FILLS_WINDOWS)?;
    }
    Ok((sender.into(), receiver.into()))
}

fn tcp_socket(door: &NamespaceEntry<'_>, buffer: Option<usize>) -> io::Result<Socket> {
    let socket = Socket::from(socket_in(door, SocketType::STREAM)?);
    socket.set_tcp_nodelay(true)?;
    if let Some(bytes) = buffer {
        socket.set_send_buffer_size(bytes)?;
        socket.set_recv_buffer_size(bytes)?;
    }
    Ok(socket)
}
