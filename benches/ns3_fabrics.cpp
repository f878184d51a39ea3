// Carries messages packet by packet over ns-3's point-to-point links, along ways that are given.
//
//   ns3_fabrics CASE [--ranked] > ends
//
// Built and called by ns3_fabrics.py:
//   g++ -O2 -std=c++17 ns3_fabrics.cpp -o ns3-fabrics -lns3-point-to-point -lns3-network -lns3-core
//
// CASE is a text: `links N`, and for each the two nodes, bits per second, delay in picoseconds and the ranks of both directions; `messages N`, and for each the
// start in picoseconds, its bytes, and twice how many nodes a way has and these: its own and that of its answers. Each link is ns-3's PointToPointChannel between two
// PointToPointNetDevices, each with a DropTailQueue that holds everything; what joins a queue, when it leaves and when it arrives is
// theirs. What this program adds are the ends: a node sends on what it gets to the next node of the packet's way (a switch stores a
// packet before it forwards it), a source writes all packets of a message to its device at the message's start, and a destination
// answers every second packet, and the last, with a frame without payload. Frames are 90 bytes longer
// than their payload of at most 1448 bytes; 2 of these are the header of ns-3's devices.
//
// Frames that arrive at one instant go on in the order of ns-3's events, with --ranked in that of the ranks of their links.
//
// Standard output: for each message when its last packet had arrived, in picoseconds; then the number of frames sent over links.
// Standard error: the processor seconds that the simulation took.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <ns3/core-module.h>
#include <ns3/drop-tail-queue.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-channel.h>
#include <ns3/point-to-point-net-device.h>
#include <string>
#include <time.h>
#include <vector>

using namespace ns3;

static const uint32_t segment = 1448, overhead = 90, device_header = 2;

struct Message {
  int64_t start;
  uint64_t bytes;
  std::vector<uint32_t> way, back;
  uint32_t packets, came;
  int64_t end;
};

static std::vector<Message> messages;
static std::map<std::pair<uint32_t, uint32_t>, Ptr<PointToPointNetDevice>> devices;
static std::map<Ptr<NetDevice>, uint32_t> ranks;
static uint64_t frames;
static bool is_ranked;

/// Whose packet it is and how far it has come.
class Label : public Tag
{
public:
  uint32_t message = 0, hop = 0;
  bool is_answer = false;

  static TypeId GetTypeId()
  {
    static TypeId id = TypeId("Label").SetParent<Tag>().AddConstructor<Label>();
    return id;
  }
  TypeId GetInstanceTypeId() const override { return GetTypeId(); }
  uint32_t GetSerializedSize() const override { return 9; }
  void Serialize(TagBuffer to) const override
  {
    to.WriteU32(message);
    to.WriteU32(hop);
    to.WriteU8(is_answer);
  }
  void Deserialize(TagBuffer from) override
  {
    message   = from.ReadU32();
    hop       = from.ReadU32();
    is_answer = from.ReadU8();
  }
  void Print(std::ostream& to) const override { to << message << "/" << hop; }
};

static const std::vector<uint32_t>& way_of(const Label& label)
{
  const Message& message = messages[label.message];
  return label.is_answer ? message.back : message.way;
}

static void send(Ptr<Packet> packet, const Label& label)
{
  const auto& way = way_of(label);
  packet->AddPacketTag(label);
  const auto& device = devices.at({way[label.hop], way[label.hop + 1]});
  if (!device->Send(packet, device->GetBroadcast(), 0x0800)) {
    std::cerr << "a packet was dropped\n";
    std::exit(1);
  }
  frames++;
}

static void send_frame(uint32_t payload, const Label& label)
{
  send(Create<Packet>(payload + overhead - device_header), label);
}

static void start(uint32_t number)
{
  Label label;
  label.message = number;
  uint64_t left = messages[number].bytes;
  for (uint32_t packet = 0; packet < messages[number].packets; packet++) {
    const uint32_t payload = std::min<uint64_t>(left, segment);
    send_frame(payload, label);
    left -= payload;
  }
}

static void arrive(const Label& label)
{
  Message& message = messages[label.message];
  message.came++;
  if (message.came == message.packets)
    message.end = Simulator::Now().GetPicoSeconds();
  if (message.came % 2 == 0 || message.came == message.packets) {
    Label answer;
    answer.message   = label.message;
    answer.is_answer = true;
    send_frame(0, answer);
  }
}

