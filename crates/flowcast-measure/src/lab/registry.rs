//! State of labs on disk: a folder for each lab under `$XDG_RUNTIME_DIR/flowcast-lab`, or under `/tmp` if that is not
//! available.

use std::{
    env, fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::lab::{error::LabError, names::check_name, spec::LabSpec, supervisor::SupervisorId};

const SCHEMA: &str = "flowcast/lab-state/1";

/// State of a lab that is up.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LabState {
    schema: String,
    pub name: String,
    /// Process that holds the lab.
    pub supervisor: SupervisorId,
    pub spec: LabSpec,
}

impl LabState {
    /// Returns the state of a lab that is being built.
    pub(crate) fn new(name: &str, supervisor: SupervisorId, spec: &LabSpec) -> LabState {
        LabState {
            schema: SCHEMA.into(),
            name: name.into(),
            supervisor,
            spec: spec.clone(),
        }
    }

    /// Writes the state into the lab's folder.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), LabError> {
        let (path, partial) = (folder.join("lab.json"), folder.join("lab.json.new"));
        let text = serde_json::to_string_pretty(self)
            .expect("a lab contains only tables, texts and numbers");
        fs::write(&partial, text)
            .and_then(|()| fs::rename(&partial, &path))
            .map_err(at(&path))
    }
}

/// Creates a folder for a new lab. The remains of labs that have ended are removed first.
pub(crate) fn create(name: &str) -> Result<PathBuf, LabError> {
    check_name(name)?;
    let root = root()?;
    for (folder, state) in states(&root) {
        if state.map_or_else(
            || is_abandoned(&folder),
            |state| !state.supervisor.is_alive(),
        ) {
            remove(&folder)?;
        }
    }
    let folder = root.join(name);
    match private_folder(&folder) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(LabError::AlreadyUp(name.to_owned()));
        }
        Err(error) => return Err(at(&folder)(error)),
    }
    fs::create_dir(folder.join("ns")).map_err(at(&folder))?;
    Ok(folder)
}

/// Returns the folder and the state of a lab that is up.
pub(crate) fn find(name: &str) -> Result<(PathBuf, LabState), LabError> {
    check_name(name)?;
    let folder = root()?.join(name);
    match read(&folder) {
        Some(state) if state.supervisor.is_alive() => Ok((folder, state)),
        _ => Err(LabError::NotUp(name.to_owned())),
    }
}

/// Returns all labs of this user that are up, sorted by name.
pub(crate) fn list() -> Result<Vec<LabState>, LabError> {
    let alive = states(&root()?)
        .into_iter()
        .filter_map(|(_, state)| state)
        .filter(|state| state.supervisor.is_alive());
    let mut all: Vec<LabState> = alive.collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// Removes a lab's folder. Succeeds if a supervisor has already removed it.
pub(crate) fn remove(folder: &Path) -> Result<(), LabError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(folder)(error)),
        _ => Ok(()),
    }
}

/// Returns `true` if the folder has not changed for 60 s. The process that began the lab is then assumed to have ended
/// before it recorded the supervisor.
fn is_abandoned(folder: &Path) -> bool {
    let age = fs::metadata(folder)
        .and_then(|meta| meta.modified())
        .ok()
        .and_then(|changed| changed.elapsed().ok());
    age.is_some_and(|age| age > Duration::from_secs(60))
}

fn states(root: &Path) -> Vec<(PathBuf, Option<LabState>)> {
    let entries = fs::read_dir(root)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    entries
        .map(|entry| (entry.path(), read(&entry.path())))
        .collect()
}

fn read(folder: &Path) -> Option<LabState> {
    let text = fs::read_to_string(folder.join("lab.json")).ok()?;
    serde_json::from_str(&text)
        .ok()
        .filter(|state: &LabState| state.schema == SCHEMA)
}

/// Returns the folder of all labs, which belongs to this user alone.
fn root() -> Result<PathBuf, LabError> {
    let user = rustix::process::geteuid().as_raw();
    let runtime = env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|path| belongs_to(path, user));
    let root = match runtime {
        Some(runtime) => runtime.join("flowcast-lab"),
        None => env::temp_dir().join(format!("flowcast-lab-{user}")),
    };
    match private_folder(&root) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(at(&root)(error)),
        _ => {}
    }
    if !belongs_to(&root, user) {
        let foreign = io::Error::new(io::ErrorKind::PermissionDenied, "belongs to another user");
        return Err(at(&root)(foreign));
    }
    Ok(root)
}

fn belongs_to(folder: &Path, user: u32) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir() && meta.uid() == user)
}

fn private_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path)
}

fn at(path: &Path) -> impl Fn(io::Error) -> LabError {
    let path = path.to_owned();
    move |source| LabError::File {
        path: path.clone(),
        source,
    }
}
