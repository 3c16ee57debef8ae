//! What the programs learn from SYNs: who opens, window scales, MSS.

use super::super::assembler::{Alu, Cond, Helper, Reg::*, Width::*};
use super::{ACK, FRESH, KEY, MSS, NO_SCALE, NOW, PAYLOAD, SCALE, SEGMENT_HEADER, UNMODIFIABLE, Writer};
use crate::gateway::table::{FlowState, flag};
use core::mem::offset_of;

impl Writer {
    /// R7 = a new connection, not vouched for.
    pub(super) fn fresh(&mut self) {
        self.forget(self.setting.flows);
        for at in (0..size_of::<FlowState>() as i16).step_by(8) {
            self.a.store(D, R10, FRESH + at, 0);
        }
        self.a.mov(R3, R10);
        self.a.alu(Alu::Add, R3, i32::from(FRESH));
        self.remember(self.setting.unvalidated);
        self.look_up(self.setting.unvalidated, KEY);
        self.a.jump_if(R0, Cond::Eq, 0, self.pass);
        self.a.mov(R7, R0);
    }

    /// Stores what R3 points to as the connection's entry in the map; R0 = 0 on success.
    fn remember(&mut self, map: i32) {
        self.a.map(R1, map);
        self.a.mov(R2, R10);
        self.a.alu(Alu::Add, R2, i32::from(KEY));
        self.a.mov(R4, 0);
        self.a.call(Helper::MapUpdate);
    }

    fn forget(&mut self, map: i32) {
        self.a.map(R1, map);
        self.a.mov(R2, R10);
        self.a.alu(Alu::Add, R2, i32::from(KEY));
        self.a.call(Helper::MapDelete);
    }

    /// Moves a connection of known scale, whose station acknowledges data that passed, to the map from which strangers
    /// cannot evict it: a spoofer who sees one direction alone does not know what to acknowledge.
    pub(super) fn vouch(&mut self) {
        let done = self.a.label();
        self.a.load(W, R1, R7, state!(flags));
        self.a.jump_if(R1, Cond::Set, flag::VALIDATED as i32, done);
        self.a.load(D, R1, R7, state!(bytes));
        self.a.jump_if(R1, Cond::Eq, 0, done);
        self.network(W, R1, SEGMENT_HEADER + 8);
        self.a.load(W, R2, R7, state!(highest));
        self.a.alu32(Alu::Sub, R2, R1);
        self.a.jump_if32(R2, Cond::Slt, 0, done);
        self.a.load(W, R2, R7, state!(remote_isn));
        self.a.alu32(Alu::Sub, R1, R2);
        // The SYN has the first sequence number.
        self.a.jump_if32(R1, Cond::Slt, 2, done);
        self.a.mov(R3, R7);
        self.remember(self.setting.flows);
        self.a.jump_if(R0, Cond::Ne, 0, done);
        self.forget(self.setting.unvalidated);
        self.look_up(self.setting.flows, KEY);
        self.a.jump_if(R0, Cond::Eq, 0, self.pass);
        self.a.mov(R7, R0);
        self.set_flag(flag::VALIDATED);
        self.a.place(done);
    }

