internal import ReelClient

/// The progress of the answer to a request.
struct ResponseState {
    private var hasHead = false
    private var length: Int64?
    private var bytes: Int64 = 0

    /// Notes the head. Returns it, the first time.
    mutating func head(status: Int, length: Int64?) -> TransportResponse? {
        guard !hasHead else { return nil }
        hasHead = true
        // These answers have no body, whatever length they name.
        self.length = status == 204 || status == 304 ? nil : length
        return .head(status: status, length: length)
    }

    /// Notes bytes of the body. Returns them, unless there are none.
    mutating func body(_ piece: [UInt8]) -> TransportResponse? {
        bytes += Int64(piece.count)
        return piece.isEmpty ? nil : .body(piece)
    }

    /// Returns the end of the answer.
    ///
    /// - Parameter error: the reason why the answer has ended early; nil: it seems to be complete. A system may call an
    ///   answer complete although the connection has ended before its last byte.
    func end(error: String?) -> TransportResponse {
        if let error { return .failed(error) }
        guard hasHead else { return .failed("found an answer without a head") }
        if let length, bytes < length { return .failed("found \(bytes) bytes of a body, expected \(length)") }
        return .end
    }
}
