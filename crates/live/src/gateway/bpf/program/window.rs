//! How the program for packets from stations writes the window and its checksum.

use super::super::assembler::{Alu, Cond, Helper, Label, Reg::*, Width::*};
use super::{FIELD, L4, MODE, SEGMENT_HEADER, SHIFT, Writer};
use crate::gateway::table::{Control, Counter, FlowState, LARGEST, SEGMENT};
use core::mem::offset_of;

impl Writer {
    /// Lowers the window to R1 bytes, but not below the allowed minimum; jumps to `alone` if a digest covers the
    /// segment's window.
    pub(super) fn lower(&mut self, alone: Label) {
        let (behind, offered, seen, enough, wet) =
            (self.a.label(), self.a.label(), self.a.label(), self.a.label(), self.a.label());
        // not below the bytes in flight
        self.a.load(W, R2, R7, state!(highest));
        self.network(W, R3, SEGMENT_HEADER + 8);
        self.a.alu32(Alu::Sub, R2, R3);
        self.a.jump_if32(R2, Cond::Slt, 0, behind);
        self.a.jump_if(R2, Cond::Le, R1, behind);
        self.a.mov(R1, R2);
        self.a.place(behind);
        // nor below two segments
        self.a.mov(R3, SEGMENT as i32);
        self.a.load(W, R2, R7, state!(mss));
        self.a.jump_if(R2, Cond::Eq, 0, offered);
        self.a.mov(R3, R2);
        self.a.jump_if(R3, Cond::Le, LARGEST as i32, offered);
        self.a.mov(R3, LARGEST as i32);
        self.a.place(offered);
        self.a.load(W, R2, R7, state!(segment));
        self.a.jump_if(R2, Cond::Ge, R3, seen);
        self.a.mov(R2, R3);
        self.a.place(seen);
        self.a.alu(Alu::Lsh, R2, 1);
        self.a.jump_if(R1, Cond::Ge, R2, enough);
        self.a.mov(R1, R2);
        self.a.place(enough);
        // rounded up to the scale; never above the station's own window
        self.a.load(W, R2, R10, SHIFT);
        self.a.mov(R3, 1);
        self.a.alu(Alu::Lsh, R3, R2);
        self.a.alu(Alu::Sub, R3, 1);
        self.a.alu(Alu::Add, R1, R3);
        self.a.alu(Alu::Rsh, R1, R2);
        self.network(H, R3, SEGMENT_HEADER + 14);
        self.a.jump_if(R1, Cond::Ge, R3, self.pass);
        self.a.swap(R1, 16);
        self.a.store(H, R10, FIELD, R1);
        self.a.load(W, R1, R8, offset_of!(Control, mode) as i16);
        self.a.store(W, R10, MODE, R1);
        self.not_signed(alone);
        self.count(Counter::Lowered, 1);
        self.a.load(D, R1, R7, state!(lowered));
        self.a.alu(Alu::Add, R1, 1);
        self.a.store(D, R7, state!(lowered), R1);
        self.a.load(W, R1, R10, MODE);
        self.a.alu(Alu::And, R1, Control::DRY as i32);
        self.a.jump_if(R1, Cond::Eq, 0, wet);
        self.a.jump(self.pass);
        self.a.place(wet);
        // The checksum comes first: if it is writable, so is the window before it, and both stay consistent.
        self.a.mov(R1, R6);
        self.a.load(W, R2, R10, L4);
        self.a.alu(Alu::Add, R2, 16);
        self.a.load(H, R3, R10, SEGMENT_HEADER + 14);
        self.a.load(H, R4, R10, FIELD);
        self.a.mov(R5, 2);
        self.a.call(Helper::L4CsumReplace);
        self.a.jump_if(R0, Cond::Ne, 0, self.pass);
        self.a.mov(R1, R6);
        self.a.load(W, R2, R10, L4);
        self.a.alu(Alu::Add, R2, 14);
        self.a.mov(R3, R10);
        self.a.alu(Alu::Add, R3, i32::from(FIELD));
        self.a.mov(R4, 2);
        self.a.mov(R5, 0);
        self.a.call(Helper::SkbStoreBytes);
        self.a.jump(self.pass);
    }
}
