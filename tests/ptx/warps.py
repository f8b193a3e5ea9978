"""Runs PTX with the freedom a GPU has: any thread may be ahead of any other, wherever it does not wait. An instruction of a
warp waits for the members its mask names, those that have ended aside; that they come to it together, and that each is a
member, is checked. A barrier waits for all threads that have not ended."""
import re
import struct

from emulator import Machine, Thread, signed, voted

ALL = 0xFFFFFFFF


class Warps(Machine):
    """`random` decides who goes on, and for how long."""

    def __init__(self, random):
        super().__init__()
        self.random = random

    def parse(self, text):
        super().parse(re.sub(r"\{( \.reg[^;]*;)+", "", text))

    def step(self, thread, name, operands):
        if name[0] == "clz":
            self.write(thread, operands[0], 32 - (self.read(thread, operands[1]) & ALL).bit_length(), "b32")
        elif name[0] == "popc":
            self.write(thread, operands[0], bin(self.read(thread, operands[1]) & ALL).count("1"), "b32")
        else:
            super().step(thread, name, operands)

    # ---- Instructions of a warp.

    def mask(self, thread):
        name, operands, _ = self.code[thread.pc]
        return self.read(thread, operands[0 if name[0] == "bar" else -1]) & ALL

    def perform(self, members):
        name, operands, _ = self.code[members[0].pc]
        lanes, kind = {thread.index % 32: thread for thread in members}, "b32"
        if name[0] == "vote":
            result, kind = voted(name, {lane: self.read(thread, operands[1]) & 1 for lane, thread in lanes.items()})
            results = dict.fromkeys(lanes, result)
        elif name[0] == "redux":
            values = [self.read(thread, operands[1]) & ALL for thread in members]
            if name[3] == "s32":
                values = [signed(value, 32) for value in values]
            total = values[0]
            for value in values[1:]:
                total = {"add": total + value, "min": min(total, value), "max": max(total, value), "and": total & value,
                         "or": total | value, "xor": total ^ value}[name[2]]
            results = dict.fromkeys(lanes, total)
        elif name[0] == "shfl":
            assert name[2] == "idx", f"{'.'.join(name)} is not known"
            source = {lane: self.read(thread, operands[2]) & 31 for lane, thread in lanes.items()}
            # What comes from a lane that is no member is open.
            results = {lane: self.read(lanes[source[lane]], operands[1]) if source[lane] in lanes else self.random.getrandbits(32)
                       for lane in lanes}
        else:
            results = {}
        for lane, thread in lanes.items():
            if results:
                self.write(thread, operands[0], results[lane], kind)
            thread.state = "runs"
            thread.pc += 1

    def meet(self, warp):
        """Does what can be done for those that wait in a warp."""
        alive = [thread for thread in warp if thread.state != "ended"]
        for thread in alive:
            if thread.state != "meets":
                continue
            mask = self.mask(thread)
            members = [other for other in alive if mask >> other.index % 32 & 1]
            assert thread in members, f"lane {thread.index % 32} is none of {mask:#x}"
            if all(other.state == "meets" for other in members):
                places = {other.pc for other in members if self.mask(other) == mask}
                assert len(places) == 1, f"the members {mask:#x} wait at several places"
                if all(self.mask(other) == mask for other in members):
                    self.perform(members)

    # ---- A launch.

    def run_together(self, thread):
        """Which of a warp's lanes at an activemask run it at once, is open."""
        at_it = [other for other in self.threads if other.index // 32 == thread.index // 32 and other.state == "runs" and other.pc == thread.pc]
        together = [other for other in at_it if other is thread or self.random.random() < 0.8]
        self.note_active(together, self.code[thread.pc][1])
        for other in together:
            other.pc += 1

    def go_on(self, thread, steps):
        while steps and thread.state == "runs":
            steps -= 1
            name, operands, guard = self.code[thread.pc]
            if guard and (self.read(thread, guard[0]) & 1) == guard[1]:
                thread.pc += 1
            elif name[0] == "activemask":
                self.run_together(thread)
            elif name[0] in ("vote", "redux", "shfl") or name[:2] == ("bar", "warp"):
                thread.state = "meets"
            elif name[0] in ("bar", "barrier"):
                thread.state = "waits"
                thread.pc += 1
            elif name[0] in ("ret", "exit"):
                thread.state = "ended"
            elif name[0] == "bra":
                thread.pc = self.labels[operands[0]]
            else:
                self.step(thread, name, operands)
                thread.pc += 1

    def run_block(self, group):
        self.group, threads = group, [Thread(i) for i in range(self.block)]
        self.threads = threads
        while any(thread.state != "ended" for thread in threads):
            running = [thread for thread in threads if thread.state == "runs"]
            if running:
                self.go_on(self.random.choice(running), self.random.choice((1, 4, 30, 1000)))
                continue
            before = [(thread.pc, thread.state) for thread in threads]
            for first in range(0, self.block, 32):
                self.meet(threads[first:first + 32])
            if all(thread.state in ("waits", "ended") for thread in threads):
                for thread in threads:
                    thread.state = "runs" if thread.state == "waits" else "ended"
            assert before != [(thread.pc, thread.state) for thread in threads], "threads wait for each other for ever"

    def launch(self, text, slots, grid, threads, shared=1 << 16):
        """One dimension: so many threads in all, and in a full group."""
        self.parse(text)
        self.block, self.shared = threads, bytearray(shared)
        groups = -(-grid // threads)
        self.parameters = bytearray(struct.pack("<10I2Q", grid, 1, 1, threads, 1, 1, groups, 1, 1, 0, 0, 0))
        self.parameters += struct.pack(f"<{len(slots)}Q", *slots)
        for x in range(groups):
            self.run_block((x, 0, 0))
