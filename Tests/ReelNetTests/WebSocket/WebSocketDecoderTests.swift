import TestSupport
import Testing

@testable import ReelNet

@Suite struct WebSocketDecoderTests {
    typealias Opcode = WebSocketFrame.Opcode

    private static let mask: UInt32 = 0xA1B2_C3D4

    private static func frame(_ opcode: Opcode, _ payload: [UInt8], isFinal: Bool = true) -> [UInt8] {
        WebSocketFrame.encode(opcode, payload, mask: mask, isFinal: isFinal)
    }

    private static func text(_ text: String, isFinal: Bool = true) -> [UInt8] {
        frame(.text, Array(text.utf8), isFinal: isFinal)
    }

    /// Valid frames of a client, each with the events of the decoder.
    static let accepted: [(bytes: [UInt8], events: [WebSocketDecoder.Event])] = [
        (text("Hello"), [.text(Array("Hello".utf8))]),
        ([0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58], [.text(Array("Hello".utf8))]),
        (text(""), [.text([])]),
        (frame(.binary, [0xFF, 0xFE]), [.binary([0xFF, 0xFE])]),
        (
            text("κό", isFinal: false) + frame(.ping, [1]) + frame(.continuation, [0xCF], isFinal: false)
                + frame(.continuation, [0x83]), [.ping([1]), .text(Array("κόσ".utf8))]
        ),
        (text("", isFinal: false) + frame(.continuation, []), [.text([])]),
        (frame(.pong, [2, 3]), [.pong([2, 3])]),
        (frame(.ping, [UInt8](repeating: 9, count: 125)), [.ping([UInt8](repeating: 9, count: 125))]),
        (frame(.binary, [UInt8](repeating: 7, count: 126)), [.binary([UInt8](repeating: 7, count: 126))]),
        (frame(.close, []), [.close(code: nil, reason: "")]),
        (frame(.close, [0x03, 0xE8] + "bye".utf8), [.close(code: 1000, reason: "bye")]),
        (frame(.close, [0x13, 0x87]), [.close(code: 4999, reason: "")]),
        (frame(.close, [0x03, 0xE8]) + text("late"), [.close(code: 1000, reason: "")]),
        (frame(.close, []) + [0xFF, 0xFF, 0xFF], [.close(code: nil, reason: "")]),
    ]

    /// Invalid bytes of a client, each with the code of the close frame.
    static let refused: [(bytes: [UInt8], code: UInt16)] = [
        ([0x81, 0x05], 1002),  // no mask
        ([0xC1], 1002), ([0xA1], 1002), ([0x91], 1002),  // reserved bits
        ([0x83], 1002), ([0x87], 1002), ([0x8B], 1002), ([0x8F], 1002),  // reserved opcodes
        ([0x09], 1002), ([0x08], 1002), ([0x0A], 1002),  // a fragmented control frame
        ([0x89, 0xFE], 1002), ([0x88, 0xFE], 1002), ([0x89, 0xFF], 1002),  // more than 125 bytes of control
        ([0x80], 1002), ([0x00], 1002),  // a continuation of nothing
        (text("a") + [0x80], 1002),
        (text("a", isFinal: false) + [0x81], 1002),  // a message in a message
        (text("a", isFinal: false) + [0x82], 1002),
        ([0x81, 0xFE, 0x00, 0x7D], 1002),  // 125 in 16 bits
        ([0x81, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], 1002),  // 65535 in 64 bits
        ([0x81, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0], 1002),  // the highest bit
        ([0x81, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], 1009),
        ([0x81, 0xFF, 0, 0, 0, 0, 0, 0x10, 0, 1], 1009),  // one byte more than 1 MiB, before any payload
        (frame(.close, [3]), 1002),  // half a code
        (frame(.close, [0, 0]), 1002), (frame(.close, [0x03, 0xE7]), 1002),  // 999
        (frame(.close, [0x03, 0xEC]), 1002), (frame(.close, [0x03, 0xED]), 1002),  // 1004, 1005
        (frame(.close, [0x03, 0xEE]), 1002), (frame(.close, [0x03, 0xF7]), 1002),  // 1006, 1015
        (frame(.close, [0x07, 0xD0]), 1002), (frame(.close, [0x13, 0x88]), 1002),  // 2000, 5000
        (frame(.close, [0x03, 0xE8, 0xC3]), 1007),
        (frame(.text, [0xC3]), 1007),  // half a character at the end
        (frame(.text, [0xC0]), 1007), (frame(.text, [0x80]), 1007), (frame(.text, [0xFF]), 1007),
        (frame(.text, [0xE0, 0x9F]), 1007), (frame(.text, [0xED, 0xA0]), 1007),  // overlong, a surrogate
        (frame(.text, [0xF0, 0x8F]), 1007), (frame(.text, [0xF4, 0x90]), 1007), (frame(.text, [0xF5]), 1007),
        (frame(.text, [0xE2], isFinal: false) + frame(.continuation, [0x28], isFinal: false), 1007),
        (frame(.text, [0xE2], isFinal: false) + frame(.continuation, []), 1007),
    ]

