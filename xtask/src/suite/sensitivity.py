"""Curves of `flowcast sensitivity` against linear programs that HiGHS solves: FLOWCAST FOLDER TRACE...

Without contention every time of a replay is the latest of some earlier times plus costs. So the makespan is the optimum
of a linear program: minimise it subject to `later >= earlier + cost` for each of these. The parameter is one more
variable, fixed at the value in question. Here the program is made from the records of a Dimemas trace by the rules of
LogGOPS, without any code of Flowcast's.
"""

import collections
import gzip
import json
import pathlib
import random
import subprocess
import sys

import highspy

UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
# Nanoseconds, and nanoseconds per byte.
NUMBERS = {"latency": 65_400.0, "overhead": 6_100.0, "gap": 897.0, "gap_per_byte": 8.49}
RANGES = {
    "nic.latency": "0us..1ms",
    "nic.overhead": "0us..300us",
    "nic.gap": "0us..300us",
    "nic.gap_per_byte": "0ns/B..100ns/B",
    "nic.bandwidth": "10MB/s..10GB/s",
}


def records(text):
    """By rank, the fields of its records."""
    ranks = collections.defaultdict(list)
    for line in text.splitlines():
        if line and line[0] in "123" and ":" in line:
            fields = line.split(":")
            ranks[int(fields[1])].append((int(fields[0]), fields[3:]))
    return [ranks[rank] for rank in range(max(ranks) + 1)]


class Replay:
    """Times are triples: a variable, nanoseconds behind it, and how often the parameter is added."""

    def __init__(self, ranks, field):
        self.solver = highspy.Highs()
        self.solver.setOptionValue("output_flag", False)
        self.field = "gap_per_byte" if field == "bandwidth" else field
        self.x = self.variable()
        start = self.variable()
        self.solver.changeColBounds(start, 0.0, 0.0)
        self.ranks, count = ranks, len(ranks)
        self.time, self.free = [(start, 0.0, 0.0)] * count, [(start, 0.0, 0.0)] * count
        self.at = [0] * count
        self.sent, self.posts = collections.Counter(), collections.Counter()
        self.open = collections.defaultdict(list)
        self.arrival, self.ready, self.pending, self.posted, self.release = {}, {}, {}, {}, {}

    def variable(self):
        self.solver.addVar(0.0, highspy.kHighsInf)
        return self.solver.getNumCol() - 1

    def cost(self, name, times=1.0):
        return (0.0, times) if name == self.field else (NUMBERS[name] * times, 0.0)

    @staticmethod
    def plus(time, *costs):
        return (time[0], time[1] + sum(c[0] for c in costs), time[2] + sum(c[1] for c in costs))

    def later(self, *times):
        found = self.variable()
        for variable, nanoseconds, often in times:
            self.solver.addRow(nanoseconds, highspy.kHighsInf, 3, [found, variable, self.x], [1.0, -1.0, -often])
        return (found, 0.0, 0.0)

    def transfer(self, slot, size):
        begin = self.later(self.ready[slot], self.posted[slot])
        payload = self.cost("gap_per_byte", max(size - 1, 0))
        self.arrival[slot] = self.plus(begin, self.cost("latency"), payload)
        self.release[slot] = self.plus(begin, payload)

    def post(self, slot, time):
        if slot not in self.posted:
            self.posted[slot] = time
            if slot in self.pending:
                self.transfer(slot, self.pending[slot])

    def step(self, rank):
        """Whether the rank could do its next record."""
        kind, fields = self.ranks[rank][self.at[rank]]
        time = self.time[rank]
        if kind == 1:
            self.time[rank] = self.plus(time, (round(float(fields[0]) * 1e9), 0.0))
            return True
        peer, size, tag, mode = (int(fields[index]) for index in (0, 2, 3, 5))
        if kind == 2:
            return self.send(rank, (rank, peer, tag), size, mode)
        channel = (peer, rank, tag)
        # A wait is for the receive that was posted first.
        slot = self.open[channel][0] if mode == 2 else (*channel, self.posts[channel])
        self.post(slot, time)
        if mode != 1 and slot not in self.arrival:
            return False
        if mode == 2:
            self.open[channel].pop(0)
        else:
            self.posts[channel] += 1
        if mode == 1:
            self.open[channel].append(slot)
            return True
        self.time[rank] = self.plus(self.later(self.arrival[slot], time), self.cost("overhead"))
        return True

    def send(self, rank, channel, size, mode):
        slot = (*channel, self.sent[channel])
        payload = self.cost("gap_per_byte", max(size - 1, 0))
        if slot not in self.ready:
            start = self.later(self.time[rank], self.free[rank])
            self.free[rank] = self.plus(start, self.cost("gap"), payload)
            # A send that does not block leaves its message to the interface.
            called = self.time[rank] if mode & 2 else start
            self.time[rank] = self.plus(called, self.cost("overhead"))
            self.ready[slot] = self.plus(start, self.cost("overhead"))
            if not mode & 1:
                self.arrival[slot] = self.plus(self.ready[slot], self.cost("latency"), payload)
            elif slot in self.posted:
                self.transfer(slot, size)
            else:
                self.pending[slot] = size
        if mode == 1:
            if slot not in self.release:
                return False
            self.time[rank] = self.later(self.time[rank], self.release[slot])
        self.sent[channel] += 1
        return True

    def run(self):
        moved = True
        while moved:
            moved = False
            for rank, own in enumerate(self.ranks):
                while self.at[rank] < len(own) and self.step(rank):
                    self.at[rank] += 1
                    moved = True
        assert all(at == len(own) for at, own in zip(self.at, self.ranks)), "the trace does not come to its end"
        end = self.later(*self.time)[0]
        self.solver.changeColCost(end, 1.0)
        return self

    def makespan(self, value):
        self.solver.changeColBounds(self.x, value, value)
        self.solver.run()
        assert self.solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return self.solver.getInfo().objective_function_value


