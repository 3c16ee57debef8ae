//! The kernel's own TCP: its reports about connections, and bulk flows over it.
//!
//! [`tcp_info`] reads the internals of a connection, [`sock_diag`] those of other programs' connections,
//! [`socket_owners`] finds the processes that own them; [`watch`] follows connections over time, [`flow`] sends and
//! receives in bulk, and both keep a [`log::Log`]. None of this needs root for one's own processes. Facts about the
//! kernel's interfaces are from Linux's public headers (`include/uapi/linux/{tcp,inet_diag,sock_diag,netlink}.h`) and
//! `sock_diag(7)`. Start with [`tcp_info::TcpInfo`].

pub mod flow;
pub mod log;
pub mod sock_diag;
pub mod socket_owners;
pub mod tcp_info;
mod token_bucket;
pub mod watch;
mod wire;
