# The 802.11g home of ../scenarios/W.toml for ns-2: one download beside a film, a game and a voice, through an access point.
#   ns home.tcl wired=0.02 queue=50 duration=125 seed=1
# Prints one line of key=value pairs: data packets delivered in all, packets sent again by the download, and the process's
# peak memory in kB. 54 Mbit/s data and 6 Mbit/s basic rate, slots of 9 us, windows from 15, no RTS, four stations at 10 m;
# no trace. With all packet headers: the wireless nodes use some that they do not ask for (without, a fifth less gets through).

array set option {wired 0.02 queue 50 duration 125 seed 1}
foreach word $argv {
    lassign [split $word =] key value
    if {![info exists option($key)]} { puts stderr "unknown option $key"; exit 2 }
    set option($key) $value
}

Agent/TCP set packetSize_ 1000
Agent/TCP set window_ 100000
foreach {key value} {
    SlotTime_ 9e-6 SIFS_ 10e-6 CWMin_ 15 CWMax_ 1023 RTSThreshold_ 3000
    PreambleLength_ 96 PLCPHeaderLength_ 24 PLCPDataRate_ 6e6 dataRate_ 54Mb basicRate_ 6Mb
} { Mac/802_11 set $key $value }

set ns [new Simulator]
ns-random $option(seed)
# Mobile nodes want a trace file; it is taken away before the wired links are made, which then write nothing.
$ns trace-all [open /dev/null w]
set starts [new RNG]
$starts seed $option(seed)

# Hierarchical addresses: a domain for each server, one for the cell.
$ns node-config -addressType hierarchical
AddrParams set domain_num_ 4
AddrParams set cluster_num_ {1 1 1 1}
AddrParams set nodes_num_ {1 1 1 5}
set field [new Topography]
$field load_flatgrid 100 100
create-god 5
foreach {server domain} {web 0 game 1 voice 2} { set at($server) [$ns node $domain.0.0] }
$ns node-config -adhocRouting DSDV -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen $option(queue) \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy -topoInstance $field \
    -wiredRouting ON -agentTrace OFF -routerTrace OFF -macTrace OFF -channel [new Channel/WirelessChannel]
proc place {node x y} { $node set X_ $x; $node set Y_ $y; $node set Z_ 0 }
set at(ap) [$ns node 3.0.0]
$at(ap) random-motion 0
place $at(ap) 50 50
$ns node-config -wiredRouting OFF
foreach {station number x y} {tv 1 60 50 console 2 50 60 phone 3 40 50 laptop 4 50 40} {
    set at($station) [$ns node 3.0.$number]
    $at($station) base-station [AddrParams addr2id [$at(ap) node-addr]]
    place $at($station) $x $y
}
$ns unset traceAllFile_
foreach server {web game voice} {
    $ns duplex-link $at($server) $at(ap) 100Mb $option(wired)s DropTail
    $ns queue-limit $at($server) $at(ap) 10000
    $ns queue-limit $at(ap) $at($server) 10000
}

set sinks {}
foreach {from to size interval} {
    ap tv 1000 0.008
    game console 200 0.040
    console game 42 0.060
    voice phone 160 0.020
    phone voice 160 0.020
} {
    set sender [new Agent/UDP]
    set sink [new Agent/LossMonitor]
    $ns attach-agent $at($from) $sender
    $ns attach-agent $at($to) $sink
    $ns connect $sender $sink
    set source [new Application/Traffic/CBR]
    $source set packetSize_ $size
    $source set interval_ $interval
    $source attach-agent $sender
    $ns at [$starts uniform 0 0.02] "$source start"
    lappend sinks $sink
}
set tcp [new Agent/TCP/Newreno]
set receiver [new Agent/TCPSink]
$ns attach-agent $at(web) $tcp
$ns attach-agent $at(laptop) $receiver
$ns connect $tcp $receiver
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 10 "$ftp start"

proc finish {} {
    global ns tcp sinks
    set delivered [$tcp set ack_]
    foreach sink $sinks { incr delivered [$sink set npkts_] }
    set status [open /proc/self/status]
    regexp {VmHWM:\s+(\d+)} [read $status] -> peak
    puts "delivered=$delivered drops=[$tcp set nrexmitpack_] jain=1 peak_kb=$peak"
    exit 0
}
$ns at $option(duration) finish
$ns run
