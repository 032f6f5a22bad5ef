/// The header with which a proxy begins a connection to name the client: the PROXY protocol, versions 1 and 2
/// (HAProxy's proxy-protocol.txt).
enum ProxyHeader: Equatable {
    /// More bytes are needed.
    case incomplete
    /// The connection does not begin with a header.
    case absent
    /// A header of `length` bytes. The address is nil if the connection is the proxy's own, such as for a health check.
    case header(SocketAddress?, length: Int)
    /// The bytes begin like a header, but are not a valid one.
    case malformed

    /// The longest accepted header in bytes: the addresses, and some of the extensions that version 2 may add after
    /// them.
    static let lengthMax = 1_024

    private static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10]
    private static let word = Array("PROXY ".utf8)
    private static let lineMax = 107

    /// Reads the first bytes of a connection.
    static func read(_ bytes: [UInt8]) -> ProxyHeader {
        if begins(bytes, signature) { return bytes.count < 16 ? .incomplete : binary(bytes) }
        if begins(bytes, word) { return bytes.count < word.count ? .incomplete : line(bytes) }
        return .absent
    }

    /// True if `bytes` begins with `word`, or is the beginning of `word`.
    private static func begins(_ bytes: [UInt8], _ word: [UInt8]) -> Bool {
        let count = min(bytes.count, word.count)
        return bytes[..<count] == word[..<count]
    }

    private static func binary(_ bytes: [UInt8]) -> ProxyHeader {
        let length = 16 + Int(bytes[14]) << 8 + Int(bytes[15])
        guard bytes[12] >> 4 == 2, bytes[12] & 15 <= 1, length <= lengthMax else { return .malformed }
        guard bytes.count >= length else { return .incomplete }
        // With the command LOCAL the addresses have no meaning.
        guard bytes[12] & 15 == 1 else { return .header(nil, length: length) }
        switch bytes[13] {
        case 0x11 where length >= 16 + 12: return .header(address(bytes[16..<20], bytes[24..<26]), length: length)
        case 0x21 where length >= 16 + 36: return .header(address(bytes[16..<32], bytes[48..<50]), length: length)
        case 0x11, 0x21: return .malformed
        default: return .header(nil, length: length)
        }
    }

    private static func address(_ host: ArraySlice<UInt8>, _ port: ArraySlice<UInt8>) -> SocketAddress? {
        let number = UInt16(port[port.startIndex]) << 8 | UInt16(port[port.startIndex + 1])
        return SocketAddress(bytes: Array(host), port: number)
    }

    private static func line(_ bytes: [UInt8]) -> ProxyHeader {
        guard let end = bytes.firstIndex(of: 10) else { return bytes.count < lineMax ? .incomplete : .malformed }
        guard end < lineMax, end > 0, bytes[end - 1] == 13 else { return .malformed }
        let words = String(decoding: bytes[..<(end - 1)], as: UTF8.self).split(
            separator: " ",
            omittingEmptySubsequences: false
        )
        if words.count >= 2, words[1] == "UNKNOWN" { return .header(nil, length: end + 1) }
        guard words.count == 6, words[1] == "TCP4" || words[1] == "TCP6", let port = UInt16(words[4]),
            words[2].contains(":") == (words[1] == "TCP6"),
            let address = try? SocketAddress(String(words[2]), port: port), SocketAddress.isNumeric(String(words[2]))
        else { return .malformed }
        return .header(address, length: end + 1)
    }
}

/// The beginning of a connection that may come through a proxy.
final class ProxyGreeting {
    /// The first bytes, kept until it is known if they are a header.
    fileprivate(set) var bytes: [UInt8] = []
    /// True until the beginning has been read.
    fileprivate(set) var isOpen = true
    /// The client's address; nil if the connection is the proxy's own.
    fileprivate(set) var client: SocketAddress?
    /// Called with the client's address, before any byte of the client is handled.
    var named: ((SocketAddress) -> Void)?
}

extension TCPConnection {
    /// Takes bytes at the beginning of a proxy's connection, and passes the bytes after the header on.
    func receivedGreeting(_ span: Span<UInt8>, _ greeting: ProxyGreeting) {
        span.withUnsafeBufferPointer { greeting.bytes.append(contentsOf: $0) }
        let rest: ArraySlice<UInt8>
        switch ProxyHeader.read(greeting.bytes) {
        case .incomplete: return
        case .malformed: return close(NetError(.violation, "a proxy's header is malformed"))
        case .absent: rest = greeting.bytes[...]
        case .header(let client, let length):
            rest = greeting.bytes[length...]
            // The client of another machine never has a loopback address: such a connection counts as the proxy's own.
            greeting.client = client.flatMap { $0.isLoopback || $0.isUnspecified ? nil : $0 }
        }
        greeting.isOpen = false
        greeting.bytes = []
        if let client = greeting.client { greeting.named?(client) }
        greeting.named = nil
        guard !rest.isEmpty, !isClosed else { return }
        rest.withUnsafeBufferPointer { receivedBehindGreeting(Span(_unsafeElements: $0)) }
    }
}
