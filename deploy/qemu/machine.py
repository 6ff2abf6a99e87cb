"""The guest's machine: which node has which CPUs and how much memory, as arguments of QEMU."""
import dataclasses

LOCAL_DISTANCE = 10
REMOTE_DISTANCE = 21


@dataclasses.dataclass
class Machine:
    nodes: int
    memory_mib: int = 512            # of each node that has memory
    cpus: int = 1                    # of each node that has CPUs
    distances: list | None = None    # one row a node; None: 10 and 21
    cpuless: set = dataclasses.field(default_factory=set)
    memoryless: set = dataclasses.field(default_factory=set)
    hotplug: int | None = None       # the node whose memory arrives later; it has no CPUs

    def fault(self):
        """What is wrong with it, in words, or None."""
        everything = set(range(self.nodes))
        late = set() if self.hotplug is None else {self.hotplug}
        for option, named in (('--cpuless', self.cpuless), ('--memoryless', self.memoryless), ('--hotplug', late)):
            if named - everything:
                return f'{option} {min(named - everything)}: there are nodes 0 to {self.nodes - 1}'
        with_cpus = everything - self.cpuless - late
        if not with_cpus:
            return 'no node is left with a CPU'
        # Linux numbers nodes in the order in which firmware's tables name them: CPUs before memory, memory before what may come.
        if self.cpuless and min(self.cpuless) < max(with_cpus):
            return f'--cpuless {min(self.cpuless)}: nodes without CPUs come after those with, or the guest numbers them otherwise'
        if late and self.hotplug != self.nodes - 1:
            return f'--hotplug {self.hotplug}: the node that comes later is the last, or the guest numbers them otherwise'
        if not everything - self.memoryless - late:
            return 'no node is left with memory at the start'
        if self.memoryless & late:
            return f'node {self.hotplug} cannot be memoryless and bring memory later'
        rows = self.distances
        if rows is None:
            return None
        if len(rows) != self.nodes or any(len(row) != self.nodes for row in rows):
            return f'--distances: {self.nodes} rows of {self.nodes} are wanted'
        for i, row in enumerate(rows):
            for j, distance in enumerate(row):
                if not (distance == LOCAL_DISTANCE if i == j else LOCAL_DISTANCE < distance < 255):
                    return f'--distances: {distance} from {i} to {j}: a node is 10 from itself, 11 to 254 from others'
        return None

    def _distance(self, i, j):
        if self.distances:
            return self.distances[i][j]
        return LOCAL_DISTANCE if i == j else REMOTE_DISTANCE

    def arguments(self):
        late = set() if self.hotplug is None else {self.hotplug}
        with_cpus = [n for n in range(self.nodes) if n not in self.cpuless | late]
        with_memory = [n for n in range(self.nodes) if n not in self.memoryless | late]
        smp = f'{len(with_cpus) * self.cpus},sockets={len(with_cpus)},cores={self.cpus},threads=1'
        memory = f'{len(with_memory) * self.memory_mib}M'
        if late:
            memory += f',slots=1,maxmem={(self.nodes + 1) * self.memory_mib + 1024}M'
        arguments = ['-machine', 'pc', '-accel', 'tcg,thread=multi', '-cpu', 'max', '-smp', smp, '-m', memory]
        for node in range(self.nodes):
            described = f'node,nodeid={node}'
            if node in with_cpus:
                first = with_cpus.index(node) * self.cpus
                described += f',cpus={first}-{first + self.cpus - 1}'
            if node in with_memory:
                arguments += ['-object', f'memory-backend-ram,size={self.memory_mib}M,id=m{node}']
                described += f',memdev=m{node}'
            arguments += ['-numa', described]
        for i in range(self.nodes):
            for j in range(self.nodes):
                arguments += ['-numa', f'dist,src={i},dst={j},val={self._distance(i, j)}']
        return arguments

    def hotplug_commands(self):
        """For QEMU's machine protocol, in order: what brings the late node."""
        return [
            {'execute': 'object-add', 'arguments': {
                'qom-type': 'memory-backend-ram', 'id': f'm{self.hotplug}', 'size': self.memory_mib << 20}},
            {'execute': 'device_add', 'arguments': {
                'driver': 'pc-dimm', 'id': f'd{self.hotplug}', 'memdev': f'm{self.hotplug}', 'node': self.hotplug}},
        ]
