/// Classifies each record of a partition, in order, as an event, a barrier, a seed, or void. Every reader uses these
/// rules, so all readers agree on every offset.
public struct PartitionRules: Sendable {
    /// The phase in the life of a partition.
    public enum Phase: Hashable, Sendable {
        /// The unbroken sequence of seeds at the beginning of the partition.
        case seeds
        /// The phase after the seeds.
        case open
        /// The phase after the end of the epoch; the given epoch follows.
        case ended(Epoch)
    }

    /// The kind of a record.
    public enum Record: Sendable {
        /// An event; the tables that were passed to `read` hold it.
        case event
        /// A seed: a line of the state that the epoch begins with.
        case seed(ParsedSeed)
        /// A change of the rules, delivered in every stream of the partition.
        case barrier(Barrier)
        /// A barrier that this version does not know. Neither the barrier nor any record after it may be read, and its
        /// seq is not covered.
        case unknownBarrier
        /// A record without effect for any reader; its seq is covered.
        case void(VoidRecord)
    }

    /// The number of the partition.
    public let partition: Int
    /// The number of partitions of the log.
    public let partitions: Int
    /// The phase after the last record that was read. A reader that continues later must store it together with its
    /// position.
    public private(set) var phase: Phase

    /// Creates the rules, beginning in `phase`: `.seeds` for a reader from seq 0, `.open` for a reader that begins with
    /// a snapshot.
    public init(partition: Int, of partitions: Int, phase: Phase = .seeds) {
        self.partition = partition
        self.partitions = partitions
        self.phase = phase
    }

    /// Returns the number of the partition that contains the stream.
    public func partition(of stream: StreamName) -> Int {
        var key = stream.description
        return key.withUTF8 { Partition.number(ofKey: Bytes($0), of: partitions) }
    }

    /// Notes an offset without a record. It is void, and ends the sequence of seeds.
    public mutating func hole() {
        if phase == .seeds { phase = .open }
    }

    /// Returns the kind of the next record.
    ///
    /// - Parameters:
    ///   - key: the key of the record.
    ///   - value: the value of the record.
    ///   - event: the tables that hold the event, if the record is one. Otherwise their content is undefined.
    public mutating func read(key: Bytes, value: Bytes, into event: inout ParsedEvent) -> Record {
        if case .ended(let epoch) = phase {
            return .void(VoidRecord(.behindEnd, "found a record after the end of the epoch; the next is \(epoch)"))
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

    /// Returns true if the record is an event or a barrier, under the assumption that it precedes the end of the epoch.
    /// Only such a record's header `p` is trusted, because any other record may be a copy from another log.
    ///
    /// - Parameters:
    ///   - key: the key of the record.
    ///   - value: the value of the record.
    ///   - event: tables to parse the record with. Their content is undefined afterwards.
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

    /// Returns the reason why no record with this key has an effect in this partition; nil if there is none.
    private func misplaced(_ key: Bytes) -> VoidRecord? {
        guard StreamName.isValid(key) else { return VoidRecord(.badKey, "found a key that is no stream's name") }
        let right = Partition.number(ofKey: key, of: partitions)
        guard right != partition else { return nil }
        return VoidRecord(.wrongPartition, "found a record in partition \(partition) whose key belongs to \(right)")
    }
}
