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
        /// No effect, for everybody; its seq is covered.
        case void(VoidRecord)
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

    /// The number of the partition that a stream lies in.
    public func partition(of stream: StreamName) -> Int {
        var key = stream.description
        return key.withUTF8 { Partition.number(ofKey: Bytes($0), of: partitions) }
    }

    /// An offset that is really empty. It is void, and ends the row of seeds.
    public mutating func hole() {
        if phase == .seeds { phase = .open }
    }

    /// Says what the next record is. If it is an event, the tables of `event` hold it.
    public mutating func read(key: Bytes, value: Bytes, into event: inout ParsedEvent) -> Record {
        if case .ended(let epoch) = phase {
            return .void(VoidRecord(.behindEnd, "found a record behind the end of the epoch; the next is \(epoch)"))
        }
        if "~reel" ~= key { return barrier(value) }
        if let void = misplaced(key) {
            hole()
            return .void(void)
        }
        if phase == .seeds {
            if let seed = seed(value) { return .seed(seed) }
            phase = .open
        }
        do throws(ReelError) {
            try event.parse(value)
            return .event
        } catch {
            let reason: VoidRecord.Reason = seed(value) == nil ? .badEvent : .lateSeed
            return .void(VoidRecord(reason, error.message))
        }
    }

    /// Whether a record is an event or a barrier, if it stands before the end of the epoch: only of such a one header
    /// `p` is believed. Whatever else is in the log may be a copy from another one.
    public func isWitness(key: Bytes, value: Bytes, event: inout ParsedEvent) -> Bool {
        var rules = PartitionRules(partition: partition, of: partitions, phase: .open)
        switch rules.read(key: key, value: value, into: &event) {
        case .event, .barrier: return true
        case .seed, .void, .unknownBarrier: return false
        }
    }

    private func seed(_ value: Bytes) -> ParsedSeed? {
        do throws(ReelError) { return try ParsedSeed(value) } catch { return nil }
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
            return .void(VoidRecord(.badBarrier, "found no barrier under the key \(StreamName.barrierKey)"))
        }
    }

    /// Why nothing with this key has an effect here.
    private func misplaced(_ key: Bytes) -> VoidRecord? {
        guard StreamName.isValid(key) else { return VoidRecord(.badKey, "found a key that is no stream's name") }
        let right = Partition.number(ofKey: key, of: partitions)
        guard right != partition else { return nil }
        return VoidRecord(.wrongPartition, "found a record in partition \(partition) whose key belongs to \(right)")
    }
}
