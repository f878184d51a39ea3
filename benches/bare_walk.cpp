// The least that a replay without contention has to do: a halo on a 2D torus walked over flat arrays, all costs constants.
// `cargo xtask bench` measures the walk beside it. Written for this project, when the replay was profiled.
//
//   bare_walk RANKS ITERATIONS RUNS    prints messages a second (median of the runs) and the end in microseconds
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
using namespace std;
struct Op { uint32_t kind : 2, slot : 30; };  // 0 compute, 1 send, 2 receive
int main(int c, char **v) {
  int P = atoi(v[1]), I = atoi(v[2]), R = atoi(v[3]), w = (int)sqrt((double)P), h = P / w;
  vector<vector<Op>> ops(P);
  auto id = [&](int x, int y) { return ((y + h) % h) * w + (x + w) % w; };
  const int dx[4] = {1, -1, 0, 0}, dy[4] = {0, 0, 1, -1};
  auto slot = [&](int it, int r, int d) { return (uint32_t)(((uint64_t)r * I + it) * 4 + d); };
  for (int r = 0; r < P; r++) for (int i = 0; i < I; i++) {
    ops[r].push_back({0, 0});
    for (int d = 0; d < 4; d++) ops[r].push_back({1, slot(i, r, d)});
    for (int d = 0; d < 4; d++) ops[r].push_back({2, slot(i, id(r % w + dx[d], r / w + dy[d]), d ^ 1)});
  }
  size_t N = (size_t)P * I * 4; vector<double> arr(N); vector<uint32_t> at(P); vector<double> t(P); vector<int32_t> waiter(N), queue; vector<double> speeds;
  double end = 0;
  for (int k = 0; k < R; k++) {
    fill(arr.begin(), arr.end(), -1.0); fill(waiter.begin(), waiter.end(), -1); fill(at.begin(), at.end(), 0); fill(t.begin(), t.end(), 0.0); queue.clear();
    auto a = chrono::steady_clock::now();
    for (int r = P - 1; r >= 0; r--) queue.push_back(r);
    while (!queue.empty()) {
      int r = queue.back(); queue.pop_back(); double now = t[r]; uint32_t i = at[r]; const Op *o = ops[r].data(); uint32_t n = ops[r].size();
      for (; i < n; i++) {
        if (o[i].kind == 0) now += 10.0;
        else if (o[i].kind == 1) { now += 1.0; uint32_t s = o[i].slot; arr[s] = now + 5.0 + 8.0; if (waiter[s] >= 0) queue.push_back(waiter[s]); }
        else { uint32_t s = o[i].slot; if (arr[s] < 0) { waiter[s] = r; break; } now = max(now, arr[s]) + 1.0; }
      }
      t[r] = now; at[r] = i;
    }
    double s = chrono::duration<double>(chrono::steady_clock::now() - a).count(); speeds.push_back(N / s); end = *max_element(t.begin(), t.end());
  }
  sort(speeds.begin(), speeds.end()); printf("%.0f %g\n", speeds[R / 2], end);
}
