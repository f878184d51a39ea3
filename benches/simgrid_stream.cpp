// Steps the flows of a pattern file through SimGrid's max-min sharing, and says when each ended.
//
//   simgrid_stream PATTERN NODES BYTES_PER_SECOND > ends
//
// Each node has one link out and one link in; latency, header factors and cross traffic are switched off, so that the
// rates are those of max-min fairness over these links. Lines are `SRC -> DST SIZEB @ TIMEns|us|ms|s`, as
// `flowcast generate stream` writes them. Standard output: the end of each flow in seconds, one on each line; standard
// error: the seconds that the simulation itself took, reading and set-up excluded.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

struct Flow {
  unsigned src, dst;
  double bytes, start;
};

static double seconds(const std::string& text)
{
  size_t end;
  const double number = std::stod(text, &end);
  const std::string unit = text.substr(end);
  if (unit == "ns") return number * 1e-9;
  if (unit == "us") return number * 1e-6;
  if (unit == "ms") return number * 1e-3;
  if (unit == "s") return number;
  std::cerr << "unknown unit in " << text << "\n";
  std::exit(2);
}

static std::vector<Flow> read(const char* name)
{
  std::ifstream file(name);
  std::vector<Flow> flows;
  std::string arrow, size, at, start;
  Flow flow;
  while (file >> flow.src >> arrow >> flow.dst >> size >> at >> start) {
    flow.bytes = std::stod(size);
    flow.start = seconds(start);
    flows.push_back(flow);
  }
  return flows;
}

int main(int argc, char** argv)
{
  sg4::Engine engine(&argc, argv);
  engine.set_config("network/model:CM02");
  engine.set_config("network/crosstraffic:0");
  engine.set_config("network/TCP-gamma:0");
  engine.set_config("network/bandwidth-factor:1");
  engine.set_config("network/latency-factor:0");
  engine.set_config("network/weight-S:0");
  if (argc != 4) {
    std::cerr << "expected PATTERN NODES BYTES_PER_SECOND\n";
    return 2;
  }
  const std::vector<Flow> flows = read(argv[1]);
  const unsigned nodes = std::stoul(argv[2]);
  const double rate = std::stod(argv[3]);
  auto* zone = sg4::create_star_zone("star");
  std::vector<sg4::Host*> hosts;
  for (unsigned node = 0; node < nodes; node++) {
    const std::string name = std::to_string(node);
    auto* host = zone->create_host(name, 1e9);
    auto* out = zone->create_link("out" + name, rate)->set_latency(0)->seal();
    auto* in = zone->create_link("in" + name, rate)->set_latency(0)->seal();
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {sg4::LinkInRoute(out)}, false);
    zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, {sg4::LinkInRoute(in)}, false);
    hosts.push_back(host);
  }
  zone->seal();
  std::vector<double> ends(flows.size());
  sg4::Actor::create("source", hosts[0], [&flows, &hosts, &ends]() {
    std::vector<sg4::CommPtr> under_way;
    for (const Flow& flow : flows) {
      const double now = sg4::Engine::get_clock();
      if (flow.start > now)
        sg4::this_actor::sleep_for(flow.start - now);
      under_way.push_back(sg4::Comm::sendto_async(hosts[flow.src], hosts[flow.dst], flow.bytes));
    }
    for (size_t flow = 0; flow < under_way.size(); flow++) {
      under_way[flow]->wait();
      ends[flow] = under_way[flow]->get_finish_time();
    }
  });
  const auto begin = std::chrono::steady_clock::now();
  engine.run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  for (const double end : ends)
    std::printf("%.12g\n", end);
  std::fprintf(stderr, "%.6f\n", took.count());
  return 0;
}
