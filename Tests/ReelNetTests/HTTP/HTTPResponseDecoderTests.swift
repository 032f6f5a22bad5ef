import Testing

@testable import ReelNet

@Suite struct HTTPResponseDecoderTests {
    @Test(
        "reads answers however they are cut",
        arguments: [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", true),
            ("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "hello", true),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", "a", true),
            ("HTTP/1.1 204 No Content\r\n\r\n", "", true),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "", true),
            ("HTTP/1.0 200 OK\r\n\r\nto the end", "to the end", false),
        ]
    ) func readsAnswersHoweverThey(_ text: String, _ body: String, _ ends: Bool) {
        let bytes = Array(text.utf8)
        let whole = decodeAnswers([bytes])
        #expect(whole.violation == nil)
        let expected: [AnswerEvent] = (body.isEmpty ? [] : [.body(Array(body.utf8))]) + (ends ? [.end] : [])
        #expect(Array(whole.events.dropFirst()) == expected)
        for pieces in allCuts(bytes) { #expect(decodeAnswers(pieces) == whole) }
    }

    @Test(
        "refuses what is no answer",
        arguments: [
            "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 600 X\r\n\r\n",
            "ICY 200 OK\r\n\r\n", "HTTP/1.1 200 OK\n\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        ]
    ) func refusesWhatIsNo(_ text: String) {
        let whole = decodeAnswers([Array(text.utf8)])
        #expect(whole.violation != nil)
        for pieces in allCuts(Array(text.utf8)) { #expect(decodeAnswers(pieces) == whole) }
    }
}
