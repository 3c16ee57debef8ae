// The dumbbell of ../scenarios/S5.toml for ns-3: long-lived TCP flows that pace, through one drop-tail bottleneck.
//   dumbbell --flows=8 --tcp=TcpBbr --mbps=10 --access=100 --rtt=0.05 --queue=50 --duration=30 --seed=1
// Prints one line of key=value pairs. ns-3 runs as lean as it can: no trace, and no traffic control above the devices; what
// left the bottleneck is what its queue counts anyway.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <iostream>
#include <sys/resource.h>
#include <vector>

using namespace ns3;

int main(int argc, char** argv) {
    uint32_t flows = 8, queue = 50, seed = 1;
    double mbps = 10, access = 100, rtt = 0.05, duration = 30;
    std::string tcp = "TcpBbr";
    CommandLine line;
    line.AddValue("flows", "number of flows", flows);
    line.AddValue("tcp", "congestion control: a TypeId without ns3::", tcp);
    line.AddValue("mbps", "rate of the bottleneck", mbps);
    line.AddValue("access", "rate of the access links in Mbit/s", access);
    line.AddValue("rtt", "propagation there and back in seconds", rtt);
    line.AddValue("queue", "packets that the bottleneck holds", queue);
    line.AddValue("duration", "simulated seconds", duration);
    line.AddValue("seed", "seed", seed);
    line.Parse(argc, argv);
    RngSeedManager::SetSeed(seed);

    // 1000 bytes of IP packet, of which 40 are headers; an acknowledgement each; windows that never bind.
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::" + tcp)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(960));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 22));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 22));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));

    // Three hops each way; the one-way propagation lies 20 % on each access link and 60 % on the bottleneck.
    const Time oneway = Seconds(rtt / 2);
    NodeContainer routers(2), sources(flows), sinks(flows);
    InternetStackHelper stack;
    stack.Install(routers);
    stack.Install(sources);
    stack.Install(sinks);
    auto link = [](double rate, Time delay, uint32_t packets) {
        PointToPointHelper helper;
        helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(rate * 1e6))));
        helper.SetChannelAttribute("Delay", TimeValue(delay));
        helper.DisableFlowControl(); // or there were FQ-CoDel above the device, and drops that its queue does not count
        helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(PACKETS, packets)));
        return helper;
    };
    PointToPointHelper narrow = link(mbps, oneway * 0.6, queue), wide = link(access, oneway * 0.2, 100000);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    auto number = [&](const NetDeviceContainer& devices) {
        Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
        addresses.NewNetwork();
        return interfaces;
    };
    NetDeviceContainer bottleneck = narrow.Install(routers);
    number(bottleneck);

    Ptr<UniformRandomVariable> starts = CreateObject<UniformRandomVariable>();
    std::vector<Ptr<PacketSink>> received;
    for (uint32_t i = 0; i < flows; ++i) {
        number(wide.Install(sources.Get(i), routers.Get(0)));
        const Ipv4Address to = number(wide.Install(routers.Get(1), sinks.Get(i))).GetAddress(1);
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(to, 5000));
        bulk.Install(sources.Get(i)).Start(Seconds(starts->GetValue(0, 1)));
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
        received.push_back(DynamicCast<PacketSink>(sink.Install(sinks.Get(i)).Get(0)));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Simulator::Stop(Seconds(duration));
    Simulator::Run();

    Ptr<Queue<Packet>> held = DynamicCast<PointToPointNetDevice>(bottleneck.Get(0))->GetQueue();
    double sum = 0, squares = 0;
    for (const auto& sink : received) {
        const double bytes = static_cast<double>(sink->GetTotalRx());
        sum += bytes;
        squares += bytes * bytes;
    }
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    std::cout << "delivered=" << held->GetTotalReceivedPackets() - held->GetNPackets()
              << " drops=" << held->GetTotalDroppedPackets() << " goodput_bps=" << 8 * sum / duration
              << " jain=" << sum * sum / (flows * squares) << " peak_kb=" << used.ru_maxrss << std::endl;
    Simulator::Destroy();
}
