//! A run in one fixed order as a trace.

use flowcast_units::{Bytes, Rank};

use super::{ActionPurpose, Exchange, Script, ScriptStep};
use flowcast_program::{
    Program, TraceError,
    build::{Channel, EAGER, RankBuilder, RecordFault},
    link::link_generated,
    opcodes::Record,
    program::{MessageClass, SendMode},
};

impl Script {
    /// The trace in memory. Messages have the tag of what they are for: 1 columns, 2 broadcasts, 3 the solution.
    ///
    /// # Errors
    /// [`TraceError::Limit`] for more messages than can be numbered.
    pub fn program(&self) -> Result<Program, TraceError> {
        link_generated("hpl", self.settings().ranks(), |rank| self.build(rank))
    }

    fn build(&self, rank: Rank) -> Result<RankBuilder, RecordFault> {
        let mut builder = RankBuilder::default();
        for step in self.steps(rank) {
            match step {
                ScriptStep::Compute(time) => builder.compute(time),
                ScriptStep::Exchange(exchange) => add(&mut builder, &exchange)?,
            }
        }
        builder.finish();
        Ok(builder)
    }
}

/// Of two messages the receive is posted, the send blocks, the receive is waited for; if synchronous, it is the send that is
/// started and waited for.
fn add(builder: &mut RankBuilder, exchange: &Exchange) -> Result<(), RecordFault> {
    let channel = channel(exchange);
    let blocking = SendMode {
        synchronous: exchange.synchronous,
        ..EAGER
    };
    match (exchange.send, exchange.receive) {
        (Some(bytes), Some(_)) if exchange.synchronous => {
            let number = builder.sends();
            let started = SendMode {
                non_blocking: true,
                ..blocking
            };
            send(builder, channel, bytes, started)?;
            receive(builder, channel)?;
            builder.wait_send(number, Record::Begins)
        }
        (Some(bytes), Some(_)) => {
            let receiving = builder.channel(channel);
            let slot = builder.irecv_waited_by_slot(receiving)?;
            send(builder, channel, bytes, blocking)?;
            builder.wait_slot(slot, Record::Begins);
            Ok(())
        }
        (Some(bytes), None) => send(builder, channel, bytes, blocking),
        (None, Some(_)) => receive(builder, channel),
        (None, None) => Ok(()),
    }
}

fn send(
    builder: &mut RankBuilder,
    channel: Channel,
    bytes: u64,
    mode: SendMode,
) -> Result<(), RecordFault> {
    let class = MessageClass {
        size: Bytes(bytes),
        tag: channel.tag,
        communicator: channel.communicator,
        mode,
    };
    builder.send(channel.peer, class, Record::Begins).map(drop)
}

fn receive(builder: &mut RankBuilder, channel: Channel) -> Result<(), RecordFault> {
    let channel = builder.channel(channel);
    builder.recv(channel, Record::Begins)
}

fn channel(exchange: &Exchange) -> Channel {
    Channel {
        peer: Rank(exchange.partner),
        tag: match exchange.purpose {
            ActionPurpose::Swap => 1,
            ActionPurpose::Broadcast => 2,
            ActionPurpose::Solution => 3,
        },
        communicator: 1,
    }
}
