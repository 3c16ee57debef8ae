//! TFRC: paced datagrams, reports from the receiver, sans-I/O, around any rate controller.
//!
//! There is no retransmission: packets are numbered as they are sent. The receiver measures the loss event rate and the
//! receive rate (RFC 5348 sections 5 and 6), the sender measures round-trip times. From these the controller computes a
//! rate, at which the sender paces (section 4).
//!
//! Start with [`TfrcSender::on_report`] and [`TfrcReceiver::on_data`]. `loss_detection` detects losses, `loss_history`
//! computes the loss event rate from them, `ns2` is ns-2's receiver.

mod config;
mod data_limited;
mod loss_detection;
mod loss_history;
mod ns2;
mod receive_rate;
mod receiver;
mod rtt;
mod sender;

pub use config::TfrcConfig;
pub use loss_history::{Fewer, IntervalWeights, LossHistory};
pub use receiver::TfrcReceiver;
pub use sender::TfrcSender;
