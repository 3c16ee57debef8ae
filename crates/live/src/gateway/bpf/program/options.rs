//! Options of TCP segments: what a SYN offers, and whether a segment is signed.

use super::super::assembler::{Alu, Cond, Label, Reg::*, Width::*};
use super::{END, L4, LARGEST_SHIFT, MSS, NO_SCALE, ODD, OPTION, OPTIONS, SCALE, SIGNED, VALUE, Writer};

impl Writer {
    /// Goes through a segment's options: `each` finds one at R8, which it leaves alone, its kind and length at `OPTION` on
    /// the frame. Goes to `odd` with options that cannot be read or are too many.
    fn options(&mut self, odd: Label, each: impl Fn(&mut Writer)) {
        let done = self.a.label();
        self.a.store(W, R10, OPTION, 0);
        self.a.load(W, R8, R10, L4);
        self.a.alu(Alu::Add, R8, 20);
        for _ in 0..OPTIONS {
            let [next, long] = core::array::from_fn(|_| self.a.label());
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
            each(self);
            self.a.load(B, R1, R10, OPTION + 1);
            self.a.alu(Alu::Add, R8, R1);
            self.a.place(next);
        }
        self.a.load(W, R1, R10, END);
        self.a.jump_if(R8, Cond::Lt, R1, odd);
        self.a.place(done);
    }

    /// Goes to `signed` with an option whose digest covers the window.
    fn digest(&mut self, signed: Label) {
        self.a.load(B, R1, R10, OPTION);
        for kind in SIGNED {
            self.a.jump_if(R1, Cond::Eq, i32::from(kind), signed);
        }
    }

    /// Goes to `alone` with a segment that is signed, or of which that cannot be told.
    pub(super) fn not_signed(&mut self, alone: Label) {
        self.options(alone, |writer| writer.digest(alone));
    }

    /// Reads MSS and window scale of a SYN onto the frame.
    pub(super) fn offer(&mut self) {
        let [read, odd] = core::array::from_fn(|_| self.a.label());
        self.a.store(W, R10, SCALE, NO_SCALE);
        self.a.store(W, R10, MSS, 0);
        self.a.store(W, R10, ODD, 0);
        self.a.store(W, R10, VALUE, 0);
        self.options(odd, |writer| {
            let [no_mss, no_scale, small] = core::array::from_fn(|_| writer.a.label());
            writer.digest(odd);
            // Kind and length together, as they lie there.
            writer.network(H, R1, OPTION);
            writer.a.jump_if(R1, Cond::Ne, 0x0204, no_mss);
            writer.a.mov(R2, R8);
            writer.a.alu(Alu::Add, R2, 2);
            writer.read(R2, VALUE, 2, odd);
            writer.network(H, R1, VALUE);
            writer.a.store(W, R10, MSS, R1);
            writer.a.place(no_mss);
            writer.network(H, R1, OPTION);
            writer.a.jump_if(R1, Cond::Ne, 0x0303, no_scale);
            writer.a.mov(R2, R8);
            writer.a.alu(Alu::Add, R2, 2);
            writer.read(R2, VALUE, 1, odd);
            writer.a.load(B, R1, R10, VALUE);
            writer.a.jump_if(R1, Cond::Le, LARGEST_SHIFT, small);
            writer.a.mov(R1, LARGEST_SHIFT);
            writer.a.place(small);
            writer.a.store(W, R10, SCALE, R1);
            writer.a.place(no_scale);
        });
        self.a.jump(read);
        self.a.place(odd);
        self.a.store(W, R10, ODD, 1);
        self.a.place(read);
    }
}
