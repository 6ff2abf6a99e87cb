"""The order of controller/scheduler/order.h, implemented a second time from its text.

    order_reference.py SEED HOST REPETITIONS    prints the blocked and the random order of order_test.cc's variants
"""
import sys

MASK = (1 << 64) - 1


class Generator:
    def __init__(self, seed, host):
        h = 0xcbf29ce484222325
        for byte in host.encode():
            h = ((h ^ byte) * 0x100000001b3) & MASK
        self.state = seed ^ h

    def next(self):
        self.state = (self.state + 0x9e3779b97f4a7c15) & MASK
        z = self.state
        z = ((z ^ z >> 30) * 0xbf58476d1ce4e5b9) & MASK
        z = ((z ^ z >> 27) * 0x94d049bb133111eb) & MASK
        return z ^ z >> 31

    def below(self, n):
        limit = (1 << 64) - (1 << 64) % n
        while (r := self.next()) >= limit:
            pass
        return r % n

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]


def blocked(groups, repetitions, generator):
    blocks = []
    for block in range(1, repetitions + 1):
        if block % 2:
            generator.shuffle(groups)
            for group in groups:
                generator.shuffle(group)
            blocks.append([v for group in groups for v in group])
        else:
            blocks.append(blocks[-1][::-1])
    return blocks


def text(blocks):
    return ' | '.join(f'{i}: ' + ' '.join(map(str, b)) for i, b in enumerate(blocks, 1))


if __name__ == '__main__':
    seed, host, repetitions = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    print(text(blocked([[0, 1], [2, 3], [4]], repetitions, Generator(seed, host))))
    trials = [v for _ in range(repetitions) for v in range(5)]
    Generator(seed, host).shuffle(trials)
    print(text([trials]))
