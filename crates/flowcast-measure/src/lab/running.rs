//! Lab that is up.

use std::{
    env,
    fs::File,
    io,
    net::{Ipv4Addr, SocketAddrV4, TcpStream},
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use flowcast_units::{Bytes, Node};
use rustix::net::SocketType;

use crate::lab::{
    error::LabError,
    launch, names,
    registry::{self, LabState},
    requirements,
    script::{self, LabLifetime},
    sockets::{self, NamespaceEntry},
    spec::LabSpec,
    supervisor::{self, Supervisor, SupervisorId},
};

/// Virtual cluster. A lab made by [`Lab::up`] ends when this value is dropped, or when this process ends for any reason.
#[derive(Debug)]
pub struct Lab {
    spec: LabSpec,
    name: String,
    folder: PathBuf,
    supervisor: SupervisorId,
    /// Supervisor of a lab that ends with this value.
    own: Option<Supervisor>,
    user: OwnedFd,
    nodes: Vec<OwnedFd>,
}

impl Lab {
    /// Builds a lab for this process alone.
    ///
    /// # Errors
    /// A program is missing, namespaces are forbidden, or the system refuses a device or a rate.
    pub fn up(spec: &LabSpec) -> Result<Lab, LabError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "of-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let (folder, supervisor) = build(spec, &name, LabLifetime::WithOwner)?;
        Lab::attach(spec.clone(), name, folder, supervisor.id, Some(supervisor))
    }

    /// Builds a lab that outlives this process and stays until [`Lab::down`].
    ///
    /// # Errors
    /// Same errors as [`Lab::up`], or a lab with this name is up.
    pub fn up_named(spec: &LabSpec, name: &str) -> Result<Lab, LabError> {
        let (folder, supervisor) = build(spec, name, LabLifetime::UntilDown)?;
        Lab::attach(spec.clone(), name.to_owned(), folder, supervisor.id, None)
    }

    /// Opens a lab that [`Lab::up_named`] has built, also from another process.
    ///
    /// # Errors
    /// No lab with this name is up.
    pub fn open(name: &str) -> Result<Lab, LabError> {
        let (folder, state) = registry::find(name)?;
        Lab::attach(state.spec, state.name, folder, state.supervisor, None)
    }

    /// Returns the names and specifications of the labs of this user that are up.
    ///
    /// # Errors
    /// The folder of labs cannot be created or is not private.
    pub fn list() -> Result<Vec<(String, LabSpec)>, LabError> {
        Ok(registry::list()?
            .into_iter()
            .map(|state| (state.name, state.spec))
            .collect())
    }

    /// Ends a lab and everything that runs in it.
    ///
    /// # Errors
    /// The folder of the lab cannot be removed.
    pub fn down(mut self) -> Result<(), LabError> {
        self.end();
        registry::remove(&self.folder)
    }

    /// Specification from which the lab was built.
    pub fn spec(&self) -> &LabSpec {
        &self.spec
    }

    /// Name of the lab.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the address of a node on a rail.
    ///
    /// # Errors
    /// The lab has no such node or rail.
    pub fn address(&self, node: Node, rail: usize) -> Result<Ipv4Addr, LabError> {
        self.check_node(node)?;
        let rails = self.spec.nic.bandwidth.0.len();
        if rail < rails {
            Ok(names::address(rail, node))
        } else {
            Err(LabError::NoSuchRail { found: rail, rails })
        }
    }

    /// Returns the address of a node on the network that is not shaped.
    ///
    /// # Errors
    /// The lab has no such node.
    pub fn control_address(&self, node: Node) -> Result<Ipv4Addr, LabError> {
        self.check_node(node)?;
        Ok(names::control_address(node))
    }

    /// Returns a command that runs in a node: in its network, under its host name, in the current folder. The caller adds
    /// arguments, environment and streams. The command ends when the lab ends, or when the started process is killed.
    ///
    /// # Errors
    /// The lab has no such node.
    pub fn command_in(&self, node: Node, program: &str) -> Result<Command, LabError> {
        self.check_node(node)?;
        let supervisor = self.supervisor;
        let here = env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let inside = self.namespaces().join(names::host(node));
        let mut command = requirements::command("nsenter");
        command
            .arg(option("user", &supervisor.file("ns/user")))
            .arg(option("mount", &supervisor.file("ns/mnt")));
        command.arg(option("pid", &supervisor.file("ns/pid_for_children")));
        command
            .args([
                "--preserve-credentials",
                "--",
                "setpriv",
                "--pdeathsig",
                "KILL",
                "env",
                "-C",
            ])
            .arg(here);
        command
            .arg("nsenter")
            .arg(option("net", &inside.with_extension("net")));
        command
            .arg(option("uts", &inside.with_extension("uts")))
            .arg(option("ipc", &inside.with_extension("ipc")));
        command.arg("--").arg(program);
        command
            .env("FLOWCAST_LAB", &self.name)
            .env("FLOWCAST_LAB_NODE", node.to_string());
        Ok(command)
    }

    /// Returns environment variables that let `mpirun` (Open MPI) and `mpirun.mpich` use all nodes if they run in node 0.
    pub fn launcher_environment(&self) -> Vec<(String, String)> {
        launch::environment(&self.spec, &self.namespaces().display().to_string())
    }

    /// Creates a socket of a node (IPv4), for use in this process.
    ///
    /// # Errors
    /// The lab has no such node, or the system refuses the socket.
    pub fn socket_in(&self, node: Node, kind: SocketType) -> Result<OwnedFd, LabError> {
        sockets::socket_in(&self.door(node)?, kind).map_err(system("creating a socket in a node"))
    }

    /// Connects two nodes over a rail, with both ends in this process: (sender's end, receiver's end). A `buffer` replaces
    /// the lab's window, and also replaces the lab's congestion control by reno, which fills the buffer immediately.
    ///
    /// # Errors
    /// The lab has no such nodes or rail, or the system refuses the connection.
    pub fn tcp_pair(
        &self,
        from: Node,
        to: Node,
        rail: usize,
        buffer: Option<Bytes>,
    ) -> Result<(TcpStream, TcpStream), LabError> {
        let address = SocketAddrV4::new(self.address(to, rail)?, 0);
        let (from, to) = (self.door(from)?, self.door(to)?);
        let buffer = buffer.map(|size| size.0 as usize);
        sockets::tcp_pair(&from, &to, address, buffer).map_err(system("connecting two nodes"))
    }

    fn attach(
        spec: LabSpec,
        name: String,
        folder: PathBuf,
        supervisor: SupervisorId,
        own: Option<Supervisor>,
    ) -> Result<Lab, LabError> {
        // This is the supervisor's view of the file system. The namespaces are mounted only there.
        let inside = supervisor
            .file("root")
            .join(folder.strip_prefix("/").unwrap_or(&folder))
            .join("ns");
        let user = open_file(supervisor.file("ns/user"))?;
        let nodes = spec
            .nodes()
            .map(|node| open_file(inside.join(names::host(node)).with_extension("net")));
        let nodes = nodes.collect::<Result<_, _>>()?;
        Ok(Lab {
            spec,
            name,
            folder,
            supervisor,
            own,
            user,
            nodes,
        })
    }

    fn namespaces(&self) -> PathBuf {
        self.folder.join("ns")
    }

    fn door(&self, node: Node) -> Result<NamespaceEntry<'_>, LabError> {
        self.check_node(node)?;
        Ok(NamespaceEntry {
            user: self.user.as_fd(),
            network: self.nodes[node.index()].as_fd(),
        })
    }

    fn check_node(&self, node: Node) -> Result<(), LabError> {
        let nodes = self.spec.cluster.nodes;
        if node.0 < nodes {
            Ok(())
        } else {
            Err(LabError::NoSuchNode { found: node, nodes })
        }
    }

    fn end(&mut self) {
        match &mut self.own {
            Some(supervisor) => supervisor.end(),
            None => supervisor::end(self.supervisor),
        }
    }
}

