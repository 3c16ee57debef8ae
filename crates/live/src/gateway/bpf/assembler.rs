//! A small BPF assembler with labels (instructions: RFC 9669; encoding: `linux/bpf.h`).
//!
//! What it cannot express the kernel's verifier would reject anyway: every jump is forward, every register is valid.

/// A register: R0 holds a result; R1 to R5 hold arguments and are clobbered by a call; R6 to R9 are preserved; R10 is
/// the end of the stack frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "they are numbered")]
pub enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// Second operand of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// A sign-extended number.
    Imm(i32),
}

impl From<Reg> for Operand {
    fn from(reg: Reg) -> Operand {
        Operand::Reg(reg)
    }
}

impl From<i32> for Operand {
    fn from(number: i32) -> Operand {
        Operand::Imm(number)
    }
}

/// Size of a memory access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Width {
    /// 1 byte.
    B = 0x10,
    /// 2 bytes.
    H = 0x08,
    /// 4 bytes.
    W = 0x00,
    /// 8 bytes.
    D = 0x18,
}

/// An arithmetic operation (`BPF_ALU`, `BPF_ALU64`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[expect(missing_docs, reason = "the field's names")]
pub enum Alu {
    Add = 0x00,
    Sub = 0x10,
    Div = 0x30,
    Or = 0x40,
    And = 0x50,
    Lsh = 0x60,
    Rsh = 0x70,
    Mov = 0xb0,
}

/// A condition (`BPF_JMP`, `BPF_JMP32`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Cond {
    /// Equal.
    Eq = 0x10,
    /// Greater, unsigned.
    Gt = 0x20,
    /// Greater or equal, unsigned.
    Ge = 0x30,
    /// Any bit in common.
    Set = 0x40,
    /// Not equal.
    Ne = 0x50,
    /// Less, unsigned.
    Lt = 0xa0,
    /// Less or equal, unsigned.
    Le = 0xb0,
    /// Greater, signed.
    Sgt = 0x60,
    /// Less, signed.
    Slt = 0xc0,
}

/// A kernel helper function (`enum bpf_func_id`). None of these is restricted to GPL programs (`bpf_ktime_get_ns` since
/// Linux 5.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Helper {
    /// `bpf_map_lookup_elem(map, key)`.
    MapLookup = 1,
    /// `bpf_map_update_elem(map, key, value, flags)`.
    MapUpdate = 2,
    /// `bpf_map_delete_elem(map, key)`.
    MapDelete = 3,
    /// `bpf_ktime_get_ns()`.
    KtimeGetNs = 5,
    /// `bpf_skb_store_bytes(skb, offset, from, len, flags)`.
    SkbStoreBytes = 9,
    /// `bpf_l4_csum_replace(skb, offset, from, to, flags)`.
    L4CsumReplace = 11,
    /// `bpf_skb_load_bytes(skb, offset, to, len)`.
    SkbLoadBytes = 26,
}

/// A jump target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label(usize);

/// `struct bpf_insn`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// A program under construction.
#[derive(Debug, Default)]
pub struct Assembler {
    instructions: Vec<Instruction>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

const LD: u8 = 0x00;
const LDX: u8 = 0x01;
const ST: u8 = 0x02;
const STX: u8 = 0x03;
const ALU: u8 = 0x04;
const JMP: u8 = 0x05;
const JMP32: u8 = 0x06;
const ALU64: u8 = 0x07;
const MEM: u8 = 0x60;
const REGISTER: u8 = 0x08;
/// `BPF_PSEUDO_MAP_FD`.
const MAP_FD: u8 = 1;

impl Assembler {
    /// An empty program.
    #[must_use]
    pub fn new() -> Assembler {
        Assembler::default()
    }

    /// Creates a label, which must be placed once.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Places a label here.
    pub fn place(&mut self, label: Label) {
        debug_assert!(self.labels[label.0].is_none(), "a label has one place");
        self.labels[label.0] = Some(self.instructions.len());
    }

    fn push(&mut self, code: u8, dst: Reg, src: u8, offset: i16, immediate: i32) {
        // Two bit fields of four bits, destination first: the byte order decides which half of the byte is first.
        let registers = if cfg!(target_endian = "big") { (dst as u8) << 4 | src } else { dst as u8 | src << 4 };
        self.instructions.push(Instruction { code, registers, offset, immediate });
    }

    fn operation(&mut self, code: u8, dst: Reg, operand: Operand) {
        match operand {
            Operand::Reg(src) => self.push(code | REGISTER, dst, src as u8, 0, 0),
            Operand::Imm(number) => self.push(code, dst, 0, 0, number),
        }
    }

    /// `dst = dst OP operand`, 64 bits.
    pub fn alu(&mut self, alu: Alu, dst: Reg, operand: impl Into<Operand>) {
        self.operation(ALU64 | alu as u8, dst, operand.into());
    }

    /// The same with 32 bits; the upper half becomes zero.
    pub fn alu32(&mut self, alu: Alu, dst: Reg, operand: impl Into<Operand>) {
        self.operation(ALU | alu as u8, dst, operand.into());
    }

