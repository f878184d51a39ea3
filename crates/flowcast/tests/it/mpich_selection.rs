//! MPICH's selection, read as the library reads it: the first key that applies, on every level.

/// A call of an operation, with the properties that a selection tests.
#[derive(Debug, Clone)]
pub(crate) struct MpichCall {
    pub(crate) op: String,
    pub(crate) ranks: u64,
    /// Bytes to one rank, or the bytes of the vector, with elements of 8 bytes.
    pub(crate) bytes: u64,
    pub(crate) is_inter: bool,
    pub(crate) is_in_place: bool,
    pub(crate) is_commutative: bool,
    pub(crate) is_built_in: bool,
    pub(crate) is_block_regular: bool,
    /// `true` for several nodes with several consecutive ranks each.
    pub(crate) has_nodes: bool,
}

impl MpichCall {
    pub(crate) fn new(op: &str, ranks: u64, bytes: u64) -> MpichCall {
        MpichCall {
            op: op.to_owned(),
            ranks,
            bytes,
            is_inter: false,
            is_in_place: false,
            is_commutative: true,
            is_built_in: true,
            is_block_regular: true,
            has_nodes: false,
        }
    }

    fn holds(&self, key: &str) -> bool {
        let (quantity, bound) = key.split_once(['<', '=']).unwrap();
        let is = |fact: bool| fact == (bound == "yes");
        let value = match quantity {
            "collective" => return bound == self.op,
            "comm_type" => return self.is_inter == (bound == "inter"),
            "is_sendbuf_inplace" => return is(self.is_in_place),
            "is_commutative" => return is(self.is_commutative),
            "is_op_built_in" => return is(self.is_built_in),
            "is_block_regular" => return is(self.is_block_regular),
            "is_node_consecutive" => return is(self.has_nodes),
            "comm_hierarchy" => return bound == "any" || self.has_nodes,
            "algorithm" => return true,
            _ if bound == "any" => return true,
            "comm_size" if bound == "pow2" => return self.ranks.is_power_of_two(),
            "count" => return self.bytes / 8 < 1 << self.ranks.ilog2(),
            "comm_size" => self.ranks,
            "avg_msg_size" => self.bytes,
            "total_msg_size" => self.bytes * self.ranks,
            _ => panic!("MPICH knows no key {key}"),
        };
        match bound.strip_prefix('=') {
            Some(most) => value <= most.parse().unwrap(),
            None => value < bound.parse().unwrap(),
        }
    }
}

/// An object whose keys keep their order.
pub(crate) struct Ordered(pub(crate) Vec<(String, Ordered)>);

impl Ordered {
    pub(crate) fn read(text: &str) -> Ordered {
        let (whole, rest) = read(text);
        assert_eq!(rest.trim(), "");
        whole
    }

    /// Function for a call; `None` if no key applies, in which case MPICH stops.
    pub(crate) fn uses(&self, call: &MpichCall) -> Option<&str> {
        let mut at = self;
        loop {
            let (key, below) = at.0.iter().find(|(key, _)| call.holds(key))?;
            if let Some(name) = key.strip_prefix("algorithm=") {
                return Some(name);
            }
            at = below;
        }
    }
}

/// Reads one object and returns it with the text behind it.
fn read(text: &str) -> (Ordered, &str) {
    let mut entries = Vec::new();
    let mut rest = text.trim_start().strip_prefix('{').unwrap().trim_start();
    while let Some(key) = rest.strip_prefix('"') {
        let (key, behind) = key.split_once('"').unwrap();
        let (below, behind) = read(behind.trim_start().strip_prefix(':').unwrap());
        entries.push((key.to_owned(), below));
        rest = behind.trim_start().trim_start_matches(',').trim_start();
    }
    (Ordered(entries), rest.strip_prefix('}').unwrap())
}
