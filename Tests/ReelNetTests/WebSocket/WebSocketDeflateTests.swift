import NodeTestSupport
import TestSupport
import Testing

@testable import ReelNet

/// Tests compressed messages on a socket.
@Suite struct WebSocketDeflateTests {
    private typealias Found = (events: [WebSocketDecoder.Event], violation: WebSocketViolation?)

    /// Returns the result of a decoder that inflates. The frames come byte by byte, as from a server.
    private func decode(_ bytes: [UInt8], maxMessage: Int = 1 << 20, inflates: Bool = true) -> Found {
        var decoder = WebSocketDecoder(.client, maxMessage: maxMessage, inflates: inflates)
        var events: [WebSocketDecoder.Event] = []
        for byte in bytes {
            var position = 0
            do throws(WebSocketViolation) {
                while let event = try decoder.next([byte].span, &position) { events.append(event) }
            } catch {
                return (events, error)
            }
        }
        return (events, nil)
    }

    private func packed(_ payload: [UInt8], _ opcode: WebSocketFrame.Opcode = .text) -> [UInt8] {
        WebSocketFrame(opcode, payload).packed(by: MessageDeflater())
    }

    /// The examples of RFC 7692, 7.2.3: one block, two fragments, a stored block, a last block, two blocks.
    @Test(
        "the decoder inflates the examples of the RFC",
        arguments: [
            [0xc1, 0x07, 0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00],
            [0x41, 0x03, 0xf2, 0x48, 0xcd, 0x80, 0x04, 0xc9, 0xc9, 0x07, 0x00],
            [0xc1, 0x0b, 0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00],
            [0xc1, 0x08, 0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00],
            [0xc1, 0x0d, 0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00],
            [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f],
        ] as [[UInt8]]
    )
    func decodesRFCExamples(bytes: [UInt8]) {
        let found = decode(bytes)
        #expect(found.events == [.text(Array("Hello".utf8))])
        #expect(found.violation == nil)
    }

    @Test("an empty message may be packed too") func anEmptyMessageMay() {
        #expect(decode([0xc1, 0x01, 0x00]).events == [.text([])])
        #expect(decode([0xc2, 0x01, 0x00, 0x81, 0x00]).events == [.binary([]), .text([])])
    }

    @Test(
        "the decoder reports each compression violation with its close code",
        arguments: [
            // Compression was not negotiated.
            ([0xc1, 0x01, 0x00], 1002, false),
            // The bit is set on a continuation, on control frames, or together with another reserved bit.
            ([0x41, 0x03, 0xf2, 0x48, 0xcd, 0xc0, 0x04, 0xc9, 0xc9, 0x07, 0x00], 1002, true),
            ([0xc9, 0x01, 0x00], 1002, true), ([0xca, 0x01, 0x00], 1002, true), ([0xc8, 0x01, 0x00], 1002, true),
            ([0xe1, 0x01, 0x00], 1002, true), ([0xd1, 0x01, 0x00], 1002, true), ([0xa1, 0x01, 0x00], 1002, true),
            // An unknown type of block, a distance before the start, and a truncated message.
            ([0xc1, 0x02, 0xff, 0xff], 1007, true), ([0xc1, 0x03, 0x02, 0x0c, 0x00], 1007, true),
            ([0xc1, 0x04, 0xf2, 0x48, 0xcd, 0xc9], 1007, true),
            // The inflated text is not UTF-8: a stored block with the byte C0.
            ([0xc1, 0x07, 0x00, 0x01, 0x00, 0xfe, 0xff, 0xc0, 0x00], 1007, true),
        ] as [([UInt8], UInt16, Bool)]
    )
    func reportsViolationCode(bytes: [UInt8], code: UInt16, inflates: Bool) {
        let found = decode(bytes, inflates: inflates)
        #expect(found.violation?.code == code)
        #expect(found.events.isEmpty)
    }

    @Test("the limit of a message holds for what comes out") func theLimitOfA() {
        let bomb = packed([UInt8](repeating: UInt8(ascii: "a"), count: 1 << 20))
        #expect(bomb.count < 8 << 10, "a thousandth of what is in it")
        #expect(decode(bomb).events.count == 1)
        #expect(decode(bomb, maxMessage: (1 << 20) - 1).violation?.code == 1009)
        #expect(decode(bomb, maxMessage: 16 << 10).violation?.code == 1009)
    }

    @Test("a frame compresses its messages once for all receivers when they get smaller") func compressesOnce() {
        let text = Array(String(repeating: #"{"seq":1,"site":"6f1c"},"#, count: 40).utf8)
        let frame = WebSocketFrame.text(text)
        let bytes = frame.packed(by: MessageDeflater())
        #expect(bytes.count < text.count / 4)
        #expect(decode(bytes).events == [.text(text)])
        let again = frame.packed(by: MessageDeflater())
        #expect(bytes.withUnsafeBytes { $0.baseAddress } == again.withUnsafeBytes { $0.baseAddress }, "shared")

        var two = frame
        two.append(.binary(text))
        two.append(.text(Array("short".utf8)))
        let both = two.packed(by: MessageDeflater())
        #expect(decode(both).events == [.text(text), .binary(text), .text(Array("short".utf8))])
    }

    @Test("a frame sends a message unchanged when compression does not make it smaller") func skipsUselessCompression()
    {
        var random = SeededNumbers(TestSeed.value)
        let noise = (0..<70_000).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        #expect(packed(noise, .binary) == WebSocketFrame.binary(noise).bytes)
        let short = [UInt8](repeating: 7, count: MessageDeflater.bytesMin - 1)
        #expect(packed(short, .binary) == WebSocketFrame.binary(short).bytes)
    }

    /// Lengths around those at which a header or zlib's buffers change.
    @Test("each length comes back as it was", arguments: [128, 4_096, 16_383, 16_384, 16_385, 65_535, 65_536, 300_000])
    func eachLengthComesBack(count: Int) {
        let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7 & 0x3f) }
        #expect(decode(packed(payload, .binary)).events == [.binary(payload)])
    }

    @Test("a socket compresses for a client that asks, unless compression is off", arguments: [true, false])
    func compressesOnRequest(deflates: Bool) throws {
        var settings = HTTPServer.Settings.patient
        settings.deflates = deflates
        let server = try EchoServer(settings)
        let socket = try RawSocket(server.address)
        socket.send(
            "GET /socket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
        )
        let head = socket.receive(until: "\r\n\r\n")
        #expect(head.hasPrefix("HTTP/1.1 101"))
        #expect(head.contains("sec-websocket-extensions: permessage-deflate; server_no_context_takeover") == deflates)
        let text = Array(String(repeating: "all the same ", count: 100).utf8)
        var frame = WebSocketFrame.encode(.text, text, mask: 0x0102_0304)
        if deflates {
            // The client compresses the text first and masks the result.
            let bytes = packed(text)
            let payload = Array(bytes[(bytes[1] == 126 ? 4 : 2)...])
            frame = WebSocketFrame.encode(.text, payload, mask: 0x0102_0304)
            frame[0] |= WebSocketFrame.packedBit
        }
        socket.send(frame)
        let echo = socket.receive()
        #expect(decode(echo, inflates: deflates).events == [.text(text)])
        #expect((echo.count < text.count / 4) == deflates)
    }
}
