import ReelCore

extension EventIntake {
    /// Checks and stamps an event of a publish. Throws what `take` throws, and `bad_event` if an event names seqs and
    /// the publish has no epoch.
    mutating func offer(_ sent: Bytes, _ stamp: Stamp, hasEpoch: Bool) throws(ReelError) -> PublishLedger.Offer {
        var value: [UInt8] = []
        value.reserveCapacity(sent.count + 48)
        try take(sent, stamp: stamp, into: &value)
        guard hasEpoch || !namesSeqs else {
            throw ReelError(
                .badEvent,
                "found a base or a guard in a publish without epoch, expected the epoch of its seqs"
            )
        }
        return PublishLedger.Offer(site: event.site, op: event.op, value: value)
    }

    /// Checks and stamps each event of a publish.
    mutating func offers(_ publish: ClientFrame.Publish, _ stamp: Stamp) -> [Result<PublishLedger.Offer, ReelError>] {
        publish.events.map { sent in
            Result { () throws(ReelError) in
                try sent.withUnsafeBufferPointer { (bytes) throws(ReelError) in
                    try offer(Bytes(bytes), stamp, hasEpoch: publish.epoch != nil)
                }
            }
        }
    }
}
