//! The file format of captures: pcapng (draft-ietf-opsawg-pcapng), one interface a host, packets that begin with their IP
//! header.

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::name_resolution::{Ipv4Record, NameResolutionBlock, Record};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError, PcapResult};
use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

/// Whether a packet leaves the host at which it is captured or reaches it; the numbers are the format's (section 4.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    In = 1,
    Out = 2,
}

/// A capture file that is being written. It can be read at any time, but for what `to` still holds.
pub(crate) struct Pcapng<W: Write> {
    file: PcapNgWriter<W>,
}

impl<W: Write> Pcapng<W> {
    /// Begins a file with interfaces of these names, and names of addresses.
    pub(crate) fn begin(to: W, interfaces: &[&str], names: &[([u8; 4], &str)]) -> io::Result<Pcapng<W>> {
        let file = begin(to, interfaces, names).map_err(io_error)?;
        let mut begun = Pcapng { file };
        begun.flush()?;
        Ok(begun)
    }

    /// Writes a packet of `original_len` bytes, of which `bytes` are kept; `at` counts from 1970, or from the beginning of
    /// a simulation.
    pub(crate) fn write(
        &mut self,
        interface_id: u32,
        at: Duration,
        way: Way,
        bytes: &[u8],
        original_len: u32,
    ) -> io::Result<()> {
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: at,
            original_len,
            data: Cow::Borrowed(bytes),
            options: vec![EnhancedPacketOption::Flags(way as u32)],
        };
        self.file.write_pcapng_block(block).map(drop).map_err(io_error)
    }

    /// Hands on what is still in memory.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.file.get_mut().flush()
    }

    /// Where it is written to.
    #[cfg(target_os = "linux")] // for captures of paths
    pub(crate) fn to(&mut self) -> &mut W {
        self.file.get_mut()
    }
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
            linktype: DataLink::RAW,
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
