import ReelCore

extension JSONReader {
    /// Reads the members of an object, behind which nothing stands.
    static func members(
        of object: ArraySlice<UInt8>,
        shape: ErrorCode = .badFrame,
        _ member: (inout JSONReader, JSONText) throws(ReelError) -> Void
    ) throws(ReelError) {
        try object.withUnsafeBufferPointer { (object) throws(ReelError) in
            var reader = JSONReader(Bytes(object), levels: ClientFrame.levels, shape: shape)
            try reader.object(member)
            try reader.end()
        }
    }

    /// Reads the members of what a node answered. Ends with 4 for what is no such answer.
    static func members(
        ofAnswer body: [UInt8],
        _ member: (inout JSONReader, JSONText) throws(ReelError) -> Void
    ) throws(CommandError) {
        do throws(ReelError) {
            try members(of: body[...], member)
        } catch {
            throw CommandError(.badData, "a node's answer cannot be read: \(error.message)")
        }
    }
}
