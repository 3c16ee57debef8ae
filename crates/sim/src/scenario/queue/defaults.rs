//! Defaults of the keys of queue disciplines.

use super::Limit;
use paceline_units::{Ratio, Size, Span};

pub(super) const fn hundred_packets() -> Limit {
    Limit::Packets(100)
}
pub(super) const fn thousand_packets() -> Limit {
    Limit::Packets(1000)
}
pub(super) const fn fair_packets() -> Limit {
    Limit::Packets(10_240)
}
pub(super) const fn thousand_queues() -> u32 {
    1024
}
pub(super) const fn batch() -> u32 {
    64
}
pub(super) const fn ethernet() -> Size {
    Size::from_bytes(14)
}
pub(super) const fn nothing() -> Size {
    Size::ZERO
}
pub(super) const fn mtu() -> Size {
    Size::from_bytes(1500)
}
pub(super) const fn quantum() -> Size {
    Size::from_bytes(1514)
}
pub(super) const fn five_ms() -> Span {
    Span::from_millis(5)
}
pub(super) const fn fifteen_ms() -> Span {
    Span::from_millis(15)
}
pub(super) const fn hundred_ms() -> Span {
    Span::from_millis(100)
}
pub(super) const fn burst() -> Span {
    Span::from_millis(150)
}
pub(super) const fn pie_alpha() -> f64 {
    0.125
}
pub(super) const fn pie_beta() -> f64 {
    1.25
}
pub(super) const fn kilobyte() -> Size {
    Size::from_bytes(1000)
}
pub(super) const fn tenth() -> f64 {
    0.1
}
pub(super) const fn tenth_share() -> Ratio {
    Ratio(0.1)
}
pub(super) const fn hundredth() -> f64 {
    0.01
}
pub(super) const fn nine_tenths() -> f64 {
    0.9
}
pub(super) const fn half() -> Ratio {
    Ratio(0.5)
}
pub(super) const fn half_second() -> Span {
    Span::from_millis(500)
}
pub(super) const fn yes() -> bool {
    true
}
pub(super) const fn dual_coupling() -> f64 {
    2.0
}
pub(super) const fn ramp_range() -> Span {
    Span::from_micros(400)
}
pub(super) const fn time_shift() -> Span {
    Span::from_millis(50)
}