    @Test("takes what is right however it is cut", arguments: accepted) func takesWhatIsRightHowever(
        _ bytes: [UInt8],
        _ events: [WebSocketDecoder.Event]
    ) {
        for pieces in [[bytes]] + allCuts(bytes) {
            let outcome = decodeFrames(pieces, .server)
            #expect(outcome.events == events)
            #expect(outcome.violation == nil)
        }
    }

    @Test("refuses what is not as soon as it is seen", arguments: refused) func refusesWhatIsNotAs(
        _ bytes: [UInt8],
        _ code: UInt16
    ) {
        let whole = decodeFrames([bytes], .server)
        #expect(whole.violation?.code == code)
        for pieces in allCuts(bytes) { #expect(decodeFrames(pieces, .server) == whole) }
        // Without its last byte the input is not refused yet.
        #expect(decodeFrames([bytes.dropLast()], .server).violation == nil)
    }

    @Test("refuses bad text before its end") func refusesBadTextBefore() {
        // The header announces 100 bytes, and the third byte is already invalid.
        let bytes: [UInt8] = [0x81, 0x80 | 100, 0, 0, 0, 0, 0x61, 0xE2, 0x28]
        #expect(decodeFrames([bytes], .server).violation?.code == 1007)
    }

    @Test("bounds a message over its fragments") func boundsAMessageOver() {
        let part = Self.frame(.continuation, [UInt8](repeating: 1, count: 600), isFinal: false)
        let start = Self.frame(.binary, [UInt8](repeating: 1, count: 300), isFinal: false)
        let outcome = decodeFrames([start + part + part.prefix(8)], .server, maxMessage: 1000)
        #expect(outcome.violation?.code == 1009)
    }

    @Test("a client takes no mask") func aClientTakesNo() {
        #expect(decodeFrames([WebSocketFrame.text([0x61]).bytes], .client).events == [.text([0x61])])
        #expect(decodeFrames([Self.text("a")], .client).violation?.code == 1002)
    }

    @Test("round trips every length and mask") func roundTripsEveryLength() {
        var random = SeededNumbers(TestSeed.value)
        for length in Array(0...300) + [65534, 65535, 65536, 65537] {
            let payload = (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &random) }
            let mask = UInt32.random(in: .min ... .max, using: &random)
            let bytes = WebSocketFrame.encode(.binary, payload, mask: mask)
            let cut = Int.random(in: 0...bytes.count, using: &random)
            let outcome = decodeFrames([Array(bytes[..<cut]), Array(bytes[cut...])], .server)
            #expect(outcome.events == [.binary(payload)])
            #expect(decodeFrames([WebSocketFrame.binary(payload).bytes], .client).events == [.binary(payload)])
        }
    }

    @Test("agrees with the standard library on UTF 8") func agreesWithTheStandard() {
        var random = SeededNumbers(TestSeed.value)
        // The parts are around each boundary of the table in Unicode 3.9, D92.
        let parts: [[UInt8]] = [
            Array("a".utf8), Array("eight of".utf8), [0x7F], [0x80], [0xC1, 0xBF], [0xC2, 0x80], [0xDF, 0xBF],
            [0xE0, 0x9F, 0xBF], [0xE0, 0xA0, 0x80], [0xEC, 0xBF, 0xBF], [0xED, 0x9F, 0xBF], [0xED, 0xA0, 0x80],
            [0xEE, 0x80, 0x80], [0xEF, 0xBF, 0xBF], [0xF0, 0x8F, 0xBF, 0xBF], [0xF0, 0x90, 0x80, 0x80],
            [0xF3, 0xBF, 0xBF, 0xBF], [0xF4, 0x8F, 0xBF, 0xBF], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80],
            [0xE2, 0x82], [0xFF],
        ]
        for _ in 0..<5_000 * effort {
            let count = Int.random(in: 0...3, using: &random)
            let bytes = (0..<count).flatMap { _ in parts.randomElement(using: &random)! }
            let cut = Int.random(in: 0...bytes.count, using: &random)
            var checker = UTF8Checker()
            let isValid = bytes.withUnsafeBytes {
                checker.check(UnsafeRawBufferPointer(rebasing: $0[..<cut]))
                    && checker.check(UnsafeRawBufferPointer(rebasing: $0[cut...])) && checker.isComplete
            }
            #expect(isValid == (String(validating: bytes, as: UTF8.self) != nil), "\(bytes)")
        }
    }
}