def random_trace(seed):
    """Messages in one global order, so that nobody waits for ever; receives are posted before or where they wait."""
    numbers = random.Random(seed)
    count = numbers.randint(2, 6)
    ranks, late = [[] for _ in range(count)], [[] for _ in range(count)]
    for _ in range(numbers.randint(5, 60)):
        source, target = numbers.sample(range(count), 2)
        ranks[source].append(f"1:{source}:0:{numbers.randint(0, 400_000) / 1e9:.9f}")
        size, tag, mode = numbers.choice([0, 1, 100, 5_000, 60_000]), numbers.randint(0, 1), numbers.randint(0, 3)
        receive = f"3:{target}:0:{source}:-1:{size}:{tag}:1:"
        channel = (source, tag)
        if any(waiting[0] == channel for waiting in late[target]) or numbers.random() < 0.5:
            ranks[target] += [line for _, line in late[target]] + [receive + "0"]
            late[target] = []
        else:
            ranks[target].append(receive + "1")
            late[target].append((channel, receive + "2"))
        ranks[source].append(f"2:{source}:0:{target}:-1:{size}:{tag}:1:{mode}")
    for rank in range(count):
        ranks[rank] += [line for _, line in late[rank]]
    head = f'#DIMEMAS:"random":0:{count}({",".join("1" * count)}),1\n'
    members = f'd:1:1:{count}:{":".join(map(str, range(count)))}\n'
    return head + members + "".join(line + "\n" for own in ranks for line in own)


def compare(flowcast, path, field):
    command = [flowcast, "sensitivity", str(path), "--network", "gige-tcp", "--model", "independent", "--json"]
    for name, value in NUMBERS.items():
        command += ["--set", f"nic.{name}={value}" + ("ns/B" if name == "gap_per_byte" else "ns")]
    command += ["--parameter", field, "--range", RANGES[field]]
    curve = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert curve["exact"], (path, field, curve["inexact_because"])
    text = gzip.open(path, "rt").read() if path.suffix == ".gz" else path.read_text()
    program = Replay(records(text), field.removeprefix("nic.")).run()
    pieces = curve["pieces"]
    for piece in pieces:
        begin, end = piece["from"], piece["to"]
        # A convex function is linear on the piece if it lies on the line at three places.
        for value in (begin, (begin + end) / 2, end):
            expected = program.makespan(value * 1e9)
            found = (piece["makespan_s_at_from"] + piece["slope"] * (value - begin)) * 1e9
            assert abs(found - expected) <= 0.5 + 1e-9 * expected, (path, field, value, found, expected)
    assert all(a["slope"] < b["slope"] and a["to"] == b["from"] for a, b in zip(pieces, pieces[1:])), pieces
    return len(pieces)


def main(flowcast, folder, *paths):
    folder = pathlib.Path(folder)
    paths = [pathlib.Path(path) for path in paths]
    for seed in range(12):
        path = folder / f"random-{seed}.dim"
        path.write_text(random_trace(seed))
        paths.append(path)
    pieces = sum(compare(flowcast, path, field) for path in paths for field in RANGES)
    print(f"{len(paths)} programs, {pieces} pieces: as HiGHS has them")


if __name__ == "__main__":
    main(*sys.argv[1:])
