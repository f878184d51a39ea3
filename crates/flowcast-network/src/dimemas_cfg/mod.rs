//! Dimemas' machine description, the `.cfg` file, as a [`Network`].
//!
//! A `.cfg` describes the cost of a message (`T = L + S/BW`, Girona, Labarta and Badia, EuroPVM/MPI 2000), the limits on
//! messages (links of a node, buses of the network), the cost of a collective operation and the mapping of ranks. All of
//! these have a place in the network file; `docs/reference/dimemas-cfg.md` lists it field by field. Fields that have no
//! place yet are not dropped silently: [`DimemasConfig::not_modelled`] lists them.
//!
//! This library opens no files; the caller provides the files that a `.cfg` names.

mod error;
mod fields;
mod machine;
mod records;
mod tuning;
mod wide_area;

use std::io;

use flowcast_units::plain_text;

use self::{
    machine::{Environment, NodeRecord, PlacedMapping},
    records::{ConfigRecord, Records},
    tuning::{NamedFileContents, NamedFiles},
    wide_area::{Accelerators, NumberedConnection, WideAreaRecord},
};
use super::{
    file_system::FileSystem,
    machine::{Machine, wide_area::Site},
    network::{MessageRule, Network, Nic},
    sharing::Sharing,
};

pub use self::error::DimemasConfigError;

/// Opens the files that a `.cfg` names. It is called with each name as written, never with an empty one.
pub type Open<'a> = &'a mut dyn FnMut(&str) -> io::Result<Vec<u8>>;

/// A `.cfg` and all files that it names.
#[derive(Debug, Clone, PartialEq)]
pub struct DimemasConfig {
    /// The network that the models read.
    pub network: Network,
    /// Settings that would change the result in Dimemas but have no effect here: line, field, value and reason.
    pub not_modelled: Vec<String>,
}

impl DimemasConfig {
    /// Reads a `.cfg` of any version; `open` provides the files that it names.
    ///
    /// # Errors
    /// A field or record is wrong or missing, named by line and field; or a file cannot be opened or read.
    pub fn read(bytes: &[u8], open: Open) -> Result<DimemasConfig, DimemasConfigError> {
        let records = Records::parse(&text_of(bytes))?;
        let mut parts = Parts {
            not_modelled: records.skipped.clone(),
            ..Parts::default()
        };
        for line in &records.lines {
            parts.take(&line.record()?)?;
        }
        parts.finish(open)
    }
}

/// `true` if the bytes are a `.cfg`, by the first line or the first record.
pub fn is_dimemas_cfg(bytes: &[u8]) -> bool {
    let text = text_of(bytes);
    let text = text.trim_ascii_start();
    text.starts_with("#DIMEMAS_CONFIGURATION")
        || Records::parse(text).is_ok_and(|records| {
            records
                .lines
                .first()
                .is_some_and(|line| line.text.starts_with(WIDE_AREA_QUOTED))
        })
}

/// Text of a file. Invalid bytes become characters that no record contains.
fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&plain_text(bytes)).into_owned()
}

const WIDE_AREA_QUOTED: &str = "\"wide area network information\"";

/// The records, grouped by kind.
#[derive(Default)]
struct Parts {
    wide_area: Option<WideAreaRecord>,
    environments: Vec<Environment>,
    nodes: Vec<NodeRecord>,
    mappings: Vec<PlacedMapping>,
    files: Option<NamedFiles>,
    file_system: FileSystem,
    connections: Vec<NumberedConnection>,
    accelerators: Vec<Accelerators>,
    not_modelled: Vec<String>,
}

impl Parts {
    fn take(&mut self, record: &ConfigRecord) -> Result<(), DimemasConfigError> {
        match record.name {
            "wide area network information" => {
                record.put_once(&mut self.wide_area, WideAreaRecord::read(record)?)?
            }
            "environment information" => self.environments.push(Environment::read(record)?),
            "node information" => self.nodes.push(NodeRecord::read(record)?),
            "multi node information" => self.nodes.push(NodeRecord::read_multiple(record)?),
            "mapping information" => self.mappings.push(PlacedMapping::read(record)?),
            "predefined mapping information" => {
                self.mappings.push(PlacedMapping::read_predefined(record)?)
            }
            "configuration files" => record.put_once(&mut self.files, NamedFiles::read(record)?)?,
            "dedicated connection information" => self
                .connections
                .push(wide_area::dedicated_connection(record)?),
            "accelerator node information" => {
                let found = wide_area::accelerator(record)?;
                self.not_modelled.extend(found.note());
                self.accelerators.push(found);
            }
            "modules information" => self.not_modelled.extend(tuning::module(record)?),
            "file system parameters" => {
                let (found, notes) = tuning::file_system(record)?;
                self.file_system = found;
                self.not_modelled.extend(notes);
            }
            _ => return Err(record.unknown()),
        }
        Ok(())
    }

    fn finish(mut self, open: Open) -> Result<DimemasConfig, DimemasConfigError> {
        machine::check_machines(self.wide_area.as_ref(), &self.environments, &self.nodes)?;
        let machines = self
            .wide_area
            .as_ref()
            .map_or(1, |wide_area| wide_area.machines);
        let tuned = match &self.files {
            Some(files) => files.load(open, machines)?,
            None => NamedFileContents::default(),
        };
        self.not_modelled.extend_from_slice(&tuned.not_modelled);
        self.network(tuned, machines)
    }

    /// Converts the checked records into a network.
    fn network(
        mut self,
        tuned: NamedFileContents,
        machines: u32,
    ) -> Result<DimemasConfig, DimemasConfigError> {
        let (mapping, further_mappings) =
            machine::mappings(std::mem::take(&mut self.mappings), &self.nodes)?;
        if machines < 2 {
            self.nodes.iter_mut().for_each(NodeRecord::forget_wide_area);
        }
        let (latency, nodes) = machine::node_groups(&self.nodes, &self.accelerators);
        let connections = wide_area::connections(std::mem::take(&mut self.connections), machines)?;
        let wide_area = self
            .wide_area
            .as_ref()
            .map(|record| record.network(&tuned, connections))
            .unwrap_or_default();
        self.environments
            .sort_by_key(|environment| environment.machine);
        let mut environments = self.environments.into_iter();
        let environment = environments
            .next()
            .expect("the check wants an environment for each machine");
        let machine = Machine {
            buses: environment.buses,
            processors: 0,
            nodes_per_rack: 0,
            mapping,
            further_mappings,
            nodes,
            scheduler: tuned.scheduler,
            further_sites: environments
                .map(|site: Environment| Site {
                    bandwidth: Some(site.bandwidth),
                    buses: site.buses,
                })
                .collect(),
            wide_area,
            random: tuned.random,
        };
        let names = [
            environment.name,
            self.wide_area
                .map_or(String::new(), |wide_area| wide_area.name),
        ];
        let name = names
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_default();
        let network = Network {
            title: "Dimemas configuration".to_owned(),
            sharing: Sharing {
                limits: true,
                ..Sharing::default()
            },
            machine,
            collectives: tuning::collectives::table(environment.model, tuned.rows),
            file_system: self.file_system,
            ..Network::new(
                name,
                MessageRule::Dimemas,
                Nic::new(latency, environment.bandwidth),
            )
        };
        Ok(DimemasConfig {
            network,
            not_modelled: self.not_modelled,
        })
    }
}