    /// Handles the offer of a SYN or SYN-ACK.
    pub(super) fn syn(&mut self) {
        let down = self.is_down();
        let (mine, theirs) = if down { (flag::REMOTE_SYN, flag::LAN_SYN) } else { (flag::LAN_SYN, flag::REMOTE_SYN) };
        let isn = if down { state!(remote_isn) } else { state!(lan_isn) };
        let scale = if down { flag::REMOTE_SCALE } else { flag::LAN_SCALE };
        let [unseen, another, fresh, set, merge, no_scale, modifiable] = core::array::from_fn(|_| self.a.label());
        let [bare, unmodifiable] = core::array::from_fn(|_| self.a.label());
        self.network(W, R8, SEGMENT_HEADER + 4);
        self.a.jump_if(R7, Cond::Eq, 0, fresh);
        self.a.load(W, R1, R7, state!(flags));
        self.a.load(B, R2, R10, SEGMENT_HEADER + 13);
        self.a.mov(R3, R1);
        self.a.alu(Alu::And, R3, mine as i32);
        self.a.jump_if(R3, Cond::Eq, 0, unseen);
        self.a.load(W, R3, R7, isn);
        self.a.jump_if(R3, Cond::Ne, R8, another);
        // Retransmitted: the handshake's time is ambiguous now. If two offers differ, it is unknown which one the other
        // end accepted.
        self.a.store(D, R7, state!(handshake), 0);
        self.a.alu32(Alu::And, R1, !flag::ENDED as i32);
        self.a.store(W, R7, state!(flags), R1);
        self.a.load(W, R2, R10, SCALE);
        self.a.jump_if(R2, Cond::Eq, NO_SCALE, bare);
        self.a.mov(R3, R1);
        self.a.alu(Alu::And, R3, scale as i32);
        self.a.jump_if(R3, Cond::Eq, 0, unmodifiable);
        if !down {
            self.a.load(W, R3, R7, state!(shift));
            self.a.jump_if(R3, Cond::Ne, R2, unmodifiable);
        }
        self.a.jump(merge);
        self.a.place(bare);
        self.a.jump_if(R1, Cond::Set, scale as i32, unmodifiable);
        self.a.jump(merge);
        self.a.place(unseen);
        // a simultaneous open (RFC 9293, section 3.5)
        self.a.jump_if(R1, Cond::Set, theirs as i32, set);
        self.a.place(another);
        self.a.alu(Alu::And, R2, ACK);
        self.a.jump_if(R2, Cond::Eq, 0, fresh);
        self.a.alu(Alu::And, R1, flag::ACK as i32);
        self.a.jump_if(R1, Cond::Eq, 0, set);
        // a SYN-ACK with another number after the station has answered one: neither end would accept it
        self.a.place(unmodifiable);
        self.a.store(W, R10, UNMODIFIABLE, 1);
        self.a.jump(merge);
        self.a.place(fresh);
        self.fresh();
        self.a.place(set);
        let forgotten = if down { scale } else { scale | flag::ACK };
        let learnt = if down { mine | flag::DATA } else { mine };
        self.a.load(W, R1, R7, state!(flags));
        self.a.alu32(Alu::And, R1, !forgotten as i32);
        self.a.alu32(Alu::Or, R1, learnt as i32);
        self.a.store(W, R7, state!(flags), R1);
        self.a.store(W, R7, isn, R8);
        if down {
            self.a.load(W, R1, R10, PAYLOAD);
            self.a.alu32(Alu::Add, R8, R1);
            self.a.alu32(Alu::Add, R8, 1);
            self.a.store(W, R7, state!(highest), R8);
            self.a.store(D, R7, state!(probe), 0);
            self.answered();
        } else {
            self.a.load(D, R1, R10, NOW);
            self.a.store(D, R7, state!(handshake), R1);
            self.a.store(W, R7, state!(shift), 0);
            self.a.store(W, R7, state!(mss), 0);
        }
        self.a.place(merge);
        self.a.load(W, R2, R10, SCALE);
        self.a.jump_if(R2, Cond::Eq, NO_SCALE, no_scale);
        if !down {
            self.a.store(W, R7, state!(shift), R2);
        }
        self.set_flag(scale);
        self.a.place(no_scale);
        if !down {
            let no_mss = self.a.label();
            self.a.load(W, R1, R10, MSS);
            self.a.jump_if(R1, Cond::Eq, 0, no_mss);
            self.a.store(W, R7, state!(mss), R1);
            self.a.place(no_mss);
        }
        self.a.load(W, R1, R10, UNMODIFIABLE);
        self.a.jump_if(R1, Cond::Eq, 0, modifiable);
        self.set_flag(flag::UNMODIFIABLE);
        self.a.place(modifiable);
        self.a.load(D, R1, R10, NOW);
        self.a.store(D, R7, state!(seen), R1);
        self.a.jump(self.pass);
    }
}
