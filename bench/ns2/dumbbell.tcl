# The dumbbell of ../scenarios for ns-2: long-lived TCP flows, and TFRC flows beside them, through one drop-tail bottleneck.
#   ns dumbbell.tcl flows=8 tcp=Newreno tfrc=0 mbps=10 access=100 rtt=0.05 queue=50 duration=300 seed=1
# Prints one line of key=value pairs, the last of which is the process's peak memory in kB. ns-2 runs as lean as it
# can: only the packet headers that its flows need, no trace, a monitor on the bottleneck alone (which costs nothing that
# can be measured).

array set option {flows 8 tcp Newreno tfrc 0 mbps 10 access 100 rtt 0.05 queue 50 duration 300 seed 1}
foreach word $argv {
    lassign [split $word =] key value
    if {![info exists option($key)]} { puts stderr "unknown option $key"; exit 2 }
    set option($key) $value
}

remove-all-packet-headers
add-packet-header IP TCP Flags
if {$option(tfrc) > 0} { add-packet-header TFRC TFRC_ACK RTP }

# 1000 bytes of data packet on the wire, of which ns-2 counts 40 as headers; a window that never binds; no jitter.
Agent/TCP set packetSize_ 960
Agent/TCP set window_ 100000
Agent/TCP set maxcwnd_ 0
Agent/TCP set overhead_ 0
Agent/TFRC set packetSize_ 1000
Agent/TFRC set useHeaders_ false

set ns [new Simulator]
ns-random $option(seed)
set starts [new RNG]
$starts seed $option(seed)

# Three hops each way; the one-way propagation lies 20 % on each access link and 60 % on the bottleneck.
set oneway [expr {$option(rtt) / 2.0}]
set near [expr {0.2 * $oneway}]s
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right $option(mbps)Mb [expr {0.6 * $oneway}]s DropTail
$ns queue-limit $left $right $option(queue)
$ns queue-limit $right $left $option(queue)
set monitor [$ns monitor-queue $left $right ""]

for {set i 0} {$i < $option(flows) + $option(tfrc)} {incr i} {
    set source [$ns node]
    set sink [$ns node]
    foreach {a b} [list $source $left $right $sink] {
        $ns duplex-link $a $b $option(access)Mb $near DropTail
        $ns queue-limit $a $b 100000
        $ns queue-limit $b $a 100000
    }
    if {$i >= $option(flows)} {
        set tfrc [new Agent/TFRC]
        set receiver [new Agent/TFRCSink]
        $ns attach-agent $source $tfrc
        $ns attach-agent $sink $receiver
        $ns connect $tfrc $receiver
        $ns at [$starts uniform 0 1] "$tfrc start"
        continue
    }
    set tcp($i) [new Agent/TCP/$option(tcp)]
    set receiver [new Agent/TCPSink[expr {$option(tcp) eq "Sack1" ? "/Sack1" : ""}]]
    $ns attach-agent $source $tcp($i)
    $ns attach-agent $sink $receiver
    $ns connect $tcp($i) $receiver
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $ns at [$starts uniform 0 1] "$ftp start"
}

# Jain's index is that of the TCP flows.
proc finish {} {
    global option ns tcp monitor
    set sum 0.0
    set squares 0.0
    for {set i 0} {$i < $option(flows)} {incr i} {
        set acked [$tcp($i) set ack_]
        set sum [expr {$sum + $acked}]
        set squares [expr {$squares + double($acked) * $acked}]
    }
    set jain [expr {$sum * $sum / ($option(flows) * $squares)}]
    set status [open /proc/self/status]
    regexp {VmHWM:\s+(\d+)} [read $status] -> peak
    puts "delivered=[$monitor set pdepartures_] drops=[$monitor set pdrops_] jain=$jain peak_kb=$peak"
    $ns halt
}
$ns at $option(duration) finish
$ns run