fn open_file(path: PathBuf) -> Result<OwnedFd, LabError> {
    match File::open(&path) {
        Ok(file) => Ok(OwnedFd::from(file)),
        Err(source) => Err(LabError::File { path, source }),
    }
}

fn option(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.own.is_some() {
            self.end();
            // Remaining files are removed when the next lab is built.
            let _ = registry::remove(&self.folder);
        }
    }
}

/// Creates the folder, writes the plan and builds the lab from it. If the lab cannot be built, nothing of it remains.
fn build(spec: &LabSpec, name: &str, stay: LabLifetime) -> Result<(PathBuf, Supervisor), LabError> {
    requirements::check()?;
    let folder = registry::create(name)?;
    let built = start(spec, name, &folder, stay);
    if built.is_err() {
        registry::remove(&folder)?;
    }
    built.map(|supervisor| (folder, supervisor))
}

fn start(
    spec: &LabSpec,
    name: &str,
    folder: &Path,
    stay: LabLifetime,
) -> Result<Supervisor, LabError> {
    let carrier = match spec.carried()[..] {
        [] => None,
        _ => Some(requirements::cable_carrier()?),
    };
    script::write(spec, folder).map_err(|source| LabError::File {
        path: folder.to_owned(),
        source,
    })?;
    let mut supervisor = Supervisor::start(folder, stay, carrier.as_deref())?;
    let ready = LabState::new(name, supervisor.id, spec)
        .save(folder)
        .and_then(|()| supervisor.wait_until_ready(folder));
    if ready.is_err() {
        supervisor.end();
    }
    ready.map(|()| supervisor)
}

fn system(what: &'static str) -> impl Fn(io::Error) -> LabError {
    move |source| LabError::System { what, source }
}