    /// `dst = operand`.
    pub fn mov(&mut self, dst: Reg, operand: impl Into<Operand>) {
        self.alu(Alu::Mov, dst, operand);
    }

    /// Converts the lowest `bits` (16 or 32) of `dst` between network and host byte order.
    pub fn swap(&mut self, dst: Reg, bits: i32) {
        self.push(ALU | 0xd0 | REGISTER, dst, 0, 0, bits);
    }

    /// `dst = *(base + offset)`.
    pub fn load(&mut self, width: Width, dst: Reg, base: Reg, offset: i16) {
        self.push(LDX | MEM | width as u8, dst, base as u8, offset, 0);
    }

    /// `*(base + offset) = value`.
    pub fn store(&mut self, width: Width, base: Reg, offset: i16, value: impl Into<Operand>) {
        match value.into() {
            Operand::Reg(src) => self.push(STX | MEM | width as u8, base, src as u8, offset, 0),
            Operand::Imm(number) => self.push(ST | MEM | width as u8, base, 0, offset, number),
        }
    }

    /// `dst` = the map with this descriptor.
    pub fn map(&mut self, dst: Reg, descriptor: i32) {
        self.push(LD | Width::D as u8, dst, MAP_FD, 0, descriptor);
        self.push(0, Reg::R0, 0, 0, 0);
    }

    /// Calls a helper.
    pub fn call(&mut self, helper: Helper) {
        self.push(JMP | 0x80, Reg::R0, 0, 0, helper as i32);
    }

    /// Jumps to a label.
    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.push(JMP, Reg::R0, 0, 0, 0);
    }

    /// Jumps to a label if `reg COND operand`, with 64 bits.
    pub fn jump_if(&mut self, reg: Reg, cond: Cond, operand: impl Into<Operand>, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.operation(JMP | cond as u8, reg, operand.into());
    }

    /// The same with the lower 32 bits.
    pub fn jump_if32(&mut self, reg: Reg, cond: Cond, operand: impl Into<Operand>, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.operation(JMP32 | cond as u8, reg, operand.into());
    }

    /// Ends the program; R0 is its return value.
    pub fn exit(&mut self) {
        self.push(JMP | 0x90, Reg::R0, 0, 0, 0);
    }

    /// The finished program.
    ///
    /// # Errors
    /// If a label was not placed, or is too far away: an error in the program's source.
    pub fn finish(mut self) -> Result<Vec<Instruction>, String> {
        for (at, label) in self.jumps {
            let place = self.labels[label.0].ok_or_else(|| format!("instruction {at} jumps nowhere"))?;
            let distance = place as i64 - at as i64 - 1;
            self.instructions[at].offset =
                i16::try_from(distance).map_err(|_| format!("instruction {at} jumps too far"))?;
        }
        Ok(self.instructions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    fn bytes(program: &[Instruction]) -> Vec<[u8; 8]> {
        let encode = |i: &Instruction| {
            let [a, b] = i.offset.to_le_bytes();
            let [c, d, e, f] = i.immediate.to_le_bytes();
            [i.code, i.registers, a, b, c, d, e, f]
        };
        program.iter().map(encode).collect()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn instructions_are_those_of_the_kernels_header() {
        let mut a = Assembler::new();
        let end = a.label();
        a.mov(Reg::R6, Reg::R1);
        a.load(Width::W, Reg::R2, Reg::R6, 16);
        a.jump_if(Reg::R2, Cond::Ne, 8, end);
        a.store(Width::D, Reg::R10, -8, 0);
        a.alu32(Alu::Sub, Reg::R2, Reg::R3);
        a.swap(Reg::R2, 16);
        a.map(Reg::R1, 5);
        a.call(Helper::MapLookup);
        a.jump_if32(Reg::R0, Cond::Slt, Reg::R2, end);
        a.place(end);
        a.exit();
        let expected = [
            [0xbf, 0x16, 0, 0, 0, 0, 0, 0],
            [0x61, 0x62, 16, 0, 0, 0, 0, 0],
            [0x55, 0x02, 7, 0, 8, 0, 0, 0],
            [0x7a, 0x0a, 0xf8, 0xff, 0, 0, 0, 0],
            [0x1c, 0x32, 0, 0, 0, 0, 0, 0],
            [0xdc, 0x02, 0, 0, 16, 0, 0, 0],
            [0x18, 0x11, 0, 0, 5, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 0, 0],
            [0x85, 0, 0, 0, 1, 0, 0, 0],
            [0xce, 0x20, 0, 0, 0, 0, 0, 0],
            [0x95, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(bytes(&a.finish().unwrap()), expected);
    }

    #[test]
    fn a_jump_to_nowhere_is_refused() {
        let mut a = Assembler::new();
        let nowhere = a.label();
        a.jump(nowhere);
        assert_eq!(a.finish().unwrap_err(), "instruction 0 jumps nowhere");
    }
}
