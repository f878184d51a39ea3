//! Conversion of a script to a trace.

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
    /// Builds the trace in memory. The tag of a message encodes its purpose: 1 columns, 2 broadcasts, 3 the solution.
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

/// Adds an exchange. With two messages, the receive is posted, a blocking send follows, and then a wait for the receive. In
/// a synchronous exchange, the send is started instead, the receive blocks, and the wait is for the send.
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
