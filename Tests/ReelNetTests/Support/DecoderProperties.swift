import ReelNet

/// The properties that each decoder must have for any bytes: it does not trap, and cuts between pieces change nothing.
/// Each function returns the fault that it has found, or nil. The mutation tests and the fuzzers share them.
enum DecoderProperties {
    static func request(_ bytes: [UInt8]) -> String? {
        compare(bytes) { pieces in
            var decoder = HTTPRequestDecoder()
            return drain(pieces) { piece, position throws(HTTPViolation) in
                try decoder.next(piece, &position).map { event in
                    switch event {
                    case .head(let head, let expectsContinue):
                        _ = (head.segments, head.parameters, head.keepsAlive)
                        return "\(head) \(expectsContinue)"
                    case .body(let body): return "\(body)"
                    }
                }
            }
        }
    }

    static func answer(_ bytes: [UInt8]) -> String? {
        compare(bytes) { pieces in
            var decoder = HTTPResponseDecoder()
            var body: [UInt8] = []
            let found = drain(pieces) { piece, position throws(HTTPViolation) in
                try decoder.next(piece, &position).map { event in
                    if case .data(let range) = event {
                        for index in range { body.append(piece[index]) }
                        return ""
                    }
                    return "\(event) \(body.count)"
                }
            }
            return found.filter { !$0.isEmpty } + ["\(body)"]
        }
    }

    static func frames(_ bytes: [UInt8]) -> String? {
        for role in [WebSocketDecoder.Role.server, .client] {
            let fault = compare(bytes) { pieces in
                var decoder = WebSocketDecoder(role, maxMessage: 1000)
                return drain(pieces) { piece, position throws(WebSocketViolation) in
                    try decoder.next(piece, &position).map { "\($0)" }
                }
            }
            if let fault { return fault }
        }
        return nil
    }

    /// Compares the whole input with single bytes, and with cuts that depend on the bytes.
    private static func compare(_ bytes: [UInt8], _ decode: ([[UInt8]]) -> [String]) -> String? {
        let whole = decode([bytes])
        var cuts: [[UInt8]] = [[]]
        for byte in bytes {
            if byte & 3 == 1 { cuts.append([]) }
            cuts[cuts.count - 1].append(byte)
        }
        for pieces in [bytes.map { [$0] }, cuts] {
            let found = decode(pieces)
            if found != whole { return "whole: \(whole)\nin \(pieces.count) pieces: \(found)" }
        }
        return nil
    }

    private static func drain<Violation: Error>(
        _ pieces: [[UInt8]],
        _ next: (Span<UInt8>, inout Int) throws(Violation) -> String?
    ) -> [String] {
        var found: [String] = []
        do throws(Violation) {
            for piece in pieces {
                var position = 0
                while let event = try next(piece.span, &position) { found.append(event) }
            }
        } catch {
            found.append("\(error)")
        }
        return found
    }
}
