import Testing

@testable import ReelNode

/// Tests which log lines follow from a notice about the log's storage.
@Suite struct NoticeNewsTests {
    private func lines(_ looks: [(String?, Bool)]) -> [NoticeNews.Line?] {
        var news = NoticeNews()
        return looks.map { news.look($0, epochHasEnded: $1) }
    }

    @Test("a node logs a notice once, and logs the acceptance of the log once after it")
    func noticeOnce() {
        let found = lines([("copied", false), ("copied", false), (nil, false), (nil, false), (nil, false)])
        #expect(found == [.doubtful("copied"), nil, nil, .accepted, nil])
        #expect(lines([(nil, false), (nil, false)]) == [nil, nil], "there was nothing to accept")
    }

    @Test("a notice that the next epoch settles is not accepted, though the node reads the end later")
    func nextEpoch() {
        #expect(lines([("copied", false), (nil, true), (nil, true)]) == [.doubtful("copied"), nil, nil])
        #expect(lines([("copied", false), (nil, false), (nil, true)]) == [.doubtful("copied"), nil, nil])
    }
}
