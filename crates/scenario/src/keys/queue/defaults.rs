//! Defaults of the keys of queue disciplines.

use super::Limit;
use paceline_units::{Ratio, Size, Span};

pub(crate) const fn hundred_packets() -> Limit {
    Limit::Packets(100)
}
pub(crate) const fn thousand_packets() -> Limit {
    Limit::Packets(1000)
}
pub(crate) const fn fair_packets() -> Limit {
    Limit::Packets(10_240)
}
pub(crate) const fn thousand_queues() -> u32 {
    1024
}
pub(crate) const fn batch() -> u32 {
    64
}
pub(crate) const fn ethernet() -> Size {
    Size::from_bytes(14)
}
pub(crate) const fn nothing() -> Size {
    Size::ZERO
}
pub(crate) const fn mtu() -> Size {
    Size::from_bytes(1500)
}
pub(crate) const fn quantum() -> Size {
    Size::from_bytes(1514)
}
pub(crate) const fn five_ms() -> Span {
    Span::from_millis(5)
}
pub(crate) const fn fifteen_ms() -> Span {
    Span::from_millis(15)
}
pub(crate) const fn hundred_ms() -> Span {
    Span::from_millis(100)
}
pub(crate) const fn burst() -> Span {
    Span::from_millis(150)
}
pub(crate) const fn pie_alpha() -> f64 {
    0.125
}
pub(crate) const fn pie_beta() -> f64 {
    1.25
}
pub(crate) const fn kilobyte() -> Size {
    Size::from_bytes(1000)
}
pub(crate) const fn tenth() -> f64 {
    0.1
}
pub(crate) const fn tenth_share() -> Ratio {
    Ratio(0.1)
}
pub(crate) const fn hundredth() -> f64 {
    0.01
}
pub(crate) const fn nine_tenths() -> f64 {
    0.9
}
pub(crate) const fn half() -> Ratio {
    Ratio(0.5)
}
pub(crate) const fn half_second() -> Span {
    Span::from_millis(500)
}
pub(crate) const fn yes() -> bool {
    true
}
pub(crate) const fn dual_coupling() -> f64 {
    2.0
}
pub(crate) const fn ramp_range() -> Span {
    Span::from_micros(400)
}
pub(crate) const fn time_shift() -> Span {
    Span::from_millis(50)
}
