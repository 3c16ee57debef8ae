//! The file format of captures: pcapng (draft-ietf-opsawg-pcapng), with one interface per host. Before its IP header a
//! packet has Linux's header for links without their own (LINKTYPE_LINUX_SLL,
//! <https://www.tcpdump.org/linktypes/LINKTYPE_LINUX_SLL.html>).
//!
//! Bare packets (LINKTYPE_RAW) would be shorter. But libpcap (1.10) maps that type to another number internally,
//! compares the second interface's type with it, and rejects the file.

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::name_resolution::{Ipv4Record, NameResolutionBlock, Record};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError, PcapResult};
use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

/// Whether a packet leaves the host where it is captured, or reaches it; the numbers are the format's (section 4.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    In = 1,
    Out = 2,
}

/// A capture file being written. It can be read at any time, except for data that `to` still buffers.
pub(crate) struct Pcapng<W: Write> {
    file: PcapNgWriter<W>,
}

impl<W: Write> Pcapng<W> {
    /// Begins a file with interfaces of these names, and with names for addresses.
    pub(crate) fn begin(to: W, interfaces: &[&str], names: &[([u8; 4], &str)]) -> io::Result<Pcapng<W>> {
        let file = begin(to, interfaces, names).map_err(io_error)?;
        let mut begun = Pcapng { file };
        begun.flush()?;
        Ok(begun)
    }

    /// Writes an IP packet of `original_len` bytes, of which `bytes` are kept; `at` counts from 1970, or from the
    /// beginning of a simulation.
    pub(crate) fn write(
        &mut self,
        interface_id: u32,
        at: Duration,
        direction: Direction,
        bytes: &[u8],
        original_len: u32,
    ) -> io::Result<()> {
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: at,
            original_len: original_len + COOKED as u32,
            data: Cow::Owned([&cooked(direction, bytes)[..], bytes].concat()),
            options: vec![EnhancedPacketOption::Flags(direction as u32)],
        };
        self.file.write_pcapng_block(block).map(drop).map_err(io_error)
    }

    /// Flushes buffered data.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.file.get_mut().flush()
    }

    /// The underlying writer.
    #[cfg(target_os = "linux")] // for captures of paths
    pub(crate) fn to(&mut self) -> &mut W {
        self.file.get_mut()
    }
}

/// Length of the header before the IP header.
const COOKED: usize = 16;

/// That header: whether the host sent the packet, a device without an address, and the protocol as an EtherType.
fn cooked(direction: Direction, packet: &[u8]) -> [u8; COOKED] {
    let mut head = [0; COOKED];
    head[1] = if direction == Direction::Out { 4 } else { 0 };
    // ARPHRD_NONE
    head[2..4].copy_from_slice(&0xfffe_u16.to_be_bytes());
    let six = packet.first().is_some_and(|first| first >> 4 == 6);
    head[14..].copy_from_slice(&if six { 0x86dd_u16 } else { 0x0800 }.to_be_bytes());
    head
}

fn begin<W: Write>(to: W, interfaces: &[&str], names: &[([u8; 4], &str)]) -> PcapResult<PcapNgWriter<W>> {
    let program = concat!("Paceline ", env!("CARGO_PKG_VERSION"));
    let section = SectionHeaderBlock {
        endianness: Endianness::Little,
        options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed(program))],
        ..SectionHeaderBlock::default()
    };
    let mut file = PcapNgWriter::with_section_header(to, section)?;
    for name in interfaces {
        file.write_pcapng_block(InterfaceDescriptionBlock {
            linktype: DataLink::LINUX_SLL,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfTsResol(9),
            ],
        })?;
    }
    if !names.is_empty() {
        let record = |(address, name): &([u8; 4], &str)| {
            let (ip_addr, name) = (Cow::Owned(address.to_vec()), Cow::Owned((*name).to_owned()));
            Record::Ipv4(Ipv4Record { ip_addr, names: vec![name] })
        };
        let records = names.iter().map(record).chain([Record::End]).collect();
        file.write_pcapng_block(NameResolutionBlock { records, options: vec![] })?;
    }
    Ok(file)
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}
