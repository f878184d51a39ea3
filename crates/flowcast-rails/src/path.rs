//! Path of a rail: the address, and the interface or source address that it has to use.

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Timeout for a connection attempt.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time after which unacknowledged data in the system's send buffer mean a cut cable.
const SILENCE: Duration = Duration::from_secs(1);
/// Bytes that the system accepts beyond those on the wire. The remaining bytes stay in this process, where they can still
/// take another rail.
const UNSENT: u32 = 128 * 1024;

/// The path of one rail: addresses and interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPath {
    /// Address at which the other end listens.
    pub to: SocketAddr,
    /// The source address, which determines the interface on most systems.
    pub from: Option<IpAddr>,
    /// The interface (`SO_BINDTODEVICE`), which may require a privilege.
    pub device: Option<String>,
}

impl SessionPath {
    /// Path to an address, over the interface that the system chooses.
    pub fn to(to: SocketAddr) -> SessionPath {
        SessionPath {
            to,
            from: None,
            device: None,
        }
    }

    /// Opens the connection.
    ///
    /// # Errors
    /// No process listens at the address, the source address does not belong to this machine, or the device does not exist
    /// or may not be used.
    pub fn connect(&self) -> io::Result<TcpStream> {
        let socket = Socket::new(
            Domain::for_address(self.to),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        #[cfg(target_os = "linux")]
        if let Some(device) = &self.device {
            socket.bind_device(Some(device.as_bytes()))?;
        }
        if let Some(from) = self.from {
            socket.bind(&SockAddr::from(SocketAddr::new(from, 0)))?;
        }
        socket.connect_timeout(&SockAddr::from(self.to), TIMEOUT)?;
        prepare(socket.into())
    }
}

/// Listens at an address; port 0 selects a free port.
///
/// # Errors
/// The address does not belong to this machine or is in use.
pub fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Sets the socket's options: messages leave immediately, calls do not block, a cut cable is detected, and the system
/// buffers little.
pub fn prepare(stream: TcpStream) -> io::Result<TcpStream> {
    let socket = Socket::from(stream);
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    #[cfg(target_os = "linux")]
    {
        socket.set_tcp_user_timeout(Some(SILENCE))?;
        socket.set_tcp_notsent_lowat(UNSENT)?;
    }
    Ok(socket.into())
}
