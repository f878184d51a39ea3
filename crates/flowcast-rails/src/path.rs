//! How a rail is reached: address, and the interface or source address that it has to use.

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// A connection that does not come about within this time does not exist.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Sent data that is not acknowledged by the other system for so long mean a cut cable.
const SILENCE: Duration = Duration::from_secs(1);
/// What the system takes beyond what is on the wire: the rest stays here, where it can still take another rail.
const UNSENT: u32 = 128 * 1024;

/// The path of one rail: addresses and interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPath {
    /// Where the other end listens.
    pub to: SocketAddr,
    /// The source address, which on most systems chooses the interface.
    pub from: Option<IpAddr>,
    /// The interface (`SO_BINDTODEVICE`), which may need a privilege.
    pub device: Option<String>,
}

impl SessionPath {
    /// To an address, over whatever interface the system chooses.
    pub fn to(to: SocketAddr) -> SessionPath {
        SessionPath {
            to,
            from: None,
            device: None,
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// Nobody listens, the source address is not this machine's, or the device does not exist or may not be used.
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

/// Listens at an address; port 0 takes a free one.
///
/// # Errors
/// An address that is not this machine's, or is taken.
pub fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Each message at once, no waiting in calls, a cut cable noticed, little left to the system.
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
