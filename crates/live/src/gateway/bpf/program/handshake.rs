//! What the programs learn from SYNs: who opens, window scales, MSS.

use super::super::assembler::{Alu, Cond, Helper, Reg::*, Width::*};
use super::{
    ACK, END, FRESH, KEY, L4, LARGEST_SHIFT, MSS, NO_SCALE, NOW, ODD, OPTION, OPTIONS, PAYLOAD, SCALE, SEGMENT_HEADER,
    VALUE, Writer,
};
use crate::gateway::table::{FlowState, flag};
use core::mem::offset_of;

impl Writer {
    /// R7 = the connection, new.
    pub(super) fn fresh(&mut self) {
        for at in (0..size_of::<FlowState>() as i16).step_by(8) {
            self.a.store(D, R10, FRESH + at, 0);
        }
        self.a.map(R1, self.setting.flows);
        self.a.mov(R2, R10);
        self.a.alu(Alu::Add, R2, i32::from(KEY));
        self.a.mov(R3, R10);
        self.a.alu(Alu::Add, R3, i32::from(FRESH));
        self.a.mov(R4, 0);
        self.a.call(Helper::MapUpdate);
        self.look_up(self.setting.flows, KEY);
        self.a.jump_if(R0, Cond::Eq, 0, self.pass);
        self.a.mov(R7, R0);
    }

    /// A SYN or SYN-ACK: what the ends offer.
    pub(super) fn syn(&mut self) {
        let down = self.is_down();
        let (mine, theirs) = if down { (flag::REMOTE_SYN, flag::LAN_SYN) } else { (flag::LAN_SYN, flag::REMOTE_SYN) };
        let isn = if down { state!(remote_isn) } else { state!(lan_isn) };
        let scale = if down { flag::REMOTE_SCALE } else { flag::LAN_SCALE };
        self.options();
        let [unseen, another, fresh, set, merge, no_scale, no_odd] = core::array::from_fn(|_| self.a.label());
        let [bare, odd] = core::array::from_fn(|_| self.a.label());
        self.network(W, R8, SEGMENT_HEADER + 4);
        self.a.jump_if(R7, Cond::Eq, 0, fresh);
        self.a.load(W, R1, R7, state!(flags));
        self.a.load(B, R2, R10, SEGMENT_HEADER + 13);
        self.a.mov(R3, R1);
        self.a.alu(Alu::And, R3, mine as i32);
        self.a.jump_if(R3, Cond::Eq, 0, unseen);
        self.a.load(W, R3, R7, isn);
        self.a.jump_if(R3, Cond::Ne, R8, another);
        // Sent again: the handshake's time says nothing. Which of two different offers the other end has taken cannot
        // be told.
        self.a.store(D, R7, state!(handshake), 0);
        self.a.alu32(Alu::And, R1, !flag::ENDED as i32);
        self.a.store(W, R7, state!(flags), R1);
        self.a.load(W, R2, R10, SCALE);
        self.a.jump_if(R2, Cond::Eq, NO_SCALE, bare);
        self.a.mov(R3, R1);
        self.a.alu(Alu::And, R3, scale as i32);
        self.a.jump_if(R3, Cond::Eq, 0, odd);
        if !down {
            self.a.load(W, R3, R7, state!(shift));
            self.a.jump_if(R3, Cond::Ne, R2, odd);
        }
        self.a.jump(merge);
        self.a.place(bare);
        self.a.jump_if(R1, Cond::Set, scale as i32, odd);
        self.a.jump(merge);
        self.a.place(unseen);
        // A SYN from both ends at once (RFC 9293, section 3.5).
        self.a.jump_if(R1, Cond::Set, theirs as i32, set);
        self.a.place(another);
        self.a.alu(Alu::And, R2, ACK);
        self.a.jump_if(R2, Cond::Eq, 0, fresh);
        self.a.alu(Alu::And, R1, flag::ACK as i32);
        self.a.jump_if(R1, Cond::Eq, 0, set);
        // A SYN-ACK of another number after the station has answered one: neither end would take it.
        self.a.place(odd);
        self.a.store(W, R10, ODD, 1);
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
        self.a.load(W, R1, R10, ODD);
        self.a.jump_if(R1, Cond::Eq, 0, no_odd);
        self.set_flag(flag::ODD);
        self.a.place(no_odd);
        self.a.load(D, R1, R10, NOW);
        self.a.store(D, R7, state!(seen), R1);
        self.a.jump(self.pass);
    }

    /// Reads MSS and window scale of a SYN onto the frame.
    fn options(&mut self) {
        let [done, odd] = core::array::from_fn(|_| self.a.label());
        self.a.store(W, R10, SCALE, NO_SCALE);
        self.a.store(W, R10, MSS, 0);
        self.a.store(W, R10, ODD, 0);
        self.a.store(W, R10, OPTION, 0);
        self.a.store(W, R10, VALUE, 0);
        self.a.load(W, R8, R10, L4);
        self.a.alu(Alu::Add, R8, 20);
        for _ in 0..OPTIONS {
            let [next, long, no_mss, no_scale, small] = core::array::from_fn(|_| self.a.label());
            self.a.load(W, R1, R10, END);
            self.a.jump_if(R8, Cond::Ge, R1, done);
            self.read(R8, OPTION, 1, odd);
            self.a.load(B, R1, R10, OPTION);
            self.a.jump_if(R1, Cond::Eq, 0, done);
            self.a.jump_if(R1, Cond::Ne, 1, long);
            self.a.alu(Alu::Add, R8, 1);
            self.a.jump(next);
            self.a.place(long);
            self.a.mov(R2, R8);
            self.a.alu(Alu::Add, R2, 1);
            self.a.load(W, R1, R10, END);
            self.a.jump_if(R2, Cond::Ge, R1, odd);
            self.read(R2, OPTION + 1, 1, odd);
            self.a.load(B, R1, R10, OPTION + 1);
            self.a.jump_if(R1, Cond::Lt, 2, odd);
            self.a.mov(R2, R8);
            self.a.alu(Alu::Add, R2, R1);
            self.a.load(W, R3, R10, END);
            self.a.jump_if(R2, Cond::Gt, R3, odd);
            // Kind and length together, as they lie there.
            self.network(H, R1, OPTION);
            self.a.jump_if(R1, Cond::Ne, 0x0204, no_mss);
            self.a.mov(R2, R8);
            self.a.alu(Alu::Add, R2, 2);
            self.read(R2, VALUE, 2, odd);
            self.network(H, R1, VALUE);
            self.a.store(W, R10, MSS, R1);
            self.a.place(no_mss);
            self.network(H, R1, OPTION);
            self.a.jump_if(R1, Cond::Ne, 0x0303, no_scale);
            self.a.mov(R2, R8);
            self.a.alu(Alu::Add, R2, 2);
            self.read(R2, VALUE, 1, odd);
            self.a.load(B, R1, R10, VALUE);
            self.a.jump_if(R1, Cond::Le, LARGEST_SHIFT, small);
            self.a.mov(R1, LARGEST_SHIFT);
            self.a.place(small);
            self.a.store(W, R10, SCALE, R1);
            self.a.place(no_scale);
            self.a.load(B, R1, R10, OPTION + 1);
            self.a.alu(Alu::Add, R8, R1);
            self.a.place(next);
        }
        self.a.load(W, R1, R10, END);
        self.a.jump_if(R8, Cond::Ge, R1, done);
        self.a.place(odd);
        self.a.store(W, R10, ODD, 1);
        self.a.place(done);
    }
}
