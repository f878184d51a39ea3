// Runs one set of flows through a zone of SimGrid (fat tree, torus or Dragonfly) under max-min sharing.
//
//   simgrid_zones CASE [--routes | RUNS] > ends
//
// Built and called by simgrid_zones.py:  g++ -O2 -std=c++17 simgrid_zones.cpp -o simgrid-zones -lsimgrid
//
// CASE is a text: the zone as SimGrid's own topo_parameters, one of
//   fat-tree LEVELS;DOWN,..;UP,..;CABLES,..
//   torus SIDE,..
//   dragonfly GROUPS,BLUE;CHASSIS,BLACK;ROUTERS,GREEN;NODES
// then the rate of a cable in bytes a second, the number of flows, and `SRC DST BYTES` for each. All flows start at once. Links
// have a direction each (SPLITDUPLEX) and no latency; factors, windows and cross traffic are switched off, and precisions are
// as fine as doubles allow, so that rates are those of max-min fairness.
//
// Standard output: the end of each flow in seconds, one on each line, and with --routes the links of its way behind it. Standard
// error: the processor seconds that the flows took to be routed and simulated, the least of so many runs one after the other; the
// zone is built before.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/s4u.hpp>
#include <sstream>
#include <string>
#include <time.h>
#include <vector>

namespace sg4 = simgrid::s4u;

struct Flow {
  unsigned src, dst;
  double bytes;
};

static std::vector<sg4::Host*> hosts;

/// Numbers between commas, lists of them between semicolons.
static std::vector<std::vector<unsigned>> lists_of(const std::string& text)
{
  std::vector<std::vector<unsigned>> lists;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ';');) {
    lists.emplace_back();
    std::istringstream numbers(part);
    for (std::string number; std::getline(numbers, number, ',');)
      lists.back().push_back(std::stoul(number));
  }
  return lists;
}

static void make_zone(const std::string& shape, const std::string& parameters, double rate)
{
  const sg4::ClusterCallbacks callbacks([](sg4::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
    hosts.push_back(zone->create_host(std::to_string(id), 1e9));
    return std::make_pair(hosts.back()->get_netpoint(), static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
  });
  const auto duplex = sg4::Link::SharingPolicy::SPLITDUPLEX;
  const auto lists  = lists_of(parameters);
  sg4::NetZone* zone = nullptr;
  if (shape == "fat-tree") {
    const sg4::FatTreeParams tree(lists.at(0).at(0), lists.at(1), lists.at(2), lists.at(3));
    zone = sg4::create_fatTree_zone("zone", nullptr, tree, callbacks, rate, 0, duplex);
  } else if (shape == "torus") {
    const std::vector<unsigned long> sides(lists.at(0).begin(), lists.at(0).end());
    zone = sg4::create_torus_zone("zone", nullptr, sides, callbacks, rate, 0, duplex);
  } else if (shape == "dragonfly") {
    const auto pair = [&lists](size_t at) { return std::make_pair(lists.at(at).at(0), lists.at(at).at(1)); };
    const sg4::DragonflyParams dragonfly(pair(0), pair(1), pair(2), lists.at(3).at(0));
    zone = sg4::create_dragonfly_zone("zone", nullptr, dragonfly, callbacks, rate, 0, duplex);
  } else {
    std::cerr << "unknown zone " << shape << "\n";
    std::exit(2);
  }
  zone->seal();
}

static void print_route(const Flow& flow)
{
  std::vector<sg4::Link*> links;
  hosts[flow.src]->route_to(hosts[flow.dst], links, nullptr);
  for (const auto* link : links)
    std::printf(" %s/%.17g", link->get_cname(), link->get_bandwidth());
}

static double processor_seconds()
{
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

int main(int argc, char** argv)
{
  sg4::Engine engine(&argc, argv);
  for (const char* setting :
       {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0", "network/bandwidth-factor:1",
        "network/latency-factor:1", "network/weight-S:0", "network/loopback-bw:1e18", "maxmin/precision:1e-15",
        "surf/precision:1e-13"})
    engine.set_config(setting);
  if (argc < 2) {
    std::cerr << "expected CASE [--routes | RUNS]\n";
    return 2;
  }
  std::ifstream file(argv[1]);
  std::string shape, parameters;
  double rate;
  size_t count;
  if (!(file >> shape >> parameters >> rate >> count)) {
    std::cerr << argv[1] << ": expected a zone, a rate and a number of flows\n";
    return 2;
  }
  std::vector<Flow> flows(count);
  for (Flow& flow : flows)
    file >> flow.src >> flow.dst >> flow.bytes;
  make_zone(shape, parameters, rate);
  const bool has_routes = argc > 2 && std::string(argv[2]) == "--routes";
  const int runs        = argc > 2 && !has_routes ? std::stoi(argv[2]) : 1;
  std::vector<double> ends(count);
  double least = 1e99;
  sg4::Actor::create("source", hosts[0], [&flows, &ends, &least, runs]() {
    for (int run = 0; run < runs; run++) {
      const double begin = processor_seconds();
      const double start = sg4::Engine::get_clock();
      std::vector<sg4::CommPtr> in_flight;
      for (const Flow& flow : flows)
        in_flight.push_back(sg4::Comm::sendto_async(hosts[flow.src], hosts[flow.dst], flow.bytes));
      for (const auto& comm : in_flight)
        comm->wait();
      least = std::min(least, processor_seconds() - begin);
      // Later runs start later, which costs digits.
      for (size_t flow = 0; run == 0 && flow < in_flight.size(); flow++)
        ends[flow] = in_flight[flow]->get_finish_time() - start;
    }
  });
  engine.run();
  for (size_t flow = 0; flow < count; flow++) {
    std::printf("%.17g", ends[flow]);
    if (has_routes)
      print_route(flows[flow]);
    std::printf("\n");
  }
  std::fprintf(stderr, "%.9f\n", least);
  return 0;
}
