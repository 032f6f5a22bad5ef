import ReelCore

extension JSONReader {
    /// Reads the members of an object. Nothing may follow it.
    ///
    /// - Parameters:
    ///   - object: the bytes of the object.
    ///   - shape: the code of the error for an object that is not valid.
    ///   - member: called for each member, with the reader before the value, and the name.
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

    /// Reads the members of a node's answer.
    ///
    /// - Throws: a `CommandError` with exit code 4 if the answer is not valid.
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
