/// Says of each record of a partition, in order, what it is. Every reader uses it, so all agree on every offset:
/// an event, a barrier, a seed, or void.
public struct PartitionRules: Sendable {
    /// Where in its life a partition is.
    public enum Phase: Hashable, Sendable {
        /// In the unbroken row of seeds that it may begin with.
        case seeds
        /// Behind it.
        case open
        /// Behind the end of the epoch; the next one follows.
        case ended(Epoch)
    }

    /// What a record is.
    public enum Record: Sendable {
        /// An event; the tables given to `read` hold it.
        case event
        /// A line of the state that the epoch begins with.
        case seed(ParsedSeed)
        /// A change of rules, delivered in every stream of the partition.
        case barrier(Barrier)
        /// A barrier that this version does not know: nothing at it or behind it may be read, its seq is not covered.
        case unknownBarrier
        /// No effect, for everybody; its seq is covered. The error says why, for the log of a node.
        case void(ReelError)
    }

    /// The number of the partition.
    public let partition: Int
    /// How many partitions the log has.
    public let partitions: Int
    /// Where the partition stands, behind what was read; to be stored with the position by who goes on later.
    public private(set) var phase: Phase

    /// The rules from this phase on: `.seeds` for who reads from seq 0, `.open` for who begins with a snapshot.
    public init(partition: Int, of partitions: Int, phase: Phase = .seeds) {
        self.partition = partition
        self.partitions = partitions
        self.phase = phase
    }

    /// An offset that is really empty. It is void, and ends the row of seeds.
    public mutating func hole() {
        if phase == .seeds { phase = .open }
    }

    /// Says what the next record is. If it is an event, the tables of `event` hold it.
    public mutating func read(key: Bytes, value: Bytes, into event: inout ParsedEvent) -> Record {
        if case .ended(let epoch) = phase {
            return .void(ReelError(.epochChanged, "found a record behind the end of the epoch; the next is \(epoch)"))
        }
        if "~reel" ~= key { return barrier(value) }
        if phase == .seeds {
            do throws(ReelError) {
                let seed = try ParsedSeed(value)
                try checkKey(key)
                return .seed(seed)
            } catch {
                phase = .open
            }
        }
        do throws(ReelError) {
            try checkKey(key)
            try event.parse(value)
            return .event
        } catch {
            return .void(error)
        }
    }

    private mutating func barrier(_ value: Bytes) -> Record {
        switch Barrier.read(value) {
        case .known(let barrier):
            phase = if case .end(let epoch) = barrier { .ended(epoch) } else { .open }
            return .barrier(barrier)
        case .unknown:
            return .unknownBarrier
        case .none:
            hole()
            return .void(ReelError(.badEvent, "found no barrier under the key \(StreamName.barrierKey)"))
        }
    }

    private func checkKey(_ key: Bytes) throws(ReelError) {
        guard StreamName.isValid(key) else {
            throw ReelError(.badStream, "found a key that is no stream's name")
        }
        let right = Partition.number(ofKey: key, of: partitions)
        guard right == partition else {
            throw ReelError(.badEvent, "found a record in partition \(partition) whose key belongs to \(right)")
        }
    }
}
