//! Options of TCP segments: a SYN's offers, and whether a segment carries a digest.

use super::super::assembler::{Alu, Cond, Label, Reg::*, Width::*};
use super::{
    END, L4, LARGEST_SHIFT, MSS, NO_SCALE, OPTION, OPTIONS, SCALE, SEGMENT_HEADER, SIGNED, SYN, UNMODIFIABLE, VALUE,
    Writer,
};

impl Writer {
    /// Iterates over a segment's options: `each` receives one at offset R8, which it must preserve, with its kind and
    /// length at `OPTION` on the stack. Jumps to `unmodifiable` if options are damaged or too many.
    fn options(&mut self, unmodifiable: Label, each: impl Fn(&mut Writer)) {
        let done = self.a.label();
        self.a.store(W, R10, OPTION, 0);
        self.a.load(W, R8, R10, L4);
        self.a.alu(Alu::Add, R8, 20);
        for _ in 0..OPTIONS {
            let [next, long] = core::array::from_fn(|_| self.a.label());
            self.a.load(W, R1, R10, END);
            self.a.jump_if(R8, Cond::Ge, R1, done);
            self.read(R8, OPTION, 1, unmodifiable);
            self.a.load(B, R1, R10, OPTION);
            self.a.jump_if(R1, Cond::Eq, 0, done);
            self.a.jump_if(R1, Cond::Ne, 1, long);
            self.a.alu(Alu::Add, R8, 1);
            self.a.jump(next);
            self.a.place(long);
            self.a.mov(R2, R8);
            self.a.alu(Alu::Add, R2, 1);
            self.a.load(W, R1, R10, END);
            self.a.jump_if(R2, Cond::Ge, R1, unmodifiable);
            self.read(R2, OPTION + 1, 1, unmodifiable);
            self.a.load(B, R1, R10, OPTION + 1);
            self.a.jump_if(R1, Cond::Lt, 2, unmodifiable);
            self.a.mov(R2, R8);
            self.a.alu(Alu::Add, R2, R1);
            self.a.load(W, R3, R10, END);
            self.a.jump_if(R2, Cond::Gt, R3, unmodifiable);
            each(self);
            self.a.load(B, R1, R10, OPTION + 1);
            self.a.alu(Alu::Add, R8, R1);
            self.a.place(next);
        }
        self.a.load(W, R1, R10, END);
        self.a.jump_if(R8, Cond::Lt, R1, unmodifiable);
        self.a.place(done);
    }

    /// Jumps to `signed` if the option is a digest that covers the window.
    fn digest(&mut self, signed: Label) {
        self.a.load(B, R1, R10, OPTION);
        for kind in SIGNED {
            self.a.jump_if(R1, Cond::Eq, i32::from(kind), signed);
        }
    }

    /// Jumps to `alone` if a segment carries a digest, or its options cannot be parsed.
    pub(super) fn not_signed(&mut self, alone: Label) {
        self.options(alone, |writer| writer.digest(alone));
    }

    /// Copies a SYN's MSS and window scale to the stack; for other segments stores that there are none.
    pub(super) fn offer(&mut self) {
        let [syn, read, unmodifiable] = core::array::from_fn(|_| self.a.label());
        self.a.store(W, R10, SCALE, NO_SCALE);
        self.a.store(W, R10, MSS, 0);
        self.a.store(W, R10, UNMODIFIABLE, 0);
        self.a.store(W, R10, VALUE, 0);
        self.a.load(B, R1, R10, SEGMENT_HEADER + 13);
        self.a.jump_if(R1, Cond::Set, SYN, syn);
        self.a.jump(read);
        self.a.place(syn);
        self.options(unmodifiable, |writer| {
            let [no_mss, no_scale, small] = core::array::from_fn(|_| writer.a.label());
            writer.digest(unmodifiable);
            // compare kind and length together, as one number
            writer.network(H, R1, OPTION);
            writer.a.jump_if(R1, Cond::Ne, 0x0204, no_mss);
            writer.a.mov(R2, R8);
            writer.a.alu(Alu::Add, R2, 2);
            writer.read(R2, VALUE, 2, unmodifiable);
            writer.network(H, R1, VALUE);
            writer.a.store(W, R10, MSS, R1);
            writer.a.place(no_mss);
            writer.network(H, R1, OPTION);
            writer.a.jump_if(R1, Cond::Ne, 0x0303, no_scale);
            writer.a.mov(R2, R8);
            writer.a.alu(Alu::Add, R2, 2);
            writer.read(R2, VALUE, 1, unmodifiable);
            writer.a.load(B, R1, R10, VALUE);
            writer.a.jump_if(R1, Cond::Le, LARGEST_SHIFT, small);
            writer.a.mov(R1, LARGEST_SHIFT);
            writer.a.place(small);
            writer.a.store(W, R10, SCALE, R1);
            writer.a.place(no_scale);
        });
        self.a.jump(read);
        self.a.place(unmodifiable);
        self.a.store(W, R10, UNMODIFIABLE, 1);
        self.a.place(read);
    }
}