static void go_on(Ptr<Packet> packet, Label label)
{
  label.hop++;
  if (label.hop + 1 < way_of(label).size())
    send(packet, label);
  else if (!label.is_answer)
    arrive(label);
}

struct Arrival {
  uint32_t rank;
  Ptr<Packet> packet;
  Label label;
};

static std::vector<Arrival> arrivals;

/// All arrivals of this instant, which are known by now: no delay is 0.
static void settle()
{
  std::vector<Arrival> all;
  all.swap(arrivals);
  std::stable_sort(all.begin(), all.end(), [](const Arrival& a, const Arrival& b) { return a.rank < b.rank; });
  for (const Arrival& arrival : all)
    go_on(arrival.packet, arrival.label);
}

static bool receive(Ptr<NetDevice> device, Ptr<const Packet> packet, uint16_t, const Address&)
{
  Ptr<Packet> copy = packet->Copy();
  Label label;
  copy->RemovePacketTag(label);
  if (!is_ranked) {
    go_on(copy, label);
    return true;
  }
  if (arrivals.empty())
    Simulator::ScheduleNow(&settle);
  arrivals.push_back({ranks.at(device), copy, label});
  return true;
}

/// What a link is, in both directions.
struct Cable {
  uint32_t ends[2];
  uint64_t rate;
  int64_t delay;
  uint32_t ranks[2];
};

static void join(std::map<uint32_t, Ptr<Node>>& nodes, const Cable& cable)
{
  Ptr<PointToPointChannel> channel = CreateObject<PointToPointChannel>();
  channel->SetAttribute("Delay", TimeValue(PicoSeconds(cable.delay)));
  for (const int end : {0, 1}) {
    auto& node = nodes[cable.ends[end]];
    if (!node)
      node = CreateObject<Node>();
    Ptr<PointToPointNetDevice> device = CreateObject<PointToPointNetDevice>();
    Ptr<DropTailQueue<Packet>> queue  = CreateObject<DropTailQueue<Packet>>();
    queue->SetMaxSize(QueueSize("1000000000p"));
    device->SetAddress(Mac48Address::Allocate());
    device->SetDataRate(DataRate(cable.rate));
    device->SetQueue(queue);
    device->Attach(channel);
    node->AddDevice(device);
    device->SetReceiveCallback(MakeCallback(&receive));
    devices[{cable.ends[end], cable.ends[1 - end]}] = device;
    // What arrives here comes in the other direction.
    ranks[device] = cable.ranks[1 - end];
  }
}

static double processor_seconds()
{
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

int main(int argc, char** argv)
{
  Time::SetResolution(Time::PS);
  is_ranked = argc == 3 && std::string(argv[2]) == "--ranked";
  std::ifstream file(argc > 1 ? argv[1] : "");
  std::string word;
  size_t count;
  if (!(file >> word >> count)) {
    std::cerr << "expected CASE [--ranked]\n";
    return 2;
  }
  std::map<uint32_t, Ptr<Node>> nodes;
  for (size_t link = 0; link < count; link++) {
    Cable cable;
    file >> cable.ends[0] >> cable.ends[1] >> cable.rate >> cable.delay >> cable.ranks[0] >> cable.ranks[1];
    join(nodes, cable);
  }
  file >> word >> count;
  messages.resize(count);
  for (size_t number = 0; number < count; number++) {
    Message& message = messages[number];
    file >> message.start >> message.bytes;
    for (auto* way : {&message.way, &message.back}) {
      size_t length;
      file >> length;
      way->resize(length);
      for (uint32_t& node : *way)
        file >> node;
    }
    message.packets = (message.bytes + segment - 1) / segment;
    message.came    = 0;
    Simulator::Schedule(PicoSeconds(message.start), &start, number);
  }
  const double begin = processor_seconds();
  Simulator::Run();
  const double took = processor_seconds() - begin;
  for (const Message& message : messages)
    std::printf("%lld\n", static_cast<long long>(message.end));
  std::printf("%llu\n", static_cast<unsigned long long>(frames));
  std::fprintf(stderr, "%.9f\n", took);
  Simulator::Destroy();
  return 0;
}
